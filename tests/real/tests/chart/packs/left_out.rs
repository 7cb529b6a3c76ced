//! Settings with each of their values left out, one after another.

use anyhow::{Context as _, Result};
use serde_json::Value;

/// Each single value that is set, by its name, and the settings without it.
pub(super) fn each_left_out(settings: &[&str]) -> Result<Vec<(String, Vec<String>)>> {
    let mut all = Vec::new();
    for (index, setting) in settings.iter().enumerate() {
        let (name, json) = setting.split_once('=').context("no value")?;
        let value: Value = serde_json::from_str(json)?;
        let mut places = Vec::new();
        leaves(&value, String::new(), &mut places);
        for place in places {
            let mut rest: Vec<String> = settings.iter().map(|one| (*one).to_owned()).collect();
            if place.is_empty() {
                rest.remove(index);
                all.push((name.to_owned(), rest));
                continue;
            }
            let (parent, key) = place.rsplit_once('.').unwrap_or(("", &place));
            let pointer = parent.split('.').filter(|part| !part.is_empty());
            let pointer: String = pointer.map(|part| format!("/{part}")).collect();
            let mut without = value.clone();
            let parent = without.pointer_mut(&pointer).and_then(Value::as_object_mut);
            parent.context("no object")?.remove(key);
            rest[index] = format!("{name}={without}");
            all.push((format!("{name}.{place}"), rest));
        }
    }
    Ok(all)
}

/// The names of all values that are no objects with something in them.
pub(super) fn leaves(value: &Value, name: String, found: &mut Vec<String>) {
    let Some(fields) = value.as_object().filter(|fields| !fields.is_empty()) else {
        found.push(name);
        return;
    };
    for (key, value) in fields {
        let place = match name.is_empty() {
            true => key.clone(),
            false => format!("{name}.{key}"),
        };
        leaves(value, place, found);
    }
}
