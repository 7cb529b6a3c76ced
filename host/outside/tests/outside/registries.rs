//! Registries that ask for tokens, redirect, lie and never come to an end. Real ones are
//! asked elsewhere; these do what a real one does not do on request.

use crate::server::{Server, body, redirect};
use bytes::Bytes;
use http::{HeaderMap, Response};
use reeve_core::Digest;
use reeve_outside::registry::Wanted;
use reeve_outside::{ImageReference, Login, Registry, RegistryError, RegistrySettings, Roots};
use serde_json::json;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const COMPONENT: &[u8] = b"\0asm component";
const LIMIT: u64 = 1000;
const PASSWORD: &str = "c4n4ry-p4ssw0rd";
const TOKEN: &str = "c4n4ry-t0k3n";

fn manifest() -> Bytes {
    let layer = json!({
        "mediaType": "application/wasm",
        "digest": Digest::of(COMPONENT).to_string(),
        "size": COMPONENT.len(),
    });
    let config = json!({"mediaType": "application/vnd.wasm.config.v0+json"});
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]});
    manifest.to_string().into()
}

fn status(code: u16, text: &str) -> Response<Bytes> {
    let response = Response::builder().status(code);
    response
        .body(Bytes::copy_from_slice(text.as_bytes()))
        .unwrap()
}

fn challenge(with: &str) -> Response<Bytes> {
    let response = Response::builder()
        .status(401)
        .header("www-authenticate", with);
    response.body(Bytes::new()).unwrap()
}

fn authorization(headers: &HeaderMap) -> Option<&str> {
    headers
        .get("authorization")
        .map(|value| value.to_str().unwrap())
}

/// Pulls the component of a tag.
async fn pull(server: &Server, tag: &str, login: Option<Login>) -> Result<Bytes, RegistryError> {
    let image = format!("localhost:{}/team/quotas:{tag}", server.port);
    let image: ImageReference = image.parse().unwrap();
    let settings = RegistrySettings {
        roots: Roots::Only(server.certificate.clone()),
        plain_http: false,
        login,
    };
    let registry = Registry::new(&image, settings)?;
    let manifest = registry.manifest(&image.wanted()).await?;
    registry.component(&manifest, LIMIT).await
}

fn login() -> Option<Login> {
    Some(Login::new("robot", PASSWORD))
}

#[tokio::test]
async fn credentials_go_to_the_token_service_and_to_no_store() {
    let store = Arc::new(Server::https(&["localhost"], |_, _| async { body(COMPONENT) }).await);
    let tokens = Server::https(&["localhost"], |_, headers| async move {
        match authorization(&headers) {
            Some("Basic cm9ib3Q6YzRuNHJ5LXA0c3N3MHJk") => body(json!({"token": TOKEN}).to_string()),
            None => body(json!({"access_token": "anonymous"}).to_string()),
            Some(_) => status(401, ""),
        }
    })
    .await;
    let realm = tokens.url("localhost", "/token");
    let blobs = store.url("localhost", "/blob?signed=yes");
    let roots = format!("{}{}", store.certificate, tokens.certificate);
    let server = Server::https(&["localhost"], move |path, headers| {
        let (realm, blobs) = (realm.clone(), blobs.clone());
        async move {
            let bearer = authorization(&headers).and_then(|text| text.strip_prefix("Bearer "));
            let private = bearer == Some(TOKEN);
            if !(private || bearer == Some("anonymous") && path.ends_with("/public")) {
                let scope = "repository:team/quotas:pull";
                let text = format!("Bearer realm=\"{realm}\",service=\"reg\",scope=\"{scope}\"");
                return challenge(&text);
            }
            match path.as_str() {
                "/v2/team/quotas/manifests/1" | "/v2/team/quotas/manifests/public" => {
                    body(manifest())
                }
                path if path.starts_with("/v2/team/quotas/blobs/sha256:") => redirect(&blobs),
                _ => status(404, ""),
            }
        }
    })
    .await;
    let image: ImageReference = format!("localhost:{}/team/quotas:1", server.port)
        .parse()
        .unwrap();
    let all = format!("{}{roots}", server.certificate);
    let settings = |login| RegistrySettings {
        roots: Roots::Only(all.clone()),
        plain_http: false,
        login,
    };
    let registry = Registry::new(&image, settings(login())).unwrap();
    let found = registry.manifest(&image.wanted()).await.unwrap();
    assert_eq!(found.digest, Digest::of(&manifest()));
    assert_eq!(registry.component(&found, LIMIT).await.unwrap(), COMPONENT);
    let asked = tokens.asked();
    let scope = "scope=repository%3Ateam%2Fquotas%3Apull";
    assert_eq!(asked.len(), 1, "a token serves more than one question");
    assert_eq!(asked[0].line, format!("GET /token?service=reg&{scope}"));
    for one in store.asked() {
        assert_eq!(one.line, "GET /blob?signed=yes");
        assert_eq!(authorization(&one.headers), None);
    }

    // Whoever has no login asks for a token for anybody, and may see what is public.
    let registry = Registry::new(&image, settings(None)).unwrap();
    let public = Wanted::Tag("public".to_owned());
    registry.manifest(&public).await.unwrap();
    let refused = registry.manifest(&image.wanted()).await.unwrap_err();
    assert!(matches!(refused, RegistryError::Denied { .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("refuses requests without a login"), "{text}");

    // A wrong password is refused by the token service.
    let wrong = Some(Login::new("robot", "wrong"));
    let registry = Registry::new(&image, settings(wrong)).unwrap();
    let refused = registry.manifest(&image.wanted()).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("refuses the login `robot`"), "{text}");
    assert!(text.contains("/token answers 401"), "{text}");
}

#[tokio::test]
async fn what_is_not_as_it_should_be_says_so() {
    let other = Digest::of(b"other");
    let server = Server::https(&["localhost"], |path, headers| async move {
        let basic = authorization(&headers).is_some_and(|text| text.starts_with("Basic "));
        let tag = path.rsplit('/').next().unwrap_or_default().to_owned();
        match tag.as_str() {
            "spoiled" | "ok" => body(manifest()),
            "basic" if basic => body(manifest()),
            "basic" | "refused" => challenge("Basic realm=\"x\""),
            "odd" => challenge("Negotiate"),
            "plain" => challenge("Bearer realm=\"http://localhost/token\""),
            "nowhere" => challenge("Bearer realm=\"ftp://localhost/token\""),
            "empty" => challenge("Bearer realm=\"https://localhost:1/token\""),
            "denied" => status(
                403,
                r#"{"errors":[{"code":"DENIED","message":"c4n4ry-t0k3n"}]}"#,
            ),
            "busy" => status(429, ""),
            "broken" => status(503, &"x".repeat(100_000)),
            "large" => body(vec![b'x'; 300 << 10]),
            "index" => body(json!({"manifests": []}).to_string()),
            "image" => body(json!({"config": {"mediaType": "x"}}).to_string()),
            "down" => redirect("http://localhost/other"),
            "loop" => redirect("loop"),
            "file" => redirect("file:///etc/passwd"),
            tag if tag.starts_with("sha256:") => body("not component!"),
            _ => status(404, r#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#),
        }
    })
    .await;
    for (tag, says) in [
        ("ok", "a layer with digest sha256:"),
        ("basic", "a layer with digest sha256:"),
        (
            "refused",
            "the registry refuses the login `robot`: https://localhost:PORT/v2/team/quotas/manifests/refused answers 401",
        ),
        ("odd", "asks neither for a token nor for a password"),
        (
            "plain",
            "its token service, http://localhost/token, is without TLS",
        ),
        ("nowhere", "its token service is no URL"),
        (
            "empty",
            "the registry cannot be reached: https://localhost:1/token: ",
        ),
        (
            "denied",
            "refuses the login `robot`: https://localhost:PORT/v2/team/quotas/manifests/denied answers 403 (DENIED)",
        ),
        (
            "busy",
            "the registry cannot be reached: https://localhost:PORT/v2/team/quotas/manifests/busy answers 429",
        ),
        (
            "broken",
            "the registry cannot be reached: https://localhost:PORT/v2/team/quotas/manifests/broken answers 503",
        ),
        ("large", "returned more than 262144 bytes"),
        ("index", "it is an index of several manifests"),
        ("image", "it holds no plugin"),
        (
            "down",
            "redirects to http://localhost/other, which is without TLS",
        ),
        ("loop", "redirects more than 5 times"),
        ("file", "redirects to what is no URL"),
        (
            "absent",
            "localhost:PORT/team/quotas:absent does not exist: https://localhost:PORT/v2/team/quotas/manifests/absent answers 404",
        ),
    ] {
        let error = pull(&server, tag, login()).await.unwrap_err().to_string();
        let says = says.replace("PORT", &server.port.to_string());
        assert!(error.contains(&says), "{tag}: {says}: {error}");
        assert!(!error.contains("c4n4ry"), "{error}");
    }
    let image = format!("localhost:{}/team/quotas:ok@{other}", server.port);
    let image: ImageReference = image.parse().unwrap();
    let settings = RegistrySettings {
        roots: Roots::Only(server.certificate.clone()),
        ..RegistrySettings::default()
    };
    let registry = Registry::new(&image, settings).unwrap();
    let error = registry.manifest(&image.wanted()).await.unwrap_err();
    let expected = format!("the manifest with digest {other} has digest ");
    assert!(error.to_string().contains(&expected), "{error}");

    // Of a certificate that nobody has named, no word is taken.
    let registry = Registry::new(
        &image,
        RegistrySettings {
            roots: Roots::Only(
                Server::https(&["localhost"], |_, _| async { body("") })
                    .await
                    .certificate
                    .clone(),
            ),
            ..RegistrySettings::default()
        },
    )
    .unwrap();
    let error = registry.manifest(&image.wanted()).await.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

/// A body of which nobody says how long it is ends where it may not go on.
#[tokio::test]
async fn what_never_ends_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        let mut sent = 0;
        // Until the other side hangs up.
        while stream.write_all(chunk.as_bytes()).await.is_ok() {
            sent += chunk.len();
        }
        sent
    });
    // On loopback, without TLS.
    let image: ImageReference = format!("127.0.0.1:{port}/quotas:1").parse().unwrap();
    let registry = Registry::new(&image, RegistrySettings::default()).unwrap();
    let error = registry.manifest(&image.wanted()).await.unwrap_err();
    assert!(
        matches!(error, RegistryError::TooLarge { limit: 262_144, .. }),
        "{error}"
    );
    drop(registry);
    let sent = serving.await.unwrap();
    assert!(sent < 64 << 20, "{sent}");
}
