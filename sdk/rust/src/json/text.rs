//! Strings.

use std::borrow::Cow;
use std::ops::Deref;

use serde::Deserializer;
use serde::de::{Error as _, Visitor};
use serde::forward_to_deserialize_any;

use super::{JsonError, Reader};

/// A string of the text, copied only when it has escapes.
pub(super) struct Text<'de>(Cow<'de, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de> Text<'de> {
    pub(super) fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }
}

/// As the key of an object. Keys of maps may be numbers in quotes.
impl<'de> Deserializer<'de> for Text<'de> {
    type Error = JsonError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonError> {
        self.visit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        visitor.visit_enum(serde::de::IntoDeserializer::into_deserializer(&*self))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> Reader<'de> {
    /// Reads a string.
    pub(super) fn string(&mut self) -> Result<Text<'de>, JsonError> {
        self.expect(b'"', "a string")?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain(self.text.as_bytes().get(self.at..).unwrap_or_default());
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                _ => return Err(self.syntax("the end of a string")),
            }
        }
        let raw = self.since(start);
        self.at += 1;
        if escaped {
            let text = unescape(raw).ok_or_else(|| JsonError::custom("not JSON: a bad escape"))?;
            Ok(Text(Cow::Owned(text)))
        } else {
            Ok(Text(Cow::Borrowed(raw)))
        }
    }
}

/// How many bytes at the beginning of these stand for themselves in a string: no quotation
/// mark, no backslash and no control character.
fn plain(bytes: &[u8]) -> usize {
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20);
    let (eights, rest) = bytes.as_chunks::<8>();
    for (number, eight) in eights.iter().enumerate() {
        if may_be_special(u64::from_le_bytes(*eight))
            && let Some(at) = eight.iter().position(special)
        {
            return 8 * number + at;
        }
    }
    let at = rest.iter().position(special).unwrap_or(rest.len());
    bytes.len() - rest.len() + at
}

/// Whether one of eight bytes ends a run of plain ones. It is said of all that do, and of
/// some that do not, such as bytes beyond ASCII.
fn may_be_special(eight: u64) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = EACH << 7;
    // The first byte that is below the limit gets its high bit: none before it borrows.
    let below = |eight: u64, limit: u64| eight.wrapping_sub(EACH * limit) & HIGH;
    let is = |byte: u8| below(eight ^ (EACH * u64::from(byte)), 1);
    (below(eight, 0x20) | is(b'"') | is(b'\\')) != 0
}

fn unescape(raw: &str) -> Option<String> {
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        text.push(match chars.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => match unit(&mut chars)? {
                // A character beyond the basic plane is a pair of escapes.
                high @ 0xd800..0xdc00 => {
                    if (chars.next()?, chars.next()?) != ('\\', 'u') {
                        return None;
                    }
                    let low = unit(&mut chars)?
                        .checked_sub(0xdc00)
                        .filter(|low| *low < 0x400)?;
                    char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + low)?
                }
                // A low half by itself is no character.
                code => char::from_u32(code)?,
            },
            c @ ('"' | '\\' | '/') => c,
            _ => return None,
        });
    }
    Some(text)
}

/// Four hexadecimal digits.
fn unit(chars: &mut std::str::Chars<'_>) -> Option<u32> {
    let mut value = 0;
    for _ in 0..4 {
        value = value * 16 + chars.next()?.to_digit(16)?;
    }
    Some(value)
}
