//! Why an answer is refused.

use super::checks::MAX_WORD;
use crate::kind::{GroupVersionKind, ObjectReference};

/// Why an answer is refused. Each names the object and the field.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DesiredError {
    /// An object is no JSON.
    #[error("{entry} is no JSON: {problem}; return each object as one JSON object in UTF-8")]
    Json {
        /// Position in the outcome.
        entry: Entry,
        /// What the parser says.
        problem: String,
    },
    /// A required field is missing or malformed.
    #[error("{entry}{described}: {field}: {problem}")]
    Field {
        /// Position in the outcome.
        entry: Entry,
        /// ` (ResourceQuota alice/quotas)`, as far as known.
        described: String,
        /// JSON path of the field.
        field: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The kind is not in the manifest's writes.
    #[error("{entry} ({object}): the manifest declares no write of {kind}; declare it in `writes`")]
    UndeclaredKind {
        /// Position in the outcome.
        entry: Entry,
        /// The object.
        object: Box<ObjectReference>,
        /// Its kind.
        kind: Box<GroupVersionKind>,
    },
    /// The place is not in the manifest's writes.
    #[error(
        "{entry} ({object}): outside the declared scope: {allowed}; return it there, or declare a wider scope in `writes`"
    )]
    OutsideScope {
        /// Position in the outcome.
        entry: Entry,
        /// The object.
        object: Box<ObjectReference>,
        /// Where the manifest lets it write this kind.
        allowed: String,
    },
    /// The object stands in the outcome twice.
    #[error(
        "objects[{index}] ({object}): returned twice, first as objects[{first}]; return each object once"
    )]
    Duplicate {
        /// Position in the outcome.
        index: usize,
        /// Position of the first.
        first: usize,
        /// The object.
        object: Box<ObjectReference>,
    },
    /// The object is both wanted and unwanted.
    #[error(
        "absent[{index}] ({object}): also returned as objects[{first}]; return it in one of the two"
    )]
    Contradiction {
        /// Position in `absent`.
        index: usize,
        /// Position in `objects`.
        first: usize,
        /// The object.
        object: Box<ObjectReference>,
    },
    /// More conditions or events than anybody reads.
    #[error("{list}: {got} entries, more than the {limit} that are recorded; return fewer")]
    TooMany {
        /// `conditions` or `events`.
        list: &'static str,
        /// How many there are.
        got: usize,
        /// How many there may be.
        limit: usize,
    },
    /// More for outside effects than one object can keep.
    #[error(
        "actions: {got} bytes of inputs and texts, more than the {limit} that are kept for one primary; return less"
    )]
    ActionsTooLarge {
        /// How many there are.
        got: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A type or reason that the Kubernetes API would refuse.
    #[error(
        "{list}[{index}]: {field}: `{value}` is not a CamelCase word of at most {MAX_WORD} characters"
    )]
    Word {
        /// `conditions` or `events`.
        list: &'static str,
        /// Position in the list.
        index: usize,
        /// `type` or `reason`.
        field: &'static str,
        /// Its beginning.
        value: String,
    },
    /// An outside effect that cannot be asked for.
    #[error("actions[{index}] ({key}): {field}: {problem}")]
    Action {
        /// Position in the outcome.
        index: usize,
        /// Its key, as far as it can be shown.
        key: String,
        /// Field of the action.
        field: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The outcome uses a part of the contract that this host does not carry out.
    #[error("{field}: this version of reeve does not carry out {what} yet; return none")]
    Unsupported {
        /// Field of the outcome.
        field: &'static str,
        /// What is not carried out.
        what: &'static str,
    },
}

/// Position of an entry in an outcome, such as `objects[3]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `objects` or `absent`.
    pub list: &'static str,
    /// Position in the list.
    pub index: usize,
}

impl Entry {
    pub(super) fn object(index: usize) -> Self {
        Self {
            list: "objects",
            index,
        }
    }
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.list, self.index)
    }
}
