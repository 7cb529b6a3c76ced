//! Documents: fetched, not fetched again, and followed to where they are.

use crate::server::{Server, body, http, redirect};
use ::http::Response;
use bytes::Bytes;
use reeve_outside::document::fetch;
use reeve_outside::{Fetched, Validators};

#[tokio::test]
async fn what_has_not_changed_is_not_sent_again() {
    let server = Server::https(&["localhost"], async |_, headers| {
        if headers
            .get("if-none-match")
            .is_some_and(|tag| tag == "\"1\"")
        {
            return Response::builder().status(304).body(Bytes::new()).unwrap();
        }
        let response = Response::builder()
            .header("etag", "\"1\"")
            .header("last-modified", "Fri, 24 May 2013 00:00:00 GMT")
            .header("content-type", "application/json");
        response.body(Bytes::from_static(b"{}")).unwrap()
    })
    .await;
    let client = http(vec![server.rule("localhost", "/")]);
    let url = server.url("localhost", "/data");
    let first = fetch(&client, &url, &Validators::default()).await.unwrap();
    let Fetched::Document(document, validators) = first else {
        panic!("{first:?}");
    };
    assert_eq!(
        (&*document.body, &*document.media_type),
        (&b"{}"[..], "application/json")
    );
    let second = fetch(&client, &url, &validators).await.unwrap();
    assert_eq!(second, Fetched::Unchanged);
    let asked = server.asked();
    assert!(!asked[0].headers.contains_key("if-none-match"));
    assert_eq!(
        asked[1].headers["if-modified-since"],
        "Fri, 24 May 2013 00:00:00 GMT"
    );
    // Another URL understands its validators otherwise.
    let other = fetch(&client, &server.url("localhost", "/other"), &validators)
        .await
        .unwrap();
    assert!(matches!(other, Fetched::Document(..)));
}

#[tokio::test]
async fn redirects_are_looked_at_as_requests_are() {
    let other = Server::https(&["localhost"], async |_, _| body("elsewhere")).await;
    let elsewhere = other.url("localhost", "/document");
    let to = elsewhere.clone();
    let server = Server::https(&["localhost"], move |path: String, _| {
        let to = to.clone();
        async move {
            match &*path {
                "/v1/moved" => redirect("document"),
                "/v1/document" => body("here"),
                "/v1/elsewhere" => redirect(&to),
                "/v1/up" => redirect("../admin"),
                "/v1/loop" => redirect("loop"),
                "/v1/file" => redirect("file:///etc/passwd"),
                "/v1/metadata" => redirect("http://169.254.169.254/latest"),
                "/v1/gone" => Response::builder().status(410).body(Bytes::new()).unwrap(),
                _ => body("admin"),
            }
        }
    })
    .await;
    let granted = vec![server.rule("localhost", "/v1/")];
    let mut both = granted.clone();
    both.push(other.rule("localhost", "/"));
    for (rules, path, expected) in [
        (&granted, "/v1/moved", "here"),
        (&both, "/v1/elsewhere", "elsewhere"),
        (&granted, "/v1/elsewhere", "is not granted"),
        (&granted, "/v1/up", "/admin is not granted"),
        (&granted, "/v1/loop", "redirects more than 5 times"),
        (&granted, "/v1/file", "redirects to what is no URL"),
        (
            &both,
            "/v1/metadata",
            "GET http://169.254.169.254/latest is not granted",
        ),
        (&granted, "/v1/gone", "/v1/gone answers 410 Gone"),
    ] {
        let client = http(rules.clone());
        let url = server.url("localhost", path);
        let found = match fetch(&client, &url, &Validators::default()).await {
            Ok(Fetched::Document(document, _)) => {
                String::from_utf8_lossy(&document.body).into_owned()
            }
            Ok(Fetched::Unchanged) => "unchanged".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expected), "{path}: {found}");
    }
}
