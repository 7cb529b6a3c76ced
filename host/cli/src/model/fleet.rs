//! The ModelDeployments of a namespace, by the ids of their deployments.

use super::PlaceArgs;
use anyhow::{Context as _, bail};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};

/// All deployments of a namespace.
pub(super) struct Fleet {
    pub(super) api: Api<DynamicObject>,
    pub(super) namespace: String,
    pub(super) deployments: Vec<DynamicObject>,
}

/// The id of a deployment: its name unless it says one.
pub(super) fn id_of(deployment: &DynamicObject) -> String {
    let said = deployment.data["spec"]["deploymentId"].as_str();
    said.map_or_else(|| deployment.name_any(), str::to_owned)
}

impl Fleet {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// When they cannot be listed.
    pub(super) async fn read(place: &PlaceArgs) -> anyhow::Result<Self> {
        Self::of(place.client().await?, &place.namespace).await
    }

    /// Reads those of a namespace.
    ///
    /// # Errors
    ///
    /// When they cannot be listed.
    pub(super) async fn of(client: Client, namespace: &str) -> anyhow::Result<Self> {
        let kind = GroupVersionKind::gvk("models.reeve.dev", "v1alpha1", "ModelDeployment");
        let resource = ApiResource::from_gvk_with_plural(&kind, "modeldeployments");
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
        let deployments = match api.list(&ListParams::default()).await {
            Ok(list) => list.items,
            Err(kube::Error::Api(status)) if status.code == 404 => bail!(
                "the cluster serves no ModelDeployment.v1alpha1.models.reeve.dev; `helm install \
                 bosun charts/models` installs the definition and the plugin"
            ),
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("cannot list ModelDeployments in namespace {namespace}")
                });
            }
        };
        Ok(Self {
            api,
            namespace: namespace.to_owned(),
            deployments,
        })
    }

    /// The deployment with an id, if there is one.
    ///
    /// # Errors
    ///
    /// When several claim it.
    pub(super) fn find(&self, id: &str) -> anyhow::Result<Option<&DynamicObject>> {
        let mut found = self.deployments.iter().filter(|one| id_of(one) == id);
        let first = found.next();
        if let (Some(first), Some(second)) = (first, found.next()) {
            bail!(
                "ModelDeployments {} and {} in namespace {} both say spec.deploymentId {id}; delete \
                 one, or give it another id",
                first.name_any(),
                second.name_any(),
                self.namespace
            );
        }
        Ok(first)
    }

    /// The deployment with an id.
    ///
    /// # Errors
    ///
    /// When there is none, or several.
    pub(super) fn get(&self, id: &str) -> anyhow::Result<&DynamicObject> {
        let namespace = &self.namespace;
        self.find(id)?.with_context(|| {
            let ids: Vec<String> = self.deployments.iter().map(id_of).collect();
            let there = match ids.is_empty() {
                true => "there is none".to_owned(),
                false => format!("there are {}", ids.join(", ")),
            };
            format!(
                "no deployment in namespace {namespace} has the id {id}; {there}. `reeve model \
                 start {id}` makes one, and --namespace names another place"
            )
        })
    }
}
