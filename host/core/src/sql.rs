//! SQL as a plugin asks for it: statements whose names and values are not text, and
//! what comes back.
//!
//! Text that came from elsewhere is never part of a statement: a name is a
//! [`Part::Identifier`], a value a parameter or, where the language takes no
//! parameters, a [`Part::Literal`]. Whoever sends the statement quotes them.

/// A statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statement {
    /// Its text, in parts.
    pub parts: Vec<Part>,
    /// Values for `$1`, `$2` and so on.
    pub parameters: Vec<Value>,
}

/// A part of a statement's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// SQL.
    Text(String),
    /// The name of a table, role or other thing.
    Identifier(String),
    /// A text value, where the language takes no parameter.
    Literal(String),
    /// What the server stores of a generated Secret instead of the password itself:
    /// its SCRAM-SHA-256 verifier, as a literal. Whoever reads the statement learns
    /// no password from it.
    Password(String),
}

/// A value, given or returned.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL's null.
    Null,
    /// A truth value.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// Text, and whatever the server takes in the form of text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Value {
    /// Bytes that it takes, roughly.
    pub fn size(&self) -> usize {
        match self {
            Self::Null | Self::Boolean(_) => 1,
            Self::Integer(_) | Self::Float(_) => 8,
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// What a statement returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows, each with a value for each column.
    pub rows: Vec<Vec<Value>>,
    /// Rows that were changed, or returned.
    pub affected: u64,
}

impl Rows {
    /// Bytes of names and values.
    pub fn size(&self) -> usize {
        let columns: usize = self.columns.iter().map(String::len).sum();
        let values: usize = self.rows.iter().flatten().map(Value::size).sum();
        columns + values
    }
}

/// Why a statement gave no rows. The text is for people and holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// The connection may not be used here.
    #[error("{0}")]
    Forbidden(String),
    /// The database cannot be reached, or does not let us in. It may work later.
    #[error("{0}")]
    Connection(String),
    /// The database refuses the statement.
    #[error("{message} (SQLSTATE {state})")]
    Refused {
        /// Its SQLSTATE, five characters.
        state: String,
        /// In its own words.
        message: String,
    },
    /// It took too long, and was ended.
    #[error("{0}")]
    Timeout(String),
    /// It returned more than may be returned.
    #[error("{0}")]
    TooLarge(String),
    /// The statement itself is malformed.
    #[error("{0}")]
    Invalid(String),
}
