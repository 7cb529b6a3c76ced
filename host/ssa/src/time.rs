//! Reading of RFC 3339 times, as far as ordering needs it.

/// Seconds since 1970 of a time such as `2026-01-31T12:00:00Z` or
/// `2026-01-31T12:00:00.5+02:00`; none when it is not a time.
pub(crate) fn unix_seconds(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let separators = [(4, '-'), (7, '-'), (13, ':'), (16, ':')];
    let bytes = text.as_bytes();
    if !separators
        .iter()
        .all(|(at, separator)| bytes.get(*at) == Some(&(*separator as u8)))
        || !matches!(bytes.get(10), Some(b'T' | b't'))
    {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let zone = text
        .get(19..)?
        .trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    Some(days(year, month, day)? * 86_400 + hour * 3_600 + minute * 60 + second - offset(zone)?)
}

fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next()? {
        'Z' | 'z' => return (zone.len() == 1).then_some(0),
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    // Two digits each: more of them might be more than a number holds.
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let number = |text: &str| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<i64>().ok()).flatten()
    };
    Some(sign * (number(hours)? * 3_600 + number(minutes)? * 60))
}

/// Days since 1970-01-01 in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is their last.
    let year = if month <= 2 { year - 1 } else { year };
    let since_march = (month + 9) % 12;
    let (century, in_century) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * since_march + 2) / 5 + day - 1;
    let day_of_cycle = in_century * 365 + in_century / 4 - in_century / 100 + day_of_year;
    Some(century * 146_097 + day_of_cycle - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_seconds() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:34:56Z", Some(951_827_696)),
            ("2026-11-21T14:00:00Z", Some(1_795_269_600)),
            ("2026-11-21T16:00:00.123456+02:00", Some(1_795_269_600)),
            ("1969-12-31T23:59:59Z", Some(-1)),
            ("2026-13-21T14:00:00Z", None),
            ("2026-11-21", None),
            ("", None),
            ("2026-11-21T14:00:00", None),
            ("2026-11-21T14:00:00+2:00", None),
            ("2026-11-21T14:00:00+02:-1", None),
            ("2026-11-21T14:00:00+9223372036854775:00", None),
        ] {
            assert_eq!(unix_seconds(text), seconds, "{text}");
        }
    }
}
