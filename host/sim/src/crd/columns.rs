//! `additionalPrinterColumns`: values found by JSONPath.
//!
//! The paths are the subset that columns use: fields, indexes, `[*]` and filters
//! that compare a field with a constant.

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// Items whose field at the path compares so with the constant.
    Filter {
        path: Vec<String>,
        compare: Compare,
        constant: Value,
    },
    /// Items that have a field at the path.
    Has(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const OPERATORS: [(&str, Compare); 6] = [
    ("==", Compare::Equal),
    ("!=", Compare::NotEqual),
    ("<=", Compare::LessOrEqual),
    (">=", Compare::GreaterOrEqual),
    ("<", Compare::Less),
    (">", Compare::Greater),
];

impl JsonPath {
    /// Parses a path such as `.status.conditions[?(@.type=="Ready")].status`.
    /// None when it uses more than columns may.
    pub fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let end = end_of_brackets(inner)?;
                let (inner, tail) = inner.split_at(end);
                steps.push(bracket(inner)?);
                rest = tail.get(1..)?;
            } else {
                let (field, tail) = field(rest.strip_prefix('.').unwrap_or(rest))?;
                match field.as_str() {
                    "" if tail.is_empty() || tail.starts_with('[') => {}
                    "" => return None,
                    "*" => steps.push(Step::All),
                    _ => steps.push(Step::Field(field)),
                }
                rest = tail;
            }
        }
        Some(JsonPath { steps })
    }

    /// The values at the path, in order.
    pub fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![object];
        for step in &self.steps {
            found = found
                .into_iter()
                .flat_map(|value| step.apply(value))
                .collect();
        }
        found
    }
}

impl Step {
    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Step::Field(name) => value.get(name).into_iter().collect(),
            Step::Index(index) => {
                let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let at = if *index < 0 {
                    list.len()
                        .checked_sub(usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX))
                } else {
                    usize::try_from(*index).ok()
                };
                at.and_then(|at| list.get(at)).into_iter().collect()
            }
            Step::All => match value {
                Value::Array(list) => list.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => Vec::new(),
            },
            Step::Filter {
                path,
                compare,
                constant,
            } => items(value)
                .filter(|item| at(item, path).is_some_and(|v| compare.holds(v, constant)))
                .collect(),
            Step::Has(path) => items(value)
                .filter(|item| at(item, path).is_some())
                .collect(),
        }
    }
}

impl Compare {
    fn holds(self, value: &Value, constant: &Value) -> bool {
        use std::cmp::Ordering;
        let order = match (value, constant) {
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (Value::Number(a), Value::Number(b)) => a
                .as_f64()
                .zip(b.as_f64())
                .and_then(|(a, b)| a.partial_cmp(&b)),
            (a, b) => (a == b).then_some(Ordering::Equal),
        };
        match self {
            Compare::Equal => order == Some(Ordering::Equal),
            Compare::NotEqual => order != Some(Ordering::Equal),
            Compare::Less => order == Some(Ordering::Less),
            Compare::Greater => order == Some(Ordering::Greater),
            Compare::LessOrEqual => order.is_some_and(|o| o != Ordering::Greater),
            Compare::GreaterOrEqual => order.is_some_and(|o| o != Ordering::Less),
        }
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn at<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, field| value.get(field))
}

/// The name at the start of a text, where `\.` is a dot in the name.
fn field(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            '.' | '[' => return Some((name, text.get(index..)?)),
            c => name.push(c),
        }
    }
    Some((name, ""))
}

/// Where the brackets that were opened are closed again.
fn end_of_brackets(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (index, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(index),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Step> {
    let inner = inner.trim();
    if inner == "*" {
        return Some(Step::All);
    }
    if let Ok(index) = inner.parse() {
        return Some(Step::Index(index));
    }
    if let Some(name) = unquoted(inner) {
        return Some(Step::Field(name.to_owned()));
    }
    let filter = inner.strip_prefix("?(")?.strip_suffix(')')?.trim();
    for (operator, compare) in OPERATORS {
        if let Some((left, right)) = filter.split_once(operator) {
            let right = right.trim();
            let constant = match unquoted(right) {
                Some(text) => Value::String(text.to_owned()),
                None => serde_json::from_str(right).ok()?,
            };
            return Some(Step::Filter {
                path: item_path(left)?,
                compare,
                constant,
            });
        }
    }
    item_path(filter).map(Step::Has)
}

/// The fields of `@.a.b`.
fn item_path(text: &str) -> Option<Vec<String>> {
    let mut rest = text.trim().strip_prefix('@')?;
    let mut path = Vec::new();
    while let Some(tail) = rest.strip_prefix('.') {
        let (name, tail) = field(tail)?;
        path.push(name);
        rest = tail;
    }
    rest.is_empty().then_some(path)
}

fn unquoted(text: &str) -> Option<&str> {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds() {
        let object = json!({
            "spec": {"replicas": 3, "set": ["a", "b"], "a.b": 1},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 1},
                {"type": "Other", "status": "False", "n": 2},
            ]},
        });
        let check = |path: &str, expected: Value| {
            let path = JsonPath::parse(path).unwrap();
            assert_eq!(json!(path.find(&object)), expected, "{path:?}");
        };
        check(".spec.replicas", json!([3]));
        check(".spec.none.deeper", json!([]));
        check(".spec.set", json!([["a", "b"]]));
        check(".spec.set[*]", json!(["a", "b"]));
        check(".spec.set[1]", json!(["b"]));
        check(".spec.set[-1]", json!(["b"]));
        check(r".spec.a\.b", json!([1]));
        check(".spec['a.b']", json!([1]));
        check(
            r#".status.conditions[?(@.type=="Ready")].status"#,
            json!(["True"]),
        );
        check(".status.conditions[?(@.n > 1)].type", json!(["Other"]));
        check(".status.conditions[?(@.n)].n", json!([1, 2]));
        check(".status.conditions[*].type", json!(["Ready", "Other"]));
    }

    #[test]
    fn refuses_more() {
        for path in ["..a", ".a[", ".a[?(x)]", ".a[1:2]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
