//! What is wrong with a file that should be a recording.

use super::file::{API_VERSION, KIND, MAX_BYTES};

/// Why a file is no recording that can be used. Each says what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// There is nothing in it.
    #[error("the file is empty; record the call again")]
    Empty,
    /// It is larger than any that is written.
    #[error(
        "it has {bytes} bytes, and a recording has at most {} MiB; name a file that `reeve \
         record` wrote",
        MAX_BYTES >> 20
    )]
    TooLarge {
        /// How many bytes there are.
        bytes: u64,
    },
    /// A call with more to it than a file takes.
    #[error(
        "the call read or returned more than the {} MiB that a recording may have; narrow what \
         the plugin reads, by namespace, selector or projection",
        MAX_BYTES >> 20
    )]
    TooMuch,
    /// It ends before its end.
    #[error("it ends in line {line}, before its end; copy or record it again")]
    Truncated {
        /// The last line.
        line: usize,
    },
    /// It is no JSON.
    #[error("it is no JSON: {problem}; a recording is a file that `reeve record` wrote")]
    NotJson {
        /// What is wrong, and where.
        problem: String,
    },
    /// It is something else.
    #[error(
        "it is no recording: {found}, where `apiVersion: {API_VERSION}` and `kind: {KIND}` should \
         stand; name a file that `reeve record` wrote"
    )]
    Foreign {
        /// What it says that it is.
        found: String,
    },
    /// It has a version of the form that is not known here.
    #[error(
        "its form is `{found}`, and this reeve reads `{API_VERSION}`; use the reeve that wrote \
         it{}",
        writer(wrote)
    )]
    OtherVersion {
        /// Its `apiVersion`.
        found: String,
        /// Version of the reeve that wrote it, if it says.
        wrote: Option<String>,
    },
    /// A field is wrong.
    #[error(
        "{field}: {problem}; the file is damaged, or was edited or written by another version \
         of reeve: record the call again"
    )]
    Field {
        /// The field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
}

fn writer(wrote: &Option<String>) -> String {
    wrote
        .as_ref()
        .map_or_else(String::new, |version| format!(", version {version}"))
}
