//! A cluster in which Flux does what it is told, and the configuration of a platform in
//! which every key is set.

use std::collections::BTreeMap;

use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;
use crate::catalog::PACKS;
use crate::cloud::Cloud;
use crate::forms::encode;
use crate::keys::{Form, KEYS, Key};
use crate::values::put;

pub(super) const CERTIFICATE: &str = include_str!("pem/ec.crt");
pub(super) const PRIVATE_KEY: &str = include_str!("pem/ec.key");

/// What `key` holds in the example.
pub(super) fn example_of(key: &Key, cloud: Cloud) -> Value {
    let name = key.path(cloud).rsplit('/').next().unwrap();
    match (key.form, key.id()) {
        (Form::Bool, _) => json!(true),
        (Form::Pem, "/frontDoorSSLCertB64") => json!(encode(CERTIFICATE.as_bytes())),
        (Form::Pem, _) => json!(encode(PRIVATE_KEY.as_bytes())),
        (Form::Url, _) => json!("https://ws.example.com"),
        (Form::Oci, _) => json!(cloud.of([
            "oci://1.dkr.ecr.us-east-1.amazonaws.com/sgp-ws-helm-repository",
            "oci://us-east1-docker.pkg.dev/project/sgp-ws-helm-repository",
            "oci://registry.azurecr.io/sgp-ws-helm-repository",
        ])),
        (Form::Host, _) => json!(format!("{}.example.com", name.to_ascii_lowercase())),
        (Form::Json, _) => json!({"version": "0.1", "packs": [{"name": "flux"}]}),
        (Form::OneOf(_), "/cloudProvider") => json!(cloud.name()),
        (Form::OneOf(values), _) => json!(values[0]),
        (Form::Text, _) => json!(format!("{name}-value").replace("*-", "some-")),
    }
}

/// A configuration in which every key is set; without `all`, just what is needed.
pub(super) fn example(cloud: Cloud, all: bool) -> Value {
    let mut tree = json!({cloud.name(): {}});
    for key in KEYS {
        let path = key.path(cloud).replacen('*', "sgpModels", 1);
        let path = path.replacen('*', "backend", 1);
        let needed = !key.needed_by.is_empty() || key.id() == "/cloudProvider";
        if path.is_empty() || !(all || needed) {
            continue;
        }
        put(tree.as_object_mut().unwrap(), &path, example_of(key, cloud));
    }
    tree
}

/// A cluster, as far as packs see it.
#[derive(Clone)]
pub(super) struct World {
    pub(super) objects: BTreeMap<String, Value>,
    /// The manifests of Flux, as they are published.
    pub(super) published: Option<String>,
}

impl World {
    /// A cluster with this configuration, and with all packs in their simplest form.
    pub(super) fn new(configuration: &Value) -> Self {
        let mut world = Self {
            objects: BTreeMap::new(),
            published: None,
        };
        world.configure(&configuration.to_string());
        for pack in &PACKS {
            world.say(pack.name, &json!({}));
        }
        world
    }

    pub(super) fn configure(&mut self, text: &str) {
        self.store(
            "Secret",
            "system-manager-config",
            "system-manager-config.json",
            text,
        );
    }

    /// Stores a document in a Secret or ConfigMap of the usual namespace.
    pub(super) fn store(&mut self, kind: &str, name: &str, key: &str, text: &str) {
        let text = match kind {
            "Secret" => encode(text.as_bytes()),
            _ => text.to_owned(),
        };
        self.put(json!({
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": "sgp-system-manager"},
            "data": {key: text},
        }));
    }

    /// There is a Pack that says this.
    pub(super) fn say(&mut self, name: &str, spec: &Value) {
        self.put(json!({
            "apiVersion": "packs.reeve.dev/v1alpha1",
            "kind": "Pack",
            "metadata": {"name": name, "uid": name},
            "spec": spec,
        }));
    }

    pub(super) fn pack(&mut self, name: &str) -> &mut Value {
        self.objects.get_mut(&format!("Pack {name}")).unwrap()
    }

    pub(super) fn put(&mut self, object: Value) {
        self.objects.insert(reference(&object), object);
    }

    pub(super) fn release(&mut self, place: &str) -> &mut Value {
        self.objects
            .get_mut(&format!("HelmRelease {place}"))
            .unwrap()
    }

    /// Flux is there.
    pub(super) fn with_flux(mut self) -> Self {
        for name in ["source-controller", "helm-controller"] {
            self.put(json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": "flux-system", "generation": 1},
                "spec": {"replicas": 1},
                "status": {"observedGeneration": 1, "availableReplicas": 1},
            }));
        }
        self
    }

    pub(super) fn try_run(&self, pack: &str, config: &Value) -> Result<Outcome, Failure> {
        let config = config.to_string();
        let manifest = ReevePlugin::describe(config.as_bytes()).unwrap();
        let objects = self.objects.values();
        let mut cx = objects.fold(Context::test().declaring(manifest), |cx, object| {
            cx.with_object(object)
        });
        if let Some(text) = &self.published {
            cx = cx.with_source("flux-manifests", text.as_str());
        }
        let primary = json!({"metadata": {"name": pack, "uid": pack}});
        ReevePlugin::reconcile(primary.to_string().as_bytes(), config.as_bytes(), &cx)
    }

    /// What a pack consists of.
    pub(super) fn run(&self, pack: &str) -> Outcome {
        self.try_run(pack, &json!({})).unwrap()
    }

    pub(super) fn failure(&self, pack: &str) -> Failure {
        self.try_run(pack, &json!({})).unwrap_err()
    }

    /// Carries out what a pack consists of, as host and Flux do.
    pub(super) fn install(&mut self, pack: &str) {
        let objects = self.run(pack).objects_json();
        for mut object in objects {
            if object["metadata"]["annotations"]["reeve.dev/hook"].is_string() {
                continue;
            }
            object["metadata"]["generation"] = json!(1);
            object["metadata"]["labels"]["reeve.dev/plugin"] = json!("packs");
            if object["kind"] == "HelmRelease" {
                object["status"] = json!({"observedGeneration": 1, "conditions": [
                    {"type": "Ready", "status": "True", "reason": "InstallSucceeded",
                     "message": "installed", "observedGeneration": 1},
                ]});
            }
            self.put(object);
        }
    }

    /// Installs all packs that do not have to wait, until none is left that can be.
    /// Returns those of each round.
    pub(super) fn install_all(&mut self) -> Vec<Vec<&'static str>> {
        let mut rounds: Vec<Vec<&str>> = Vec::new();
        loop {
            let done = |name: &str| rounds.iter().flatten().any(|one| *one == name);
            let packs = PACKS.iter().map(|pack| pack.name);
            let round: Vec<&str> = packs
                .filter(|name| *name != "flux" && !done(name))
                .filter(|name| self.try_run(name, &json!({})).is_ok())
                .collect();
            if round.is_empty() {
                return rounds;
            }
            for name in &round {
                self.install(name);
            }
            rounds.push(round);
        }
    }
}

/// Kind, namespace and name.
pub(super) fn reference(object: &Value) -> String {
    let metadata = &object["metadata"];
    let (kind, name) = (&object["kind"], metadata["name"].as_str().unwrap());
    let kind = kind.as_str().unwrap();
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// The objects of an outcome, by reference.
pub(super) fn objects(outcome: &Outcome) -> BTreeMap<String, Value> {
    let objects = outcome.objects_json().into_iter();
    objects.map(|object| (reference(&object), object)).collect()
}
