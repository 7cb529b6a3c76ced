//! Reading one of several words: the properties of a configuration, its choices, and
//! the fields of metadata.
//!
//! What [`config`](crate::config) expands to asks for the index of a word. So the code
//! that compares and complains is in a component once, and not once for each type.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, Visitor};

/// Reads one of these words, as its index.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    words: &'static [&'static str],
    of: Of,
}

#[derive(Clone, Copy, Debug)]
enum Of {
    /// A configuration, which has no other properties.
    Configuration,
    /// A choice.
    Choice,
    /// An object of the cluster, of which these are read.
    Object,
}

impl Words {
    /// The names of the properties of an object.
    pub const fn properties(words: &'static [&'static str]) -> Self {
        Self {
            words,
            of: Of::Configuration,
        }
    }

    /// Properties of an object that may have others: those are the index after the
    /// last.
    pub(crate) const fn among(words: &'static [&'static str]) -> Self {
        Self {
            words,
            of: Of::Object,
        }
    }

    /// The choices that there are.
    pub const fn choices(words: &'static [&'static str]) -> Self {
        Self {
            words,
            of: Of::Choice,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Words {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Words {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.of {
            Of::Configuration | Of::Object => "the name of a property",
            Of::Choice => "a text that names a choice",
        })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<usize, E> {
        let found = self.words.iter().position(|word| *word == text);
        match self.of {
            Of::Configuration => found.ok_or_else(|| E::unknown_field(text, self.words)),
            Of::Choice => found.ok_or_else(|| E::unknown_variant(text, self.words)),
            Of::Object => Ok(found.unwrap_or(self.words.len())),
        }
    }
}
