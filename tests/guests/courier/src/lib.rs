//! A guest for tests that returns the objects that its primary holds.
//!
//! Its configuration declares a primary and what it writes, and may leave objects
//! out, as a version with a mistake would:
//!
//! ```json
//! {
//!   "primary": "Bundle.v1.example.com",
//!   "selector": "team=a",
//!   "writes": {"ConfigMap.v1": ["a", "b"], "Namespace.v1": "cluster", "Widget.v1.example.com": "primary-namespace"},
//!   "forget": "-last"
//! }
//! ```
//!
//! Of the primary it returns `spec.objects` as they are, without those whose names
//! end with `forget`; `spec.absent`, references of objects that must not exist; and
//! `spec.empty`, whether no objects at all are meant. `spec.fail` is the message of
//! a failure that it returns instead.

// The contract's export names are no symbols that a native linker takes.
#![cfg(target_arch = "wasm32")]

mod contract {
    #![expect(unsafe_code, reason = "generated: the canonical ABI is raw memory")]

    wit_bindgen::generate!({
        path: "../../../wit/v0.1",
        world: "controller",
    });

    export!(Courier with_types_in self);

    pub(crate) use super::Courier;
    pub(crate) use exports::reeve::plugin::controller_api::Guest;
    pub(crate) use reeve::plugin::types;
}

use contract::Guest;
use contract::types::{
    Absence, ConfigError, Failure, GroupVersionKind, Manifest, Next, ObjectReference, Outcome,
    PluginMetadata, PrimaryRule, Request, Role, Scope, WriteRule,
};
use serde_json::Value;

pub(crate) struct Courier;

impl Guest for Courier {
    fn metadata() -> PluginMetadata {
        PluginMetadata {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config_schema: br#"{"type":"object"}"#.to_vec(),
        }
    }

    fn describe(config: Vec<u8>) -> Result<Manifest, ConfigError> {
        let config: Value = serde_json::from_slice(&config).map_err(|error| ConfigError {
            path: String::new(),
            message: error.to_string(),
        })?;
        let writes = config["writes"].as_object().into_iter().flatten();
        Ok(Manifest {
            role: Role::Controller(PrimaryRule {
                kind: kind(config["primary"].as_str().unwrap_or_default()),
                selector: config["selector"].as_str().unwrap_or_default().to_owned(),
                projection: Vec::new(),
            }),
            reads: Vec::new(),
            writes: writes
                .map(|(name, place)| WriteRule {
                    kind: kind(name),
                    scope: scope(place),
                })
                .collect(),
            sources: Vec::new(),
            actions: Vec::new(),
        })
    }

    fn reconcile(request: Request) -> Result<Outcome, Failure> {
        let parse = |bytes: &[u8]| {
            serde_json::from_slice::<Value>(bytes)
                .map_err(|error| Failure::Terminal(error.to_string()))
        };
        let (primary, config) = (parse(&request.primary)?, parse(&request.config)?);
        let spec = &primary["spec"];
        if let Some(message) = spec["fail"].as_str() {
            return Err(Failure::Terminal(message.to_owned()));
        }
        let forgotten = |object: &Value| {
            let ending = config["forget"].as_str();
            ending.is_some_and(|ending| text(&object["metadata"]["name"]).ends_with(ending))
        };
        let objects = list(&spec["objects"]).filter(|object| !forgotten(object));
        Ok(Outcome {
            objects: objects
                .map(|object| object.to_string().into_bytes())
                .collect(),
            absent: list(&spec["absent"]).map(absence).collect(),
            conditions: Vec::new(),
            events: Vec::new(),
            status: None,
            actions: Vec::new(),
            next: Next::OnChange,
            empty_is_meant: spec["empty"] == true,
        })
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn absence(reference: &Value) -> Absence {
    let namespace = reference["namespace"].as_str().map(str::to_owned);
    Absence {
        object: ObjectReference {
            kind: kind(&text(&reference["kind"])),
            namespace,
            name: text(&reference["name"]),
        },
        preconditions: Vec::new(),
    }
}

/// `Kind.version.group`, as kubectl writes it.
fn kind(text: &str) -> GroupVersionKind {
    let mut parts = text.splitn(3, '.').map(str::to_owned);
    GroupVersionKind {
        kind: parts.next().unwrap_or_default(),
        version: parts.next().unwrap_or_default(),
        group: parts.next().unwrap_or_default(),
    }
}

fn scope(place: &Value) -> Scope {
    match place {
        Value::Array(namespaces) => Scope::Namespaces(namespaces.iter().map(text).collect()),
        _ if place == "primary-namespace" => Scope::PrimaryNamespace,
        _ => Scope::Cluster,
    }
}
