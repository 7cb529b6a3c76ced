//! Applies as somebody sends them who writes a controller with kube alone: a client for each
//! account, and answers that are decoded.

use crate::world::{NAMESPACE, Wanted, api_resource};
use anyhow::{Context as _, Result};
use kube::api::{Api, DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use reeve_cluster::{Cluster, Identity};
use reeve_core::ownership::field_manager;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Clients of a cluster.
#[derive(Clone)]
pub(super) struct Plain {
    client: Client,
    cluster: Cluster,
    accounts: Arc<HashMap<String, Client>>,
}

impl Plain {
    /// One as the user of a kubeconfig, and one as each account that sends something.
    pub(super) async fn connect(kubeconfig: &Path, applies: &[Wanted]) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        let client = Client::try_from(config.clone())?;
        let mut accounts = HashMap::new();
        for wanted in applies {
            if accounts.contains_key(&wanted.account) {
                continue;
            }
            let identity = Identity::service_account(NAMESPACE, &wanted.account);
            let mut config = config.clone();
            config.auth_info.impersonate = Some(identity.user);
            accounts.insert(wanted.account.clone(), Client::try_from(config)?);
        }
        Ok(Self {
            cluster: Cluster::new(client.clone()),
            client,
            accounts: accounts.into(),
        })
    }

    /// The one of the kubeconfig's user.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) async fn send(&self, wanted: &Wanted) -> Result<()> {
        let resource = self.cluster.resolve(&wanted.reference.kind).await?;
        let account = self.accounts.get(&wanted.account).context("no account")?;
        let resource = api_resource(&resource);
        let api: Api<DynamicObject> = match &wanted.reference.namespace {
            Some(namespace) => Api::namespaced_with(account.clone(), namespace, &resource),
            None => Api::all_with(account.clone(), &resource),
        };
        let params = PatchParams {
            field_manager: Some(field_manager(&wanted.plugin)),
            field_validation: Some(ValidationDirective::Strict),
            ..PatchParams::default()
        };
        let name = &wanted.reference.name;
        api.patch(name, &params, &Patch::Apply(&wanted.body))
            .await?;
        Ok(())
    }
}
