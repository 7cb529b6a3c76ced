//! What a write of the status of a Job may say. A Job can be run by another controller
//! than that of the cluster: what clients rely on is held against such a one, too.
//!
//! As in the real server, what a write leaves as it was is not looked at: the spec may
//! have changed since.

use std::collections::BTreeSet;

use serde_json::Value;

use super::edit::{flag, integer, items, present, text};
use super::meta::validate_nonnegative;
use crate::field::{Errors, FieldError, Path};

const STATUS: Path<'static> = Path::new("status");

/// A Job as its status says that it is.
struct State<'a> {
    spec: &'a Value,
    status: &'a Value,
}

impl<'a> State<'a> {
    fn of(job: &'a Value) -> Self {
        let part = |name: &str| job.get(name).unwrap_or(&Value::Null);
        State {
            spec: part("spec"),
            status: part("status"),
        }
    }

    fn has(&self, condition: &str, status: &str) -> bool {
        items(self.status, "conditions")
            .any(|given| text(given, "type") == condition && text(given, "status") == status)
    }

    fn is(&self, condition: &str) -> bool {
        self.has(condition, "True")
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        present(self.status, field)
    }

    fn count(&self, field: &str) -> i64 {
        integer(self.status, field).unwrap_or(0)
    }

    fn is_indexed(&self) -> bool {
        text(self.spec, "completionMode") == "Indexed"
    }

    fn completions(&self) -> Option<i64> {
        integer(self.spec, "completions")
    }

    fn uncounted(&self) -> usize {
        let pods = self.get("uncountedTerminatedPods").unwrap_or(&Value::Null);
        items(pods, "succeeded").count() + items(pods, "failed").count()
    }
}

/// What a complaint shows of the field that it is about.
enum Shown {
    Nothing,
    /// That there has to be one.
    Missing,
    Value,
}

/// Says what is wrong with a status that is to take the place of another one.
pub(super) fn validate(job: &Value, old: &Value, errors: &mut Errors) {
    let (now, then) = (State::of(job), State::of(old));
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        validate_nonnegative(&STATUS, now.status, field, errors);
    }
    validate_uncounted(&now, errors);
    validate_end(&now, &then, errors);
    validate_indexes(&now, &then, errors);
    validate_counts(&now, &then, errors);
    validate_change(&now, &then, errors);
}

/// Pushes those of the checks that fail, about fields of the status.
fn complain(now: &State<'_>, checks: &[(bool, &str, Shown, &str)], errors: &mut Errors) {
    for (fails, field, shown, why) in checks {
        if !fails {
            continue;
        }
        let path = STATUS.child(field);
        errors.push(match shown {
            Shown::Nothing => FieldError::invalid_unshown(&path, *why),
            Shown::Missing => FieldError::required(&path, *why),
            Shown::Value => {
                let value = now.get(field).unwrap_or(&Value::Null);
                FieldError::invalid(&path, value, *why)
            }
        });
    }
}

fn validate_uncounted(now: &State<'_>, errors: &mut Errors) {
    const FIELD: &str = "uncountedTerminatedPods";
    let path = STATUS.child(FIELD);
    let pods = now.get(FIELD).unwrap_or(&Value::Null);
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        let path = path.child(list);
        for (index, uid) in items(pods, list).enumerate() {
            let path = path.index(index);
            let name = uid.as_str().unwrap_or_default();
            if name.is_empty() {
                errors.push(FieldError::invalid(&path, uid, "must not be empty"));
            } else if !seen.insert(name) {
                errors.push(FieldError::duplicate(&path, uid));
            }
        }
    }
}

/// How a Job may end, and when.
fn validate_end(now: &State<'_>, then: &State<'_>, errors: &mut Errors) {
    let turns = |condition: &str| now.is(condition) != then.is(condition);
    let changes = |field: &str| now.get(field) != then.get(field);
    let (complete, failed) = (now.is("Complete"), now.is("Failed"));
    let finished = now.is_finished();
    let finishes = finished != then.is_finished();
    let (started, ended) = (now.get("startTime"), now.get("completionTime"));
    let end_changes = turns("Complete") || changes("completionTime");
    // Times are stored in one form, in which the earlier one is less.
    let order = started
        .zip(ended)
        .map(|(started, ended)| (started.as_str(), ended.as_str()));
    let is_backwards = order.is_some_and(|(started, ended)| ended < started);
    let never_starts = flag(now.spec, "suspend") && now.completions() == Some(0);
    let checks = [
        (
            (turns("Complete") || turns("Failed")) && complete && failed,
            "conditions",
            Shown::Nothing,
            "cannot set Complete=True and Failed=true conditions",
        ),
        (
            (turns("Complete") || turns("FailureTarget")) && complete && now.is("FailureTarget"),
            "conditions",
            Shown::Nothing,
            "cannot set Complete=True and FailureTarget=true conditions",
        ),
        (
            end_changes && ended.is_some() && !complete,
            "completionTime",
            Shown::Value,
            "cannot set completionTime when there is no Complete=True condition",
        ),
        (
            end_changes && ended.is_none() && complete,
            "completionTime",
            Shown::Missing,
            "completionTime is required for Complete jobs",
        ),
        (
            (changes("startTime") || changes("completionTime")) && is_backwards,
            "completionTime",
            Shown::Value,
            "must be equal to or after `startTime`",
        ),
        (
            (turns("Failed") || changes("failedIndexes")) && failed && !now.is("FailureTarget"),
            "conditions",
            Shown::Nothing,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            (turns("Complete") || turns("SuccessCriteriaMet"))
                && complete
                && !now.is("SuccessCriteriaMet"),
            "conditions",
            Shown::Nothing,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
        (
            (finishes || changes("active")) && now.count("active") > 0 && finished,
            "active",
            Shown::Value,
            "active>0 is invalid for finished job",
        ),
        (
            (finishes || changes("startTime")) && !never_starts && started.is_none() && finished,
            "startTime",
            Shown::Missing,
            "startTime is required for finished job",
        ),
        (
            (finishes || changes("uncountedTerminatedPods")) && finished && now.uncounted() > 0,
            "uncountedTerminatedPods",
            Shown::Value,
            "must be empty for finished job",
        ),
    ];
    complain(now, &checks, errors);
}

/// Which indexes are done, and which failed.
fn validate_indexes(now: &State<'_>, then: &State<'_>, errors: &mut Errors) {
    const DONE: &str = "completedIndexes";
    const FAILED: &str = "failedIndexes";
    let changes = |field: &str| now.get(field) != then.get(field);
    let (done, failed) = (now.get(DONE), now.get(FAILED));
    let limit = present(now.spec, "backoffLimitPerIndex");
    let read = |field: &str| text(now.status, field);
    let mut wrong: Vec<(&str, String)> = Vec::new();
    if let Some(completions) = now.completions() {
        let mut look = |field: &'static str| {
            if let Err(why) = count_indexes(read(field), completions) {
                wrong.push((field, format!("error parsing {field}: {why}")));
            }
        };
        if changes(DONE) {
            look(DONE);
        }
        if changes(FAILED) && limit.is_some() && failed.is_some() {
            look(FAILED);
        }
    }
    if changes(DONE) && done.is_some() && !now.is_indexed() {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        wrong.push((DONE, why.to_owned()));
    }
    if changes(FAILED) && limit.is_none() && failed.is_some() {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        wrong.push((FAILED, why.to_owned()));
    }
    if let Some(completions) = now.completions()
        && (changes(DONE) || changes(FAILED))
        && let Some(index) = overlap(read(DONE), read(FAILED), completions)
    {
        let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
        wrong.push((FAILED, why));
    }
    for (field, why) in wrong {
        let value = now.get(field).unwrap_or(&Value::Null);
        errors.push(FieldError::invalid(&STATUS.child(field), value, why));
    }
}

fn validate_counts(now: &State<'_>, then: &State<'_>, errors: &mut Errors) {
    let changes = |field: &str| now.get(field) != then.get(field);
    let finished = now.is_finished();
    let finishes = finished != then.is_finished();
    let criteria = now.is("SuccessCriteriaMet");
    let by_policy = present(now.spec, "successPolicy").is_some();
    let checks = [
        (
            (finishes || changes("terminating")) && now.count("terminating") > 0 && finished,
            "terminating",
            Shown::Value,
            "terminating>0 is invalid for finished job",
        ),
        (
            (changes("ready") || changes("active")) && now.count("ready") > now.count("active"),
            "ready",
            Shown::Value,
            "cannot set more ready pods than active",
        ),
        (
            criteria && now.is("Failed"),
            "conditions",
            Shown::Nothing,
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        ),
        (
            criteria && now.is("FailureTarget"),
            "conditions",
            Shown::Nothing,
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
        (
            by_policy && !criteria && now.is("Complete"),
            "conditions",
            Shown::Nothing,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        ),
    ];
    complain(now, &checks, errors);
}

/// What cannot be taken back.
fn validate_change(now: &State<'_>, then: &State<'_>, errors: &mut Errors) {
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if then.is(condition) && !now.is(condition) {
            let why = format!("cannot disable the terminal {condition}=True condition");
            errors.push(FieldError::invalid_unshown(
                &STATUS.child("conditions"),
                why,
            ));
        }
    }
    let is_less = |field: &str| now.count(field) < then.count(field);
    let is_moved = |field: &str| {
        let (after, before) = (now.get(field), then.get(field));
        before.is_some() && after != before
    };
    // An indexed Job may be made smaller together with its parallelism.
    let is_elastic =
        now.is_indexed() && present(now.spec, "completions") == present(now.spec, "parallelism");
    let resumes = then.is("Suspended") && now.has("Suspended", "False");
    let (criteria, had_criteria) = (now.is("SuccessCriteriaMet"), then.is("SuccessCriteriaMet"));
    let checks = [
        (
            is_less("failed"),
            "failed",
            Shown::Value,
            "cannot decrease the failed counter",
        ),
        (
            is_less("succeeded") && !is_elastic,
            "succeeded",
            Shown::Value,
            "cannot decrease the succeeded counter",
        ),
        (
            is_moved("completionTime") && now.get("completionTime").is_some(),
            "completionTime",
            Shown::Value,
            "field is immutable",
        ),
        (
            is_moved("startTime") && !resumes && !flag(now.spec, "suspend"),
            "startTime",
            Shown::Value,
            "field is immutable for unsuspended job once set",
        ),
        (
            had_criteria && !criteria,
            "conditions",
            Shown::Nothing,
            "cannot disable the SuccessCriteriaMet=True condition",
        ),
        (
            then.is("Complete") && !had_criteria && criteria,
            "conditions",
            Shown::Nothing,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        ),
    ];
    // A counter that is gone is none.
    let zero = Value::from(0);
    for (fails, field, shown, why) in checks {
        match field {
            "failed" | "succeeded" if fails => {
                let value = now.get(field).unwrap_or(&zero);
                errors.push(FieldError::invalid(&STATUS.child(field), value, why));
            }
            _ => complain(now, &[(fails, field, shown, why)], errors),
        }
    }
}

/// How many indexes a text such as `0-2,5` names, all below `completions`.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn count_indexes(indexes: &str, completions: i64) -> Result<i64, String> {
    let (mut last, mut total) = (None, 0);
    if indexes.is_empty() {
        return Ok(0);
    }
    for part in indexes.split(',') {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {first}"
            ));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn interval(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let limits: Vec<&str> = part.split('-').collect();
    let number = |text: &str| -> Result<i64, String> {
        let number: i64 = text
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if number >= completions {
            return Err(format!("too large index: {text:?}"));
        }
        Ok(number)
    };
    match limits.as_slice() {
        [one] => number(one).map(|number| (number, number)),
        [first, last] => {
            let (first, last) = (number(first)?, number(last)?);
            if first >= last {
                return Err(format!(
                    "non-increasing order, previous: {first}, current: {last}"
                ));
            }
            Ok((first, last))
        }
        _ => Err(format!(
            "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        )),
    }
}

/// The first index that two texts both name; what cannot be read of them is left out.
fn overlap(one: &str, other: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        let parts = text.split(',');
        parts
            .filter_map(|part| interval(part, completions).ok())
            .collect()
    };
    let (one, other) = (intervals(one), intervals(other));
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    while let (Some((from, to)), Some((first, last))) = (left.peek(), right.peek()) {
        if from <= last && first <= to {
            return Some(*from.max(first));
        }
        if from <= first {
            left.next();
        } else {
            right.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn indexes_are_intervals_in_order() {
        for (text, expected) in [
            ("", Ok(0)),
            ("0-2,5", Ok(4)),
            ("5", Ok(1)),
            ("1,1", Err("non-increasing order, previous: 1, current: 1")),
            ("2-1", Err("non-increasing order, previous: 2, current: 1")),
            ("6", Err("too large index: \"6\"")),
            (
                "a",
                Err("cannot convert string to integer for index: \"a\""),
            ),
            (
                "1-2-3",
                Err(
                    "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts separated by '-'",
                ),
            ),
        ] {
            let counted = count_indexes(text, 6);
            assert_eq!(counted, expected.map_err(str::to_owned), "{text}");
        }
        for (one, other, expected) in [
            ("0-2,5", "3-4", None),
            ("0-2,5", "4-5", Some(5)),
            ("0-3", "2,4", Some(2)),
            ("x,4", "4", Some(4)),
            ("", "1", None),
        ] {
            assert_eq!(overlap(one, other, 6), expected, "{one} and {other}");
        }
    }

    #[test]
    fn what_is_as_it_was_is_not_looked_at() {
        let job = |status: Value| json!({"spec": {"completions": 1}, "status": status});
        let conditions = json!([{"type": "Complete", "status": "True"}]);
        let odd = job(json!({"conditions": conditions, "active": 1}));
        let mut errors = Errors::new();
        validate(&odd, &odd, &mut errors);
        assert!(errors.is_empty(), "{}", errors.aggregate());
        validate(&odd, &job(json!({})), &mut errors);
        assert_eq!(errors.len(), 4, "{}", errors.aggregate());
    }
}
