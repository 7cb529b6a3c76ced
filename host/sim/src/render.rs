//! How objects are shown: as they are, or as metadata only.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};

use crate::http::negotiate::Form;
use crate::resource::Resource;
use crate::rest::Listed;
use crate::store::Object;

/// The form of the objects of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Rendering {
    resource: Arc<Resource>,
    form: Form,
}

impl Rendering {
    /// The form that the caller asked for.
    pub(crate) fn new(resource: Arc<Resource>, form: Form) -> Self {
        Rendering { resource, form }
    }

    /// One object.
    pub(crate) fn one(&self, object: &Object) -> Value {
        let value = object.value_as(&self.resource.api_version);
        match self.form {
            Form::Object => value,
            Form::Metadata => partial(value),
        }
    }

    /// A list of whole objects, as JSON, without parsing any.
    pub(crate) fn list_json(&self, listed: &Listed) -> Bytes {
        let head = format!(
            "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{},\"items\":[",
            json!(self.resource.list_kind),
            json!(self.resource.api_version),
            list_metadata(listed),
        );
        let items = listed.items_json(&self.resource.api_version);
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
        let values = listed
            .objects
            .iter()
            .map(|o| o.value_as(&self.resource.api_version));
        match self.form {
            Form::Object => json!({
                "kind": self.resource.list_kind,
                "apiVersion": self.resource.api_version,
                "metadata": list_metadata(listed),
                "items": values.collect::<Vec<_>>(),
            }),
            Form::Metadata => json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": list_metadata(listed),
                "items": values.map(partial).collect::<Vec<_>>(),
            }),
        }
    }

    /// One object of a watch, as JSON.
    pub(crate) fn event(&mut self, object: &Object) -> Bytes {
        if self.form == Form::Object {
            return object.json(&self.resource.api_version);
        }
        Bytes::from(self.one(object).to_string())
    }

    /// The object of a bookmark, as JSON: nothing but a version.
    pub(crate) fn bookmark(&mut self, version: u64, end_of_initial_events: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if end_of_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = json!({
            "kind": self.resource.kind,
            "apiVersion": self.resource.api_version,
            "metadata": metadata,
        });
        let value = match self.form {
            Form::Object => object,
            Form::Metadata => partial(object),
        };
        Bytes::from(value.to_string())
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

fn list_metadata(listed: &Listed) -> Value {
    let mut metadata = json!({"resourceVersion": listed.version.to_string()});
    if !listed.next.is_empty() {
        metadata["continue"] = json!(listed.next);
    }
    if let Some(remaining) = listed.remaining {
        metadata["remainingItemCount"] = json!(remaining);
    }
    metadata
}
