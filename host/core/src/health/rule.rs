//! Rules for kinds that we do not know, written in CEL.
//!
//! The shape is that of Flux's `healthCheckExprs`, whose names are understood
//! too. Of CEL there are the standard functions and macros; the extensions of
//! Kubernetes are left out, because some of them build values of any size.

mod cost;
mod expression;

use super::object::readable;
use super::{Health, HealthStatus};
use expression::{Expression, MAX_COST, MAX_DEPTH, MAX_LENGTH, MAX_NESTING, MAX_NODES, Problem};
use kube_cel::cel::{self, Value as CelValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A rule as it is written down. Each expression is CEL and results in a bool,
/// but for the message, which results in a string.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RuleText {
    /// When it is healthy (Flux: `current`).
    #[serde(alias = "current")]
    pub healthy: String,
    /// When it has failed (Flux: `failed`).
    #[serde(default, alias = "failed", skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// When it is on its way whatever else holds (Flux: `inProgress`).
    #[serde(default, alias = "inProgress", skip_serializing_if = "Option::is_none")]
    pub progressing: Option<String>,
    /// When it waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<String>,
    /// What to say about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A rule, ready to be evaluated.
///
/// Expressions are asked in this order, and the first that is true decides:
/// suspended, progressing, degraded, healthy. None true means progressing. One
/// that fails, for want of a field for example, is not true.
///
/// They see the object as `self`, and its top-level fields by their names:
/// `status.phase == 'Ready'` is `self.status.phase == 'Ready'`. `metadata`,
/// `spec` and `status` are there also when the object lacks them, empty.
#[derive(Clone)]
pub struct Rule {
    text: Arc<RuleText>,
    /// In the order in which they are asked.
    questions: Vec<(HealthStatus, Expression)>,
    message: Option<Expression>,
}

/// Why a rule cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It is neither CEL nor a JSON object of expressions.
    #[error(
        "health rule: {0}; expected one CEL expression, or a JSON object with `healthy` and, if needed, `degraded`, `progressing`, `suspended`, `message`"
    )]
    Shape(String),
    /// An expression is longer than is accepted.
    #[error("health rule: `{name}` has {length} bytes; at most {MAX_LENGTH} are accepted")]
    TooLong {
        /// Which one.
        name: &'static str,
        /// Its length.
        length: usize,
    },
    /// An expression nests deeper than is accepted, or has more parts.
    #[error(
        "health rule: `{name}` is too deep or too large; at most {MAX_NESTING} brackets in each other, {MAX_DEPTH} operators in a chain and {MAX_NODES} parts are accepted"
    )]
    TooLarge {
        /// Which one.
        name: &'static str,
    },
    /// An expression is no CEL.
    #[error("health rule: `{name}` is no CEL: {problem}")]
    Syntax {
        /// Which one.
        name: &'static str,
        /// What the parser says.
        problem: String,
    },
    /// An expression uses something that is not offered.
    #[error("health rule: `{name}` uses {what}, which is not offered here")]
    NotOffered {
        /// Which one.
        name: &'static str,
        /// What it uses.
        what: String,
    },
}

impl Rule {
    /// Parses a rule: one expression, which says when the object is healthy, or
    /// the JSON of a [`RuleText`].
    ///
    /// # Errors
    ///
    /// When it is neither, or one of its expressions cannot be used.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| RuleError::Shape(error.to_string()))?
        } else {
            RuleText {
                healthy: text.to_owned(),
                ..RuleText::default()
            }
        };
        Self::try_from(text)
    }

    /// What it was made from.
    pub fn text(&self) -> &RuleText {
        &self.text
    }

    /// What it says about an object.
    pub fn evaluate(&self, object: &Value) -> Health {
        let size = cost::largest(object);
        let mut context = cel::Context::default();
        for (name, value) in object.as_object().into_iter().flatten() {
            set(&mut context, name, value);
        }
        let nothing = Value::Object(serde_json::Map::new());
        for name in ["metadata", "spec", "status"] {
            if object.get(name).is_none_or(Value::is_null) {
                set(&mut context, name, &nothing);
            }
        }
        set(&mut context, "self", object);

        let mut problem = None;
        for (status, expression) in &self.questions {
            match expression.ask(&context, size) {
                Ok(CelValue::Bool(true)) => {
                    return Health::new(*status, self.say(&context, size));
                }
                Ok(CelValue::Bool(false)) => {}
                Ok(_) => {
                    let name = expression.name;
                    return Health::unknown(format!("health rule: `{name}` is no bool"));
                }
                Err(Problem::TooCostly(cost)) => {
                    let name = expression.name;
                    return Health::unknown(format!(
                        "health rule: `{name}` might take {cost} steps on an object of this \
                         size; at most {MAX_COST} are taken"
                    ));
                }
                Err(Problem::Failed(text)) => {
                    problem = Some(format!("health rule: `{}`: {text}", expression.name));
                }
            }
        }
        let said = self.say(&context, size);
        let otherwise = || problem.unwrap_or_else(|| "its health rule does not hold yet".into());
        Health::progressing(
            Some(said)
                .filter(|said| !said.is_empty())
                .unwrap_or_else(otherwise),
        )
    }

    fn say(&self, context: &cel::Context<'_>, size: u64) -> String {
        match self
            .message
            .as_ref()
            .map(|message| message.ask(context, size))
        {
            Some(Ok(CelValue::String(text))) => readable(&text),
            _ => String::new(),
        }
    }
}

impl TryFrom<RuleText> for Rule {
    type Error = RuleError;

    fn try_from(text: RuleText) -> Result<Self, Self::Error> {
        let mut questions = Vec::new();
        for (status, name, source) in [
            (
                HealthStatus::Suspended,
                "suspended",
                text.suspended.as_deref(),
            ),
            (
                HealthStatus::Progressing,
                "progressing",
                text.progressing.as_deref(),
            ),
            (HealthStatus::Degraded, "degraded", text.degraded.as_deref()),
            (
                HealthStatus::Healthy,
                "healthy",
                Some(text.healthy.as_str()),
            ),
        ] {
            if let Some(source) = source {
                questions.push((status, Expression::compile(name, source)?));
            }
        }
        let message = text.message.as_deref();
        Ok(Self {
            message: message
                .map(|source| Expression::compile("message", source))
                .transpose()?,
            questions,
            text: Arc::new(text),
        })
    }
}

/// Adds a variable. A value that CEL has no form for is left out; there is none
/// in JSON.
fn set(context: &mut cel::Context<'_>, name: &str, value: &Value) {
    if let Ok(value) = cel::to_value(value) {
        context.add_variable_from_value(name, value);
    }
}

/// Shows the text: a program has no form worth reading.
impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// Rules are equal when they say the same.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::{check_in, context};
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn check(rule: &str, object: &Value, status: HealthStatus, message: &str) {
        let rule = Rule::parse(rule).unwrap_or_else(|error| panic!("{rule}: {error}"));
        let mut context = context();
        context.rule = Some(&rule);
        check_in(object, &context, status, message);
    }

    #[test]
    fn one_expression_says_when_it_is_healthy() {
        let object = json!({"kind": "Cluster", "spec": {"size": 3},
            "status": {"phase": "Ready", "nodes": [{"up": true}, {"up": true}]}});
        let waits = "its health rule does not hold yet";
        for (rule, status, message) in [
            ("status.phase == 'Ready'", Healthy, ""),
            (
                "self.status.phase == 'Ready' && size(status.nodes) == 2",
                Healthy,
                "",
            ),
            ("status.nodes.all(node, node.up)", Healthy, ""),
            ("size(status.nodes) >= spec.size", Progressing, waits),
            ("has(status.error)", Progressing, waits),
            (
                "status.ready",
                Progressing,
                "health rule: `healthy`: No such key: ready",
            ),
            (
                "status.phase",
                HealthStatus::Unknown,
                "health rule: `healthy` is no bool",
            ),
        ] {
            check(rule, &object, status, message);
        }
        // A status that is not there yet is empty.
        check(
            "has(status.phase)",
            &json!({"kind": "Cluster"}),
            Progressing,
            waits,
        );
    }

    #[test]
    fn several_expressions_are_asked_in_order() {
        let rule = r#"{
            "suspended": "has(spec.paused) && spec.paused",
            "inProgress": "status.phase == 'Rolling'",
            "failed": "status.phase == 'Broken'",
            "current": "status.phase == 'Ready'",
            "message": "'phase ' + status.phase"
        }"#;
        let object = |phase: &str, paused: bool| json!({"kind": "Cluster", "spec": {"paused": paused}, "status": {"phase": phase}});
        for (phase, paused, status) in [
            ("Ready", false, Healthy),
            ("Ready", true, Suspended),
            ("Rolling", false, Progressing),
            ("Broken", false, Degraded),
            ("Other", false, Progressing),
        ] {
            let message = format!("phase {phase}");
            check(rule, &object(phase, paused), status, &message);
        }
    }

    #[test]
    fn a_rule_replaces_that_of_the_kind_but_not_the_generation() {
        let object = json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"generation": 2}, "status": {"observedGeneration": 2, "active": 1}});
        check("status.active > 0", &object, Healthy, "");
        let behind = json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"generation": 2}, "status": {"observedGeneration": 1, "active": 1}});
        let message = "its status is of generation 1, not yet of 2";
        check("status.active > 0", &behind, Progressing, message);
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_a_reason() {
        let deep = format!("{}true{}", "(".repeat(40), ")".repeat(40));
        let long = format!("'{}' == ''", "x".repeat(MAX_LENGTH));
        let many = vec!["1 == 1"; 250].join("&&");
        let chain = vec!["1"; 60].join("+");
        for (rule, expected) in [
            ("status.", "health rule: `healthy` is no CEL"),
            ("", "health rule: `healthy` is empty; expected one CEL"),
            (
                "{\"degraded\": \"true\"}",
                "health rule: missing field `healthy`",
            ),
            (
                "{\"healthy\": \"true\", \"x\": 1}",
                "health rule: unknown field `x`",
            ),
            (
                "{\"healthy\": \"true\", \"message\": \"(\"}",
                "health rule: `message` is no CEL",
            ),
            (
                "Foo{a: 1} == Foo{a: 1}",
                "health rule: `healthy` uses the type Foo, which",
            ),
            (
                "status.x.flatten() == []",
                "health rule: `healthy` uses the function flatten, which",
            ),
            (&deep, "health rule: `healthy` is too deep or too large"),
            (&long, "health rule: `healthy` has 2056 bytes; at most 2048"),
            (&many, "health rule: `healthy` is too deep or too large"),
            (&chain, "health rule: `healthy` is too deep or too large"),
        ] {
            let error = Rule::parse(rule).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{rule}: {error}");
        }
    }

    #[test]
    fn work_is_bounded_by_the_size_of_the_object() {
        let rule = "status.items.all(a, status.items.exists(b, status.items.exists(c, c == a)))";
        let small = json!({"kind": "List", "status": {"items": vec![1; 20]}});
        check(rule, &small, Healthy, "");
        let large = json!({"kind": "List", "status": {"items": vec![1; 2000]}});
        let mut context = context();
        let rule = Rule::parse(rule).unwrap();
        context.rule = Some(&rule);
        let found = super::super::health(&large, &context);
        assert_eq!(found.status, HealthStatus::Unknown);
        assert!(
            found.message.contains("at most 1000000 are taken"),
            "{}",
            found.message
        );
    }

    #[test]
    fn what_is_just_within_the_bounds_works() {
        let object = json!({"kind": "List", "status": {}});
        let deep = format!("{}true{}", "(".repeat(MAX_NESTING), ")".repeat(MAX_NESTING));
        check(&deep, &object, Healthy, "");
        // Comparison, additions and the number at the end.
        let chain = vec!["1"; MAX_DEPTH - 1].join("+");
        check(
            &format!("{chain} == {}", MAX_DEPTH - 1),
            &object,
            Healthy,
            "",
        );
        let open = "string(".repeat(MAX_NESTING);
        assert!(matches!(Rule::parse(&open), Err(RuleError::Syntax { .. })));
    }

    #[test]
    fn the_text_comes_back() {
        let rule = Rule::parse(r#"{"current": "true", "failed": "false"}"#).unwrap();
        let text = serde_json::to_string(rule.text()).unwrap();
        assert_eq!(text, r#"{"healthy":"true","degraded":"false"}"#);
        assert_eq!(Rule::parse(&text).unwrap(), rule);
    }

    /// Text that is nearly CEL.
    fn nearly_cel() -> impl Strategy<Value = String> {
        let words = prop::sample::select(vec![
            "status",
            "self",
            ".",
            "a",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "&&",
            "||",
            "!",
            "-",
            "==",
            "<",
            "+",
            "/",
            "%",
            "?",
            ":",
            ",",
            "'x'",
            "b'x'",
            "1",
            "0",
            "9223372036854775807",
            "1u",
            "1.5",
            "true",
            "null",
            "has(",
            "size(",
            ".map(x, ",
            ".all(x, ",
            ".filter(x, ",
            "matches(",
            "timestamp(",
            "duration(",
            "string(",
            "int(",
            "in",
            "x",
            "\\",
            "\"",
            ".exists_one(x, ",
            "max(",
            "optional.of(",
            "?.",
            "[?",
            "type(",
            "bytes(",
            "Foo{",
        ]);
        prop::collection::vec(words, 0..24).prop_map(|words| words.concat())
    }

    proptest! {
        #[test]
        fn no_text_ends_the_program(text in prop_oneof![nearly_cel(), ".{0,40}"]) {
            if let Ok(rule) = Rule::parse(&text) {
                let object = json!({"status": {"a": [1, "x", null, {"x": 1.5}]}});
                let _ = rule.evaluate(&object);
            }
        }
    }
}
