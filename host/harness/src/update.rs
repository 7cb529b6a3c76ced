//! Expectations rewritten to what was found, in place.
//!
//! Only the values that differ are replaced, so that comments, order and layout
//! stay. A field that was expected and is not there becomes `null`, which expects
//! just that. A list of another length, or a mapping of which all fields count,
//! is replaced as a whole, with the comments in it.

use crate::source::{Content, Node};
use crate::yaml;
use serde_json::Value;

/// A replacement in the text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    start: usize,
    end: usize,
    text: String,
}

impl Replacement {
    /// Makes `node` hold `value`.
    pub(crate) fn of(node: &Node, value: &Value) -> Self {
        Self::within(node, value, false)
    }

    fn within(node: &Node, value: &Value, in_flow: bool) -> Self {
        let is_block = match node.content {
            Content::Sequence { flow, .. } | Content::Mapping { flow, .. } => !flow && !in_flow,
            Content::Scalar | Content::Alias => false,
        };
        let text = if is_block {
            indented(&yaml::block(value), node.column)
        } else {
            yaml::flow(value)
        };
        Self {
            start: node.start,
            end: node.end,
            text: if node.start == node.end {
                // Nothing stood there, right behind the colon.
                format!(" {text}")
            } else {
                text
            },
        }
    }
}

/// All lines but the first stand as far in as the first already does.
fn indented(text: &str, column: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines.join(&format!("\n{}", " ".repeat(column)))
}

/// What to replace so that an expectation becomes what was found; none where it
/// stands behind an alias, which other expectations may share.
///
/// `whole` says that `found` is all there may be: fields that only it has are
/// added.
pub(crate) fn replacements(
    node: &Node,
    expected: &Value,
    found: &Value,
    whole: bool,
) -> Option<Vec<Replacement>> {
    let mut all = Vec::new();
    let complete = collect(node, expected, found, whole, false, &mut all);
    complete.then_some(all)
}

fn collect(
    node: &Node,
    expected: &Value,
    found: &Value,
    whole: bool,
    in_flow: bool,
    all: &mut Vec<Replacement>,
) -> bool {
    if expected == found {
        return true;
    }
    match (&node.content, expected, found) {
        (Content::Alias, _, _) => return false,
        (Content::Mapping { flow, entries }, Value::Object(expected), Value::Object(found))
            if !whole || found.keys().all(|key| expected.contains_key(key)) =>
        {
            return expected.iter().all(|(key, expected)| {
                let entry = entries.iter().find(|(name, _)| name == key);
                let found = found.get(key).unwrap_or(&Value::Null);
                match entry {
                    Some((_, node)) => collect(node, expected, found, whole, in_flow || *flow, all),
                    // It came with a merge key.
                    None => expected == found,
                }
            });
        }
        (Content::Sequence { flow, items }, Value::Array(expected), Value::Array(found))
            if expected.len() == found.len() && items.len() == found.len() =>
        {
            let rows = items.iter().zip(expected).zip(found);
            return rows
                .map(|((node, expected), found)| (node, expected, found))
                .all(|(node, expected, found)| {
                    collect(node, expected, found, whole, in_flow || *flow, all)
                });
        }
        _ => {}
    }
    all.push(Replacement::within(node, found, in_flow));
    true
}

/// The text with all replacements made. They must not overlap.
pub(crate) fn rewrite(text: &str, mut replacements: Vec<Replacement>) -> String {
    replacements.sort_by_key(|replacement| replacement.start);
    replacements.dedup();
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for replacement in replacements {
        let (Some(before), true) = (text.get(done..replacement.start), replacement.end >= done)
        else {
            // Two expectations share a value through an anchor: the first wins,
            // and the next run tells.
            continue;
        };
        out.push_str(before);
        out.push_str(&replacement.text);
        done = replacement.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, found: &Value, whole: bool, expected: &str) {
        let node = Node::documents(text).remove(0);
        let before: Value = serde_saphyr::from_str(text).unwrap();
        let replacements = replacements(&node, &before, found, whole).unwrap();
        let after = rewrite(text, replacements);
        assert_eq!(after, expected);
        let read: Value = serde_saphyr::from_str(&after).unwrap();
        if whole {
            assert_eq!(&read, found);
        }
    }

    #[test]
    fn only_what_differs_is_replaced() {
        check(
            "a: 1 # one\nb: {c: x, 'd': \"y\"}\nlist:\n  - p: 1\n  - q # last\n",
            &json!({"a": 2, "b": {"c": "x", "d": "100"}, "list": [{"p": null}, "r"]}),
            false,
            "a: 2 # one\nb: {c: x, 'd': \"100\"}\nlist:\n  - p: null\n  - r # last\n",
        );
    }

    #[test]
    fn what_is_not_there_is_expected_not_to_be() {
        check(
            "a: 1\nb:\n  c: 2\n",
            &json!({"b": {}}),
            false,
            "a: null\nb:\n  c: null\n",
        );
    }

    #[test]
    fn other_lists_and_whole_mappings_are_rewritten() {
        check(
            "list:\n  - # gone\n    a: 1\n# kept\nb: 2\n",
            &json!({"list": [{"a": 1, "z": "x"}, {"a": 2}], "b": 2}),
            true,
            "list:\n  - a: 1\n    z: x\n  - a: 2\n# kept\nb: 2\n",
        );
        check(
            "spec: {a: 1}\nb:\n",
            &json!({"spec": {"a": 1, "b": "2"}, "b": "x"}),
            true,
            "spec: {a: 1, b: \"2\"}\nb: x\n",
        );
        check(
            "spec:\n  hard:\n    a: 1\n",
            &json!({"spec": {"hard": null}}),
            false,
            "spec:\n  hard:\n    null\n",
        );
    }

    #[test]
    fn what_stands_behind_an_alias_is_left_alone() {
        let text = "x: &x {a: 1}\ny: *x\n";
        let node = Node::documents(text).remove(0);
        let expected = json!({"x": {"a": 1}, "y": {"a": 1}});
        let found = json!({"x": {"a": 1}, "y": {"a": 2}});
        assert_eq!(replacements(&node, &expected, &found, false), None);
    }
}
