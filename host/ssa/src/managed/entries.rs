//! The entries of `managedFields` as JSON.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{ManagedFields, ManagerId, Operation, Owned, seconds};
use crate::fields_v1::FieldsError;
use crate::set::FieldSet;

/// The field of the metadata.
const MANAGED: &str = "managedFields";

/// Why `managedFields` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManagedFieldsError {
    /// It is not a list of objects.
    #[error("managedFields is not a list of entries")]
    NotEntries,
    /// `operation` is neither `Apply` nor `Update`.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// `apiVersion` is missing.
    #[error("apiVersion must not be empty")]
    NoVersion,
    /// `fieldsType` is missing.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// `fieldsType` is not `FieldsV1`.
    #[error("invalid fieldsType {found:?} in managed fields entry {entry}")]
    FieldsType {
        /// Position of the entry.
        entry: usize,
        /// What stands there.
        found: String,
    },
    /// `fieldsV1` is malformed.
    #[error("error decoding set of managed fields entry {entry}")]
    Fields {
        /// Position of the entry.
        entry: usize,
        /// What is wrong with it.
        #[source]
        source: FieldsError,
    },
}

impl ManagedFields {
    /// Reads the value of `metadata.managedFields`; absent and null are empty.
    pub fn parse(entries: Option<&Value>) -> Result<Self, ManagedFieldsError> {
        let entries = match entries {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(Value::Array(entries)) => entries,
            Some(_) => return Err(ManagedFieldsError::NotEntries),
        };
        let mut out = BTreeMap::new();
        for (index, entry) in entries.iter().enumerate() {
            let entry = entry.as_object().ok_or(ManagedFieldsError::NotEntries)?;
            let text = |name| entry.get(name).and_then(Value::as_str).unwrap_or("");
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err(ManagedFieldsError::Operation),
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() {
                return Err(ManagedFieldsError::NoVersion);
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(ManagedFieldsError::NoFieldsType(index)),
                other => {
                    return Err(ManagedFieldsError::FieldsType {
                        entry: index,
                        found: other.to_owned(),
                    });
                }
            }
            let set = FieldSet::from_fields_v1(entry.get("fieldsV1").unwrap_or(&Value::Null))
                .map_err(|source| ManagedFieldsError::Fields {
                    entry: index,
                    source,
                })?;
            let id = ManagerId {
                manager: text("manager").to_owned(),
                operation,
                api_version: (operation == Operation::Update).then(|| api_version.to_owned()),
                subresource: text("subresource").to_owned(),
            };
            let owned = Owned {
                set,
                api_version: api_version.to_owned(),
                // What is empty is written as what is not there.
                time: Some(text("time"))
                    .filter(|time| !time.is_empty())
                    .map(str::to_owned),
            };
            out.insert(id, owned);
        }
        Ok(Self(out))
    }

    /// The value of `metadata.managedFields`, entries in the server's order:
    /// appliers first, then by time, name, version and subresource.
    pub fn to_value(&self) -> Value {
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by(|a, b| entry_order(*a, *b));
        entries
            .into_iter()
            .map(|(id, owned)| entry(id, owned))
            .collect()
    }
}

/// A copy of the object without its `managedFields`, which are not copied first to be dropped.
pub fn unmanaged(object: &Value) -> Value {
    let Value::Object(fields) = object else {
        return object.clone();
    };
    let copy = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("metadata", Value::Object(metadata)) => {
            let others = metadata.iter().filter(|(name, _)| *name != MANAGED);
            let others = others.map(|(name, value)| (name.clone(), value.clone()));
            (name.clone(), Value::Object(others.collect()))
        }
        _ => (name.clone(), value.clone()),
    };
    Value::Object(fields.iter().map(copy).collect())
}

/// Takes the `managedFields` out of an object, if it has any.
pub(crate) fn take_entries(object: &mut Value) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    metadata.remove(MANAGED)
}

/// Puts the old times back where nothing but times has changed, so that a
/// write that changes nothing is seen to change nothing.
///
/// Both are whole objects; entries are compared position by position.
pub fn keep_times(live: &Value, object: &mut Value) {
    let pointer = "/metadata/managedFields";
    let (Some(Value::Array(old)), Some(Value::Array(new))) =
        (live.pointer(pointer), object.pointer(pointer))
    else {
        return;
    };
    let same = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| same_but_times(a, b));
    if same
        && same_but_managers(live, object)
        && let Some(entries) = object.pointer_mut(pointer)
    {
        *entries = Value::Array(old.clone());
    }
}

/// Whether two objects are the same in all but their `managedFields`, which both have.
fn same_but_managers(a: &Value, b: &Value) -> bool {
    let (Value::Object(a), Value::Object(b)) = (a, b) else {
        return a == b;
    };
    let same = |key: &str, a: &Value, b: &Value| match (key, a, b) {
        ("metadata", Value::Object(a), Value::Object(b)) => {
            let mut fields = a.iter().filter(|(key, _)| *key != MANAGED);
            a.len() == b.len() && fields.all(|(key, value)| b.get(key) == Some(value))
        }
        _ => a == b,
    };
    let mut fields = a.iter();
    a.len() == b.len() && fields.all(|(key, value)| b.get(key).is_some_and(|b| same(key, value, b)))
}

/// Whether two entries say the same of the same manager.
fn same_but_times(a: &Value, b: &Value) -> bool {
    let (Value::Object(a), Value::Object(b)) = (a, b) else {
        return a == b;
    };
    let others = |entry: &Map<String, Value>| entry.len() - usize::from(entry.contains_key("time"));
    others(a) == others(b)
        && a.iter()
            .all(|(key, value)| key == "time" || b.get(key) == Some(value))
}

fn entry(id: &ManagerId, owned: &Owned) -> Value {
    let mut entry = json!({
        "operation": id.operation.as_str(),
        "apiVersion": owned.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.set.to_fields_v1(),
    });
    if let Some(map) = entry.as_object_mut() {
        let optional = [
            ("manager", id.manager.as_str()),
            ("time", owned.time.as_deref().unwrap_or("")),
            ("subresource", id.subresource.as_str()),
        ];
        for (name, text) in optional.into_iter().filter(|(_, text)| !text.is_empty()) {
            map.insert(name.to_owned(), Value::from(text));
        }
    }
    entry
}

fn entry_order(a: (&ManagerId, &Owned), b: (&ManagerId, &Owned)) -> Ordering {
    let ((a, a_owned), (b, b_owned)) = (a, b);
    a.operation
        .cmp(&b.operation)
        .then_with(|| seconds(a_owned).cmp(&seconds(b_owned)))
        .then_with(|| a.manager.cmp(&b.manager))
        .then_with(|| a_owned.api_version.cmp(&b_owned.api_version))
        .then_with(|| a.subresource.cmp(&b.subresource))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::managed) fn update(
        manager: &str,
        version: &str,
        second: u32,
        field: &str,
    ) -> Value {
        json!({
            "manager": manager, "operation": "Update", "apiVersion": version,
            "time": format!("2026-01-01T00:00:{second:02}Z"),
            "fieldsType": "FieldsV1", "fieldsV1": {field: {}},
        })
    }

    pub(in crate::managed) fn parse(entries: &[Value]) -> ManagedFields {
        ManagedFields::parse(Some(&Value::Array(entries.to_vec()))).unwrap()
    }

    #[test]
    fn entries_round_trip_in_the_servers_order() {
        let mut apply = update("z", "v1", 9, "f:a");
        apply["operation"] = "Apply".into();
        let mut untimed = update("y", "v1", 0, "f:a");
        untimed.as_object_mut().unwrap().remove("time");
        let mut status = update("b", "v1", 1, "f:a");
        status["subresource"] = "status".into();
        let ordered = [
            apply,
            untimed,
            update("a", "v1", 1, "f:a"),
            update("b", "v1", 1, "f:a"),
            status,
            update("b", "v2", 1, "f:a"),
            update("a", "v2", 2, "f:a"),
        ];
        let mut shuffled = ordered.to_vec();
        shuffled.reverse();
        assert_eq!(parse(&shuffled).to_value(), Value::Array(ordered.to_vec()));
    }

    #[test]
    fn an_applier_has_one_entry_whatever_its_version() {
        let mut entries = [update("a", "v1", 1, "f:x"), update("a", "v2", 2, "f:y")];
        assert_eq!(parse(&entries).iter().count(), 2);
        for entry in &mut entries {
            entry["operation"] = "Apply".into();
        }
        assert_eq!(parse(&entries).iter().count(), 1);
    }

    #[test]
    fn malformed_entries_are_told_apart() {
        let broken = |field: &str, value: Value| {
            let mut entry = update("a", "v1", 1, "f:x");
            entry[field] = value;
            ManagedFields::parse(Some(&json!([entry])))
                .unwrap_err()
                .to_string()
        };
        for (message, expected) in [
            (
                broken("operation", json!("")),
                "operation must be `Apply` or `Update`",
            ),
            (
                broken("apiVersion", json!("")),
                "apiVersion must not be empty",
            ),
            (
                broken("fieldsType", json!("")),
                "missing fieldsType in managed fields entry 0",
            ),
            (
                broken("fieldsType", json!("V2")),
                "invalid fieldsType \"V2\" in managed fields entry 0",
            ),
            (
                broken("fieldsV1", json!({"x": 1})),
                "error decoding set of managed fields entry 0",
            ),
        ] {
            assert_eq!(message, expected);
        }
        assert!(ManagedFields::parse(Some(&json!("x"))).is_err());
        assert!(ManagedFields::parse(Some(&json!(null))).unwrap().is_empty());
    }

    #[test]
    fn times_are_kept_when_nothing_else_changes() {
        let object = |second, value: &str| json!({"data": value, "metadata": {"managedFields": [update("a", "v1", second, "f:data")]}});
        for (live, new, kept) in [
            (object(1, "x"), object(2, "x"), object(1, "x")),
            (object(1, "x"), object(2, "y"), object(2, "y")),
        ] {
            let mut new = new;
            keep_times(&live, &mut new);
            assert_eq!(new, kept);
        }
    }
}
