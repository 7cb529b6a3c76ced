//! Regular expressions of schemas, which are those of Go (RE2), run by this crate's
//! engine.
//!
//! They are matched on bytes, because only there `\B` may be ASCII as well. All else
//! still stands for whole characters.

mod classes;
mod letters;
mod syntax;

use regex::bytes::{Regex, RegexBuilder};

/// A compiled pattern, with the text it was made from.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    text: String,
    regex: Regex,
    /// Whether it may find something between the bytes of a character, where Go does not
    /// look.
    splits: bool,
}

/// A pattern may compile to this many bytes. Go takes some that need more, such as
/// `\pL{1000}`; a hundred of them may be kept.
const SIZE_MAX: usize = 10 << 20;

/// Compiles a pattern.
///
/// # Errors
///
/// With the reason why it is none.
pub(super) fn compile(text: &str) -> Result<Pattern, String> {
    Pattern::compile(text)
}

/// So many levels of a pattern the engine compiles on any stack: it calls itself for each.
const LEVELS_MAX: u32 = 100;

/// So many levels the engine takes. It counts more of them than Go, which allows a thousand,
/// and its time grows with their square.
const NESTS_MAX: u32 = 5_000;

/// The stack for the most levels that a pattern may have.
const STACK: usize = 32 << 20;

/// The engine for a pattern that is written as it takes it.
fn built(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text)
        .size_limit(SIZE_MAX)
        .nest_limit(NESTS_MAX)
        .build()
        .map_err(|error| format!("error parsing regexp: {error}"))
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// With the reason why it is none, as Go says it.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        let translated = syntax::translated(text)?;
        let built = || built(&translated.text);
        let regex = if translated.levels > LEVELS_MAX {
            std::thread::scope(|scope| {
                let builder = std::thread::Builder::new().stack_size(STACK);
                let thread = builder.spawn_scoped(scope, built);
                let thread = thread.map_err(|error| error.to_string())?;
                let failed = |_| "the pattern could not be compiled".to_owned();
                thread.join().map_err(failed)?
            })
        } else {
            built()
        };
        let regex = regex?;
        Ok(Pattern {
            text: text.to_owned(),
            regex,
            splits: translated.text.contains(r"\B"),
        })
    }

    /// What the pattern matches in `value`, from the left, none over another.
    pub(crate) fn found<'v>(&self, value: &'v str) -> impl Iterator<Item = &'v str> {
        let found = self.regex.find_iter(value.as_bytes());
        found.filter_map(|found| value.get(found.range()))
    }

    /// Whether the pattern matches somewhere in `value`.
    pub(crate) fn matches(&self, value: &str) -> bool {
        let matches = self.regex.is_match(value.as_bytes());
        matches && (!self.splits || self.found(value).next().is_some())
    }

    /// The text of the pattern.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
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
            // What is escaped and no letter stands for itself.
            (r"^\<a\>$", "<a>", "a"),
            (r"^[^\<\>]+$", "a", "<"),
            (r"^[\<-\>]+$", "<=>", "?"),
            (r"^\!\\\'\%\,\/\:\;\=\@\_\`\~\ $", "!\\'%,/:;=@_`~ ", "!"),
            (r"^\-\#\&[\&\&\~\-\#]$", "-#&~", "-#&!"),
            (r"a\b{start}", "a{start}", "a start"),
            (r"^.\B{end}", "-{end}", "a{end}"),
            // A brace that starts no repetition does as well.
            (r"^\${[A-Z]+}$", "${A}", "{A}"),
            ("^a{$", "a{", "a"),
            ("^a{,3}$", "a{,3}", "aa"),
            ("^a{02}$", "a{02}", "aa"),
            ("^a{2$", "a{2", "aa"),
            ("^a{0}{$", "{", "a{"),
            ("^a{2}}$", "aa}", "aa"),
            ("^{}$", "{}", ""),
            // Numbers of characters.
            (r"^\07\123\0$", "\u{7}S\0", "7123"),
            (r"^[\101-\103]\777$", "B\u{1ff}", "D\u{1ff}"),
            (r"^\x41[\x{1F600}]$", "A😀", "A"),
            (r"^[\x{D7FF}-\x{E000}]$", "\u{e000}", "\u{fffd}"),
            (r"^(a|[\x{D800}])$", "a", "\u{fffd}"),
            (r"^(a|\x{D800})$", "a", "\u{fffd}"),
            (r"^[^\x{D800}]$", "\u{fffd}", ""),
            // Flags hold for what follows, and nothing is repeated of them.
            ("^a(?i)*b$", "aaB", "Ab"),
            ("^a*(?i)?b$", "aaB", "Ab"),
            ("^a*(?U)?b$", "aab", "ac"),
            ("^(?i:k)(?s-m:.)(?-i)c$", "K\nc", "k\nC"),
            ("^a(?i)b|c$", "C", "D"),
            ("^((?i)a)b$", "Ab", "AB"),
            ("(?m)^a$", "b\na", "b a"),
            ("(?ii)(?)(?-i)^a$", "a", "A"),
            ("^a.c$", "abc", "a\nc"),
            ("^[^a]$", "\n", "a"),
            // Classes by their names.
            (r"^\p{Greek}\PN\p{^Lu}$", "αaa", "αaA"),
            (
                r"^\pL\p{greek}\p{Uppercase_Letter}\p{punct}$",
                "aαA!",
                "aαa!",
            ),
            (r"^\p{Any}\p{ASCII}[\PL]$", "éa1", "aé1"),
            (r"^(a|\p{Cs})\P{Cs}$", "aa", "\u{fffd}a"),
            (r"^[\d-z][[:^alpha:][]$", "-[", "ea"),
            (r"^(?i)\w\W$", "\u{17f}!", "a\u{17f}"),
            // Others.
            (r"^\Qa*\E*$", "a**", "aa"),
            (r"^a*\Q\E?$", "aa", "b"),
            (r"^\A*(?:^)*a\z$", "a", "a\n"),
            ("^()*[]a-][^]]$", "-a", "-]"),
            (r"\B", "é", "aéa"),
            ("^(?:(?:a{10}){10}){10}$", &"a".repeat(1000), "a"),
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

    #[test]
    fn few_are_preferred_where_go_prefers_few() {
        for (pattern, expected) in [
            ("a+", "aaa"),
            ("a+?", "a"),
            ("(?U)a+", "a"),
            ("(?U)a+?", "aaa"),
            ("(?U:a+)a*", "aaa"),
            ("a(?U){1,3}", "a"),
            ("a{2}?", "aa"),
            ("a*(?U)?", ""),
        ] {
            let compiled = compile(pattern).unwrap();
            assert_eq!(compiled.found("aaa").next(), Some(expected), "{pattern}");
        }
    }

    #[test]
    fn all_that_is_no_letter_may_be_escaped() {
        for c in ('\0'..='\u{7f}').filter(|c| !c.is_ascii_alphanumeric()) {
            let text = c.to_string();
            for pattern in [
                format!("^\\{c}$"),
                format!("^[\\{c}]$"),
                format!("^[ab\\{c}]$"),
            ] {
                let compiled = compile(&pattern).map_err(|why| format!("{pattern}: {why}"));
                let compiled = compiled.unwrap();
                assert!(compiled.matches(&text), "{pattern}");
                assert!(!compiled.matches("c"), "{pattern}");
            }
            let other = compile(&format!("^[^\\{c}]$")).unwrap();
            assert!(!other.matches(&text) && other.matches("a"), "{c}");
        }
    }

    #[test]
    fn levels_are_those_of_go() {
        for (open, close, most) in [
            ("(", ")", 999),
            ("(", "a)", 500),
            ("(?:a", "b)*", 500),
            ("(", "|a)*", 333),
            ("(a|b*(c", ")+)?d", 142),
        ] {
            let nested = |levels| open.repeat(levels) + "z" + &close.repeat(levels);
            assert!(compile(&nested(most)).is_ok(), "{open}{close}");
            let why = compile(&nested(most + 1)).unwrap_err();
            let expected = "error parsing regexp: expression nests too deeply: `(";
            assert!(why.starts_with(expected), "{open}{close}: {why:.80}");
        }
        // Some make no levels, and the engine takes only so many of them.
        let flat = |levels| "(?:".repeat(levels) + "a" + &")".repeat(levels);
        assert!(compile(&flat(4_000)).unwrap().matches("a"));
        assert!(compile(&flat(50_000)).is_err());
        let heavy = "(?:.".repeat(100_000) + &")".repeat(100_000);
        assert!(compile(&heavy).is_err());
    }

    #[test]
    fn long_patterns_are_refused() {
        for (part, times, expected) in [
            (r"\pL", 300_000, "expression too large: `"),
            (r"[\pL]", 300_000, "expression too large: `"),
            (r"\p{Greek}", 100_000, "Compiled regex exceeds size limit"),
            ("[[:", 300_000, "missing closing ]: `"),
            (r"\p{Emoji}", 300_000, "invalid character class range: `"),
        ] {
            let why = compile(&part.repeat(times)).unwrap_err();
            let expected = format!("error parsing regexp: {expected}");
            assert!(why.starts_with(&expected), "{part}: {why:.80}");
        }
    }
}
