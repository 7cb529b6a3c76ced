//! One request: what is let through, and what is said of what is not.

use crate::server::{KnownKeys, Server, body, http, loopback};
use ::http::{Method, Request, Response};
use bytes::Bytes;
use reeve_outside::{Http, HttpError, HttpLimits, Roots, Secret, Signer};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

fn request(method: Method, url: &str) -> Request<Bytes> {
    let request = Request::builder().method(method).uri(url);
    request.body(Bytes::new()).unwrap()
}

async fn get(http: &Http, url: &str) -> Result<Response<Bytes>, HttpError> {
    http.send(request(Method::GET, url)).await
}

async fn refusal(http: &Http, url: &str) -> String {
    get(http, url).await.unwrap_err().to_string()
}

#[tokio::test]
async fn what_is_granted_is_sent_over_verified_tls() {
    let server = Server::https(&["localhost"], async |path, _| body(path)).await;
    let client = http(vec![server.rule("localhost", "/v1/")]);
    let answer = get(&client, &server.url("localhost", "/v1/x?y=z"))
        .await
        .unwrap();
    assert_eq!(answer.body(), "/v1/x");
    assert_eq!(server.asked()[0].line, "GET /v1/x?y=z");

    let outside = refusal(&client, &server.url("localhost", "/v2")).await;
    assert!(
        outside.contains("GET https://localhost") && outside.contains("is not granted"),
        "{outside}"
    );
    // Where it is granted with other methods, that is what is said.
    let mut reads = server.rule("localhost", "/v1/");
    reads.methods = vec![Method::GET, Method::HEAD];
    let put = request(Method::PUT, &server.url("localhost", "/v1/x"));
    let refused = http(vec![reads]).send(put).await.unwrap_err().to_string();
    let said = "/v1/x is not granted: what is granted there is GET, HEAD; add the method";
    assert!(refused.contains(said), "{refused}");
    assert!(server.asked().is_empty(), "nothing was sent");

    // The certificate is for another name.
    let mut rule = server.rule("127.0.0.1", "/");
    let wrong_name = refusal(&http(vec![rule.clone()]), &server.url("127.0.0.1", "/")).await;
    assert!(wrong_name.contains("certificate"), "{wrong_name}");
    // Nobody we trust has signed it.
    let other = Server::https(&["localhost"], async |path, _| body(path)).await;
    rule = server.rule("localhost", "/");
    rule.roots = Roots::Only(other.certificate.clone());
    let stranger = refusal(&http(vec![rule]), &server.url("localhost", "/")).await;
    assert!(stranger.contains("certificate"), "{stranger}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn redirects_are_answers() {
    let server = Server::https(&["localhost"], async |_, _| {
        crate::server::redirect("/elsewhere")
    });
    let server = server.await;
    let client = http(vec![server.rule("localhost", "/")]);
    let answer = get(&client, &server.url("localhost", "/")).await.unwrap();
    assert_eq!(answer.status(), 302);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn responses_are_bounded() {
    let server = Server::https(&["localhost"], async |path, _| match &*path {
        "/slow" => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            body("late")
        }
        _ => body(vec![b'x'; 2000]),
    })
    .await;
    let limits = HttpLimits {
        response_bytes: 1000,
        whole: Duration::from_secs(1),
        ..HttpLimits::default()
    };
    let rules = vec![server.rule("localhost", "/")];
    let client = Http::new(rules, crate::server::no_keys(), limits);
    let large = refusal(&client, &server.url("localhost", "/large")).await;
    assert!(large.ends_with("returned more than 1000 bytes"), "{large}");
    let slow = refusal(&client, &server.url("localhost", "/slow")).await;
    assert!(slow.ends_with("did not answer within 1 s"), "{slow}");
}

#[tokio::test]
async fn the_host_signs_and_nobody_else() {
    let server = Server::https(&["localhost"], async |_, _| body("ok")).await;
    let mut signed = server.rule("localhost", "/signed");
    signed.key = Some("storage".to_owned());
    let mut unknown = server.rule("localhost", "/unknown");
    unknown.key = Some("other".to_owned());
    let bearer = Arc::new(Signer::Bearer(Secret::new("hunter2")));
    let keys = KnownKeys(BTreeMap::from([("storage".to_owned(), bearer)]));
    let rules = vec![signed, unknown, server.rule("localhost", "/plain")];
    let client = Http::new(rules, Arc::new(keys), HttpLimits::default());

    get(&client, &server.url("localhost", "/signed"))
        .await
        .unwrap();
    get(&client, &server.url("localhost", "/plain"))
        .await
        .unwrap();
    let asked = server.asked();
    assert_eq!(asked[0].headers["authorization"], "Bearer hunter2");
    assert!(
        !asked[1].headers.contains_key("authorization"),
        "a key is bound to its grant"
    );

    let mut own = request(Method::GET, &server.url("localhost", "/signed"));
    own.headers_mut()
        .insert("authorization", "Bearer mine".parse().unwrap());
    let own = client.send(own).await.unwrap_err().to_string();
    assert!(
        own.contains("leave the header `authorization` out"),
        "{own}"
    );
    let absent = refusal(&client, &server.url("localhost", "/unknown")).await;
    assert!(absent.contains("no key `other`"), "{absent}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn errors_show_no_query() {
    let mut rule = reeve_outside::Rule::new("https://127.0.0.1:1/").unwrap();
    rule.networks = loopback();
    let closed = refusal(&http(vec![rule]), "https://127.0.0.1:1/x?sig=hunter2").await;
    assert!(
        closed.starts_with("cannot connect to https://127.0.0.1:1/x: "),
        "{closed}"
    );
    assert!(!closed.contains("hunter2"), "{closed}");
    let ungranted = refusal(&http(vec![]), "https://a.example/?sig=hunter2").await;
    assert!(!ungranted.contains("hunter2"), "{ungranted}");
}
