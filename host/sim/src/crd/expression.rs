//! CEL rules of a schema (`x-kubernetes-validations`).

mod declared;
mod extents;
mod sets;
mod values;

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use kube_cel::cel::parser::Expression;
use kube_cel::cel::{Context, Value as Cel};
use serde_json::Value;

pub(super) use self::declared::declared;
pub(super) use self::extents::{extent, whole};
use self::values::Shape;
use crate::cel::{self, Budget, Environment, Exceeded, Extent, Facts, Failure, Lists, Type};
use crate::field::{ErrorType, Errors, FieldError, Path, printed, quoted};
use crate::kinds::edit::{flag, items, text};

/// The rules of one schema, compiled. Those of the schemas below are checked where the
/// change of a list's item can be followed.
pub(super) struct Rules {
    shape: Shape,
    /// The lists that are no plain ones, where operators are on them.
    lists: Vec<Lists>,
    is_deep: bool,
    /// The type of the schema, as it is written.
    ty: String,
    rules: Vec<Rule>,
}

struct Rule {
    /// What a message calls it: the expression, without the space around it.
    name: String,
    /// The expression; one that does not compile is refused with its definition.
    program: Result<Expression, String>,
    /// Whether it is about the change.
    is_transition: bool,
    /// Whether it is also checked where nothing was before.
    is_optional: bool,
    message: Option<String>,
    message_program: Option<Expression>,
    reason: ErrorType,
    /// Where the error is, below the value.
    field: String,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.rules.iter().map(|rule| &rule.name);
        f.debug_list().entries(names).finish()
    }
}

const FIELD: &str = "x-kubernetes-validations";
/// The longest message that an expression makes, in bytes.
const LONGEST_MESSAGE: usize = 5 * 1024;

thread_local! {
    /// All functions, of the language and of Kubernetes.
    static FUNCTIONS: Context<'static> = cel::context();
}

fn compile(expression: &str) -> Result<Expression, String> {
    compile_with(expression, &Lists::default(), &mut Vec::new())
}

/// As `compile`, where values have lists that are no plain ones: `known` are those that
/// the expression refers to.
fn compile_with(
    expression: &str,
    lists: &Lists,
    known: &mut Vec<Lists>,
) -> Result<Expression, String> {
    let mut compiled = cel::parse(expression)?;
    cel::optional::rewrite(&mut compiled);
    sets::name(&mut compiled, lists, known);
    cel::make_ready(&mut compiled);
    Ok(compiled)
}

/// What is wrong with a rule, and what it costs.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// With its expression.
    pub(super) rule: Option<String>,
    /// With the expression that makes its message.
    pub(super) message: Option<String>,
    /// Whether it is about the change of a value.
    pub(super) uses_old: bool,
    /// What one evaluation costs at most; nothing where it cannot be evaluated.
    pub(super) cost: u64,
    /// The same of the expression that makes its message, where there is one.
    pub(super) cost_of_message: Option<u64>,
}

/// Looks into a rule about values of a type, which are so large.
pub(super) fn check(rule: &Value, ty: &Type, extent: &Extent) -> Checked {
    let old = if flag(rule, "optionalOldSelf") {
        Type::optional(ty.clone())
    } else {
        ty.clone()
    };
    let environment = Environment::default()
        .with("self", ty.clone())
        .with("oldSelf", old);
    let mut checked = Checked::default();
    let expression = text(rule, "rule");
    let parsed = match typed(expression, &environment) {
        Ok((parsed, Type::Bool, facts)) => {
            checked.cost = cel::cost(&parsed, &facts, &environment, extent);
            parsed
        }
        Ok(_) => {
            checked.rule = Some("cel expression must evaluate to a bool".to_owned());
            return checked;
        }
        Err(why) => {
            checked.rule = Some(format!("compilation failed: {why}"));
            return checked;
        }
    };
    checked.uses_old = parsed.references().has_variable("oldSelf");
    checked.message = match text(rule, "messageExpression") {
        "" => None,
        expression => match typed(expression, &environment) {
            Ok((parsed, Type::Text, facts)) => {
                checked.cost_of_message = Some(cel::cost(&parsed, &facts, &environment, extent));
                None
            }
            Ok(_) => Some("messageExpression must evaluate to a string".to_owned()),
            Err(why) => Some(format!("messageExpression compilation failed: {why}")),
        },
    };
    checked
}

/// An expression with its type, and what is known of its parts.
fn typed(expression: &str, environment: &Environment) -> Result<(Expression, Type, Facts), String> {
    let parsed = cel::parse(expression)?;
    let (ty, facts) = cel::checked(&parsed, expression, environment)?;
    Ok((parsed, ty, facts))
}

/// Calls that make values which there is no other way to.
static CALLS: LazyLock<HashMap<&'static str, Expression>> = LazyLock::new(|| {
    let compiled = |call: &'static str| Some((call, compile(call).ok()?));
    [TIMESTAMP, DURATION, SOMETHING, NOTHING]
        .into_iter()
        .filter_map(compiled)
        .collect()
});
const TIMESTAMP: &str = "timestamp(x)";
const DURATION: &str = "duration(x)";
const SOMETHING: &str = "optional.of(x)";
const NOTHING: &str = "optional.none()";

/// What one of the calls makes of `x`, where it takes it.
fn called(call: &str, x: Cel) -> Option<Cel> {
    let call = CALLS.get(call)?;
    FUNCTIONS.with(|functions| {
        let mut context = functions.new_inner_scope();
        context.add_variable_from_value("x", x);
        Cel::resolve(call, &context).ok()
    })
}

/// A value that may be absent, as rules see it.
fn optional(value: Option<Cel>) -> Cel {
    let made = match value {
        Some(value) => called(SOMETHING, value),
        None => called(NOTHING, Cel::Null),
    };
    made.unwrap_or(Cel::Null)
}

impl Rule {
    fn parse(rule: &Value, lists: &Lists, known: &mut Vec<Lists>) -> Self {
        let expression = text(rule, "rule");
        let program = compile_with(expression, lists, known);
        let message = text(rule, "message").trim();
        Rule {
            name: expression.trim().to_owned(),
            is_transition: program
                .as_ref()
                .is_ok_and(|program| program.references().has_variable("oldSelf")),
            program,
            is_optional: flag(rule, "optionalOldSelf"),
            message: (!message.is_empty()).then(|| message.to_owned()),
            message_program: match text(rule, "messageExpression") {
                "" => None,
                expression => compile_with(expression, lists, known).ok(),
            },
            reason: match text(rule, "reason") {
                "FieldValueForbidden" => ErrorType::Forbidden,
                "FieldValueRequired" => ErrorType::Required,
                "FieldValueDuplicate" => ErrorType::Duplicate,
                _ => ErrorType::Invalid,
            },
            field: text(rule, "fieldPath").trim_start_matches('.').to_owned(),
        }
    }

    fn is_deep(&self) -> bool {
        let message = self.message_program.as_ref();
        let mut programs = self.program.as_ref().ok().into_iter().chain(message);
        programs.any(cel::is_deep)
    }

    /// Why a value breaks the rule: because it is so, or because of what went wrong.
    fn broken(&self, context: &Context<'_>, budget: &mut Budget) -> Option<Broken> {
        let program = match &self.program {
            Ok(program) => program,
            Err(why) => return Some(Broken::Fault(format!("rule compile error: {why}"))),
        };
        let evaluated = match budget.pay(|| Cel::resolve(program, context)) {
            Ok(evaluated) => evaluated,
            Err(Exceeded::Object) => return Some(Broken::Over(USED_UP.to_owned())),
            Err(Exceeded::Call) => {
                return Some(Broken::Over(format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation \
                     rules will be run due to call cost exceeds limit for rule: {}",
                    self.called()
                )));
            }
        };
        match evaluated {
            Ok(Cel::Bool(true)) => None,
            Ok(Cel::Bool(false)) => Some(self.say(context, budget)),
            Ok(_) => Some(Broken::Fault(format!(
                "rule {:?} did not evaluate to bool",
                self.name
            ))),
            Err(error) => Some(Broken::Fault(match Failure::of(&error) {
                Failure::NoOverload(why) => format!(
                    "'{why}': call arguments did not match a supported operator, function or \
                     macro signature for rule: {}",
                    self.called()
                ),
                Failure::Other(why) => format!("{why} evaluating rule: {}", self.called()),
            })),
        }
    }

    fn say(&self, context: &Context<'_>, budget: &mut Budget) -> Broken {
        if let Some(program) = &self.message_program {
            match budget.pay(|| Cel::resolve(program, context)) {
                Ok(Ok(Cel::String(made))) => {
                    let made = made.trim();
                    let fits = made.len() <= LONGEST_MESSAGE && !made.contains(['\n', '\r']);
                    if fits && !made.is_empty() {
                        return Broken::Rule(made.to_owned());
                    }
                }
                Ok(_) => {}
                Err(_) => {
                    let why = "messageExpression evaluation failed due to running out of cost \
                               budget, no further validation rules will be run";
                    return Broken::Over(why.to_owned());
                }
            }
        }
        Broken::Rule(match &self.message {
            Some(message) => message.clone(),
            None => format!("failed rule: {}", self.name),
        })
    }

    /// What faults call it.
    fn called(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.name)
    }
}

enum Broken {
    /// The rule says no, and why.
    Rule(String),
    /// The rule cannot be evaluated.
    Fault(String),
    /// Evaluating rules costs too much; no more of them are.
    Over(String),
}

const USED_UP: &str = "validation failed due to running out of cost budget, no further \
                       validation rules will be run";

impl Rules {
    /// The rules of a schema, if it has some.
    pub(super) fn parse(schema: &Value) -> Option<Self> {
        let (lists, mut known) = (sets::lists(schema), Vec::new());
        let rules = items(schema, FIELD).map(|rule| Rule::parse(rule, &lists, &mut known));
        let rules: Vec<Rule> = rules.collect();
        (!rules.is_empty()).then(|| Rules {
            shape: Shape::of(schema),
            lists: known,
            is_deep: rules.iter().any(Rule::is_deep),
            ty: text(schema, "type").to_owned(),
            rules,
        })
    }

    /// Checks a value, and the change from `old`. What is `unchanged` may break rules
    /// that are not about the change: they may be newer than it. What the rules cost is
    /// paid from the budget of the object; once that is used up, none is checked.
    pub(super) fn check(
        &self,
        path: &Path<'_>,
        value: &Value,
        old: Option<&Value>,
        unchanged: bool,
        budget: &mut Budget,
        errors: &mut Errors,
    ) {
        if budget.is_over() {
            return;
        }
        if self.is_deep {
            let mut found = Errors::new();
            let checked = cel::on_a_large_stack(|| {
                self.check_here(path, value, old, unchanged, budget, &mut found);
            });
            if checked.is_none() {
                let why = "there is no thread to evaluate the rules in; try again";
                found.push(FieldError::internal(path, why));
            }
            errors.extend(found);
        } else {
            self.check_here(path, value, old, unchanged, budget, errors);
        }
    }

    fn check_here(
        &self,
        path: &Path<'_>,
        value: &Value,
        old: Option<&Value>,
        unchanged: bool,
        budget: &mut Budget,
        errors: &mut Errors,
    ) {
        FUNCTIONS.with(|functions| {
            let mut context = functions.new_inner_scope();
            context.add_variable_from_value("self", self.shape.cel(value));
            for (index, lists) in self.lists.iter().enumerate() {
                context.add_variable_from_value(sets::variable(index), lists.clone().value());
            }
            let old = old.map(|old| self.shape.cel(old));
            for rule in &self.rules {
                let mut context = context.new_inner_scope();
                if rule.is_transition {
                    let bound = match &old {
                        old if rule.is_optional => optional(old.clone()),
                        Some(old) => old.clone(),
                        None => continue,
                    };
                    context.add_variable_from_value("oldSelf", bound);
                }
                match rule.broken(&context, budget) {
                    Some(Broken::Rule(_)) if unchanged && !rule.is_transition => {}
                    Some(broken) => errors.push(rule.error(path, &self.ty, value, broken)),
                    None => {}
                }
                if budget.is_over() {
                    return;
                }
            }
        });
    }
}

impl Rule {
    /// What is said of a value whose schema is of a type.
    fn error(&self, path: &Path<'_>, ty: &str, value: &Value, broken: Broken) -> FieldError {
        match broken {
            Broken::Rule(detail) => FieldError {
                value: match self.reason {
                    ErrorType::Forbidden | ErrorType::Required => None,
                    _ => shown(value),
                },
                kind: self.reason,
                field: if self.field.is_empty() {
                    path.to_string()
                } else {
                    path.child(&self.field).to_string()
                },
                // What is there twice needs no words.
                detail: match self.reason {
                    ErrorType::Duplicate => String::new(),
                    _ => detail,
                },
            },
            Broken::Fault(why) | Broken::Over(why) => fault(path, ty, why),
        }
    }
}

/// What is said of a value that a rule could not be evaluated on.
fn fault(path: &Path<'_>, ty: &str, detail: String) -> FieldError {
    FieldError {
        value: Some(quoted(ty)),
        kind: ErrorType::Invalid,
        field: path.to_string(),
        detail,
    }
}

/// The value as a failed rule shows it: maps and lists are too long to show.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Object(_) | Value::Array(_) => None,
        scalar => Some(printed(scalar)),
    }
}

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(rule: &Value, value: &Value, old: Option<&Value>, expected: &[&str]) {
        let schema = json!({
            "type": "object",
            "properties": {
                "my_field": {"type": "integer"},
                "a-b": {"type": "string"},
                "ratio": {"type": "number"},
                "when": {"type": "string", "format": "date-time"},
                "long": {"type": "string", "format": "duration"},
                "raw": {"type": "string", "format": "byte"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "list": {"type": "array", "items": {"type": "integer"}},
            },
            FIELD: [rule],
        });
        let rules = Rules::parse(&schema).unwrap();
        let mut errors = Errors::new();
        let mut budget = Budget::of_object();
        let path = Path::new("spec");
        rules.check(&path, value, old, false, &mut budget, &mut errors);
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{rule} on {value}, before {old:?}");
    }

    #[test]
    fn fields_are_called_what_go_calls_them() {
        check(
            &json!({"rule": "self.my_field > 0"}),
            &json!({"my_field": 1}),
            None,
            &[],
        );
        check(
            &json!({"rule": "has(self.my_field)"}),
            &json!({"my_field": 1}),
            None,
            &[],
        );
        check(
            &json!({"rule": "self.a__dash__b == 'x'"}),
            &json!({"a-b": "x"}),
            None,
            &[],
        );
        check(
            &json!({"rule": "self.labels['a-b'] == 'x'"}),
            &json!({"labels": {"a-b": "x"}}),
            None,
            &[],
        );
    }

    #[test]
    fn values_are_of_the_types_of_their_schema() {
        check(
            &json!({"rule": "self.ratio * 2.0 < 5.0"}),
            &json!({"ratio": 1}),
            None,
            &[],
        );
        check(
            &json!({"rule": "self.when < timestamp('2027-01-01T00:00:00Z')"}),
            &json!({"when": "2026-01-01T00:00:00Z"}),
            None,
            &[],
        );
        check(
            &json!({"rule": "self.long > duration('1m')"}),
            &json!({"long": "1h"}),
            None,
            &[],
        );
        check(
            &json!({"rule": "size(self.raw) == 1"}),
            &json!({"raw": "YQ=="}),
            None,
            &[],
        );
    }

    #[test]
    fn what_may_be_absent_can_be_asked_for() {
        let rule = json!({"rule": "self.?my_field.orValue(0) < 2", "message": "too many"});
        check(&rule, &json!({}), None, &[]);
        check(&rule, &json!({"my_field": 1}), None, &[]);
        check(
            &rule,
            &json!({"my_field": 3}),
            None,
            &["spec: Invalid value: too many"],
        );
        for (rule, value) in [
            ("self.?labels.a.orValue('x') == 'x'", json!({})),
            (
                "self.?labels.a.orValue('x') == 'y'",
                json!({"labels": {"a": "y"}}),
            ),
            (
                "self.?labels['b'].orValue('x') == 'x'",
                json!({"labels": {"a": "y"}}),
            ),
            ("self.?labels.?a.hasValue() == false", json!({"labels": {}})),
            ("[1].all(n, self.?my_field.orValue(n) == n)", json!({})),
        ] {
            check(&json!({"rule": rule}), &value, None, &[]);
        }
        check(
            &json!({"rule": "self.list[?5].orValue(7) == 7"}),
            &json!({"list": [1]}),
            None,
            &[],
        );
    }

    #[test]
    fn sets_have_no_order() {
        let check = |rule: &str, value: Value, old: Value, holds: bool| {
            let item = json!({"type": "object", "properties": {
                "k": {"type": "string"}, "v": {"type": "integer"}}});
            let schema = json!({"type": "object", "properties": {
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "map": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"], "items": item},
                "plain": {"type": "array", "items": {"type": "string"}},
            }, FIELD: [{"rule": rule}]});
            let (rules, mut errors) = (Rules::parse(&schema).unwrap(), Errors::new());
            let mut budget = Budget::of_object();
            rules.check(
                &Path::ROOT,
                &value,
                Some(&old),
                false,
                &mut budget,
                &mut errors,
            );
            assert_eq!(errors.is_empty(), holds, "{rule}: {}", errors.aggregate());
        };
        let (ab, ba) = (json!({"set": ["a", "b"]}), json!({"set": ["b", "a"]}));
        check("self == oldSelf", ab.clone(), ba.clone(), true);
        check("self.set == oldSelf.set", ab.clone(), ba.clone(), true);
        check("self.set != oldSelf.set", ab.clone(), ba.clone(), false);
        check(
            "self.set == oldSelf.set",
            ab.clone(),
            json!({"set": ["a", "c"]}),
            false,
        );
        check("self.set == ['b', 'a']", ab.clone(), ab.clone(), true);
        check("['b', 'a'] == self.set", ab.clone(), ab.clone(), false);
        check(
            "self.set + ['b', 'c'] == ['a', 'b', 'c']",
            ab.clone(),
            ba,
            true,
        );
        let plain = |items: Value| json!({ "plain": items });
        let (one, other) = (plain(json!(["a", "b"])), plain(json!(["b", "a"])));
        check("self.plain == oldSelf.plain", one, other, false);
        let map = |items: Value| json!({ "map": items });
        let both = map(json!([{"k": "a", "v": 1}, {"k": "b", "v": 2}]));
        let turned = map(json!([{"k": "b", "v": 2}, {"k": "a", "v": 1}]));
        let changed = map(json!([{"k": "b", "v": 3}, {"k": "a", "v": 1}]));
        check("self.map == oldSelf.map", both.clone(), turned, true);
        check("self == oldSelf", both.clone(), changed.clone(), false);
        check("(self.map + oldSelf.map).size() == 2", both, changed, true);
        check(
            "self.set.all(x, x == 'a' || x == 'b')",
            ab.clone(),
            ab,
            true,
        );
    }

    #[test]
    fn the_past_may_be_absent() {
        let rule = json!({
            "rule": "!oldSelf.hasValue() || oldSelf.value().my_field <= self.my_field",
            "optionalOldSelf": true,
        });
        let (one, two) = (json!({"my_field": 1}), json!({"my_field": 2}));
        check(&rule, &one, None, &[]);
        check(&rule, &two, Some(&one), &[]);
        check(
            &rule,
            &one,
            Some(&two),
            &[
                "spec: Invalid value: failed rule: !oldSelf.hasValue() || oldSelf.value().my_field <= self.my_field",
            ],
        );
        // Without that, a rule about the change waits for one.
        let change = json!({"rule": "self.my_field >= oldSelf.my_field"});
        check(&change, &one, None, &[]);
        check(
            &change,
            &one,
            Some(&two),
            &["spec: Invalid value: failed rule: self.my_field >= oldSelf.my_field"],
        );
    }
}
