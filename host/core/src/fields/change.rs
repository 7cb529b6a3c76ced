//! What differs between two states of an object, field by field.

use super::shown::{Shown, hides, is_said_elsewhere, is_secret, path_of};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// Its path, such as `spec.hard["requests.cpu"]`.
    pub path: String,
    /// What it is.
    pub old: Shown,
    /// What it would be.
    pub new: Shown,
}

/// Every field that differs, in the order of their paths. An absent side is an
/// object that is not there.
///
/// Items of lists are compared by their name where all of them have one, and else
/// by their place. What the API server decides is left out, and so is the status.
/// Of a Secret it is told that values differ, never what they are.
pub fn changes(old: Option<&Value>, new: Option<&Value>) -> Vec<FieldChange> {
    let secret = [old, new].into_iter().flatten().any(is_secret);
    let mut walk = Walk {
        secret,
        way: Vec::new(),
        found: Vec::new(),
    };
    walk.compare(old, new);
    walk.found
}

struct Walk {
    secret: bool,
    way: Vec<String>,
    found: Vec<FieldChange>,
}

impl Walk {
    fn compare(&mut self, old: Option<&Value>, new: Option<&Value>) {
        if old == new || is_said_elsewhere(&self.way) {
            return;
        }
        match (old, new) {
            (Some(Value::Object(_)) | None, Some(Value::Object(_)) | None)
            | (Some(Value::Array(_)) | None, Some(Value::Array(_)) | None) => {
                let (old_children, new_children) = children(old, new);
                // An empty map or list is a value of its own.
                if old_children.is_empty() && new_children.is_empty() {
                    return self.leaf(old, new);
                }
                let names: BTreeSet<&String> =
                    old_children.keys().chain(new_children.keys()).collect();
                for name in names {
                    self.way.push(name.clone());
                    let old = old_children.get(name).copied();
                    self.compare(old, new_children.get(name).copied());
                    self.way.pop();
                }
            }
            _ => self.leaf(old, new),
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        let hidden = self.secret && hides(&self.way);
        let shown = |side: Option<&Value>| match side {
            None => Shown::Absent,
            Some(_) if hidden => Shown::Hidden,
            Some(value) => Shown::Value(value.clone()),
        };
        self.found.push(FieldChange {
            path: path_of(&self.way),
            old: shown(old),
            new: shown(new),
        });
    }
}

type Children<'a> = BTreeMap<String, &'a Value>;

/// The children of two maps or two lists, by the same sort of names.
fn children<'a>(old: Option<&'a Value>, new: Option<&'a Value>) -> (Children<'a>, Children<'a>) {
    let sides = [old, new];
    let named = sides.iter().flatten().all(|side| all_named(side));
    let of = |side: Option<&'a Value>| match side {
        Some(Value::Object(fields)) => fields.iter().map(|(k, v)| (k.clone(), v)).collect(),
        Some(Value::Array(items)) => items
            .iter()
            .enumerate()
            .map(|(index, item)| match item["name"].as_str() {
                Some(name) if named => (format!("[name={name}]"), item),
                _ => (format!("[{index}]"), item),
            })
            .collect(),
        _ => Children::new(),
    };
    (of(old), of(new))
}

/// Whether a list has items that all have a name of their own.
fn all_named(value: &Value) -> bool {
    let Value::Array(items) = value else {
        return true;
    };
    let names: BTreeSet<&str> = items
        .iter()
        .filter_map(|item| item["name"].as_str())
        .collect();
    names.len() == items.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
        let shown = |side: Shown| match side {
            Shown::Absent => "-".to_owned(),
            Shown::Hidden => "?".to_owned(),
            Shown::Value(value) => value.to_string(),
        };
        let all = changes(old, new).into_iter();
        all.map(|one| format!("{} {} {}", one.path, shown(one.old), shown(one.new)))
            .collect()
    }

    #[test]
    fn what_differs_is_told_field_by_field() {
        let quota = |hard: Value| {
            json!({
                "apiVersion": "v1", "kind": "ResourceQuota",
                "metadata": {"name": "q", "resourceVersion": hard.to_string(), "uid": "u"},
                "spec": {"hard": hard}, "status": {"hard": hard},
            })
        };
        let (old, new) = (
            quota(json!({"pods": "1", "requests.cpu": "2"})),
            quota(json!({"pods": "3", "services": "4"})),
        );
        assert_eq!(
            lines(Some(&old), Some(&new)),
            [
                "spec.hard.pods \"1\" \"3\"",
                "spec.hard[\"requests.cpu\"] \"2\" -",
                "spec.hard.services - \"4\"",
            ]
        );
        assert_eq!(lines(Some(&old), Some(&old)), Vec::<String>::new());
        assert_eq!(
            lines(None, Some(&quota(json!({})))),
            ["spec.hard - {}"],
            "what is empty is told"
        );
    }

    #[test]
    fn items_go_by_their_names_where_they_have_some() {
        let spec = |items: Value| json!({"spec": {"items": items}});
        for (old, new, expected) in [
            (
                json!([{"name": "a", "x": 1}, {"name": "b", "x": 1}]),
                json!([{"name": "b", "x": 2}]),
                vec![
                    "spec.items[name=a].name \"a\" -",
                    "spec.items[name=a].x 1 -",
                    "spec.items[name=b].x 1 2",
                ],
            ),
            (json!([1, 2]), json!([1, 3]), vec!["spec.items[1] 2 3"]),
            (
                json!([{"name": "a"}, {"name": "a"}]),
                json!([{"name": "a"}]),
                vec!["spec.items[1].name \"a\" -"],
            ),
            (
                json!({"a": 1}),
                json!([1]),
                vec!["spec.items {\"a\":1} [1]"],
            ),
            (json!(null), json!({}), vec!["spec.items null {}"]),
        ] {
            assert_eq!(lines(Some(&spec(old)), Some(&spec(new))), expected);
        }
    }

    #[test]
    fn values_of_secrets_are_never_told() {
        let secret = |value: &str| {
            json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {
                    "labels": {"a": value},
                    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": value},
                },
                "data": {"k": value}, "stringData": {"s": value},
            })
        };
        let (old, new) = (secret("one"), secret("two"));
        let expected = [
            "data.k ? ?",
            "metadata.annotations[\"kubectl.kubernetes.io/last-applied-configuration\"] ? ?",
            "metadata.labels.a \"one\" \"two\"",
            "stringData.s ? ?",
        ];
        assert_eq!(lines(Some(&old), Some(&new)), expected);
        let gone = lines(Some(&old), None);
        assert!(gone.contains(&"data.k ? -".to_owned()), "{gone:?}");
        assert!(
            !gone
                .iter()
                .any(|line| line.contains("one") && !line.contains("labels")),
            "{gone:?}"
        );
    }
}
