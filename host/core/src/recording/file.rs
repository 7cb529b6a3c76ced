//! The form of the file, and reading it back.

use super::{
    About, Answer, CallLimits, CalledComponent, ConfigMapSource, Input, Read, RecordedFact,
    Recording, RecordingError, Redaction, ServedKind,
};
use crate::digest::Digest;
use crate::recording::Body;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// The version of the form.
pub const API_VERSION: &str = "reeve.dev/v1alpha1";

/// The kind of document.
pub const KIND: &str = "Recording";

/// Bytes of a file, at most. A call that reads more than a quarter of what one may
/// read at all is not what anybody wants to look at, or to send to somebody.
pub const MAX_BYTES: u64 = 64 << 20;

/// A file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadBack {
    /// What is in it.
    pub recording: Recording,
    /// Whether something was changed in it after it was written, also if that is only
    /// how a JSON text is laid out: the plugin is given those bytes.
    pub edited: bool,
}

/// A recording in the order in which it is read by people.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    api_version: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    metadata: &'a About,
    component: &'a CalledComponent,
    contract: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    redacted: &'a [Redaction],
    limits: &'a CallLimits,
    input: WrittenInput<'a>,
    answer: &'a Answer,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenInput<'a> {
    primary: &'a Body,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    projection: &'a [String],
    config: &'a Body,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    facts: &'a [RecordedFact],
    kinds: &'a [ServedKind],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    config_map_sources: &'a [ConfigMapSource],
    reads: &'a [Read],
}

impl<'a> Written<'a> {
    fn of(recording: &'a Recording, digest: Option<Digest>) -> Self {
        let Recording {
            metadata,
            component,
            contract,
            input,
            limits,
            redacted,
            answer,
        } = recording;
        Self {
            api_version: API_VERSION,
            kind: KIND,
            digest,
            metadata,
            component,
            contract,
            redacted,
            limits,
            input: WrittenInput {
                primary: &input.primary,
                projection: &input.projection,
                config: &input.config,
                facts: &input.facts,
                kinds: &input.kinds,
                config_map_sources: &input.config_map_sources,
                reads: &input.reads,
            },
            answer,
        }
    }
}

impl Recording {
    /// Digest of everything in it.
    pub fn digest(&self) -> Digest {
        // Our own types have texts for keys and nothing that JSON lacks, so that this
        // cannot fail; an empty text would only make the file look edited.
        let text = serde_json::to_vec(&Written::of(self, None)).unwrap_or_default();
        Digest::of(&text)
    }

    /// The file: JSON over many lines, ended by one.
    ///
    /// # Errors
    ///
    /// When it would be larger than [`MAX_BYTES`].
    pub fn to_text(&self) -> Result<String, RecordingError> {
        let written = Written::of(self, Some(self.digest()));
        // As above.
        let mut text = serde_json::to_string_pretty(&written).unwrap_or_default();
        text.push('\n');
        match text.len() as u64 {
            bytes if bytes > MAX_BYTES => Err(RecordingError::TooMuch),
            _ => Ok(text),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When it is no recording, or none of this version, or damaged. What was edited
    /// and still makes sense is no error; see [`ReadBack::edited`].
    pub fn read(file: &[u8]) -> Result<ReadBack, RecordingError> {
        let bytes = file.len() as u64;
        if bytes > MAX_BYTES {
            return Err(RecordingError::TooLarge { bytes });
        }
        if file.trim_ascii().is_empty() {
            return Err(RecordingError::Empty);
        }
        let header: Header =
            serde_json::from_slice(file).map_err(|error| not_json(file, &error))?;
        header.check()?;
        // What is wrong at the top is told without a place in the file: the fields
        // that JSON itself cannot place have been looked at by now.
        let document: Document = section(file, "the recording")?;
        let input: RawInput = section(document.input.get().as_bytes(), "input")?;
        let recording = Recording {
            metadata: part(&document.metadata, "metadata")?,
            component: part(&document.component, "component")?,
            contract: document.contract,
            limits: part(&document.limits, "limits")?,
            redacted: list(&document.redacted, "redacted")?,
            answer: part(&document.answer, "answer")?,
            input: Input {
                primary: part(&input.primary, "input.primary")?,
                projection: input.projection,
                config: part(&input.config, "input.config")?,
                facts: list(&input.facts, "input.facts")?,
                kinds: list(&input.kinds, "input.kinds")?,
                config_map_sources: list(&input.config_map_sources, "input.configMapSources")?,
                reads: reads(&input.reads)?,
            },
        };
        let edited = recording.digest() != document.digest;
        Ok(ReadBack { recording, edited })
    }
}

/// As much as tells a recording from something else.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    #[serde(default)]
    api_version: serde_json::Value,
    #[serde(default)]
    kind: serde_json::Value,
    #[serde(default)]
    metadata: serde_json::Value,
}

impl Header {
    fn check(&self) -> Result<(), RecordingError> {
        let (version, kind) = (self.api_version.as_str(), self.kind.as_str());
        let (Some(version), Some(KIND)) = (version, kind) else {
            let found = match (version, kind) {
                (None, None) => "it has neither `apiVersion` nor `kind`".to_owned(),
                (_, None) => "it has no `kind`".to_owned(),
                (None, Some(kind)) => format!("it has no `apiVersion`, and the kind is `{kind}`"),
                (Some(version), Some(kind)) => format!("it is a `{kind}` of `{version}`"),
            };
            return Err(RecordingError::Foreign { found });
        };
        if version == API_VERSION {
            return Ok(());
        }
        if !version.starts_with("reeve.dev/") {
            return Err(RecordingError::Foreign {
                found: format!("it is a `{KIND}` of `{version}`"),
            });
        }
        Err(RecordingError::OtherVersion {
            found: version.to_owned(),
            wrote: self.metadata["reeve"].as_str().map(str::to_owned),
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Document {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    digest: Digest,
    metadata: Box<RawValue>,
    component: Box<RawValue>,
    contract: String,
    #[serde(default)]
    redacted: Vec<Box<RawValue>>,
    limits: Box<RawValue>,
    input: Box<RawValue>,
    answer: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawInput {
    primary: Box<RawValue>,
    #[serde(default)]
    projection: Vec<String>,
    config: Box<RawValue>,
    #[serde(default)]
    facts: Vec<Box<RawValue>>,
    kinds: Vec<Box<RawValue>>,
    #[serde(default)]
    config_map_sources: Vec<Box<RawValue>>,
    reads: Vec<Box<RawValue>>,
}

fn section<T: DeserializeOwned>(text: &[u8], field: &str) -> Result<T, RecordingError> {
    serde_json::from_slice(text).map_err(|error| RecordingError::Field {
        field: field.to_owned(),
        problem: without_place(&error),
    })
}

fn part<T: DeserializeOwned>(raw: &RawValue, field: &str) -> Result<T, RecordingError> {
    section(raw.get().as_bytes(), field)
}

fn list<T: DeserializeOwned>(
    raws: &[Box<RawValue>],
    field: &str,
) -> Result<Vec<T>, RecordingError> {
    let raws = raws.iter().enumerate();
    raws.map(|(index, raw)| part(raw, &format!("{field}[{index}]")))
        .collect()
}

/// The answer to a question must be one.
fn reads(raws: &[Box<RawValue>]) -> Result<Vec<Read>, RecordingError> {
    let reads: Vec<Read> = list(raws, "input.reads")?;
    let mut asked = BTreeSet::new();
    for (index, read) in reads.iter().enumerate() {
        if !asked.insert(&read.question) {
            return Err(RecordingError::Field {
                field: format!("input.reads[{index}]"),
                problem: format!("{} is asked for twice", read.question),
            });
        }
    }
    Ok(reads)
}

fn not_json(file: &[u8], error: &serde_json::Error) -> RecordingError {
    if error.is_eof() {
        return RecordingError::Truncated { line: error.line() };
    }
    // A number at the beginning of any text is JSON that goes on wrongly.
    if error.is_data() && serde_json::from_slice::<serde::de::IgnoredAny>(file).is_ok() {
        return RecordingError::Foreign {
            found: "it is JSON, and no map".to_owned(),
        };
    }
    RecordingError::NotJson {
        problem: error.to_string(),
    }
}

/// The place in a part of the file is none that anybody could go to.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(place) => text[..place].to_owned(),
        None => text,
    }
}
