//! What a plugin says to people, no longer than people read.
//!
//! An outcome may have megabytes, and what it says is kept for each unit, written into
//! the log and sent to the API server, which takes less.

use reeve_api::truncate;
use reeve_core::{Desired, Failure};
use reeve_engine::Fault;

/// What an operator reads of a call that a guest did not end, with the fields that may have
/// to be raised for it.
pub(crate) fn of_fault(fault: &Fault) -> String {
    let mut text = fault.to_string();
    cut(&mut text);
    let limits = fault.kind.limits();
    if !limits.is_empty() {
        let fields = limits.iter().map(|limit| format!("`spec.limits.{limit}`"));
        let fields: Vec<String> = fields.collect();
        text.push_str(&format!(" ({} of its Plugin)", fields.join(" or ")));
    }
    text
}

/// Cuts a text as conditions are cut, and gives back what is left over of it.
pub(super) fn cut(text: &mut String) {
    truncate(text);
    text.shrink_to_fit();
}

/// Cuts what an answer says to people.
pub(super) fn cut_remarks(desired: &mut Desired) {
    let conditions = desired.conditions.iter_mut();
    conditions.for_each(|condition| cut(&mut condition.message));
    let events = desired.events.iter_mut();
    events.for_each(|event| cut(&mut event.message));
}

/// Cuts what a failure says.
pub(super) fn cut_failure(mut failure: Failure) -> Failure {
    let (Failure::Retry(text) | Failure::Terminal(text) | Failure::NotReady(text)) = &mut failure;
    cut(text);
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_api::MAX_MESSAGE;

    #[test]
    fn texts_are_cut_between_characters() {
        for (text, expected) in [
            ("short".to_owned(), 5),
            ("x".repeat(MAX_MESSAGE), MAX_MESSAGE),
            ("x".repeat(MAX_MESSAGE + 1), MAX_MESSAGE + '…'.len_utf8()),
            (
                // The character at the limit has three bytes, of which one fits.
                format!("{}{}", "x".repeat(MAX_MESSAGE - 1), "€".repeat(100)),
                MAX_MESSAGE - 1 + '…'.len_utf8(),
            ),
        ] {
            let mut found = text.clone();
            cut(&mut found);
            assert_eq!(found.len(), expected);
            assert!(text.starts_with(found.trim_end_matches('…')));
            let failure = cut_failure(Failure::Terminal(text));
            assert_eq!(failure, Failure::Terminal(found));
        }
    }
}
