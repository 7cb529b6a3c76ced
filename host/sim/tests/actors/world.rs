//! What the tests share: a server with actors on virtual time.

use std::time::{Duration, UNIX_EPOCH};

use http::Request;
use reeve_sim::{Actors, Clock, Config, Server};
use serde_json::{Value, json};

/// A server with actors, and an administrator's client.
pub(crate) struct World {
    pub(crate) server: Server,
    client: kube::Client,
}

const SOURCES: &str = "/apis/source.toolkit.fluxcd.io/v1";
/// The resources that tests use, by kind.
const PATHS: &[(&str, &str, &str)] = &[
    ("ConfigMap", "/api/v1", "configmaps"),
    ("CronJob", "/apis/batch/v1", "cronjobs"),
    ("DaemonSet", "/apis/apps/v1", "daemonsets"),
    ("Deployment", "/apis/apps/v1", "deployments"),
    ("Endpoints", "/api/v1", "endpoints"),
    (
        "EndpointSlice",
        "/apis/discovery.k8s.io/v1",
        "endpointslices",
    ),
    ("Event", "/api/v1", "events"),
    ("Job", "/apis/batch/v1", "jobs"),
    ("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims"),
    ("Pod", "/api/v1", "pods"),
    (
        "PodDisruptionBudget",
        "/apis/policy/v1",
        "poddisruptionbudgets",
    ),
    ("ReplicaSet", "/apis/apps/v1", "replicasets"),
    ("ResourceQuota", "/api/v1", "resourcequotas"),
    ("ControllerRevision", "/apis/apps/v1", "controllerrevisions"),
    ("Service", "/api/v1", "services"),
    ("ServiceAccount", "/api/v1", "serviceaccounts"),
    ("StatefulSet", "/apis/apps/v1", "statefulsets"),
    ("Widget", "/apis/example.com/v1", "widgets"),
    ("Application", "/apis/argoproj.io/v1alpha1", "applications"),
    ("AppProject", "/apis/argoproj.io/v1alpha1", "appprojects"),
    ("Bucket", SOURCES, "buckets"),
    ("GitRepository", SOURCES, "gitrepositories"),
    ("HelmChart", SOURCES, "helmcharts"),
    (
        "HelmRelease",
        "/apis/helm.toolkit.fluxcd.io/v2",
        "helmreleases",
    ),
    ("HelmRepository", SOURCES, "helmrepositories"),
    (
        "Kustomization",
        "/apis/kustomize.toolkit.fluxcd.io/v1",
        "kustomizations",
    ),
    ("OCIRepository", SOURCES, "ocirepositories"),
];

/// The path of all objects of a kind in the default namespace.
pub(crate) fn path(kind: &str) -> String {
    match kind {
        "Lease" => "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases".to_owned(),
        "Node" => "/api/v1/nodes".to_owned(),
        "PersistentVolume" => "/api/v1/persistentvolumes".to_owned(),
        "StorageClass" => "/apis/storage.k8s.io/v1/storageclasses".to_owned(),
        "CustomResourceDefinition" => {
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned()
        }
        _ => {
            let (_, root, plural) = PATHS.iter().find(|(known, _, _)| *known == kind).unwrap();
            format!("{root}/namespaces/default/{plural}")
        }
    }
}

impl World {
    /// The usual actors: ready after a second.
    pub(crate) fn new() -> Self {
        World::with(Actors::default())
    }

    pub(crate) fn with(actors: Actors) -> Self {
        let server = Server::new(Config {
            clock: Clock::following_tokio(UNIX_EPOCH + Duration::from_secs(1_767_225_600)),
            seed: Some(1),
            actors: Some(actors),
            ..Config::default()
        });
        let client = server.client();
        World { server, client }
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: Value,
    ) -> (u16, Value) {
        let bytes = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .header("user-agent", "tests/1")
            .body(kube::client::Body::from(bytes))
            .unwrap();
        let answer = self.client.send(request).await.unwrap();
        let code = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await.unwrap();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Creates an object.
    pub(crate) async fn create(&self, object: Value) -> Value {
        let kind = object["kind"].as_str().unwrap();
        let (code, made) = self
            .send("POST", &path(kind), "application/json", object.clone())
            .await;
        assert_eq!(code, 201, "{made}");
        made
    }

    /// Merges a patch into an object.
    pub(crate) async fn patch(&self, kind: &str, name: &str, patch: Value) -> Value {
        let path = format!("{}/{name}", path(kind));
        let media = "application/merge-patch+json";
        let (code, patched) = self.send("PATCH", &path, media, patch).await;
        assert_eq!(code, 200, "{patched}");
        patched
    }

    /// Annotates an object, or removes the annotation.
    pub(crate) async fn annotate(&self, kind: &str, name: &str, key: &str, value: Option<&str>) {
        let key = format!("actor.reeve.dev/{key}");
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.patch(kind, name, patch).await;
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        let path = format!("{}/{name}", path(kind));
        // As kubectl asks: a Job would leave its pods otherwise.
        let options = json!({"propagationPolicy": "Background"});
        let (code, answer) = self
            .send("DELETE", &path, "application/json", options)
            .await;
        assert_eq!(code, 200, "{answer}");
    }

    /// An object; null when it is not there.
    pub(crate) async fn get(&self, kind: &str, name: &str) -> Value {
        let path = format!("{}/{name}", path(kind));
        match self
            .send("GET", &path, "application/json", json!(null))
            .await
        {
            (200, object) => object,
            _ => Value::Null,
        }
    }

    /// All objects of a kind in the default namespace.
    pub(crate) async fn list(&self, kind: &str) -> Vec<Value> {
        let (code, list) = self
            .send("GET", &path(kind), "application/json", json!(null))
            .await;
        assert_eq!(code, 200, "{list}");
        list["items"].as_array().unwrap().clone()
    }

    /// The names of all objects of a kind.
    pub(crate) async fn names(&self, kind: &str) -> Vec<String> {
        let objects = self.list(kind).await;
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
        objects.iter().map(name).collect()
    }

    /// The events about an object, as `reason: message`.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let events = self.list("Event").await;
        let about = events
            .iter()
            .filter(|e| e["involvedObject"]["name"] == name);
        about
            .map(|event| {
                let text = |field: &str| event[field].as_str().unwrap().to_owned();
                format!("{}: {}", text("reason"), text("message"))
            })
            .collect()
    }

    /// Lets everybody do what there is to do now.
    pub(crate) async fn settle(&self) {
        after(0.001).await;
    }
}

/// Lets time pass.
pub(crate) async fn after(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

/// The parts of `object` that `expected` has, for a comparison that shows what
/// differs. Null stands for what is not there.
pub(crate) fn part(object: &Value, expected: &Value) -> Value {
    match expected {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, expected)| {
                let found = object.get(key).unwrap_or(&Value::Null);
                (key.clone(), part(found, expected))
            })
            .collect(),
        Value::Array(items) if object.as_array().is_some_and(|o| o.len() == items.len()) => {
            let found = object.as_array().unwrap();
            items
                .iter()
                .zip(found)
                .map(|(expected, found)| part(found, expected))
                .collect()
        }
        _ => object.clone(),
    }
}

/// Asserts that `object` has what `expected` has.
#[track_caller]
pub(crate) fn has(object: &Value, expected: Value) {
    assert_eq!(part(object, &expected), expected, "{object:#}");
}

/// The conditions of an object as `Type=Status Reason`.
pub(crate) fn conditions(object: &Value) -> Vec<String> {
    let conditions = object["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    conditions
        .iter()
        .map(|c| {
            let text = |field: &str| c[field].as_str().unwrap_or_default();
            format!("{}={} {}", text("type"), text("status"), text("reason"))
                .trim_end()
                .to_owned()
        })
        .collect()
}

/// A pod template of pods labelled `app: NAME`, with annotations for actors.
pub(crate) fn template(name: &str, policy: &str, annotations: &[(&str, &str)]) -> Value {
    json!({
        "metadata": {"labels": {"app": name}, "annotations": addressed(annotations)},
        "spec": {
            "restartPolicy": policy,
            "containers": [{"name": "main", "image": "example.com/app:1"}],
        },
    })
}

/// Annotations for actors.
pub(crate) fn addressed(annotations: &[(&str, &str)]) -> Value {
    let pairs = annotations.iter();
    pairs
        .map(|(key, value)| (format!("actor.reeve.dev/{key}"), json!(value)))
        .collect()
}

/// A workload of pods labelled `app: NAME`.
pub(crate) fn workload(kind: &str, name: &str, annotations: &[(&str, &str)], spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, "Always", annotations),
        },
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}
