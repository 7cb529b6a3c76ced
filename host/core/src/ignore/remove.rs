//! Places in an object, and taking out what is there.

use serde_json::Value;
use std::fmt;

/// One step into an object or a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Field(String),
    Item(usize),
}

/// Where something is in an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location(pub(crate) Vec<Step>);

impl Location {
    /// What is there in an object.
    pub(crate) fn get<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |value, step| match step {
            Step::Field(name) => value.get(name),
            Step::Item(index) => value.get(index),
        })
    }

    /// Whether the object would not be this object without it.
    pub(super) fn identifies(&self) -> bool {
        let fields: Vec<_> = self
            .0
            .iter()
            .map(|step| match step {
                Step::Field(name) => name.as_str(),
                Step::Item(_) => "",
            })
            .collect();
        matches!(
            fields[..],
            [] | ["apiVersion" | "kind" | "metadata"]
                | ["metadata", "name" | "namespace" | "generateName"]
        )
    }
}

/// As a JSON Pointer.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            match step {
                Step::Field(name) => {
                    write!(f, "/{}", name.replace('~', "~0").replace('/', "~1"))?;
                }
                Step::Item(index) => write!(f, "/{index}")?,
            }
        }
        Ok(())
    }
}

/// Takes out what is at these places, as they are before anything is taken out.
/// Returns what is left, what was taken out, and what identifies the object and
/// was not.
pub(super) fn remove(
    object: &Value,
    mut locations: Vec<Location>,
) -> (Value, Vec<Location>, Vec<Location>) {
    locations.sort_unstable();
    locations.dedup();
    let (kept, locations): (Vec<_>, Vec<_>) = locations.into_iter().partition(Location::identifies);
    let mut left = object.clone();
    // From the back: no item moves before it is its turn, and what is inside of
    // something goes before that does.
    for location in locations.iter().rev() {
        take_out(&mut left, &location.0);
    }
    (left, locations, kept)
}

fn take_out(value: &mut Value, steps: &[Step]) {
    match (steps, value) {
        ([Step::Field(name)], Value::Object(fields)) => {
            fields.remove(name);
        }
        ([Step::Item(index)], Value::Array(items)) if *index < items.len() => {
            items.remove(*index);
        }
        ([Step::Field(name), rest @ ..], Value::Object(fields)) => {
            if let Some(below) = fields.get_mut(name) {
                take_out(below, rest);
            }
        }
        ([Step::Item(index), rest @ ..], Value::Array(items)) => {
            if let Some(below) = items.get_mut(*index) {
                take_out(below, rest);
            }
        }
        _ => {}
    }
}
