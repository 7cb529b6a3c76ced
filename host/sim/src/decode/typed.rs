//! Decoding of a document into a type.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value, json};

use super::Decoded;
use super::document::{Document, Place, complain, whole};
use super::time::TimeForm;
use super::types::{Fields, Shape, Type};
use crate::quantity::Quantity;

/// Reads a document into a type. Fields without a value are left out.
pub(super) fn decode(ty: Type, document: Document) -> Result<Decoded, String> {
    let mut decoder = Decoder::default();
    let object = decoder.value(ty, document, Place::Root);
    match decoder.failure {
        Some(failure) => Err(failure),
        None => Ok(Decoded {
            object: object.unwrap_or_else(|| json!({})),
            complaints: decoder.complaints,
            hollow: decoder.hollow,
            blank: decoder.blank,
            shown: None,
        }),
    }
}

#[derive(Default)]
struct Decoder {
    /// The struct that is being read, and the names of the fields on the way to
    /// the value, as messages print them.
    holder: &'static str,
    fields: Vec<&'static str>,
    complaints: Vec<String>,
    hollow: BTreeSet<String>,
    blank: Vec<(String, String)>,
    /// The first value of a wrong type; the rest is read all the same.
    failure: Option<String>,
}

impl Decoder {
    /// The value, or none for null and for what could not be read.
    fn value(&mut self, ty: Type, document: Document, place: Place<'_>) -> Option<Value> {
        if document == Document::Null {
            return None;
        }
        match (ty.shape(), document) {
            (Shape::Any, document) => Some(document.into_value(&mut Vec::new())),
            (Shape::Text, Document::Text(text)) => Some(Value::String(text)),
            (Shape::Bool, Document::Bool(value)) => Some(Value::Bool(value)),
            (Shape::Integer(low, high), Document::Number(number)) => {
                self.integer(ty, &number, low, high)
            }
            (Shape::Float, Document::Number(number)) => Some(Value::Number(whole(number))),
            (Shape::Bytes, Document::Text(text)) => self.bytes(&text),
            (Shape::IntOrText, Document::Text(text)) => Some(Value::String(text)),
            (Shape::IntOrText, Document::Number(number)) => {
                self.integer(ty, &number, i64::from(i32::MIN), i64::from(i32::MAX))
            }
            (Shape::Quantity, document) => self.quantity(document),
            (Shape::Time(form), Document::Text(text)) => self.time(form, &text),
            (Shape::Time(_), other) => self.mismatch_as(other.sort(), "string"),
            (Shape::List(item), Document::List(items)) => {
                let read = items.into_iter().enumerate().map(|(index, document)| {
                    let value = self.value(item, document, Place::Item(&place, index));
                    value.unwrap_or_else(|| zero(item))
                });
                let read: Vec<Value> = read.collect();
                self.unless_empty(read.is_empty(), Value::Array(read))
            }
            (Shape::Map(item), Document::Map(entries)) => self.map(item, entries, place),
            (Shape::Struct(fields), Document::Map(entries)) => {
                let outer = std::mem::replace(&mut self.holder, ty.bare_name());
                let object = self.structure(fields, entries, place);
                self.holder = outer;
                Some(object)
            }
            (_, other) => {
                let sort = other.sort();
                self.mismatch(ty, sort)
            }
        }
    }

    fn structure(
        &mut self,
        fields: &'static Fields,
        entries: Vec<(String, Document)>,
        place: Place<'_>,
    ) -> Value {
        let mut object = Map::new();
        let mut seen: Vec<&'static str> = Vec::with_capacity(entries.len().min(fields.len()));
        for (name, document) in entries {
            let Some((key, field)) = fields.get_key_value(name.as_str()) else {
                complain(&mut self.complaints, "unknown", Place::Field(&place, &name));
                continue;
            };
            let here = Place::Field(&place, key);
            if seen.contains(key) {
                complain(&mut self.complaints, "duplicate", here);
            } else {
                seen.push(key);
            }
            // Owners are forgotten by an empty list of them.
            let keeps_empty = field.keeps_empty || name == "managedFields";
            let is_empty = matches!(&document, Document::List(items) if items.is_empty());
            self.fields.push(key);
            let value = self.value(field.ty, document, here);
            self.fields.pop();
            match value {
                Some(value) => object.insert(name, value),
                None if is_empty && keeps_empty => object.insert(name, json!([])),
                None => object.remove(*key),
            };
        }
        Value::Object(object)
    }

    fn map(
        &mut self,
        item: Type,
        entries: Vec<(String, Document)>,
        place: Place<'_>,
    ) -> Option<Value> {
        let mut map = Map::new();
        for (name, document) in entries {
            let here = Place::Field(&place, &name);
            if map.contains_key(&name) {
                complain(&mut self.complaints, "duplicate", here);
            }
            if document == Document::Null && matches!(item.shape(), Shape::Bytes) {
                self.blank.push((self.fields.join("."), name.clone()));
            }
            let value = self.value(item, document, here);
            map.insert(name, value.unwrap_or_else(|| zero(item)));
        }
        self.unless_empty(map.is_empty(), Value::Object(map))
    }

    /// The value, unless it holds nothing: where it is is noted then.
    fn unless_empty(&mut self, is_empty: bool, value: Value) -> Option<Value> {
        if !is_empty {
            return Some(value);
        }
        self.hollow.insert(self.fields.join("."));
        None
    }

    fn integer(&mut self, ty: Type, number: &Number, low: i64, high: i64) -> Option<Value> {
        match number.as_i64() {
            Some(value) if (low..=high).contains(&value) => Some(json!(value)),
            _ => {
                let sort = format!("number {number}");
                self.mismatch(ty, &sort)
            }
        }
    }

    /// A quantity stays as it is written here; its kind brings it into one form.
    fn quantity(&mut self, document: Document) -> Option<Value> {
        let text = match &document {
            Document::Text(text) => text.trim().to_owned(),
            Document::Number(number) => number.to_string(),
            // No text of a quantity.
            _ => "?".to_owned(),
        };
        match Quantity::parse(&text) {
            Ok(_) => Some(document.into_value(&mut Vec::new())),
            Err(why) => self.fail(why.to_string()),
        }
    }

    fn bytes(&mut self, text: &str) -> Option<Value> {
        // Line breaks are passed over, as by the server.
        let plain = text.replace(['\r', '\n'], "");
        match STANDARD.decode(&plain) {
            // Only what encoding would give is decoded.
            Ok(_) => Some(Value::String(plain)),
            Err(_) => {
                let at = first_bad_byte(plain.as_bytes());
                self.fail(format!("illegal base64 data at input byte {at}"))
            }
        }
    }

    fn time(&mut self, form: TimeForm, text: &str) -> Option<Value> {
        match form.read(text) {
            Ok(time) => Some(Value::String(time)),
            Err(why) => self.fail(why),
        }
    }

    /// Notes a value that does not fit its type.
    fn mismatch(&mut self, ty: Type, sort: &str) -> Option<Value> {
        self.mismatch_as(sort, &ty.go_name())
    }

    fn mismatch_as(&mut self, sort: &str, ty: &str) -> Option<Value> {
        let place = if self.fields.is_empty() {
            format!("Go value of type {ty}")
        } else {
            format!(
                "Go struct field {}.{} of type {ty}",
                self.holder,
                self.fields.join(".")
            )
        };
        self.fail(format!("json: cannot unmarshal {sort} into {place}"))
    }

    fn fail(&mut self, why: String) -> Option<Value> {
        self.failure.get_or_insert(why);
        None
    }
}

/// What stands for null inside of a list or map.
fn zero(ty: Type) -> Value {
    match ty.shape() {
        Shape::Text | Shape::Bytes => json!(""),
        Shape::Bool => json!(false),
        Shape::Integer(..) | Shape::Float | Shape::IntOrText => json!(0),
        Shape::Quantity => json!("0"),
        Shape::Any | Shape::Time(_) | Shape::List(_) => Value::Null,
        Shape::Map(_) | Shape::Struct(_) => json!({}),
    }
}

/// Where a text stops to be base64.
fn first_bad_byte(text: &[u8]) -> usize {
    let ok = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    match text.iter().position(|byte| !ok(byte)) {
        // Padding is fine at the end of a group of four, and nowhere else.
        Some(at) if text[at] == b'=' => {
            let end = at.next_multiple_of(4);
            let padded = at % 4 >= 2
                && text
                    .get(at..end)
                    .is_some_and(|rest| rest.iter().all(|b| *b == b'='));
            if padded { end } else { at }
        }
        Some(at) => at,
        None => text.len() - text.len() % 4,
    }
}

#[cfg(test)]
mod tests {
    use super::super::types::of_kind;
    use super::*;

    fn read(api_version: &str, kind: &str, object: Value) -> Result<Decoded, String> {
        decode(of_kind(api_version, kind).unwrap(), Document::from(object))
    }

    #[test]
    fn wrong_types_are_named_as_go_names_them() {
        let check = |object: Value, expected: &str| {
            let object = json!({"spec": object});
            assert_eq!(read("apps/v1", "Deployment", object).unwrap_err(), expected);
        };
        check(
            json!({"replicas": "three"}),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        );
        check(
            json!({"replicas": 1.5}),
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        );
        check(
            json!({"template": {"spec": {"containers": {"name": "c"}}}}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        );
        check(
            json!({"strategy": {"rollingUpdate": {"maxSurge": true}}}),
            "json: cannot unmarshal bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        );
        assert_eq!(
            read(
                "v1",
                "ConfigMap",
                json!({"data": {"k": 1}, "immutable": "no"})
            )
            .unwrap_err(),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
        );
        assert_eq!(
            read(
                "v1",
                "ConfigMap",
                json!({"binaryData": {"k": "not base64!"}})
            )
            .unwrap_err(),
            "illegal base64 data at input byte 3"
        );
    }

    #[test]
    fn unknown_fields_are_left_out_and_told() {
        let object = json!({"spec": {"replica": 1, "template": {"spec": {"containers": [{"name": "c", "port": 1}]}}}});
        let decoded = read("apps/v1", "Deployment", object).unwrap();
        assert_eq!(
            decoded.object,
            json!({"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}})
        );
        let expected = [
            "unknown field \"spec.replica\"",
            "unknown field \"spec.template.spec.containers[0].port\"",
        ];
        assert_eq!(decoded.complaints, expected);
    }

    #[test]
    fn nothing_is_made_of_null() {
        let object = json!({
            "metadata": {"name": "a", "labels": {}, "annotations": {"a": null}, "finalizers": []},
            "data": {"k": null}, "binaryData": null, "immutable": null,
        });
        let decoded = read("v1", "ConfigMap", object).unwrap();
        assert_eq!(
            decoded.object,
            json!({"metadata": {"name": "a", "annotations": {"a": ""}}, "data": {"k": ""}})
        );
    }
}
