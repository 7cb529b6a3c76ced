//! Puts things into the embedded cluster, as its administrator.

use super::{AGENT_USER, NAMESPACE, sample};
use crate::plugin::Kinds;
use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use kube::api::{Api, Patch, PatchParams};
use reeve_api::{APPROVE_ASKS_ANNOTATION, PLUGIN_CONFIG_MAP_LABEL, Plugin};
use reeve_cluster::{Apply, Cluster, ResolveError};
use reeve_core::grant::{self, Grantee, Subject};
use reeve_core::{Asks, GroupVersionKind, Manifest, chain};
use reeve_engine::{Engine, Limits};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Installs plugins with the rights that they ask for.
pub(crate) struct Installer {
    admin: kube::Client,
    cluster: Cluster,
    engine: Engine,
}

impl Installer {
    pub(crate) fn new(admin: kube::Client, engine: Engine) -> Self {
        Self {
            cluster: Cluster::new(admin.clone()),
            admin,
            engine,
        }
    }

    /// Fills the cluster with what is there before any plugin. One that is not `fresh`
    /// has the Profiles that somebody left in it.
    pub(crate) async fn prepare(&self, fresh: bool) -> anyhow::Result<()> {
        let mut objects = sample::definitions()?;
        objects.extend(sample::base()?);
        if fresh {
            objects.extend(sample::profiles());
        }
        for object in objects {
            self.apply(&object).await?;
        }
        Ok(())
    }

    /// Installs a component, or a new version of it. Returns what was granted, a
    /// line for each rule.
    pub(crate) async fn install(
        &self,
        name: &str,
        component: &Bytes,
    ) -> anyhow::Result<Vec<String>> {
        let granted = match self.manifest(component).await {
            Ok(manifest) => {
                self.approve(name, &manifest).await?;
                self.grant(name, &manifest).await?
            }
            // The agent says better what is wrong with it.
            Err(error) => vec![format!("nothing granted: {}", chain(error.as_ref()))],
        };
        self.apply(&json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": {PLUGIN_CONFIG_MAP_LABEL: "true"},
            },
            "binaryData": {"plugin.wasm": k8s_openapi::ByteString(component.to_vec())},
        }))
        .await?;
        Ok(granted)
    }

    /// Here the author is the operator: a new version may ask for more.
    async fn approve(&self, name: &str, manifest: &Manifest) -> anyhow::Result<()> {
        let plugins: Api<Plugin> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let token = Asks::of(manifest).token();
        let patch = json!({"metadata": {"annotations": {APPROVE_ASKS_ANNOTATION: token}}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        match plugins.patch(name, &params, &patch).await {
            // The first version needs no approval.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            patched => {
                patched?;
                Ok(())
            }
        }
    }

    async fn manifest(&self, component: &Bytes) -> anyhow::Result<Manifest> {
        let component = self.engine.load(component.clone()).await?;
        let limits = Limits::default();
        let described = component
            .describe(Bytes::from_static(b"{}"), &limits)
            .await?
            .value
            .map_err(|error| anyhow!("{}: {}", error.path, error.message))?;
        Ok(Manifest::try_from(described)?)
    }

    async fn grant(&self, name: &str, manifest: &Manifest) -> anyhow::Result<Vec<String>> {
        let kinds = Kinds::of(&self.cluster, manifest).await?;
        let served = |kind: &GroupVersionKind| kinds.served(kind);
        let grantee = Grantee {
            plugin: name,
            namespace: NAMESPACE,
            service_account: name,
            agent: Subject::User(AGENT_USER),
        };
        let objects = grant::objects(&grantee, manifest, served);
        // Rights in namespaces that the manifest names need those namespaces.
        let namespaces: BTreeSet<&str> = objects
            .iter()
            .filter_map(|object| object["metadata"]["namespace"].as_str())
            .filter(|namespace| *namespace != NAMESPACE)
            .collect();
        for namespace in namespaces {
            self.apply(&sample::namespace(namespace)).await?;
        }
        for object in &objects {
            self.apply(object).await?;
        }
        let mut lines: Vec<String> = Vec::new();
        let mut last = String::new();
        for rule in grant::account_rules(manifest, served) {
            let place = rule.namespace.as_deref().unwrap_or("all namespaces");
            let dot = if rule.group.is_empty() { "" } else { "." };
            let subject = format!("{}{dot}{} in {place}", rule.resource, rule.group);
            match lines.last_mut().filter(|_| last == subject) {
                Some(line) => {
                    line.insert_str(line.find(&subject).unwrap_or(0), &format!("{} ", rule.verb))
                }
                None => lines.push(format!("granted: {} {subject}", rule.verb)),
            }
            last = subject;
        }
        Ok(lines)
    }

    async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (Some(api_version), Some(kind), Some(name)) =
            (text("/apiVersion"), text("/kind"), text("/metadata/name"))
        else {
            bail!("an object of the sample lacks apiVersion, kind or name");
        };
        let kind = GroupVersionKind::from_fields(api_version, kind)
            .with_context(|| format!("{api_version} is no API version"))?;
        let resource = self.resolve(&kind).await?;
        self.cluster
            .apply(Apply {
                resource: &resource,
                namespace: text("/metadata/namespace"),
                name,
                body: object,
                manager: "reeve-dev",
                force: true,
                strict: true,
                dry_run: false,
                identity: None,
            })
            .await
            .with_context(|| format!("cannot apply {} {name}", kind.kind))?;
        Ok(())
    }

    /// A kind whose CRD was just applied may take a moment to be served.
    async fn resolve(&self, kind: &GroupVersionKind) -> anyhow::Result<reeve_cluster::Resource> {
        let mut attempts = 0;
        loop {
            match self.cluster.resolve(kind).await {
                Err(ResolveError::NotServed { .. }) if attempts < 100 => {
                    attempts += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                resolved => return Ok(resolved?),
            }
        }
    }
}
