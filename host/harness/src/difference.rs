//! What differs, for people.

use crate::yaml;
use serde_json::Value;
use similar::TextDiff;

/// Lines around a difference.
const CONTEXT: usize = 3;

/// The difference between an expected and an actual value as a unified diff of
/// their YAML, the marks of its ends left out: what is expected stands after `-`,
/// what is there after `+`.
pub(crate) fn difference(expected: &Value, actual: &Value) -> String {
    let (expected, actual) = (yaml::block(expected), yaml::block(actual));
    let diff = TextDiff::from_lines(&expected, &actual);
    let hunks: Vec<String> = diff
        .unified_diff()
        .context_radius(CONTEXT)
        .iter_hunks()
        .map(|hunk| hunk.to_string())
        .collect();
    hunks.concat()
}
