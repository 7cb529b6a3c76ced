//! Reading of objects from outside, as strictly as the server reads them.
//!
//! JSON and YAML become a [`Document`], which still knows the order of fields and
//! the fields that came twice. A built-in kind is then read into its type, which
//! refuses values of the wrong type and leaves out fields that it does not know;
//! of a custom resource that is true of the metadata alone.
//!
//! What is left out, and what came twice, is told as complaints: refused, warned
//! of or passed over, as the request asks.

mod document;
mod syntax;
mod time;
mod typed;
mod types;
mod unicode;
mod yaml;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::depth;

pub(crate) use document::{Document, Place};
pub(crate) use types::{Field, Merging, Shape, Type, of_kind as type_of_kind};

/// An object as it was sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Decoded {
    /// The object.
    pub(crate) object: Value,
    /// Unknown fields and fields that came twice, in the server's words.
    pub(crate) complaints: Vec<String>,
    /// Where lists or maps came empty and were left out for that: dotted paths, without
    /// places in lists.
    pub(crate) hollow: BTreeSet<String>,
    /// Where null stands for bytes in a map: its field, and the key. There they are as many
    /// as in an empty text, and are stored otherwise all the same.
    pub(crate) blank: Vec<(String, String)>,
    /// The whole as a patch made it, where a refusal of its fields is to show it.
    pub(crate) shown: Option<Box<str>>,
}

/// Says whether a text is JSON.
///
/// # Errors
///
/// What is wrong with it, in the words of the server's decoder.
pub(crate) fn check_json(text: &[u8]) -> Result<(), String> {
    syntax::check(text)
}

/// Reads JSON.
///
/// # Errors
///
/// What is wrong with the text.
pub(crate) fn json(body: &[u8]) -> Result<Document, String> {
    read(body).map_err(|error| match syntax::check(body) {
        Err(why) => why,
        Ok(()) => match error.to_string() {
            // Fine, but deeper than anything that is read here.
            why if why.starts_with("recursion limit") => depth::message(),
            why => why,
        },
    })
}

/// Reads JSON, also such whose texts are no Unicode.
fn read(body: &[u8]) -> Result<Document, serde_json::Error> {
    serde_json::from_slice(body).or_else(|error| match unicode::mended(body) {
        Some(mended) => serde_json::from_slice(&mended),
        None => Err(error),
    })
}

/// Reads YAML, of which JSON is a part and the usual case. The second part of the
/// answer is the complaint about keys that came twice, if there are any.
///
/// # Errors
///
/// What is wrong with the text.
pub(crate) fn yaml(body: &[u8]) -> Result<(Document, Option<String>), String> {
    if let Ok(document) = read(body)
        && !document.repeats()
    {
        return Ok((document, None));
    }
    let text = std::str::from_utf8(body).map_err(|error| format!("yaml: {error}"))?;
    let parsed = yaml::parse(text).map_err(|error| error.to_string())?;
    let repeated = (!parsed.repeated.is_empty())
        .then(|| format!("{REPEATED}{}", parsed.repeated.join("\n  ")));
    Ok((Document::from(parsed.value), repeated))
}

/// What stands before the lines of a complaint about YAML.
const REPEATED: &str = "yaml: unmarshal errors:\n  ";

/// The warnings that a complaint makes: one, or one a line of YAML.
pub(crate) fn warnings(complaint: &str) -> impl Iterator<Item = &str> {
    let lines = complaint.strip_prefix(REPEATED);
    let (one, lines) = match lines {
        Some(lines) => (None, Some(lines.split("\n  "))),
        None => (Some(complaint), None),
    };
    one.into_iter().chain(lines.into_iter().flatten())
}

/// Reads a built-in kind into its type.
///
/// # Errors
///
/// When a value is of the wrong type, in the server's words.
pub(crate) fn builtin(
    api_version: &str,
    kind: &str,
    document: Document,
) -> Result<Decoded, String> {
    match types::of_kind(api_version, kind) {
        Some(ty) => typed::decode(ty, document),
        None => {
            let mut complaints = Vec::new();
            let object = document.into_value(&mut complaints);
            Ok(Decoded {
                object,
                complaints,
                ..Decoded::default()
            })
        }
    }
}

/// Removes what metadata cannot hold. The answer is the paths of that, below
/// `path`; what cannot be read as metadata at all stays as it is.
pub(crate) fn prune_metadata(metadata: &mut Value, path: &str) -> Vec<String> {
    let Some(ty) = types::named("meta/v1.ObjectMeta") else {
        return Vec::new();
    };
    let Ok(decoded) = typed::decode(ty, Document::from(metadata.clone())) else {
        return Vec::new();
    };
    *metadata = decoded.object;
    let fields = decoded.complaints.iter();
    fields
        .filter_map(|complaint| complaint.split('"').nth(1))
        .map(|field| format!("{path}.{field}"))
        .collect()
}

/// Removes each field of metadata that cannot be read as one.
pub(crate) fn drop_malformed_metadata(metadata: &mut Map<String, Value>) {
    let Some(ty) = types::named("meta/v1.ObjectMeta") else {
        return;
    };
    metadata.retain(|field, value| {
        let alone = Map::from_iter([(field.clone(), value.clone())]);
        typed::decode(ty, Document::from(Value::Object(alone))).is_ok()
    });
}

/// Reads a custom resource: free of any type but for its metadata.
///
/// # Errors
///
/// When a value in the metadata is of the wrong type.
pub(crate) fn custom(document: Document) -> Result<Decoded, String> {
    let mut complaints = Vec::new();
    let mut object = document.into_value(&mut complaints);
    if let Some(metadata) = object.get_mut("metadata")
        && let Some(ty) = types::named("meta/v1.ObjectMeta")
    {
        let decoded = typed::decode(ty, Document::from(metadata.take()))?;
        *metadata = decoded.object;
        complaints.extend(decoded.complaints.iter().map(|complaint| {
            let inner = complaint.replacen(" field \"", " field \"metadata.", 1);
            inner.to_owned()
        }));
    }
    Ok(Decoded {
        object,
        complaints,
        ..Decoded::default()
    })
}
