//! Answers of webhooks that are broken or hostile.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use reeve_sim::{Config, Server};
use reeve_test_support::http::{Body, Certificate, serve, whole};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::cluster::{self, Answer, Cluster};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const THINGS: &str = "/apis/fuzz.dev/v1/namespaces/default/things";
/// How the store refuses what it is to create.
const VERSIONED: &str = "resourceVersion should not be set on objects to be created";
/// What stands in an answer for the uid of the question.
const UID: &[u8] = b"$UID";

/// The webhook of this process, and what it answers next.
struct Webhook {
    url: String,
    certificate: String,
    answer: Mutex<Reply>,
}

#[derive(Clone, Default)]
struct Reply {
    /// The path of those webhooks that get it; others allow everything.
    path: &'static str,
    status: u16,
    body: Vec<u8>,
}

thread_local! {
    static TEMPLATE: Server = template();
}

/// The first byte says what the rest is: with `v` the answer of a webhook that may refuse,
/// with `m` of one that may change, with `p` the operations of its JSON patch; where it is
/// a capital, failures of the webhook are ignored. A second byte that is a digit is that of
/// the hundreds of the HTTP status. `$UID` stands for the uid of the question.
///
/// Whatever a webhook says, who asked gets an answer in the server's form, and what
/// is stored is what the server itself would have taken; who an object is stays. A dry run
/// and a refusal store nothing.
pub fn webhooks(input: &[u8]) {
    let Some((&choice, mut rest)) = input.split_first() else {
        return;
    };
    let mut status = 200;
    if let Some((digit @ b'0'..=b'9', behind)) = rest.split_first() {
        status = 100 * u16::from(digit - b'0').clamp(2, 5);
        rest = behind;
    }
    let (path, body) = match choice.to_ascii_lowercase() {
        b'p' => ("/mutate", patch(rest)),
        b'm' => ("/mutate", rest.to_vec()),
        _ => ("/validate", rest.to_vec()),
    };
    let is_ignored = choice.is_ascii_uppercase();
    *webhook()
        .answer
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = Reply { path, status, body };

    let cluster = Cluster::of(&TEMPLATE.with(|template| template.fork(cluster::clock())));
    let names = configure(&cluster, is_ignored);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "z"},
        "data": {"a": "1"}});
    let thing = json!({"apiVersion": "fuzz.dev/v1", "kind": "Thing", "metadata": {"name": "z"},
        "spec": {"set": ["a"]}});
    let mut stored = Vec::new();
    for (collection, object) in [(MAPS, map), (THINGS, thing)] {
        let path = format!("{collection}/z");
        let body = object.to_string().into_bytes();
        let send = |query: &str| {
            let path = format!("{collection}{query}");
            cluster.call("POST", &path, "application/json", &body)
        };
        let tried = send("?dryRun=All");
        assert_eq!(cluster.get(&path).status, 404, "a dry run");
        let made = send("");
        // A version in what is to be created is only seen by the store, which a dry run is not.
        if made.json()["message"] != VERSIONED {
            assert_eq!(tried.status, made.status, "{}", made.json());
        }
        if !made.is_success() {
            assert_eq!(cluster.get(&path).status, 404, "refused: {}", made.json());
            continue;
        }
        // A webhook may give what is new another name, and another namespace to nothing.
        let metadata = &made.json()["metadata"];
        assert_eq!(metadata["namespace"], "default", "{metadata}");
        let name = metadata["name"].as_str().unwrap_or_default();
        let path = format!("{collection}/{name}");
        let found = cluster.get(&path);
        assert_eq!(found.status, 200, "{}", found.json());
        assert_eq!(found.json(), made.json());
        let uid = metadata["uid"].clone();
        assert!(
            uid.as_str().is_some_and(|uid| uid.len() == 36),
            "{metadata}"
        );
        let changed = cluster.call(
            "PATCH",
            &path,
            "application/merge-patch+json",
            br#"{"metadata":{"labels":{"x":"y"}}}"#,
        );
        if changed.is_success() {
            assert_eq!(changed.json()["metadata"]["uid"], uid, "{}", changed.json());
        }
        stored.push(path);
    }
    cluster.call("DELETE", &format!("{MAPS}/a"), "", b"");

    // Of themselves, objects are as they should be.
    for name in names {
        let deleted = cluster.call("DELETE", &name, "", b"");
        assert!(deleted.is_success(), "{}", deleted.json());
    }
    for path in stored {
        let found = cluster.get(&path);
        assert_eq!(found.status, 200, "{}", found.json());
        let put = cluster.call("PUT", &path, "application/json", &found.body);
        assert_eq!(put.status, 200, "{} of {}", put.json(), found.json());
        assert_eq!(unowned(&put), unowned(&found), "stored again");
        // Owners in versions that nobody serves are gone after that.
        let again = cluster.call("PUT", &path, "application/json", &put.body);
        assert_eq!(again.status, 200, "{} of {}", again.json(), put.json());
        assert_eq!(again.json(), put.json(), "stored again");
    }
}

/// An object without its owners, and without the version that goes with them.
fn unowned(answer: &Answer) -> Value {
    let mut object = answer.json();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
    }
    object
}

/// An answer that allows a request, with these operations.
fn patch(operations: &[u8]) -> Vec<u8> {
    let response = json!({"uid": "$UID", "allowed": true, "patchType": "JSONPatch",
        "patch": BASE64_STANDARD.encode(operations)});
    review(&response).to_string().into_bytes()
}

fn review(response: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// Has both webhooks asked. The answer is their paths.
fn configure(cluster: &Cluster, is_ignored: bool) -> [String; 2] {
    let webhook = webhook();
    [("Mutating", "/mutate"), ("Validating", "/validate")].map(|(sort, path)| {
        let policy = if is_ignored { "Ignore" } else { "Fail" };
        let mut asked = json!({"name": "a.fuzz.dev", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": policy,
            "rules": [{"apiGroups": ["", "fuzz.dev"], "apiVersions": ["*"], "operations": ["*"],
                "resources": ["configmaps", "things"]}],
            "clientConfig": {"url": format!("{}{path}", webhook.url), "caBundle": webhook.certificate},
        });
        if sort == "Mutating" {
            asked["reinvocationPolicy"] = "IfNeeded".into();
        }
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": format!("{sort}WebhookConfiguration"),
            "metadata": {"name": "fuzz"}, "webhooks": [asked],
        });
        let plural = format!("{}webhookconfigurations", sort.to_lowercase());
        let path = format!("{CONFIGURATIONS}/{plural}");
        let body = configuration.to_string().into_bytes();
        let made = cluster.call("POST", &path, "application/json", &body);
        assert_eq!(made.status, 201, "{}", made.json());
        format!("{path}/fuzz")
    })
}

fn template() -> Server {
    let server = Server::new(Config {
        clock: cluster::clock(),
        seed: Some(1),
        asks_webhooks: true,
        ..Config::default()
    });
    cluster::fill(&Cluster::of(&server));
    server
}

fn webhook() -> &'static Webhook {
    static WEBHOOK: OnceLock<Webhook> = OnceLock::new();
    WEBHOOK.get_or_init(|| {
        let certificate = Certificate::of(&["127.0.0.1"]).expect("a certificate can be made");
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build();
        let runtime = runtime.expect("there is a thread for the webhook");
        let port = runtime.block_on(serve(Some(&certificate), answer));
        let port = port.expect("there is a port for the webhook");
        // It serves until the process ends.
        thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        Webhook {
            url: format!("https://127.0.0.1:{port}"),
            certificate: BASE64_STANDARD.encode(&certificate.pem),
            answer: Mutex::default(),
        }
    })
}

async fn answer(request: Request<Bytes>) -> Response<Body> {
    let review: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let uid = review["request"]["uid"].as_str().unwrap_or_default();
    let reply = webhook()
        .answer
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let path = request.uri().path();
    let (status, body) = if path == reply.path {
        (reply.status, replaced(&reply.body, uid.as_bytes()))
    } else {
        let allowed = self::review(&json!({"uid": uid, "allowed": true}));
        (200, allowed.to_string().into_bytes())
    };
    let mut response = Response::new(whole(body));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    response
}

fn replaced(body: &[u8], uid: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.windows(UID.len()).position(|part| part == UID) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(uid);
        rest = &rest[at + UID.len()..];
    }
    out.extend_from_slice(rest);
    out
}
