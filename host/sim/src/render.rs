//! How objects are shown: as they are, as rows of a table, or as metadata only.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use memchr::memchr2;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::http::negotiate::Form;
use crate::http::query::Query;
use crate::kinds::edit::items_mut;
use crate::resource::{Nature, Resource};
use crate::rest::Listed;
use crate::store::Object;
use crate::table::{Include, Table};

/// The form of the objects of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Rendering {
    resource: Arc<Resource>,
    form: Form,
    clock: Clock,
    /// What the rows of a table carry.
    include: Include,
    /// Whether the columns of the table were described already, which in a watch
    /// is done once.
    described: bool,
}

impl Rendering {
    /// The form that the caller asked for.
    pub(crate) fn new(resource: Arc<Resource>, form: Form, clock: &Clock, query: &Query) -> Self {
        let include = match query.get("includeObject") {
            Some("None") => Include::None,
            Some("Object") => Include::Object,
            _ => Include::Metadata,
        };
        Rendering {
            resource,
            form,
            clock: clock.clone(),
            include,
            described: false,
        }
    }

    /// What the objects are.
    pub(crate) fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// One object.
    pub(crate) fn one(&self, object: &Object) -> Value {
        let value = object.value_as(&self.resource);
        match self.form {
            Form::Object => value,
            Form::Metadata => self.metadata(value),
            Form::Table => self.table(&[value], version_metadata(object.version())),
        }
    }

    /// The scale of an object.
    pub(crate) fn scale(&self, scale: Value) -> Value {
        match self.form {
            Form::Object => scale,
            Form::Metadata => partial(scale),
            Form::Table => {
                let metadata = json!({"resourceVersion": scale["metadata"]["resourceVersion"]});
                let now = self.clock.now();
                let table = match &self.resource.nature {
                    Nature::Builtin(_) => Table::of_scale(),
                    Nature::Custom(_) => Table::of_custom_scale(),
                };
                table.render(&[scale], metadata, self.include, now)
            }
        }
    }

    /// A list of whole objects, as JSON, without parsing any.
    pub(crate) fn list_json(&self, listed: &Listed) -> Bytes {
        let head = format!(
            "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{},\"items\":[",
            json!(self.resource.list_kind),
            json!(self.resource.api_version),
            self.list_metadata(listed),
        );
        let objects = listed.objects.iter();
        let items: Vec<Bytes> = objects
            .map(|object| {
                let json = object.json(&self.resource);
                // The items of built-in kinds leave out what the list says of them.
                if self.resource.is_custom() {
                    json
                } else {
                    without_type(&json)
                }
            })
            .collect();
        let size = items.iter().map(|item| item.len() + 1).sum::<usize>();
        let mut body = BytesMut::with_capacity(head.len() + size + 2);
        body.put_slice(head.as_bytes());
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                body.put_u8(b',');
            }
            body.put_slice(item);
        }
        body.put_slice(b"]}");
        body.freeze()
    }

    /// A list, in the form that was asked for.
    pub(crate) fn list(&self, listed: &Listed) -> Value {
        let values = listed.objects.iter().map(|o| o.value_as(&self.resource));
        match self.form {
            Form::Object => json!({
                "kind": self.resource.list_kind,
                "apiVersion": self.resource.api_version,
                "metadata": self.list_metadata(listed),
                "items": values.map(|value| self.item(value)).collect::<Vec<_>>(),
            }),
            Form::Metadata => json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": list_metadata(listed),
                "items": values.map(|value| self.metadata(value)).collect::<Vec<_>>(),
            }),
            Form::Table => self.table(&values.collect::<Vec<_>>(), list_metadata(listed)),
        }
    }

    /// One object of a watch, as JSON.
    pub(crate) fn event(&mut self, object: &Object) -> Bytes {
        if self.form == Form::Object {
            return object.json(&self.resource);
        }
        let mut value = self.one(object);
        self.describe_once(&mut value);
        Bytes::from(value.to_string())
    }

    /// The object of a bookmark, as JSON: nothing but a version.
    pub(crate) fn bookmark(&mut self, version: u64, end_of_initial_events: bool) -> Bytes {
        if self.form == Form::Object && !end_of_initial_events {
            // Most are such, and there is nothing in their names that is written otherwise.
            let (api_version, kind) = (&self.resource.api_version, &self.resource.kind);
            return Bytes::from(format!(
                r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"resourceVersion":"{version}"}}}}"#
            ));
        }
        let mut metadata = version_metadata(version);
        if end_of_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = json!({
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version,
            "metadata": metadata,
        });
        let mut value = match self.form {
            Form::Object => object,
            Form::Metadata => partial(object),
            Form::Table => self.table(&[object], version_metadata(version)),
        };
        self.describe_once(&mut value);
        Bytes::from(value.to_string())
    }

    fn item(&self, mut value: Value) -> Value {
        if !self.resource.is_custom()
            && let Some(fields) = value.as_object_mut()
        {
            fields.remove("apiVersion");
            fields.remove("kind");
        }
        value
    }

    fn list_metadata(&self, listed: &Listed) -> Value {
        let mut metadata = list_metadata(listed);
        if self.resource.is_custom() && listed.next.is_empty() {
            metadata["continue"] = json!("");
        }
        metadata
    }

    fn describe_once(&mut self, value: &mut Value) {
        if self.form == Form::Table {
            if self.described {
                value["columnDefinitions"] = Value::Null;
            }
            self.described = true;
        }
    }

    fn table(&self, objects: &[Value], metadata: Value) -> Value {
        let table = match &self.resource.nature {
            Nature::Builtin(kind) => Table::of_kind(kind),
            Nature::Custom(custom) => Table::of_columns(&custom.columns),
        };
        let now = self.clock.now();
        let internal = objects.iter().map(|object| self.resource.internal(object));
        let Some(internal) = internal.collect::<Option<Vec<Value>>>() else {
            return table.render(objects, metadata, self.include, now);
        };
        let mut table = table.render(&internal, metadata, self.include, now);
        if self.include == Include::Object {
            for (row, object) in items_mut(&mut table, "rows").zip(objects) {
                row["object"] = object.clone();
            }
        }
        table
    }

    /// The metadata of an object, as an object of its own.
    fn metadata(&self, object: Value) -> Value {
        partial(self.resource.internal(&object).unwrap_or(object))
    }
}

/// The metadata of an object, as an object of its own.
pub(crate) fn partial(mut object: Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"].take(),
    })
}

/// The JSON of an object as it is stored, without `apiVersion` and `kind`; it is
/// not parsed for that.
fn without_type(json: &Bytes) -> Bytes {
    let mut out = BytesMut::with_capacity(json.len());
    out.put_u8(b'{');
    for field in fields(json) {
        let is_type = [&b"\"apiVersion\":"[..], b"\"kind\":"];
        if is_type.iter().any(|name| field.starts_with(name)) {
            continue;
        }
        if out.len() > 1 {
            out.put_u8(b',');
        }
        out.put_slice(field);
    }
    out.put_u8(b'}');
    out.freeze()
}

/// The fields of an object in compact JSON, each with its name.
fn fields(json: &[u8]) -> impl Iterator<Item = &[u8]> {
    let inside = json.get(1..json.len().saturating_sub(1));
    let mut rest = inside.filter(|inside| !inside.is_empty());
    std::iter::from_fn(move || {
        let all = rest.take()?;
        let end = end_of_field(all);
        rest = all.get(end + 1..);
        all.get(..end)
    })
}

/// Where the first of several fields ends: at a comma, or the end of the last.
fn end_of_field(fields: &[u8]) -> usize {
    let (mut depth, mut at) = (0_i32, 0);
    while let Some(byte) = fields.get(at) {
        match byte {
            b'"' => at = end_of_text(fields, at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    fields.len()
}

/// Where the quotation mark is that ends the text which the one at `start` begins. Texts
/// may be most of an object.
fn end_of_text(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(next) = json.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += next;
        if json.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    json.len()
}

fn version_metadata(version: u64) -> Value {
    json!({"resourceVersion": version.to_string()})
}

fn list_metadata(listed: &Listed) -> Value {
    let mut metadata = version_metadata(listed.version);
    if !listed.next.is_empty() {
        metadata["continue"] = json!(listed.next);
    }
    if let Some(remaining) = listed.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    metadata
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[\\[\\]{}\"\\\\,:a\n]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[\",}\\\\k]{0,3}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn nothing_but_the_type_is_left_out(
            fields in prop::collection::btree_map("apiVersion|kind|metadata|[\",{\\\\]{0,3}", value(), 0..5),
        ) {
            let mut object = Value::Object(fields.into_iter().collect());
            let shown = without_type(&Bytes::from(object.to_string()));
            if let Some(fields) = object.as_object_mut() {
                fields.remove("apiVersion");
                fields.remove("kind");
            }
            prop_assert_eq!(serde_json::from_slice::<Value>(&shown).unwrap(), object);
        }
    }
}
