//! Moments as Go reads them: RFC 3339, and what it says of anything else.

/// The layout that Go's messages name.
const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// Why a text is no moment, in the words of Go's `time.Parse`.
pub(super) fn not_a_time(text: &str) -> Option<String> {
    let mut rest = text;
    // The parts in their order: the part of the layout, its digits, its limits.
    const PARTS: [(&str, usize, u32, u32); 6] = [
        ("2006", 4, 0, 9999),
        ("01", 2, 1, 12),
        ("02", 2, 1, 31),
        ("15", 2, 0, 23),
        ("04", 2, 0, 59),
        ("05", 2, 0, 59),
    ];
    const SIGNS: [&str; 6] = ["", "-", "-", "T", ":", ":"];
    const NAMES: [&str; 6] = ["year", "month", "day", "hour", "minute", "second"];
    let mut numbers = [0_u32; 6];
    let parse = |value: &str, element: &str| {
        Some(format!(
            "parsing time {text:?} as {LAYOUT:?}: cannot parse {value:?} as {element:?}"
        ))
    };
    for (index, (element, digits, least, most)) in PARTS.into_iter().enumerate() {
        let sign = SIGNS[index];
        let Some(after) = rest.strip_prefix(sign) else {
            return parse(rest, sign);
        };
        let number = after
            .get(..digits)
            .filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
        let Some(number) = number.and_then(|n| n.parse::<u32>().ok()) else {
            return parse(after, element);
        };
        if number < least || number > most {
            return Some(format!(
                "parsing time {text:?}: {} out of range",
                NAMES[index]
            ));
        }
        numbers[index] = number;
        rest = &after[digits..];
    }
    if let Some(fraction) = rest.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            rest = &fraction[digits..];
        }
    }
    let zone_ok = rest == "Z"
        || rest.strip_prefix(['+', '-']).is_some_and(|zone| {
            let mut parts = zone.split(':');
            let two = |part: Option<&str>, most| {
                part.is_some_and(|p| p.len() == 2 && p.parse::<u32>().is_ok_and(|n| n < most))
            };
            two(parts.next(), 24) && two(parts.next(), 60) && parts.next().is_none()
        });
    if !zone_ok {
        return match rest.strip_prefix('Z') {
            Some(extra) => Some(format!("parsing time {text:?}: extra text: {extra:?}")),
            None => parse(rest, "Z07:00"),
        };
    }
    let [year, month, day, ..] = numbers;
    (day > days(year, month)).then(|| format!("parsing time {text:?}: day out of range"))
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_from_other_texts() {
        for text in [
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.123456Z",
            "2024-02-29T23:59:59+02:00",
        ] {
            assert_eq!(not_a_time(text), None);
        }
        for (text, why) in [
            (
                "yesterday",
                r#"as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#,
            ),
            (
                "2026-01-02",
                r#"as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#,
            ),
            (
                "2026-01-02T03:04:05",
                r#"as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00""#,
            ),
            ("2026-13-02T03:04:05Z", ": month out of range"),
            ("2026-02-29T03:04:05Z", ": day out of range"),
            ("2026-02-20T03:04:05Zx", ": extra text: \"x\""),
        ] {
            let expected = format!(
                "parsing time {text:?}{}{why}",
                if why.starts_with(':') { "" } else { " " }
            );
            assert_eq!(not_a_time(text), Some(expected));
        }
    }
}
