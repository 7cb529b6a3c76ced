//! The types of built-in kinds.
//!
//! `builtin/table.txt` holds what server-side apply needs of the OpenAPI
//! documents of a Kubernetes 1.36 server: types, list and map types, keys,
//! defaults. `examples/builtin_table.rs` writes it.

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
    let name = *TABLE
        .kinds
        .get(&(api_version(group, version).as_str(), kind))?;
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

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}
