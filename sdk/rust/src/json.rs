//! Reading JSON into types, with errors that name the place.
//!
//! Plugins are read by people who wrote YAML, so an error says
//! `/spec/replicas: invalid type: string "two", expected u32` and not a line and
//! column of a text that nobody has seen. It is also why a plugin is small: with
//! the reader of `serde_json`, whose errors print numbers of every kind, a third
//! of a component would be the formatting of floating-point numbers that it never
//! meets. Here the code for a kind of value is in a component only if a type of
//! the plugin asks for it.

mod any;
mod error;
mod number;
mod raw;
mod text;

use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, EnumAccess, Error as _, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};

use text::Text;

pub use any::Json;
pub use error::JsonError;
pub use raw::{Fields, RawJson};

/// How deep values may be nested. The API server allows CRDs about this much; a
/// component has a megabyte of stack.
const MAX_DEPTH: u8 = 128;

/// Reads a JSON text that stands in a field of an object, such as the data of a
/// ConfigMap.
///
/// Smaller than `serde_json::from_str`, and errors name the place in the text.
///
/// ```
/// let names: Vec<String> = reeve_sdk::parse_json(r#"["alice"]"#).unwrap();
/// assert_eq!(names, ["alice"]);
/// let error = reeve_sdk::parse_json::<Vec<String>>("[1]").unwrap_err();
/// assert_eq!(error.to_string(), "/0: invalid type: number, expected a string");
/// ```
///
/// # Errors
///
/// When the text is no JSON or does not fit the type.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    from_slice(text.as_bytes())
}

/// Reads one JSON text.
///
/// # Errors
///
/// When the text is no JSON or does not fit the type.
pub(crate) fn from_slice<T: DeserializeOwned>(json: &[u8]) -> Result<T, JsonError> {
    let text = std::str::from_utf8(json).map_err(|_| JsonError::custom("the text is not UTF-8"))?;
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    let value = T::deserialize(&mut reader)?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.syntax("nothing more")),
    }
}

struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: u8,
}

impl<'de> Reader<'de> {
    /// The next byte that is no white space, not consumed.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let next = self.byte()?;
            if !matches!(next, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(next);
            }
            self.at += 1;
        }
    }

    /// The next byte, white space or not, not consumed.
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The text from `start` to here.
    fn since(&self, start: usize) -> &'de str {
        // Both ends are beside ASCII bytes, so there always is such a text.
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), JsonError> {
        if self.accept(byte) {
            Ok(())
        } else {
            Err(self.syntax(what))
        }
    }

    fn word(&mut self, word: &str) -> Result<(), JsonError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.syntax("a JSON value"))
        }
    }

    fn syntax(&self, expected: &str) -> JsonError {
        JsonError::custom(format_args!(
            "not JSON: expected {expected} at byte {}",
            self.at
        ))
    }

    #[inline(never)]
    fn enter(&mut self) -> Result<(), JsonError> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(JsonError::custom("nested too deeply"));
        }
        Ok(())
    }

    #[inline(never)]
    fn leave(&mut self, close: u8, what: &str) -> Result<(), JsonError> {
        self.depth -= 1;
        self.expect(close, what)
    }

    fn list<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, JsonError> {
        self.enter()?;
        let items = Items {
            reader: self,
            index: 0,
        };
        let value = visitor.visit_seq(items);
        // What was read is dropped in one place.
        value.and_then(|value| self.leave(b']', "`,` or `]`").map(|()| value))
    }

    fn object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, JsonError> {
        self.enter()?;
        let entries = Entries {
            reader: self,
            first: true,
            key: String::new(),
        };
        let value = visitor.visit_map(entries);
        value.and_then(|value| self.leave(b'}', "`,` or `}`").map(|()| value))
    }

    fn boolean(&mut self) -> Result<bool, JsonError> {
        let value = self.peek() == Some(b't');
        self.word(if value { "true" } else { "false" })?;
        Ok(value)
    }

    /// Reads past one value of any kind.
    fn skip(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'[') => {
                self.enter()?;
                if self.peek() != Some(b']') {
                    self.skip()?;
                    while self.accept(b',') {
                        self.skip()?;
                    }
                }
                self.leave(b']', "`,` or `]`")
            }
            Some(b'{') => {
                self.enter()?;
                if self.peek() != Some(b'}') {
                    self.skip_entry()?;
                    while self.accept(b',') {
                        self.skip_entry()?;
                    }
                }
                self.leave(b'}', "`,` or `}`")
            }
            Some(b'n') => self.word("null"),
            Some(b't' | b'f') => self.boolean().map(drop),
            _ => self.number().map(drop),
        }
    }

    /// The text of one value of any kind, which is read past.
    fn raw(&mut self) -> Result<&'de str, JsonError> {
        self.peek();
        let start = self.at;
        self.skip()?;
        Ok(self.since(start))
    }

    fn skip_entry(&mut self) -> Result<(), JsonError> {
        self.string()?;
        self.expect(b':', "`:`")?;
        self.skip()
    }

    /// The error for a value of another kind than is wanted.
    fn mismatch(&mut self, wanted: &dyn Expected) -> JsonError {
        let string;
        let found = match self.peek() {
            Some(b'"') => match self.string() {
                Ok(text) => {
                    string = text;
                    Unexpected::Str(&string)
                }
                Err(error) => return error,
            },
            Some(b'[') => Unexpected::Seq,
            Some(b'{') => Unexpected::Map,
            Some(b'n') => Unexpected::Unit,
            Some(b't') => Unexpected::Bool(true),
            Some(b'f') => Unexpected::Bool(false),
            Some(b'-' | b'0'..=b'9') => Unexpected::Other("number"),
            _ => return self.syntax("a JSON value"),
        };
        JsonError::invalid_type(found, wanted)
    }
}

/// Methods for one kind of value: anything else is an error at once, so that the
/// code for other kinds is not needed.
macro_rules! only {
    ($($method:ident: $first:pat => |$reader:ident, $visitor:ident| $read:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(self, $visitor: V) -> Result<V::Value, JsonError> {
            let $reader = self;
            match $reader.peek() {
                Some($first) => $read,
                _ => Err($reader.mismatch(&$visitor)),
            }
        })*
    };
}

macro_rules! same {
    ($($method:ident => $other:ident;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
            self.$other(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = JsonError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.peek() {
            Some(b'"') => self.deserialize_str(visitor),
            Some(b'[') => self.list(visitor),
            Some(b'{') => self.object(visitor),
            Some(b'n') => self.deserialize_unit(visitor),
            Some(b't' | b'f') => self.deserialize_bool(visitor),
            _ => self.number()?.visit_any(visitor),
        }
    }

    only! {
        deserialize_bool: b't' | b'f' => |reader, visitor| visitor.visit_bool(reader.boolean()?);
        deserialize_i64: b'-' | b'0'..=b'9' => |reader, visitor| reader.number()?.visit_integer(visitor);
        deserialize_f64: b'-' | b'0'..=b'9' => |reader, visitor| reader.number()?.visit_any(visitor);
        deserialize_str: b'"' => |reader, visitor| reader.string()?.visit(visitor);
        deserialize_unit: b'n' => |reader, visitor| { reader.word("null")?; visitor.visit_unit() };
        deserialize_seq: b'[' => |reader, visitor| reader.list(visitor);
        deserialize_map: b'{' => |reader, visitor| reader.object(visitor);
    }

    same! {
        deserialize_i8 => deserialize_i64;
        deserialize_i16 => deserialize_i64;
        deserialize_i32 => deserialize_i64;
        deserialize_u8 => deserialize_i64;
        deserialize_u16 => deserialize_i64;
        deserialize_u32 => deserialize_i64;
        deserialize_u64 => deserialize_i64;
        deserialize_f32 => deserialize_f64;
        deserialize_char => deserialize_str;
        deserialize_string => deserialize_str;
        deserialize_identifier => deserialize_str;
        deserialize_bytes => deserialize_any;
        deserialize_byte_buf => deserialize_any;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        if self.peek() == Some(b'n') {
            self.word("null")?;
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        if name == raw::NAME {
            return visitor.visit_borrowed_str(self.raw()?);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        match self.peek() {
            Some(b'"') => visitor.visit_enum((&*self.string()?).into_deserializer()),
            Some(b'{') => {
                self.enter()?;
                let value = visitor.visit_enum(Choice {
                    reader: self,
                    variant: String::new(),
                })?;
                self.leave(b'}', "`}`")?;
                Ok(value)
            }
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        self.skip()?;
        visitor.visit_unit()
    }
}

struct Items<'r, 'de> {
    reader: &'r mut Reader<'de>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = JsonError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, JsonError> {
        if self.index == 0 {
            if self.reader.peek() == Some(b']') {
                return Ok(None);
            }
        } else if !self.reader.accept(b',') {
            return Ok(None);
        }
        let item = seed.deserialize(&mut *self.reader);
        let index = self.index;
        self.index += 1;
        item.map(Some)
            .map_err(|error| error.below(&index.to_string()))
    }
}

struct Entries<'r, 'de> {
    reader: &'r mut Reader<'de>,
    first: bool,
    key: String,
}

impl<'de> Entries<'_, 'de> {
    /// The next key. By itself, so that it is in a component once and not once for
    /// each type of key.
    fn next_text(&mut self) -> Result<Option<Text<'de>>, JsonError> {
        if self.first {
            self.first = false;
            if self.reader.peek() == Some(b'}') {
                return Ok(None);
            }
        } else if !self.reader.accept(b',') {
            return Ok(None);
        }
        if self.reader.peek() != Some(b'"') {
            return Err(self.reader.syntax("a key"));
        }
        let key = self.reader.string()?;
        self.reader.expect(b':', "`:`")?;
        self.key.clear();
        self.key.push_str(&key);
        Ok(Some(key))
    }
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = JsonError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, JsonError> {
        match self.next_text()? {
            Some(key) => seed
                .deserialize(key)
                .map(Some)
                .map_err(|error| error.below(&self.key)),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, JsonError> {
        seed.deserialize(&mut *self.reader)
            .map_err(|error| error.below(&self.key))
    }
}

/// The one entry of an object that stands for a variant with content.
struct Choice<'r, 'de> {
    reader: &'r mut Reader<'de>,
    variant: String,
}

impl<'de> EnumAccess<'de> for Choice<'_, 'de> {
    type Error = JsonError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        mut self,
        seed: V,
    ) -> Result<(V::Value, Self), JsonError> {
        let name = self.reader.string()?;
        self.variant.push_str(&name);
        let variant = seed.deserialize(name)?;
        self.reader.expect(b':', "`:`")?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Choice<'_, 'de> {
    type Error = JsonError;

    fn unit_variant(self) -> Result<(), JsonError> {
        self.newtype_variant_seed(PhantomData)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, JsonError> {
        seed.deserialize(self.reader)
            .map_err(|error| error.below(&self.variant))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        self.reader
            .deserialize_seq(visitor)
            .map_err(|error| error.below(&self.variant))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        self.reader
            .deserialize_map(visitor)
            .map_err(|error| error.below(&self.variant))
    }
}

#[cfg(test)]
mod tests;
