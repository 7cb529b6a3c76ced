//! Times as the server reads and writes them.

use crate::field::quoted;

/// How a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeForm {
    /// RFC 3339; a fraction is read and dropped.
    Seconds,
    /// RFC 3339 with exactly six digits behind the point.
    Micros,
}

impl TimeForm {
    /// The layout as Go writes it down.
    fn layout(self) -> &'static str {
        match self {
            TimeForm::Seconds => "2006-01-02T15:04:05Z07:00",
            TimeForm::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }

    /// The time in UTC, in this form.
    ///
    /// # Errors
    ///
    /// What cannot be read, in the server's words.
    pub(super) fn read(self, text: &str) -> Result<String, String> {
        let mut reader = Reader { rest: text };
        let fraction = self.scan(&mut reader).map_err(|refused| match refused {
            Refused::Shape(rest, element) => format!(
                "parsing time {} as {:?}: cannot parse {} as {element:?}",
                quoted(text),
                self.layout(),
                quoted(&rest)
            ),
            Refused::Range(what) => {
                format!("parsing time {}: {what} out of range", quoted(text))
            }
        })?;
        let seconds = match text.parse() {
            Ok(time) => crate::clock::seconds_of(time),
            Err(_) => last_day(text)
                .ok_or_else(|| format!("parsing time {}: day out of range", quoted(text)))?,
        };
        Ok(match self {
            TimeForm::Seconds => seconds,
            TimeForm::Micros => format!("{}.{fraction:0<6}Z", seconds.trim_end_matches('Z')),
        })
    }

    /// Goes through the text; the answer is the digits of the fraction.
    fn scan(self, reader: &mut Reader<'_>) -> Result<String, Refused> {
        reader.digits(4, "2006")?;
        reader.literal("-")?;
        reader.number("01", 1..=12, "month")?;
        reader.literal("-")?;
        reader.number("02", 1..=31, "day")?;
        reader.literal("T")?;
        reader.number("15", 0..=23, "hour")?;
        reader.literal(":")?;
        reader.number("04", 0..=59, "minute")?;
        reader.literal(":")?;
        reader.number("05", 0..=59, "second")?;
        let fraction = match self {
            TimeForm::Seconds => reader.any_fraction(),
            TimeForm::Micros => reader.micros()?,
        };
        reader.zone()?;
        if reader.rest.is_empty() {
            Ok(fraction)
        } else {
            Err(Refused::Shape(reader.rest.to_owned(), ""))
        }
    }
}

/// A time in UTC in the last hours of the year 9999, which the library counts no more, in
/// whole seconds.
fn last_day(text: &str) -> Option<String> {
    let seconds = text.get(..19)?;
    let last = seconds.starts_with("9999-12-30T") || seconds.starts_with("9999-12-31T");
    (last && text.ends_with('Z')).then(|| format!("{seconds}Z"))
}

enum Refused {
    /// What was left of the text, and the element of the layout that it is not.
    Shape(String, &'static str),
    Range(&'static str),
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn refuse<T>(&self, element: &'static str) -> Result<T, Refused> {
        Err(Refused::Shape(self.rest.to_owned(), element))
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn leading_digits(&self) -> usize {
        self.rest.bytes().take_while(u8::is_ascii_digit).count()
    }

    fn digits(&mut self, count: usize, element: &'static str) -> Result<&'a str, Refused> {
        if self.leading_digits() < count {
            return self.refuse(element);
        }
        Ok(self.take(count))
    }

    fn number(
        &mut self,
        element: &'static str,
        range: std::ops::RangeInclusive<u8>,
        what: &'static str,
    ) -> Result<(), Refused> {
        let digits = self.digits(2, element)?;
        match digits.parse() {
            Ok(number) if range.contains(&number) => Ok(()),
            _ => Err(Refused::Range(what)),
        }
    }

    fn literal(&mut self, text: &'static str) -> Result<(), Refused> {
        if !self.rest.starts_with(text) {
            return self.refuse(text);
        }
        self.take(text.len());
        Ok(())
    }

    fn any_fraction(&mut self) -> String {
        let Some(behind) = self.rest.strip_prefix(['.', ',']) else {
            return String::new();
        };
        let count = behind.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return String::new();
        }
        self.take(count + 1)[1..].to_owned()
    }

    fn micros(&mut self) -> Result<String, Refused> {
        const DIGITS: usize = 6;
        let behind = self.rest.strip_prefix(['.', ',']).unwrap_or_default();
        if behind.bytes().take_while(u8::is_ascii_digit).count() < DIGITS {
            return self.refuse(".000000");
        }
        Ok(self.take(DIGITS + 1)[1..].to_owned())
    }

    fn zone(&mut self) -> Result<(), Refused> {
        if self.rest.starts_with('Z') {
            self.take(1);
            return Ok(());
        }
        let bytes = self.rest.as_bytes();
        let is = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let numeric = matches!(bytes.first(), Some(b'+' | b'-'))
            && [1, 2, 4, 5].into_iter().all(is)
            && bytes.get(3) == Some(&b':');
        if !numeric {
            return self.refuse("Z07:00");
        }
        self.take(6);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_the_server_reads_them() {
        let seconds = |text: &str| TimeForm::Seconds.read(text);
        let micros = |text: &str| TimeForm::Micros.read(text);
        let ok = |text: &str| Ok(text.to_owned());
        let no = |text: &str| Err(text.to_owned());
        assert_eq!(
            seconds("2001-01-01T00:00:00.9Z"),
            ok("2001-01-01T00:00:00Z")
        );
        assert_eq!(
            seconds("2001-01-01T02:00:00+02:00"),
            ok("2001-01-01T00:00:00Z")
        );
        assert_eq!(
            micros("2001-01-01T00:00:00.123456Z"),
            ok("2001-01-01T00:00:00.123456Z")
        );
        assert_eq!(
            micros("2001-01-01T00:00:00.5Z"),
            no(
                r#"parsing time "2001-01-01T00:00:00.5Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse ".5Z" as ".000000""#
            )
        );
        assert_eq!(
            seconds("yesterday"),
            no(
                r#"parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#
            )
        );
        assert_eq!(
            seconds("2001-01-01 00:00:00"),
            no(
                r#"parsing time "2001-01-01 00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse " 00:00:00" as "T""#
            )
        );
        assert_eq!(
            seconds("2001-13-01T00:00:00Z"),
            no(r#"parsing time "2001-13-01T00:00:00Z": month out of range"#)
        );
    }
}
