//! Label selectors: `app=web,tier in (a,b),!legacy,size>3`.

mod parser;

use std::fmt;

use serde_json::{Map, Value};

use self::parser::Parser;
use crate::field::{Errors, FieldError, Path};
use crate::names;

/// A conjunction of requirements on an object's labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// One requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted, without repeats.
    values: Vec<String>,
}

/// What a requirement asks of its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equals,
    /// `==`
    DoubleEquals,
    /// `!=`: absent or another value.
    NotEquals,
    /// `in (…)`
    In,
    /// `notin (…)`: absent or another value.
    NotIn,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `>`, on integers.
    GreaterThan,
    /// `<`, on integers.
    LessThan,
}

/// Why a text is no label selector, in the server's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelSelectorError {
    /// A token where something else should stand.
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        /// The token.
        found: String,
        /// What could have stood there.
        expected: &'static str,
    },
    /// No list of values after `in` or `notin`.
    #[error("found '{found}' expected: '('")]
    NoValues {
        /// The token.
        found: String,
    },
    /// A key or value that no label can have.
    #[error("{0}")]
    Invalid(String),
    /// Something wrong inside a requirement.
    #[error("unable to parse requirement: {0}")]
    Requirement(Box<LabelSelectorError>),
    /// An operator of a structured selector that does not exist.
    #[error("\"{0}\" is not a valid label selector operator")]
    Operator(String),
}

impl LabelSelector {
    /// Parses the text of a `labelSelector` parameter; the empty text selects
    /// everything.
    ///
    /// # Errors
    ///
    /// With the text that the server answers.
    pub fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        Parser::new(text).selector()
    }

    /// Reads a `LabelSelector` object (`matchLabels`, `matchExpressions`). An
    /// empty one selects everything; what an absent one means is the caller's.
    ///
    /// # Errors
    ///
    /// For unknown operators and keys or values that no label can have.
    pub fn from_object(selector: &Value) -> Result<Self, LabelSelectorError> {
        let mut requirements = Vec::new();
        if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
            for (key, value) in labels {
                let value = value.as_str().unwrap_or_default().to_owned();
                requirements.push(Requirement::new(key, Operator::Equals, vec![value])?);
            }
        }
        let expressions = selector.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.into_iter().flatten() {
            let text = |name| expression.get(name).and_then(Value::as_str);
            let operator = match text("operator").unwrap_or_default() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(LabelSelectorError::Operator(other.to_owned())),
            };
            let values = expression.get("values").and_then(Value::as_array);
            let values = values
                .into_iter()
                .flatten()
                .filter_map(|v| v.as_str().map(str::to_owned))
                .collect();
            let key = text("key").unwrap_or_default();
            requirements.push(Requirement::new(key, operator, values)?);
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(LabelSelector { requirements })
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements, all of which must hold.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object with these `metadata.labels` is selected.
    pub fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.selects(|key| labels?.get(key)?.as_str())
    }

    /// Whether an object is selected of which `label` says the value of a label.
    pub fn selects<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|r| r.holds(label(&r.key)))
    }

    /// Whether the object is selected.
    pub fn matches_object(&self, object: &Value) -> bool {
        self.is_empty()
            || self.matches(
                object
                    .pointer("/metadata/labels")
                    .and_then(Value::as_object),
            )
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl Requirement {
    /// A checked requirement.
    ///
    /// # Errors
    ///
    /// For keys, values and numbers of values that cannot be.
    pub fn new(
        key: &str,
        operator: Operator,
        mut values: Vec<String>,
    ) -> Result<Self, LabelSelectorError> {
        values.sort();
        values.dedup();
        let mut errors = Errors::new();
        if let Some(error) = key_error(&Path::new("key"), key) {
            errors.push(error);
        }
        let path = Path::new("values");
        let printed = Value::from(values.clone());
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                errors.push(FieldError::invalid(
                    &path,
                    &printed,
                    "for 'in', 'notin' operators, values set can't be empty",
                ));
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                errors.push(FieldError::invalid(
                    &path,
                    &printed,
                    "values set must be empty for exists and does not exist",
                ));
            }
            Operator::GreaterThan | Operator::LessThan => {
                for (index, value) in values.iter().enumerate() {
                    if value.parse::<i64>().is_err() {
                        errors.push(FieldError::invalid_str(
                            &path.index(index),
                            value,
                            "for 'Gt', 'Lt' operators, the value must be an integer",
                        ));
                    }
                }
            }
            _ => {}
        }
        for (index, value) in values.iter().enumerate() {
            let wrong = names::label_value(value);
            if !wrong.is_empty() {
                let at = path.index(index);
                errors.push(FieldError::invalid_str(
                    &at.key(key),
                    value,
                    wrong.join("; "),
                ));
            }
        }
        if errors.is_empty() {
            Ok(Requirement {
                key: key.to_owned(),
                operator,
                values,
            })
        } else {
            Err(LabelSelectorError::Invalid(errors.aggregate()))
        }
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is asked of the label.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values it is compared with, sorted.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether a label with this value, or an absent one, is as required.
    pub fn holds(&self, label: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|v| v == value);
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = self.values.first().and_then(|v| number(v));
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => label.is_some_and(listed),
            Operator::NotEquals | Operator::NotIn => !label.is_some_and(listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => {
                matches!((label.and_then(number), bound), (Some(n), Some(b)) if n > b)
            }
            Operator::LessThan => {
                matches!((label.and_then(number), bound), (Some(n), Some(b)) if n < b)
            }
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.values.join(",");
        let key = &self.key;
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// The complaint about a key, its messages joined.
fn key_error(path: &Path<'_>, key: &str) -> Option<FieldError> {
    let wrong = names::qualified_name(key);
    (!wrong.is_empty()).then(|| FieldError::invalid_str(path, key, wrong.join("; ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn matching() {
        let labels = json!({"app": "web", "tier": "a", "size": "5", "in": "notin", "e": ""});
        let check = |text: &str, matches: bool| {
            let selector = LabelSelector::parse(text).unwrap();
            assert_eq!(selector.matches(labels.as_object()), matches, "{text:?}");
            let printed = selector.to_string();
            assert_eq!(LabelSelector::parse(&printed), Ok(selector), "{printed}");
        };
        check("", true);
        check("app=web", true);
        check("app==web,tier=a", true);
        check("app=web,tier=b", false);
        check("app!=web", false);
        check("none!=web", true);
        check("app", true);
        check("!app", false);
        check("! none", true);
        check("none", false);
        check("app in (web,api)", true);
        check("app in (api)", false);
        check("app notin (api)", true);
        check("none notin (api)", true);
        check("none in (,)", false);
        check("e in ()", true);
        check("e=", true);
        check("e in (a,)", true);
        check("e in (a,,b)", true);
        check("size>4", true);
        check("size>5", false);
        check("size<6", true);
        check("app>1", false);
        check("in=notin", true);
        check("in in (in, notin)", true);
        check(" app = web ,\ttier", true);
        check("e=,app=web", true);
    }

    #[test]
    fn error_texts() {
        let check = |text: &str, error: &str| {
            let found = LabelSelector::parse(text).unwrap_err().to_string();
            assert_eq!(found, error, "{text:?}");
        };
        check("a==b=c", "found '=', expected: ',' or 'end of string'");
        check(
            "=",
            "found '=', expected: !, identifier, or 'end of string'",
        );
        check("a,", "found '', expected: identifier after ','");
        check("a,=", "found '=', expected: identifier after ','");
        check(
            "a in b",
            "unable to parse requirement: found 'b' expected: '('",
        );
        check(
            "a foo b",
            "unable to parse requirement: found 'foo', expected: in, notin, =, ==, !=, gt, lt",
        );
        check(
            "a in (b",
            "unable to parse requirement: found '', expected: ',' or ')'",
        );
        check(
            "a in (b,",
            "unable to parse requirement: found '', expected: ',', or identifier",
        );
        check(
            "a in (=",
            "unable to parse requirement: found '=', expected: ',', ')' or identifier",
        );
        check("!a=b", "found '=', expected: ',' or 'end of string'");
        check(
            "!",
            "unable to parse requirement: found '', expected: identifier",
        );
        check("a=b c", "found 'c', expected: ',' or 'end of string'");
        check(
            "a>1x",
            "unable to parse requirement: values[0]: Invalid value: \"1x\": for 'Gt', 'Lt' \
             operators, the value must be an integer",
        );
        check(
            "a=_x",
            "unable to parse requirement: values[0][a]: Invalid value: \"_x\": a valid label must \
             be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
             '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        );
        check(
            "_x",
            "unable to parse requirement: <nil>: Invalid value: \"_x\": name part must consist of \
             alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
             validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        );
    }

    #[test]
    fn structured_selectors() {
        let selector = LabelSelector::from_object(&json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }))
        .unwrap();
        assert_eq!(selector.to_string(), "app=web,!old,tier in (a,b)");
        let matches = |labels| selector.matches_object(&json!({"metadata": {"labels": labels}}));
        assert!(matches(json!({"app": "web", "tier": "a"})));
        assert!(!matches(json!({"app": "web"})));
        assert!(!matches(json!({"app": "web", "tier": "a", "old": ""})));
        let wrong = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
        assert!(LabelSelector::from_object(&wrong).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in "[ab!=<>(), ]{0,16}|in |notin|.{0,12}") {
            if let Ok(selector) = LabelSelector::parse(&text) {
                let again = LabelSelector::parse(&selector.to_string());
                proptest::prop_assert_eq!(again, Ok(selector));
            }
        }
    }
}
