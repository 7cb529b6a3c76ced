//! Which fields are ours, where the entry of our manager alone does not tell.
//!
//! An entry names a map of which nothing but the name is left to us as it names one
//! that is ours as a whole. Without the schema of a custom resource the two can be
//! told apart by what stands beside: inside of what is ours as a whole nobody else
//! owns anything, and it is not empty if we did not send it so.

use reeve_cluster::Object;
use serde_json::{Map, Value, json};

/// A field that no object has. Below a map it says that the map is taken apart.
const PHANTOM: &str = "f:";

/// The fields of an object that a manager owns by apply (`fieldsV1`), those maps
/// marked as taken apart of which it has lost everything.
pub(super) fn owned_fields(object: &Object, manager: &str) -> Option<Value> {
    let (mut ours, alone) = object.fields_of(manager)?;
    // Parsing what others own is dear. Where nobody else has fields and no map of ours is
    // empty, there is nothing to tell apart.
    let shared = !alone || may_have_emptied(&ours, object.json());
    if shared && has_bare(&ours) {
        let entries: Vec<Value> = object
            .managed_fields()
            .and_then(|entries| serde_json::from_str(entries).ok())
            .unwrap_or_default();
        let others: Vec<&Value> = entries
            .iter()
            .filter(|entry| entry["manager"] != manager || entry["operation"] != "Apply")
            .map(|entry| &entry["fieldsV1"])
            .collect();
        mark(&mut ours, &others, &object.value());
    }
    Some(ours)
}

/// Whether a map in this JSON is empty that is in `ours` as a whole; it may also be a text
/// that looks like one, or a map of the same name elsewhere.
fn may_have_emptied(ours: &Value, json: &str) -> bool {
    let mut braces = json.match_indices('{');
    braces.any(|(at, _)| {
        let (before, rest) = json.split_at(at);
        rest[1..].trim_start().starts_with('}')
            && name_before(before).is_none_or(|name| has_bare_named(ours, name))
    })
}

/// The name of the field whose value comes next, where that is written plainly.
fn name_before(json: &str) -> Option<&str> {
    let quoted = json.trim_end().strip_suffix(':')?.trim_end();
    let (before, name) = quoted.strip_suffix('"')?.rsplit_once('"')?;
    let escaped = before.ends_with('\\') || name.contains('\\');
    (!escaped).then_some(name)
}

/// Whether a set names a field of this name and nothing below it.
fn has_bare_named(set: &Value, name: &str) -> bool {
    let mut fields = set.as_object().into_iter().flatten();
    fields.any(|(key, below)| {
        (is_bare(below) && key.strip_prefix("f:") == Some(name)) || has_bare_named(below, name)
    })
}

/// Whether a set names a direct part of the object and nothing below it.
fn has_bare(set: &Value) -> bool {
    let fields = set.as_object().into_iter().flatten();
    let mut parts = fields.filter(|(key, _)| *key != "f:metadata");
    parts.any(|(_, below)| is_bare(below) || has_bare(below))
}

fn is_bare(set: &Value) -> bool {
    set.as_object().is_some_and(Map::is_empty)
}

fn mark(ours: &mut Value, others: &[&Value], live: &Value) {
    let Some(fields) = ours.as_object_mut() else {
        return;
    };
    for (key, below) in fields.iter_mut().filter(|(key, _)| *key != ".") {
        let others: Vec<&Value> = others.iter().filter_map(|other| other.get(key)).collect();
        let live = match key.strip_prefix("f:") {
            Some(name) => &live[name],
            // Items of a list are not looked for.
            None => &Value::Null,
        };
        if !is_bare(below) {
            mark(below, &others, live);
            continue;
        }
        let inside = |other: &&Value| {
            let mut keys = other.as_object().into_iter().flat_map(Map::keys);
            keys.any(|key| key != ".")
        };
        let emptied = live.as_object().is_some_and(Map::is_empty);
        if others.iter().any(inside) || emptied {
            *below = json!({".": {}, PHANTOM: {}});
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ours: &Value, others: &[Value], live: &Value, desired: &Value, covered: bool) {
        let mut marked = ours.clone();
        let others: Vec<&Value> = others.iter().collect();
        mark(&mut marked, &others, live);
        let found = reeve_core::plan::covers(&marked, desired);
        assert_eq!(found, covered, "{ours} beside {others:?} of {desired}");
    }

    #[test]
    fn empty_maps_of_ours_are_seen_however_they_are_written() {
        let ours = json!({"f:spec": {"f:a": {}, "f:x": {"f:spec": {}}}, "f:s{": {}});
        for (json, empty) in [
            (r#"{"spec":{"a":{}}}"#, true),
            ("{\"spec\": {\"a\" : {\n }}}", true),
            // Elsewhere, or a text: it is looked at closer.
            (r#"{"a":{}}"#, true),
            (r#"{"text":"{}"}"#, true),
            (r#"{"text":"\"a\":{}"}"#, true),
            (r#"{"list":[{}]}"#, true),
            (r#"{"s{":{}}"#, true),
            (r#"{"a\"":{}}"#, true),
            // Nobody's, or not empty.
            (r#"{"spec":{"a":{"b":1}},"status":{}}"#, false),
            (r#"{"spec":{"a":[]},"b":null}"#, false),
        ] {
            assert_eq!(may_have_emptied(&ours, json), empty, "{json}");
        }
    }

    #[test]
    fn a_map_that_lost_its_last_field_is_not_ours_any_more() {
        let desired = json!({"spec": {"size": 1}});
        let live = json!({"spec": {"size": 9}});
        let bare = json!({"f:spec": {}});
        let theirs = json!({"f:spec": {"f:size": {}}});
        check(&bare, &[theirs], &live, &desired, false);
        // Nobody else owns anything inside: it is ours as a whole.
        check(&bare, &[], &live, &desired, true);
        let whole = json!({"f:spec": {}});
        check(&bare, &[whole], &live, &desired, true);
        // Somebody removed the field, and nobody owns it.
        check(&bare, &[], &json!({"spec": {}}), &desired, false);
        // We want it empty; what others put there is theirs.
        let theirs = json!({"f:spec": {"f:size": {}}});
        check(&bare, &[theirs], &live, &json!({"spec": {}}), true);
    }

    #[test]
    fn what_is_below_is_looked_at_too() {
        let desired = json!({"spec": {"a": {"b": 1}, "c": 2}});
        let ours = json!({"f:spec": {".": {}, "f:a": {}, "f:c": {}}});
        let theirs = json!({"f:spec": {"f:a": {"f:b": {}}}});
        let live = json!({"spec": {"a": {"b": 9}, "c": 2}});
        check(&ours, &[theirs], &live, &desired, false);
        check(
            &ours,
            &[json!({"f:status": {"f:a": {}}})],
            &live,
            &desired,
            true,
        );
    }
}
