//! What is wrong with a fault as it was written.

use super::read::names;

/// A text or a map that describes no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No such name.
    #[error("there is no fault {name:?}; there are {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// A fault that has no such field.
    #[error("fault {fault}: there is no field {field:?}; there are {fields}")]
    Field {
        /// The fault.
        fault: &'static str,
        /// The field.
        field: String,
        /// Those that it has.
        fields: String,
    },
    /// A part of the text that is no field with its value.
    #[error("fault {fault}: {part:?} is no field; write FIELD=VALUE, and commas between fields")]
    Part {
        /// The fault.
        fault: String,
        /// The part.
        part: String,
    },
    /// A field that is given twice.
    #[error("fault {fault}: field {field} is given twice; write several values as a|b")]
    Twice {
        /// The fault.
        fault: String,
        /// The field.
        field: String,
    },
    /// A field that is needed.
    #[error("fault {fault}: field {field} is missing; write {fault}: {field}={example}")]
    Missing {
        /// The fault.
        fault: &'static str,
        /// The field.
        field: &'static str,
        /// What it could be.
        example: &'static str,
    },
    /// A value that the field cannot have.
    #[error("fault {fault}: field {field}: {why}")]
    Value {
        /// The fault.
        fault: &'static str,
        /// The field.
        field: &'static str,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// Something else than a text or a map.
    #[error(
        "{0} is no fault; write a text such as \"latency: delay=200ms\" or a map with the field `fault`"
    )]
    Shape(String),
}
