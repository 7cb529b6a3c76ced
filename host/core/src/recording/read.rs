//! What a call asked, and what it was told.

use super::{Body, Named};
use crate::kind::{GroupVersionKind, ObjectReference};
use crate::projection::Projection;
use crate::selector::Selector;
use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;

/// One question, with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// What was asked.
    pub question: Question,
    /// What the plugin was told.
    pub told: Told,
}

/// What a call can ask. Selectors and JSON Pointers are in the one form that all ways
/// to write them have in common; those that make no sense are as the plugin wrote
/// them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// For one object.
    Object {
        /// The object.
        object: ObjectReference,
        /// What of it; empty for all but the status.
        fields: Vec<String>,
    },
    /// For all objects that match.
    List {
        /// Their kind.
        kind: GroupVersionKind,
        /// Their namespace; none for all.
        namespace: Option<String>,
        /// Their labels; empty for any.
        selector: String,
        /// What of them; empty for all but the status.
        fields: Vec<String>,
    },
    /// For the names of all objects that match.
    Keys {
        /// Their kind.
        kind: GroupVersionKind,
        /// Their namespace; none for all.
        namespace: Option<String>,
        /// Their labels; empty for any.
        selector: String,
    },
    /// For an outside document.
    Source(String),
    /// For how old that is.
    SourceAge(String),
    /// For the time.
    Time,
}

/// What a plugin was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The object, or that there is none.
    Object(Option<Body>),
    /// Objects.
    Objects(Vec<Body>),
    /// Names of objects.
    Keys(Vec<ObjectReference>),
    /// A document.
    Document {
        /// Its media type; empty if nobody said.
        media_type: String,
        /// Its body.
        body: Body,
    },
    /// An age in seconds.
    Seconds(u64),
    /// Milliseconds since 1970.
    Milliseconds(u64),
    /// That there is no answer.
    Failed(ReadFailure),
}

/// Why there was no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ReadFailure {
    /// Which of the four errors it is.
    pub reason: ReadFailureKind,
    /// Its text, which the plugin sees too.
    pub message: String,
}

/// The errors that reads have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReadFailureKind {
    /// It may not be read.
    Forbidden,
    /// The manifest does not declare it.
    Undeclared,
    /// It is not known, or not yet.
    NotSynced,
    /// The question is malformed.
    Invalid,
}

impl Question {
    /// For one object.
    pub fn object(object: &ObjectReference, fields: &[String]) -> Self {
        Self::Object {
            object: object.clone(),
            fields: plain_fields(fields),
        }
    }

    /// For all objects that match.
    pub fn list(
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        selector: &str,
        fields: &[String],
    ) -> Self {
        Self::List {
            kind: kind.clone(),
            namespace: namespace.map(str::to_owned),
            selector: plain_selector(selector),
            fields: plain_fields(fields),
        }
    }

    /// For the names of all objects that match.
    pub fn keys(kind: &GroupVersionKind, namespace: Option<&str>, selector: &str) -> Self {
        Self::Keys {
            kind: kind.clone(),
            namespace: namespace.map(str::to_owned),
            selector: plain_selector(selector),
        }
    }

    /// Whether this can be the answer to it.
    fn takes(&self, told: &Told) -> bool {
        match (self, told) {
            (Self::Time, Told::Milliseconds(_)) => true,
            (Self::Time, _) => false,
            (_, Told::Failed(_))
            | (Self::Object { .. }, Told::Object(_))
            | (Self::List { .. }, Told::Objects(_))
            | (Self::Keys { .. }, Told::Keys(_))
            | (Self::Source(_), Told::Document { .. })
            | (Self::SourceAge(_), Told::Seconds(_)) => true,
            _ => false,
        }
    }
}

/// The same question must be found again however it was written.
fn plain_fields(fields: &[String]) -> Vec<String> {
    let parsed = Projection::new(fields.to_vec());
    parsed.map_or_else(|_| fields.to_vec(), |one| one.pointers())
}

fn plain_selector(selector: &str) -> String {
    let parsed = selector.parse::<Selector>();
    parsed.map_or_else(|_| selector.to_owned(), |one| one.to_string())
}

/// In the words of people: `ConfigMap alice/settings (/data)`.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |f: &mut fmt::Formatter<'_>, kind, namespace: &Option<String>, selector: &str| {
                match namespace {
                    Some(namespace) => write!(f, "all {kind} in namespace {namespace}")?,
                    None => write!(f, "all {kind}")?,
                }
                if selector.is_empty() {
                    return Ok(());
                }
                write!(f, " with {selector}")
            };
        let of = |f: &mut fmt::Formatter<'_>, fields: &[String]| match fields {
            [] => Ok(()),
            fields => write!(f, " ({})", fields.join(", ")),
        };
        match self {
            Self::Object { object, fields } => {
                write!(f, "{object}")?;
                of(f, fields)
            }
            Self::List {
                kind,
                namespace,
                selector,
                fields,
            } => {
                list(f, kind, namespace, selector)?;
                of(f, fields)
            }
            Self::Keys {
                kind,
                namespace,
                selector,
            } => {
                f.write_str("the names of ")?;
                list(f, kind, namespace, selector)
            }
            Self::Source(name) => write!(f, "source {name}"),
            Self::SourceAge(name) => write!(f, "the age of source {name}"),
            Self::Time => f.write_str("the time"),
        }
    }
}

/// What is asked for, in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Asked {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    group: String,
    version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    selector: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
}

impl Asked {
    fn of(kind: &GroupVersionKind, namespace: &Option<String>) -> Self {
        Self {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            namespace: namespace.clone(),
            name: None,
            selector: String::new(),
            fields: Vec::new(),
        }
    }

    fn kind(&self) -> GroupVersionKind {
        GroupVersionKind::new(&*self.group, &*self.version, &*self.kind)
    }
}

impl Serialize for Read {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        match &self.question {
            Question::Object { object, fields } => {
                let asked = Asked {
                    name: Some(object.name.clone()),
                    fields: fields.clone(),
                    ..Asked::of(&object.kind, &object.namespace)
                };
                map.serialize_entry("get", &asked)?;
            }
            Question::List {
                kind,
                namespace,
                selector,
                fields,
            } => {
                let asked = Asked {
                    selector: selector.clone(),
                    fields: fields.clone(),
                    ..Asked::of(kind, namespace)
                };
                map.serialize_entry("list", &asked)?;
            }
            Question::Keys {
                kind,
                namespace,
                selector,
            } => {
                let asked = Asked {
                    selector: selector.clone(),
                    ..Asked::of(kind, namespace)
                };
                map.serialize_entry("listKeys", &asked)?;
            }
            Question::Source(name) => map.serialize_entry("source", name)?,
            Question::SourceAge(name) => map.serialize_entry("sourceAge", name)?,
            Question::Time => map.serialize_entry("time", &true)?,
        }
        match &self.told {
            Told::Object(Some(body)) => map.serialize_entry("object", body)?,
            Told::Object(None) => map.serialize_entry("absent", &true)?,
            Told::Objects(bodies) => map.serialize_entry("objects", bodies)?,
            Told::Keys(keys) => {
                let keys: Vec<Named> = keys.iter().map(Named::from).collect();
                map.serialize_entry("keys", &keys)?;
            }
            Told::Document { media_type, body } => {
                let document = Document {
                    media_type: media_type.clone(),
                    body: body.clone(),
                };
                map.serialize_entry("document", &document)?;
            }
            Told::Seconds(seconds) => map.serialize_entry("seconds", seconds)?,
            Told::Milliseconds(time) => map.serialize_entry("milliseconds", time)?,
            Told::Failed(failure) => map.serialize_entry("error", failure)?,
        }
        map.end()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Document {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    media_type: String,
    body: Body,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    get: Option<Asked>,
    list: Option<Asked>,
    list_keys: Option<Asked>,
    source: Option<String>,
    source_age: Option<String>,
    time: Option<bool>,
    object: Option<Box<RawValue>>,
    absent: Option<bool>,
    objects: Option<Vec<Box<RawValue>>>,
    keys: Option<Vec<Named>>,
    document: Option<Box<RawValue>>,
    seconds: Option<u64>,
    milliseconds: Option<u64>,
    error: Option<ReadFailure>,
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let question = question(&written).map_err(D::Error::custom)?;
        let told = told(written).map_err(D::Error::custom)?;
        if !question.takes(&told) {
            return Err(D::Error::custom(
                "the answer is none to this question: `get` has `object` or `absent`, `list` \
                 has `objects`, `listKeys` has `keys`, `source` has `document`, `sourceAge` has \
                 `seconds`, `time` has `milliseconds`; all but `time` may have `error`",
            ));
        }
        Ok(Self { question, told })
    }
}

fn question(written: &Written) -> Result<Question, String> {
    let mut found = Vec::new();
    if let Some(asked) = &written.get {
        let Some(name) = &asked.name else {
            return Err("get: missing field `name`".to_owned());
        };
        if !asked.selector.is_empty() {
            return Err("get: unknown field `selector`".to_owned());
        }
        found.push(Question::Object {
            object: ObjectReference::new(asked.kind(), asked.namespace.clone(), name),
            fields: asked.fields.clone(),
        });
    }
    for (asked, what) in [(&written.list, "list"), (&written.list_keys, "listKeys")] {
        let Some(asked) = asked else { continue };
        if asked.name.is_some() {
            return Err(format!("{what}: unknown field `name`"));
        }
        let (kind, namespace) = (asked.kind(), asked.namespace.clone());
        let selector = asked.selector.clone();
        found.push(match what {
            "list" => Question::List {
                kind,
                namespace,
                selector,
                fields: asked.fields.clone(),
            },
            _ if !asked.fields.is_empty() => {
                return Err(format!("{what}: unknown field `fields`"));
            }
            _ => Question::Keys {
                kind,
                namespace,
                selector,
            },
        });
    }
    found.extend(written.source.clone().map(Question::Source));
    found.extend(written.source_age.clone().map(Question::SourceAge));
    found.extend((written.time == Some(true)).then_some(Question::Time));
    match (found.len(), found.pop()) {
        (1, Some(question)) => Ok(question),
        _ => Err(
            "expected exactly one of `get`, `list`, `listKeys`, `source`, `sourceAge` and `time`"
                .to_owned(),
        ),
    }
}

fn told(written: Written) -> Result<Told, String> {
    let body = |raw: &RawValue, field: &str| {
        serde_json::from_str::<Body>(raw.get()).map_err(|error| format!("{field}: {error}"))
    };
    let mut found = Vec::new();
    if let Some(raw) = &written.object {
        found.push(Told::Object(Some(body(raw, "object")?)));
    }
    found.extend((written.absent == Some(true)).then_some(Told::Object(None)));
    if let Some(raws) = &written.objects {
        let bodies = raws.iter().enumerate();
        let bodies = bodies.map(|(index, raw)| body(raw, &format!("objects[{index}]")));
        found.push(Told::Objects(bodies.collect::<Result<_, _>>()?));
    }
    if let Some(keys) = written.keys {
        let keys = keys.into_iter().map(ObjectReference::from);
        found.push(Told::Keys(keys.collect()));
    }
    if let Some(raw) = &written.document {
        let document: Document =
            serde_json::from_str(raw.get()).map_err(|error| format!("document: {error}"))?;
        found.push(Told::Document {
            media_type: document.media_type,
            body: document.body,
        });
    }
    found.extend(written.seconds.map(Told::Seconds));
    found.extend(written.milliseconds.map(Told::Milliseconds));
    found.extend(written.error.map(Told::Failed));
    match (found.len(), found.pop()) {
        (1, Some(told)) => Ok(told),
        _ => Err(
            "expected exactly one answer: `object`, `absent`, `objects`, `keys`, `document`, \
             `seconds`, `milliseconds` or `error`"
                .to_owned(),
        ),
    }
}
