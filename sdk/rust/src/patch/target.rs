//! Which objects a patch is for, with kustomize's meaning: each pattern has to match the
//! whole text, and what is not said matches everything.

use serde_json::Value;

use super::pattern::Pattern;
use super::{Change, Place};
use crate::pointer::below;
use crate::selector::{self, Term};

#[derive(Debug, Default)]
pub(super) struct Target {
    group: Option<Pattern>,
    version: Option<Pattern>,
    kind: Option<Pattern>,
    namespace: Option<Pattern>,
    name: Option<Pattern>,
    labels: Vec<Term>,
    annotations: Vec<Term>,
}

const FIELDS: [&str; 7] = [
    "annotationSelector",
    "group",
    "kind",
    "labelSelector",
    "name",
    "namespace",
    "version",
];

impl Target {
    /// None of one with errors, which are noted.
    pub(super) fn read(target: &Value, place: &mut Place<'_>) -> Option<Self> {
        let before = place.errors.len();
        let Some(fields) = target.as_object() else {
            place.error(
                "/target",
                "expected an object that says which objects are meant",
            );
            return None;
        };
        let mut read = Self::default();
        for (key, value) in fields {
            let path = below("/target", key);
            let Some(text) = value.as_str() else {
                place.error(&path, "expected a text");
                continue;
            };
            if text.is_empty() {
                continue;
            }
            let mut pattern = || match Pattern::parse(text) {
                Ok(pattern) => Some(pattern),
                Err(problem) => {
                    place.error(&path, problem);
                    None
                }
            };
            match key.as_str() {
                "group" => read.group = pattern(),
                "version" => read.version = pattern(),
                "kind" => read.kind = pattern(),
                "namespace" => read.namespace = pattern(),
                "name" => read.name = pattern(),
                "labelSelector" | "annotationSelector" => match selector::parse(text) {
                    Ok(terms) if key == "labelSelector" => read.labels = terms,
                    Ok(terms) => read.annotations = terms,
                    Err(problem) => place.error(&path, problem),
                },
                _ => place.error(&path, format!("not known; there are {}", FIELDS.join(", "))),
            }
        }
        (place.errors.len() == before).then_some(read)
    }

    /// The object that a patch itself names.
    pub(super) fn named(change: &Change, place: &mut Place<'_>) -> Option<Self> {
        const MISSING: &str = "missing: say which objects are meant, or name one in the patch by \
                               apiVersion, kind and metadata.name";
        let (Change::Merge(patch) | Change::Strategic(patch)) = change else {
            place.error("/target", "missing: say which objects are meant");
            return None;
        };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let metadata = patch.get("metadata");
        let within = |key: &str| text(metadata.and_then(|metadata| metadata.get(key)));
        let version = text(patch.get("apiVersion"));
        let (Some(version), Some(kind), Some(name)) =
            (version, text(patch.get("kind")), within("name"))
        else {
            place.error("/target", MISSING);
            return None;
        };
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        Some(Self {
            group: Some(Pattern::literal(group)),
            version: Some(Pattern::literal(version)),
            kind: Some(Pattern::literal(&kind)),
            namespace: within("namespace").map(|name| Pattern::literal(&name)),
            name: Some(Pattern::literal(&name)),
            ..Self::default()
        })
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default()
        };
        let api_version = text("/apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let fits = |pattern: &Option<Pattern>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.matches(text))
        };
        let labels = object.pointer("/metadata/labels");
        let annotations = object.pointer("/metadata/annotations");
        fits(&self.group, group)
            && fits(&self.version, version)
            && fits(&self.kind, text("/kind"))
            && fits(&self.namespace, text("/metadata/namespace"))
            && fits(&self.name, text("/metadata/name"))
            && self.labels.iter().all(|term| term.matches(labels))
            && self
                .annotations
                .iter()
                .all(|term| term.matches(annotations))
    }
}
