//! One deployment as the supervisor lists it.

use reeve_sdk::prelude::*;

use crate::fields::Fields;

/// What stands at a pointer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Said {
    /// Nothing.
    #[default]
    Nothing,
    /// A text, or a whole number as a text.
    Text(String),
    /// What is neither.
    Odd,
}

impl Said {
    /// What stands at this pointer of a value. An empty pointer leads nowhere.
    pub(crate) fn at(value: &Value, pointer: &str) -> Self {
        match at(value, pointer) {
            None | Some(Value::Null) => Self::Nothing,
            Some(Value::String(text)) if text.is_empty() => Self::Nothing,
            Some(Value::String(text)) => Self::Text(text.clone()),
            Some(Value::Number(number)) => {
                let signed = number.as_i64().map(|number| number.to_string());
                let whole = signed.or_else(|| number.as_u64().map(|number| number.to_string()));
                whole.map_or(Self::Odd, Self::Text)
            }
            Some(_) => Self::Odd,
        }
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Nothing | Self::Odd => None,
        }
    }
}

/// What stands at a pointer of a value, if it leads anywhere.
pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    match pointer {
        "" => None,
        pointer => value.pointer(pointer),
    }
}

/// A deployment in a list: what is read of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) id: Said,
    /// Id of its prediction environment.
    pub(crate) environment: Said,
    /// Whether somebody else looks after it.
    pub(crate) unmanaged: bool,
    pub(crate) status: Said,
    /// Id of its model.
    pub(crate) model: Said,
    /// Id of its model's package.
    pub(crate) package: Said,
    /// What it says of the package itself.
    pub(crate) described: Described,
}

/// What is said of a package.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Described {
    pub(crate) url: Said,
    pub(crate) sha256: Said,
    pub(crate) size: Said,
    pub(crate) format: Said,
}

impl Entry {
    pub(crate) fn read(value: &Value, fields: &Fields) -> Self {
        let said = |pointer: &str| Said::at(value, pointer);
        Self {
            id: said(&fields.id),
            environment: said(&fields.environment_id),
            unmanaged: at(value, &fields.managed) == Some(&Value::Bool(false)),
            status: said(&fields.status),
            model: said(&fields.model_id),
            package: said(&fields.package_id),
            described: Described {
                url: said(&fields.package_url),
                sha256: said(&fields.package_sha256),
                size: said(&fields.package_size_bytes),
                format: said(&fields.model_format),
            },
        }
    }

    /// Whether it is to be kept for the prediction environment of this id.
    pub(crate) fn is_of(&self, environment: &str) -> bool {
        self.environment.text() == Some(environment) && !self.unmanaged
    }
}
