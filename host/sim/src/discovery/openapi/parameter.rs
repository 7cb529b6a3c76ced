//! The parameters of requests.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// In the body; there is one.
    Body,
    /// In the path.
    Path,
    /// Behind the path.
    Query,
}

/// One parameter of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: Place,
    /// Of a value: the types of JSON.
    ty: &'static str,
    text: String,
    pub(super) required: bool,
    /// The name of the schema of a body.
    pub(super) schema: Option<String>,
}

/// How a query asks for many objects, and with whichever of them a watch.
pub(super) const LIST: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
];
/// How objects are deleted.
pub(super) const DELETE: &[&str] = &[
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
/// What says how an object is written.
pub(super) const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];

/// Type and meaning of what stands behind paths.
const QUERY: &[(&str, &str, &str)] = &[
    (
        "allowWatchBookmarks",
        "boolean",
        "Whether a watch may tell of versions alone.",
    ),
    (
        "command",
        "string",
        "What is run, without a shell: one argument each time it is given.",
    ),
    (
        "container",
        "string",
        "Which container of the pod is meant, where it has several.",
    ),
    (
        "continue",
        "string",
        "Where a list goes on, as the page before it said.",
    ),
    (
        "dryRun",
        "string",
        "`All`: everything is done but for storing anything.",
    ),
    (
        "fieldManager",
        "string",
        "Whose the fields are that are written.",
    ),
    (
        "fieldSelector",
        "string",
        "Only objects whose fields are like this.",
    ),
    (
        "fieldValidation",
        "string",
        "What is done about fields that are unknown or come twice: `Ignore`, `Warn` or `Strict`.",
    ),
    (
        "follow",
        "boolean",
        "Whether further lines are sent as they are written.",
    ),
    (
        "force",
        "boolean",
        "Whether an apply takes fields from others who own them.",
    ),
    (
        "gracePeriodSeconds",
        "integer",
        "How long an object has to end before it is deleted.",
    ),
    (
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
        "Whether an object that cannot be read is deleted all the same.",
    ),
    (
        "insecureSkipTLSVerifyBackend",
        "boolean",
        "Whether the certificate of the kubelet is taken as it is.",
    ),
    (
        "labelSelector",
        "string",
        "Only objects whose labels are like this.",
    ),
    ("limit", "integer", "How many objects a page has at most."),
    ("limitBytes", "integer", "How many bytes are sent at most."),
    (
        "orphanDependents",
        "boolean",
        "Whether what the object owns stays; use propagationPolicy.",
    ),
    (
        "path",
        "string",
        "The path of the request that is passed on.",
    ),
    ("ports", "integer", "Which ports are forwarded."),
    ("pretty", "string", "Whether the answer is made for people."),
    (
        "previous",
        "boolean",
        "Whether the log is that of the container before this one.",
    ),
    (
        "propagationPolicy",
        "string",
        "What becomes of what the object owns: `Orphan`, `Background` or `Foreground`.",
    ),
    ("resourceVersion", "string", "How new the answer has to be."),
    (
        "resourceVersionMatch",
        "string",
        "How resourceVersion is meant: `Exact` or `NotOlderThan`.",
    ),
    (
        "sendInitialEvents",
        "boolean",
        "Whether a watch begins with what is there.",
    ),
    (
        "shardSelector",
        "string",
        "Only a part of all objects, by their hash.",
    ),
    ("sinceSeconds", "integer", "How old lines may be."),
    (
        "stderr",
        "boolean",
        "Whether the standard error output is passed on.",
    ),
    ("stdin", "boolean", "Whether there is standard input."),
    (
        "stdout",
        "boolean",
        "Whether the standard output is passed on.",
    ),
    (
        "stream",
        "string",
        "Which output of the container is meant: `All`, `Stdout` or `Stderr`.",
    ),
    (
        "tailLines",
        "integer",
        "How many of the last lines are sent.",
    ),
    (
        "timeoutSeconds",
        "integer",
        "How long the request may take.",
    ),
    (
        "timestamps",
        "boolean",
        "Whether each line begins with its time.",
    ),
    ("tty", "boolean", "Whether there is a terminal."),
    (
        "watch",
        "boolean",
        "Whether changes are told as they happen.",
    ),
];

impl Parameter {
    /// One that stands behind the path.
    pub(super) fn query(name: &'static str) -> Self {
        let known = QUERY.iter().find(|(known, _, _)| *known == name);
        let (_, ty, text) = known.copied().unwrap_or((name, "string", ""));
        Parameter {
            name,
            place: Place::Query,
            ty,
            text: text.to_owned(),
            required: false,
            schema: None,
        }
    }

    /// A step of the path.
    pub(super) fn path(name: &'static str, text: String) -> Self {
        Parameter {
            name,
            place: Place::Path,
            ty: "string",
            text,
            required: true,
            schema: None,
        }
    }

    /// What is sent, by the name of its schema.
    pub(super) fn body(schema: String, required: bool) -> Self {
        Parameter {
            name: "body",
            place: Place::Body,
            ty: "",
            text: String::new(),
            required,
            schema: Some(schema),
        }
    }

    /// Whether it is said once for all paths. Clients look for `dryRun` and
    /// `fieldValidation` in the operation itself, and the others name a kind.
    pub(super) fn is_shared(&self) -> bool {
        match &self.schema {
            Some(schema) => schema.starts_with("io.k8s.apimachinery"),
            None => !matches!(self.name, "name" | "dryRun" | "fieldValidation"),
        }
    }

    /// As a document of version 2 has it, and under which name it is shared.
    pub(super) fn v2(&self) -> (String, Value) {
        let value = match &self.schema {
            Some(schema) => {
                let mut value = json!({
                    "name": self.name,
                    "in": "body",
                    "schema": {"$ref": format!("#/definitions/{schema}")},
                });
                if self.required {
                    value["required"] = json!(true);
                }
                value
            }
            None => {
                let mut value = json!({
                    "name": self.name,
                    "in": self.place(),
                    "type": self.ty,
                    "description": self.text,
                    "uniqueItems": true,
                });
                if self.required {
                    value["required"] = json!(true);
                }
                value
            }
        };
        let digest = Sha256::digest(value.to_string());
        let name = format!("{}-{}", self.name, URL_SAFE_NO_PAD.encode(&digest[..6]));
        (name, value)
    }

    /// As a document of version 3 has it; a body is none there.
    pub(super) fn v3(&self) -> Value {
        let mut value = json!({
            "name": self.name,
            "in": self.place(),
            "description": self.text,
            "schema": {"type": self.ty, "uniqueItems": true},
        });
        if self.required {
            value["required"] = json!(true);
        }
        value
    }

    fn place(&self) -> &'static str {
        match self.place {
            Place::Body => "body",
            Place::Path => "path",
            Place::Query => "query",
        }
    }
}
