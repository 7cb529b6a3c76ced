//! Paths with their operations, as both versions of the documents describe them.

use serde_json::{Value, json};

use super::parameter::{Parameter, Place};
use crate::types::META;

/// What can be asked for at one path.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) path: String,
    pub(super) operations: Vec<Operation>,
}

/// One method of a path.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) method: &'static str,
    /// `list`, `get`, `post` and so on; discovery has none.
    pub(super) action: &'static str,
    pub(super) id: String,
    pub(super) tag: String,
    pub(super) text: String,
    /// Group, version and kind of what it is about.
    pub(super) kind: Option<(String, String, String)>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) consumes: &'static [&'static str],
    pub(super) produces: &'static [&'static str],
    /// Status, its meaning, and what the answer is.
    pub(super) answers: Vec<(&'static str, &'static str, Shape)>,
}

/// What an answer consists of.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// An object with this schema.
    Schema(String),
    /// Plain text.
    Text,
}

impl Route {
    /// The parameters that all of its operations have; bodies are said with each.
    pub(super) fn shared(&self) -> Vec<&Parameter> {
        let mut operations = self.operations.iter();
        let Some(first) = operations.next() else {
            return Vec::new();
        };
        let candidates = first.parameters.iter().filter(|p| p.place != Place::Body);
        candidates
            .filter(|parameter| operations.clone().all(|o| o.parameters.contains(parameter)))
            .collect()
    }
}

impl Operation {
    /// Adds the action, and what it is about.
    pub(super) fn say_kind(&self, described: &mut Value) {
        if let Some((group, version, kind)) = &self.kind {
            described["x-kubernetes-action"] = json!(self.action);
            described["x-kubernetes-group-version-kind"] =
                json!({"group": group, "version": version, "kind": kind});
        }
    }
}

/// What is sent and answered: anything, objects, those of a watch, lines of a log.
pub(super) const ANY: &[&str] = &["*/*"];
pub(super) const OBJECTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
pub(super) const STREAMS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
pub(super) const LOG: &[&str] = &[
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
/// Forms of patches.
pub(super) const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
/// The same of custom resources.
pub(super) const CUSTOM_OBJECTS: &[&str] = &["application/json", "application/yaml"];
pub(super) const CUSTOM_PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];
const JSON: &[&str] = &["application/json"];

/// `RbacAuthorization` of `rbac.authorization.k8s.io`: a name of Go for what has dots
/// and dashes. The first letter is as it is unless it is to be a capital.
pub(super) fn identifier(text: &str, mut capital: bool) -> String {
    let mut name = String::new();
    for (index, letter) in text.char_indices() {
        if letter.is_alphabetic() || letter == '_' || (index != 0 && letter.is_numeric()) {
            if capital {
                name.extend(letter.to_uppercase());
            } else {
                name.push(letter);
            }
            capital = false;
        } else {
            capital = true;
        }
    }
    name
}

/// The parts of names of operations and of tags that tell of a group and version.
pub(super) fn scope(group: &str, version: &str) -> (String, String) {
    let group = match group {
        "" => "core",
        group => group.strip_suffix(".k8s.io").unwrap_or(group),
    };
    let name = identifier(group, true) + &identifier(version, true);
    let tag = match version {
        "" => identifier(group, false),
        version => format!(
            "{}_{}",
            identifier(group, false),
            identifier(version, false)
        ),
    };
    (name, tag)
}

/// What discovery answers for one group and version, or for a group of none.
pub(super) fn discovery(path: String, group: &str, version: &str) -> Route {
    let (name, tag) = match path.as_str() {
        "/api/" => ("CoreAPIVersions".to_owned(), "core".to_owned()),
        "/apis/" => ("APIVersions".to_owned(), "apis".to_owned()),
        "/version/" => ("CodeVersion".to_owned(), "version".to_owned()),
        _ => {
            let (name, tag) = scope(group, version);
            let what = if version.is_empty() {
                "APIGroup"
            } else {
                "APIResources"
            };
            (name + what, tag)
        }
    };
    let (text, schema) = match path.as_str() {
        "/api/" => ("get available API versions", format!("{META}.APIVersions")),
        "/apis/" => ("get available API versions", format!("{META}.APIGroupList")),
        "/version/" => (
            "get the version information for this server",
            "io.k8s.apimachinery.pkg.version.Info".to_owned(),
        ),
        _ if version.is_empty() => ("get information of a group", format!("{META}.APIGroup")),
        _ => ("get available resources", format!("{META}.APIResourceList")),
    };
    let media = if path == "/version/" { JSON } else { OBJECTS };
    Route {
        path,
        operations: vec![Operation {
            method: "get",
            action: "",
            id: format!("get{name}"),
            tag,
            text: text.to_owned(),
            kind: None,
            parameters: Vec::new(),
            consumes: media,
            produces: media,
            answers: vec![("200", "OK", Shape::Schema(schema))],
        }],
    }
}
