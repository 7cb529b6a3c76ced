//! One stored object: its JSON and the few fields that are asked for without
//! parsing it.

use std::cell::RefCell;

use bytes::Bytes;
use serde_json::Value;

use super::fields;
use crate::conversion::rename_to;
use crate::resource::Resource;

/// An object in one version. Never changes; a write makes a new one.
///
/// There may be very many, and what is known of each besides its JSON is kept in few
/// pieces of memory, of which each costs as much again as some of them hold.
#[derive(Debug, PartialEq)]
pub(crate) struct Object {
    version: u64,
    /// The key, the UID, the version that it is stored in, and the labels, one behind the
    /// other: each label as key and value, both with [`END`] behind them, in order.
    texts: Box<str>,
    /// Where in `texts` the UID begins, then the version that it is stored in, then labels.
    starts: [u32; 3],
    terminating: bool,
    owners: Box<[Box<str>]>,
    json: Bytes,
    /// What few objects have.
    beside: Option<Box<Beside>>,
}

/// What is known of an object that is stored otherwise than it is shown.
#[derive(Debug, Default, Clone, PartialEq)]
struct Beside {
    /// What was written, where it is shown otherwise.
    written: Option<Bytes>,
    /// See [`Object::mark`].
    mark: Option<u64>,
}

impl Beside {
    fn boxed(self) -> Option<Box<Self>> {
        (self != Beside::default()).then(|| Box::new(self))
    }
}

/// What no key or value of a label has in it, as nothing that is stored has.
const END: char = '\0';

impl Object {
    /// The object `value` as written in `version`, which it is stamped with.
    pub(super) fn new(key: &str, version: u64, mut value: Value) -> Self {
        if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
            metadata.insert("resourceVersion".to_owned(), version.to_string().into());
        }
        Object::as_is(key, version, &value)
    }

    /// An object that was only tried: it has the version that it came with.
    pub(crate) fn unstored(key: &str, value: &Value) -> Self {
        let version = value
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str);
        let version = version
            .and_then(|version| version.parse().ok())
            .unwrap_or(0);
        Object::as_is(key, version, value)
    }

    /// The object that was written as `json` in `version`.
    ///
    /// # Errors
    ///
    /// When that is no JSON object.
    pub(super) fn stored(key: &str, version: u64, json: Bytes) -> Result<Self, serde_json::Error> {
        let value = Value::Object(serde_json::from_slice(&json)?);
        Ok(Object::parsed(key, version, &value, json))
    }

    fn as_is(key: &str, version: u64, value: &Value) -> Self {
        Object::parsed(key, version, value, compact(value))
    }

    fn parsed(key: &str, version: u64, value: &Value, json: Bytes) -> Self {
        let metadata = value.get("metadata").unwrap_or(&Value::Null);
        let uid = text(metadata.get("uid"));
        let api_version = text(value.get("apiVersion"));
        let (texts, starts) = joined([key, uid, api_version], metadata.get("labels"));
        Object {
            version,
            texts,
            starts,
            terminating: metadata
                .get("deletionTimestamp")
                .is_some_and(Value::is_string),
            owners: owners(metadata),
            json,
            beside: None,
        }
    }

    /// The same object as `show` shows what was written; none where it is so already.
    pub(super) fn shown(&self, show: impl FnOnce(&mut Value)) -> Option<Self> {
        let written = self.written_bytes();
        let mut value = serde_json::from_slice(written).ok()?;
        show(&mut value);
        let json = compact(&value);
        let beside = Beside {
            written: (json != *written).then(|| written.clone()),
            mark: self.mark(),
        };
        (json != self.json).then(|| Object {
            beside: beside.boxed(),
            json,
            texts: self.texts.clone(),
            owners: self.owners.clone(),
            ..*self
        })
    }

    /// The JSON that was written, however it is shown.
    pub(crate) fn written(&self) -> &[u8] {
        self.written_bytes()
    }

    fn written_bytes(&self) -> &Bytes {
        let written = self.beside.as_ref().and_then(|b| b.written.as_ref());
        written.unwrap_or(&self.json)
    }

    /// The same object, which the real server has stored otherwise than it shows it, as
    /// `mark` says.
    pub(super) fn marked(self, mark: Option<u64>) -> Self {
        let written = self.beside.and_then(|beside| beside.written);
        Object {
            beside: Beside { written, mark }.boxed(),
            ..self
        }
    }

    /// What tells apart what the real server has stored, where that is not what it shows: two
    /// writes of an object that come to the same are no two only where they have the same one.
    pub(crate) fn mark(&self) -> Option<u64> {
        self.beside.as_ref().and_then(|beside| beside.mark)
    }

    /// Whether it is shown as it was written.
    pub(crate) fn is_as_written(&self) -> bool {
        self.beside.as_ref().is_none_or(|b| b.written.is_none())
    }

    /// An object that differs from this one in its version, its uid and its JSON.
    pub(super) fn made(&self, version: u64, uid: &str, json: Bytes) -> Self {
        let before = [self.key(), uid, self.api_version()];
        let (texts, starts) = ends(before.concat() + self.labels(), before);
        Object {
            version,
            texts,
            starts,
            json,
            owners: self.owners.clone(),
            beside: None,
            terminating: self.terminating,
        }
    }

    /// The same content, stamped with another version.
    pub(crate) fn restamped(&self, version: u64) -> Self {
        Object::new(self.key(), version, self.value())
    }

    /// A part of the texts.
    fn part(&self, from: u32, to: Option<u32>) -> &str {
        let to = to.map_or(self.texts.len(), |to| to as usize);
        self.texts.get(from as usize..to).unwrap_or_default()
    }

    fn labels(&self) -> &str {
        self.part(self.starts[2], None)
    }

    /// `namespace/name`, or `name`.
    pub(crate) fn key(&self) -> &str {
        self.part(0, Some(self.starts[0]))
    }

    /// The namespace; empty for an object of the cluster.
    pub(crate) fn namespace(&self) -> &str {
        self.key()
            .split_once('/')
            .map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub(crate) fn name(&self) -> &str {
        let key = self.key();
        key.split_once('/').map_or(key, |(_, name)| name)
    }

    /// The version of the write that made it so.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// `metadata.uid`.
    pub(crate) fn uid(&self) -> &str {
        self.part(self.starts[0], Some(self.starts[1]))
    }

    /// Whether it is being deleted.
    pub(crate) fn is_terminating(&self) -> bool {
        self.terminating
    }

    /// The UIDs of the owners that it names.
    pub(crate) fn owners(&self) -> &[Box<str>] {
        &self.owners
    }

    /// The value of the label `key`.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let mut texts = self.labels().split_terminator(END);
        loop {
            let (name, value) = (texts.next()?, texts.next()?);
            if name == key {
                return Some(value);
            }
        }
    }

    /// Whether a text is somewhere in its JSON: of what is not, there is no field either.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        std::str::from_utf8(&self.json).is_ok_and(|json| json.contains(text))
    }

    /// How many bytes of JSON it is.
    pub(super) fn size(&self) -> usize {
        self.json.len()
    }

    /// The object, parsed.
    pub(crate) fn value(&self) -> Value {
        // What is stored was serialised by us, and is no deeper than `depth` lets pass:
        // it parses.
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// Some of its fields, parsed; of the metadata all but who owns fields.
    pub(crate) fn fields(&self, wanted: &[&str]) -> Value {
        // As above.
        fields::read(&self.json, wanted).unwrap_or_default()
    }

    /// The version that it is stored in.
    pub(crate) fn api_version(&self) -> &str {
        self.part(self.starts[1], Some(self.starts[2]))
    }

    /// The JSON as served in the version of `resource`, as [`Object::value_as`].
    pub(crate) fn json(&self, resource: &Resource) -> Bytes {
        if *self.api_version() == *resource.api_version {
            return self.json.clone();
        }
        Bytes::from(self.value_as(resource).to_string())
    }

    /// The object, parsed, as served in the version of `resource`. Where a webhook makes
    /// the one of the other, it is to be asked before: [`Resource::shown`].
    pub(crate) fn value_as(&self, resource: &Resource) -> Value {
        rename_to(self.value(), resource)
    }
}

thread_local! {
    /// Where JSON is written before its size is known.
    static DRAFT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A draft that has grown larger is not kept.
const LARGEST_DRAFT: usize = 64 << 10;

/// The JSON of a value in just as much memory as it needs: what text grows in is up to
/// twice that, and what is cut off of it leaves holes between objects.
fn compact(value: &Value) -> Bytes {
    DRAFT.with_borrow_mut(|draft| {
        draft.clear();
        let json = match serde_json::to_writer(&mut *draft, value) {
            Ok(()) => Bytes::copy_from_slice(draft),
            Err(_) => Bytes::from(value.to_string()),
        };
        if draft.capacity() > LARGEST_DRAFT {
            *draft = Vec::new();
        }
        json
    })
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn owners(metadata: &Value) -> Box<[Box<str>]> {
    let owners = metadata.get("ownerReferences");
    let owners = owners.and_then(Value::as_array).into_iter().flatten();
    let uids = owners.filter_map(|owner| owner["uid"].as_str());
    uids.map(Box::from).collect()
}

/// These texts and the labels behind one another, and where all but the first begin.
fn joined(before: [&str; 3], labels: Option<&Value>) -> (Box<str>, [u32; 3]) {
    let mut texts = before.concat();
    // They are in order already.
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    for (key, value) in labels {
        for part in [key, text(Some(value))] {
            texts.push_str(part);
            texts.push(END);
        }
    }
    ends(texts, before)
}

/// `texts`, which begin with `before`, and where each of these ends. No object is as long
/// as would not fit.
fn ends(texts: String, before: [&str; 3]) -> (Box<str>, [u32; 3]) {
    let mut end = 0;
    let ends = before.map(|part| {
        end += part.len();
        u32::try_from(end).unwrap_or(u32::MAX)
    });
    (texts.into_boxed_str(), ends)
}
