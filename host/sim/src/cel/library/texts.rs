//! Functions of texts, and what makes texts of other values.

use std::sync::Arc;

use kube_cel::cel::{ResolveResult, Value};

use super::failed;

/// No text that is made is longer, in bytes: several times what a request may have.
const LONGEST: usize = 16 << 20;
/// No number is written with more digits behind its point: the standard library knows none.
const PRECISEST: usize = 65_535;

/// What these functions make of their arguments; none of others.
pub(super) fn own(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    let text = |text: String| Value::String(Arc::new(text));
    let made = match (name, arguments) {
        ("size", [Value::String(of)]) => {
            Value::Int(i64::try_from(of.chars().count()).unwrap_or(i64::MAX))
        }
        ("string", [Value::Bool(value)]) => text(value.to_string()),
        ("jsonpatch.escapeKey", [Value::String(key)]) => {
            text(key.replace('~', "~0").replace('/', "~1"))
        }
        ("string", [Value::Float(number)]) => text(shortest(*number)),
        ("string", [Value::Bytes(bytes)]) => match String::from_utf8(bytes.to_vec()) {
            Ok(valid) => text(valid),
            Err(_) => {
                let why = "invalid UTF-8 in bytes, cannot convert to string";
                return Some(Err(failed(name, why)));
            }
        },
        ("charAt", [Value::String(of), Value::Int(at)]) => match place(*at, of) {
            Ok(at) => text(of.chars().nth(at).map(String::from).unwrap_or_default()),
            Err(why) => return Some(Err(failed(name, why))),
        },
        ("substring", [Value::String(of), Value::Int(start), rest @ ..]) => {
            let end = match rest {
                [] => None,
                [Value::Int(end)] => Some(*end),
                _ => return None,
            };
            match substring(of, *start, end) {
                Ok(part) => text(part),
                Err(why) => return Some(Err(failed(name, why))),
            }
        }
        // Nothing is found wherever it is looked for, and all else not behind the end.
        ("indexOf" | "lastIndexOf", [Value::String(_), Value::String(what), Value::Int(at)])
            if what.is_empty() =>
        {
            Value::Int(*at)
        }
        ("indexOf" | "lastIndexOf", [Value::String(of), Value::String(_), Value::Int(at)]) => {
            match usize::try_from(*at) {
                Ok(at) if at < of.chars().count() => return None,
                Ok(_) => Value::Int(-1),
                Err(_) => return Some(Err(failed(name, format!("index out of range: {at}")))),
            }
        }
        ("split", [Value::String(of), Value::String(by), rest @ ..]) => {
            let most = match rest {
                [] => None,
                [Value::Int(most)] => usize::try_from(*most).ok(),
                _ => return None,
            };
            Value::List(Arc::new(
                split(of, by, most).into_iter().map(text).collect(),
            ))
        }
        (
            "replace",
            [
                Value::String(of),
                Value::String(from),
                Value::String(to),
                rest @ ..,
            ],
        ) => {
            let most = match rest {
                [Value::Int(most)] => usize::try_from(*most).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            let found = of.matches(from.as_str()).count().min(most);
            if is_too_long(of.len(), found, to.len()) {
                return Some(Err(failed(name, "the text is too long")));
            }
            text(of.replacen(from.as_str(), to, most))
        }
        ("join", [Value::List(list), rest @ ..]) => {
            let between = match rest {
                [Value::String(between)] => between.len(),
                _ => 0,
            };
            let of = list.iter().map(|item| match item {
                Value::String(item) => item.len(),
                _ => 0,
            });
            if is_too_long(of.sum(), list.len(), between) {
                return Some(Err(failed(name, "the text is too long")));
            }
            return None;
        }
        ("format", [Value::String(template), Value::List(list)]) => {
            let digits = precisions(template);
            if digits.iter().any(|digits| *digits > PRECISEST) {
                return Some(Err(failed(name, "the precision is too large")));
            }
            let of = list.iter().map(|item| match item {
                Value::String(item) => item.len(),
                _ => 0,
            });
            if is_too_long(template.len() + of.sum::<usize>(), 1, digits.iter().sum()) {
                return Some(Err(failed(name, "the text is too long")));
            }
            return None;
        }
        _ => return None,
    };
    Some(Ok(made))
}

/// How many digits a template wants of numbers; those that are no number are none here.
fn precisions(template: &str) -> Vec<usize> {
    let mut digits = Vec::new();
    let mut parts = template.split('%').skip(1);
    while let Some(part) = parts.next() {
        // The sign itself is between two.
        if part.is_empty() {
            parts.next();
        } else if let Some(rest) = part.strip_prefix('.') {
            let end = rest.find(|c: char| !c.is_ascii_digit());
            let number = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            digits.extend(number.parse::<usize>().ok());
        }
    }
    digits
}

fn is_too_long(before: usize, times: usize, added: usize) -> bool {
    before.saturating_add(times.saturating_mul(added)) > LONGEST
}

/// An index into the characters of a text, or the one at its end.
fn place(at: i64, of: &str) -> Result<usize, String> {
    let at_most = of.chars().count();
    let place = usize::try_from(at).ok().filter(|at| *at <= at_most);
    place.ok_or_else(|| format!("index out of range: {at}"))
}

fn substring(of: &str, start: i64, end: Option<i64>) -> Result<String, String> {
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(format!(
            "invalid substring range. start: {start}, end: {end}"
        ));
    }
    let from = place(start, of)?;
    let to = end.map_or(Ok(of.len()), |end| place(end, of))?;
    Ok(of.chars().take(to).skip(from).collect())
}

/// The parts of a text; without something between them, its characters.
fn split(of: &str, by: &str, most: Option<usize>) -> Vec<String> {
    let most = most.unwrap_or(usize::MAX);
    if most == 0 {
        return Vec::new();
    }
    if !by.is_empty() {
        return of.splitn(most, by).map(str::to_owned).collect();
    }
    let mut parts = Vec::new();
    let mut rest = of.chars();
    while parts.len() + 1 < most {
        let Some(c) = rest.next() else { break };
        parts.push(c.to_string());
    }
    if !rest.as_str().is_empty() {
        parts.push(rest.as_str().to_owned());
    }
    parts
}

/// A number in the shortest way, as Go's `%g` writes it.
fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // In the shortest form, Go decides as for six digits.
    if (-4..6).contains(&exponent) || number == 0.0 {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split_as_in_go() {
        for (of, by, most, expected) in [
            ("a,b,c", ",", None, vec!["a", "b", "c"]),
            ("a,b,c", ",", Some(2), vec!["a", "b,c"]),
            ("a,b", ",", Some(0), vec![]),
            ("aé", "", None, vec!["a", "é"]),
            ("abc", "", Some(2), vec!["a", "bc"]),
            ("", "", None, vec![]),
            ("", ",", None, vec![""]),
        ] {
            assert_eq!(split(of, by, most), expected, "{of} {by} {most:?}");
        }
    }

    #[test]
    fn numbers_are_short() {
        for (number, expected) in [
            (1.5, "1.5"),
            (0.0, "0"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.0, "-2"),
            (f64::INFINITY, "+Inf"),
        ] {
            assert_eq!(shortest(number), expected);
        }
    }

    #[test]
    fn no_number_is_written_for_ever() {
        for (template, expected) in [
            ("", vec![]),
            ("%.2f %d %.10e", vec![2, 10]),
            ("%%.5f %.f %.99999999999999999999999f", vec![]),
            ("100%%%.3f%", vec![3]),
        ] {
            assert_eq!(precisions(template), expected, "{template}");
        }
        let format = |template: &str| {
            let number = Value::List(Arc::new(vec![Value::Float(1.0); 1_000]));
            let made = own(
                "format",
                &[Value::String(Arc::new(template.to_owned())), number],
            );
            made.and_then(Result::err).map(|why| why.to_string())
        };
        let refused = |why: &str| Some(format!("Error executing function 'format': {why}"));
        assert_eq!(format("%.65535f"), None);
        assert_eq!(format("%.65536f"), refused("the precision is too large"));
        assert_eq!(
            format(&"%.65535f".repeat(300)),
            refused("the text is too long")
        );
    }

    #[test]
    fn no_text_grows_without_end() {
        let text = |length: usize| Value::String(Arc::new("a".repeat(length)));
        let replaced = own("replace", &[text(10_000), text(0), text(10_000)]);
        let refused = replaced.and_then(Result::err).map(|why| why.to_string());
        assert_eq!(
            refused.as_deref(),
            Some("Error executing function 'replace': the text is too long")
        );
    }
}
