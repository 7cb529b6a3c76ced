//! Numbers.

use serde::de::{Error as _, Unexpected, Visitor};

use super::{JsonError, Reader};

/// The text of a number, its form checked.
pub(super) struct Number<'de> {
    text: &'de str,
    whole: bool,
}

impl Reader<'_> {
    /// Reads a number.
    pub(super) fn number(&mut self) -> Result<Number<'_>, JsonError> {
        self.peek();
        let start = self.at;
        self.at += usize::from(self.byte() == Some(b'-'));
        let zero = self.byte() == Some(b'0');
        let digits = self.digits()?;
        if zero && digits > 1 {
            return Err(self.syntax("no leading zero"));
        }
        let mut whole = true;
        if self.byte() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(Number {
            text: self.since(start),
            whole,
        })
    }

    /// Reads at least one digit and says how many there were.
    fn digits(&mut self) -> Result<usize, JsonError> {
        let start = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.syntax("a JSON value"));
        }
        Ok(self.at - start)
    }
}

impl Number<'_> {
    pub(super) fn visit_integer<'v, V: Visitor<'v>>(
        self,
        visitor: V,
    ) -> Result<V::Value, JsonError> {
        if self.whole {
            if let Ok(value) = self.text.parse() {
                return visitor.visit_u64(value);
            }
            if let Ok(value) = self.text.parse() {
                return visitor.visit_i64(value);
            }
        }
        let found = if self.whole {
            "number beyond 64 bits"
        } else {
            "number with a fraction or exponent"
        };
        Err(JsonError::invalid_type(Unexpected::Other(found), &visitor))
    }

    pub(super) fn visit_any<'v, V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, JsonError> {
        if self.whole {
            if let Ok(value) = self.text.parse() {
                return visitor.visit_u64(value);
            }
            // Minus zero is a number with a sign, which integers cannot tell.
            if self.text != "-0"
                && let Ok(value) = self.text.parse()
            {
                return visitor.visit_i64(value);
            }
        }
        match self.text.parse::<f64>() {
            Ok(value) if value.is_finite() => visitor.visit_f64(value),
            _ => Err(JsonError::custom("number out of range")),
        }
    }
}
