//! Strategic merge patches: merge patches that know, from the types of the built-in
//! kinds, which lists are maps in disguise.

mod list;

use serde_json::{Map, Value};

use self::list::Items;
use crate::decode::{Field, Merging, Shape, Type};
use crate::field::quoted;

/// Why a patch cannot be applied, in the server's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StrategicError {
    /// An item of a merged list lacks its key.
    #[error("map: {item} does not contain declared merge key: {key}")]
    NoKey {
        /// The item, as Go prints it.
        item: String,
        /// The key.
        key: &'static str,
    },
    /// A list of objects is patched with something else.
    #[error("list element types are not identical: {0}")]
    Mixed(String),
    /// A list with an order that has no items to be in it.
    #[error("no elements in any of the given slices")]
    Nothing,
    /// A list inside of a list that is merged.
    #[error("lists of lists are not supported")]
    Nested,
    /// A list of objects that nothing tells apart.
    #[error("cannot merge lists without merge key for {0}")]
    Keyless(&'static str),
    /// A `$patch` that is no directive.
    #[error("unknown patch type: {0} in map: {1}")]
    Directive(String, String),
    /// `$patch: merge` in an item of a list.
    #[error("merging lists cannot yet be specified in the patch")]
    MergeInList,
    /// A directive of another form than it has to have.
    #[error("invalid patch format of {0}")]
    Format(&'static str),
    /// A value of another sort than a directive is about.
    #[error("expected a {expected}, but received a {received}")]
    Sort {
        /// What it should be, as Go calls it.
        expected: &'static str,
        /// What it is.
        received: &'static str,
    },
    /// A list in another order than the one that comes with it.
    #[error("The order in patch list:\n{0}\n doesn't match $setElementOrder list:\n{1}\n")]
    Order(String, String),
    /// A field that the type does not have.
    #[error("unable to find api field in struct {holder} for the json field {}", quoted(.field))]
    NoField {
        /// The type.
        holder: &'static str,
        /// The field.
        field: String,
    },
    /// An object inside of something that has no fields.
    #[error("merging an object in json but data type is not struct, instead is: {0}")]
    NoStruct(&'static str),
    /// A list where the type has none.
    #[error("expected slice or array type, but got: {0}")]
    NoList(&'static str),
}

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

/// Applies `patch` to `object`, which is of type `ty`.
///
/// # Errors
///
/// When the patch breaks the rules of its language; `object` is then half
/// patched and of no use.
pub(crate) fn merge(
    ty: Type,
    object: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Result<(), StrategicError> {
    if let Some(directive) = patch.get(PATCH) {
        match directive.as_str() {
            // Directives further down are fields that no type has, and go when it is read.
            Some("replace") => {
                patch.remove(PATCH);
                *object = patch;
            }
            Some("delete") => object.clear(),
            _ => {
                let directive = printed(directive);
                let map = printed(&Value::Object(patch));
                return Err(StrategicError::Directive(directive, map));
            }
        }
        return Ok(());
    }
    retain_keys(object, &mut patch)?;
    let ordered = patch.keys().filter(|key| key.starts_with(ORDER));
    let ordered: Vec<String> = ordered.cloned().collect();
    for directive in ordered {
        let name = directive
            .strip_prefix(ORDER)
            .and_then(|n| n.strip_prefix('/'));
        let name = name.ok_or(StrategicError::Format("setElementOrder list"))?;
        if let Some(order) = patch.remove(&directive) {
            set_order(ty, object, &mut patch, name, &order)?;
        }
    }
    for (key, value) in patch {
        match key.strip_prefix(DELETE_FROM) {
            None => put(ty, object, key, value)?,
            Some(name) => {
                let name = name.strip_prefix('/');
                let name = name.ok_or(StrategicError::Format("primitive list"))?;
                delete_from(ty, object, name, value)?;
            }
        }
    }
    Ok(())
}

/// A patch as messages show it that come after it was merged into `object`: what was new
/// there has lost its nulls.
pub(crate) fn spent(patch: &Map<String, Value>, object: &Value) -> Map<String, Value> {
    let mut spent = patch.clone();
    if patch.contains_key(PATCH) {
        return spent;
    }
    for (key, value) in &mut spent {
        match (object.get(key), &*value) {
            (Some(present), Value::Object(fields)) if present.is_object() => {
                *value = Value::Object(self::spent(fields, present));
            }
            (Some(present), _) if go_type(present) == go_type(value) => {}
            _ => *value = without_nulls(value.take()),
        }
    }
    spent
}

/// Removes what a patch does not name among those that are to stay.
fn retain_keys(
    object: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), StrategicError> {
    const WRONG: StrategicError = StrategicError::Format("retainKeys");
    let Some(keep) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(keep) = keep else {
        return Err(WRONG);
    };
    let stays = |key: &String| keep.iter().any(|kept| kept == key);
    let is_directive = |key: &str| key.starts_with(DELETE_FROM) || key.starts_with(ORDER);
    let mut given = patch.iter().filter(|(_, value)| !value.is_null());
    if given.any(|(key, _)| !is_directive(key) && !stays(key)) {
        return Err(WRONG);
    }
    object.retain(|key, _| stays(key));
    Ok(())
}

/// Merges a list that comes with an order, and brings it into that.
fn set_order(
    ty: Type,
    object: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    name: &str,
    order: &Value,
) -> Result<(), StrategicError> {
    let order = array(order)?;
    let before = object.get(name).map(array).transpose()?;
    let given = patch.get(name).map(array).transpose()?;
    let (field, item) = list_field(ty, name)?;
    let items = Items::of(item, field.merging);
    items.check_order(given.unwrap_or_default(), order)?;
    let merged = match (before, given) {
        (None, None) => return Ok(()),
        (Some(before), None) => before.to_vec(),
        (None, Some(given)) => given
            .iter()
            .cloned()
            .filter_map(without_directives)
            .collect(),
        (Some(before), Some(given)) if field.merging.is_of_items() => {
            items.merge(before.to_vec(), given.to_vec(), false)?
        }
        (Some(_), Some(given)) => given.to_vec(),
    };
    let before = before.unwrap_or_default();
    list::sort_of(&[before, given.unwrap_or_default()])?;
    let merged = items.arrange(merged, order, before)?;
    object.insert(name.to_owned(), Value::Array(merged));
    patch.remove(name);
    Ok(())
}

/// Sets or merges one field.
fn put(
    ty: Type,
    object: &mut Map<String, Value>,
    key: String,
    value: Value,
) -> Result<(), StrategicError> {
    if value.is_null() {
        object.remove(&key);
        return Ok(());
    }
    match object.get_mut(&key) {
        Some(present) if go_type(present) == go_type(&value) => {
            merge_values(ty, &key, present, value, false)?;
        }
        // What replaces nothing is nothing.
        _ => match without_directives(without_nulls(value)) {
            Some(value) => drop(object.insert(key, value)),
            None => drop(object.remove(&key)),
        },
    }
    Ok(())
}

/// Removes items from a list of plain values.
fn delete_from(
    ty: Type,
    object: &mut Map<String, Value>,
    name: &str,
    gone: Value,
) -> Result<(), StrategicError> {
    if gone.is_null() {
        object.remove(name);
        return Ok(());
    }
    match object.get_mut(name) {
        Some(present) if go_type(present) == go_type(&gone) => {
            merge_values(ty, name, present, gone, true)
        }
        _ => Ok(()),
    }
}

/// Merges two values of one sort. `deletes` says that a list names what is to go.
fn merge_values(
    ty: Type,
    name: &str,
    present: &mut Value,
    value: Value,
    deletes: bool,
) -> Result<(), StrategicError> {
    match (present, value) {
        (Value::Object(present), Value::Object(value)) => {
            let field = field(ty, name)?;
            if field.merging == Merging::Replace {
                *present = value;
                return Ok(());
            }
            merge(field.ty, present, value)
        }
        (Value::Array(present), Value::Array(value)) => {
            let (field, item) = list_field(ty, name)?;
            if deletes || field.merging.is_of_items() {
                let items = Items::of(item, field.merging);
                *present = items.merge(std::mem::take(present), value, deletes)?;
            } else {
                *present = value;
            }
            Ok(())
        }
        (present, value) => {
            *present = value;
            Ok(())
        }
    }
}

/// A field of a type.
fn field(ty: Type, name: &str) -> Result<Field, StrategicError> {
    let no_field = || StrategicError::NoField {
        holder: ty.bare_name(),
        field: name.to_owned(),
    };
    match ty.shape() {
        Shape::Struct(fields) => {
            let alike = || {
                let mut fields = fields.iter();
                fields.find(|(field, _)| field.eq_ignore_ascii_case(name))
            };
            let found = fields.get_key_value(name).or_else(alike);
            found.map(|(_, field)| *field).ok_or_else(no_field)
        }
        Shape::Map(_) => Err(StrategicError::NoStruct("map")),
        Shape::List(_) | Shape::Bytes => Err(StrategicError::NoStruct("slice")),
        Shape::Text => Err(StrategicError::NoStruct("string")),
        // Structs there, without fields that JSON names.
        _ => Err(no_field()),
    }
}

/// A field that holds a list, and the type of the items.
fn list_field(ty: Type, name: &str) -> Result<(Field, Type), StrategicError> {
    let field = field(ty, name)?;
    match field.ty.shape() {
        Shape::List(item) => Ok((field, item)),
        _ => Err(StrategicError::NoList("struct")),
    }
}

fn array(value: &Value) -> Result<&[Value], StrategicError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(StrategicError::Sort {
            expected: LIST,
            received: go_type(other),
        }),
    }
}

const LIST: &str = "[]interface {}";
const MAP: &str = "map[string]interface {}";

/// What Go reads a value into.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => LIST,
        Value::Object(_) => MAP,
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            let fields = fields.map(|(key, value)| (key, without_nulls(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        plain => plain,
    }
}

/// The value without what is only said of it; none where all of it is.
fn without_directives(value: Value) -> Option<Value> {
    Some(match value {
        Value::Object(fields) if fields.contains_key(PATCH) => return None,
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.into_iter().filter_map(without_directives).collect(),
        plain => plain,
    })
}

/// A value as Go prints it: `map[a:1 b:[x]]`.
pub(crate) fn printed(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{key}:{}", printed(value)));
            format!("map[{}]", fields.collect::<Vec<_>>().join(" "))
        }
        Value::Array(items) => printed_list(items),
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

fn printed_list(items: &[Value]) -> String {
    let items: Vec<String> = items.iter().map(printed).collect();
    format!("[{}]", items.join(" "))
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests;
