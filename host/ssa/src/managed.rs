//! `metadata.managedFields`: who owns which fields.

mod cap;
mod entries;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::encode;
use crate::set::FieldSet;
use crate::time;

pub use self::entries::unmanaged;

pub(crate) use self::entries::take_entries;
pub use self::entries::{ManagedFieldsError, keep_times};

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By create, update or any other patch.
    Update,
}

impl Operation {
    /// The word in `operation`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What tells one entry from another.
///
/// An applier is the same whichever version it speaks; an updater has one
/// entry for each version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManagerId {
    /// The field manager's name.
    pub manager: String,
    /// How it came to own fields.
    pub operation: Operation,
    /// The version, for `Update` only.
    pub api_version: Option<String>,
    /// The subresource it went through; empty for the object itself.
    pub subresource: String,
}

impl ManagerId {
    /// The entry of an applier. A manager without a name is `unknown`.
    pub fn apply(manager: &str, subresource: &str) -> Self {
        Self {
            manager: named(manager),
            operation: Operation::Apply,
            api_version: None,
            subresource: subresource.to_owned(),
        }
    }

    /// The entry of an updater at a version.
    pub fn update(manager: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            manager: named(manager),
            operation: Operation::Update,
            api_version: Some(api_version.to_owned()),
            subresource: subresource.to_owned(),
        }
    }

    /// The server's key of an entry, by which it breaks ties.
    pub(crate) fn sort_key(&self) -> String {
        let mut out = String::from("{");
        let mut put = |name: &str, text: &str| {
            if !text.is_empty() {
                if out.len() > 1 {
                    out.push(',');
                }
                encode::string(&mut out, name);
                out.push(':');
                encode::value(&mut out, &Value::from(text));
            }
        };
        put("manager", &self.manager);
        put("operation", self.operation.as_str());
        put("apiVersion", self.api_version.as_deref().unwrap_or(""));
        put("subresource", &self.subresource);
        out.push('}');
        out
    }
}

impl fmt::Display for ManagerId {
    /// The form used in conflicts: `"kubectl-edit" using v1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::value::quote(&self.manager))?;
        if !self.subresource.is_empty() {
            let subresource = crate::value::quote(&self.subresource);
            write!(f, " with subresource {subresource}")?;
        }
        if let Some(version) = &self.api_version {
            write!(f, " using {version}")?;
        }
        Ok(())
    }
}

fn named(manager: &str) -> String {
    if manager.is_empty() {
        "unknown"
    } else {
        manager
    }
    .to_owned()
}

/// What one entry owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The fields.
    pub set: FieldSet,
    /// The version in whose terms the fields are named.
    pub api_version: String,
    /// When it last changed, RFC 3339.
    pub time: Option<String>,
}

/// All entries of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedFields(pub(crate) BTreeMap<ManagerId, Owned>);

impl ManagedFields {
    /// Reads the entries of an object.
    pub fn of(object: &Value) -> Result<Self, ManagedFieldsError> {
        Self::parse(object.pointer("/metadata/managedFields"))
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries, in no order that clients see.
    pub fn iter(&self) -> impl Iterator<Item = (&ManagerId, &Owned)> {
        self.0.iter()
    }

    /// The entry of one manager.
    pub fn get(&self, id: &ManagerId) -> Option<&Owned> {
        self.0.get(id)
    }

    /// The fields that anybody owns.
    pub fn union(&self) -> FieldSet {
        self.0
            .values()
            .fold(FieldSet::new(), |all, owned| all.union(&owned.set))
    }

    /// Writes the entries into an object, or takes the field away when there
    /// are none.
    pub fn write_to(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else {
            return;
        };
        if self.is_empty() {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            return;
        }
        let metadata = object
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".to_owned(), self.to_value());
        }
    }
}

fn seconds(owned: &Owned) -> i64 {
    owned
        .time
        .as_deref()
        .and_then(time::unix_seconds)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_as_in_conflicts() {
        for (id, text) in [
            (ManagerId::apply("a", ""), "\"a\""),
            (ManagerId::apply("", ""), "\"unknown\""),
            (
                ManagerId::apply("q\"", "status"),
                "\"q\\\"\" with subresource \"status\"",
            ),
            (ManagerId::update("a", "apps/v1", ""), "\"a\" using apps/v1"),
        ] {
            assert_eq!(id.to_string(), text);
        }
        assert_eq!(
            ManagerId::update("a", "v1", "status").sort_key(),
            r#"{"manager":"a","operation":"Update","apiVersion":"v1","subresource":"status"}"#
        );
    }
}
