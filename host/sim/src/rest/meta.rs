//! The metadata that the server itself writes.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::field::quoted;
use crate::resource::Resource;
use crate::server::Shared;
use crate::status::ApiError;

/// What a generated name ends in: no vowels, so that no words come out.
const SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// A generated name fits a DNS label.
const GENERATED_MAX: usize = 63;

/// `metadata` of an object, made where it is missing.
pub(crate) fn of_mut(object: &mut Value) -> &mut Map<String, Value> {
    map_mut(map_mut(object).entry("metadata").or_insert(Value::Null))
}

/// The map that `value` is, or is made.
fn map_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    #[expect(clippy::expect_used, reason = "made an object just above")]
    value.as_object_mut().expect("an object")
}

/// The text of a metadata field; empty when absent.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    let field = object
        .get("metadata")
        .and_then(|metadata| metadata.get(field));
    field.and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.generation`; 0 where the kind has none.
pub(crate) fn generation(object: &Value) -> i64 {
    let generation = object.pointer("/metadata/generation");
    generation.and_then(Value::as_i64).unwrap_or(0)
}

/// Whether the object is being deleted.
pub(crate) fn is_terminating(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let finalizers = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    finalizers.into_iter().flatten().filter_map(Value::as_str)
}

/// Whether the list of finalizers is empty.
pub(crate) fn has_no_finalizers(object: &Value) -> bool {
    let finalizers = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    finalizers.is_none_or(Vec::is_empty)
}

/// Whether nothing holds back the end of an object that is being deleted. A
/// Namespace has a list of finalizers in its spec, too.
pub(crate) fn may_end(resource: &Resource, object: &Value) -> bool {
    let held = resource.plural == "namespaces"
        && resource.group.is_empty()
        && object
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|f| !f.is_empty());
    has_no_finalizers(object) && !held
}

/// Sets the namespace of an object from the path, which must not contradict it. What
/// an object of the cluster says of a namespace means nothing.
pub(crate) fn place(
    object: &mut Value,
    resource: &Resource,
    namespace: &str,
) -> Result<(), ApiError> {
    let given = text(object, "namespace");
    if !resource.namespaced {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("namespace");
        }
        return Ok(());
    }
    if !given.is_empty() && given != namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    of_mut(object).insert("namespace".to_owned(), json!(namespace));
    Ok(())
}

/// Gives a new object its name, UID and birth date, and takes away what only a
/// stored object has.
pub(crate) fn birth(object: &mut Value, server: &Shared) {
    let name = text(object, "name");
    let generated = match text(object, "generateName") {
        "" => None,
        prefix if name.is_empty() => Some(generate(prefix, server)),
        _ => None,
    };
    let metadata = of_mut(object);
    if let Some(name) = generated {
        metadata.insert("name".to_owned(), json!(name));
    }
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        metadata.remove(field);
    }
    metadata.insert("uid".to_owned(), json!(server.random.uid()));
    let now = server.clock.timestamp();
    metadata.insert("creationTimestamp".to_owned(), json!(now));
}

/// The version in the metadata of an object, 0 where there is none.
///
/// # Errors
///
/// Where it is no version, in the server's words.
pub(crate) fn version(object: &Value) -> Result<u64, ApiError> {
    let version = text(object, "resourceVersion");
    if version.is_empty() {
        return Ok(0);
    }
    let is_number = version.bytes().all(|byte| byte.is_ascii_digit());
    let why = match version.parse() {
        Ok(number) if is_number => return Ok(number),
        _ if is_number => "value out of range",
        _ => "invalid syntax",
    };
    Err(ApiError::internal(format!(
        "strconv.ParseUint: parsing {}: {why}",
        quoted(version)
    )))
}

/// Puts back what no update changes.
pub(crate) fn preserve(object: &mut Value, live: &Value) {
    let metadata = of_mut(object);
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        let old = live["metadata"].get(field);
        // What was sent must be right; that is checked elsewhere.
        let checked = match field {
            "uid" | "deletionGracePeriodSeconds" => metadata.contains_key(field),
            "deletionTimestamp" => old.is_none(),
            _ => false,
        };
        if checked {
            continue;
        }
        match old {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
    metadata.remove("selfLink");
}

/// A name that begins with `prefix`, as far as there is room, and ends by chance.
pub(crate) fn generate(prefix: &str, server: &Shared) -> String {
    let room = GENERATED_MAX - SUFFIX_LENGTH;
    let mut name: String = prefix.chars().take(room).collect();
    for _ in 0..SUFFIX_LENGTH {
        name.push(char::from(server.random.pick(SUFFIX_LETTERS)));
    }
    name
}

/// Removes owners that are named again in the same words, and answers with their UIDs.
pub(super) fn drop_owners_named_twice(object: &mut Value) -> Vec<String> {
    let owners = object.pointer_mut("/metadata/ownerReferences");
    let Some(owners) = owners.and_then(Value::as_array_mut) else {
        return Vec::new();
    };
    let (mut known, mut twice) = (BTreeSet::new(), Vec::new());
    owners.retain(|owner| {
        let is_new = known.insert(owner.to_string());
        if !is_new {
            twice.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
        is_new
    });
    twice
}
