//! Which kinds there are, and under which paths.

use crate::reference::Reference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use serde_json::Value;
use std::sync::Arc;

/// How one kind is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

/// The kinds of a cluster, the ones that are meant first among those of one name. Copies
/// share them until a kind is added to one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds(Arc<Vec<Kind>>);

/// A kind that is not there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no kind {0}; give its CustomResourceDefinition under `given`, in `files` or `objects`"
)]
pub(crate) struct UnknownKind(String);

impl Kind {
    /// The path of all objects, or of those in a namespace. A namespaced kind
    /// without a namespace is that of `default`, as with kubectl.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        if self.namespaced {
            let namespace = namespace.unwrap_or("default");
            format!("{root}/namespaces/{namespace}/{}", self.plural)
        } else {
            format!("{root}/{}", self.plural)
        }
    }

    /// The path of one object.
    pub(crate) fn path(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{name}", self.collection(namespace))
    }
}

impl Kinds {
    /// Asks a server. The core group comes first, as with kubectl.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub(crate) async fn discover(client: &kube::Client) -> Result<Self, kube::Error> {
        let mut kinds = Self::default();
        kinds.add(&client.list_core_api_resources("v1").await?);
        for group in client.list_api_groups().await?.groups {
            // The preferred version is the first one.
            for version in &group.versions {
                let resources = client.list_api_group_resources(&version.group_version);
                kinds.add(&resources.await?);
            }
        }
        Ok(kinds)
    }

    fn add(&mut self, list: &APIResourceList) {
        let (group, version) = match list.group_version.split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", list.group_version.as_str()),
        };
        // A name with a slash is a subresource.
        let served = list.resources.iter().filter(|r| !r.name.contains('/'));
        Arc::make_mut(&mut self.0).extend(served.map(|resource| Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: resource.kind.clone(),
            plural: resource.name.clone(),
            namespaced: resource.namespaced,
        }));
    }

    /// Adds the kinds that a CustomResourceDefinition defines. Other objects add
    /// nothing.
    pub(crate) fn define(&mut self, object: &Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        if text("/kind") != Some("CustomResourceDefinition") {
            return;
        }
        let (Some(group), Some(kind), Some(plural)) = (
            text("/spec/group"),
            text("/spec/names/kind"),
            text("/spec/names/plural"),
        ) else {
            return;
        };
        let versions = object.pointer("/spec/versions").and_then(Value::as_array);
        for version in versions.into_iter().flatten() {
            let Some(name) = version.get("name").and_then(Value::as_str) else {
                continue;
            };
            let new = Kind {
                group: group.to_owned(),
                version: name.to_owned(),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
                namespaced: text("/spec/scope") == Some("Namespaced"),
            };
            if !self.0.contains(&new) {
                Arc::make_mut(&mut self.0).push(new);
            }
        }
    }

    /// The kind that a reference means.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub(crate) fn find(&self, reference: &Reference) -> Result<&Kind, UnknownKind> {
        let found = self.0.iter().find(|kind| {
            let version = reference.version.as_ref();
            kind.kind == reference.kind
                && version.is_none_or(|(v, g)| *v == kind.version && *g == kind.group)
        });
        found.ok_or_else(|| {
            let (mut kind, name) = (reference.clone(), &reference.name);
            kind.namespace = None;
            let text = kind.to_string();
            UnknownKind(text.trim_end_matches(name.as_str()).trim_end().to_owned())
        })
    }

    /// The plural of a kind, guessed as kubebuilder does where it is unknown.
    pub(crate) fn plural(&self, group: &str, kind: &str) -> String {
        let found = self.0.iter().find(|k| k.group == group && k.kind == kind);
        found.map_or_else(|| format!("{}s", kind.to_lowercase()), |k| k.plural.clone())
    }

    /// Whether objects of a kind live in namespaces, as most unknown ones do.
    pub(crate) fn namespaced(&self, group: &str, kind: &str) -> bool {
        let found = self.0.iter().find(|k| k.group == group && k.kind == kind);
        found.is_none_or(|kind| kind.namespaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kinds() -> Kinds {
        let mut kinds = Kinds(Arc::new(vec![Kind {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".into(),
            namespaced: true,
        }]));
        kinds.define(&json!({
            "kind": "CustomResourceDefinition",
            "spec": {
                "group": "example.com",
                "scope": "Cluster",
                "names": {"kind": "Ox", "plural": "oxen"},
                "versions": [{"name": "v2"}, {"name": "v1"}],
            },
        }));
        kinds
    }

    fn path(text: &str) -> Result<String, String> {
        let reference = Reference::try_from(text.to_owned()).unwrap();
        let kinds = kinds();
        let kind = kinds.find(&reference).map_err(|error| error.to_string())?;
        Ok(kind.path(reference.namespace.as_deref(), &reference.name))
    }

    #[test]
    fn references_lead_to_paths() {
        for (text, expected) in [
            ("ConfigMap a/b", "/api/v1/namespaces/a/configmaps/b"),
            ("ConfigMap b", "/api/v1/namespaces/default/configmaps/b"),
            ("Ox x", "/apis/example.com/v2/oxen/x"),
            ("Ox.v1.example.com x", "/apis/example.com/v1/oxen/x"),
        ] {
            assert_eq!(path(text).as_deref(), Ok(expected));
        }
        for (text, expected) in [
            ("Cow x", "there is no kind Cow;"),
            ("Ox.v3.example.com x", "there is no kind Ox.v3.example.com;"),
        ] {
            assert!(path(text).unwrap_err().starts_with(expected), "{text}");
        }
    }
}
