//! Where two answers differ.

use serde_json::Value;

/// From here on a status says that a request was refused.
const REFUSED: u64 = 400;

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

/// All places where two answers differ, each as deep as it can be. Where one server
/// refuses what the other takes, that is the one difference there is.
pub(crate) fn differences(real: &Value, embedded: &Value) -> Vec<Difference> {
    if let (Some((real_taken, real)), Some((embedded_taken, embedded))) =
        (verdict(real), verdict(embedded))
        && real_taken != embedded_taken
    {
        return vec![Difference {
            at: "status".to_owned(),
            real,
            embedded,
        }];
    }
    let mut found = Vec::new();
    walk(Some(real), Some(embedded), "", &mut found);
    found
}

/// Whether a request was taken, and what was said: the status, and why not.
fn verdict(answer: &Value) -> Option<(bool, String)> {
    let status = answer["status"].as_u64()?;
    if status < REFUSED {
        return Some((true, status.to_string()));
    }
    let body = &answer["body"];
    let why = body["message"].as_str().or_else(|| body.as_str());
    Some((false, format!("{status}: {}", why.unwrap_or_default())))
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

    #[expect(clippy::needless_pass_by_value, reason = "cases are written in place")]
    fn check(real: Value, embedded: Value, expected: &[(&str, &str, &str)]) {
        let found: Vec<_> = differences(&real, &embedded)
            .into_iter()
            .map(|d| (d.at, d.real, d.embedded))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|&(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn differences_are_found_where_they_are() {
        let real = json!({"a": {"b": [1, 2]}, "c": null, "d": 1});
        let embedded = json!({"a": {"b": [1, 3, 4]}, "c": "x", "d": 1});
        check(
            real.clone(),
            embedded,
            &[
                ("a.b[1]", "2", "3"),
                ("a.b[2]", "absent", "4"),
                ("c", "null", "\"x\""),
            ],
        );
        check(real.clone(), real, &[]);
    }

    #[test]
    fn a_refusal_is_one_difference_to_what_is_taken() {
        let taken = json!({"status": 201, "body": {"kind": "A", "spec": {}}});
        let refused = json!({"status": 422, "body": {"kind": "Status", "message": "no"}});
        let later = json!({"status": 409, "body": {"kind": "Status", "message": "no"}});
        check(
            taken.clone(),
            refused.clone(),
            &[("status", "201", "422: no")],
        );
        check(
            json!({"status": 404, "body": "none\n"}),
            taken,
            &[("status", "404: none\n", "201")],
        );
        // Two refusals are held against each other as any two answers.
        check(refused, later, &[("status", "422", "409")]);
    }
}
