//! Functions of points in time and of durations.

use std::num::{IntErrorKind, ParseIntError};
use std::ops::RangeInclusive;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::civil::DateTime;
use k8s_openapi::jiff::tz::Offset;
use kube_cel::cel::{ResolveResult, Value};

use super::{DURATION, TIMESTAMP, evaluated, failed, unconverted};
use crate::duration;
use crate::field::quoted;
use crate::schedule;

/// The years 1 to 9999, in seconds.
const TIMES: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// What these functions make of their arguments; none of others.
pub(super) fn own(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    let text = |text: String| Value::String(Arc::new(text));
    let made = match (name, arguments) {
        ("timestamp", [value @ Value::Timestamp(_)])
        | ("duration", [value @ Value::Duration(_)]) => value.clone(),
        ("timestamp", [Value::Int(seconds)]) => {
            return Some(if TIMES.contains(seconds) {
                evaluated(name, &[text(Clock::at(*seconds, 0).written())], false)
            } else {
                Err(failed(name, "timestamp overflow"))
            });
        }
        ("timestamp", [Value::String(_)]) => {
            return Some(match evaluated(name, arguments, false) {
                Ok(Value::Timestamp(time)) if !TIMES.contains(&time.timestamp()) => {
                    Err(failed(name, "timestamp overflow"))
                }
                Ok(time) => Ok(time),
                Err(_) => Err(unconverted(name, "string", TIMESTAMP)),
            });
        }
        // The library declares it, and has none for any number.
        ("duration", [Value::Int(_)]) => {
            return Some(Err(unconverted(name, "int", DURATION)));
        }
        ("duration", [Value::String(written)]) => {
            return Some(match duration::parse(written) {
                Ok(nanoseconds) => evaluated(name, &[text(format!("{nanoseconds}ns"))], false),
                Err(_) => Err(unconverted(name, "string", DURATION)),
            });
        }
        ("int", [Value::Timestamp(time)]) => Value::Int(time.timestamp()),
        ("int", [Value::Duration(duration)]) => match duration.num_nanoseconds() {
            Some(nanoseconds) => Value::Int(nanoseconds),
            None => return Some(Err(failed(name, "integer overflow"))),
        },
        ("string", [Value::Timestamp(time)]) => text(in_go(&time.to_rfc3339())),
        ("string", [Value::Duration(duration)]) => {
            let nanoseconds = duration.num_nanoseconds().unwrap_or(i64::MAX);
            // Whole seconds and the rest for itself, as Go does it.
            #[expect(clippy::cast_precision_loss, reason = "so does Go")]
            let seconds = (nanoseconds / 1_000_000_000) as f64
                + (nanoseconds % 1_000_000_000) as f64 / 1_000_000_000.0;
            text(format!("{seconds}s"))
        }
        (_, [Value::Duration(duration)]) => Value::Int(match name {
            "getHours" => duration.num_hours(),
            "getMinutes" => duration.num_minutes(),
            "getSeconds" => duration.num_seconds(),
            "getMilliseconds" => duration.num_milliseconds(),
            _ => return None,
        }),
        (_, [Value::Timestamp(time), zone @ ..]) if name.starts_with("get") => {
            let zone = match zone {
                [] => "UTC",
                [Value::String(zone)] => zone.as_str(),
                _ => return None,
            };
            let nanoseconds = i32::try_from(time.timestamp_subsec_nanos()).unwrap_or(0);
            let there = there(time.timestamp(), nanoseconds, zone);
            match there.map(|there| there.field(name)) {
                Ok(Some(number)) => Value::Int(number),
                Ok(None) => return None,
                Err(why) => return Some(Err(failed(name, why))),
            }
        }
        _ => return None,
    };
    Some(Ok(made))
}

/// What a clock shows. Its years go on where those of the time that it is made of end:
/// zones are far from each other in Go, and the last day of year 9999 is one as well.
#[derive(Debug)]
struct Clock {
    /// The time, in the years from 2000 to 2399.
    time: DateTime,
    /// How many years it is from there: the calendar is the same again after 400.
    years: i64,
}

impl Clock {
    /// What it shows so many seconds after the start of 1970.
    fn at(seconds: i64, nanoseconds: i32) -> Self {
        // The start of the year 2000, and 400 years.
        const START: i64 = 946_684_800;
        const YEARS: i64 = 146_097 * 86_400;
        let since = seconds.saturating_sub(START);
        let time = Timestamp::new(START + since.rem_euclid(YEARS), nanoseconds);
        Clock {
            time: Offset::UTC.to_datetime(time.unwrap_or_default()),
            years: since.div_euclid(YEARS) * 400,
        }
    }

    fn year(&self) -> i64 {
        i64::from(self.time.year()) + self.years
    }

    /// The time as it is written, to seconds.
    fn written(&self) -> String {
        format!(
            "{:04}-{}Z",
            self.year(),
            self.time.strftime("%m-%dT%H:%M:%S")
        )
    }

    fn field(&self, name: &str) -> Option<i64> {
        let time = self.time;
        Some(match name {
            "getFullYear" => self.year(),
            "getMonth" => i64::from(time.month()) - 1,
            "getDayOfYear" => i64::from(time.day_of_year()) - 1,
            "getDayOfMonth" => i64::from(time.day()) - 1,
            "getDate" => i64::from(time.day()),
            "getDayOfWeek" => i64::from(time.weekday().to_sunday_zero_offset()),
            "getHours" => i64::from(time.hour()),
            "getMinutes" => i64::from(time.minute()),
            "getSeconds" => i64::from(time.second()),
            "getMilliseconds" => i64::from(time.subsec_nanosecond()) / 1_000_000,
            _ => return None,
        })
    }
}

/// The time on a clock in a zone: one with a name, or an offset of hours and minutes.
fn there(seconds: i64, nanoseconds: i32, zone: &str) -> Result<Clock, String> {
    let offset = match zone.split_once(':') {
        Some((hours, minutes)) => {
            let (hours, minutes) = (number(hours)?, number(minutes)?);
            let minutes = if zone.starts_with('-') {
                minutes.wrapping_neg()
            } else {
                minutes
            };
            // Go looks at no limits here, and counts in nanoseconds on its way.
            let minutes = hours.wrapping_mul(60).wrapping_add(minutes);
            minutes.wrapping_mul(60_000_000_000) / 1_000_000_000
        }
        None => {
            let zone = schedule::zone(zone).map_err(|why| why.to_string())?;
            // The last day of the last year is beyond the last moment that jiff knows.
            let end = match seconds {
                ..0 => Timestamp::MIN,
                0.. => Timestamp::MAX,
            };
            let time = Timestamp::new(seconds, nanoseconds).unwrap_or(end);
            i64::from(zone.to_offset(time).seconds())
        }
    };
    Ok(Clock::at(seconds.saturating_add(offset), nanoseconds))
}

/// The number that a part of a zone is.
fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.Atoi: parsing {}: {why}", quoted(text))
    })
}

/// A time as Go writes it: `Z` without an offset, and no zeros behind a fraction.
fn in_go(time: &str) -> String {
    let at = time.len().saturating_sub("+00:00".len());
    let (time, offset) = time.split_at_checked(at).unwrap_or((time, ""));
    let time = match time.split_once('.') {
        Some((whole, fraction)) => match fraction.trim_end_matches('0') {
            "" => whole.to_owned(),
            fraction => format!("{whole}.{fraction}"),
        },
        None => time.to_owned(),
    };
    let offset = if offset == "+00:00" { "Z" } else { offset };
    time + offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_offsets_or_have_names() {
        let hour = |zone: &str| there(0, 0, zone).map(|there| there.written());
        for (zone, time) in [
            ("UTC", "1970-01-01T00:00:00Z"),
            ("America/New_York", "1969-12-31T19:00:00Z"),
            ("-05:30", "1969-12-31T18:30:00Z"),
            ("02:00", "1970-01-01T02:00:00Z"),
            ("24:00", "1970-01-02T00:00:00Z"),
            ("-1:-2147483648", "1961-03-09T04:06:05Z"),
            ("99999999:00", "1686-11-11T23:28:46Z"),
            ("153722867:16", "1969-12-31T23:59:09Z"),
            ("-1:-9223372036854775808", "1969-12-31T23:00:00Z"),
            (
                "-9223372036854775808:9223372036854775807",
                "1970-01-01T00:01:00Z",
            ),
        ] {
            assert_eq!(hour(zone).as_deref(), Ok(time), "{zone}");
        }
        let unknown = "unknown time zone america/new_york".to_owned();
        assert_eq!(hour("america/new_york"), Err(unknown));
        for (zone, part) in [("a:b", "a"), ("1:b", "b"), ("1:2:3", "2:3"), (":1", "")] {
            let why = format!("strconv.Atoi: parsing \"{part}\": invalid syntax");
            assert_eq!(hour(zone), Err(why));
        }
        for (zone, part) in [
            ("9223372036854775808:0", "9223372036854775808"),
            ("1:-9223372036854775809", "-9223372036854775809"),
        ] {
            let why = format!("strconv.Atoi: parsing \"{part}\": value out of range");
            assert_eq!(hour(zone), Err(why));
        }
    }

    #[test]
    fn clocks_go_on_beyond_all_years() {
        for (seconds, zone, time, weekday) in [
            (*TIMES.end(), "UTC", "9999-12-31T23:59:59Z", 5),
            (*TIMES.end(), "+01:00", "10000-01-01T00:59:59Z", 6),
            (*TIMES.start(), "UTC", "0001-01-01T00:00:00Z", 1),
            (*TIMES.start(), "-01:00", "0000-12-31T23:00:00Z", 0),
            (951_782_400, "UTC", "2000-02-29T00:00:00Z", 2),
            (946_684_799, "UTC", "1999-12-31T23:59:59Z", 5),
        ] {
            let clock = there(seconds, 0, zone).unwrap();
            assert_eq!(clock.written(), time);
            assert_eq!(clock.field("getDayOfWeek"), Some(weekday), "{time}");
        }
    }

    #[test]
    fn times_are_written_as_in_go() {
        for (time, expected) in [
            ("2020-01-01T00:00:00+00:00", "2020-01-01T00:00:00Z"),
            (
                "2020-01-01T00:00:00.500+02:00",
                "2020-01-01T00:00:00.5+02:00",
            ),
        ] {
            assert_eq!(in_go(time), expected);
        }
    }
}
