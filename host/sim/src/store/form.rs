//! Objects that many servers make alike.

use bytes::Bytes;
use serde_json::{Value, json};

use super::object::Object;

/// What is filled in, as nothing else in an object is written.
const BLANK: &str = "\u{1}";
/// The same in JSON.
const BLANK_JSON: &str = "\\u0001";

/// An object that is written out but for its version, its uid and when it was made.
/// Making it costs little more than copying its JSON.
#[derive(Debug)]
pub(crate) struct Form {
    blank: Object,
    /// The JSON before the time, and after the time, the version and the uid, which is
    /// their order.
    before: Box<str>,
    after: [Box<str>; 3],
}

impl Form {
    /// The form of an object; none of one that looks as if something were left blank.
    pub(crate) fn new(key: &str, mut value: Value) -> Option<Self> {
        for field in ["creationTimestamp", "resourceVersion", "uid"] {
            value["metadata"][field] = json!(BLANK);
        }
        let json = value.to_string();
        let mut parts = json.split(BLANK_JSON).map(Box::from);
        let form = Form {
            blank: Object::unstored(key, &value),
            before: parts.next()?,
            after: [parts.next()?, parts.next()?, parts.next()?],
        };
        parts.next().is_none().then_some(form)
    }

    /// `namespace/name`, or `name`.
    pub(crate) fn key(&self) -> &str {
        self.blank.key()
    }

    /// The object as made in `version`.
    pub(super) fn filled_in(&self, version: u64, uid: &str, created: &str) -> Object {
        let version_text = version.to_string();
        let mut json = Vec::with_capacity(self.blank.size() + uid.len() + created.len());
        json.extend_from_slice(self.before.as_bytes());
        for (text, after) in [created, &version_text, uid].into_iter().zip(&self.after) {
            json.extend_from_slice(text.as_bytes());
            json.extend_from_slice(after.as_bytes());
        }
        self.blank.made(version, uid, Bytes::copy_from_slice(&json))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_make_what_writing_makes() {
        let object = |uid: &str, created: &str| {
            json!({
                "apiVersion": "v1",
                "kind": "Thing",
                "metadata": {
                    "name": "n", "namespace": "ns", "labels": {"b": "c", "a": "\"b\""},
                    "uid": uid, "creationTimestamp": created,
                },
                "x": ["y", {"uid": "z"}],
            })
        };
        let form = Form::new("ns/n", object("", "")).unwrap();
        assert_eq!(
            form.filled_in(12, "u-1", "2023-11-14T22:13:20Z"),
            Object::new("ns/n", 12, object("u-1", "2023-11-14T22:13:20Z"))
        );
        assert!(Form::new("n", json!({"metadata": {}, "x": BLANK})).is_none());
    }
}
