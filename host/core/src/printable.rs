//! Text from elsewhere, fit to be shown.
//!
//! What a plugin says is read on terminals, in logs and in conditions. A line break in it
//! would make a line that looks like the agent's own, and an escape sequence hides or
//! colours what follows.

/// Writes out every character that moves, hides or turns what stands around it, as Rust does
/// in a literal: a line break is `\n`, an escape `\u{1b}`. Text without any stays as it is.
///
/// These are the control characters, the separators of lines and paragraphs, what Unicode
/// gives no shape (the general category Cf and the property `Default_Ignorable_Code_Point` of
/// Unicode 16), and with these what changes the direction of writing (Unicode TR 36, section
/// 2.5.2, and CVE-2021-42574). Marks of whole scripts that are drawn, such as those of Arabic
/// numbers, stay, and so does the selector of emoji.
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
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                // The last two say whether what stands before is drawn as text or emoji.
                | '\u{fe00}'..='\u{fe0d}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
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
            ("a\u{61c}b\u{ad}c", "a\\u{61c}b\\u{ad}c"),
            (
                "a\u{3164}\u{e0101}\u{180e}",
                "a\\u{3164}\\u{e0101}\\u{180e}",
            ),
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
