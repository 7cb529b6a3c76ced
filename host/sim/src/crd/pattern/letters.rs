//! Characters and named classes of Go's regular expressions: what stands for one, and how
//! the engine takes it.

use std::ops::RangeInclusive;

use super::classes;

/// A complaint, and the part of the pattern that it is about.
pub(super) type Fault<'p> = (&'static str, &'p str);

pub(super) const BAD_RANGE: &str = "invalid character class range";
pub(super) const BAD_ESCAPE: &str = "invalid escape sequence";
const OPEN_CLASS: &str = "missing closing ]";
const TRAILING: &str = "trailing backslash at end of expression";

/// The class of no character at all, and of any.
const NONE: &str = r"[^\x{0}-\x{10FFFF}]";
const ANY: &str = r"[\x{0}-\x{10FFFF}]";
/// What is a character to Go, and is in no text.
const SURROGATES: RangeInclusive<u32> = 0xD800..=0xDFFF;

/// What comes before `rest` in `text`, of which it is the end.
pub(super) fn before<'p>(text: &'p str, rest: &str) -> &'p str {
    let end = text.len().saturating_sub(rest.len());
    text.get(..end).unwrap_or(text)
}

/// The first character and what follows it.
pub(super) fn split(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    Some((chars.next()?, chars.as_str()))
}

/// Writes a character that stands for itself.
fn character(out: &mut String, code: u32) {
    let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    if c.is_ascii() && !c.is_ascii_alphanumeric() {
        let digit = |digit: u32| char::from_digit(digit, 16).unwrap_or_default();
        out.extend(['\\', 'x', digit(code >> 4), digit(code & 15)]);
    } else {
        out.push(c);
    }
}

/// Writes a range of characters as it stands in a class; one of them also stands for
/// itself.
pub(super) fn range(out: &mut String, low: u32, high: u32) {
    let is_none = |code: u32| SURROGATES.contains(&code);
    let low = if is_none(low) {
        SURROGATES.end() + 1
    } else {
        low
    };
    let high = if is_none(high) {
        SURROGATES.start() - 1
    } else {
        high
    };
    if low > high {
        out.push_str(NONE);
        return;
    }
    character(out, low);
    if low < high {
        out.push('-');
        character(out, high);
    }
}

/// A class that has a name.
pub(super) struct Named<'p> {
    /// As the engine has it; of the others if it is a category or a script.
    pub(super) name: &'static str,
    pub(super) negated: bool,
    /// How many ends of ranges it has.
    pub(super) length: usize,
    /// What follows it.
    pub(super) rest: &'p str,
}

impl Named<'_> {
    /// Writes it as a class, or into another.
    pub(super) fn write(&self, out: &mut String) {
        match (self.name, self.negated) {
            ("Cs", false) => out.push_str(NONE),
            ("Cs", true) => out.push_str(ANY),
            (class, _) if class.starts_with('[') => out.push_str(class),
            (class, false) => out.extend(["\\p{", class, "}"]),
            (class, true) => out.extend(["\\P{", class, "}"]),
        }
    }
}

/// What is escaped as a class, `\d` or `\p{Greek}`, if one starts here.
pub(super) fn named(text: &str) -> Result<Option<Named<'_>>, Fault<'_>> {
    let Some((letter, mut rest)) = text.strip_prefix('\\').and_then(split) else {
        return Ok(None);
    };
    let name = match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => r"[\t\n\f\r ]",
        'S' => r"[^\t\n\f\r ]",
        'p' | 'P' => {
            let mut name = rest;
            if let Some(braced) = rest.strip_prefix('{') {
                (name, rest) = braced.split_once('}').ok_or((BAD_RANGE, text))?;
            } else {
                rest = split(rest).map_or("", |(_, rest)| rest);
                name = before(name, rest);
            }
            let (bare, is_other) = match name.strip_prefix('^') {
                Some(bare) => (bare, true),
                None => (name, false),
            };
            let class = classes::named(bare).ok_or((BAD_RANGE, before(text, rest)))?;
            return Ok(Some(Named {
                name: class.name,
                negated: is_other != (letter == 'P'),
                length: class.length,
                rest,
            }));
        }
        _ => return Ok(None),
    };
    Ok(Some(Named {
        name,
        negated: false,
        length: 8,
        rest,
    }))
}

/// A character that is escaped, and what follows it.
pub(super) fn escaped(text: &str) -> Result<(u32, &str), Fault<'_>> {
    let after = text.get(1..).unwrap_or_default();
    let Some((c, mut rest)) = split(after) else {
        return Err((TRAILING, ""));
    };
    let octal = |rest: &str| rest.starts_with(|c: char| ('0'..='7').contains(&c));
    match c {
        'a' => return Ok((7, rest)),
        'f' => return Ok((12, rest)),
        'n' => return Ok((10, rest)),
        'r' => return Ok((13, rest)),
        't' => return Ok((9, rest)),
        'v' => return Ok((11, rest)),
        '0'..='7' if c == '0' || octal(rest) => {
            let mut code = c.to_digit(8).unwrap_or(0);
            for _ in 0..2 {
                let Some((digit, behind)) = split(rest).filter(|_| octal(rest)) else {
                    break;
                };
                code = code * 8 + digit.to_digit(8).unwrap_or(0);
                rest = behind;
            }
            return Ok((code, rest));
        }
        'x' => {
            let (code, behind) = hexadecimal(rest);
            if let Some(code) = code {
                return Ok((code, behind));
            }
            rest = behind;
        }
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => {
            return Ok((u32::from(c), rest));
        }
        _ => {}
    }
    Err((BAD_ESCAPE, before(text, rest)))
}

/// The character of a number behind `\x`, and what follows what was read of it.
fn hexadecimal(text: &str) -> (Option<u32>, &str) {
    let Some((first, mut rest)) = split(text) else {
        return (None, text);
    };
    if first != '{' {
        let Some((second, rest)) = split(rest) else {
            return (None, rest);
        };
        let code = first.to_digit(16).zip(second.to_digit(16));
        return (code.map(|(high, low)| high * 16 + low), rest);
    }
    let mut code: Option<u32> = None;
    while let Some((c, behind)) = split(rest) {
        rest = behind;
        if c == '}' {
            return (code, rest);
        }
        let Some(digit) = c.to_digit(16) else {
            return (None, rest);
        };
        let sum = code.unwrap_or(0) * 16 + digit;
        if sum > u32::from(char::MAX) {
            return (None, rest);
        }
        code = Some(sum);
    }
    (None, rest)
}

pub(super) const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// A character of a class.
pub(super) fn member<'p>(text: &'p str, class: &'p str) -> Result<(u32, &'p str), Fault<'p>> {
    match split(text) {
        None => Err((OPEN_CLASS, class)),
        Some(('\\', _)) => escaped(text),
        Some((c, rest)) => Ok((u32::from(c), rest)),
    }
}
