//! Webhooks that convert custom resources. What is asked and what comes of each answer is
//! looked at in `tests/real`; here is who has to wait for it, and how often it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use reeve_sim::{Config, Server};
use reeve_test_support::http::{self as web, Body, Certificate};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::{CONFIG_MAPS, Http};
use crate::watches::Watch;

const V1: &str = "/apis/x.io/v1/namespaces/default/ws";
const V2: &str = "/apis/x.io/v2/namespaces/default/ws";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// How long a test waits for what never comes.
const PATIENCE: Duration = Duration::from_secs(60);
/// What no answer may be longer than.
const LARGEST: usize = 3 << 20;

/// What a webhook does, and was asked.
#[derive(Debug)]
struct Webhook {
    asked: AtomicUsize,
    /// How many answers it may give.
    answers: Semaphore,
}

impl Webhook {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Waits until it is.
    async fn is_asked(&self) {
        let asked = async {
            while self.asked() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, asked).await.unwrap();
    }

    /// Takes `size` for `amount`, or the other way round.
    async fn answer(&self, request: Request<Bytes>) -> Response<Body> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.answers.acquire().await.unwrap().forget();
        let review: Value = serde_json::from_slice(request.body()).unwrap();
        let asked = &review["request"];
        let mut object = asked["objects"][0].clone();
        object["apiVersion"] = asked["desiredAPIVersion"].clone();
        let spec = object["spec"].as_object_mut().unwrap();
        let (from, to) = match asked["desiredAPIVersion"] == "x.io/v1" {
            true => ("amount", "size"),
            false => ("size", "amount"),
        };
        let value = spec.remove(from).unwrap();
        if value == 0 {
            object["x"] = "x".repeat(LARGEST).into();
        } else {
            spec.insert(to.to_owned(), value);
        }
        let answer = json!({
            "apiVersion": review["apiVersion"],
            "kind": "ConversionReview",
            "response": {
                "uid": asked["uid"],
                "result": {"status": "Success"},
                "convertedObjects": [object],
            },
        });
        Response::new(web::whole(answer.to_string()))
    }
}

/// A server with a definition, and the webhook of that, which may give so many answers.
async fn start(answers: usize) -> (Server, Http, Arc<Webhook>) {
    let webhook = Arc::new(Webhook {
        asked: AtomicUsize::new(0),
        answers: Semaphore::new(answers),
    });
    let certificate = Certificate::of(&["127.0.0.1"]).unwrap();
    let asked = webhook.clone();
    let answer = move |request| {
        let asked = asked.clone();
        async move { asked.answer(request).await }
    };
    let port = web::serve(Some(&certificate), answer).await.unwrap();
    let server = Server::new(Config {
        asks_webhooks: true,
        ..Config::default()
    });
    let http = Http(server.client());
    let version = |name: &str, field: &str, storage: bool| {
        let number = json!({"type": "integer"});
        let spec = json!({"type": "object", "properties": {field: number}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": schema}})
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ws.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"plural": "ws", "kind": "W"},
            "versions": [version("v1", "size", true), version("v2", "amount", false)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{port}/x"),
                    "caBundle": BASE64_STANDARD.encode(&certificate.pem),
                },
            }},
        },
    });
    let (code, made) = http.post(DEFINITIONS, definition).await;
    assert_eq!(code, 201, "{made}");
    (server, http, webhook)
}

fn w(version: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({"name": name});
    json!({"apiVersion": format!("x.io/{version}"), "kind": "W", "metadata": metadata, "spec": spec})
}

/// With one thread for everything: who reads must not keep it.
#[tokio::test]
async fn who_reads_keeps_nobody_waiting() {
    let (_server, http, webhook) = start(0).await;
    http.post(V1, w("v1", "a", json!({"size": 1}))).await;
    let of_list = format!("{V2}?limit=5");
    for path in [format!("{V2}/a"), of_list] {
        let reading = http.get(&path);
        let other = async {
            webhook.is_asked().await;
            let (code, found) = http.get(CONFIG_MAPS).await;
            assert_eq!(code, 200, "{found}");
            webhook.answers.add_permits(1);
        };
        let ((code, found), ()) = tokio::join!(reading, other);
        assert_eq!(code, 200, "{found}");
        assert!(found.to_string().contains("\"amount\":1"), "{found}");
        webhook.asked.store(0, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_writes_keeps_nobody_else_waiting() {
    let (_server, http, webhook) = start(0).await;
    let writer = http.clone();
    let writing =
        tokio::spawn(async move { writer.post(V2, w("v2", "a", json!({"amount": 1}))).await });
    webhook.is_asked().await;
    // The same kind, too.
    let (code, made) = http.post(V1, w("v1", "b", json!({"size": 1}))).await;
    assert_eq!(code, 201, "{made}");
    webhook.answers.add_permits(2);
    let (code, made) = writing.await.unwrap();
    assert_eq!(
        (code, &made["spec"]),
        (201, &json!({"amount": 1})),
        "{made}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_ask_about_each_object_once_and_other_reads_each_time() {
    let (server, http, webhook) = start(100).await;
    for name in ["a", "b"] {
        http.post(V1, w("v1", name, json!({"size": 1}))).await;
    }
    assert_eq!(webhook.asked(), 0);
    for _ in 0..3 {
        http.get(V2).await;
        http.get(&format!("{V2}?labelSelector=x=y")).await;
    }
    assert_eq!(webhook.asked(), 2);
    // A fork has the same objects.
    Http(server.fork(reeve_sim::Clock::system()).client())
        .get(V2)
        .await;
    assert_eq!(webhook.asked(), 2);
    http.get(&format!("{V2}/a")).await;
    http.get(&format!("{V2}/a")).await;
    assert_eq!(webhook.asked(), 4);
    let spec = json!({"spec": {"size": 2}});
    http.call("PATCH", &format!("{V1}/a"), spec).await;
    let (_, list) = http.get(V2).await;
    assert_eq!(list["items"][0]["spec"], json!({"amount": 2}));
    assert_eq!(webhook.asked(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_does_itself_asks_nobody() {
    let (_server, http, webhook) = start(0).await;
    let path = "/api/v1/namespaces";
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    http.post(path, namespace).await;
    let objects = V1.replace("default", "n");
    let (code, made) = http.post(&objects, w("v1", "a", json!({"size": 1}))).await;
    assert_eq!(code, 201, "{made}");
    // Not even where another version is stored by now.
    let stored = |version, is_stored| json!({"op": "replace", "path": format!("/spec/versions/{version}/storage"), "value": is_stored});
    let patch = json!([stored(0, false), stored(1, true)]);
    let definition = format!("{DEFINITIONS}/ws.x.io");
    let media = "application/json-patch+json";
    let (code, moved) = http.call_as("PATCH", &definition, media, patch).await;
    assert_eq!(code, 200, "{moved}");
    http.delete(&format!("{path}/n")).await;
    let path = format!("{path}/n");
    let gone = async {
        while http.get(&path).await.0 != 404 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
    assert_eq!(webhook.asked(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_shown_ends_what_comes_to_it() {
    let (_server, http, webhook) = start(100).await;
    let (_, made) = http.post(V1, w("v1", "z", json!({"size": 0}))).await;
    http.post(V1, w("v1", "a", json!({"size": 1}))).await;
    let (code, list) = http.get(&format!("{V2}?resourceVersion=0")).await;
    assert_eq!((code, &list["items"]), (200, &json!([])), "{list}");
    assert_eq!(webhook.asked(), 1, "what is newer is not asked about");

    // Once that is history, who watches is told to begin anew, and not to come to it again.
    let spec = json!({"spec": {"size": 1}});
    http.call("PATCH", &format!("{V1}/z"), spec).await;
    let made = made["metadata"]["resourceVersion"].as_str().unwrap();
    let before = made.parse::<u64>().unwrap() - 1;
    let path = format!("{V2}?watch=1&resourceVersion={before}");
    let mut watch = Watch::open(&http, &path).await;
    let event = watch.next().await.unwrap().unwrap();
    let told = (&event["type"], &event["object"]["code"]);
    assert_eq!(told, (&json!("ERROR"), &json!(410)), "{event}");
    assert_eq!(watch.next().await, Ok(None));
}

#[tokio::test]
async fn answers_are_of_bounded_length() {
    let (_server, http, _webhook) = start(1).await;
    http.post(V1, w("v1", "a", json!({"size": 0}))).await;
    let (code, refusal) = http.get(&format!("{V2}/a")).await;
    assert_eq!(code, 500, "{refusal}");
    let why = refusal["message"].as_str().unwrap();
    assert!(why.ends_with("length limit exceeded"), "{why}");
}
