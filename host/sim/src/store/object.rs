//! One stored object: its JSON and the few fields that are asked for without
//! parsing it.

use std::cell::RefCell;

use bytes::Bytes;
use serde_json::Value;

use crate::conversion::convert;
use crate::resource::Resource;

/// An object in one version. Never changes; a write makes a new one.
#[derive(Debug, PartialEq)]
pub(crate) struct Object {
    key: Box<str>,
    version: u64,
    uid: Box<str>,
    api_version: Box<str>,
    labels: Box<[(Box<str>, Box<str>)]>,
    terminating: bool,
    owners: Box<[Box<str>]>,
    json: Bytes,
    /// What was written, where it is shown otherwise.
    written: Option<Bytes>,
}

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
    pub(super) fn stored(key: &str, version: u64, json: Bytes) -> Result<Self, serde_json::Error> {
        let value: Value = serde_json::from_slice(&json)?;
        Ok(Object::parsed(key, version, &value, json))
    }

    fn as_is(key: &str, version: u64, value: &Value) -> Self {
        Object::parsed(key, version, value, compact(value))
    }

    fn parsed(key: &str, version: u64, value: &Value, json: Bytes) -> Self {
        let text = |pointer| boxed(value.pointer(pointer));
        Object {
            key: key.into(),
            version,
            uid: text("/metadata/uid"),
            api_version: text("/apiVersion"),
            labels: labels(value),
            terminating: value
                .pointer("/metadata/deletionTimestamp")
                .is_some_and(Value::is_string),
            owners: owners(value),
            json,
            written: None,
        }
    }

    /// The same object as `show` shows what was written; none where it is so already.
    pub(super) fn shown(&self, show: impl FnOnce(&mut Value)) -> Option<Self> {
        let written = self.written.as_ref().unwrap_or(&self.json);
        let mut value = serde_json::from_slice(written).ok()?;
        show(&mut value);
        let json = compact(&value);
        (json != self.json).then(|| Object {
            written: (json != *written).then(|| written.clone()),
            json,
            key: self.key.clone(),
            uid: self.uid.clone(),
            api_version: self.api_version.clone(),
            labels: self.labels.clone(),
            owners: self.owners.clone(),
            ..*self
        })
    }

    /// The JSON that was written, however it is shown.
    pub(crate) fn written(&self) -> &[u8] {
        self.written.as_ref().unwrap_or(&self.json)
    }

    /// Whether it is shown otherwise than it was written.
    pub(crate) fn is_shown_otherwise(&self) -> bool {
        self.written.is_some()
    }

    /// An object that differs from this one in its version, its uid and its JSON.
    pub(super) fn made(&self, version: u64, uid: &str, json: Bytes) -> Self {
        Object {
            version,
            uid: uid.into(),
            json,
            key: self.key.clone(),
            api_version: self.api_version.clone(),
            labels: self.labels.clone(),
            owners: self.owners.clone(),
            written: None,
            terminating: self.terminating,
        }
    }

    /// The same content, stamped with another version.
    pub(crate) fn restamped(&self, version: u64) -> Self {
        Object::new(&self.key, version, self.value())
    }

    /// `namespace/name`, or `name`.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The namespace; empty for an object of the cluster.
    pub(crate) fn namespace(&self) -> &str {
        self.key
            .split_once('/')
            .map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub(crate) fn name(&self) -> &str {
        self.key.split_once('/').map_or(&self.key, |(_, name)| name)
    }

    /// The version of the write that made it so.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// `metadata.uid`.
    pub(crate) fn uid(&self) -> &str {
        &self.uid
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
        let at = self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        self.labels.get(at).map(|(_, value)| &**value)
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

    /// The version that it is stored in.
    pub(crate) fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The JSON as served in the version of `resource`.
    pub(crate) fn json(&self, resource: &Resource) -> Bytes {
        if *self.api_version == *resource.api_version {
            return self.json.clone();
        }
        Bytes::from(self.value_as(resource).to_string())
    }

    /// The object, parsed, as served in the version of `resource`.
    pub(crate) fn value_as(&self, resource: &Resource) -> Value {
        convert(self.value(), resource)
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

fn boxed(value: Option<&Value>) -> Box<str> {
    value.and_then(Value::as_str).unwrap_or_default().into()
}

fn owners(value: &Value) -> Box<[Box<str>]> {
    let owners = value.pointer("/metadata/ownerReferences");
    let owners = owners.and_then(Value::as_array).into_iter().flatten();
    let uids = owners.filter_map(|owner| owner["uid"].as_str());
    uids.map(Box::from).collect()
}

fn labels(value: &Value) -> Box<[(Box<str>, Box<str>)]> {
    let Some(Value::Object(labels)) = value.pointer("/metadata/labels") else {
        return Box::default();
    };
    let mut pairs: Vec<(Box<str>, Box<str>)> = labels
        .iter()
        .map(|(key, value)| (key.as_str().into(), boxed(Some(value))))
        .collect();
    pairs.sort_unstable();
    pairs.into_boxed_slice()
}
