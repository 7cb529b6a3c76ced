//! Puts things into the embedded cluster, as its administrator.

use super::{AGENT_USER, NAMESPACE, sample};
use crate::output;
use crate::plugin::Kinds;
use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use parking_lot::Mutex;
use reeve_agent::delivery;
use reeve_api::{APPROVE_ASKS_ANNOTATION, PLUGIN_CONFIG_MAP_LABEL, Plugin};
use reeve_cluster::{
    Apply, Change, Cluster, ObjectChange, ResolveError, Store, WatchScope, WatchSpec,
};
use reeve_core::grant::{self, Grantee, Subject};
use reeve_core::selector::Selector;
use reeve_core::{Asks, Digest, GroupVersionKind, Manifest, chain};
use reeve_engine::{Engine, Limits};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Installs plugins with the rights that they ask for.
pub(crate) struct Installer {
    admin: kube::Client,
    cluster: Cluster,
    engine: Engine,
    /// By plugin.
    granted: Mutex<BTreeMap<String, Granted>>,
}

/// What a plugin was granted last.
#[derive(Default)]
struct Granted {
    /// The component and the configuration that asked for it.
    to: Option<(Digest, Bytes)>,
    /// A line for each rule.
    rules: Vec<String>,
}

impl Installer {
    pub(crate) fn new(admin: kube::Client, engine: Engine) -> Self {
        Self {
            cluster: Cluster::new(admin.clone()),
            admin,
            engine,
            granted: Mutex::default(),
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

    /// Installs a component, or a new version of it, beside the configuration that
    /// somebody may have given it. Returns what was granted that was not before, a line
    /// for each rule.
    pub(crate) async fn install(
        &self,
        name: &str,
        component: &Bytes,
    ) -> anyhow::Result<Vec<String>> {
        let maps: Api<ConfigMap> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let installed = maps.get_opt(name).await?.unwrap_or_default();
        let granted = match delivery::config_of(&installed) {
            Ok(config) => self.authorize(name, component, config).await?,
            Err(error) => vec![nothing_granted(&error)],
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

    /// Grants what installed plugins ask for when somebody configures them anew, and
    /// tells of it, without end: what a plugin asks for may depend on its configuration.
    pub(crate) async fn follow(&self) -> anyhow::Result<()> {
        let config_maps = GroupVersionKind::new("", "v1", "ConfigMap");
        let (store, mut changes) = Store::new(self.cluster.clone());
        let _watch = store.watch(WatchSpec {
            resource: self.resolve(&config_maps).await?,
            scope: WatchScope::Namespace(NAMESPACE.to_owned()),
            selector: Selector::label(PLUGIN_CONFIG_MAP_LABEL, "true"),
        });
        while let Some(change) = changes.recv().await {
            let Change::Object(ObjectChange {
                reference,
                new: Some(object),
                ..
            }) = change
            else {
                continue;
            };
            let name = &reference.name;
            if !self.granted.lock().contains_key(name) {
                continue;
            }
            let map = serde_json::from_value(object.value());
            let Ok(package) = map.map(|map| delivery::unpack(name, &[map])) else {
                continue;
            };
            // What cannot be unpacked is told of by the agent.
            let Ok(package) = package else { continue };
            let asks = Some((package.digest, package.config.clone()));
            if self
                .granted
                .lock()
                .get(name)
                .is_some_and(|last| last.to == asks)
            {
                continue;
            }
            let granted = self.authorize(name, &package.component, package.config);
            for line in granted.await? {
                output::tell(format_args!("{name}: {line}"));
            }
        }
        bail!("the embedded cluster is no longer watched")
    }

    /// Grants what a plugin asks for with this configuration. Returns a line for each rule
    /// that is new.
    async fn authorize(
        &self,
        name: &str,
        component: &Bytes,
        config: Bytes,
    ) -> anyhow::Result<Vec<String>> {
        let asks = (Digest::of(component), config.clone());
        self.granted.lock().entry(name.to_owned()).or_default().to = Some(asks);
        let manifest = match self.manifest(component, config).await {
            Ok(manifest) => manifest,
            // The agent says better what is wrong with it.
            Err(error) => return Ok(vec![nothing_granted(error.as_ref())]),
        };
        let rules = self.grant(name, &manifest).await?;
        self.approve(name, &manifest).await?;
        let mut granted = self.granted.lock();
        let granted = granted.entry(name.to_owned()).or_default();
        let new = rules.iter().filter(|rule| !granted.rules.contains(rule));
        let new = new.cloned().collect();
        granted.rules = rules;
        Ok(new)
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

    async fn manifest(&self, component: &Bytes, config: Bytes) -> anyhow::Result<Manifest> {
        let component = self.engine.load(component.clone()).await?;
        let limits = Limits::default();
        let described = component
            .describe(config, &limits)
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

fn nothing_granted(error: &dyn std::error::Error) -> String {
    format!("nothing granted: {}", chain(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::rbac::v1::ClusterRole;
    use kube::api::ListParams;
    use reeve_engine::{Compiler, EngineConfig};
    use reeve_sim::Server;

    async fn rules(client: &kube::Client) -> String {
        let roles: Api<ClusterRole> = Api::all(client.clone());
        let mut roles = roles.list(&ListParams::default()).await.unwrap().items;
        roles.retain(|role| role.metadata.name.as_deref().unwrap().contains("chameleon"));
        serde_json::to_string(&roles).unwrap()
    }

    /// What a plugin asks for depends on its configuration, which comes later, may be
    /// broken for a while, and stays when a new version is installed.
    #[tokio::test]
    async fn what_a_configuration_asks_for_is_granted() {
        let server = Server::default();
        let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess)).unwrap();
        let installer = Installer::new(server.client(), engine);
        installer.prepare(true).await.unwrap();
        let guest = reeve_test_support::guest("chameleon");
        let component = Bytes::from(std::fs::read(guest).unwrap());
        let granted = installer.install("chameleon", &component).await.unwrap();
        assert!(
            granted.iter().any(|rule| rule.contains("configmaps")),
            "{granted:?}"
        );
        let maps: Api<ConfigMap> = Api::namespaced(server.client(), NAMESPACE);
        let configure = async |config: &str| {
            let patch = json!({"data": {"config.yaml": config}});
            let patch = Patch::Merge(patch);
            maps.patch("chameleon", &PatchParams::default(), &patch)
                .await
                .unwrap();
        };
        let comes = async |resource: &str| {
            let wait = async {
                while !rules(&server.client()).await.contains(resource) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            let came = tokio::time::timeout(Duration::from_secs(30), wait).await;
            assert!(came.is_ok(), "nothing was granted for {resource}");
        };
        let story = async {
            assert!(!rules(&server.client()).await.contains("limitranges"));
            configure("writes: [").await;
            configure("writes: [LimitRange.v1]").await;
            comes("limitranges").await;
            configure("describe: refuse").await;
            configure("writes: [ConfigMap.v1, Secret.v1]").await;
            comes("secrets").await;
            let again = installer.install("chameleon", &component).await.unwrap();
            assert_eq!(again, Vec::<String>::new(), "nothing is new");
            assert!(
                rules(&server.client()).await.contains("secrets"),
                "nor taken away"
            );
        };
        tokio::select! {
            () = story => {}
            ended = installer.follow() => panic!("{ended:?}"),
        }
    }
}
