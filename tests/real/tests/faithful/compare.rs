//! Where two answers differ.

use serde_json::Value;

/// One place where two answers differ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    /// The place: `body.details.causes[0].message`.
    pub(crate) at: String,
    /// What the real server has there; `absent` when it has nothing.
    pub(crate) real: String,
    /// What the embedded one has there.
    pub(crate) embedded: String,
}

/// All places where two answers differ, each as deep as it can be.
pub(crate) fn differences(real: &Value, embedded: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(Some(real), Some(embedded), "", &mut found);
    found
}

fn walk(real: Option<&Value>, embedded: Option<&Value>, at: &str, found: &mut Vec<Difference>) {
    if real == embedded {
        return;
    }
    match (real, embedded) {
        // One number, written in two ways.
        (Some(Value::Number(left)), Some(Value::Number(right)))
            if left.as_f64() == right.as_f64() => {}
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let keys: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let dot = if at.is_empty() { "" } else { "." };
                let at = format!("{at}{dot}{key}");
                walk(left.get(key), right.get(key), &at, found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                let at = format!("{at}[{index}]");
                walk(left.get(index), right.get(index), &at, found);
            }
        }
        _ => found.push(Difference {
            at: at.to_owned(),
            real: shown(real),
            embedded: shown(embedded),
        }),
    }
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None => "absent".to_owned(),
        Some(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_found_where_they_are() {
        let real = json!({"a": {"b": [1, 2]}, "c": null, "d": 1});
        let embedded = json!({"a": {"b": [1, 3, 4]}, "c": "x", "d": 1});
        let found: Vec<_> = differences(&real, &embedded)
            .into_iter()
            .map(|d| (d.at, d.real, d.embedded))
            .collect();
        let expected = [
            ("a.b[1]", "2", "3"),
            ("a.b[2]", "absent", "4"),
            ("c", "null", "\"x\""),
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|&(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(differences(&real, &real), []);
    }
}
