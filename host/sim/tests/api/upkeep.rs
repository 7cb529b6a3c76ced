//! What the server does for namespaces by itself: quotas are counted and hold, and its
//! certificate is published.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Http, admin, settle};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn quota(name: &str, hard: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": name}, "spec": {"hard": hard},
    })
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
}

async fn used(client: &Http, name: &str) -> Value {
    settle().await;
    let (_, quota) = client.get(&format!("{QUOTAS}/{name}")).await;
    quota["status"]["used"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_quota_holds_however_many_come_at_once() {
    let (_server, client) = admin();
    let (code, answer) = client
        .post(QUOTAS, quota("q", json!({"secrets": "10"})))
        .await;
    assert_eq!(code, 201, "{answer}");
    let tasks = (0..64).map(|number| {
        let client = client.clone();
        tokio::spawn(async move { client.post(SECRETS, secret(&format!("s{number}"))).await.0 })
    });
    let mut codes = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        codes.push(task.await.unwrap());
    }
    let made = codes.iter().filter(|code| **code == 201).count();
    let refused = codes.iter().filter(|code| **code == 403).count();
    assert_eq!((made, refused), (10, 54), "{codes:?}");
    let (_, list) = client.get(SECRETS).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 10);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(used(&client, "q").await, json!({"secrets": "10"}));
}

#[tokio::test]
async fn what_is_not_stored_is_not_used() {
    let (_server, client) = admin();
    client
        .post(QUOTAS, quota("q", json!({"secrets": "3"})))
        .await;
    assert_eq!(client.post(SECRETS, secret("a")).await.0, 201);
    // It is charged, and there is one of its name.
    assert_eq!(client.post(SECRETS, secret("a")).await.0, 409);
    assert_eq!(used(&client, "q").await, json!({"secrets": "1"}));
    let tried = format!("{SECRETS}?dryRun=All");
    assert_eq!(client.post(&tried, secret("b")).await.0, 201);
    assert_eq!(used(&client, "q").await, json!({"secrets": "1"}));
    // Who only tries is held to a quota that nobody has counted yet, and counts nothing.
    let narrower = json!({"spec": {"hard": {"secrets": "1"}}});
    client.call("PATCH", &format!("{QUOTAS}/q"), narrower).await;
    assert_eq!(client.post(&tried, secret("b")).await.0, 403);
    client.delete(&format!("{SECRETS}/a")).await;
    assert_eq!(used(&client, "q").await, json!({"secrets": "0"}));
    assert_eq!(client.post(SECRETS, secret("b")).await.0, 201);
}

#[tokio::test]
async fn every_kind_can_be_counted() {
    let (_server, client) = admin();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(client.post(path, definition).await.0, 201);
    let hard = json!({"count/widgets.example.com": "1", "count/leases.coordination.k8s.io": "0"});
    client.post(QUOTAS, quota("q", hard)).await;
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let widget = |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}});
    assert_eq!(client.post(widgets, widget("a")).await.0, 201);
    let (code, answer) = client
        .apply(&format!("{widgets}/b"), "m", widget("b"))
        .await;
    assert_eq!(code, 403, "{answer}");
    let message = answer["message"].as_str().unwrap();
    assert!(
        message.ends_with(
            "exceeded quota: q, requested: count/widgets.example.com=1, used: \
             count/widgets.example.com=1, limited: count/widgets.example.com=1"
        ),
        "{message}"
    );
    assert_eq!(
        used(&client, "q").await,
        json!({"count/widgets.example.com": "1", "count/leases.coordination.k8s.io": "0"})
    );
}

async fn published(client: &Http, certificate: &str) {
    const PATH: &str = "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt";
    let mut found = Value::Null;
    for _ in 0..200 {
        found = client.get(PATH).await.1;
        if found["data"]["ca.crt"] == certificate {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(found["data"]["ca.crt"], certificate);
}

#[tokio::test]
async fn the_certificate_is_that_of_who_listens() {
    let (server, client) = admin();
    settle().await;
    let (code, _) = client
        .get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt")
        .await;
    assert_eq!(code, 404, "nobody listens");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    for _ in 0..2 {
        let serving = server.serve(any).await.unwrap();
        published(&client, serving.certificate()).await;
        serving.shutdown().await;
    }
}
