//! The schedules of CronJobs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::civil::{Date, DateTime};
use k8s_openapi::jiff::tz::TimeZone;

use crate::span;

/// How many days ahead a schedule is searched: the 29th of February can be eight
/// years away.
const DAYS: usize = 9 * 366;

/// When a CronJob runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Schedule {
    /// At the times of a calendar.
    Calendar(Calendar),
    /// At equal intervals.
    Every(Duration),
}

/// The minutes, hours, days and months of a schedule, as bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Calendar {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether days of the month or weekdays are left open. A day has to match
    /// both then, and otherwise one of them.
    open: bool,
    zone: TimeZone,
}

/// A text that is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotASchedule {
    /// It has another number of fields.
    #[error("expected exactly 5 fields, found {found}: {text:?}")]
    Fields { found: usize, text: String },
    /// A field is wrong.
    #[error("{field} {part:?} is no {what} between {low} and {high}")]
    Field {
        field: String,
        part: String,
        what: &'static str,
        low: u32,
        high: u32,
    },
    /// An unknown word after `@`.
    #[error("unrecognized descriptor: {0:?}")]
    Descriptor(String),
    /// An unknown time zone.
    #[error("unknown time zone {0:?}")]
    Zone(String),
}

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// What a field holds.
struct Field {
    what: &'static str,
    low: u32,
    high: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field {
        what: "minute",
        low: 0,
        high: 59,
        names: &[],
    },
    Field {
        what: "hour",
        low: 0,
        high: 23,
        names: &[],
    },
    Field {
        what: "day of the month",
        low: 1,
        high: 31,
        names: &[],
    },
    Field {
        what: "month",
        low: 1,
        high: 12,
        names: MONTHS,
    },
    Field {
        what: "weekday",
        low: 0,
        high: 6,
        names: WEEKDAYS,
    },
];

impl Schedule {
    /// Reads `spec.schedule` and `spec.timeZone`; without a time zone, it is UTC.
    pub(super) fn parse(text: &str, zone: Option<&str>) -> Result<Self, NotASchedule> {
        let zone = match zone {
            None | Some("Etc/UTC" | "UTC") => TimeZone::UTC,
            Some(name) => TimeZone::get(name).map_err(|_| NotASchedule::Zone(name.to_owned()))?,
        };
        let text = text.trim();
        let plain = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        if let Some(every) = plain.strip_prefix("@every ") {
            let every = span::parse(every).ok().filter(|every| !every.is_zero());
            let every = every.ok_or_else(|| NotASchedule::Descriptor(text.to_owned()))?;
            return Ok(Schedule::Every(every.max(Duration::from_secs(1))));
        }
        if plain.starts_with('@') {
            return Err(NotASchedule::Descriptor(text.to_owned()));
        }
        let parts: Vec<&str> = plain.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts[..] else {
            return Err(NotASchedule::Fields {
                found: parts.len(),
                text: text.to_owned(),
            });
        };
        let [minute, hour, day, month, weekday] = &FIELDS;
        let is_open = |text: &str| text.starts_with(['*', '?']);
        Ok(Schedule::Calendar(Calendar {
            minutes: minute.bits(minutes)?,
            hours: hour.bits(hours)?,
            days: day.bits(days)?,
            months: month.bits(months)?,
            weekdays: weekday.bits(weekdays)?,
            open: is_open(days) || is_open(weekdays),
            zone,
        }))
    }

    /// The first time after `after`; none where the calendar has no such day.
    pub(super) fn next(&self, after: SystemTime) -> Option<SystemTime> {
        match self {
            Schedule::Every(every) => {
                // On whole seconds, as the real one.
                let since = after.duration_since(UNIX_EPOCH).ok()?;
                Some(UNIX_EPOCH + Duration::from_secs(since.as_secs()) + *every)
            }
            Schedule::Calendar(calendar) => calendar.next(after),
        }
    }

    /// The last time after `after` and not after `now`.
    pub(super) fn last(&self, after: SystemTime, now: SystemTime) -> Option<SystemTime> {
        // What was missed in years is not gone through one by one.
        const HOUR: u64 = 3600;
        for window in [HOUR, 24 * HOUR, 40 * 24 * HOUR, 400 * 24 * HOUR, u64::MAX] {
            let begin = now
                .checked_sub(Duration::from_secs(window))
                .unwrap_or(UNIX_EPOCH);
            let mut found = None;
            let mut from = after.max(begin);
            while let Some(next) = self.next(from).filter(|next| *next <= now) {
                found = Some(next);
                from = next;
            }
            if found.is_some() || begin <= after {
                return found;
            }
        }
        None
    }
}

impl Field {
    fn bits(&self, text: &str) -> Result<u64, NotASchedule> {
        let mut bits = 0;
        for part in text.split(',') {
            bits |= self.part(text, part)?;
        }
        Ok(bits)
    }

    /// Reads `*`, `5`, `1-5`, each with `/2` or without.
    fn part(&self, field: &str, part: &str) -> Result<u64, NotASchedule> {
        let wrong = || NotASchedule::Field {
            field: field.to_owned(),
            part: part.to_owned(),
            what: self.what,
            low: self.low,
            high: self.high,
        };
        let (range, step) = match part.split_once('/') {
            None => (part, None),
            Some((range, step)) => (
                range,
                Some(
                    step.parse()
                        .ok()
                        .filter(|step| *step > 0)
                        .ok_or_else(wrong)?,
                ),
            ),
        };
        let number = |text: &str| -> Option<u32> {
            let lower = text.to_ascii_lowercase();
            let named = self.names.iter().position(|name| *name == lower);
            let number = match named {
                Some(at) => self.low + u32::try_from(at).ok()?,
                None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok()?,
                None => return None,
            };
            (self.low..=self.high).contains(&number).then_some(number)
        };
        let (first, last) = match range {
            "*" | "?" => (self.low, self.high),
            _ => match range.split_once('-') {
                Some((first, last)) => (
                    number(first).ok_or_else(wrong)?,
                    number(last).ok_or_else(wrong)?,
                ),
                None => {
                    let first = number(range).ok_or_else(wrong)?;
                    (first, if step.is_some() { self.high } else { first })
                }
            },
        };
        if first > last {
            return Err(wrong());
        }
        let step: usize = step.unwrap_or(1);
        Ok((first..=last)
            .step_by(step)
            .fold(0, |bits, n| bits | 1 << n))
    }
}

impl Calendar {
    fn next(&self, after: SystemTime) -> Option<SystemTime> {
        let after = Timestamp::try_from(after).ok()?;
        let begin = self.zone.to_datetime(after);
        let mut date = begin.date();
        for day in 0..DAYS {
            if self.has(date) {
                let earliest = if day == 0 { minute_of(begin) } else { 0 };
                if let Some(found) = self.on(date, earliest, after) {
                    return Some(found.into());
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn has(&self, date: Date) -> bool {
        let bit = |bits: u64, number: i8| u32::try_from(number).is_ok_and(|n| bits >> n & 1 == 1);
        let day = bit(self.days, date.day());
        let weekday = bit(self.weekdays, date.weekday().to_sunday_zero_offset());
        bit(self.months, date.month())
            && if self.open {
                day && weekday
            } else {
                day || weekday
            }
    }

    /// The first time on a day, from a minute on, that is after `after`. A time
    /// that a change of clocks leaves out does not come.
    fn on(&self, date: Date, earliest: i64, after: Timestamp) -> Option<Timestamp> {
        for hour in 0..24_i8 {
            if self.hours >> hour & 1 == 0 || i64::from(hour) * 60 + 59 < earliest {
                continue;
            }
            for minute in 0..60_i8 {
                if self.minutes >> minute & 1 == 0 {
                    continue;
                }
                let wanted = date.at(hour, minute, 0, 0);
                let found = self.zone.to_timestamp(wanted).ok()?;
                if found > after && self.zone.to_datetime(found) == wanted {
                    return Some(found);
                }
            }
        }
        None
    }
}

fn minute_of(time: DateTime) -> i64 {
    i64::from(time.hour()) * 60 + i64::from(time.minute())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(text: &str) -> SystemTime {
        crate::clock::parse(text).unwrap()
    }

    #[track_caller]
    fn check(schedule: &str, zone: Option<&str>, after: &str, expected: &str) {
        let next = Schedule::parse(schedule, zone)
            .unwrap()
            .next(time(after))
            .unwrap();
        assert_eq!(crate::clock::rfc3339(next), expected, "{schedule}");
    }

    #[test]
    fn the_next_time_is_found() {
        for (schedule, after, expected) in [
            (
                "*/5 * * * *",
                "2026-01-01T00:00:00Z",
                "2026-01-01T00:05:00Z",
            ),
            (
                "*/5 * * * *",
                "2026-01-01T00:04:59Z",
                "2026-01-01T00:05:00Z",
            ),
            ("30 2 * * *", "2026-01-01T02:30:00Z", "2026-01-02T02:30:00Z"),
            ("0 0 1 * *", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
            (
                "0 9 * * MON-fri",
                "2026-01-02T09:00:00Z",
                "2026-01-05T09:00:00Z",
            ),
            ("0 0 13 * 5", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
            (
                "0 0 13 jan,mar *",
                "2026-01-14T00:00:00Z",
                "2026-03-13T00:00:00Z",
            ),
            (
                "50/5 * * * *",
                "2026-01-01T00:50:00Z",
                "2026-01-01T00:55:00Z",
            ),
            ("@hourly", "2026-01-01T00:00:01Z", "2026-01-01T01:00:00Z"),
            ("@every 90s", "2026-01-01T00:00:01Z", "2026-01-01T00:01:31Z"),
        ] {
            check(schedule, None, after, expected);
        }
    }

    #[test]
    fn the_last_time_is_found() {
        let schedule = Schedule::parse("* * * * *", None).unwrap();
        let found = |after, now| {
            schedule
                .last(time(after), time(now))
                .map(crate::clock::rfc3339)
        };
        assert_eq!(
            found("1980-01-01T00:00:00Z", "2026-01-01T00:00:30Z").as_deref(),
            Some("2026-01-01T00:00:00Z")
        );
        assert_eq!(found("2026-01-01T00:00:00Z", "2026-01-01T00:00:59Z"), None);
        let yearly = Schedule::parse("@yearly", None).unwrap();
        let last = yearly.last(time("1980-01-01T00:00:00Z"), time("2026-12-01T00:00:00Z"));
        assert_eq!(last, Some(time("2026-01-01T00:00:00Z")));
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, expected) in [
            ("* * * *", "expected exactly 5 fields, found 4: \"* * * *\""),
            ("60 * * * *", "60 \"60\" is no minute between 0 and 59"),
            (
                "* * 0 * *",
                "0 \"0\" is no day of the month between 1 and 31",
            ),
            ("5-1 * * * *", "5-1 \"5-1\" is no minute between 0 and 59"),
            ("*/0 * * * *", "*/0 \"*/0\" is no minute between 0 and 59"),
            ("@often", "unrecognized descriptor: \"@often\""),
        ] {
            assert_eq!(
                Schedule::parse(text, None).unwrap_err().to_string(),
                expected
            );
        }
        let zone = Schedule::parse("* * * * *", Some("Mars/Olympus")).unwrap_err();
        assert_eq!(zone.to_string(), "unknown time zone \"Mars/Olympus\"");
    }

    proptest! {
        #[test]
        fn times_lie_ahead_and_match(minute in 0..60_u32, hour in 0..24_u32, after in 0..4_000_000_000_u64) {
            let schedule = Schedule::parse(&format!("{minute} {hour} * * *"), None).unwrap();
            let after = UNIX_EPOCH + Duration::from_secs(after);
            let next = schedule.next(after).unwrap();
            prop_assert!(next > after && next <= after + Duration::from_secs(24 * 3600));
            let text = crate::clock::rfc3339(next);
            prop_assert_eq!(&text[11..], &format!("{hour:02}:{minute:02}:00Z"));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-0-9*/,a-z@ ?]{0,20}") {
            let _ = Schedule::parse(&text, None);
        }
    }
}
