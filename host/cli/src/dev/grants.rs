//! What plugins are granted: here whatever they ask for.

use super::install::Installer;
use super::{AGENT_USER, NAMESPACE, sample};
use crate::output;
use crate::plugin::Kinds;
use anyhow::{anyhow, bail};
use bytes::Bytes;
use kube::api::{Api, Patch, PatchParams};
use reeve_agent::delivery;
use reeve_api::{APPROVE_ASKS_ANNOTATION, PLUGIN_CONFIG_MAP_LABEL, Plugin};
use reeve_cluster::{Change, ObjectChange, Store, WatchScope, WatchSpec};
use reeve_core::grant::{self, Grantee, Subject};
use reeve_core::printable::printable;
use reeve_core::selector::Selector;
use reeve_core::{Asks, Digest, GroupVersionKind, Manifest, chain};
use reeve_engine::Limits;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A kind that is missing may come at any moment, and nobody tells.
const RETRY: Duration = Duration::from_secs(2);

/// What the plugins are granted, by their names.
pub(crate) type Grants = BTreeMap<String, Granted>;

/// Who asks for what its manifest says.
#[derive(Clone)]
struct Asking {
    digest: Digest,
    component: Bytes,
    config: Bytes,
}

/// What a plugin is granted. It is never taken back: what it wrote before its
/// configuration changed is its own to take away.
#[derive(Default)]
pub(crate) struct Granted {
    /// The component and the configuration that ask, and have no answer yet.
    asking: Option<Asking>,
    /// Digest and configuration of those that were answered last.
    answered: Option<(Digest, Bytes)>,
    /// What was told last, a line for each rule.
    told: Vec<String>,
}

impl Granted {
    fn ask(&mut self, digest: Digest, component: Bytes, config: Bytes) {
        let known = self.answered.as_ref();
        let is_answered = known.is_some_and(|known| *known == (digest, config.clone()));
        self.asking = (!is_answered).then_some(Asking {
            digest,
            component,
            config,
        });
    }

    /// What is new of these lines.
    fn news(&mut self, lines: Vec<String>) -> Vec<String> {
        let new = lines.iter().filter(|line| !self.told.contains(line));
        let new = new.cloned().collect();
        self.told = lines;
        new
    }
}

impl Installer {
    /// Grants what plugins ask for when somebody configures them anew or delivers one
    /// besides, and tells of it, without end: what a plugin asks for may depend on its
    /// configuration.
    pub(crate) async fn follow(&self) -> anyhow::Result<()> {
        let config_maps = GroupVersionKind::new("", "v1", "ConfigMap");
        let (store, mut changes) = Store::new(self.cluster.clone());
        let _watch = store.watch(WatchSpec {
            resource: self.resolve(&config_maps).await?,
            scope: WatchScope::Namespace(NAMESPACE.to_owned()),
            selector: Selector::label(PLUGIN_CONFIG_MAP_LABEL, "true"),
            without_payload: false,
        });
        loop {
            tokio::select! {
                change = changes.recv() => match change {
                    Some(Change::Object(change)) => self.on_change(&change).await,
                    Some(Change::State { .. }) => {}
                    None => bail!("the embedded cluster is no longer watched"),
                },
                () = tokio::time::sleep(RETRY) => self.retry().await,
            }
        }
    }

    async fn on_change(&self, change: &ObjectChange) {
        let name = &change.reference.name;
        let mut grants = self.grants.lock().await;
        let Some(object) = &change.new else {
            // Whoever delivers it again is told again.
            grants.remove(name);
            return;
        };
        let map = serde_json::from_value(object.value());
        // What is wrong with it is told by the agent.
        let Ok(Ok(package)) = map.map(|map| delivery::unpack(name, &[map])) else {
            return;
        };
        let granted = grants.entry(name.clone()).or_default();
        granted.ask(package.digest, package.component, package.config);
        tell(name, self.answer(name, granted).await);
    }

    /// Tries once more what could not be granted.
    async fn retry(&self) {
        for (name, granted) in self.grants.lock().await.iter_mut() {
            tell(name, self.answer(name, granted).await);
        }
    }

    /// Grants what a plugin asks for with this configuration. Returns what was not told
    /// before, a line for each rule.
    pub(super) async fn authorize(
        &self,
        name: &str,
        granted: &mut Granted,
        component: &Bytes,
        config: Bytes,
    ) -> Vec<String> {
        granted.ask(Digest::of(component), component.clone(), config);
        self.answer(name, granted).await
    }

    /// Answers what a plugin asks for and has no answer to. Returns what is new of it.
    async fn answer(&self, name: &str, granted: &mut Granted) -> Vec<String> {
        let Some(asking) = granted.asking.clone() else {
            return Vec::new();
        };
        let granting = match self.manifest(&asking).await {
            Ok(manifest) => self.grant(name, &manifest, &asking).await,
            // The agent says better what is wrong with it; it will be wrong again.
            Err(error) => Ok(vec![nothing_granted(error.as_ref())]),
        };
        let lines = match granting {
            Ok(lines) => {
                granted.asking = None;
                granted.answered = Some((asking.digest, asking.config));
                lines
            }
            // It is tried again.
            Err(error) => vec![nothing_granted(error.as_ref())],
        };
        granted.news(lines)
    }

    async fn manifest(&self, asking: &Asking) -> anyhow::Result<Manifest> {
        let component = self.engine.load(asking.component.clone()).await?;
        let limits = Limits::default();
        let described = component
            .describe(asking.config.clone(), &limits)
            .await?
            .value
            .map_err(|error| anyhow!("{}: {}", error.path, error.message))?;
        Manifest::try_from(described).map_err(|error| anyhow!(printable(chain(&error))))
    }

    async fn grant(
        &self,
        name: &str,
        manifest: &Manifest,
        asking: &Asking,
    ) -> anyhow::Result<Vec<String>> {
        let kinds = Kinds::of(&self.cluster, manifest).await?;
        let served = |kind: &GroupVersionKind| kinds.served(kind);
        let grantee = Grantee {
            plugin: name,
            namespace: NAMESPACE,
            service_account: name,
            agent: Subject::User(AGENT_USER),
        };
        let mut objects = grant::objects(&grantee, manifest, served);
        // Its primaries wait for the end of their units where `reeve plugin grant` lets them.
        // Without the policy that it adds: that would be in the way of a later version.
        let holds = !grant::holding_policy(&grantee, manifest, served).is_empty();
        if holds {
            objects.extend(grant::holding(&grantee, manifest, served));
        }
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
        self.approve(name, manifest, asking).await?;
        let rules = grant::account_rules(manifest, served).into_iter().collect();
        let mut rules = grant::in_words(&rules);
        if holds {
            let holding = grant::in_words(&grant::holding_rules(manifest, served));
            rules.extend(holding.iter().map(|rule| format!("{rule}, for finalizers")));
        }
        let rules = rules.into_iter();
        Ok(rules.map(|rule| format!("granted: {rule}")).collect())
    }

    /// Here the author is the operator: a new version may ask for more.
    async fn approve(
        &self,
        name: &str,
        manifest: &Manifest,
        asking: &Asking,
    ) -> anyhow::Result<()> {
        let plugins: Api<Plugin> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let token = Asks::of(manifest).token(&asking.digest, &Digest::of(&asking.config));
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
}

/// Tells what a plugin was granted.
pub(super) fn tell(name: &str, lines: Vec<String>) {
    for line in lines {
        output::tell(format_args!("{name}: {line}"));
    }
}

pub(super) fn nothing_granted(error: &dyn std::error::Error) -> String {
    format!("nothing granted: {}", chain(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::api::rbac::v1::ClusterRole;
    use kube::api::ListParams;
    use reeve_engine::{Compiler, Engine, EngineConfig};
    use reeve_sim::Server;

    async fn rules(client: &kube::Client) -> String {
        let roles: Api<ClusterRole> = Api::all(client.clone());
        let mut roles = roles.list(&ListParams::default()).await.unwrap().items;
        roles.retain(|role| {
            let name = role.metadata.name.as_deref().unwrap();
            [".chameleon-", ".other-"]
                .iter()
                .any(|part| name.contains(part))
        });
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
            // It must not end what the author looks at, and comes later.
            configure("writes: [Widget.v1.example.com]").await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            let widgets = reeve_test_support::samples::open_crd("Widget", "widgets");
            installer.apply(&widgets).await.unwrap();
            comes("widgets").await;
            configure("writes: [").await;
            configure("writes: [ConfigMap.v1, Secret.v1]").await;
            comes("secrets").await;
            // Somebody may deliver one without the sources.
            let delivered = json!({
                "metadata": {"name": "other", "labels": {PLUGIN_CONFIG_MAP_LABEL: "true"}},
                "binaryData": {"plugin.wasm": k8s_openapi::ByteString(component.to_vec())},
                "data": {"config.yaml": "writes: [Service.v1]"},
            });
            let delivered = serde_json::from_value(delivered).unwrap();
            maps.create(&kube::api::PostParams::default(), &delivered)
                .await
                .unwrap();
            comes("services").await;
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
