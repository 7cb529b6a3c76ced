//! `metadata.managedFields`: who owns which fields.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::encode;
use crate::fields_v1::FieldsError;
use crate::set::FieldSet;
use crate::time;

/// How many `Update` entries an object keeps; the oldest beyond it are merged.
const MAX_UPDATE_MANAGERS: usize = 10;
/// The manager of merged entries.
const ANCIENT: &str = "ancient-changes";

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
                time: entry.get("time").and_then(Value::as_str).map(str::to_owned),
            };
            out.insert(id, owned);
        }
        Ok(Self(out))
    }

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

    /// Merges the oldest `Update` entries of each version until at most
    /// [`MAX_UPDATE_MANAGERS`] are left, or nothing more can be merged.
    pub(crate) fn cap_updates(&mut self) {
        let mut updaters: Vec<ManagerId> = self
            .0
            .keys()
            .filter(|id| id.operation == Operation::Update)
            .cloned()
            .collect();
        let mut left = updaters.len();
        if left <= MAX_UPDATE_MANAGERS {
            return;
        }
        updaters.sort_by_cached_key(|id| {
            let seconds = self.0.get(id).map_or(0, |owned| seconds(owned));
            (seconds, id.sort_key())
        });
        let mut first_of_version: BTreeMap<String, ManagerId> = BTreeMap::new();
        for id in updaters {
            if left <= MAX_UPDATE_MANAGERS {
                break;
            }
            let Some(version) = self.0.get(&id).map(|owned| owned.api_version.clone()) else {
                continue;
            };
            let Some(first) = first_of_version.get(&version) else {
                first_of_version.insert(version, id);
                continue;
            };
            let bucket = ManagerId::update(ANCIENT, &version, "");
            if !self.0.contains_key(&bucket)
                && let Some(owned) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), owned);
            }
            let Some(merged) = self.0.get(&id).cloned() else {
                continue;
            };
            if let Some(owned) = self.0.get_mut(&bucket) {
                owned.set = owned.set.union(&merged.set);
                owned.time = merged.time;
            }
            if id != bucket {
                self.0.remove(&id);
            }
            left -= 1;
        }
    }
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
    let without_time = |entry: &Value| {
        let mut entry = entry.clone();
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("time");
        }
        entry
    };
    let same = old.len() == new.len()
        && old
            .iter()
            .zip(new)
            .all(|(old, new)| without_time(old) == without_time(new));
    if !same {
        return;
    }
    let old = Value::Array(old.clone());
    let mut kept = object.clone();
    if let Some(entries) = kept.pointer_mut(pointer) {
        *entries = old;
    }
    if kept == *live {
        *object = kept;
    }
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

    fn update(manager: &str, version: &str, second: u32, field: &str) -> Value {
        json!({
            "manager": manager, "operation": "Update", "apiVersion": version,
            "time": format!("2026-01-01T00:00:{second:02}Z"),
            "fieldsType": "FieldsV1", "fieldsV1": {field: {}},
        })
    }

    fn parse(entries: &[Value]) -> ManagedFields {
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
    fn the_oldest_updates_of_a_version_are_merged() {
        let names = |managed: &ManagedFields| -> Vec<String> {
            managed
                .to_value()
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| {
                    format!(
                        "{}@{}",
                        entry["manager"].as_str().unwrap(),
                        entry["apiVersion"].as_str().unwrap()
                    )
                })
                .collect()
        };
        let mut entries: Vec<_> = (0..10)
            .map(|i| update(&format!("m{i}"), "v1", i, &format!("f:k{i}")))
            .collect();
        let mut ten = parse(&entries);
        ten.cap_updates();
        assert_eq!(ten, parse(&entries), "ten are kept");

        entries.push(update("other", "v2", 0, "f:o"));
        entries.push(update("m10", "v1", 10, "f:k10"));
        let mut capped = parse(&entries);
        let all = capped.union();
        capped.cap_updates();
        let mut expected = vec!["other@v2".to_owned(), "ancient-changes@v1".to_owned()];
        expected.extend((3..11).map(|i| format!("m{i}@v1")));
        assert_eq!(names(&capped), expected);
        assert_eq!(capped.union(), all, "no field is lost");
        let bucket = capped
            .get(&ManagerId::update("ancient-changes", "v1", ""))
            .unwrap();
        assert_eq!(
            bucket.time.as_deref(),
            Some("2026-01-01T00:00:02Z"),
            "time of the newest"
        );

        // The bucket takes part like any other entry.
        let mut entries = capped.to_value().as_array().unwrap().clone();
        entries.push(update("m11", "v1", 11, "f:k11"));
        let mut again = parse(&entries);
        again.cap_updates();
        assert_eq!(
            names(&again)[..3],
            ["other@v2", "ancient-changes@v1", "m4@v1"]
        );
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
