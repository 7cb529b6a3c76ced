//! The columns that a CustomResourceDefinition asks for.

use serde_json::{Value, json};

use super::column::{Cells, Column, elapsed, parse_time};
use super::duration::human;
use crate::crd::columns::JsonPath;
use crate::kinds::edit::{integer, text};

/// Parsed `additionalPrinterColumns`.
#[derive(Debug)]
pub(super) struct CustomColumns(Vec<CustomColumn>);

#[derive(Debug)]
struct CustomColumn {
    definition: Value,
    kind: String,
    path: Option<JsonPath>,
}

impl CustomColumns {
    /// Without columns, the age is shown.
    pub(super) fn parse(columns: &[Value]) -> Self {
        let age = json!({
            "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        });
        let columns = if columns.is_empty() {
            std::slice::from_ref(&age)
        } else {
            columns
        };
        CustomColumns(columns.iter().map(CustomColumn::parse).collect())
    }

    pub(super) fn definitions(&self) -> Vec<Value> {
        let own = self.0.iter().map(|column| column.definition.clone());
        std::iter::once(Column::NAME.definition())
            .chain(own)
            .collect()
    }

    pub(super) fn cells(&self, shown: &Cells<'_>) -> Vec<Value> {
        let own = self.0.iter().map(|column| column.cell(shown));
        std::iter::once(shown.name()).chain(own).collect()
    }
}

impl CustomColumn {
    fn parse(column: &Value) -> Self {
        let path = text(column, "jsonPath");
        let description = match text(column, "description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            given => given.to_owned(),
        };
        CustomColumn {
            definition: json!({
                "name": text(column, "name"),
                "type": text(column, "type"),
                "format": text(column, "format"),
                "description": description,
                "priority": integer(column, "priority").unwrap_or(0),
            }),
            kind: text(column, "type").to_owned(),
            path: JsonPath::parse(path),
        }
    }

    fn cell(&self, shown: &Cells<'_>) -> Value {
        let found = self
            .path
            .as_ref()
            .and_then(|path| path.find(shown.object).into_iter().next());
        let Some(value) = found.filter(|value| !value.is_null()) else {
            return Value::Null;
        };
        match (self.kind.as_str(), value) {
            ("string", Value::String(text)) => json!(text),
            ("string", other) => json!(other.to_string()),
            ("integer", Value::Number(number)) => whole(number),
            ("number", Value::Number(number)) => json!(number),
            ("boolean", Value::Bool(_)) => value.clone(),
            ("date", Value::String(text)) => match parse_time(text) {
                Some(time) => json!(human(elapsed(time, shown.now))),
                None => json!("<invalid>"),
            },
            _ => Value::Null,
        }
    }
}

/// A number without its fraction.
fn whole(number: &serde_json::Number) -> Value {
    match number.as_i64() {
        Some(whole) => json!(whole),
        None => {
            let text = number.to_string();
            let digits = text.split('.').next().unwrap_or_default();
            digits.parse::<i64>().map_or(Value::Null, |n| json!(n))
        }
    }
}
