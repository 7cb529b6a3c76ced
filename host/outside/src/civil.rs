//! The time as signatures write it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment in the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    year: i64,
    month: u32,
    day: u32,
    hour: u64,
    minute: u64,
    second: u64,
    weekday: usize,
}

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

impl Civil {
    /// The moment; times before 1970 count as its first second.
    pub(crate) fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
        // Years that begin in March, in eras of 400 of them: leap days then stand at
        // the end of a year, and months have regular lengths.
        let from_march = i64::try_from(days).unwrap_or(0) + 719_468;
        let (era, of_era) = (from_march / 146_097, from_march % 146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let shifted = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 {
            shifted + 3
        } else {
            shifted - 9
        };
        Self {
            year: year + era * 400 + i64::from(month <= 2),
            month: u32::try_from(month).unwrap_or(1),
            day: u32::try_from(day).unwrap_or(1),
            hour: seconds / 3_600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            weekday: usize::try_from(days % 7).unwrap_or(0),
        }
    }

    /// `Fri, 24 May 2013 00:00:00 GMT`.
    pub(crate) fn http_date(&self) -> String {
        let weekday = WEEKDAYS.get(self.weekday).unwrap_or(&"Thu");
        let month = usize::try_from(self.month).unwrap_or(1) - 1;
        let month = MONTHS.get(month).unwrap_or(&"Jan");
        format!(
            "{weekday}, {:02} {month} {:04} {:02}:{:02}:{:02} GMT",
            self.day, self.year, self.hour, self.minute, self.second
        )
    }

    /// `20130524`.
    pub(crate) fn basic_date(&self) -> String {
        format!("{:04}{:02}{:02}", self.year, self.month, self.day)
    }

    /// `20130524T000000Z`.
    pub(crate) fn basic_time(&self) -> String {
        format!(
            "{}T{:02}{:02}{:02}Z",
            self.basic_date(),
            self.hour,
            self.minute,
            self.second
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_found_in_the_calendar() {
        for (seconds, http, basic) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT", "19700101T000000Z"),
            (
                951_782_400,
                "Tue, 29 Feb 2000 00:00:00 GMT",
                "20000229T000000Z",
            ),
            (
                1_369_353_600,
                "Fri, 24 May 2013 00:00:00 GMT",
                "20130524T000000Z",
            ),
            (
                1_440_938_160,
                "Sun, 30 Aug 2015 12:36:00 GMT",
                "20150830T123600Z",
            ),
            (
                4_107_542_399,
                "Sun, 28 Feb 2100 23:59:59 GMT",
                "21000228T235959Z",
            ),
            (
                4_107_542_400,
                "Mon, 01 Mar 2100 00:00:00 GMT",
                "21000301T000000Z",
            ),
        ] {
            let civil = Civil::of(UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!(civil.http_date(), http);
            assert_eq!(civil.basic_time(), basic);
        }
    }
}
