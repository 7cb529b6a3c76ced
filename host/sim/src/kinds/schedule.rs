//! When a CronJob runs: the form of schedules and time zones.

use serde_json::json;

use crate::field::{Errors, FieldError, Path};

/// Checks the form of the name of a time zone. There is no list to look it up in.
pub(super) fn validate_zone(path: &Path<'_>, zone: &str, errors: &mut Errors) {
    const LONGEST_PART: usize = 14;
    let is_part = |part: &str| {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.len() <= LONGEST_PART
            && part.chars().all(is_legal)
    };
    let unknown = || format!("unknown time zone {zone}");
    let mut complain = |why: String| errors.push(FieldError::invalid_str(path, zone, why));
    if zone.is_empty() {
        complain("timeZone must be nil or non-empty string".to_owned());
    } else if !zone.split('/').all(is_part) {
        complain(unknown());
    } else if zone.eq_ignore_ascii_case("Local") {
        complain(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
                .to_owned(),
        );
        if zone != "Local" {
            complain(unknown());
        }
    }
}

/// Whether a schedule has five fields of numbers, names, ranges and steps, or
/// is one of the named ones.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    let plain = schedule
        .strip_prefix("TZ=")
        .or_else(|| schedule.strip_prefix("CRON_TZ="))
        .and_then(|rest| rest.split_once(' '))
        .map_or(schedule, |(_, rest)| rest.trim());
    if let Some(name) = plain.strip_prefix('@') {
        let known = [
            "yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly",
        ];
        return if known.contains(&name) || name.starts_with("every ") {
            Ok(())
        } else {
            Err(format!("unrecognized descriptor: {plain}"))
        };
    }
    let fields: Vec<&str> = plain.split_whitespace().collect();
    if fields.len() != 5 {
        let found = json!(fields).to_string().replace(['"', ','], " ");
        let found: Vec<&str> = found.trim_matches(['[', ']']).split_whitespace().collect();
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            found.join(" ")
        ));
    }
    const BOUNDS: [(u32, u32); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
    for (field, (low, high)) in fields.iter().zip(BOUNDS) {
        for part in field.split(',') {
            check_range(part, low, high)?;
        }
    }
    Ok(())
}

fn check_range(part: &str, low: u32, high: u32) -> Result<(), String> {
    const NAMES: [&str; 19] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "sun",
        "mon", "tue", "wed", "thu", "fri", "sat",
    ];
    let (range, step) = part
        .split_once('/')
        .map_or((part, None), |(range, step)| (range, Some(step)));
    let number = |text: &str| {
        text.parse::<u32>().map_err(|_| {
            format!(
                "failed to parse int from {text}: strconv.Atoi: parsing {}: invalid syntax",
                crate::field::quoted(text)
            )
        })
    };
    if let Some(step) = step
        && number(step)? == 0
    {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    if range == "*" || range == "?" {
        return Ok(());
    }
    for end in range.split('-') {
        if NAMES.contains(&end.to_ascii_lowercase().as_str()) {
            continue;
        }
        let end = number(end)?;
        if end < low {
            return Err(format!(
                "beginning of range ({end}) below minimum ({low}): {part}"
            ));
        }
        if end > high {
            return Err(format!(
                "end of range ({end}) above maximum ({high}): {part}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules() {
        for good in ["* * * * *", "*/5 1-3 1,2 jan sun", "@daily", "0 0 1 1 0"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "* * * *",
            "60 * * * *",
            "a * * * *",
            "@never",
            "*/0 * * * *",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
