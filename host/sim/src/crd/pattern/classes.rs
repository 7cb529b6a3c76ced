//! The classes of characters that patterns may name.
//!
//! `classes.txt` has one of them a line, with its length as Go counts it, and then other
//! names of categories:
//!
//! ```text
//! Lu 1292
//! Uppercaseletter = Lu
//! ```
//!
//! They are the categories and scripts of Go, which this crate's engine knows as well,
//! and many more that Go does not. Go looks a name up without what joins its words, but
//! not so in its own names of scripts, of which it therefore finds none with two words.

use std::collections::HashMap;
use std::sync::LazyLock;

static CLASSES: LazyLock<HashMap<&'static str, Class>> = LazyLock::new(|| {
    let mut classes = HashMap::new();
    let lines = include_str!("classes.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let (Some(name), Some(length)) = (words.next(), words.next()) else {
            continue;
        };
        let class = match words.next() {
            Some(other) => classes.get(other).copied(),
            None => length.parse().ok().map(|length| Class { name, length }),
        };
        if let Some(class) = class {
            classes.insert(name, class);
        }
    }
    classes
});

/// A class that has a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    /// The name, which is none of the other names.
    pub(super) name: &'static str,
    /// How many ends of ranges it has.
    pub(super) length: usize,
}

/// The class of this name, if there is one.
pub(super) fn named(name: &str) -> Option<Class> {
    let mut plain = String::with_capacity(name.len());
    for letter in name.chars().filter(|c| !['_', '-', ' '].contains(c)) {
        plain.push(match plain.is_empty() {
            true => letter.to_ascii_uppercase(),
            false => letter.to_ascii_lowercase(),
        });
    }
    CLASSES.get(plain.as_str()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_go() {
        for (name, expected) in [
            ("Lu", Some("Lu")),
            ("lu", Some("Lu")),
            ("LU", Some("Lu")),
            ("_L-u ", Some("Lu")),
            ("LC", Some("Lc")),
            ("any", Some("Any")),
            ("ASCII", Some("Ascii")),
            ("greek", Some("Greek")),
            ("Uppercase_Letter", Some("Lu")),
            ("uppercaseletter", Some("Lu")),
            ("punct", Some("P")),
            ("Cased Letter", Some("Lc")),
            ("", None),
            ("Old_Italic", None),
            ("OldItalic", None),
            ("SignWriting", None),
            ("Grek", None),
            ("Alphabetic", None),
            ("Emoji", None),
            ("gc=Lu", None),
            ("IsGreek", None),
        ] {
            assert_eq!(named(name).map(|class| class.name), expected, "{name}");
        }
    }

    #[test]
    fn the_engine_knows_all_names() {
        assert_eq!(CLASSES.len(), 200);
        for class in CLASSES.values().filter(|class| class.name != "Cs") {
            let class = format!(r"\p{{{}}}", class.name);
            assert!(regex::bytes::Regex::new(&class).is_ok(), "{class}");
        }
    }
}
