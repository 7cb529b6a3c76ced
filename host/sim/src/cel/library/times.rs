//! Functions of points in time and of durations.

use std::ops::RangeInclusive;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::civil::DateTime;
use k8s_openapi::jiff::tz::Offset;
use kube_cel::cel::{ResolveResult, Value};

use super::{DURATION, TIMESTAMP, evaluated, failed, unconverted};
use crate::duration;
use crate::field::quoted;

/// The years 1 to 9999, in seconds.
const TIMES: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// What these functions make of their arguments; none of others.
pub(super) fn own(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    let text = |text: String| Value::String(Arc::new(text));
    let made = match (name, arguments) {
        ("timestamp", [value @ Value::Timestamp(_)])
        | ("duration", [value @ Value::Duration(_)]) => value.clone(),
        ("timestamp", [Value::Int(seconds)]) => {
            let time = Timestamp::from_second(*seconds);
            return Some(match time.ok().filter(|_| TIMES.contains(seconds)) {
                Some(time) => evaluated(name, &[text(time.to_string())], false),
                None => Err(failed(name, "timestamp overflow")),
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
            match there.map(|there| field(name, there)) {
                Ok(Some(number)) => Value::Int(number),
                Ok(None) => return None,
                Err(why) => return Some(Err(failed(name, why))),
            }
        }
        _ => return None,
    };
    Some(Ok(made))
}

/// The time on a clock in a zone: UTC, or an offset of hours and minutes. Zones with other
/// names are in no table here.
fn there(seconds: i64, nanoseconds: i32, zone: &str) -> Result<DateTime, String> {
    let offset = match zone.split_once(':') {
        Some((hours, minutes)) => {
            let number = |text: &str| {
                let parsed = text.parse::<i32>();
                let why = |_| format!("strconv.Atoi: parsing {}: invalid syntax", quoted(text));
                parsed.map_err(why)
            };
            let (hours, minutes) = (number(hours)?, number(minutes)?);
            let minutes = if zone.starts_with('-') {
                -minutes
            } else {
                minutes
            };
            let seconds = hours.checked_mul(60).and_then(|h| h.checked_add(minutes));
            let seconds = seconds.and_then(|minutes| minutes.checked_mul(60));
            let offset = seconds.and_then(|seconds| Offset::from_seconds(seconds).ok());
            offset.ok_or_else(|| unknown(zone))?
        }
        None if matches!(zone, "" | "UTC") => Offset::UTC,
        None => return Err(unknown(zone)),
    };
    let time = Timestamp::new(seconds, nanoseconds).map_err(|error| error.to_string())?;
    Ok(offset.to_datetime(time))
}

fn unknown(zone: &str) -> String {
    format!("unknown time zone {zone}")
}

fn field(name: &str, time: DateTime) -> Option<i64> {
    Some(match name {
        "getFullYear" => i64::from(time.year()),
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
    fn zones_are_offsets() {
        let hour = |zone: &str| there(0, 0, zone).map(|there| there.to_string());
        assert_eq!(hour("UTC").as_deref(), Ok("1970-01-01T00:00:00"));
        assert_eq!(hour("-05:30").as_deref(), Ok("1969-12-31T18:30:00"));
        assert_eq!(hour("02:00").as_deref(), Ok("1970-01-01T02:00:00"));
        for zone in ["America/New_York", "99999999:00"] {
            assert_eq!(hour(zone), Err(unknown(zone)));
        }
        for (zone, part) in [("a:b", "a"), ("1:b", "b"), ("1:2:3", "2:3")] {
            let why = format!("strconv.Atoi: parsing \"{part}\": invalid syntax");
            assert_eq!(hour(zone), Err(why));
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
