//! Times by the calendar.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::civil::Date;
use k8s_openapi::jiff::tz::TimeZone;

use super::NotASchedule;
use super::fields::{ANY, DAY, HOUR, MINUTE, MONTH, WEEKDAY};

/// How many years ahead a time is looked for.
const YEARS: i16 = 5;
const MINUTE_SECONDS: i64 = 60;

/// The minutes, hours, days and months of a schedule, as bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Calendar {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
}

impl Calendar {
    /// Reads five fields.
    pub(super) fn parse(text: &str) -> Result<Self, NotASchedule> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            let fields = fields.into_iter().map(str::to_owned).collect();
            return Err(NotASchedule::Fields(fields));
        };
        Ok(Calendar {
            minutes: MINUTE.bits(minutes)?,
            hours: HOUR.bits(hours)?,
            days: DAY.bits(days)?,
            months: MONTH.bits(months)?,
            weekdays: WEEKDAY.bits(weekdays)?,
        })
    }

    /// The first time after `after`. A time that a change of clocks leaves out does not
    /// come, and one that is repeated comes twice.
    pub(super) fn next(&self, after: SystemTime, zone: &TimeZone) -> Option<SystemTime> {
        if self.minutes == 0 || self.hours == 0 {
            return None;
        }
        let after = Timestamp::try_from(after).ok()?.as_second();
        let mut second = (after.div_euclid(MINUTE_SECONDS) + 1) * MINUTE_SECONDS;
        let begin = zone.to_datetime(Timestamp::from_second(second).ok()?);
        let last_year = begin.year().saturating_add(YEARS);
        loop {
            let time = Timestamp::from_second(second).ok()?;
            let there = zone.to_datetime(time);
            if there.year() > last_year {
                return None;
            }
            let to_midnight = |last: Date| {
                let midnight = last.tomorrow().ok()?.at(0, 0, 0, 0);
                let midnight = zone.to_timestamp(midnight).ok()?.as_second();
                // Where clocks are put back at midnight, there is one behind us, too.
                Some((midnight - second).max(MINUTE_SECONDS))
            };
            second += if !has(self.months, there.month()) {
                to_midnight(there.date().last_of_month())?
            } else if !self.has_day(there.date()) {
                to_midnight(there.date())?
            } else if !has(self.hours, there.hour()) {
                MINUTE_SECONDS * (60 - i64::from(there.minute()))
            } else if !has(self.minutes, there.minute()) {
                MINUTE_SECONDS
            } else {
                return Some(time.into());
            };
        }
    }

    /// A day has to match as a day of the month and as a weekday where one of these can be
    /// any, and otherwise as one of them.
    fn has_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        if (self.days | self.weekdays) & ANY == 0 {
            day || weekday
        } else {
            day && weekday
        }
    }

    /// The last time after `after` and not after `now`.
    pub(super) fn last(
        &self,
        after: SystemTime,
        now: SystemTime,
        zone: &TimeZone,
    ) -> Option<SystemTime> {
        // What was missed in years is not gone through one by one.
        const HOUR: u64 = 3600;
        for window in [HOUR, 24 * HOUR, 40 * 24 * HOUR, 400 * 24 * HOUR, u64::MAX] {
            let begin = now
                .checked_sub(Duration::from_secs(window))
                .unwrap_or(UNIX_EPOCH);
            let mut found = None;
            let mut from = after.max(begin);
            while let Some(next) = self.next(from, zone).filter(|next| *next <= now) {
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

fn has(bits: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| bits >> number & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn time(text: &str) -> SystemTime {
        crate::clock::parse(text).unwrap()
    }

    #[track_caller]
    fn check(schedule: &str, zone: &str, after: &str, expected: &str) {
        let schedule = Calendar::parse(schedule).unwrap();
        let zone = TimeZone::posix(zone).unwrap();
        let next = schedule.next(time(after), &zone).unwrap();
        assert_eq!(crate::clock::rfc3339(next), expected);
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
            // With a step, it is not any day.
            (
                "0 0 */15 * 5",
                "2026-01-02T00:00:00Z",
                "2026-01-09T00:00:00Z",
            ),
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
            ("0 * * * *", "2026-01-01T00:00:01Z", "2026-01-01T01:00:00Z"),
        ] {
            check(schedule, "UTC0", after, expected);
        }
    }

    #[test]
    fn days_that_do_not_come_are_not_found() {
        for (schedule, after) in [
            ("0 0 30 2 *", "2026-01-01T00:00:00Z"),
            ("0 0 29 2 *", "2096-03-01T00:00:00Z"),
            (", * * * *", "2026-01-01T00:00:00Z"),
            ("* * , * *", "2026-01-01T00:00:00Z"),
        ] {
            let schedule = Calendar::parse(schedule).unwrap();
            assert_eq!(schedule.next(time(after), &TimeZone::UTC), None);
        }
    }

    const NEW_YORK: &str = "EST5EDT,M3.2.0,M11.1.0";

    #[test]
    fn clocks_are_changed() {
        // Half past two is left out, and half past one comes twice.
        check(
            "30 2 * * *",
            NEW_YORK,
            "2026-03-08T05:00:00Z",
            "2026-03-09T06:30:00Z",
        );
        for (after, expected) in [
            ("2026-11-01T05:00:00Z", "2026-11-01T05:30:00Z"),
            ("2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"),
            ("2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"),
        ] {
            check("30 1 * * *", NEW_YORK, after, expected);
        }
    }

    #[test]
    fn the_last_time_is_found() {
        let schedule = Calendar::parse("* * * * *").unwrap();
        let found = |after, now| {
            schedule
                .last(time(after), time(now), &TimeZone::UTC)
                .map(crate::clock::rfc3339)
        };
        assert_eq!(
            found("1980-01-01T00:00:00Z", "2026-01-01T00:00:30Z").as_deref(),
            Some("2026-01-01T00:00:00Z")
        );
        assert_eq!(found("2026-01-01T00:00:00Z", "2026-01-01T00:00:59Z"), None);
        let yearly = Calendar::parse("0 0 1 1 *").unwrap();
        let (after, now) = (time("1980-01-01T00:00:00Z"), time("2026-12-01T00:00:00Z"));
        let last = yearly.last(after, now, &TimeZone::UTC);
        assert_eq!(last, Some(time("2026-01-01T00:00:00Z")));
    }

    /// Some numbers, or any.
    fn numbers(low: i8, high: i8) -> impl Strategy<Value = Option<BTreeSet<i8>>> {
        proptest::option::of(proptest::collection::btree_set(low..=high, 1..5))
    }

    fn written(numbers: Option<&BTreeSet<i8>>) -> String {
        let Some(numbers) = numbers else {
            return "*".to_owned();
        };
        let numbers: Vec<String> = numbers.iter().map(i8::to_string).collect();
        numbers.join(",")
    }

    proptest! {
        /// Minute by minute, the first that matches is what is found.
        #[test]
        fn the_next_time_is_the_first_that_matches(
            minutes in numbers(0, 59),
            hours in numbers(0, 23),
            days in numbers(1, 31),
            months in numbers(1, 12),
            weekdays in numbers(0, 6),
            zone in prop_oneof![
                Just("UTC0"),
                Just(NEW_YORK),
                Just("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"),
                Just("<-03>3<-02>,M10.3.0/0,M2.3.0/0"),
            ],
            month in 0..24_i64,
            seconds in 0..5_000_000_i64,
        ) {
            const DAYS: i64 = 3;
            let begin = 1_767_225_600 + month * 30 * 86_400 + seconds;
            let zone = TimeZone::posix(zone).unwrap();
            let text = [&minutes, &hours, &days, &months, &weekdays]
                .map(|numbers| written(numbers.as_ref()))
                .join(" ");
            let found = Calendar::parse(&text).unwrap()
                .next(Timestamp::from_second(begin).unwrap().into(), &zone);
            let has = |numbers: &Option<BTreeSet<i8>>, number: i8| {
                numbers.as_ref().is_none_or(|numbers| numbers.contains(&number))
            };
            let first = (begin + 1..begin + DAYS * 86_400).filter(|second| second % 60 == 0);
            let first = first.map(|second| Timestamp::from_second(second).unwrap());
            let expected = first.into_iter().find(|time| {
                let there = zone.to_datetime(*time);
                let day = has(&days, there.day());
                let weekday = has(&weekdays, there.weekday().to_sunday_zero_offset());
                let either = days.is_some() && weekdays.is_some();
                has(&minutes, there.minute())
                    && has(&hours, there.hour())
                    && has(&months, there.month())
                    && if either { day || weekday } else { day && weekday }
            });
            let limit = SystemTime::from(Timestamp::from_second(begin + DAYS * 86_400).unwrap());
            prop_assert_eq!(
                found.filter(|found| *found < limit),
                expected.map(SystemTime::from),
                "{}", text
            );
        }
    }
}
