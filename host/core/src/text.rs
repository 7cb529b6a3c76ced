//! An object as JSON text, to whose metadata something can still be added.
//!
//! What is sent of an object is a text that its digest was made of, and two things more: that
//! digest, and which object it is meant for. So it is written once, and these are put where
//! they belong. Of most objects that are made, nobody looks at the value any more.

use memchr::memmem;
use serde_json::Value;
use std::sync::OnceLock;

/// Most objects are no longer.
const USUAL_BYTES: usize = 1536;

/// Fields of `metadata` by which an object says itself which one it is meant for.
const TELLING: [&str; 2] = ["uid", "resourceVersion"];

/// An object as [`serde_json::to_writer`] writes it, but for what was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectText {
    bytes: Vec<u8>,
    /// Where the first field of `metadata` stands, or would; none where it is no object.
    metadata: Option<usize>,
    /// The same of `metadata.annotations`.
    annotations: Option<usize>,
    /// Whether the metadata itself says which object is meant.
    tells: bool,
    /// Whether it has a status.
    has_status: bool,
}

impl ObjectText {
    /// Writes an object. What is none is written too, and then has no metadata.
    pub fn of(object: &Value) -> Self {
        let mut this = Self {
            bytes: Vec::with_capacity(USUAL_BYTES),
            metadata: None,
            annotations: None,
            tells: false,
            has_status: false,
        };
        this.object(object, |this, name, value| match value {
            Value::Object(_) if name == "metadata" => this.metadata(value),
            value => {
                this.has_status |= name == "status";
                this.put(value);
            }
        });
        this
    }

    fn metadata(&mut self, metadata: &Value) {
        self.metadata = Some(self.bytes.len() + 1);
        self.object(metadata, |this, name, value| {
            if name == "annotations" && value.is_object() {
                this.annotations = Some(this.bytes.len() + 1);
            }
            this.tells |= TELLING.contains(&name);
            this.put(value);
        });
    }

    fn object(&mut self, object: &Value, mut field: impl FnMut(&mut Self, &str, &Value)) {
        let Value::Object(fields) = object else {
            return self.put(object);
        };
        self.bytes.push(b'{');
        for (index, (name, value)) in fields.iter().enumerate() {
            if index > 0 {
                self.bytes.push(b',');
            }
            self.name(name);
            field(self, name, value);
        }
        self.bytes.push(b'}');
    }

    fn name(&mut self, name: &str) {
        write_text(&mut self.bytes, name);
        self.bytes.push(b':');
    }

    fn put(&mut self, value: &Value) {
        // Writing values into memory cannot fail.
        let written = serde_json::to_writer(&mut self.bytes, value);
        debug_assert!(written.is_ok(), "{written:?}");
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the object has a `status`.
    pub fn has_status(&self) -> bool {
        self.has_status
    }

    /// Whether some part of it has such a name or text; perhaps also where not.
    pub fn may_mention(&self, text: &str) -> bool {
        // Only what is escaped could be the text in disguise.
        memmem::find(&self.bytes, text.as_bytes()).is_some() || self.bytes.contains(&b'\\')
    }

    /// Adds an annotation that the object lacks. Says whether there was a place for it.
    pub(crate) fn annotate(&mut self, name: &str, value: &str) -> bool {
        let Some(at) = self.annotations else {
            return false;
        };
        let mut entry = Vec::with_capacity(name.len() + value.len() + 6);
        write_entry(&mut entry, name, value);
        if self.bytes.get(at) != Some(&b'}') {
            entry.push(b',');
        }
        self.bytes.splice(at..at, entry);
        // The metadata begins before its annotations. There may be thousands of such texts.
        self.bytes.shrink_to_fit();
        true
    }

    /// The text with these fields in its metadata. None where it has no metadata, or says
    /// itself which object is meant.
    pub fn meant_for<'a>(
        &self,
        fields: impl Iterator<Item = (&'static str, &'a str)>,
    ) -> Option<Vec<u8>> {
        let (before, after) = self.bytes.split_at_checked(self.metadata?)?;
        if self.tells {
            return None;
        }
        const MORE: usize = 128;
        let mut text = Vec::with_capacity(self.bytes.len() + MORE);
        text.extend_from_slice(before);
        let mut lacks_comma = false;
        for (name, value) in fields {
            if lacks_comma {
                text.push(b',');
            }
            write_entry(&mut text, name, value);
            lacks_comma = true;
        }
        if lacks_comma && after.first() != Some(&b'}') {
            text.push(b',');
        }
        text.extend_from_slice(after);
        Some(text)
    }
}

/// An object and its text. Its value can be let go of, and is read anew for who asks.
#[derive(Clone, Debug)]
pub struct Written {
    text: ObjectText,
    value: OnceLock<Value>,
}

impl Written {
    /// The object that a text was written of, but for what was added to both.
    pub(crate) fn new(text: ObjectText, value: Value) -> Self {
        Self {
            text,
            value: OnceLock::from(value),
        }
    }

    /// The text.
    pub fn text(&self) -> &ObjectText {
        &self.text
    }

    /// The object.
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| self.read())
    }

    /// The object, to go on with.
    pub fn into_value(mut self) -> Value {
        self.take_value()
    }

    /// The same, of what is not used any more.
    pub(crate) fn take_value(&mut self) -> Value {
        self.value.take().unwrap_or_else(|| self.read())
    }

    /// Lets go of the value, which takes several times as much as the text.
    pub fn let_go(&mut self) {
        self.value.take();
    }

    fn read(&self) -> Value {
        // What was written is read.
        let value = serde_json::from_slice(self.text.bytes());
        debug_assert!(value.is_ok(), "{value:?}");
        value.unwrap_or_default()
    }
}

impl From<Value> for Written {
    fn from(value: Value) -> Self {
        Self::new(ObjectText::of(&value), value)
    }
}

/// They are the same where their texts are.
impl PartialEq for Written {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

fn write_entry(text: &mut Vec<u8>, name: &str, value: &str) {
    write_text(text, name);
    text.push(b':');
    write_text(text, value);
}

fn write_text(text: &mut Vec<u8>, value: &str) {
    // Writing text into memory cannot fail.
    let written = serde_json::to_writer(text, value);
    debug_assert!(written.is_ok(), "{written:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(text: &[u8]) -> Value {
        serde_json::from_slice(text).unwrap()
    }

    /// JSON with the names that matter in many places.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z\"\\\\é\n}{]{0,6}".prop_map(Value::from),
        ];
        let name = prop_oneof!["metadata", "annotations", "uid", "spec", "[a-z\"}]{0,3}"];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(name.clone(), inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_text_is_that_of_the_object(object in value(), uid in "[a\"\\\\]{0,3}") {
            let mut text = ObjectText::of(&object);
            let written = object.to_string();
            prop_assert_eq!(text.bytes(), written.as_bytes());
            let mut expected = object;
            let annotated = text.annotate("reeve.dev/applied", "a\"b");
            let annotations = expected.pointer_mut("/metadata/annotations");
            let annotations = annotations.and_then(Value::as_object_mut);
            prop_assert_eq!(annotated, annotations.is_some());
            if let Some(annotations) = annotations {
                annotations.insert("reeve.dev/applied".to_owned(), json!("a\"b"));
            }
            prop_assert_eq!(&read(text.bytes()), &expected);
            for fields in [&[][..], &[("uid", &*uid)], &[("uid", "u"), ("resourceVersion", "1")]] {
                let meant = text.meant_for(fields.iter().copied());
                let metadata = expected.get("metadata").and_then(Value::as_object);
                let takes = metadata.is_some_and(|fields| !fields.contains_key("uid"));
                prop_assert_eq!(meant.is_some(), takes);
                let Some(meant) = meant else { continue };
                let mut with = expected.clone();
                for (name, value) in fields {
                    with["metadata"][*name] = json!(value);
                }
                // Each field is there once: the last of two would hide the first.
                prop_assert_eq!(meant.len(), with.to_string().len());
                prop_assert_eq!(read(&meant), with);
            }
        }
    }

    /// As deep as what is read may be, and with numbers that are not exact.
    #[test]
    fn a_value_that_was_let_go_of_comes_back() {
        let mut value = json!({"n": [0.1, 1.5e300, -7, u64::MAX], "t": "\u{0}é"});
        for _ in 0..125 {
            value = json!({"metadata": value});
        }
        let mut written = Written::from(value.clone());
        written.let_go();
        assert!(written.value.get().is_none());
        assert_eq!(written.value(), &value);
        written.let_go();
        assert_eq!(written, Written::from(value.clone()));
        assert_eq!(written.into_value(), value);
    }

    #[test]
    fn what_an_object_has_is_known() {
        for (object, status, mentions) in [
            (json!({"status": {}}), true, false),
            (json!({"spec": {"status": 1}}), false, false),
            (
                json!({"metadata": {"annotations": {"a/b": "c"}}}),
                false,
                true,
            ),
            (json!({"metadata": {"name": "\n"}}), false, true),
        ] {
            let text = ObjectText::of(&object);
            assert_eq!(
                (text.has_status(), text.may_mention("a/b")),
                (status, mentions)
            );
        }
    }

    #[test]
    fn whoever_tells_which_is_meant_is_not_told() {
        for metadata in [
            json!({"uid": "u"}),
            json!({"resourceVersion": "1"}),
            json!("m"),
        ] {
            let text = ObjectText::of(&json!({"kind": "A", "metadata": metadata}));
            assert_eq!(text.meant_for([("uid", "v")].into_iter()), None);
        }
        let text = ObjectText::of(&json!({"metadata": {}}));
        let meant = text.meant_for([("uid", "v")].into_iter()).unwrap();
        assert_eq!(read(&meant), json!({"metadata": {"uid": "v"}}));
    }
}
