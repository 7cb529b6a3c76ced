//! Texts in JSON that are no Unicode, which the real server reads all the same.

/// The text with U+FFFD for all that is no Unicode in its strings: for each byte that
/// cannot be where it is, and for each half of a surrogate pair. None where there is no
/// such thing.
pub(super) fn mended(text: &[u8]) -> Option<Vec<u8>> {
    const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    let (mut is_mended, mut in_string) = (false, false);
    while let Some(&byte) = rest.first() {
        let taken = match byte {
            b'"' => {
                in_string = !in_string;
                1
            }
            b'\\' if in_string => match escaped(rest) {
                Some(0xd800..=0xdbff) if is_low(rest.get(6..)) => 12,
                Some(0xd800..=0xdfff) => {
                    out.extend(REPLACEMENT);
                    is_mended = true;
                    rest = rest.get(6..).unwrap_or_default();
                    continue;
                }
                _ => 2.min(rest.len()),
            },
            // What is no string is for the parser to refuse.
            _ if byte.is_ascii() || !in_string => 1,
            _ => match character(rest) {
                Some(length) => length,
                None => {
                    out.extend(REPLACEMENT);
                    is_mended = true;
                    rest = rest.get(1..).unwrap_or_default();
                    continue;
                }
            },
        };
        let (kept, after) = rest.split_at_checked(taken).unwrap_or((rest, &[]));
        out.extend(kept);
        rest = after;
    }
    is_mended.then_some(out)
}

/// How many bytes the character has that a text begins with.
fn character(text: &[u8]) -> Option<usize> {
    (2..=4).find(|length| {
        let bytes = text.get(..*length);
        bytes.is_some_and(|bytes| std::str::from_utf8(bytes).is_ok())
    })
}

/// The number of a `\uXXXX` that a text begins with.
fn escaped(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// Whether the second half of a pair follows.
fn is_low(text: Option<&[u8]>) -> bool {
    matches!(text.and_then(escaped), Some(0xdc00..=0xdfff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_unicode_is_replaced() {
        for (text, expected) in [
            (&b"{\"a\":\"x\"}"[..], None),
            (br#"["\ud83d\ude00\u00e9\n"]"#, None),
            ("[\"é\u{1f600}\"]".as_bytes(), None),
            (b"[\"\xff\"]", Some("[\"\u{fffd}\"]")),
            (b"[\"a\xe2\x82b\"]", Some("[\"a\u{fffd}\u{fffd}b\"]")),
            (br#"["\ud800"]"#, Some("[\"\u{fffd}\"]")),
            (
                br#"["\ud800\ud83d\ude00"]"#,
                Some("[\"\u{fffd}\\ud83d\\ude00\"]"),
            ),
            (
                br#"["\\ud800\udc00\""]"#,
                Some("[\"\\\\ud800\u{fffd}\\\"\"]"),
            ),
            // Outside of strings nothing is made good.
            (b"[\xff]", None),
            (b"[\"\\", None),
        ] {
            let mended = mended(text).map(|mended| String::from_utf8(mended).unwrap());
            assert_eq!(mended.as_deref(), expected, "{}", text.escape_ascii());
        }
    }
}
