//! Telling people what in their input could not be used.

use std::fmt::Display;

use crate::{Condition, Event, Outcome};

/// The API server refuses an event with a longer message, in bytes.
const EVENT_LIMIT: usize = 1024;

/// What of the input a plugin could not use. It goes on without, and says so: one
/// bad label should not cost a tenant the rest.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// let mut problems = Problems::new();
/// problems.add("label a.com/on=yes: not a boolean; set it to true or false");
/// let outcome = Outcome::nothing().problems("LabelsUsable", "UnusableLabels", &problems);
/// assert_eq!(outcome.conditions()[0].status, Some(false));
/// assert!(outcome.events()[0].warning);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    heading: String,
    advice: String,
    items: Vec<String>,
}

/// A label that does not hold what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("label {label}={value}: not a boolean; set it to true or false, or remove it")]
pub struct BadLabel {
    /// Key of the label.
    pub label: String,
    /// What it holds.
    pub value: String,
}

impl Problems {
    /// None so far. Each is to say what is wrong, where, and what to do about it.
    pub fn new() -> Self {
        Self::default()
    }

    /// None so far; what they have in common is said once, before and after them.
    pub fn about(heading: &str, advice: &str) -> Self {
        Self {
            heading: format!("{heading}: "),
            advice: format!(". {advice}"),
            items: Vec::new(),
        }
    }

    /// None so far; what to do about any of them is said once, after them.
    pub fn advising(advice: &str) -> Self {
        Self {
            advice: format!(". {advice}"),
            ..Self::default()
        }
    }

    /// One more.
    pub fn add(&mut self, problem: impl Display) {
        self.items.push(problem.to_string());
    }

    /// The value, or none and one more problem.
    pub fn take<T, E: Display>(&mut self, value: Result<T, E>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(problem) => {
                self.add(problem);
                None
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// All of them in one line.
    pub fn text(&self) -> String {
        self.with(self.items.len(), "")
    }

    /// As many as have room in this many bytes; the others are counted.
    pub fn text_within(&self, limit: usize) -> String {
        let all = self.text();
        if all.len() <= limit {
            return all;
        }
        for told in (1..self.items.len()).rev() {
            let text = self.with(told, &format!("; {} more", self.items.len() - told));
            if text.len() <= limit {
                return text;
            }
        }
        let end = (0..=limit.saturating_sub('…'.len_utf8()))
            .rev()
            .find(|&end| all.is_char_boundary(end));
        format!("{}…", &all[..end.unwrap_or(0)])
    }

    fn with(&self, told: usize, rest: &str) -> String {
        let items = self.items.get(..told).unwrap_or(&self.items);
        let mut text = self.heading.clone();
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                text.push_str("; ");
            }
            text.push_str(item);
        }
        text.push_str(rest);
        text.push_str(&self.advice);
        text
    }
}

impl Outcome {
    /// Says what could not be used, if anything: all of it in a condition of type
    /// `kind` that does not hold, and as much as an event may hold in one warning.
    pub fn problems(self, kind: &str, reason: &str, problems: &Problems) -> Self {
        if problems.is_empty() {
            return self;
        }
        self.condition(Condition::fails(kind, reason, problems.text()))
            .event(Event::warning(reason, problems.text_within(EVENT_LIMIT)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(count: usize) -> Problems {
        let mut problems = Problems::about("Odd labels", "Remove them.");
        for index in 0..count {
            problems.add(format!("label number {index}"));
        }
        problems
    }

    #[test]
    fn what_is_common_is_said_once() {
        let mut advising = Problems::advising("Mend it.");
        advising.add("one");
        advising.add("two");
        assert_eq!(advising.text(), "one; two. Mend it.");
        assert_eq!(
            many(2).text(),
            "Odd labels: label number 0; label number 1. Remove them."
        );
        let mut plain = Problems::new();
        plain.add("one");
        plain.add("two");
        assert_eq!(plain.text(), "one; two");
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let problems = many(4);
        let all = problems.text();
        assert_eq!(problems.text_within(all.len()), all);
        assert_eq!(
            problems.text_within(all.len() - 1),
            "Odd labels: label number 0; label number 1; label number 2; 1 more. Remove them."
        );
        assert_eq!(
            problems.text_within(60),
            "Odd labels: label number 0; 3 more. Remove them."
        );
    }

    #[test]
    fn no_text_is_longer_than_its_limit_nor_ends_within_a_character() {
        let mut problems = Problems::new();
        problems.add("ä".repeat(600));
        problems.add("x");
        for limit in 3..1300 {
            assert!(problems.text_within(limit).len() <= limit, "{limit}");
        }
        assert!(problems.text_within(100).ends_with("ä…"));
    }

    #[test]
    fn an_outcome_tells_problems_once_in_a_condition_and_an_event() {
        let outcome = Outcome::new().problems("Usable", "Unusable", &Problems::new());
        assert!(outcome.conditions().is_empty() && outcome.events().is_empty());

        let problems = many(100);
        let outcome = Outcome::new().problems("Usable", "Unusable", &problems);
        assert_eq!(
            outcome.conditions(),
            [Condition::fails("Usable", "Unusable", problems.text())]
        );
        assert_eq!(outcome.events().len(), 1);
        assert!(outcome.events()[0].message.len() <= EVENT_LIMIT);
        assert!(outcome.events()[0].message.contains(" more. Remove"));
    }

    #[test]
    fn taking_a_value_leaves_the_problem() {
        let mut problems = Problems::new();
        assert_eq!(problems.take(Ok::<_, &str>(1)), Some(1));
        assert_eq!(problems.take(Err::<u8, _>("why")), None);
        assert_eq!(problems.text(), "why");
    }
}
