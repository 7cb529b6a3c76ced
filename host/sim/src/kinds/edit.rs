//! Small steps on JSON that defaulting is made of.

use serde_json::{Value, json};

/// The value in `field`, made an empty object when absent or null. None when
/// `value` is no object or holds something else there.
pub(crate) fn ensure_object<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let slot = value
        .as_object_mut()?
        .entry(field)
        .or_insert_with(|| json!({}));
    if slot.is_null() {
        *slot = json!({});
    }
    slot.is_object().then_some(slot)
}

/// Whether `field` is absent, null, or a text without letters: what the server
/// takes for not given.
pub(crate) fn is_unset(value: &Value, field: &str) -> bool {
    match value.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    }
}

/// Sets `field` unless it is given.
pub(crate) fn default_to(value: &mut Value, field: &str, default: impl Into<Value>) {
    if is_unset(value, field)
        && let Some(fields) = value.as_object_mut()
    {
        fields.insert(field.to_owned(), default.into());
    }
}

/// Sets a number unless another one than zero is given, for fields that Go cannot leave out.
pub(crate) fn default_number(value: &mut Value, field: &str, default: i64) {
    if integer(value, field).unwrap_or(0) == 0 {
        set(value, field, default);
    }
}

/// Sets `field`, whatever was there.
pub(crate) fn set(value: &mut Value, field: &str, to: impl Into<Value>) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(field.to_owned(), to.into());
    }
}

/// Removes `field`.
pub(crate) fn remove(value: &mut Value, field: &str) -> Option<Value> {
    value.as_object_mut()?.remove(field)
}

/// Makes `field` what it is in another object.
pub(crate) fn copy(to: &mut Value, from: &Value, field: &str) {
    match from.get(field) {
        Some(value) => set(to, field, value.clone()),
        None => drop(remove(to, field)),
    }
}

/// Each item of the list in `field`, to be changed.
pub(crate) fn items_mut<'a>(
    value: &'a mut Value,
    field: &str,
) -> impl Iterator<Item = &'a mut Value> {
    value
        .get_mut(field)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

/// Each item of the list in `field`.
pub(crate) fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Each entry of the map in `field`.
pub(crate) fn entries<'a>(
    value: &'a Value,
    field: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value
        .get(field)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

/// The text in `field`, empty when absent.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The text at a JSON pointer, empty when absent.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The integer in `field`.
pub(crate) fn integer(value: &Value, field: &str) -> Option<i64> {
    value.get(field).and_then(Value::as_i64)
}

/// Whether `field` is true.
pub(crate) fn flag(value: &Value, field: &str) -> bool {
    value.get(field).and_then(Value::as_bool).unwrap_or(false)
}

/// An object as the server prints it whose own type for it names the fields otherwise,
/// and has all of them: pairs of its name and ours.
pub(crate) fn as_printed(value: &Value, fields: &[(&str, &str)]) -> Value {
    let field = |(theirs, ours): &(&str, &str)| {
        let inner = value.get(ours).cloned().unwrap_or_default();
        ((*theirs).to_owned(), inner)
    };
    Value::Object(fields.iter().map(field).collect())
}

/// The object in `field`.
pub(crate) fn object<'a>(value: &'a Value, field: &str) -> Option<&'a Value> {
    value.get(field).filter(|value| value.is_object())
}

/// The value in `field` unless it is absent, null or empty.
pub(crate) fn present<'a>(value: &'a Value, field: &str) -> Option<&'a Value> {
    value.get(field).filter(|value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    })
}
