//! The desired state where it is stored in a cluster.

use super::document::Document;
use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use std::fmt;

/// Field manager of what is written.
const FIELD_MANAGER: &str = "reeve-cli";

/// Where a document is, as the configuration of a part says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// An entry of a Secret or ConfigMap.
    Entry {
        kind: &'static str,
        namespace: String,
        name: String,
        key: String,
    },
    /// A file in the agent's pod.
    File(String),
}

/// A document as it was read.
pub(super) struct Stored {
    /// None where there is no object, or no entry.
    pub(super) document: Option<Document>,
    /// The version of the object, if there is one.
    version: Option<String>,
    /// What makes the object, and would undo a change.
    pub(super) maker: Option<Maker>,
}

/// What makes the object that a document is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    /// An ExternalSecret of this name.
    ExternalSecret(String),
    /// A release of Helm.
    Helm(String),
}

impl Place {
    /// That of the desired state.
    pub(super) fn of(config: &Value) -> Self {
        Self::said(
            &config["desiredState"],
            "desired-state",
            "desired-state.json",
        )
    }

    /// That of the configuration of the platform.
    pub(super) fn of_configuration(config: &Value) -> Self {
        let (secret, key) = ("system-manager-config", "system-manager-config.json");
        Self::said(&config["configuration"], secret, key)
    }

    fn said(place: &Value, secret: &str, key: &str) -> Self {
        let said = |field: &str| place[field].as_str().filter(|text| !text.is_empty());
        let or = |field: &str, usual: &str| said(field).unwrap_or(usual).to_owned();
        if let Some(file) = said("file") {
            return Self::File(file.to_owned());
        }
        let (kind, name) = match said("configMap") {
            Some(name) => ("ConfigMap", name.to_owned()),
            None => ("Secret", or("secret", secret)),
        };
        Self::Entry {
            kind,
            namespace: or("namespace", "sgp-system-manager"),
            name,
            key: or("key", key),
        }
    }

    /// Reads it.
    ///
    /// # Errors
    ///
    /// When it cannot be read from here, or is no desired state.
    pub(super) async fn read(&self, client: &Client) -> anyhow::Result<Stored> {
        let Some((object, text)) = self.text(client).await? else {
            return Ok(Stored {
                document: None,
                version: None,
                maker: None,
            });
        };
        let document = text.map(|text| Document::parse(&text)).transpose();
        Ok(Stored {
            document: document.with_context(|| self.to_string())?,
            version: object.metadata.resource_version.clone(),
            maker: Maker::of(&object),
        })
    }

    /// The object, and the text of the document if it has that entry.
    ///
    /// # Errors
    ///
    /// When it cannot be read from here.
    pub(super) async fn text(
        &self,
        client: &Client,
    ) -> anyhow::Result<Option<(DynamicObject, Option<String>)>> {
        let Self::Entry { kind, key, .. } = self else {
            bail!("it is the {self}, which only the agent reads");
        };
        let (api, name) = self.api(client)?;
        let found = api.get_opt(name).await;
        let found = found.with_context(|| format!("cannot read {self}"))?;
        let Some(found) = found else {
            return Ok(None);
        };
        let text = found.data["data"][key.as_str()].as_str();
        let text = match (text, *kind) {
            (Some(text), "Secret") => {
                let bytes = STANDARD.decode(text);
                let bytes = bytes.with_context(|| format!("{self} is no base64"))?;
                let text = String::from_utf8(bytes);
                Some(text.with_context(|| format!("{self} is no UTF-8"))?)
            }
            (text, _) => text.map(str::to_owned),
        };
        Ok(Some((found, text)))
    }

    /// Stores a document in the place of what was read.
    ///
    /// # Errors
    ///
    /// When somebody has changed it meanwhile, or it cannot be written.
    pub(super) async fn write(
        &self,
        client: &Client,
        before: &Stored,
        document: &Document,
    ) -> anyhow::Result<()> {
        let Self::Entry {
            kind,
            namespace,
            name,
            key,
        } = self
        else {
            bail!("the desired state is {self}: change it where that comes from");
        };
        let text = document.text();
        let value = match *kind {
            "Secret" => STANDARD.encode(text),
            _ => text,
        };
        let (api, _) = self.api(client)?;
        let written = match &before.version {
            Some(version) => {
                let patch = json!({
                    "metadata": {"resourceVersion": version}, "data": {key.as_str(): value},
                });
                let params = PatchParams {
                    field_manager: Some(FIELD_MANAGER.to_owned()),
                    ..PatchParams::default()
                };
                api.patch(name, &params, &Patch::Merge(&patch)).await
            }
            None => {
                let object: DynamicObject = serde_json::from_value(json!({
                    "apiVersion": "v1", "kind": kind,
                    "metadata": {"name": name, "namespace": namespace},
                    "data": {key.as_str(): value},
                }))?;
                let params = PostParams {
                    field_manager: Some(FIELD_MANAGER.to_owned()),
                    ..PostParams::default()
                };
                api.create(&params, &object).await
            }
        };
        match written {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => bail!(
                "somebody has changed {self} meanwhile, and nothing was written; run the command again"
            ),
            Err(error) => Err(error).with_context(|| format!("cannot write {self}")),
        }
    }

    fn api(&self, client: &Client) -> anyhow::Result<(Api<DynamicObject>, &str)> {
        let Self::Entry {
            kind,
            namespace,
            name,
            ..
        } = self
        else {
            bail!("{self} is in no cluster");
        };
        let kind = GroupVersionKind::gvk("", "v1", kind);
        let resource = ApiResource::from_gvk(&kind);
        let api = Api::namespaced_with(client.clone(), namespace, &resource);
        Ok((api, name))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry {
                kind,
                namespace,
                name,
                key,
            } => write!(f, "{kind} {namespace}/{name}, entry {key}"),
            Self::File(path) => write!(f, "file {path} of the agent's pod"),
        }
    }
}

impl Maker {
    fn of(object: &DynamicObject) -> Option<Self> {
        let owners = object.metadata.owner_references.iter().flatten();
        let mut owners = owners.filter(|owner| owner.kind == "ExternalSecret");
        if let Some(owner) = owners.next() {
            return Some(Self::ExternalSecret(owner.name.clone()));
        }
        let annotations = object.metadata.annotations.as_ref()?;
        let release = annotations.get("meta.helm.sh/release-name")?;
        Some(Self::Helm(release.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_plugin() {
        for (config, expected) in [
            (
                json!({}),
                "Secret sgp-system-manager/desired-state, entry desired-state.json",
            ),
            (
                json!({"desiredState": {"secret": "", "configMap": "c", "namespace": "n", "key": "k"}}),
                "ConfigMap n/c, entry k",
            ),
            (
                json!({"desiredState": {"file": "/a", "configMap": ""}}),
                "file /a of the agent's pod",
            ),
        ] {
            assert_eq!(Place::of(&config).to_string(), expected);
        }
    }

    #[test]
    fn whoever_makes_a_secret_is_seen() {
        let object = |metadata: Value| -> DynamicObject {
            let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
            serde_json::from_value(object).unwrap()
        };
        let owner = json!([{
            "apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret", "name": "e", "uid": "u",
        }]);
        for (metadata, expected) in [
            (json!({}), None),
            (
                json!({"ownerReferences": owner}),
                Some(Maker::ExternalSecret("e".to_owned())),
            ),
            (
                json!({"annotations": {"meta.helm.sh/release-name": "packs"}}),
                Some(Maker::Helm("packs".to_owned())),
            ),
        ] {
            assert_eq!(Maker::of(&object(metadata)), expected);
        }
    }
}
