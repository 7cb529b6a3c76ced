//! What is applied, as it is sent.

use super::preconditions::{self, Preconditions};
use reeve_core::ownership::Stamped;
use reeve_core::text::Written;
use serde_json::Value;

/// What is applied.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// An object.
    Value(&'a Value),
    /// One that was written as text already.
    Written(&'a Written),
}

impl<'a> From<&'a Value> for Body<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Value(value)
    }
}

impl<'a> From<&'a Stamped> for Body<'a> {
    fn from(stamped: &'a Stamped) -> Self {
        Self::Written(stamped.written())
    }
}

impl<'a> Body<'a> {
    /// The object.
    pub fn value(self) -> &'a Value {
        match self {
            Self::Value(value) => value,
            Self::Written(written) => written.value(),
        }
    }

    /// What is sent of it to what is meant.
    pub(super) fn sent(self, onto: Preconditions<'_>) -> serde_json::Result<Vec<u8>> {
        let text = match self {
            Self::Value(_) => None,
            Self::Written(written) => written.text().meant_for(onto.fields()),
        };
        match text {
            Some(text) => Ok(text),
            None => preconditions::sent(self.value(), onto),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::{GroupVersionKind, ObjectReference, UnitKey, ownership::Owner};
    use serde_json::json;

    /// An object that is sent as it was written is the one that would be written now.
    #[test]
    fn a_text_is_sent_as_its_object_would_be() {
        let reference = |kind: &str, namespace: Option<&str>| {
            let kind = GroupVersionKind::new("", "v1", kind);
            ObjectReference::new(kind, namespace.map(str::to_owned), "n")
        };
        let owner = Owner {
            unit: UnitKey::new("p", reference("Node", None)),
            uid: "u".to_owned(),
        };
        for metadata in [
            json!({"name": "n", "annotations": {"a": "b"}}),
            json!({"name": "n", "uid": "theirs"}),
            json!({"name": "n", "annotations": "none"}),
        ] {
            let body = json!({"kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}});
            let (reference, tied) = (reference("ConfigMap", Some("a")), true);
            for stamped in [
                owner.stamp_as(reference.clone(), body.clone(), tied),
                owner.contribute(reference, body),
            ] {
                for (uid, resource_version) in [(None, None), (Some("u"), Some("7"))] {
                    let onto = Preconditions {
                        uid,
                        resource_version,
                    };
                    let [text, value] = [Body::from(&stamped), stamped.body().into()]
                        .map(|body| body.sent(onto).unwrap());
                    let read = |text: &[u8]| serde_json::from_slice::<Value>(text).unwrap();
                    assert_eq!(read(&text), read(&value));
                    assert_eq!(text.len(), value.len(), "no field is there twice");
                }
            }
        }
    }
}
