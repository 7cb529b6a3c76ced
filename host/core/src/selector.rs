//! Label selectors in Kubernetes' text form.

use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Bytes of a label selector. It is sent in the address of a request, for which servers
/// and what stands before them allow some eight thousand; and its parts take many times
/// their text in memory.
pub(crate) const MAX_BYTES: usize = 4_096;

/// A parsed label selector: all of its requirements must hold.
///
/// The grammar is that of `kubectl -l`: `a=b`, `a==b`, `a!=b`, `a in (x, y)`,
/// `a notin (x, y)`, `a`, `!a`, joined by commas. The empty selector selects all. Text of
/// more than 4,096 bytes is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl Operator {
    /// Whether the other holds of a label wherever this one does.
    fn implies(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::In(few), Self::In(many)) | (Self::NotIn(many), Self::NotIn(few)) => {
                few.iter().all(|value| many.contains(value))
            }
            (Self::In(these), Self::NotIn(those)) => {
                these.iter().all(|value| !those.contains(value))
            }
            (Self::In(_) | Self::Exists, Self::Exists)
            | (Self::DoesNotExist, Self::DoesNotExist | Self::NotIn(_)) => true,
            (Self::NotIn(_), Self::In(_) | Self::Exists | Self::DoesNotExist)
            | (Self::In(_), Self::DoesNotExist)
            | (Self::Exists, Self::In(_) | Self::NotIn(_) | Self::DoesNotExist)
            | (Self::DoesNotExist, Self::In(_) | Self::Exists) => false,
        }
    }
}

/// A selector that does not parse.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{selector}` is no label selector: {problem}")]
pub struct SelectorError {
    selector: String,
    problem: String,
}

impl Selector {
    /// Selects what carries this label with this value.
    pub fn label(key: &str, value: &str) -> Self {
        let requirement = Requirement {
            key: key.to_owned(),
            operator: Operator::In(vec![value.to_owned()]),
        };
        Self {
            requirements: vec![requirement],
        }
    }

    /// Selects what carries this label, whatever its value.
    pub fn has(key: &str) -> Self {
        Self {
            requirements: vec![Requirement {
                key: key.to_owned(),
                operator: Operator::Exists,
            }],
        }
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Bytes that it takes in memory, roughly. Of short requirements that is many times
    /// their text.
    pub fn weight(&self) -> usize {
        // Each text is a block of the allocator's, with what that needs for itself.
        let block = |text: &String| 16 + text.len();
        let weights = self
            .requirements
            .iter()
            .map(|Requirement { key, operator }| {
                let values = match operator {
                    Operator::In(values) | Operator::NotIn(values) => &values[..],
                    Operator::Exists | Operator::DoesNotExist => &[],
                };
                let values = values
                    .iter()
                    .map(|value| size_of::<String>() + block(value));
                size_of::<Requirement>() + block(key) + values.sum::<usize>()
            });
        weights.sum()
    }

    /// Whether an object with these labels is selected.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = label(&requirement.key);
            match &requirement.operator {
                Operator::In(values) => value.is_some_and(|v| values.iter().any(|x| x == v)),
                // As in Kubernetes, an object without the label is selected.
                Operator::NotIn(values) => value.is_none_or(|v| values.iter().all(|x| x != v)),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        })
    }

    /// Whether the other selects whatever this one selects, as far as single requirements
    /// tell: each of the other's follows from one of these. Where that takes several of
    /// them together, it says no.
    pub fn is_within(&self, other: &Self) -> bool {
        let follows = |wanted: &Requirement| {
            let said = self.requirements.iter();
            let mut said = said.filter(|said| said.key == wanted.key);
            said.any(|said| said.operator.implies(&wanted.operator))
        };
        other.requirements.iter().all(follows)
    }

    /// Labels that whatever is selected carries, by key and value: there may be more
    /// to be said of it.
    pub fn demands(&self) -> impl Iterator<Item = (&str, &str)> {
        let requirements = self.requirements.iter();
        requirements.filter_map(|requirement| match &requirement.operator {
            Operator::In(values) => match &values[..] {
                [value] => Some((requirement.key.as_str(), value.as_str())),
                _ => None,
            },
            _ => None,
        })
    }

    /// The selector as an expression of CEL, over a map of labels that is named by
    /// the expression `labels`. Keys and values of labels need no escaping.
    pub fn to_cel(&self, labels: &str) -> String {
        let set = |values: &[String]| {
            let values: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
            format!("[{}]", values.join(", "))
        };
        let requirements = self
            .requirements
            .iter()
            .map(|Requirement { key, operator }| {
                let has = format!("'{key}' in {labels}");
                match operator {
                    Operator::In(values) => {
                        format!("({has} && {labels}['{key}'] in {})", set(values))
                    }
                    Operator::NotIn(values) => {
                        format!("(!({has}) || !({labels}['{key}'] in {}))", set(values))
                    }
                    Operator::Exists => format!("({has})"),
                    Operator::DoesNotExist => format!("(!({has}))"),
                }
            });
        let requirements: Vec<String> = requirements.collect();
        if requirements.is_empty() {
            return "true".to_owned();
        }
        requirements.join(" && ")
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem: String| SelectorError {
            selector: text.to_owned(),
            problem,
        };
        if text.len() > MAX_BYTES {
            let shown = text.chars().take(40).collect::<String>();
            return Err(SelectorError {
                selector: format!("{shown}…"),
                problem: format!("{} bytes are more than {MAX_BYTES}", text.len()),
            });
        }
        let mut requirements = Vec::new();
        if trimmed(text).is_empty() {
            return Ok(Self { requirements });
        }
        for part in split_requirements(text) {
            requirements.push(parse_requirement(trimmed(part)).map_err(error)?);
        }
        Ok(Self { requirements })
    }
}

/// What the API server takes for space: no other characters that Unicode counts as such.
const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

fn trimmed(text: &str) -> &str {
    text.trim_matches(SPACE)
}

/// Splits at commas that are not inside of parentheses.
fn split_requirements(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_requirement(text: &str) -> Result<Requirement, String> {
    if text.is_empty() {
        return Err("a requirement is missing beside a comma".to_owned());
    }
    if let Some(key) = text.strip_prefix('!') {
        return requirement(key, Operator::DoesNotExist);
    }
    if let Some((key, value)) = text.split_once("!=") {
        return requirement(key, Operator::NotIn(vec![label_value(value)?]));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return requirement(key, Operator::In(vec![label_value(value)?]));
    }
    let Some((key, rest)) = text.split_once(SPACE) else {
        return requirement(text, Operator::Exists);
    };
    let rest = trimmed(rest);
    let (negated, set) = if let Some(set) = rest.strip_prefix("notin") {
        (true, set)
    } else if let Some(set) = rest.strip_prefix("in") {
        (false, set)
    } else {
        return Err(format!("expected `in` or `notin` after `{key}`"));
    };
    let values = trimmed(set)
        .strip_prefix('(')
        .and_then(|set| set.strip_suffix(')'))
        .ok_or_else(|| format!("expected values in parentheses after `{key}`"))?
        .split(',')
        .map(label_value)
        .collect::<Result<Vec<_>, _>>()?;
    let operator = if negated {
        Operator::NotIn(values)
    } else {
        Operator::In(values)
    };
    requirement(key, operator)
}

fn requirement(key: &str, operator: Operator) -> Result<Requirement, String> {
    let key = trimmed(key);
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    let prefix_fits = key
        .rsplit_once('/')
        .is_none_or(|(prefix, _)| crate::manifest::is_dns_subdomain(prefix));
    if name.is_empty() || !prefix_fits || !is_qualified_part(name) {
        return Err(format!("`{key}` is no label key"));
    }
    Ok(Requirement {
        key: key.to_owned(),
        operator,
    })
}

fn label_value(text: &str) -> Result<String, String> {
    let value = trimmed(text);
    if !value.is_empty() && !is_qualified_part(value) {
        return Err(format!("`{value}` is no label value"));
    }
    Ok(value.to_owned())
}

/// The syntax that names of labels and their values share.
pub(crate) fn is_qualified_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Requirement { key, operator }) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match operator {
                Operator::In(values) if values.len() == 1 => write!(f, "{key}={}", values[0])?,
                Operator::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", values[0])?,
                Operator::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Operator::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
                Operator::Exists => f.write_str(key)?,
                Operator::DoesNotExist => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Selector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SELECTORS: [&str; 16] = [
        "",
        "a",
        "!a",
        "a=x",
        "a=y",
        "a!=x",
        "a in (x,y)",
        "a in (y,z)",
        "a notin (x,y)",
        "a notin (y)",
        "b",
        "b=x",
        "a=x,b=x",
        "a,b",
        "a,a!=x",
        "!a,b",
    ];

    #[test]
    fn what_is_within_another_is_told() {
        for (one, other, expected) in [
            ("a=x", "", true),
            ("", "a=x", false),
            ("a=x", "a", true),
            ("a", "a=x", false),
            ("a in (x,y)", "a", true),
            ("a=x", "a in (x,y)", true),
            ("a in (x,y)", "a=x", false),
            ("a=x", "a!=y", true),
            ("a=x", "a!=x", false),
            ("!a", "a!=x", true),
            ("a!=x", "!a", false),
            ("a notin (x,y)", "a!=y", true),
            ("a!=y", "a notin (x,y)", false),
            ("a=x,b=x", "b,a", true),
            ("a=x", "a,b", false),
            ("b=x", "a=x", false),
        ] {
            let [one, other] = [one, other].map(|text| text.parse::<Selector>().unwrap());
            assert_eq!(one.is_within(&other), expected, "{one} within {other}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_within_another_is_selected_by_it(
            one in prop::sample::select(SELECTORS.to_vec()),
            other in prop::sample::select(SELECTORS.to_vec()),
            a in prop::option::of(prop::sample::select(vec!["x", "y", "z", ""])),
            b in prop::option::of(prop::sample::select(vec!["x", "y"])),
        ) {
            let [one, other] = [one, other].map(|text| text.parse::<Selector>().unwrap());
            let label = |key: &str| if key == "a" { a } else { b };
            prop_assert!(
                !one.is_within(&other) || !one.matches(label) || other.matches(label),
                "{one} within {other}, {a:?} {b:?}"
            );
        }
    }

    #[test]
    fn cel_says_the_same() {
        for (text, expected) in [
            ("", "true"),
            ("a=b", "('a' in l && l['a'] in ['b'])"),
            ("x/a in (b,c)", "('x/a' in l && l['x/a'] in ['b', 'c'])"),
            (
                "a!=b,c",
                "(!('a' in l) || !(l['a'] in ['b'])) && ('c' in l)",
            ),
            ("!a", "(!('a' in l))"),
        ] {
            assert_eq!(text.parse::<Selector>().unwrap().to_cel("l"), expected);
        }
    }

    #[test]
    fn selects_as_kubectl_does() {
        let labels = |key: &str| match key {
            "app" => Some("web"),
            "example.com/tier" => Some("front"),
            "empty" => Some(""),
            _ => None,
        };
        for (text, selected) in [
            ("", true),
            ("app=web", true),
            ("app == web", true),
            ("app=db", false),
            ("app!=db", true),
            ("app!=web", false),
            ("other!=x", true),
            ("app in (db, web)", true),
            ("app notin (db,web)", false),
            ("other notin (a)", true),
            ("app", true),
            ("!app", false),
            ("!other", true),
            ("app=web,example.com/tier=front", true),
            ("app=web,example.com/tier in (back)", false),
            ("empty=", true),
        ] {
            let selector: Selector = text.parse().unwrap();
            assert_eq!(selector.matches(labels), selected, "{text}");
            let again: Selector = selector.to_string().parse().unwrap();
            assert_eq!(again, selector, "{text} does not survive printing");
        }
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in [
            "a=\u{b}", "\u{a0}", "a=b,", "a in", "a in (", "a like b", "=b", "a=b c", "-a",
            "x/y/z=1",
        ] {
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
    }

    #[test]
    fn text_has_a_length_and_requirements_have_weight() {
        let many = |text: &str, count: usize| vec![text; count].join(",");
        let longest: Selector = many("a", MAX_BYTES / 2).parse().unwrap();
        assert!(longest.weight() > MAX_BYTES * 20, "{}", longest.weight());
        let empty_values = format!("a in ({})", ",".repeat(1_000));
        let values: Selector = empty_values.parse().unwrap();
        assert!(values.weight() > 1_000 * 24);
        assert_eq!(Selector::default().weight(), 0);
        let error = many("é", MAX_BYTES).parse::<Selector>().unwrap_err();
        let text = error.to_string();
        assert!(
            text.ends_with("more than 4096") && text.len() < 200,
            "{text}"
        );
    }
}
