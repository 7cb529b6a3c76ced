//! Where in an object's JSON a part of it stands.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A part of a text. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    length: u32,
}

/// Parts of the metadata that are read when somebody asks for them, which is seldom: not the
/// whole text has to be gone through for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans {
    pub(super) annotations: Span,
    pub(super) finalizers: Span,
}

#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    finalizers: Option<&'a RawValue>,
}

impl Span {
    /// What is further behind than 32 bits can say is none: the API server takes no more than
    /// some megabytes.
    pub(super) fn new(start: usize, length: usize) -> Self {
        match (u32::try_from(start), u32::try_from(length)) {
            (Ok(start), Ok(length)) => Self { start, length },
            _ => Self::default(),
        }
    }

    /// The part of its text; none if there is none.
    pub(super) fn of(self, text: &str) -> Option<&str> {
        let start = self.start as usize;
        text.get(start..start + self.length as usize)
            .filter(|part| !part.is_empty())
    }
}

impl Spans {
    /// Those of an object's JSON.
    pub(super) fn find(json: &str) -> Self {
        let Ok(Parts { metadata }) = serde_json::from_str(json) else {
            return Self::default();
        };
        let span = |value: Option<&RawValue>| {
            let value = value?.get();
            let start = (value.as_ptr() as usize).checked_sub(json.as_ptr() as usize)?;
            Some(Span::new(start, value.len()))
        };
        Self {
            annotations: span(metadata.annotations).unwrap_or_default(),
            finalizers: span(metadata.finalizers).unwrap_or_default(),
        }
    }
}
