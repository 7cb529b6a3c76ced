//! `additionalPrinterColumns`: values found by JSONPath.
//!
//! The paths are those of the real server's library, without what only makes sense in
//! templates: fields, indexes, slices, `[*]`, unions, `..`, and filters that compare a
//! field with a constant.

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// Items from one index to before another, which count from the end below zero.
    Slice {
        from: Option<i64>,
        to: To,
        step: usize,
    },
    /// All items or fields.
    All,
    /// The value and all values in it that hold others.
    Recursive,
    /// What is found by each of several paths.
    Union(Vec<JsonPath>),
    /// Items whose field at the path compares so with the constant.
    Filter {
        path: Vec<String>,
        compare: Compare,
        constant: Value,
    },
    /// Items that have a field at the path.
    Has(Vec<String>),
}

/// Where a slice ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    /// Behind its first item: it is an index.
    Next,
    /// Before this.
    Index(i64),
    End,
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

/// A path that leads nowhere in a value: into a list where there is none, or behind its
/// end. Then nothing is found at all.
#[derive(Debug)]
struct Astray;

impl JsonPath {
    /// Parses a path such as `.status.conditions[?(@.type=="Ready")].status`.
    /// None when it uses more than columns may.
    pub fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix("[?(") {
                let (inner, tail) = inner.split_at(end_of_brackets(inner)?);
                steps.push(filter(inner.strip_suffix(')')?)?);
                rest = tail.get(1..)?;
            } else if let Some(inner) = rest.strip_prefix('[') {
                let (inner, tail) = inner.split_once(']')?;
                steps.append(&mut bracket(inner)?);
                rest = tail;
            } else if let Some(tail) = rest.strip_prefix("..") {
                if steps.last() == Some(&Step::Recursive) || tail.is_empty() {
                    return None;
                }
                steps.push(Step::Recursive);
                rest = tail;
                if !tail.starts_with(['.', '[']) {
                    rest = named(tail, &mut steps)?;
                }
            } else {
                rest = named(rest.strip_prefix('.').unwrap_or(rest), &mut steps)?;
            }
        }
        Some(JsonPath { steps })
    }

    /// The values at the path, in order.
    pub fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        self.walk(vec![object]).unwrap_or_default()
    }

    fn walk<'a>(&self, from: Vec<&'a Value>) -> Result<Vec<&'a Value>, Astray> {
        let mut found = from;
        for step in &self.steps {
            let mut next = Vec::new();
            if let Step::Union(paths) = step {
                for path in paths {
                    next.extend(path.walk(found.clone())?);
                }
            } else {
                // What is null leads nowhere, and is no error.
                for value in found.into_iter().filter(|value| !value.is_null()) {
                    step.apply(value, &mut next)?;
                }
            }
            found = next;
        }
        Ok(found)
    }
}

/// Reads a name and adds the step to it; gives what follows.
fn named<'t>(text: &'t str, steps: &mut Vec<Step>) -> Option<&'t str> {
    let (field, tail) = field(text)?;
    match field.as_str() {
        "" if tail.is_empty() || tail.starts_with('[') => {}
        "" => return None,
        "*" => steps.push(Step::All),
        _ => steps.push(Step::Field(field)),
    }
    Some(tail)
}

impl Step {
    fn apply<'a>(&self, value: &'a Value, found: &mut Vec<&'a Value>) -> Result<(), Astray> {
        match self {
            Step::Field(name) => found.extend(value.get(name)),
            Step::Slice { from, to, step } => {
                let list = value.as_array().ok_or(Astray)?;
                let (from, to) = bounds(list.len(), *from, *to).ok_or(Astray)?;
                let slice = list.get(from..to).ok_or(Astray)?;
                found.extend(slice.iter().step_by(*step));
            }
            Step::All => match value {
                Value::Array(list) => found.extend(list),
                Value::Object(fields) => found.extend(fields.values()),
                _ => {}
            },
            Step::Recursive => descend(value, found),
            Step::Union(_) => {}
            Step::Filter {
                path,
                compare,
                constant,
            } => found.extend(
                items(value)
                    .filter(|item| at(item, path).is_some_and(|v| compare.holds(v, constant))),
            ),
            Step::Has(path) => found.extend(items(value).filter(|item| at(item, path).is_some())),
        }
        Ok(())
    }
}

/// Adds a value that holds others, and those in it.
fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Array(list) if !list.is_empty() => {
            found.push(value);
            list.iter().for_each(|item| descend(item, found));
        }
        Value::Object(fields) if !fields.is_empty() => {
            found.push(value);
            fields.values().for_each(|field| descend(field, found));
        }
        _ => {}
    }
}

/// The indexes that a slice goes from and to in a list; none where it has no such.
fn bounds(length: usize, from: Option<i64>, to: To) -> Option<(usize, usize)> {
    let length = i64::try_from(length).ok()?;
    let counted = |index: i64| if index < 0 { index + length } else { index };
    let start = counted(from.unwrap_or(0));
    let end = match to {
        To::Next => start.checked_add(1)?,
        To::Index(index) => counted(index),
        To::End => length,
    };
    if start == end {
        return Some((0, 0));
    }
    let is_inside = (0..length).contains(&start) && start < end && end <= length;
    is_inside.then_some((usize::try_from(start).ok()?, usize::try_from(end).ok()?))
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

/// What stands in brackets, but for filters.
fn bracket(inner: &str) -> Option<Vec<Step>> {
    if inner.contains(',') {
        let paths = inner.split(',').map(|part| {
            let steps = bracket(part.trim_matches(' '))?;
            Some(JsonPath { steps })
        });
        return Some(vec![Step::Union(paths.collect::<Option<_>>()?)]);
    }
    let name = inner
        .strip_prefix('\'')
        .and_then(|name| name.strip_suffix('\''));
    if let Some(name) = name {
        // A name in quotes is read like one without: a dot in it separates.
        let path = JsonPath::parse(&format!(".{name}"))?;
        return Some(path.steps);
    }
    let mut bounds = if inner == "*" { ":" } else { inner }.split(':');
    let number = |bound: Option<&str>| match bound {
        None | Some("") => Some(None),
        Some(bound) => bound.parse::<i64>().ok().map(Some),
    };
    let (from, to, step) = (bounds.next(), bounds.next(), bounds.next());
    if bounds.next().is_some() || (from == Some("") && to.is_none()) {
        return None;
    }
    Some(vec![Step::Slice {
        from: number(from)?,
        to: match (to, number(to)?) {
            (None, _) => To::Next,
            (_, Some(index)) => To::Index(index),
            (_, None) => To::End,
        },
        step: match number(step)? {
            Some(step) => usize::try_from(step).ok().filter(|step| *step > 0)?,
            None => 1,
        },
    }])
}

fn filter(filter: &str) -> Option<Step> {
    let filter = filter.trim();
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
        check(r".spec['a\.b']", json!([1]));
        check(".spec['a.b']", json!([]));
        check(".spec['replicas','set']", json!([3, ["a", "b"]]));
        check(".spec.set[0:1]", json!(["a"]));
        check(".spec.set[-1:]", json!(["b"]));
        check(".spec.set[:]", json!(["a", "b"]));
        check(".spec.set[0:2:2]", json!(["a"]));
        check(".spec.set[0,1]", json!(["a", "b"]));
        check(".spec.set[2]", json!([]));
        check(".spec.set[0:3]", json!([]));
        check(".spec[0]", json!([]));
        check(".spec[*]", json!([]));
        check("..replicas", json!([3]));
        check("..type", json!(["Ready", "Other"]));
        check(".status.conditions[-1:].type", json!(["Other"]));
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
        for path in [
            "..",
            "....a",
            ".a[",
            ".a[?(x)]",
            ".a[x]",
            ".a[]",
            ".a[1:2:3:4]",
            ".a[0:1:0]",
            ".a[\"b\"]",
        ] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
