//! The server on a socket: TLS, tokens, kubeconfig.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use crate::support::server;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use reeve_sim::{Identity, Server, Serving};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

async fn connect(kubeconfig: &str) -> kube::Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.unwrap()).unwrap()
}

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

#[tokio::test]
async fn a_kubeconfig_is_all_that_a_client_needs() {
    let server: Server = server();
    let serving = server.serve(any_port()).await.unwrap();
    let client = connect(&serving.kubeconfig()).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    assert_eq!(
        namespaces
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        4
    );
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".to_owned());
    maps.create(&PostParams::default(), &map).await.unwrap();
    // It is the same server as the one inside the process.
    let inside: Api<ConfigMap> = Api::default_namespaced(server.client());
    assert!(inside.get("a").await.is_ok());
    serving.shutdown().await;
    assert!(maps.get("a").await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn callers_are_known_by_their_tokens() {
    let server = server();
    let serving = server.serve(any_port()).await.unwrap();
    let code = |error: kube::Error| match error {
        kube::Error::Api(status) => status.code,
        other => panic!("{other}"),
    };
    let nobody = connect(&serving.kubeconfig_for("guessed")).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(nobody);
    assert_eq!(
        code(maps.list(&ListParams::default()).await.unwrap_err()),
        401
    );
    let token = server.token(Identity::user("joe", [""; 0]));
    let joe = connect(&serving.kubeconfig_for(&token)).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(joe);
    assert_eq!(
        code(maps.list(&ListParams::default()).await.unwrap_err()),
        403
    );
}

#[tokio::test]
async fn the_kubeconfig_file_is_for_its_owner_alone() {
    let serving = server().serve(any_port()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    serving.write_kubeconfig(&file, "default").unwrap();
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        serving.kubeconfig()
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

/// A connection to a server that speaks one version of HTTP.
async fn dial(serving: &Serving, version: &[u8]) -> TokioIo<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(serving.certificate().as_bytes());
    roots.add(certificate.unwrap()).unwrap();
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![version.to_vec()];
    let stream = TcpStream::connect(serving.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    TokioIo::new(connector.connect(name, stream).await.unwrap())
}

/// The answer to one request over one version of HTTP, on a connection of its own.
async fn ask(
    serving: &Serving,
    version: &str,
    request: Request<Full<Bytes>>,
) -> (StatusCode, String) {
    let io = dial(serving, version.as_bytes()).await;
    let answer = if version == "h2" {
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await
    } else {
        let (mut sender, connection) = http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await
    };
    let (parts, body) = answer.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status, String::from_utf8_lossy(&body).into_owned())
}

fn request(serving: &Serving, method: &str, token: &str) -> http::request::Builder {
    let uri = format!("{}/api/v1/namespaces/default/configmaps", serving.url());
    Request::builder()
        .method(method)
        .uri(uri)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
}

#[tokio::test]
async fn who_sends_too_much_is_told_so() {
    let serving = server().serve(any_port()).await.unwrap();
    for version in ["http/1.1", "h2"] {
        for (token, code) in [(serving.token(), 413), ("guessed", 401)] {
            for size in [4 << 20, 20 << 20] {
                let body = Full::new(Bytes::from(vec![b' '; size]));
                let sent = request(&serving, "POST", token).body(body).unwrap();
                let (status, answer) = ask(&serving, version, sent).await;
                assert_eq!(status, code, "{version}, {size}: {answer}");
                assert!(answer.contains("\"kind\":\"Status\""), "{answer}");
            }
        }
        let body = Full::new(Bytes::from(vec![b' '; 8 << 20]));
        let asking = request(&serving, "POST", serving.token()).header("expect", "100-continue");
        let (status, answer) = ask(&serving, version, asking.body(body).unwrap()).await;
        assert_eq!(status, 413, "{version}: {answer}");
    }
}

#[tokio::test]
async fn heads_may_be_long_but_not_for_ever() {
    let serving = server().serve(any_port()).await.unwrap();
    let cases = [
        ("http/1.1", 1, 1_000_000, 200),
        ("http/1.1", 1, 1_060_000, 431),
        ("http/1.1", 1_000, 10, 200),
        ("h2", 1, 60_000, 200),
        ("h2", 1, 70_000, 431),
        ("h2", 1, 80_000, 431),
        ("h2", 1_000, 10, 200),
    ];
    for (version, count, length, code) in cases {
        let mut asked = request(&serving, "GET", serving.token());
        for index in 0..count {
            asked = asked.header(format!("x-{index}"), "x".repeat(length));
        }
        let sent = asked.body(Full::default()).unwrap();
        let (status, answer) = ask(&serving, version, sent).await;
        assert_eq!(status, code, "{version}, {count} of {length}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_much_keeps_nobody_waiting() {
    let serving = Arc::new(server().serve(any_port()).await.unwrap());
    let containers: Vec<String> = (0..4_000)
        .map(|number| format!("{{\"name\":\"c{number}\",\"image\":\"i\"}}"))
        .collect();
    let pod = format!(
        "{{\"metadata\":{{\"name\":\"a\"}},\"spec\":{{\"containers\":[{}]}}}}",
        containers.join(",")
    );
    let much = tokio::spawn({
        let serving = serving.clone();
        async move {
            let uri = format!("{}/api/v1/namespaces/default/pods", serving.url());
            let sent = Request::post(uri)
                .header("authorization", format!("Bearer {}", serving.token()))
                .header("content-type", "application/json")
                .body(Full::new(Bytes::from(pod)));
            ask(&serving, "h2", sent.unwrap()).await
        }
    });
    let mut meanwhile = 0;
    while !much.is_finished() {
        let uri = format!("{}/readyz", serving.url());
        let sent = Request::get(uri).body(Full::default()).unwrap();
        let (status, answer) = ask(&serving, "h2", sent).await;
        assert_eq!(status, 200, "{answer}");
        meanwhile += usize::from(!much.is_finished());
    }
    let (status, answer) = much.await.unwrap();
    assert_eq!(status, 201, "{answer}");
    assert!(meanwhile > 3, "{meanwhile} answers came meanwhile");
}

#[tokio::test]
async fn nobody_reads_what_may_not_be_sent() {
    let server = server();
    let serving = server.serve(any_port()).await.unwrap();
    let joe = server.token(Identity::user("joe", [""; 0]));
    for (path, method, token, code) in [
        ("/api/v1/namespaces/default/configmaps", "POST", &*joe, 403),
        ("/nope", "POST", serving.token(), 404),
        (
            "/api/v1/namespaces/default/nopes",
            "POST",
            serving.token(),
            404,
        ),
        ("/version", "GET", serving.token(), 200),
        (
            "/api/v1/namespaces/default/configmaps",
            "GET",
            serving.token(),
            200,
        ),
    ] {
        let sent = Request::builder()
            .method(method)
            .uri(format!("{}{path}", serving.url()))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(vec![b' '; 4 << 20])));
        let (status, answer) = ask(&serving, "http/1.1", sent.unwrap()).await;
        assert_eq!(status, code, "{method} {path}: {answer}");
    }
}
