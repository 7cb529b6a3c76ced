//! What the cases stand on.

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::ByteString;
use reeve_core::grant::{self, Grantee, Served, Subject};
use reeve_core::manifest::{RawManifest, RawPrimary, Scope, WriteRule};
use reeve_core::{GroupVersionKind, Manifest};
use reeve_real::{ADMIN, eventually};
use reeve_test_support::{component, guest, samples};
use serde_json::{Value, json};

use crate::stage::{NAMESPACE, Stage};

/// A plugin that does what it should, whatever the others do.
pub(crate) const HONEST: &str = "limitranges";

/// A cluster with an agent that runs [`HONEST`].
pub(crate) fn honest() -> Result<Stage> {
    let stage = Stage::new()?.with_profile_crd()?.with_agent()?;
    stage.deliver(HONEST, &component(HONEST))?;
    stage.grant(HONEST)?;
    stage.wait_for_condition(HONEST, ("Ready", "True", "Running"))?;
    Ok(stage)
}

/// What is granted to a plugin that is not there yet, or asks for kinds that are not: a
/// controller of Profiles that writes this kind into the namespaces named like them.
pub(crate) fn grant_of(plugin: &str, kind: &str) -> Result<Vec<Value>> {
    let manifest = Manifest::try_from(RawManifest {
        primary: Some(RawPrimary {
            kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
            selector: String::new(),
            projection: Vec::new(),
        }),
        reads: Vec::new(),
        writes: vec![WriteRule {
            kind: GroupVersionKind::new("", "v1", kind),
            scope: Scope::NamespaceNamedLikePrimary,
        }],
        sources: Vec::new(),
        actions: Vec::new(),
    })?;
    let grantee = Grantee {
        plugin,
        namespace: NAMESPACE,
        service_account: plugin,
        agent: Subject::ServiceAccount("reeve"),
    };
    let served = |kind: &GroupVersionKind| Served {
        plural: format!("{}s", kind.kind.to_lowercase()),
        namespaced: kind.kind != "Profile",
    };
    Ok(grant::objects(&grantee, &manifest, served))
}

/// That the agent and the honest plugin work, for a Profile of this name, which
/// nobody has used yet.
pub(crate) fn check_honest(stage: &Stage, name: &str) -> Result<()> {
    stage.apply(&[samples::namespace(name), samples::profile(name)])?;
    let limits = ("limitrange", name, "default-container-limits");
    stage
        .wait_for(limits, "/spec/limits/0/type", "Container")
        .map(drop)
}

/// Creates objects. Applying would put a copy of each component into an annotation.
pub(crate) fn create(stage: &Stage, objects: &[Value]) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let create = ["create", "-f", "-"];
    let created = stage
        .cluster
        .kubectl_with(ADMIN, &create, &list.to_string());
    created.map(drop)
}

/// The ConfigMap of a plugin.
pub(crate) fn package(name: &str, data: &[(&str, Vec<u8>)], config: Option<&str>) -> Value {
    let binary: serde_json::Map<_, _> = data
        .iter()
        .map(|(key, bytes)| ((*key).to_owned(), json!(ByteString(bytes.clone()))))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"reeve.dev/plugin": "true"},
        },
        "binaryData": binary,
        "data": config.map_or(json!({}), |text| json!({"config.yaml": text})),
    })
}

/// The package of the guest that misbehaves as it is told.
pub(crate) fn chameleon(name: &str, config: &Value) -> Result<Value> {
    let bytes = std::fs::read(guest("chameleon"))?;
    let config = config.to_string();
    Ok(package(name, &[("plugin.wasm", bytes)], Some(&config)))
}

/// What a condition must say.
pub(crate) struct Said {
    pub(crate) name: String,
    pub(crate) reason: &'static str,
    pub(crate) texts: Vec<String>,
}

impl Said {
    pub(crate) fn new(name: &str, reason: &'static str, texts: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            reason,
            texts: texts.iter().map(|&text| text.to_owned()).collect(),
        }
    }

    /// Whether an object says it in its condition `Ready`.
    fn check(&self, object: Option<&Value>) -> Result<()> {
        let name = &self.name;
        let object = object.with_context(|| format!("{name}: there is no report"))?;
        let conditions = object["status"]["conditions"].as_array();
        let ready = conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == "Ready")
            .with_context(|| format!("{name}: no condition Ready"))?;
        ensure!(
            ready["status"] == "False" && ready["reason"] == self.reason,
            "{name}: instead of {}: {ready}",
            self.reason
        );
        let message = ready["message"].as_str().unwrap_or_default();
        for text in &self.texts {
            ensure!(
                message.contains(text),
                "{name}: `{text}` is not in: {message}"
            );
        }
        Ok(())
    }
}

/// Waits until everything has been said by objects of this kind; `name` tells
/// which case one is about.
pub(crate) fn wait_until_said(
    stage: &Stage,
    kind: &str,
    name: impl Fn(&Value) -> Option<String>,
    said: &[Said],
) -> Result<()> {
    eventually(&format!("every case is reported by its {kind}"), || {
        let items = stage.cluster.list(kind, NAMESPACE)?;
        let failures: Vec<String> = said
            .iter()
            .filter_map(|said| {
                let object = items
                    .iter()
                    .find(|item| name(item).as_ref() == Some(&said.name));
                said.check(object).err().map(|error| error.to_string())
            })
            .collect();
        if failures.is_empty() {
            return Ok(());
        }
        bail!("{}", failures.join("\n"))
    })
}
