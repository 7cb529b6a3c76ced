//! What is wrong with a regular expression, in the words of Go (`regexp/syntax`).
//!
//! Go's parser is followed as far as it complains: nothing is made of the pattern here.

/// What is wrong with a pattern, if anything is.
pub(super) fn fault(pattern: &str) -> Option<String> {
    let mut parser = Parser {
        whole: pattern,
        rest: pattern,
        groups: vec![Group::default()],
    };
    let (why, part) = parser.parse().err()?;
    Some(format!("error parsing regexp: {why}: `{part}`"))
}

/// A complaint, and the part of the pattern that it is about.
type Fault<'p> = (&'static str, &'p str);

const BAD_RANGE: &str = "invalid character class range";
const BAD_ESCAPE: &str = "invalid escape sequence";
const BAD_CAPTURE: &str = "invalid named capture";
const BAD_FLAGS: &str = "invalid or unsupported Perl syntax";
const BAD_COUNT: &str = "invalid repeat count";
const REPEATED_TWICE: &str = "invalid nested repetition operator";
const NOTHING_TO_REPEAT: &str = "missing argument to repetition operator";
const OPEN_CLASS: &str = "missing closing ]";
const OPEN_GROUP: &str = "missing closing )";
const CLOSED_TWICE: &str = "unexpected )";
const TRAILING: &str = "trailing backslash at end of expression";

/// The most that something may be repeated, all repetitions around it taken together.
const MOST: u32 = 1000;

/// What was read of a group.
#[derive(Debug, Default)]
struct Group {
    /// How often its parts repeat what is innermost.
    repeats: u32,
    /// The same of its last part; none where there is nothing to repeat.
    last: Option<u32>,
}

impl Group {
    fn push(&mut self, repeats: u32) {
        self.repeats = self.repeats.max(self.last.unwrap_or(0));
        self.last = Some(repeats);
    }

    fn all(&self) -> u32 {
        self.repeats.max(self.last.unwrap_or(0))
    }
}

struct Parser<'p> {
    whole: &'p str,
    rest: &'p str,
    groups: Vec<Group>,
}

/// What comes before `rest` in `text`, of which it is the end.
fn before<'p>(text: &'p str, rest: &str) -> &'p str {
    let end = text.len().saturating_sub(rest.len());
    text.get(..end).unwrap_or(text)
}

/// The first character and what follows it.
fn split(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    Some((chars.next()?, chars.as_str()))
}

impl<'p> Parser<'p> {
    fn parse(&mut self) -> Result<(), Fault<'p>> {
        // Where the repetition starts that was read last.
        let mut repeated: Option<&'p str> = None;
        while let Some((c, after)) = split(self.rest) {
            let start = self.rest;
            let mut repeats = false;
            match c {
                '(' if after.starts_with('?') => self.flags()?,
                '(' => self.open(after),
                '|' => {
                    if let Some(group) = self.groups.last_mut() {
                        group.repeats = group.all();
                        group.last = None;
                    }
                    self.rest = after;
                }
                ')' => self.close(after)?,
                '[' => {
                    self.rest = class(start)?;
                    self.push();
                }
                '*' | '+' | '?' => {
                    self.repeat(start, after, None, repeated)?;
                    repeats = true;
                }
                '{' => match counted(start) {
                    Some((least, most, after)) => {
                        let is_wrong = most.is_some_and(|most| least > most || most > MOST);
                        if is_wrong || least > MOST {
                            return Err((BAD_COUNT, before(start, after)));
                        }
                        self.repeat(start, after, Some((least, most)), repeated)?;
                        repeats = true;
                    }
                    None => {
                        self.rest = after;
                        self.push();
                    }
                },
                '\\' => self.escape()?,
                _ => {
                    self.rest = after;
                    self.push();
                }
            }
            repeated = repeats.then_some(start);
        }
        if self.groups.len() > 1 {
            return Err((OPEN_GROUP, self.whole));
        }
        Ok(())
    }

    fn push(&mut self) {
        if let Some(group) = self.groups.last_mut() {
            group.push(0);
        }
    }

    fn open(&mut self, rest: &'p str) {
        self.groups.push(Group::default());
        self.rest = rest;
    }

    fn close(&mut self, rest: &'p str) -> Result<(), Fault<'p>> {
        let closed = self.groups.pop();
        match (closed, self.groups.last_mut()) {
            (Some(closed), Some(around)) => around.push(closed.all()),
            _ => return Err((CLOSED_TWICE, self.whole)),
        }
        self.rest = rest;
        Ok(())
    }

    /// A repetition that starts at `start`, behind which is `after`.
    fn repeat(
        &mut self,
        start: &'p str,
        after: &'p str,
        times: Option<(u32, Option<u32>)>,
        repeated: Option<&'p str>,
    ) -> Result<(), Fault<'p>> {
        let after = after.strip_prefix('?').unwrap_or(after);
        if let Some(repeated) = repeated {
            return Err((REPEATED_TWICE, before(repeated, after)));
        }
        let Some(last) = self.groups.last_mut().and_then(|group| group.last.as_mut()) else {
            return Err((NOTHING_TO_REPEAT, before(start, after)));
        };
        if let Some((least, most)) = times {
            let all = match (most, most.unwrap_or(least)) {
                (Some(0), _) => 0,
                (_, 0) => *last,
                (_, times) => times.max(times.saturating_mul(*last)),
            };
            if most.unwrap_or(least) >= 2 && all > MOST {
                return Err((BAD_COUNT, before(start, after)));
            }
            *last = all;
        }
        self.rest = after;
        Ok(())
    }

    /// What starts with `(?`.
    fn flags(&mut self) -> Result<(), Fault<'p>> {
        let start = self.rest;
        let name = start
            .strip_prefix("(?P<")
            .or_else(|| start.strip_prefix("(?<"));
        // So short, it is not looked at as a name.
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            let Some((name, rest)) = name.split_once('>') else {
                return Err((BAD_CAPTURE, start));
            };
            let is_letter = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_letter) {
                return Err((BAD_CAPTURE, before(start, rest)));
            }
            self.open(rest);
            return Ok(());
        }
        let mut rest = start.get(2..).unwrap_or_default();
        let (mut negated, mut flagged) = (false, false);
        while let Some((c, after)) = split(rest) {
            rest = after;
            match c {
                'i' | 'm' | 's' | 'U' => flagged = true,
                '-' if !negated => (negated, flagged) = (true, false),
                ':' | ')' if !negated || flagged => {
                    if c == ':' {
                        self.open(rest);
                    }
                    self.rest = rest;
                    return Ok(());
                }
                _ => break,
            }
        }
        Err((BAD_FLAGS, before(start, rest)))
    }

    fn escape(&mut self) -> Result<(), Fault<'p>> {
        let start = self.rest;
        let after = start.get(1..).unwrap_or_default();
        match split(after) {
            Some(('C', rest)) => return Err((BAD_ESCAPE, before(start, rest))),
            Some(('Q', quoted)) => {
                let (quoted, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
                self.rest = rest;
                if quoted.is_empty() {
                    return Ok(());
                }
            }
            Some(('A' | 'b' | 'B' | 'z', rest)) => self.rest = rest,
            _ => {
                self.rest = match named(start)? {
                    Some(rest) => rest,
                    None => escaped(start)?.1,
                };
            }
        }
        self.push();
        Ok(())
    }
}

/// `{2}`, `{2,}` or `{2,3}`, with what follows it; numbers that are too large are more
/// than anything may be repeated.
fn counted(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (least, rest) = number(text.strip_prefix('{')?)?;
    let (most, rest) = match rest.strip_prefix(',') {
        None => (Some(least), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => {
            let (most, rest) = number(rest)?;
            (Some(most), rest)
        }
    };
    Some((least, most, rest.strip_prefix('}')?))
}

fn number(text: &str) -> Option<(u32, &str)> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = before(text, rest);
    let is_padded = digits.len() > 1 && digits.starts_with('0');
    if digits.is_empty() || is_padded {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}

/// What is behind a class that is escaped, `\d` or `\p{Greek}`, if one starts here.
fn named(text: &str) -> Result<Option<&str>, Fault<'_>> {
    let Some((letter, rest)) = text.strip_prefix('\\').and_then(split) else {
        return Ok(None);
    };
    match letter {
        'd' | 'D' | 's' | 'S' | 'w' | 'W' => Ok(Some(rest)),
        'p' | 'P' => {
            let Some((c, mut rest)) = split(rest) else {
                return Ok(None);
            };
            if c == '{' {
                match rest.split_once('}') {
                    Some((_, behind)) => rest = behind,
                    None => return Err((BAD_RANGE, text)),
                }
            }
            let class = before(text, rest);
            // The two know the same names; only this engine looks at what they are equal to.
            let bare = class.replacen("{^", "{", 1);
            if class.contains(['=', ':']) || regex::Regex::new(&bare).is_err() {
                return Err((BAD_RANGE, class));
            }
            Ok(Some(rest))
        }
        _ => Ok(None),
    }
}

/// A character that is escaped, and what follows it.
fn escaped(text: &str) -> Result<(char, &str), Fault<'_>> {
    let after = text.get(1..).unwrap_or_default();
    let Some((c, mut rest)) = split(after) else {
        return Err((TRAILING, ""));
    };
    let octal = |rest: &str| rest.starts_with(|c: char| ('0'..='7').contains(&c));
    match c {
        'a' => return Ok(('\u{7}', rest)),
        'f' => return Ok(('\u{c}', rest)),
        'n' => return Ok(('\n', rest)),
        'r' => return Ok(('\r', rest)),
        't' => return Ok(('\t', rest)),
        'v' => return Ok(('\u{b}', rest)),
        '0'..='7' if c == '0' || octal(rest) => {
            let mut code = c.to_digit(8).unwrap_or(0);
            for _ in 0..2 {
                let Some((digit, behind)) = split(rest).filter(|_| octal(rest)) else {
                    break;
                };
                code = code * 8 + digit.to_digit(8).unwrap_or(0);
                rest = behind;
            }
            return Ok((char::from_u32(code).unwrap_or_default(), rest));
        }
        'x' => {
            let (code, behind) = hexadecimal(rest);
            if let Some(code) = code {
                return Ok((code, behind));
            }
            rest = behind;
        }
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => return Ok((c, rest)),
        _ => {}
    }
    Err((BAD_ESCAPE, before(text, rest)))
}

/// The character of a number behind `\x`, and what follows what was read of it.
fn hexadecimal(text: &str) -> (Option<char>, &str) {
    let Some((first, mut rest)) = split(text) else {
        return (None, text);
    };
    // Half of a surrogate is a character to Go, and is in no text.
    let made = |code: u32| char::from_u32(code).or(Some(char::REPLACEMENT_CHARACTER));
    if first != '{' {
        let Some((second, rest)) = split(rest) else {
            return (None, rest);
        };
        let code = first.to_digit(16).zip(second.to_digit(16));
        return (code.and_then(|(high, low)| made(high * 16 + low)), rest);
    }
    let mut code: Option<u32> = None;
    while let Some((c, behind)) = split(rest) {
        rest = behind;
        if c == '}' {
            return (code.and_then(made), rest);
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

/// What is behind a class that starts with `[`.
fn class(whole: &str) -> Result<&str, Fault<'_>> {
    let mut rest = whole.get(1..).unwrap_or_default();
    rest = rest.strip_prefix('^').unwrap_or(rest);
    let mut first = true;
    while first || !rest.starts_with(']') {
        first = false;
        if let Some(inner) = rest.strip_prefix("[:")
            && let Some((name, behind)) = inner.split_once(":]")
        {
            if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                return Err((BAD_RANGE, before(rest, behind)));
            }
            rest = behind;
            continue;
        }
        if let Some(behind) = named(rest)? {
            rest = behind;
            continue;
        }
        let start = rest;
        let (low, behind) = character(rest, whole)?;
        rest = behind;
        let to = rest.strip_prefix('-').filter(|to| !to.is_empty());
        if let Some(to) = to.filter(|to| !to.starts_with(']')) {
            let (high, behind) = character(to, whole)?;
            rest = behind;
            if high < low {
                return Err((BAD_RANGE, before(start, rest)));
            }
        }
    }
    Ok(rest.get(1..).unwrap_or_default())
}

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// A character of a class.
fn character<'p>(text: &'p str, class: &'p str) -> Result<(char, &'p str), Fault<'p>> {
    match split(text) {
        None => Err((OPEN_CLASS, class)),
        Some(('\\', _)) => escaped(text),
        Some(found) => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_those_of_go() {
        for (pattern, expected) in [
            ("(a", "missing closing ): `(a`"),
            ("[a", "missing closing ]: `[a`"),
            ("[", "missing closing ]: `[`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("+", "missing argument to repetition operator: `+`"),
            ("|*", "missing argument to repetition operator: `*`"),
            ("(*)", "missing argument to repetition operator: `*`"),
            ("a|*b", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a++", "invalid nested repetition operator: `++`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a\\", "trailing backslash at end of expression: ``"),
            ("a)", "unexpected ): `a)`"),
            ("(?<n>", "missing closing ): `(?<n>`"),
            ("\\q", "invalid escape sequence: `\\q`"),
            ("\\8", "invalid escape sequence: `\\8`"),
            ("\\xz", "invalid escape sequence: `\\xz`"),
            ("\\x{110000}", "invalid escape sequence: `\\x{110000`"),
            ("[a-\\d]", "invalid escape sequence: `\\d`"),
            ("[b-a]", "invalid character class range: `b-a`"),
            ("\\p{X}", "invalid character class range: `\\p{X}`"),
            ("\\pX", "invalid character class range: `\\pX`"),
            ("[[:x:]]", "invalid character class range: `[:x:]`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("((a{100}){100}){100}", "invalid repeat count: `{100}`"),
            ("((a{1000}){0,}){2}", "invalid repeat count: `{2}`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?z)", "invalid or unsupported Perl syntax: `(?z`"),
            ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
            ("(?P<1n", "invalid named capture: `(?P<1n`"),
        ] {
            let expected = format!("error parsing regexp: {expected}");
            assert_eq!(fault(pattern), Some(expected), "{pattern}");
        }
        for pattern in [
            "",
            "^a*?b+$",
            "^*",
            "a(?i)*",
            "a{",
            "a{,3}",
            "a{02}",
            "a{0}{",
            "(a{10}){100}",
            "(?P<n>a)(?P<n>b)",
            "(?i:a)|(?s-m:b)|(?-i)c",
            "\\Qa*\\E*",
            "[]a-]",
            "[^]]",
            "[[:^alpha:][]",
            "[\\d-z]",
            "\\p{Greek}\\PN\\p{^Lu}",
            "\\x41\\x{1F600}\\07\\123\\_",
        ] {
            assert_eq!(fault(pattern), None, "{pattern}");
        }
    }
}
