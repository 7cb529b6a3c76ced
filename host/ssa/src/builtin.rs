//! The types of built-in kinds.
//!
//! `builtin/table.txt` holds what server-side apply needs of the OpenAPI
//! documents of a Kubernetes 1.36 server: types, list and map types, keys,
//! defaults. A test of `tests/real` holds it against a live server, and writes it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::schema::table::Table;
use crate::schema::{Atom, Schema, TypeRef};

static TABLE: LazyLock<Table<'static>> = LazyLock::new(|| Table::parse(TEXT));

/// The table as it is checked in.
const TEXT: &str = include_str!("builtin/table.txt");

/// The schema of a built-in kind, or `None` when the table does not have it.
///
/// The core group is the empty string. Each schema is made once, at first use.
pub fn schema(group: &str, version: &str, kind: &str) -> Option<&'static Schema> {
    static MADE: Mutex<BTreeMap<&'static str, &'static Schema>> = Mutex::new(BTreeMap::new());
    let name = *TABLE.kinds.get(&(&*api_version(group, version), kind))?;
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    Some(
        made.entry(name)
            .or_insert_with(|| Box::leak(Box::new(TABLE.schema(name)))),
    )
}

/// Every kind of the table, as (apiVersion, kind).
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.kinds.keys().copied()
}

/// Adds the type of `metadata` to the types of a custom resource.
pub(crate) fn object_meta(types: &mut Vec<Atom>) -> TypeRef {
    TABLE.instantiate("meta.v1.ObjectMeta", types)
}

fn api_version<'a>(group: &str, version: &'a str) -> Cow<'a, str> {
    if group.is_empty() {
        Cow::Borrowed(version)
    } else {
        Cow::Owned([group, "/", version].concat())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::typed::field_set;

    #[test]
    fn every_line_of_the_table_is_read_and_every_name_is_defined() {
        assert_eq!(TABLE.problems(TEXT), Vec::<String>::new());
    }

    #[test]
    fn every_kind_is_an_object() {
        assert!(kinds().count() > 50);
        for (api_version, kind) in kinds() {
            let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
            let schema = schema(group, version, kind).unwrap();
            let object = json!({"metadata": {"finalizers": ["f"], "labels": {"l": "m"}}});
            assert_eq!(
                field_set(schema, &object).to_fields_v1_json(),
                r#"{"f:metadata":{"f:finalizers":{"v:\"f\"":{}},"f:labels":{"f:l":{}}}}"#,
                "{api_version} {kind}"
            );
        }
    }

    #[test]
    fn a_field_may_overrule_its_type() {
        let reference = json!({"name": "n", "namespace": "s"});
        for (kind, object, fields) in [
            (
                "PersistentVolume",
                json!({"spec": {"claimRef": reference}}),
                r#"{"f:spec":{"f:claimRef":{"f:name":{},"f:namespace":{}}}}"#,
            ),
            (
                "Event",
                json!({"involvedObject": reference}),
                r#"{"f:involvedObject":{}}"#,
            ),
        ] {
            let schema = schema("", "v1", kind).unwrap();
            assert_eq!(field_set(schema, &object).to_fields_v1_json(), fields);
        }
    }

    #[test]
    fn kinds_that_are_not_in_the_table_have_no_schema() {
        assert!(schema("", "v1", "Widget").is_none());
        assert!(schema("apps", "v1beta1", "Deployment").is_none());
    }
}
