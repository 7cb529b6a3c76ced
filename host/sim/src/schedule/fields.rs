//! The fields of a calendar: numbers, names, ranges and steps.

use super::NotASchedule;

/// Set besides the numbers where a field asks for any.
pub(super) const ANY: u64 = 1 << 63;

/// What numbers a field can have, and which of them have names.
pub(super) struct Field {
    low: u64,
    high: u64,
    /// The first is that of the lowest number.
    names: &'static [&'static str],
}

pub(super) const MINUTE: Field = Field::numbers(0, 59);
pub(super) const HOUR: Field = Field::numbers(0, 23);
pub(super) const DAY: Field = Field::numbers(1, 31);
pub(super) const MONTH: Field = Field {
    low: 1,
    high: 12,
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
};
pub(super) const WEEKDAY: Field = Field {
    low: 0,
    high: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

impl Field {
    const fn numbers(low: u64, high: u64) -> Self {
        Field {
            low,
            high,
            names: &[],
        }
    }

    /// The numbers of a field, as bits. Between commas there may be nothing, too.
    pub(super) fn bits(&self, text: &str) -> Result<u64, NotASchedule> {
        let parts = text.split(',').filter(|part| !part.is_empty());
        let mut bits = 0;
        for part in parts {
            bits |= self.part(part)?;
        }
        Ok(bits)
    }

    /// Reads `*`, `5`, `1-5`, each with `/2` or without.
    fn part(&self, part: &str) -> Result<u64, NotASchedule> {
        let owned = || part.to_owned();
        let mut parts = part.split('/');
        let range = parts.next().unwrap_or_default();
        let mut ends = range.split('-');
        let begin = ends.next().unwrap_or_default();
        let end = ends.next();
        let is_any = matches!(begin, "*" | "?");
        let (first, mut last) = if is_any {
            // What comes after is not looked at.
            (self.low, self.high)
        } else {
            let first = self.number(begin)?;
            let last = match (end, ends.next()) {
                (None, _) => first,
                (Some(end), None) => self.number(end)?,
                (Some(_), Some(_)) => return Err(NotASchedule::Hyphens(owned())),
            };
            (first, last)
        };
        let step = match (parts.next(), parts.next()) {
            (None, _) => 1,
            (Some(step), None) => {
                // `5/10` goes on to the end.
                if end.is_none() {
                    last = self.high;
                }
                number(step)?
            }
            (Some(_), Some(_)) => return Err(NotASchedule::Slashes(owned())),
        };
        let (low, high, part) = (self.low, self.high, owned());
        if first < low {
            return Err(NotASchedule::Below { first, low, part });
        }
        if last > high {
            return Err(NotASchedule::Above { last, high, part });
        }
        if first > last {
            return Err(NotASchedule::Backwards { first, last, part });
        }
        if step == 0 {
            return Err(NotASchedule::Step(part));
        }
        let mut bits = if is_any && step == 1 { ANY } else { 0 };
        let mut number = first;
        while number <= last {
            bits |= 1 << number;
            number = number.saturating_add(step);
        }
        Ok(bits)
    }

    /// Reads a number or the name of one.
    fn number(&self, text: &str) -> Result<u64, NotASchedule> {
        let named = (self.low..)
            .zip(self.names)
            .find(|(_, name)| name.eq_ignore_ascii_case(text));
        match named {
            Some((value, _)) => Ok(value),
            None => number(text),
        }
    }
}

fn number(text: &str) -> Result<u64, NotASchedule> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotASchedule::Number(text.to_owned()));
    }
    let number: i64 = text
        .parse()
        .map_err(|_| NotASchedule::Large(text.to_owned()))?;
    u64::try_from(number).map_err(|_| NotASchedule::Negative {
        number,
        text: text.to_owned(),
    })
}
