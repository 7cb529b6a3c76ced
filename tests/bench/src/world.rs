//! A cluster with Profiles and plugins, ready for an agent, and what an agent makes
//! of it.

mod list;
mod wanted;

pub(crate) use list::{Listed, api_resource, list};
pub(crate) use wanted::{Wanted, apply};

use crate::setup::{Fixed, request, spread};
use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use kube::api::{Api, DynamicObject, ListParams};
use reeve_cluster::{Cluster, Delete, Resource};
use reeve_core::grant::{self, Grantee, Served, Subject};
use reeve_core::ownership::{Owner, plugin_selector};
use reeve_core::selector::Selector;
use reeve_core::waves::Propagation;
use reeve_core::{Desired, GroupVersionKind, Manifest, ObjectReference, UnitKey};
use reeve_engine::{Component, Engine, Limits};
use reeve_test_support::samples;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Namespace of the agent and its plugins.
pub(crate) const NAMESPACE: &str = "reeve-system";
/// User that the agent is, with no rights but those of the grants.
pub(crate) const AGENT: &str = "reeve-agent";

/// A cluster with plugins, and as many Profiles as it was given.
pub(crate) struct World {
    client: kube::Client,
    admin: Cluster,
    plugins: Vec<Loaded>,
    profiles: usize,
}

struct Loaded {
    name: &'static str,
    component: Component,
    manifest: Manifest,
}

/// A kind that the agent watches.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) resource: Resource,
    pub(crate) selector: Selector,
}

impl World {
    /// Installs the agent's rights and these plugins, but neither Profiles nor an
    /// agent.
    pub(crate) async fn install(
        client: kube::Client,
        engine: &Engine,
        plugins: impl IntoIterator<Item = (&'static str, Bytes)>,
    ) -> Result<Self> {
        let mut world = Self {
            admin: Cluster::new(client.clone()),
            client,
            plugins: Vec::new(),
            profiles: 0,
        };
        for crd in reeve_api::crds() {
            apply(&world.admin, &serde_json::to_value(crd)?).await?;
        }
        apply(&world.admin, &samples::profile_crd()).await?;
        apply(&world.admin, &samples::namespace(NAMESPACE)).await?;
        for object in grant::agent_base(NAMESPACE, Subject::User(AGENT)) {
            apply(&world.admin, &object).await?;
        }
        for (name, bytes) in plugins {
            world.add(engine, name, bytes, &json!({})).await?;
        }
        Ok(world)
    }

    /// Installs one more plugin, which has this configuration.
    pub(crate) async fn add(
        &mut self,
        engine: &Engine,
        name: &'static str,
        bytes: Bytes,
        config: &Value,
    ) -> Result<()> {
        let component = engine.load(bytes.clone()).await?;
        let described = component
            .describe(Bytes::from(config.to_string()), &Limits::default())
            .await?;
        let manifest = match described.value {
            Ok(manifest) => Manifest::try_from(manifest)?,
            Err(error) => bail!("{}: {}", error.path, error.message),
        };
        let mut plurals = HashMap::new();
        for kind in manifest.kinds() {
            let Resource {
                plural, namespaced, ..
            } = self.admin.resolve(kind).await?;
            plurals.insert(
                kind.clone(),
                Served {
                    plural: plural.to_string(),
                    namespaced,
                },
            );
        }
        let served = |kind: &GroupVersionKind| plurals.get(kind).cloned().unwrap_or_default();
        for object in grant::objects(&grantee(name), &manifest, served) {
            apply(&self.admin, &object).await?;
        }
        apply(&self.admin, &json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"reeve.dev/plugin": "true"}},
            "binaryData": {"plugin.wasm": k8s_openapi::ByteString(bytes.to_vec())},
            "data": {"config.yaml": config.to_string()},
        }))
        .await?;
        self.plugins.push(Loaded {
            name,
            component,
            manifest,
        });
        Ok(())
    }

    /// Makes so many Profiles, each with its namespace.
    pub(crate) async fn populate(&mut self, profiles: usize) -> Result<()> {
        let make = move |admin: Cluster, number| async move {
            let name = profile_name(number);
            apply(&admin, &samples::namespace(&name)).await?;
            apply(&admin, &samples::profile(&name)).await
        };
        spread(profiles, self.admin.clone(), make).await?;
        self.profiles = profiles;
        Ok(())
    }

    /// Profiles that there are.
    pub(crate) fn profiles(&self) -> usize {
        self.profiles
    }

    /// Units that there are: one for each Profile and plugin.
    pub(crate) fn units(&self) -> usize {
        self.profiles * self.plugins.len()
    }

    /// All rights.
    pub(crate) fn admin(&self) -> &Cluster {
        &self.admin
    }

    /// A client with all rights.
    pub(crate) fn client(&self) -> &kube::Client {
        &self.client
    }

    /// The kind of the primaries.
    pub(crate) async fn primaries(&self) -> Result<Watched> {
        Ok(Watched {
            resource: self.admin.resolve(&profile_kind()).await?,
            selector: Selector::default(),
        })
    }

    /// What the agent watches for its plugins: the primaries, and of each kind that
    /// a plugin writes what is the plugin's.
    pub(crate) async fn watched(&self) -> Result<Vec<Watched>> {
        let mut watched = vec![self.primaries().await?];
        for plugin in &self.plugins {
            for write in &plugin.manifest.writes {
                watched.push(Watched {
                    resource: self.admin.resolve(&write.kind).await?,
                    selector: plugin_selector(plugin.name),
                });
            }
        }
        Ok(watched)
    }

    /// What the agent will send, computed beforehand by the same components.
    pub(crate) async fn applies(&self) -> Result<Arc<[Wanted]>> {
        let profiles = api_resource(&self.primaries().await?.resource);
        let profiles: Api<DynamicObject> = Api::all_with(self.client.clone(), &profiles);
        let profiles = profiles.list(&ListParams::default()).await?;
        ensure!(profiles.items.len() == self.profiles, "Profiles are lost");
        let mut applies = Vec::new();
        for profile in profiles {
            let name = profile.metadata.name.clone().context("name")?;
            let uid = profile.metadata.uid.clone().context("uid")?;
            let reference = ObjectReference::new(profile_kind(), None, name);
            for plugin in &self.plugins {
                let request = request(&serde_json::to_value(&profile)?);
                let view = Arc::new(Fixed::default());
                let called = plugin
                    .component
                    .reconcile(request, view, &Limits::default())
                    .await?;
                let desired =
                    Desired::check(called.value?, &plugin.manifest, &reference, |_| true)?;
                let owner = Owner {
                    unit: UnitKey::new(plugin.name, reference.clone()),
                    uid: uid.clone(),
                };
                applies.extend(desired.objects.into_iter().map(|object| {
                    let stamped = owner.stamp(object.reference, object.body);
                    Wanted {
                        plugin: plugin.name.to_owned(),
                        account: plugin.name.to_owned(),
                        reference: stamped.reference.clone(),
                        body: stamped.into_body(),
                    }
                }));
            }
        }
        Ok(applies.into())
    }

    /// Deletes what was made.
    pub(crate) async fn clear(&self, applies: &Arc<[Wanted]>) -> Result<()> {
        let shared = (self.admin.clone(), applies.clone());
        let delete = move |(admin, applies): (Cluster, Arc<[Wanted]>), number: usize| async move {
            let reference = &applies[number].reference;
            let resource = admin.resolve(&reference.kind).await?;
            admin
                .delete(Delete {
                    resource: &resource,
                    namespace: reference.namespace.as_deref(),
                    name: &reference.name,
                    uid: None,
                    resource_version: None,
                    propagation: Propagation::Background,
                    dry_run: false,
                    identity: None,
                })
                .await?;
            Ok(())
        };
        spread(applies.len(), shared, delete).await?;
        // What the caches of the server still tell of them must not meet the next.
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(())
    }

    /// What there is of all that the agent watches for its plugins.
    pub(crate) async fn listed(&self) -> Result<Listed> {
        let mut all = Listed::default();
        for Watched { resource, selector } in self.watched().await? {
            let params = ListParams::default().labels(&selector.to_string());
            let some = list(&self.client, &resource, None, params).await?;
            all.objects += some.objects;
            all.bytes += some.bytes;
            all.bare_bytes += some.bare_bytes;
        }
        Ok(all)
    }
}

/// Who is granted what a plugin needs.
pub(crate) fn grantee(plugin: &str) -> Grantee<'_> {
    Grantee {
        plugin,
        namespace: NAMESPACE,
        service_account: plugin,
        agent: Subject::User(AGENT),
    }
}

/// The name of a Profile of a world.
pub(crate) fn profile_name(number: usize) -> String {
    format!("profile-{number:05}")
}

fn profile_kind() -> GroupVersionKind {
    GroupVersionKind::new("kubeflow.org", "v1", "Profile")
}
