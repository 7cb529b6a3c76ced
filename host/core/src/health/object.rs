//! Reading an object whose shape nobody vouches for.
//!
//! Whatever has another type than the API gives it counts as absent, so that a
//! malformed status can delay a verdict but never end the program.

use crate::annotations::shortened;
use jiff::Timestamp;
use serde_json::Value;

/// Texts from the cluster are cut to this many characters: a condition may carry
/// 32 KiB, a person reads a line or two.
const MAX_TEXT: usize = 300;

/// A live object.
#[derive(Clone, Copy)]
pub(super) struct Object<'a>(pub(super) &'a Value);

impl<'a> Object<'a> {
    /// What stands at a JSON Pointer; null counts as absent.
    pub(super) fn at(self, pointer: &str) -> Option<&'a Value> {
        self.0.pointer(pointer).filter(|value| !value.is_null())
    }

    pub(super) fn int(self, pointer: &str) -> Option<i64> {
        self.at(pointer)?.as_i64()
    }

    /// A count: absent fields of a status are zero, as Go leaves them out.
    pub(super) fn count(self, pointer: &str) -> i64 {
        self.int(pointer).unwrap_or(0)
    }

    pub(super) fn text(self, pointer: &str) -> Option<&'a str> {
        self.at(pointer)?.as_str().filter(|text| !text.is_empty())
    }

    pub(super) fn is_true(self, pointer: &str) -> bool {
        self.at(pointer) == Some(&Value::Bool(true))
    }

    pub(super) fn items(self, pointer: &str) -> impl Iterator<Item = Object<'a>> {
        self.at(pointer)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(Object)
    }

    pub(super) fn time(self, pointer: &str) -> Option<Timestamp> {
        self.text(pointer)?.parse().ok()
    }

    pub(super) fn generation(self) -> Option<i64> {
        self.int("/metadata/generation")
    }

    pub(super) fn deleting(self) -> bool {
        self.at("/metadata/deletionTimestamp").is_some()
    }

    pub(super) fn conditions(self) -> impl Iterator<Item = Condition<'a>> {
        self.items("/status/conditions").filter_map(Condition::of)
    }

    /// The condition of a type, if it speaks of the current generation.
    ///
    /// One with an `observedGeneration` of its own that is older is a leftover
    /// (Kubernetes API conventions, "Typical status properties").
    pub(super) fn condition(self, kind: &str) -> Option<Condition<'a>> {
        self.conditions()
            .find(|condition| condition.kind == kind)
            .filter(|condition| match (condition.observed, self.generation()) {
                (Some(observed), Some(generation)) => observed >= generation,
                _ => true,
            })
    }
}

/// One entry of `status.conditions`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition<'a> {
    pub(super) kind: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    message: &'a str,
    pub(super) observed: Option<i64>,
    pub(super) since: Option<Timestamp>,
}

impl<'a> Condition<'a> {
    pub(super) fn of(entry: Object<'a>) -> Option<Self> {
        Some(Self {
            kind: entry.text("/type")?,
            status: entry.text("/status").unwrap_or("Unknown"),
            reason: entry.text("/reason").unwrap_or(""),
            message: entry.text("/message").unwrap_or(""),
            observed: entry.int("/observedGeneration"),
            since: entry.time("/lastTransitionTime"),
        })
    }

    pub(super) fn is_true(self) -> bool {
        self.status == "True"
    }

    pub(super) fn is_false(self) -> bool {
        self.status == "False"
    }

    /// `Ready: InstallFailed: no such chart`, without the parts that are missing.
    pub(super) fn says(self) -> String {
        let parts = [self.kind, self.reason, self.message];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        shortened(&parts.join(": "), MAX_TEXT)
    }
}

/// A text from the cluster, at a length that people read.
pub(super) fn readable(text: &str) -> String {
    shortened(text, MAX_TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_has_another_type_is_absent() {
        let object = json!({"status": {"a": "1", "b": null, "c": 1.5, "d": {}, "e": ""}});
        let object = Object(&object);
        for field in ["a", "b", "c", "d", "e", "f"] {
            assert_eq!(object.int(&format!("/status/{field}")), None, "{field}");
        }
        assert!(object.at("/status/b").is_none());
        assert!(object.text("/status/e").is_none());
        assert_eq!(object.items("/status/d").count(), 0);
    }

    #[test]
    fn a_condition_of_an_older_generation_does_not_count() {
        for (observed, counts) in [
            (json!(1), false),
            (json!(2), true),
            (json!(3), true),
            (json!(null), true),
            (json!("1"), true),
        ] {
            let object = json!({"metadata": {"generation": 2}, "status": {"conditions": [
                {"type": "Ready", "status": "True", "observedGeneration": observed}]}});
            assert_eq!(
                Object(&object).condition("Ready").is_some(),
                counts,
                "{observed}"
            );
        }
    }

    #[test]
    fn a_condition_says_what_it_has() {
        let says = |entry: Value| Condition::of(Object(&entry)).map(Condition::says);
        assert_eq!(says(json!({"type": "Ready"})), Some("Ready".into()));
        assert_eq!(
            says(json!({"type": "Ready", "reason": "A", "message": "b"})),
            Some("Ready: A: b".into())
        );
        assert_eq!(says(json!({"status": "True"})), None);
    }
}
