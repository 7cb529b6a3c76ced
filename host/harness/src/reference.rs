//! How scenarios name objects: `ResourceQuota alice/quotas`, `Profile alice`.

use serde::Deserialize;
use std::fmt;

/// Names one object in the words in which the agent prints them.
///
/// The kind may be followed by version and group where the kind alone is not
/// enough, as kubectl writes it: `Profile.v1.kubeflow.org alice`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Reference {
    /// The kind.
    pub(crate) kind: String,
    /// Version and group, where they were given.
    pub(crate) version: Option<(String, String)>,
    /// The namespace, where it was given.
    pub(crate) namespace: Option<String>,
    /// The name.
    pub(crate) name: String,
}

/// Text that names no object.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no object; write `Kind name` or `Kind namespace/name`, \
     such as `ResourceQuota alice/quotas`"
)]
pub(crate) struct NotAReference(String);

impl TryFrom<String> for Reference {
    type Error = NotAReference;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let not = || NotAReference(text.clone());
        let mut words = text.split_whitespace();
        let (kind, place, None) = (
            words.next().ok_or_else(not)?,
            words.next().ok_or_else(not)?,
            words.next(),
        ) else {
            return Err(not());
        };
        let (kind, version) = match kind.split_once('.') {
            None => (kind, None),
            Some((kind, rest)) => {
                let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
                (kind, Some((version.to_owned(), group.to_owned())))
            }
        };
        let (namespace, name) = match place.split_once('/') {
            None => (None, place),
            Some((namespace, name)) => (Some(namespace), name),
        };
        let starts_upper = kind.starts_with(|c: char| c.is_ascii_uppercase());
        if !starts_upper || name.is_empty() || name.contains('/') || namespace == Some("") {
            return Err(not());
        }
        Ok(Self {
            kind: kind.to_owned(),
            version,
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if let Some((version, group)) = &self.version {
            write!(f, ".{version}")?;
            if !group.is_empty() {
                write!(f, ".{group}")?;
            }
        }
        match &self.namespace {
            Some(namespace) => write!(f, " {namespace}/{}", self.name),
            None => write!(f, " {}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_round_trip() {
        for text in [
            "Profile alice",
            "ResourceQuota alice/quotas",
            "Profile.v1.kubeflow.org alice",
            "ConfigMap.v1 reeve-system/quotas",
        ] {
            let reference = Reference::try_from(text.to_owned()).unwrap();
            assert_eq!(reference.to_string(), text);
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "Profile",
            "profile alice",
            "A b c",
            "A /b",
            "A b/",
            "A b/c/d",
        ] {
            assert!(Reference::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
