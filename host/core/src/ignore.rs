//! Fields that are somebody else's: left out of what is applied.
//!
//! The rules are those of Argo CD's `ignoreDifferences`. There they only silence
//! the comparison, and the next sync writes the field all the same, which
//! surprises people more than anything else (issues 4912, 24242, 26588). Here an
//! ignored field is left out of the body of the apply, so that we never own it;
//! where we owned it before, the first apply without it gives it up.

mod annotation;
mod jq;
mod managed;
mod pointer;
mod remove;

pub use annotation::{ANNOTATION, AnnotationError};
pub use jq::JqError;
pub(crate) use managed::locate;

use crate::kind::ObjectReference;
use jq::JqPath;
use pointer::Pointer;
use reeve_ssa::{FieldSet, Path};
use remove::Location;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A rule as it is written down; the names are Argo CD's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RuleText {
    /// Group of the objects, a glob; empty for the core group.
    pub group: String,
    /// Their kind, a glob. Both are case-sensitive.
    pub kind: String,
    /// Their name; none for any.
    pub name: Option<String>,
    /// Their namespace; none for any.
    pub namespace: Option<String>,
    /// JSON Pointers (RFC 6901) to what is ignored.
    #[serde(rename = "jsonPointers")]
    pub json_pointers: Vec<String>,
    /// jq path expressions of what is ignored. See [`JqError`] for what of jq
    /// there is.
    #[serde(rename = "jqPathExpressions")]
    pub jq_path_expressions: Vec<String>,
    /// Field managers whose fields are ignored.
    #[serde(rename = "managedFieldsManagers")]
    pub managed_fields_managers: Vec<String>,
}

/// A rule, checked.
#[derive(Clone, Debug)]
pub struct Rule {
    text: RuleText,
    pointers: Vec<Pointer>,
    expressions: Vec<JqPath>,
}

/// Why a rule cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    /// It does not say of which kind the objects are.
    #[error("ignore rule: `kind` is empty; name a kind, or `*` for all")]
    NoKind,
    /// It does not say what is ignored.
    #[error(
        "ignore rule for {kind}: nothing is ignored; give jsonPointers, jqPathExpressions or \
         managedFieldsManagers"
    )]
    Nothing {
        /// Its kind.
        kind: String,
    },
    /// Text is no JSON Pointer.
    #[error(
        "ignore rule for {kind}: `{pointer}` is no JSON Pointer: expected text such as \
         `/spec/replicas`, with `~1` for a slash in a name"
    )]
    Pointer {
        /// Its kind.
        kind: String,
        /// What stands there.
        pointer: String,
    },
    /// A field without which there is no object.
    #[error("ignore rule for {kind}: `{pointer}` identifies the object and cannot be ignored")]
    Identity {
        /// Its kind.
        kind: String,
        /// What stands there.
        pointer: String,
    },
    /// A path expression cannot be used.
    #[error("ignore rule for {kind}: `{expression}`")]
    Jq {
        /// Its kind.
        kind: String,
        /// What stands there.
        expression: String,
        /// Why.
        source: JqError,
    },
}

/// An object without what is ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct Stripped {
    /// The object.
    pub object: Value,
    /// What was left out, as JSON Pointers into the original.
    pub removed: Vec<String>,
    /// Rules that could not be followed for this object, for people. What they
    /// mean to ignore is still there.
    pub problems: Vec<String>,
}

impl TryFrom<RuleText> for Rule {
    type Error = IgnoreError;

    fn try_from(text: RuleText) -> Result<Self, Self::Error> {
        let kind = || text.kind.clone();
        if text.kind.is_empty() {
            return Err(IgnoreError::NoKind);
        }
        if text.json_pointers.is_empty()
            && text.jq_path_expressions.is_empty()
            && text.managed_fields_managers.is_empty()
        {
            return Err(IgnoreError::Nothing { kind: kind() });
        }
        let mut pointers = Vec::new();
        for written in &text.json_pointers {
            let pointer = Pointer::parse(written).ok_or_else(|| IgnoreError::Pointer {
                kind: kind(),
                pointer: written.clone(),
            })?;
            if pointer.identifies() {
                return Err(IgnoreError::Identity {
                    kind: kind(),
                    pointer: written.clone(),
                });
            }
            pointers.push(pointer);
        }
        let mut expressions = Vec::new();
        for written in &text.jq_path_expressions {
            let expression = JqPath::parse(written).map_err(|source| IgnoreError::Jq {
                kind: kind(),
                expression: crate::annotations::shortened(written, 80),
                source,
            })?;
            expressions.push(expression);
        }
        Ok(Self {
            text,
            pointers,
            expressions,
        })
    }
}

impl Rule {
    /// What it was made from.
    pub fn text(&self) -> &RuleText {
        &self.text
    }

    /// Whether it takes the object in the cluster to know what is ignored.
    pub fn looks_at_managers(&self) -> bool {
        !self.text.managed_fields_managers.is_empty()
    }

    /// Whether it is about this object.
    pub fn applies_to(&self, object: &ObjectReference) -> bool {
        let text = &self.text;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        fast_glob::glob_match(&text.kind, &object.kind.kind)
            && (text.group == object.kind.group
                || fast_glob::glob_match(&text.group, &object.kind.group))
            && is(&text.name, Some(&object.name))
            && is(&text.namespace, object.namespace.as_deref())
    }
}

/// An object as it is applied: without what the rules ignore.
///
/// `live` is the object as it is in the cluster, if it is; fields of field
/// managers are known from there alone. What a rule names and the object lacks is
/// fine. Of lists, all items that a rule names go at once, so that none moves
/// before it is its turn. What identifies the object always stays.
pub fn strip(
    reference: &ObjectReference,
    object: &Value,
    rules: &[Rule],
    live: Option<&Value>,
) -> Stripped {
    let mut locations: Vec<Location> = Vec::new();
    let mut problems = Vec::new();
    for rule in rules.iter().filter(|rule| rule.applies_to(reference)) {
        locations.extend(
            rule.pointers
                .iter()
                .filter_map(|pointer| pointer.find(object)),
        );
        for expression in &rule.expressions {
            match expression.find(object) {
                Ok(found) => locations.extend(found),
                Err(problem) => problems.push(format!(
                    "{reference}: ignore rule `{}`: {problem}",
                    expression.source()
                )),
            }
        }
        if let Some(live) = live {
            match managed::find(object, live, &rule.text.managed_fields_managers) {
                Ok(found) => locations.extend(found),
                Err(problem) => problems.push(format!(
                    "{reference}: ignore rule by managedFieldsManagers: {problem}"
                )),
            }
        }
    }
    let (object, removed, kept) = remove::remove(object, locations);
    problems.extend(kept.iter().map(|location| {
        format!("{reference}: {location} identifies the object and is not ignored")
    }));
    Stripped {
        object,
        removed: removed.iter().map(ToString::to_string).collect(),
        problems,
    }
}

/// Which of the fields that a manager owns are ignored: those within what
/// [`strip`] left out of `original`.
pub fn ignored_fields(original: &Value, removed: &[String], owned: &FieldSet) -> FieldSet {
    let removed: Vec<Location> = removed
        .iter()
        .filter_map(|pointer| Pointer::parse(pointer)?.find(original))
        .collect();
    let is_ignored = |path: &Path| {
        let location = locate(original, path);
        location.is_some_and(|location| removed.iter().any(|gone| location.0.starts_with(&gone.0)))
    };
    owned.iter().filter(is_ignored).collect()
}

#[cfg(test)]
mod tests;
