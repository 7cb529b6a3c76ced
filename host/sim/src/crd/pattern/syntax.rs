//! A regular expression as Go reads it (`regexp/syntax`): what is wrong with it, in the
//! words of Go, or the same in the syntax of this crate's engine.
//!
//! Go's parser is followed as far as it complains. What was read is written down at
//! once, in few words: the two share much syntax, and give another meaning to some of
//! it. So there are no flags but the one for the case of letters, no names of groups, and
//! no character stands for itself that may be more than that.

use super::letters::{
    BAD_ESCAPE, BAD_RANGE, Fault, POSIX, before, escaped, member, named, range, split,
};

/// A pattern for the engine.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) text: String,
    /// How many levels it has.
    pub(super) levels: u32,
}

/// The pattern for the engine.
///
/// # Errors
///
/// With what is wrong with it.
pub(super) fn translated(pattern: &str) -> Result<Translated, String> {
    let mut parser = Parser {
        whole: pattern,
        rest: pattern,
        groups: vec![Group::default()],
        flags: 0,
        folds: false,
        ends: 0,
        closes: true,
        out: String::with_capacity(pattern.len()),
    };
    match parser.parse() {
        Ok(levels) => Ok(Translated {
            text: parser.out,
            levels,
        }),
        Err((why, part)) => Err(format!("error parsing regexp: {why}: `{part}`")),
    }
}

const BAD_CAPTURE: &str = "invalid named capture";
const BAD_FLAGS: &str = "invalid or unsupported Perl syntax";
const BAD_COUNT: &str = "invalid repeat count";
const REPEATED_TWICE: &str = "invalid nested repetition operator";
const NOTHING_TO_REPEAT: &str = "missing argument to repetition operator";
const OPEN_GROUP: &str = "missing closing )";
const CLOSED_TWICE: &str = "unexpected )";
const TOO_DEEP: &str = "expression nests too deeply";
const TOO_LARGE: &str = "expression too large";

/// The most that something may be repeated, all repetitions around it taken together.
const MOST: u32 = 1000;

/// A pattern may have so many levels.
const LEVELS: u32 = 1000;

/// So many ends of ranges may all classes of a pattern have together.
const ENDS: usize = 32 << 20;

/// Whether upper case is lower case, `i`.
const FOLD: u8 = 1;
/// Whether lines have ends of their own, `m`.
const LINES: u8 = 2;
/// Whether a dot is also the end of a line, `s`.
const ALL: u8 = 4;
/// Whether repetitions prefer to be few, `U`.
const FEW: u8 = 8;

/// What a part of a pattern is, for levels: those of one kind make no two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A character; with `true`, of any case.
    Text(bool),
    Sequence,
    Choice,
    Other,
}

/// What was read of a part.
#[derive(Debug, Clone, Copy)]
struct Part {
    kind: Kind,
    /// How often it repeats what is innermost.
    repeats: u32,
    /// How many levels it has.
    levels: u32,
    /// Where it starts in what is written.
    start: usize,
    /// Whether it ends with a repetition.
    is_repeated: bool,
}

/// What was read of the parts of a sequence or of a choice, other than the last.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    repeats: u32,
    levels: u32,
    count: u32,
    last: Option<Kind>,
}

impl Parts {
    /// Takes a part, in a sequence or a choice.
    fn take(&mut self, part: Part, kind: Kind) {
        self.repeats = self.repeats.max(part.repeats);
        let is_text = matches!(part.kind, Kind::Text(_)) && kind == Kind::Sequence;
        if is_text && self.last == Some(part.kind) {
            return;
        }
        let inner = u32::from(part.kind == kind);
        self.levels = self.levels.max(part.levels.saturating_sub(inner));
        self.count += 1 + inner;
        self.last = Some(part.kind);
    }

    /// All of them as one part.
    fn all(self, kind: Kind) -> Part {
        let is_one = self.count <= 1;
        Part {
            kind: match self.last {
                Some(last) if is_one => last,
                _ if is_one => Kind::Other,
                _ => kind,
            },
            repeats: self.repeats,
            levels: (self.levels + u32::from(!is_one)).max(1),
            start: 0,
            is_repeated: false,
        }
    }
}

/// What was read of a group.
#[derive(Debug, Default)]
struct Group {
    choices: Parts,
    parts: Parts,
    /// The last part; none where there is nothing to repeat.
    last: Option<Part>,
    /// Where it starts in what is written.
    start: usize,
    /// Whether Go takes it for a level.
    captures: bool,
    /// What holds around it.
    flags: u8,
    folds: bool,
}

impl Group {
    fn push(&mut self, part: Part) {
        if let Some(last) = self.last.replace(part) {
            self.parts.take(last, Kind::Sequence);
        }
    }

    /// Ends one of its choices.
    fn choose(&mut self) {
        if let Some(last) = self.last.take() {
            self.parts.take(last, Kind::Sequence);
        }
        let choice = std::mem::take(&mut self.parts).all(Kind::Sequence);
        self.choices.take(choice, Kind::Choice);
    }

    /// All of it as one part.
    fn all(mut self) -> Part {
        self.choose();
        let mut all = self.choices.all(Kind::Choice);
        if self.captures {
            all.kind = Kind::Other;
            all.levels += 1;
        }
        all.start = self.start;
        all
    }
}

struct Parser<'p> {
    whole: &'p str,
    rest: &'p str,
    groups: Vec<Group>,
    flags: u8,
    /// Whether case means nothing in what is written next.
    folds: bool,
    /// How many ends of ranges the classes have so far.
    ends: usize,
    /// Whether a name of a class may still end.
    closes: bool,
    out: String,
}

impl<'p> Parser<'p> {
    /// Reads all of it; how many levels there are.
    fn parse(&mut self) -> Result<u32, Fault<'p>> {
        // Where the repetition starts that was read last.
        let mut repeated: Option<&'p str> = None;
        while let Some((c, after)) = split(self.rest) {
            let start = self.rest;
            let mut repeats = false;
            match c {
                '(' if after.starts_with('?') => self.flags()?,
                '(' => self.open(after, true),
                '|' => {
                    if let Some(group) = self.groups.last_mut() {
                        group.choose();
                    }
                    self.out.push('|');
                    self.rest = after;
                }
                ')' => self.close(after)?,
                '[' => self.class()?,
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
                    None => self.literal(u32::from(c), after),
                },
                '\\' => self.escape()?,
                '^' if self.has(LINES) => self.part("(?m:^)", after),
                '^' => self.part(r"\A", after),
                '$' if self.has(LINES) => self.part("(?m:$)", after),
                '$' => self.part(r"\z", after),
                '.' if self.has(ALL) => self.part("(?s:.)", after),
                '.' => self.part(".", after),
                _ => self.literal(u32::from(c), after),
            }
            repeated = repeats.then_some(start);
        }
        let levels = self.groups.pop().map_or(0, |all| all.all().levels);
        if levels > LEVELS {
            return Err((TOO_DEEP, self.whole));
        }
        if !self.groups.is_empty() {
            return Err((OPEN_GROUP, self.whole));
        }
        Ok(levels)
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Starts a part.
    fn start(&mut self, kind: Kind) {
        if self.folds != self.has(FOLD) {
            self.folds = self.has(FOLD);
            self.out.push_str(if self.folds { "(?i)" } else { "(?-i)" });
        }
        if let Some(group) = self.groups.last_mut() {
            group.push(Part {
                kind,
                repeats: 0,
                levels: 1,
                start: self.out.len(),
                is_repeated: false,
            });
        }
    }

    /// A part, and what follows it.
    fn part(&mut self, written: &str, rest: &'p str) {
        self.start(Kind::Other);
        self.out.push_str(written);
        self.rest = rest;
    }

    /// A character, and what follows it.
    fn literal(&mut self, code: u32, rest: &'p str) {
        self.start(Kind::Text(self.has(FOLD)));
        range(&mut self.out, code, code);
        self.rest = rest;
    }

    fn open(&mut self, rest: &'p str, captures: bool) {
        self.groups.push(Group {
            start: self.out.len(),
            captures,
            flags: self.flags,
            folds: self.folds,
            ..Group::default()
        });
        self.out.push_str("(?:");
        self.rest = rest;
    }

    fn close(&mut self, rest: &'p str) -> Result<(), Fault<'p>> {
        let Some(closed) = self.groups.pop() else {
            return Ok(());
        };
        let (flags, folds) = (closed.flags, closed.folds);
        let part = closed.all();
        if part.levels > LEVELS {
            return Err((TOO_DEEP, self.whole));
        }
        let Some(around) = self.groups.last_mut() else {
            return Err((CLOSED_TWICE, self.whole));
        };
        around.push(part);
        (self.flags, self.folds) = (flags, folds);
        self.out.push(')');
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
        let operator = before(start, after);
        let (after, other) = match after.strip_prefix('?') {
            Some(after) => (after, true),
            None => (after, false),
        };
        if let Some(repeated) = repeated {
            return Err((REPEATED_TWICE, before(repeated, after)));
        }
        let Some(last) = self.groups.last_mut().and_then(|group| group.last.as_mut()) else {
            return Err((NOTHING_TO_REPEAT, before(start, after)));
        };
        last.levels += 1;
        if last.levels > LEVELS {
            return Err((TOO_DEEP, self.whole));
        }
        if let Some((least, most)) = times {
            let all = match (most, most.unwrap_or(least)) {
                (Some(0), _) => 0,
                (_, 0) => last.repeats,
                (_, times) => times.max(times.saturating_mul(last.repeats)),
            };
            if most.unwrap_or(least) >= 2 && all > MOST {
                return Err((BAD_COUNT, before(start, after)));
            }
            last.repeats = all;
        }
        // Something between the two, of which nothing is written.
        if last.is_repeated {
            self.out.insert_str(last.start, "(?:");
            self.out.push(')');
        }
        (last.kind, last.is_repeated) = (Kind::Other, true);
        self.out.push_str(operator);
        if other != self.has(FEW) {
            self.out.push('?');
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
            self.open(rest, true);
            return Ok(());
        }
        let mut rest = start.get(2..).unwrap_or_default();
        let (mut negated, mut flagged) = (false, false);
        let mut flags = self.flags;
        while let Some((c, after)) = split(rest) {
            rest = after;
            let flag = match c {
                'i' => FOLD,
                'm' => LINES,
                's' => ALL,
                'U' => FEW,
                '-' if !negated => {
                    (negated, flagged) = (true, false);
                    continue;
                }
                ':' | ')' if !negated || flagged => {
                    if c == ':' {
                        self.open(rest, false);
                    }
                    (self.flags, self.rest) = (flags, rest);
                    return Ok(());
                }
                _ => break,
            };
            flagged = true;
            flags = if negated { flags & !flag } else { flags | flag };
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
                for c in quoted.chars() {
                    self.literal(u32::from(c), rest);
                }
                self.rest = rest;
            }
            Some(('A', rest)) => self.part(r"\A", rest),
            Some(('z', rest)) => self.part(r"\z", rest),
            Some(('b', rest)) => self.part(r"(?-u:\b)", rest),
            Some(('B', rest)) => self.part(r"(?-u:\B)", rest),
            _ => match named(start)? {
                Some(named) => {
                    self.start(Kind::Other);
                    named.write(&mut self.out);
                    self.counts(named.length)?;
                    self.rest = named.rest;
                }
                None => {
                    let (code, rest) = escaped(start)?;
                    self.literal(code, rest);
                }
            },
        }
        Ok(())
    }

    /// Counts ends of ranges.
    fn counts(&mut self, ends: usize) -> Result<(), Fault<'p>> {
        self.ends = self.ends.saturating_add(ends);
        if self.ends > ENDS {
            return Err((TOO_LARGE, self.whole));
        }
        Ok(())
    }

    /// What starts with `[`.
    fn class(&mut self) -> Result<(), Fault<'p>> {
        let whole = self.rest;
        self.start(Kind::Other);
        self.out.push('[');
        let mut rest = whole.get(1..).unwrap_or_default();
        if let Some(after) = rest.strip_prefix('^') {
            self.out.push('^');
            rest = after;
        }
        let (mut first, mut ends) = (true, 0_usize);
        while first || !rest.starts_with(']') {
            first = false;
            if let Some(inner) = rest.strip_prefix("[:").filter(|_| self.closes) {
                let Some((name, behind)) = inner.split_once(":]") else {
                    self.closes = false;
                    continue;
                };
                if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                    return Err((BAD_RANGE, before(rest, behind)));
                }
                self.out.push_str(before(rest, behind));
                ends += 8;
                rest = behind;
                continue;
            }
            if let Some(named) = named(rest)? {
                named.write(&mut self.out);
                ends = ends.saturating_add(named.length);
                // Go counts them when the class ends; so many need not be written before.
                if ends > ENDS {
                    return Err((TOO_LARGE, self.whole));
                }
                rest = named.rest;
                continue;
            }
            let start = rest;
            let (low, behind) = member(rest, whole)?;
            rest = behind;
            let mut high = low;
            let to = rest.strip_prefix('-').filter(|to| !to.is_empty());
            if let Some(to) = to.filter(|to| !to.starts_with(']')) {
                (high, rest) = member(to, whole)?;
                if high < low {
                    return Err((BAD_RANGE, before(start, rest)));
                }
            }
            range(&mut self.out, low, high);
            ends += 2;
        }
        self.out.push(']');
        self.rest = rest.get(1..).unwrap_or_default();
        self.counts(ends)
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
            ("\\p", "invalid character class range: `\\p`"),
            ("\\p{a", "invalid character class range: `\\p{a`"),
            (
                "[\\p{Emoji}]",
                "invalid character class range: `\\p{Emoji}`",
            ),
            (
                "\\p{^Alphabetic}b",
                "invalid character class range: `\\p{^Alphabetic}`",
            ),
            ("\\P{gc=L}", "invalid character class range: `\\P{gc=L}`"),
            (
                "\\p{Old_Italic}",
                "invalid character class range: `\\p{Old_Italic}`",
            ),
            ("\\1", "invalid escape sequence: `\\1`"),
            ("(a)\\18", "invalid escape sequence: `\\1`"),
            ("[\\b]", "invalid escape sequence: `\\b`"),
            ("\\x4", "invalid escape sequence: `\\x4`"),
            ("\\Z", "invalid escape sequence: `\\Z`"),
            ("a{1,0}", "invalid repeat count: `{1,0}`"),
            ("a{2,1001}", "invalid repeat count: `{2,1001}`"),
            ("(?i)*", "missing argument to repetition operator: `*`"),
            ("\\Q\\E+?", "missing argument to repetition operator: `+?`"),
            ("(?i-)", "invalid or unsupported Perl syntax: `(?i-)`"),
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
            assert_eq!(translated(pattern).err(), Some(expected), "{pattern}");
        }
    }
}
