//! What an object has to wait for, in its own words.
//!
//! The syntax is that of `config.kubernetes.io/depends-on` (cli-utils), which is
//! read too: `group/namespaces/namespace/kind/name`, or `group/kind/name` for
//! cluster-scoped objects, separated by commas, the core group being empty. In
//! addition `kind/name` stands for an object in the same namespace, or in none.

use crate::annotations::shortened;
use crate::kind::ObjectReference;
use std::fmt;

/// An object that another one waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// Its group; none for any.
    pub group: Option<String>,
    /// Its kind.
    pub kind: String,
    /// Where it is.
    pub place: Place,
    /// Its name.
    pub name: String,
}

/// Where a dependency is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the namespace of the one that waits, or in none.
    Same,
    /// In no namespace.
    Cluster,
    /// In this namespace.
    Namespace(String),
}

/// Text that names no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no object: expected `kind/name`, `group/kind/name` or \
     `group/namespaces/namespace/kind/name`"
)]
pub struct DependencyError(pub String);

impl Dependency {
    /// Parses one dependency.
    ///
    /// # Errors
    ///
    /// When it has none of the three forms.
    pub fn parse(text: &str) -> Result<Self, DependencyError> {
        let text = text.trim();
        let error = || DependencyError(shortened(text, 200));
        let parts: Vec<&str> = text.split('/').collect();
        let (group, place, kind, name) = match parts[..] {
            [kind, name] => (None, Place::Same, kind, name),
            [group, kind, name] => (Some(group), Place::Cluster, kind, name),
            [group, "namespaces", namespace, kind, name] if !namespace.is_empty() => {
                let place = Place::Namespace(namespace.to_owned());
                (Some(group), place, kind, name)
            }
            _ => return Err(error()),
        };
        if kind.is_empty() || name.is_empty() {
            return Err(error());
        }
        Ok(Self {
            group: group.map(str::to_owned),
            kind: kind.to_owned(),
            place,
            name: name.to_owned(),
        })
    }

    /// Parses a list, separated by commas. Empty entries are passed over.
    pub(super) fn parse_list(text: &str) -> impl Iterator<Item = Result<Self, DependencyError>> {
        text.split(',')
            .filter(|entry| !entry.trim().is_empty())
            .map(Self::parse)
    }

    /// Whether this names `object`, said by `by`.
    pub fn names(&self, object: &ObjectReference, by: &ObjectReference) -> bool {
        let place = match (&self.place, &object.namespace) {
            (Place::Same, Some(namespace)) => by.namespace.as_ref() == Some(namespace),
            (Place::Same | Place::Cluster, None) => true,
            (Place::Namespace(wanted), Some(namespace)) => wanted == namespace,
            (Place::Cluster, Some(_)) | (Place::Namespace(_), None) => false,
        };
        place
            && self.kind == object.kind.kind
            && self.name == object.name
            && self
                .group
                .as_ref()
                .is_none_or(|group| *group == object.kind.group)
    }
}

/// As it is written in the annotation.
impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = (&self.kind, &self.name);
        let group = self.group.as_deref().unwrap_or("");
        match &self.place {
            Place::Same => write!(f, "{kind}/{name}"),
            Place::Cluster => write!(f, "{group}/{kind}/{name}"),
            Place::Namespace(namespace) => {
                write!(f, "{group}/namespaces/{namespace}/{kind}/{name}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::GroupVersionKind;

    #[test]
    fn three_forms_name_objects() {
        let object = |group: &str, kind: &str, namespace: Option<&str>, name: &str| {
            let kind = GroupVersionKind::new(group, "v1", kind);
            ObjectReference::new(kind, namespace.map(Into::into), name)
        };
        let by = object("", "ConfigMap", Some("a"), "by");
        let secret = |namespace| object("", "Secret", Some(namespace), "s");
        let role = object("rbac.authorization.k8s.io", "ClusterRole", None, "s");
        for (text, object, expected) in [
            ("Secret/s", secret("a"), true),
            ("Secret/s", secret("b"), false),
            ("Secret/t", secret("a"), false),
            ("ClusterRole/s", role.clone(), true),
            ("/namespaces/b/Secret/s", secret("b"), true),
            ("/namespaces/b/Secret/s", secret("a"), false),
            ("/namespaces/b/Secret/s", role.clone(), false),
            ("apps/namespaces/b/Secret/s", secret("b"), false),
            (
                "rbac.authorization.k8s.io/ClusterRole/s",
                role.clone(),
                true,
            ),
            ("/ClusterRole/s", role, false),
            ("/Secret/s", secret("a"), false),
        ] {
            let dependency = Dependency::parse(text).unwrap();
            assert_eq!(dependency.names(&object, &by), expected, "{text} {object}");
            assert_eq!(dependency.to_string(), text);
        }
    }

    #[test]
    fn other_text_names_none() {
        for text in [
            "Secret",
            "/",
            "a//",
            "a/b/c/d",
            "a/namespaces//Secret/s",
            "a/b/c/d/e",
            "/a/",
        ] {
            let error = Dependency::parse(text).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{text}` names no object")),
                "{error}"
            );
        }
        let list = Dependency::parse_list(" a/b , ,c/d,");
        assert_eq!(list.filter_map(Result::ok).count(), 2);
    }
}
