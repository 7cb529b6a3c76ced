//! What a guest sees of an object.
//!
//! Stripping is what makes wake rules and replay hold by construction: a field
//! that a guest cannot see cannot change its answer, so a change of it alone is
//! no reason to call it.

mod text;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// Parts of an object that are read, as JSON Pointers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Projection {
    pointers: Vec<Vec<String>>,
}

/// A projection that cannot be meant.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionError {
    /// Not a JSON Pointer into an object.
    #[error("`{0}` is no JSON Pointer: expected text such as `/metadata/labels`")]
    NotAPointer(String),
    /// A field that no guest ever sees.
    #[error("`{0}` is never shown to plugins; remove it")]
    Hidden(String),
    /// So many that to look them up in every object of a list would take long.
    #[error("{0} JSON Pointers are more than {MOST}; name what they have in common")]
    TooMany(usize),
}

/// JSON Pointers of one projection. A rule names a few; who wants more than this wants the
/// object.
const MOST: usize = 256;

/// Metadata that no guest sees: bookkeeping of the API server that changes
/// without anything having changed.
const HIDDEN: &[&str] = &["managedFields", "resourceVersion", "selfLink"];

/// The same, and what by default is not shown either: it counts changes of the whole spec,
/// read or not.
const BOOKKEEPING: &[&str] = &["managedFields", "resourceVersion", "selfLink", "generation"];

impl Projection {
    /// A projection of these JSON Pointers. None stands for all but the status.
    ///
    /// # Errors
    ///
    /// When text is no JSON Pointer, or names bookkeeping that no guest sees, or there are
    /// more than 256.
    pub fn new(pointers: Vec<String>) -> Result<Self, ProjectionError> {
        if pointers.len() > MOST {
            return Err(ProjectionError::TooMany(pointers.len()));
        }
        let mut parsed = Vec::with_capacity(pointers.len());
        for pointer in pointers {
            let path = parse_pointer(&pointer)
                .ok_or_else(|| ProjectionError::NotAPointer(pointer.clone()))?;
            if path[0] == "metadata" && path.get(1).is_some_and(|x| HIDDEN.contains(&x.as_str())) {
                return Err(ProjectionError::Hidden(pointer));
            }
            parsed.push(path);
        }
        parsed.sort();
        parsed.dedup();
        Ok(Self { pointers: parsed })
    }

    /// Whether it stands for all but the status.
    pub fn is_default(&self) -> bool {
        self.pointers.is_empty()
    }

    /// The parts, as JSON Pointers; none when it stands for all but the status.
    pub fn pointers(&self) -> Vec<String> {
        let text = |path: &Vec<String>| {
            path.iter()
                .map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1")))
                .collect()
        };
        self.pointers.iter().map(text).collect()
    }

    /// Whether whoever sees this much of an object can tell what `other` would show of
    /// it: then `other`, applied to that, is `other` applied to the object.
    pub fn covers(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        if other.is_default() {
            return false;
        }
        let shown = |path: &[String]| {
            if self.is_default() {
                let (first, second) = (path[0].as_str(), path.get(1).map(String::as_str));
                // All of the metadata is more than what is shown of it by default.
                return first != "status"
                    && (first != "metadata" || second.is_some_and(|field| field != "generation"));
            }
            self.pointers.iter().any(|own| path.starts_with(own))
        };
        other.pointers.iter().all(|path| shown(path))
    }

    /// Bytes that it takes, roughly: its keys, and a place for each.
    pub fn weight(&self) -> usize {
        let keys = self.pointers.iter().flatten();
        keys.map(|key| key.len() + size_of::<String>()).sum()
    }

    /// Whether a guest sees anything else of one object than of the other: whether
    /// [`Projection::apply`] gives something else. Nothing is copied for it.
    pub fn differs(&self, one: &Value, other: &Value) -> bool {
        // What nests too deep to be made a tree of, nobody can compare.
        if one.is_null() || other.is_null() {
            return true;
        }
        if self.pointers.is_empty() {
            return differs_without_bookkeeping(one, other);
        }
        let field = |path: &[&str]| step_in(one, path) != step_in(other, path);
        let always: [&[&str]; 5] = [
            &["apiVersion"],
            &["kind"],
            &["metadata", "name"],
            &["metadata", "namespace"],
            &["metadata", "uid"],
        ];
        always.into_iter().any(field)
            || self.pointers.iter().any(|path| {
                let (one, other) = (step_in(one, path), step_in(other, path));
                match (one, other) {
                    ((_, Some(one)), (_, Some(other))) if *path == ["metadata"] => {
                        fields_differ(one, other, HIDDEN)
                    }
                    _ => one != other,
                }
            })
    }

    /// What a guest sees of this object.
    ///
    /// `apiVersion`, `kind` and the name, namespace and uid are always there.
    /// Parts that the object lacks are left out.
    pub fn apply(&self, object: &Value) -> Value {
        if self.pointers.is_empty() {
            return without_bookkeeping(object);
        }
        let mut seen = Map::new();
        for field in ["apiVersion", "kind"] {
            if let Some(value) = object.get(field) {
                seen.insert(field.to_owned(), value.clone());
            }
        }
        let mut metadata = Map::new();
        for field in ["name", "namespace", "uid"] {
            if let Some(value) = object.pointer(&format!("/metadata/{field}")) {
                metadata.insert(field.to_owned(), value.clone());
            }
        }
        seen.insert("metadata".to_owned(), Value::Object(metadata));
        let mut seen = Value::Object(seen);
        for path in &self.pointers {
            copy(object, &mut seen, path);
        }
        if let Some(metadata) = seen.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in HIDDEN {
                metadata.remove(*field);
            }
        }
        seen
    }
}

impl Serialize for Projection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.pointers())
    }
}

fn without_bookkeeping(object: &Value) -> Value {
    let Some(fields) = object.as_object() else {
        return object.clone();
    };
    let mut seen = Map::new();
    for (field, value) in fields {
        match field.as_str() {
            "status" => {}
            "metadata" => {
                let mut metadata = value.clone();
                if let Some(metadata) = metadata.as_object_mut() {
                    metadata.retain(|key, _| !BOOKKEEPING.contains(&key.as_str()));
                }
                seen.insert(field.clone(), metadata);
            }
            _ => {
                seen.insert(field.clone(), value.clone());
            }
        }
    }
    Value::Object(seen)
}

fn differs_without_bookkeeping(one: &Value, other: &Value) -> bool {
    let metadata = |object: &Value| object.get("metadata").is_some();
    if !metadata(one) || !metadata(other) {
        return without_bookkeeping(one) != without_bookkeeping(other);
    }
    fields_differ(one, other, &["status", "metadata"])
        || fields_differ(&one["metadata"], &other["metadata"], BOOKKEEPING)
}

/// Whether two values differ; fields of these names do not count.
fn fields_differ(one: &Value, other: &Value, ignored: &[&str]) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
        return one != other;
    };
    let counts = |key: &&String| !ignored.contains(&key.as_str());
    let is_same = |key: &String| one.get(key) == other.get(key);
    !one.keys().filter(counts).all(is_same) || !other.keys().filter(counts).all(is_same)
}

/// What [`copy`] would copy of this path, and how deep that is.
fn step_in<'v>(mut value: &'v Value, path: &[impl AsRef<str>]) -> (usize, Option<&'v Value>) {
    for (depth, key) in path.iter().enumerate() {
        match value.get(key.as_ref()) {
            Some(inner) if inner.is_object() => value = inner,
            found => return (depth, found),
        }
    }
    (path.len(), Some(value))
}

/// RFC 6901, without the pointer to the whole document.
fn parse_pointer(text: &str) -> Option<Vec<String>> {
    let path = text.strip_prefix('/')?;
    let keys: Vec<String> = path
        .split('/')
        .map(|key| key.replace("~1", "/").replace("~0", "~"))
        .collect();
    (!keys[0].is_empty()).then_some(keys)
}

/// Copies what stands at `path`. Lists are copied whole: an index into a list
/// that others edit would name another item tomorrow.
fn copy(from: &Value, to: &mut Value, path: &[String]) {
    let Some((key, rest)) = path.split_first() else {
        *to = from.clone();
        return;
    };
    let (Some(from), Some(fields)) = (from.get(key), to.as_object_mut()) else {
        return;
    };
    if rest.is_empty() || !from.is_object() {
        fields.insert(key.clone(), from.clone());
        return;
    }
    let entry = fields
        .entry(key.clone())
        .or_insert_with(|| Value::Object(Map::new()));
    copy(from, entry, rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn object() -> Value {
        json!({
            "apiVersion": "kubeflow.org/v1",
            "kind": "Profile",
            "metadata": {
                "name": "alice",
                "uid": "1",
                "generation": 3,
                "resourceVersion": "77",
                "labels": {"a/b": "1", "c": "2"},
                "managedFields": [{"manager": "x"}],
            },
            "spec": {"owner": {"name": "alice", "kind": "User"}, "plugins": [1, 2]},
            "status": {"phase": "Ready"},
        })
    }

    #[test]
    fn shows_what_is_asked_for() {
        let always = json!({"name": "alice", "uid": "1"});
        let base = |extra: Value| {
            let mut seen = json!({
                "apiVersion": "kubeflow.org/v1", "kind": "Profile", "metadata": always.clone(),
            });
            for (key, value) in extra.as_object().unwrap() {
                if key == "metadata" {
                    for (key, value) in value.as_object().unwrap() {
                        seen["metadata"][key] = value.clone();
                    }
                } else {
                    seen[key] = value.clone();
                }
            }
            seen
        };
        for (pointers, expected) in [
            (
                vec!["/spec/owner/name"],
                base(json!({"spec": {"owner": {"name": "alice"}}})),
            ),
            (
                vec!["/metadata/labels/a~1b"],
                base(json!({"metadata": {"labels": {"a/b": "1"}}})),
            ),
            (vec!["/status"], base(json!({"status": {"phase": "Ready"}}))),
            (
                vec!["/spec/plugins/0"],
                base(json!({"spec": {"plugins": [1, 2]}})),
            ),
            (vec!["/spec/absent"], base(json!({"spec": {}}))),
            (
                vec!["/metadata"],
                base(json!({"metadata": {"generation": 3, "labels": {"a/b": "1", "c": "2"}}})),
            ),
        ] {
            let projection =
                Projection::new(pointers.iter().map(|p| (*p).to_owned()).collect()).unwrap();
            assert_eq!(projection.apply(&object()), expected, "{pointers:?}");
        }
    }

    #[test]
    fn the_default_leaves_out_bookkeeping_and_status() {
        let seen = Projection::default().apply(&object());
        assert_eq!(seen.get("status"), None);
        assert_eq!(seen["spec"], object()["spec"]);
        let keys: Vec<_> = seen["metadata"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["labels", "name", "uid"]);
    }

    #[test]
    fn a_projection_covers_what_can_be_told_from_what_it_shows() {
        let of = |pointers: &[&str]| {
            Projection::new(pointers.iter().map(|one| (*one).to_owned()).collect()).unwrap()
        };
        for (wide, narrow, expected) in [
            (&[][..], &[][..], true),
            (&[], &["/spec"], true),
            (&[], &["/spec/owner/name", "/metadata/labels"], true),
            (&[], &["/status"], false),
            (&[], &["/metadata"], false),
            (&[], &["/metadata/generation"], false),
            (&["/spec"], &[], false),
            (&["/spec"], &["/spec/owner"], true),
            (&["/spec"], &["/spec", "/metadata/labels"], false),
            (&["/spec/owner"], &["/spec"], false),
            (&["/metadata"], &["/metadata/labels/c"], true),
            (&["/spec/plugins"], &["/spec/plugins/0"], true),
        ] {
            let (wide, narrow) = (of(wide), of(narrow));
            assert_eq!(wide.covers(&narrow), expected, "{wide:?} {narrow:?}");
            if expected {
                let shown = wide.apply(&object());
                assert_eq!(narrow.apply(&shown), narrow.apply(&object()), "{narrow:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for pointer in [
            "",
            "spec",
            "/",
            "/metadata/managedFields",
            "/metadata/resourceVersion",
        ] {
            assert!(
                Projection::new(vec![pointer.to_owned()]).is_err(),
                "{pointer}"
            );
        }
    }

    fn texts() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            Just(json!("a")),
            Just(json!([1])),
            Just(json!([2]))
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            let key = prop::sample::select(vec!["a", "b", "labels"]);
            prop::collection::btree_map(key, inner, 0..3)
                .prop_map(|fields| fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
        })
    }

    fn any_object() -> impl Strategy<Value = Value> {
        let keys = vec![
            "name",
            "uid",
            "labels",
            "generation",
            "resourceVersion",
            "managedFields",
        ];
        let metadata = prop::collection::btree_map(prop::sample::select(keys), texts(), 0..4);
        let keys = prop::sample::select(vec!["apiVersion", "spec", "status", "data"]);
        let fields = prop::collection::btree_map(keys, texts(), 0..4);
        (metadata, fields).prop_map(|(metadata, fields)| {
            let mut object = json!({ "metadata": metadata });
            for (field, value) in fields {
                object[field] = value;
            }
            object
        })
    }

    #[test]
    fn parts_are_shown_as_they_were_written() {
        let text = r#" {"status": {"a": 1}, "metadata": {"uid": "1", "name": "n", "generation": 2,
            "annotations": {"x": "\u00e4\n"}, "resourceVersion": "7"}, "kind": "K",
            "spec": {"n": 12345678901234567890123, "f": 1.10, "l": [ 1 ], "a/b~c": {"d": null}}}"#;
        for (pointers, expected) in [
            (
                &[][..],
                r#"{"kind":"K","metadata":{"annotations":{"x": "\u00e4\n"},"name":"n","uid":"1"},"spec":{"n": 12345678901234567890123, "f": 1.10, "l": [ 1 ], "a/b~c": {"d": null}}}"#,
            ),
            (
                &["/spec/f", "/spec/a~1b~0c/d", "/spec/l/0", "/none"],
                r#"{"kind":"K","metadata":{"name":"n","uid":"1"},"spec":{"a/b~c":{"d":null},"f":1.10,"l":[ 1 ]}}"#,
            ),
            (
                &["/metadata", "/metadata/annotations/x", "/status/b"],
                r#"{"kind":"K","metadata":{"annotations":{"x": "\u00e4\n"},"generation":2,"name":"n","uid":"1"},"status":{}}"#,
            ),
        ] {
            let pointers = pointers.iter().map(|one| (*one).to_owned()).collect();
            let projection = Projection::new(pointers).unwrap();
            assert_eq!(projection.show(text).unwrap(), expected);
        }
        for text in ["", "[]", "{\"a\": }", "{} x"] {
            assert!(Projection::default().show(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_cut_out_of_a_text_is_what_is_shown_of_its_value(
            object in any_object(),
            pretty in any::<bool>(),
            pointers in prop::collection::vec(prop::sample::select(vec![
                "/metadata", "/metadata/labels", "/metadata/labels/a", "/metadata/name/x", "/spec",
                "/spec/a", "/spec/a/b", "/spec/none", "/status/a", "/data", "/apiVersion/a",
            ]), 0..5),
        ) {
            let pointers = pointers.into_iter().map(str::to_owned).collect();
            let projection = Projection::new(pointers).unwrap();
            let text = match pretty {
                true => serde_json::to_string_pretty(&object).unwrap(),
                false => object.to_string(),
            };
            let shown: Value = serde_json::from_str(&projection.show(&text).unwrap()).unwrap();
            prop_assert_eq!(shown, projection.apply(&object));
        }

        /// To compare is to compare what would be shown.
        #[test]
        fn objects_differ_as_what_is_shown_of_them_does(
            (one, other) in (any_object(), any_object()),
            same in 0_u8..3,
            pointers in prop::collection::vec(prop::sample::select(vec![
                "/metadata", "/metadata/labels", "/metadata/labels/a", "/spec", "/spec/a", "/spec/a/b",
                "/status/a", "/data",
            ]), 0..4),
        ) {
            let pointers = pointers.into_iter().map(str::to_owned).collect();
            let projection = Projection::new(pointers).unwrap();
            let mut other = other;
            // Those that have nothing in common are no test of what is the same.
            if same > 0 {
                let status = other.get("status").cloned();
                let bookkeeping: Vec<_> = ["generation", "resourceVersion", "managedFields"]
                    .into_iter()
                    .filter_map(|field| Some((field, other["metadata"].get(field)?.clone())))
                    .collect();
                other = one.clone();
                if let Some(status) = status {
                    other["status"] = status;
                }
                for (field, value) in bookkeeping {
                    other["metadata"][field] = value;
                }
            }
            let shown = projection.apply(&one) != projection.apply(&other);
            prop_assert_eq!(projection.differs(&one, &other), shown);
        }
    }
}
