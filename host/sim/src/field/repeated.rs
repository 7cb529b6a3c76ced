//! Complaints that are made many times and show a large value each time.

use serde_json::Value;

use super::{ErrorType, Errors, FieldError, Path, printed};

/// How much of one value is printed for one complaint of an object, in bytes. A small
/// request must not become a gigabyte of answers that all show the same list.
const SHOWN_MAX: usize = 1 << 20;

/// A complaint that may be made about one value over and over, and shows it each time.
/// The server has no limit to that; here it ends, after far more than anybody reads.
#[derive(Debug)]
pub(crate) struct Repeated<'p> {
    path: Path<'p>,
    value: &'p Value,
    printed: Option<String>,
    left: usize,
}

impl<'p> Repeated<'p> {
    /// A complaint about the value at `path`, which was not made yet.
    pub(crate) fn of(path: Path<'p>, value: &'p Value) -> Self {
        Repeated {
            path,
            value,
            printed: None,
            left: SHOWN_MAX,
        }
    }

    /// Whether there is room for it once more.
    pub(crate) fn has_room(&self) -> bool {
        self.left > 0
    }

    /// Says once more that the value is malformed, if there is room.
    pub(crate) fn push(&mut self, detail: impl Into<String>, errors: &mut Errors) {
        if !self.has_room() {
            return;
        }
        let printed = self.printed.get_or_insert_with(|| printed(self.value));
        self.left = self.left.saturating_sub(printed.len().max(1));
        let value = Some(printed.clone());
        errors.push(FieldError::new(
            ErrorType::Invalid,
            &self.path,
            value,
            detail,
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_said_often_ends() {
        let long = json!("x".repeat(SHOWN_MAX / 4));
        let mut errors = Errors::new();
        let mut complaint = Repeated::of(Path::new("a"), &long);
        for _ in 0..100 {
            complaint.push("no", &mut errors);
        }
        assert_eq!(errors.len(), 4);
        let first = errors.iter().next().cloned();
        assert_eq!(
            first,
            Some(FieldError::invalid(&Path::new("a"), &long, "no"))
        );
    }
}
