//! An API server in this process with a few objects in it, for one input.

use std::time::{Duration, UNIX_EPOCH};

use http::Request;
use http_body_util::BodyExt;
use reeve_sim::{Clock, Config, Server};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// Watches have no end. Time is simulated, so this waits for nothing.
const PATIENCE: Duration = Duration::from_secs(120);
/// More than any answer here.
const LONGEST: usize = 16 << 20;

thread_local! {
    static TEMPLATE: Server = template();
}

/// A server of its own, forked from one template.
pub(crate) struct Cluster {
    client: kube::Client,
    runtime: Runtime,
}

/// The answer to one request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) is_json: bool,
    /// Whether the body came to an end.
    pub(crate) complete: bool,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body as JSON; null when it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Everything that holds of any answer.
    #[track_caller]
    pub(crate) fn check(&self, request: &str) {
        assert!((200..600).contains(&self.status), "{request}: {self:?}");
        if !self.is_json || !self.complete || self.body.is_empty() {
            return;
        }
        // A watch answers with one object after the other.
        for json in serde_json::Deserializer::from_slice(&self.body).into_iter() {
            let json: Value = json.expect("an answer in JSON is JSON");
            assert!(json.is_object(), "{request}: {json}");
        }
        if self.status >= 400 {
            let json = self.json();
            assert_eq!(json["kind"], "Status", "{request}: {json}");
            assert_eq!(json["status"], "Failure", "{request}: {json}");
            assert_eq!(json["code"], self.status, "{request}: {json}");
        }
    }
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self::of(&TEMPLATE.with(|template| template.fork(clock())))
    }

    /// One of a server of somebody else's.
    pub(crate) fn of(server: &Server) -> Self {
        let runtime = runtime();
        let client = runtime.block_on(async { server.client() });
        Self { client, runtime }
    }

    /// Sends one request and reads the answer, of a watch as far as it comes.
    pub(crate) fn send(&self, request: Request<Vec<u8>>) -> Answer {
        let what = format!("{} {}", request.method(), request.uri());
        let answer = self.runtime.block_on(send(&self.client, request));
        answer.check(&what);
        answer
    }

    pub(crate) fn call(&self, method: &str, path: &str, media: &str, body: &[u8]) -> Answer {
        self.send(request(method, path, media, body))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.call("GET", path, "", b"")
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs nothing but memory")
}

pub(crate) fn clock() -> Clock {
    Clock::new(|| UNIX_EPOCH + Duration::from_secs(1_700_000_000))
}

pub(crate) fn request(method: &str, path: &str, media: &str, body: &[u8]) -> Request<Vec<u8>> {
    let mut request = Request::builder().method(method).uri(path);
    if !media.is_empty() {
        request = request.header("content-type", media);
    }
    request.body(body.to_vec()).unwrap_or_default()
}

async fn send(client: &kube::Client, request: Request<Vec<u8>>) -> Answer {
    let (parts, body) = request.into_parts();
    let request = Request::from_parts(parts, kube::client::Body::from(body));
    let answer = client.send(request).await;
    let answer = answer.expect("nothing is between client and server that could fail");
    let media = answer.headers().get("content-type");
    let media = media.and_then(|media| media.to_str().ok()).unwrap_or("");
    let mut out = Answer {
        status: answer.status().as_u16(),
        is_json: media.starts_with("application/json"),
        complete: false,
        body: Vec::new(),
    };
    let mut body = answer.into_body();
    while out.body.len() < LONGEST {
        match tokio::time::timeout(PATIENCE, body.frame()).await {
            Err(_) => break,
            Ok(None) => {
                out.complete = true;
                break;
            }
            Ok(Some(frame)) => {
                let Ok(frame) = frame else { break };
                if let Ok(data) = frame.into_data() {
                    out.body.extend_from_slice(&data);
                }
            }
        }
    }
    out
}

/// The objects of the template: their collection, then the object.
fn objects() -> Vec<(&'static str, Value)> {
    let pod = json!({
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]},
    });
    vec![
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "things.fuzz.dev"},
                "spec": {
                    "group": "fuzz.dev", "scope": "Namespaced",
                    "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "subresources": {"status": {}, "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                        }},
                        "selectableFields": [{"jsonPath": ".spec.name"}],
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                            "spec": {"type": "object", "properties": {
                                "name": {"type": "string", "default": "n", "maxLength": 20},
                                "replicas": {"type": "integer", "minimum": 0},
                                "set": {"type": "array", "items": {"type": "string"},
                                    "x-kubernetes-list-type": "set"},
                                "items": {"type": "array", "x-kubernetes-list-type": "map",
                                    "x-kubernetes-list-map-keys": ["name"],
                                    "items": {"type": "object", "required": ["name"], "properties": {
                                        "name": {"type": "string"}, "value": {"x-kubernetes-int-or-string": true},
                                    }}},
                                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                            }},
                            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                        }}},
                    }],
                },
            }),
        ),
        (
            "/api/v1/namespaces/default/configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "a", "labels": {"app": "a"}}, "data": {"a": "1"}}),
        ),
        (
            "/api/v1/namespaces/default/services",
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
                "spec": {"selector": {"app": "a"}, "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b", "protocol": "UDP"}]}}),
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": pod}}),
        ),
        (
            "/apis/fuzz.dev/v1/namespaces/default/things",
            json!({"apiVersion": "fuzz.dev/v1", "kind": "Thing", "metadata": {"name": "a", "finalizers": ["f.dev/f"]},
                "spec": {"replicas": 1, "set": ["a"], "items": [{"name": "a", "value": 1}]}}),
        ),
    ]
}

/// The objects that can be written to, by path.
pub(crate) const OBJECTS: &[&str] = &[
    "/api/v1/namespaces/default/configmaps/a",
    "/api/v1/namespaces/default/services/a",
    "/apis/apps/v1/namespaces/default/deployments/a",
    "/apis/fuzz.dev/v1/namespaces/default/things/a",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.fuzz.dev",
    "/api/v1/namespaces/default",
];

fn template() -> Server {
    let server = Server::new(Config {
        clock: clock(),
        seed: Some(1),
        ..Config::default()
    });
    fill(&Cluster::of(&server));
    server
}

/// Makes the objects of the template.
pub(crate) fn fill(cluster: &Cluster) {
    for (path, object) in objects() {
        let body = object.to_string().into_bytes();
        let answer = cluster.call("POST", path, "application/json", &body);
        assert_eq!(answer.status, 201, "{path}: {}", answer.json());
    }
}
