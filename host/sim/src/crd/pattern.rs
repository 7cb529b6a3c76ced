//! Regular expressions of schemas, which are those of Go (RE2), in the syntax of this
//! crate's engine: `\w` and its like are ASCII there, `\Q…\E` quotes, and classes
//! are no sets to calculate with.
//!
//! They are matched on bytes, because only there `\B` may be ASCII as well. All else
//! still stands for whole characters.

mod faults;

use regex::bytes::{Regex, RegexBuilder};

/// A compiled pattern, with the text it was made from.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    text: String,
    regex: Regex,
}

/// A pattern may compile to this many bytes: ten times what the largest takes that Go
/// compiles, which repeats nothing more than a thousand times.
const SIZE_MAX: usize = 10 << 20;

/// Compiles a pattern.
///
/// # Errors
///
/// With the reason why it is none.
pub(super) fn compile(text: &str) -> Result<Pattern, String> {
    Pattern::compile(text)
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// With the reason why it is none, as Go says it.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        if let Some(fault) = faults::fault(text) {
            return Err(fault);
        }
        let regex = RegexBuilder::new(&translated(text))
            .size_limit(SIZE_MAX)
            .build()
            .map_err(|error| format!("error parsing regexp: {error}"))?;
        Ok(Pattern {
            text: text.to_owned(),
            regex,
        })
    }

    /// What the pattern matches in `value`, from the left, none over another.
    pub(crate) fn found<'v>(&self, value: &'v str) -> impl Iterator<Item = &'v str> {
        let found = self.regex.find_iter(value.as_bytes());
        found.filter_map(|found| value.get(found.range()))
    }

    /// Whether the pattern matches somewhere in `value`.
    pub(crate) fn matches(&self, value: &str) -> bool {
        self.regex.is_match(value.as_bytes())
    }

    /// The text of the pattern.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// The same pattern in this engine's syntax. What is no pattern in either stays none.
fn translated(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // Whether a class is open, and whether its first item is still to come.
    let (mut class, mut first) = (false, false);
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        let is_first = std::mem::take(&mut first);
        rest = match c {
            '\\' => {
                let Some(escaped) = after.chars().next() else {
                    out.push(c);
                    break;
                };
                let beyond = after.get(escaped.len_utf8()..).unwrap_or_default();
                if escaped == 'Q' && !class {
                    let (quoted, beyond) = beyond.split_once("\\E").unwrap_or((beyond, ""));
                    out.push_str(&regex::escape(quoted));
                    beyond
                } else if let Some(name) = beyond.strip_prefix("{^")
                    && let Some(other) = negated(escaped)
                {
                    out.extend(['\\', other, '{']);
                    name
                } else {
                    match ascii(escaped) {
                        Some(same) if escaped != 'b' || !class => out.push_str(same),
                        _ => out.extend(['\\', escaped]),
                    }
                    beyond
                }
            }
            // Names of groups may be there twice in Go, and nobody asks for them.
            '(' if !class && is_named(after) => {
                out.push(c);
                after.split_once('>').map_or("", |(_, beyond)| beyond)
            }
            '[' if !class => {
                (class, first) = (true, true);
                out.push(c);
                match after.strip_prefix('^') {
                    Some(after) => {
                        out.push('^');
                        after
                    }
                    None => after,
                }
            }
            '[' if after.starts_with(':') => match after.split_once(":]") {
                // A class with a name.
                Some((name, beyond)) => {
                    out.extend(["[", name, ":]"]);
                    beyond
                }
                None => {
                    out.push_str("\\[");
                    after
                }
            },
            ']' if class && is_first => {
                out.push_str("\\]");
                after
            }
            ']' => {
                class = false;
                out.push(c);
                after
            }
            '[' | '&' | '~' if class => {
                out.extend(['\\', c]);
                after
            }
            '-' if class && after.starts_with('-') => {
                out.push_str("-\\-");
                after.get(1..).unwrap_or_default()
            }
            _ => {
                out.push(c);
                after
            }
        };
    }
    out
}

/// The letter of the class that has all others than the one of this letter.
fn negated(letter: char) -> Option<char> {
    match letter {
        'p' => Some('P'),
        'P' => Some('p'),
        _ => None,
    }
}

/// Whether what follows a parenthesis is the name of the group.
fn is_named(text: &str) -> bool {
    text.starts_with("?P<") || text.starts_with("?<")
}

/// What stands for a letter behind a backslash that means more than ASCII here. One
/// class may stand inside of another.
fn ascii(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        's' => r"[\t\n\f\r ]",
        'S' => r"[^\t\n\f\r ]",
        'b' => r"(?-u:\b)",
        'B' => r"(?-u:\B)",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, matching, other) in [
            (r"^\w+$", "a_1", "é"),
            (r"^\d$", "1", "١"),
            (r"^\s$", "\t", "\u{a0}"),
            (r"^\S\D\W$", "aé.", "a1."),
            (r"^[\w.-]{1,128}$", "a.b-c", "a b"),
            (r"^[^\d]$", "a", "1"),
            (r"^\Qa.b\E$", "a.b", "axb"),
            (r"^\Qa.b", "a.b", "axb"),
            (r"^[a&&b]$", "&", "&&"),
            (r"^[a~~b]$", "~", "c"),
            (r"^[[x]$", "[", "y"),
            (r"^[]x]$", "]", "y"),
            (r"^[^]x]$", "y", "]"),
            (r"^[+--]$", ",", "a"),
            (r"^[[:alpha:]_]$", "_", "1"),
            (r"\bé", "xé", " é"),
            (r"é\Bé", "éé", "é"),
            (r"-\Bé", "-é", "x-"),
            (r"^.$", "é", "éé"),
            (r"^\[\]\\$", "[]\\", "[]"),
            (r"^[a\]b]$", "]", "c"),
            (r"^\p{^Lu}[\P{^Lu}]$", "aA", "Aa"),
            (r"^(?P<n>a)(?<n>b)(?P<1>c)$", "abc", "ab"),
        ] {
            let compiled = compile(pattern).map_err(|why| format!("{pattern}: {why}"));
            let compiled = compiled.unwrap();
            assert!(compiled.matches(matching), "{pattern} {matching}");
            assert!(!compiled.matches(other), "{pattern} {other}");
            assert_eq!(compiled.text(), pattern);
        }
        for pattern in ["(", "[a", "a**\\", "*"] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
