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
    /// The folder in it, which is what comes after; empty for all of it.
    pub(crate) folder: String,
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
    /// Those that cannot.
    pub(crate) unreadable: Vec<Unreadable>,
}

/// A bucket of whose description something cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// Where it stands, and what is wrong with it.
    pub(crate) problem: String,
    pub(crate) which: Which,
    /// Namespaces that may read it, if that can be read.
    pub(crate) readers: Option<Vec<String>>,
}

/// Which bucket something is about, as far as it can be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Which {
    pub(crate) container: Option<String>,
    pub(crate) folder: Option<String>,
    /// What it is called in volumes and claims.
    pub(crate) label: Option<String>,
}

/// What somebody may do with a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    ReadWrite,
}

impl Bucket {
    /// What a Profile may do: nothing, or read, or also write. Writing alone is
    /// nothing.
    pub(crate) fn access(&self, profile: &str) -> Option<Access> {
        match (among(&self.readers, profile), among(&self.writers, profile)) {
            (true, true) => Some(Access::ReadWrite),
            (true, false) => Some(Access::Read),
            (false, _) => None,
        }
    }

    pub(crate) fn which(&self) -> Which {
        Which {
            container: Some(self.container.clone()),
            folder: Some(self.folder.clone()),
            label: self.label.clone().or_else(|| Some(self.name.clone())),
        }
    }
}

impl Unreadable {
    /// Whether a Profile may be among the readers.
    pub(crate) fn concerns(&self, profile: &str) -> bool {
        let readers = self.readers.as_ref();
        readers.is_none_or(|readers| among(readers, profile))
    }
}

impl Which {
    /// Whether it can be told at all.
    pub(crate) fn is_known(&self) -> bool {
        self.container.is_some() || self.label.is_some()
    }
}

fn among(namespaces: &[String], profile: &str) -> bool {
    namespaces.iter().any(|one| one == profile)
}

/// How the entries of a description are written.
struct Form {
    /// The field with the name, unless it stands before the entry.
    name: Option<&'static str>,
    /// The field with the folder, where there is one.
    folder: Option<&'static str>,
    /// The field with what the bucket is called in volumes and claims.
    label: &'static str,
}

/// All data of an OPA gateway: `{"result": {BUCKET: {readers, writers}}}`, with
/// `spn` and `name` in the second generation.
pub(crate) fn of_opa(text: &str) -> Result<Described, String> {
    const FORM: Form = Form {
        name: None,
        folder: None,
        label: "name",
    };
    let answer: RawJson = parse_json(text).map_err(not_json)?;
    let answer: Fields = answer.read().unwrap_or_default();
    let result = answer.get("result").map(RawJson::read::<Fields>);
    let Some(Ok(entries)) = result else {
        return Err("no object under `result`; ask for /v1/data of the gateway".to_owned());
    };
    let mut described = Described::default();
    // In the order of their names: that of the document means nothing.
    for (name, entry) in entries.iter().filter(|(name, _)| *name != NOT_A_BUCKET) {
        described.add(&FORM, name, Some(name), entry);
    }
    Ok(described)
}

/// A key of the ConfigMap: an array of `{bucketName, pvName, subfolder, readers,
/// writers, spn}`.
pub(crate) fn of_config_map(text: &str) -> Result<Described, String> {
    const FORM: Form = Form {
        name: Some("bucketName"),
        folder: Some("subfolder"),
        label: "pvName",
    };
    let answer: RawJson = parse_json(text).map_err(not_json)?;
    let Ok(entries) = answer.read::<Vec<RawJson>>() else {
        return Err("no array of buckets".to_owned());
    };
    let mut described = Described::default();
    for (index, entry) in entries.iter().enumerate() {
        described.add(&FORM, &format!("item {index}"), None, entry);
    }
    Ok(described)
}

impl Described {
    /// Whether no bucket is named at all, not even one that cannot be read.
    pub(crate) fn is_empty(&self) -> bool {
        self.buckets.is_empty() && self.unreadable.is_empty()
    }

    /// Takes in the entry at a place; `name` is what stands before it.
    fn add(&mut self, form: &Form, place: &str, name: Option<&str>, entry: &RawJson) {
        let mut wrong = Problems::new();
        let fields: Option<Fields> = wrong.take(entry.read().map_err(|_| "no object"));
        let is_object = fields.is_some();
        let fields = fields.unwrap_or_default();
        let name = match form.name {
            Some(field) if is_object => wrong.take(name_of(&fields, field)),
            _ => name.map(str::to_owned),
        };
        let container = name.as_ref().map(|name| split(name).0.to_owned());
        let folder = name
            .as_ref()
            .and_then(|name| wrong.take(folder_of(&fields, form, name)));
        let label = wrong.take(text_of(&fields, form.label));
        let principal = wrong.take(text_of(&fields, "spn"));
        let readers = wrong.take(names_of(&fields, "readers"));
        let writers = wrong.take(names_of(&fields, "writers"));
        if wrong.is_empty() {
            self.buckets.push(Bucket {
                name: name.unwrap_or_default(),
                container: container.unwrap_or_default(),
                folder: folder.unwrap_or_default(),
                label: label.flatten(),
                principal: principal.flatten(),
                readers: readers.unwrap_or_default(),
                writers: writers.unwrap_or_default(),
            });
            return;
        }
        // Where there are none, who knows whether they are lacking.
        let said = fields.get(spelled(&fields, "readers"));
        let is_said = said.is_some_and(|readers| readers.as_str() != "null");
        let problem = match (form.name, &name) {
            (Some(_), Some(name)) => format!("{place}: {name}: {}", wrong.text()),
            _ => format!("{place}: {}", wrong.text()),
        };
        self.unreadable.push(Unreadable {
            problem,
            which: Which {
                container,
                folder,
                // Without one, volumes are called as the bucket is.
                label: label.and_then(|label| label.or(name)),
            },
            readers: readers.filter(|_| is_said),
        });
    }
}

/// Container and folder in the name of a bucket.
fn split(name: &str) -> (&str, Option<&str>) {
    match name.split_once('/') {
        Some((container, folder)) => (container, Some(folder)),
        None => (name, None),
    }
}

fn name_of(entry: &Fields, field: &str) -> Result<String, String> {
    text_of(entry, field)?.ok_or_else(|| format!("no {field}"))
}

fn folder_of(entry: &Fields, form: &Form, name: &str) -> Result<String, String> {
    let said = match form.folder {
        Some(field) => text_of(entry, field)?,
        None => None,
    };
    match (said, split(name).1) {
        (Some(one), Some(other)) if one != other => Err(format!(
            "the name says folder {other}, and subfolder says {one}; say it once"
        )),
        (Some(folder), _) => Ok(folder),
        (None, folder) => Ok(folder.unwrap_or_default().to_owned()),
    }
}

/// A text; none when there is nothing in it.
fn text_of(entry: &Fields, name: &str) -> Result<Option<String>, String> {
    let text: Result<String, _> = entry.read(spelled(entry, name));
    let text = text.map_err(|_| format!("{name} is no text"))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn names_of(entry: &Fields, name: &str) -> Result<Vec<String>, String> {
    let names = entry.read(spelled(entry, name));
    names.map_err(|_| format!("{name} is no array of namespaces"))
}

/// The name of a field as it is written: in any case, as in programs written in Go.
fn spelled<'a>(entry: &'a Fields, name: &'a str) -> &'a str {
    let exact = entry.get(name).map(|_| name);
    let mut names = entry.iter().map(|(other, _)| other);
    exact
        .or_else(|| names.find(|other| other.eq_ignore_ascii_case(name)))
        .unwrap_or(name)
}

fn not_json(error: impl std::fmt::Display) -> String {
    format!("no JSON: {error}")
}
