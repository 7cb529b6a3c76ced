//! One object as the API server gave it.

mod cut;
mod glance;
mod payload;
mod span;
mod words;

use crate::resource::Resource;
use cut::cut_managed_fields;
pub(crate) use glance::Glance;
use memchr::memmem;
pub(crate) use payload::without_payload;
use reeve_core::selector::Selector;
use reeve_core::{GroupVersionKind, ObjectReference};
use serde::de::IgnoredAny;
use serde::{Deserialize, de};
use serde_json::Value;
use serde_json::value::RawValue;
use span::Spans;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::{Arc, LazyLock};
use words::Words;

/// An object: its JSON as it came, and the little of its metadata that is asked
/// for often.
///
/// `managedFields` are kept apart from the rest, since most readers must not see
/// them. Nothing else is parsed before somebody asks.
#[derive(Clone)]
pub struct Object {
    resource: Arc<Resource>,
    words: Words,
    generation: Option<i64>,
    deleting: bool,
    json: Box<str>,
    spans: Spans,
    managed_fields: Option<Box<str>>,
}

/// Where `kubectl apply` keeps what it was given.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What marks are made with, each half by itself. They are drawn anew in each process, so
/// that nobody foresees them; who may write the text has nothing to gain from two that have
/// one mark but that the second is not taken up.
static MARKS: LazyLock<[foldhash::quality::RandomState; 2]> = LazyLock::new(Default::default);

/// What stands for a text, many times as quick as a digest would be. Components are long,
/// and each change of their ConfigMap is looked at.
fn mark(text: &str) -> String {
    let [first, second] = MARKS.each_ref().map(|half| half.hash_one(text));
    format!("{first:016x}{second:016x}")
}

/// Why bytes are no object.
#[derive(Debug, thiserror::Error)]
#[error("not an object of {resource}")]
pub struct ObjectError {
    resource: String,
    source: serde_json::Error,
}

impl ObjectError {
    /// What came instead of a list of objects.
    pub(crate) fn of_list(resource: &Resource, source: serde_json::Error) -> Self {
        Self {
            resource: resource.to_string(),
            source,
        }
    }
}

/// One entry of an object's `managedFields`, without its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manager {
    /// The field manager.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// The subresource through which it wrote; empty for the object itself.
    pub subresource: String,
}

/// One entry of `managedFields`. Not flattened, since that takes an entry apart twice.
#[derive(Deserialize)]
struct ManagedFields<'a, F> {
    #[serde(borrow, default)]
    manager: Cow<'a, str>,
    #[serde(borrow, default)]
    operation: Cow<'a, str>,
    #[serde(borrow, default)]
    subresource: Cow<'a, str>,
    #[serde(rename = "fieldsV1")]
    fields: Option<F>,
}

impl<F> ManagedFields<'_, F> {
    /// Whether it says what a manager owns by server-side apply to the object itself.
    fn is_of(&self, manager: &str) -> bool {
        self.manager == manager && self.operation == "Apply" && self.subresource.is_empty()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    generation: Option<i64>,
    #[serde(borrow, default)]
    labels: Option<BTreeMap<Text<'a>, Text<'a>>>,
    #[serde(borrow, default)]
    owner_references: Option<Vec<OwnerReference<'a>>>,
    #[serde(borrow)]
    deletion_timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    finalizers: Option<&'a RawValue>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

/// Text that is borrowed where it can be. A plain `Cow` within another type never is.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct OwnerReference<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
}

impl Object {
    /// Reads an object of a kind from its JSON.
    ///
    /// Items of lists leave `apiVersion` and `kind` out; here they get them back.
    pub fn parse(resource: &Resource, json: &[u8]) -> Result<Self, ObjectError> {
        let json = std::str::from_utf8(json).map_err(|source| ObjectError {
            resource: resource.to_string(),
            source: de::Error::custom(source),
        })?;
        Self::parse_shared(&Arc::new(resource.clone()), json)
    }

    /// As [`Object::parse`], for many objects of one kind.
    pub(crate) fn parse_shared(resource: &Arc<Resource>, json: &str) -> Result<Self, ObjectError> {
        let error = |source| ObjectError {
            resource: resource.to_string(),
            source,
        };
        // What is not read is read past, and so proven to be JSON as well.
        let json = json.trim_matches([' ', '\n', '\r', '\t']);
        let envelope: Envelope<'_> = serde_json::from_str(json).map_err(error)?;
        let metadata = envelope.metadata;
        let missing = envelope.api_version.is_none() || envelope.kind.is_none();
        let typed = missing.then_some(&resource.kind);
        let names = [
            metadata.namespace.as_deref().unwrap_or_default(),
            &metadata.name,
            &metadata.uid,
            &metadata.resource_version,
        ];
        let owners = metadata.owner_references.iter().flatten();
        let labels = metadata.labels.iter().flatten();
        let labels = labels.map(|(key, value)| (&*key.0, &*value.0));
        let cut = cut_managed_fields(json, metadata.managed_fields, typed);
        Ok(Self {
            words: Words::new(names, owners.map(|owner| &*owner.uid), labels),
            spans: Spans {
                annotations: cut.place(metadata.annotations),
                finalizers: cut.place(metadata.finalizers),
            },
            json: cut.json,
            managed_fields: metadata.managed_fields.map(|fields| fields.get().into()),
            resource: resource.clone(),
            generation: metadata.generation,
            deleting: metadata
                .deletion_timestamp
                .is_some_and(|time| time.get() != "null"),
        })
    }

    /// How its kind is served.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Its kind.
    pub fn kind(&self) -> &GroupVersionKind {
        &self.resource.kind
    }

    /// Kind, namespace and name.
    pub fn reference(&self) -> ObjectReference {
        ObjectReference::new(
            self.resource.kind.clone(),
            self.namespace().map(str::to_owned),
            self.name(),
        )
    }

    /// Its namespace; none for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        Some(self.words.namespace()).filter(|namespace| !namespace.is_empty())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.words.name()
    }

    /// Its uid.
    pub fn uid(&self) -> &str {
        self.words.uid()
    }

    /// The version of the cluster in which it was last written.
    pub fn resource_version(&self) -> &str {
        self.words.version()
    }

    /// The number of its specification; kinds without one have none.
    pub fn generation(&self) -> Option<i64> {
        self.generation
    }

    /// Its labels, ordered by key.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.words.labels()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let mut labels = self.labels();
        labels.find(|(k, _)| *k == key).map(|(_, value)| value)
    }

    /// Its labels at a glance, which is made anew at each call.
    pub(crate) fn glance(&self) -> Glance {
        Glance::of(self.labels())
    }

    /// Whether a selector selects it.
    pub(crate) fn is_selected(&self, selector: &Selector) -> bool {
        selector.matches(|key| self.label(key))
    }

    /// Its annotations. They are read from the JSON at each call: they are asked
    /// for seldom and may be long.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let text = self.spans.annotations.of(&self.json);
        let read = text.and_then(|text| serde_json::from_str(text).ok());
        read.unwrap_or_default()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<String> {
        let text = self.spans.annotations.of(&self.json)?;
        // Most have few. Only what is escaped could be the key in disguise.
        let may_have = text.contains(key) || text.contains('\\');
        may_have.then(|| self.annotations().remove(key)).flatten()
    }

    /// Its finalizers. They are read from the JSON at each call.
    pub fn finalizers(&self) -> Vec<String> {
        let text = self.spans.finalizers.of(&self.json);
        let all: Option<Vec<Value>> = text.and_then(|text| serde_json::from_str(text).ok());
        let all = all.iter().flatten();
        all.filter_map(|one| one.as_str().map(str::to_owned))
            .collect()
    }

    /// Uids of the objects that own it.
    pub fn owners(&self) -> impl Iterator<Item = &str> {
        self.words.owners()
    }

    /// Whether it is marked as deleted and goes when its finalizers are done.
    pub fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// Its JSON without `managedFields`, otherwise byte for byte as it came.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The same, with a mark in place of each value of `binaryData`, which may be most
    /// of a ConfigMap, and of the copy that `kubectl apply` keeps of it all. It is of the
    /// form that such values have, so that what is left is a ConfigMap as well. Marks are
    /// compared with those of the same process alone, and say whether a value has changed.
    pub(crate) fn without_payload(mut self) -> Self {
        if let Some(json) = without_payload(&self.json) {
            self.json = json.into_boxed_str();
            self.spans = Spans::find(&self.json);
        }
        self
    }

    /// Its JSON, parsed, without `managedFields`.
    pub fn value(&self) -> Value {
        // It was proven to be JSON when it came; the cut keeps it so.
        serde_json::from_str(&self.json).unwrap_or_default()
    }

    /// Its JSON, parsed, with `managedFields`.
    pub fn whole(&self) -> Value {
        let mut value = self.value();
        if let Some(fields) = &self.managed_fields
            && let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut)
        {
            let fields = serde_json::from_str(fields).unwrap_or_default();
            metadata.insert("managedFields".to_owned(), fields);
        }
        value
    }

    /// The JSON array `metadata.managedFields`.
    pub fn managed_fields(&self) -> Option<&str> {
        self.managed_fields.as_deref()
    }

    /// The fields (`fieldsV1`) that a manager owns by server-side apply to the
    /// object itself. None when it owns none.
    pub fn manager_fields(&self, manager: &str) -> Option<Value> {
        self.fields_of(manager).map(|(fields, _)| fields)
    }

    /// As [`Object::manager_fields`], with whether nobody else owns fields, and the
    /// manager none in another way.
    pub fn fields_of(&self, manager: &str) -> Option<(Value, bool)> {
        if let Some(only) = self.only_entry::<Value>() {
            return only.is_of(manager).then_some((only.fields?, true));
        }
        let entries = self.entries();
        let entry = entries.iter().find(|entry| entry.is_of(manager))?;
        let fields = serde_json::from_str(entry.fields?.get()).ok()?;
        Some((fields, entries.len() == 1))
    }

    /// Whether a manager owns fields by server-side apply to the object itself, and nobody
    /// else any, nor it in another way.
    pub fn is_all_of(&self, manager: &str) -> bool {
        let only = self.only_entry::<IgnoredAny>();
        only.is_some_and(|only| only.fields.is_some() && only.is_of(manager))
    }

    /// Everybody who owns fields.
    pub fn managers(&self) -> Vec<Manager> {
        let entries = self.entries().into_iter();
        let managers = entries.map(|entry| Manager {
            manager: entry.manager.into_owned(),
            operation: entry.operation.into_owned(),
            subresource: entry.subresource.into_owned(),
        });
        managers.collect()
    }

    /// The entry of an object that has one, which then is gone through once.
    fn only_entry<'a, F: Deserialize<'a>>(&'a self) -> Option<ManagedFields<'a, F>> {
        let json = self.managed_fields.as_deref()?;
        // An entry without a manager is nobody's that is asked for.
        if memmem::find_iter(json.as_bytes(), "\"manager\"")
            .nth(1)
            .is_some()
        {
            return None;
        }
        let [entry] = serde_json::from_str::<[ManagedFields<'_, F>; 1]>(json).ok()?;
        Some(entry)
    }

    fn entries(&self) -> Vec<ManagedFields<'_, &RawValue>> {
        self.managed_fields
            .as_deref()
            .and_then(|json| serde_json::from_str(json).ok())
            .unwrap_or_default()
    }

    /// Whether this is the same state of the same object as the other.
    pub fn is_same_version_as(&self, other: &Self) -> bool {
        self.resource_version() == other.resource_version() && self.uid() == other.uid()
    }

    /// Whether this is a later state than the other of what has the same name.
    ///
    /// Versions of one kind are comparable numbers; should a server ever give
    /// others, whatever comes last counts as later.
    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        match (self.version_number(), other.version_number()) {
            (Some(this), Some(other)) => this > other,
            _ => self.resource_version() != other.resource_version(),
        }
    }

    pub(crate) fn version_number(&self) -> Option<u128> {
        self.resource_version().parse().ok()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("reference", &format_args!("{}", self.reference()))
            .field("uid", &self.uid())
            .field("resource_version", &self.resource_version())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Object, ObjectError> {
        let resource = Resource {
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            plural: "configmaps".into(),
            namespaced: true,
        };
        Object::parse(&resource, json.as_bytes())
    }

    fn versioned(version: &str) -> Object {
        parse(&format!(
            r#"{{"metadata":{{"name":"a","resourceVersion":"{version}"}}}}"#
        ))
        .unwrap()
    }

    #[test]
    fn metadata_is_at_hand() {
        let object = parse(
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{
                "name":"a","namespace":"n","uid":"u","resourceVersion":"7","generation":3,
                "labels":{"z":"1","b":"2"},"annotations":{"x":"\u00e9\n"},
                "ownerReferences":[{"uid":"o1"},{"uid":"o2"}],
                "deletionTimestamp":"2026-01-01T00:00:00Z",
                "managedFields":[
                    {"manager":"m","operation":"Update","fieldsV1":{"f:x":{}}},
                    {"manager":"m","operation":"Apply","subresource":"status","fieldsV1":{"f:s":{}}},
                    {"manager":"m","operation":"Apply","fieldsV1":{"f:data":{}}}]}}"#,
        )
        .unwrap();
        assert_eq!(object.reference().to_string(), "ConfigMap n/a");
        assert_eq!((object.uid(), object.resource_version()), ("u", "7"));
        assert_eq!(object.generation(), Some(3));
        assert_eq!(
            object.labels().collect::<Vec<_>>(),
            [("b", "2"), ("z", "1")]
        );
        assert_eq!((object.label("z"), object.label("c")), (Some("1"), None));
        assert_eq!(object.annotation("x").as_deref(), Some("é\n"));
        assert_eq!(object.annotation("y"), None);
        assert_eq!(object.owners().collect::<Vec<_>>(), ["o1", "o2"]);
        assert!(object.is_deleting());
        assert_eq!(object.value()["metadata"]["uid"], "u");
        assert_eq!(object.value()["metadata"].get("managedFields"), None);
        let entries = object.whole()["metadata"]["managedFields"].clone();
        assert_eq!(entries[2]["fieldsV1"], serde_json::json!({"f:data": {}}));
        assert_eq!(
            object.manager_fields("m"),
            Some(serde_json::json!({"f:data": {}}))
        );
        assert_eq!(object.manager_fields("n"), None);
        assert_eq!(object.managers().len(), 3);
        assert_eq!(object.managers()[1].subresource, "status");
    }

    #[test]
    fn finalizers_are_found_however_they_are_written() {
        for (json, expected) in [
            (
                r#"{"metadata":{"name":"a","finalizers":["x/y"]}}"#,
                &["x/y"][..],
            ),
            (
                r#"{"metadata":{"name":"a","\u0066inalizers":["x/y"]}}"#,
                &["x/y"],
            ),
            (
                r#"{"metadata":{"name":"a"},"spec":{"finalizers":["x/y"]}}"#,
                &[],
            ),
            (r#"{"metadata":{"name":"a"}}"#, &[]),
        ] {
            assert_eq!(parse(json).unwrap().finalizers(), *expected, "{json}");
        }
    }

    /// Whatever is taken out before or behind them, put at the head, or marked.
    #[test]
    fn annotations_and_finalizers_are_found_where_they_are() {
        let typed = r#""apiVersion":"v1","kind":"ConfigMap","#;
        let fields = r#""managedFields":[{"manager":"m","operation":"Apply"}]"#;
        let wanted = r#""annotations":{"a/b":"\u0031","c":"2"},"finalizers":["x/y"],"name":"a""#;
        let payload = r#","binaryData":{"p":"QUFBQQ=="}"#;
        for typed in [typed, ""] {
            for metadata in [
                wanted.to_owned(),
                format!("{fields},{wanted}"),
                format!("{wanted},{fields}"),
                format!("{fields} , {wanted}"),
            ] {
                let json = format!(" {{{typed}\"metadata\":{{{metadata}}}{payload}}}");
                let whole = parse(&json).unwrap();
                for object in [whole.clone(), whole.without_payload()] {
                    let expected = [("a/b", "1"), ("c", "2")];
                    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
                    assert_eq!(object.annotations(), expected.into(), "{json}");
                    assert_eq!(object.annotation("a/b").as_deref(), Some("1"), "{json}");
                    assert_eq!(object.annotation("b"), None, "{json}");
                    assert_eq!(object.finalizers(), ["x/y"], "{json}");
                }
            }
        }
        let null = parse(r#"{"metadata":{"name":"a","annotations":null,"finalizers":null}}"#);
        let null = null.unwrap();
        assert!(null.annotations().is_empty() && null.finalizers().is_empty());
    }

    #[test]
    fn a_bare_object_has_nothing_more() {
        let object = parse(r#"{"metadata":{"name":"a","labels":null}}"#).unwrap();
        assert_eq!((object.namespace(), object.uid()), (None, ""));
        assert_eq!(object.labels().count() + object.owners().count(), 0);
        assert!(!object.is_deleting());
        assert_eq!(object.managed_fields(), None);
        assert_eq!(object.managers(), []);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for json in [
            "",
            "[]",
            "{}",
            r#"{"metadata":{}}"#,
            r#"{"metadata":{"name":"a"}} x"#,
        ] {
            let error = parse(json).unwrap_err();
            assert_eq!(error.to_string(), "not an object of configmaps", "{json}");
        }
    }

    /// Text with escapes cannot be borrowed.
    #[test]
    fn names_may_be_written_with_escapes() {
        let object = parse(
            r#"{"metadata":{"name":"a","labels":{"\u006b":"\u0076"},
                "ownerReferences":[{"uid":"\u006f"}],
                "managedFields":[{"manager":"\u006d","operation":"Appl\u0079",
                    "fieldsV1":{"f:data":{}}}]}}"#,
        )
        .unwrap();
        assert_eq!(object.label("k"), Some("v"));
        assert_eq!(object.owners().collect::<Vec<_>>(), ["o"]);
        let (fields, alone) = object.fields_of("m").unwrap();
        assert_eq!((fields, alone), (serde_json::json!({"f:data": {}}), true));
    }

    #[test]
    fn versions_are_numbers() {
        for (this, other, newer) in [
            ("10", "9", true),
            ("9", "10", false),
            ("9", "9", false),
            ("340282366920938463463374607431768211455", "9", true),
            ("b", "a", true),
            ("a", "a", false),
        ] {
            assert_eq!(
                versioned(this).is_newer_than(&versioned(other)),
                newer,
                "{this} {other}"
            );
        }
    }
}
