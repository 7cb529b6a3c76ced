//! Columns, and reading cells from an object.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::duration::human;
use crate::kinds::edit::items;
use crate::selector::LabelSelector;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: u8,
}

impl Column {
    /// The name of the object.
    pub(super) const NAME: Column = Column {
        name: "Name",
        kind: "string",
        format: "name",
        priority: 0,
    };
    /// How long ago the object was created.
    pub(super) const AGE: Column = Column::text("Age");

    /// A column of a type.
    pub(super) const fn of(name: &'static str, kind: &'static str) -> Self {
        Column {
            name,
            kind,
            format: "",
            priority: 0,
        }
    }

    /// A column of texts.
    pub(super) const fn text(name: &'static str) -> Self {
        Column::of(name, "string")
    }

    /// A column of whole numbers.
    pub(super) const fn number(name: &'static str) -> Self {
        Column::of(name, "integer")
    }

    /// A column of yes and no.
    pub(super) const fn flag(name: &'static str) -> Self {
        Column::of(name, "boolean")
    }

    /// A column of texts that only a wide table shows.
    pub(super) const fn wide(name: &'static str) -> Self {
        let mut column = Column::text(name);
        column.priority = 1;
        column
    }

    /// The same column, marked as the name of the object.
    pub(super) const fn as_name(mut self) -> Self {
        self.format = "name";
        self
    }

    /// The entry of `columnDefinitions`.
    pub(super) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": "",
            "priority": self.priority,
        })
    }
}

/// The columns of a built-in kind, and its cells.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    pub(super) columns: &'static [Column],
    pub(super) cells: fn(&Cells<'_>) -> Vec<Value>,
    /// What is to be said of the whole row.
    pub(super) condition: fn(&Value) -> Option<Value>,
}

impl Layout {
    pub(super) const fn of(
        group: &'static str,
        kind: &'static str,
        columns: &'static [Column],
        cells: fn(&Cells<'_>) -> Vec<Value>,
    ) -> Self {
        Layout {
            group,
            kind,
            columns,
            cells,
            condition: |_| None,
        }
    }

    pub(super) const fn with_condition(mut self, of: fn(&Value) -> Option<Value>) -> Self {
        self.condition = of;
        self
    }
}

/// What a cell shows where there is nothing.
pub(super) const NONE: &str = "<none>";
/// What a cell shows for a value that nobody gave.
pub(super) const UNSET: &str = "<unset>";

/// An object to read cells from, at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cells<'a> {
    pub(super) object: &'a Value,
    pub(super) now: SystemTime,
}

impl<'a> Cells<'a> {
    /// The value at a JSON pointer.
    pub(super) fn at(&self, pointer: &str) -> Option<&'a Value> {
        self.object.pointer(pointer)
    }

    /// The text at a JSON pointer, empty when absent.
    pub(super) fn text(&self, pointer: &str) -> &'a str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text at a JSON pointer, or another one.
    pub(super) fn text_or(&self, pointer: &str, absent: &'a str) -> &'a str {
        match self.text(pointer) {
            "" => absent,
            text => text,
        }
    }

    /// The integer at a JSON pointer, 0 when absent.
    pub(super) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).and_then(Value::as_i64).unwrap_or(0)
    }

    /// The yes or no at a JSON pointer, or what stands for neither.
    pub(super) fn flag(&self, pointer: &str, absent: bool) -> bool {
        self.at(pointer).and_then(Value::as_bool).unwrap_or(absent)
    }

    /// The texts of the list at a JSON pointer.
    pub(super) fn texts(&self, pointer: &str) -> Vec<&'a str> {
        self.list(pointer).filter_map(Value::as_str).collect()
    }

    /// The items of the list at a JSON pointer.
    pub(super) fn list(&self, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.at(pointer)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    }

    /// How many entries the map or list at a JSON pointer has.
    pub(super) fn len(&self, pointer: &str) -> usize {
        match self.at(pointer) {
            Some(Value::Object(fields)) => fields.len(),
            Some(Value::Array(list)) => list.len(),
            _ => 0,
        }
    }

    /// The name.
    pub(super) fn name(&self) -> Value {
        json!(self.text("/metadata/name"))
    }

    /// The name, marked where an annotation makes the object the default of its kind.
    pub(super) fn name_or_default(&self, annotation: &str) -> Value {
        let name = self.text("/metadata/name");
        let annotations = self.at("/metadata/annotations");
        if annotations.and_then(|a| a.get(annotation)) == Some(&json!("true")) {
            return json!(format!("{name} (default)"));
        }
        json!(name)
    }

    /// How long ago the object was created.
    pub(super) fn age(&self) -> Value {
        json!(self.since("/metadata/creationTimestamp"))
    }

    /// How long ago the time at a JSON pointer was.
    pub(super) fn since(&self, pointer: &str) -> String {
        self.since_text(self.text(pointer))
    }

    /// How long ago a time was.
    pub(super) fn since_text(&self, time: &str) -> String {
        parse_time(time).map_or_else(
            || "<unknown>".to_owned(),
            |time| human(elapsed(time, self.now)),
        )
    }

    /// Whether the object is being deleted.
    pub(super) fn is_ending(&self) -> bool {
        !self.text("/metadata/deletionTimestamp").is_empty()
    }

    /// The selector object at a JSON pointer as text.
    pub(super) fn selector(&self, pointer: &str) -> String {
        let Some(selector) = self.at(pointer).filter(|selector| selector.is_object()) else {
            return NONE.to_owned();
        };
        match LabelSelector::from_object(selector) {
            Err(_) => "<error>".to_owned(),
            Ok(selector) if selector.is_empty() => NONE.to_owned(),
            Ok(selector) => selector.to_string(),
        }
    }

    /// The map of labels at a JSON pointer as text.
    pub(super) fn labels(&self, pointer: &str) -> String {
        let Some(Value::Object(labels)) = self.at(pointer) else {
            return NONE.to_owned();
        };
        let mut labels: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        labels.sort();
        if labels.is_empty() {
            return NONE.to_owned();
        }
        labels.join(",")
    }

    /// Names and images of the containers of the pod spec at a JSON pointer.
    pub(super) fn containers(&self, pod_spec: &str) -> [Value; 2] {
        let spec = self.at(pod_spec).unwrap_or(&Value::Null);
        ["name", "image"].map(|field| {
            let texts: Vec<&str> = items(spec, "containers")
                .filter_map(|container| container.get(field)?.as_str())
                .collect();
            json!(texts.join(","))
        })
    }
}

/// The time that a text says.
pub(super) fn parse_time(text: &str) -> Option<SystemTime> {
    let time: Timestamp = text.parse().ok()?;
    let seconds = u64::try_from(time.as_second()).ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// The whole seconds from one time to another, negative when it is to come.
pub(super) fn elapsed(since: SystemTime, now: SystemTime) -> i64 {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match now.duration_since(since) {
        Ok(past) => seconds(past),
        Err(ahead) => -seconds(ahead.duration()),
    }
}
