//! Text from elsewhere, fit to be shown.
//!
//! What a plugin says is read on terminals, in logs and in conditions. A line break in it
//! would make a line that looks like the agent's own, and an escape sequence hides or
//! colours what follows.

/// Writes out every character that moves, hides or turns what stands around it, as Rust does
/// in a literal: a line break is `\n`, an escape `\u{1b}`. Text without any stays as it is.
///
/// These are the control characters, the separators of lines and paragraphs, those without
/// width, and those that change the direction of writing (Unicode TR 36, section 2.5.2, and
/// CVE-2021-42574).
pub fn printable(text: String) -> String {
    if is_printable(&text) {
        return text;
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_unprintable(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Whether nothing of a text would be written out.
pub fn is_printable(text: &str) -> bool {
    !text.contains(is_unprintable)
}

fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_would_not_be_seen_is_written_out() {
        for (text, shown) in [
            ("", ""),
            (
                "ordinary, ünïcode 漢字 🙂 and \\n",
                "ordinary, ünïcode 漢字 🙂 and \\n",
            ),
            ("a\nb\r\n\tc", "a\\nb\\r\\n\\tc"),
            ("\u{1b}[8mhidden", "\\u{1b}[8mhidden"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("\u{2028}\u{e0041}\0", "\\u{2028}\\u{e0041}\\u{0}"),
        ] {
            assert_eq!(printable(text.to_owned()), shown);
        }
    }

    proptest! {
        #[test]
        fn nothing_is_left_to_write_out(text in any::<String>()) {
            let shown = printable(text.clone());
            prop_assert!(!shown.contains(is_unprintable));
            prop_assert_eq!(printable(shown.clone()), shown);
        }
    }
}
