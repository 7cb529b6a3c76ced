//! Buckets, as OPA gateways and the ConfigMap describe them.

use reeve_sdk::parse_json;
use reeve_sdk::prelude::*;

/// What of OPA's data is no bucket: its own policies.
const NOT_A_BUCKET: &str = "httpapi";

/// A bucket, and who may use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// As it is described, a folder included.
    pub(crate) name: String,
    /// The container, which is the name up to the first slash.
    pub(crate) container: String,
    /// The folder in it, which is what comes after.
    pub(crate) folder: Option<String>,
    /// What it is called in volumes and claims; buckets of the first generation of
    /// OPA's data have no such name.
    pub(crate) label: Option<String>,
    /// The service principal.
    pub(crate) principal: Option<String>,
    /// Namespaces that may read it.
    pub(crate) readers: Vec<String>,
    /// Namespaces that may write it, if they may read it as well.
    pub(crate) writers: Vec<String>,
}

/// What a document says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Described {
    /// The buckets that can be read.
    pub(crate) buckets: Vec<Bucket>,
    /// What cannot be read, and so might be anybody's.
    pub(crate) unreadable: Vec<String>,
}

impl Bucket {
    /// What a Profile may do: nothing, or read, or also write. Writing alone is
    /// nothing.
    pub(crate) fn access(&self, profile: &str) -> Option<Access> {
        let among = |namespaces: &[String]| namespaces.iter().any(|one| one == profile);
        match (among(&self.readers), among(&self.writers)) {
            (true, true) => Some(Access::ReadWrite),
            (true, false) => Some(Access::Read),
            (false, _) => None,
        }
    }
}

/// What somebody may do with a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    ReadWrite,
}

/// All data of an OPA gateway: `{"result": {BUCKET: {readers, writers}}}`, with
/// `spn` and `name` in the second generation.
pub(crate) fn of_opa(text: &str) -> Result<Described, String> {
    let answer: Json = parse_json(text).map_err(not_json)?;
    let Some(entries) = answer.get("result").and_then(Value::as_object) else {
        return Err("no object under `result`; ask for /v1/data of the gateway".to_owned());
    };
    let mut described = Described::default();
    // In the order of their names: that of the document means nothing.
    for (name, entry) in entries.iter().filter(|(name, _)| *name != NOT_A_BUCKET) {
        described.add(name, of_entry(name, None, "name", entry));
    }
    Ok(described)
}

/// A key of the ConfigMap: an array of `{bucketName, pvName, subfolder, readers,
/// writers, spn}`.
pub(crate) fn of_config_map(text: &str) -> Result<Described, String> {
    let answer: Json = parse_json(text).map_err(not_json)?;
    let Some(entries) = answer.as_array() else {
        return Err("no array of buckets".to_owned());
    };
    let mut described = Described::default();
    for (index, entry) in entries.iter().enumerate() {
        let bucket = match text_of(entry, "bucketName") {
            Ok(Some(name)) => text_of(entry, "subfolder")
                .and_then(|folder| of_entry(&name, folder, "pvName", entry))
                .map_err(|error| format!("{name}: {error}")),
            Ok(None) => Err("no bucketName".to_owned()),
            Err(error) => Err(error),
        };
        described.add(&format!("item {index}"), bucket);
    }
    Ok(described)
}

impl Described {
    fn add(&mut self, place: &str, bucket: Result<Bucket, String>) {
        match bucket {
            Ok(bucket) => self.buckets.push(bucket),
            Err(error) => self.unreadable.push(format!("{place}: {error}")),
        }
    }
}

/// A bucket of this name; `label` is the field by which its volumes are called.
fn of_entry(
    name: &str,
    folder: Option<String>,
    label: &str,
    entry: &Value,
) -> Result<Bucket, String> {
    let (container, rest) = match name.split_once('/') {
        Some((container, rest)) => (container, Some(rest.to_owned())),
        None => (name, None),
    };
    let folder = match (folder, rest) {
        (Some(one), Some(other)) if one != other => {
            return Err(format!(
                "the name says folder {other}, and subfolder says {one}; say it once"
            ));
        }
        (one, other) => one.or(other),
    };
    Ok(Bucket {
        name: name.to_owned(),
        container: container.to_owned(),
        folder: folder.filter(|folder| !folder.is_empty()),
        label: text_of(entry, label)?,
        principal: text_of(entry, "spn")?,
        readers: names_of(entry, "readers")?,
        writers: names_of(entry, "writers")?,
    })
}

/// A field, whose name may be written in any case, as in programs written in Go.
fn field<'a>(entry: &'a Value, name: &str) -> Result<Option<&'a Value>, String> {
    let Some(fields) = entry.as_object() else {
        return Err("no object".to_owned());
    };
    let mut alike = fields
        .iter()
        .filter(|(key, _)| key.eq_ignore_ascii_case(name));
    let found = fields
        .get(name)
        .or_else(|| alike.next().map(|(_, value)| value));
    Ok(found.filter(|value| !value.is_null()))
}

/// A text; none when there is nothing in it.
fn text_of(entry: &Value, name: &str) -> Result<Option<String>, String> {
    match field(entry, name)? {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("{name} is no text")),
    }
}

fn names_of(entry: &Value, name: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("{name} is no array of namespaces");
    let Some(value) = field(entry, name)? else {
        return Ok(Vec::new());
    };
    let items = value.as_array().ok_or_else(wrong)?;
    let names = items.iter().map(|item| item.as_str().map(str::to_owned));
    names.collect::<Option<_>>().ok_or_else(wrong)
}

fn not_json(error: impl std::fmt::Display) -> String {
    format!("no JSON: {error}")
}
