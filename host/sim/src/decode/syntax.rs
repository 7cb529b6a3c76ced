//! What is wrong with a text that is no JSON, in the words of the server's parser.
//!
//! Only texts that another parser has refused come here. The text is read byte by
//! byte with a stack of what is open; the first byte that cannot follow is named.

/// How deep the server reads.
const DEPTH: usize = 10_000;

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Expect {
    Value,
    /// A value, or the end of a list that has just begun.
    ValueOrEnd,
    /// A key, or the end of an object that has just begun.
    KeyOrEnd,
    Key,
    Colon,
    /// A comma, or the end of what is open.
    Next,
    /// Nothing but space.
    Nothing,
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// The open brackets; true for objects.
    open: Vec<bool>,
}

/// Says what is wrong with a text, if anything is.
pub(super) fn check(text: &[u8]) -> Result<(), String> {
    let mut scanner = Scanner {
        text,
        at: 0,
        open: Vec::new(),
    };
    let mut expect = Expect::Value;
    loop {
        scanner.skip_space();
        let Some(&byte) = text.get(scanner.at) else {
            return match expect {
                Expect::Nothing => Ok(()),
                _ => Err(END.to_owned()),
            };
        };
        expect = scanner.step(expect, byte)?;
    }
}

const END: &str = "unexpected end of JSON input";

impl Scanner<'_> {
    fn skip_space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn step(&mut self, expect: Expect, byte: u8) -> Result<Expect, String> {
        match (expect, byte) {
            (Expect::ValueOrEnd, b']') | (Expect::KeyOrEnd, b'}') => Ok(self.close()),
            (Expect::Value | Expect::ValueOrEnd, _) => self.value(byte),
            (Expect::KeyOrEnd | Expect::Key, b'"') => {
                self.string()?;
                Ok(Expect::Colon)
            }
            (Expect::KeyOrEnd | Expect::Key, _) => {
                Err(invalid(byte, "looking for beginning of object key string"))
            }
            (Expect::Colon, b':') => Ok(self.pass(Expect::Value)),
            (Expect::Colon, _) => Err(invalid(byte, "after object key")),
            (Expect::Next, b',') => {
                let key = self.open.last() == Some(&true);
                Ok(self.pass(if key { Expect::Key } else { Expect::Value }))
            }
            (Expect::Next, b'}') if self.open.last() == Some(&true) => Ok(self.close()),
            (Expect::Next, b']') if self.open.last() == Some(&false) => Ok(self.close()),
            (Expect::Next, _) if self.open.last() == Some(&true) => {
                Err(invalid(byte, "after object key:value pair"))
            }
            (Expect::Next, _) => Err(invalid(byte, "after array element")),
            (Expect::Nothing, _) => Err(invalid(byte, "after top-level value")),
        }
    }

    fn pass(&mut self, next: Expect) -> Expect {
        self.at += 1;
        next
    }

    fn after_value(&self) -> Expect {
        if self.open.is_empty() {
            Expect::Nothing
        } else {
            Expect::Next
        }
    }

    fn close(&mut self) -> Expect {
        self.open.pop();
        self.at += 1;
        self.after_value()
    }

    fn value(&mut self, byte: u8) -> Result<Expect, String> {
        match byte {
            b'{' | b'[' => {
                if self.open.len() >= DEPTH {
                    return Err(invalid(byte, "exceeded max depth"));
                }
                self.open.push(byte == b'{');
                let object = byte == b'{';
                return Ok(self.pass(if object {
                    Expect::KeyOrEnd
                } else {
                    Expect::ValueOrEnd
                }));
            }
            b'"' => self.string()?,
            b't' => self.literal("true")?,
            b'f' => self.literal("false")?,
            b'n' => self.literal("null")?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return Err(invalid(byte, "looking for beginning of value")),
        }
        Ok(self.after_value())
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.chars() {
            let byte = *self.text.get(self.at).ok_or(END)?;
            if char::from(byte) != expected {
                let context = format!("in literal {word} (expecting '{expected}')");
                return Err(invalid(byte, &context));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            let byte = *self.text.get(self.at).ok_or(END)?;
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => self.escape()?,
                0..=0x1f => return Err(invalid(byte, "in string literal")),
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Result<(), String> {
        let byte = *self.text.get(self.at).ok_or(END)?;
        self.at += 1;
        match byte {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    let byte = *self.text.get(self.at).ok_or(END)?;
                    if !byte.is_ascii_hexdigit() {
                        return Err(invalid(byte, "in \\u hexadecimal character escape"));
                    }
                    self.at += 1;
                }
                Ok(())
            }
            _ => Err(invalid(byte, "in string escape code")),
        }
    }

    fn number(&mut self) -> Result<(), String> {
        if self.text.get(self.at) == Some(&b'-') {
            self.at += 1;
            self.digit("in numeric literal")?;
        }
        // A leading zero stands alone.
        if self.text.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits();
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        Ok(())
    }

    /// Refuses anything but a digit, which stays where it is.
    fn digit(&self, context: &str) -> Result<(), String> {
        match self.text.get(self.at) {
            None => Err(END.to_owned()),
            Some(byte) if byte.is_ascii_digit() => Ok(()),
            Some(byte) => Err(invalid(*byte, context)),
        }
    }

    fn digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }
}

fn invalid(byte: u8, context: &str) -> String {
    let shown = match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x20..=0x7e => format!("'{}'", char::from(byte)),
        0..=0x1f | 0x7f => format!(r"'\x{byte:02x}'"),
        // The server takes the byte for a character.
        0x80..=0x9f => format!(r"'\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    };
    format!("invalid character {shown} {context}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_byte_is_named() {
        for (text, expected) in [
            ("", END),
            ("{", END),
            ("[1, 2", END),
            ("\"open", END),
            (
                "nonsense",
                "invalid character 'o' in literal null (expecting 'u')",
            ),
            (
                "{\"a\":1,}",
                "invalid character '}' looking for beginning of object key string",
            ),
            ("{\"a\":1} t", "invalid character 't' after top-level value"),
            (
                "{\"a\":1 \"b\":2}",
                "invalid character '\"' after object key:value pair",
            ),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("[1 2]", "invalid character '2' after array element"),
            (
                "[1,]",
                "invalid character ']' looking for beginning of value",
            ),
            ("\"\\q\"", "invalid character 'q' in string escape code"),
            (
                "\"\\u00g0\"",
                "invalid character 'g' in \\u hexadecimal character escape",
            ),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("-x", "invalid character 'x' in numeric literal"),
            (
                "1.x",
                "invalid character 'x' after decimal point in numeric literal",
            ),
            ("1e", END),
            ("01", "invalid character '1' after top-level value"),
            (
                "<html>",
                "invalid character '<' looking for beginning of value",
            ),
        ] {
            assert_eq!(check(text.as_bytes()).unwrap_err(), expected, "{text}");
        }
        let deep = "[".repeat(10_001);
        let expected = "invalid character '[' exceeded max depth";
        assert_eq!(check(deep.as_bytes()).unwrap_err(), expected);
        assert_eq!(
            check(b" {\"a\": [1, -2.5e+3, true, null, {}, []]} "),
            Ok(())
        );
    }
}
