//! Expressions over objects without a schema, as admission policies and controllers
//! evaluate them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube_cel::cel::objects::{Key, OptionalValue, Value as Cel};
use kube_cel::cel::parser::Expression;
use kube_cel::cel::{Context, ExecutionError};
use parking_lot::Mutex;
use serde_json::Value;

use super::budget::{Budget, Exceeded, HELD};
use super::rights::{self, Asking, Target};
use super::words::words;
use super::{library, made};

/// How many expressions are kept read. They are those of policies, of which a cluster
/// has few; beyond that all are read anew.
const KEPT: usize = 1024;

/// Expressions that have been read, by their text.
static READ: LazyLock<Mutex<HashMap<String, Arc<Expression>>>> = LazyLock::new(Mutex::default);

/// What an expression came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Bool(bool),
    Text(String),
    /// Something else.
    Other,
}

/// What expressions may refer to.
pub(crate) struct Scope {
    context: Context<'static>,
    variables: HashMap<Key, Cel>,
    /// Variables that could not be evaluated, and why: that matters to who uses them.
    failed: HashMap<String, String>,
    /// How many values the further variables may have.
    room: usize,
    /// What all of the expressions may cost together.
    budget: RefCell<Budget>,
}

impl Scope {
    pub(crate) fn new<'v>(known: impl IntoIterator<Item = (&'v str, &'v Value)>) -> Self {
        let mut context = super::context();
        for (name, value) in known {
            context.add_variable_from_value(name, untyped(value));
        }
        context.add_variable_from_value("variables", Cel::from(HashMap::<Key, Cel>::new()));
        Scope {
            context,
            variables: HashMap::new(),
            failed: HashMap::new(),
            room: HELD,
            budget: RefCell::new(Budget::of_object()),
        }
    }

    /// Lets expressions ask about rights: those of whom, and what is meant by the resource
    /// of the request.
    pub(crate) fn ask(&mut self, asking: &Asking, about: Target) {
        for (name, value) in rights::variables(asking, about) {
            self.context.add_variable_from_value(name, value);
        }
    }

    /// Gives the value of an expression a name: `variables.NAME`.
    pub(crate) fn define(&mut self, name: &str, expression: &str) {
        match self.resolve(expression) {
            Ok(value) if library::size(&value) > self.room => {
                let why = "the values of the variables are too large".to_owned();
                self.failed.insert(name.to_owned(), why);
            }
            Ok(value) => {
                self.room -= library::size(&value);
                self.variables.insert(Key::from(name), value);
                let variables = Cel::from(self.variables.clone());
                self.context.add_variable_from_value("variables", variables);
            }
            Err(why) => drop(self.failed.insert(name.to_owned(), why)),
        }
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    ///
    /// Why it cannot be read or evaluated. One that nests very deep is not.
    pub(crate) fn evaluate(&self, expression: &str) -> Result<Outcome, String> {
        Ok(match self.resolve(expression)? {
            Cel::Bool(value) => Outcome::Bool(value),
            Cel::String(value) => Outcome::Text(value.to_string()),
            _ => Outcome::Other,
        })
    }

    /// Evaluates an expression to JSON. The inner error is what there is no JSON for, or an
    /// object that is called otherwise than the field that it is put into.
    ///
    /// # Errors
    ///
    /// As [`Scope::evaluate`].
    pub(crate) fn json(&self, expression: &str) -> Result<Result<Value, String>, String> {
        let made = self.resolve(expression)?;
        Ok(json(&made, None))
    }

    fn resolve(&self, expression: &str) -> Result<Cel, String> {
        let read = read(expression)?;
        let (budget, context) = (&mut *self.budget.borrow_mut(), &self.context);
        let mut pay = || budget.pay(|| Cel::resolve(&read, context));
        let paid = match super::is_deep(&read) {
            true => super::on_a_large_stack(pay)
                .ok_or("there is no thread to evaluate it in; try again")?,
            false => pay(),
        };
        let evaluated = paid.map_err(|exceeded| match exceeded {
            Exceeded::Call => "operation cancelled: actual cost limit exceeded".to_owned(),
            Exceeded::Object => "validation failed due to running out of cost budget, no \
                                     further validation rules will be run"
                .to_owned(),
        })?;
        evaluated.map_err(|error| match error {
            // Fields of objects may be called as a variable is.
            ExecutionError::NoSuchKey(key) => match self.failed.get(key.as_str()) {
                Some(why) if expression.contains(&format!("variables.{key}")) => {
                    format!("composited variable \"{key}\" fails to evaluate: {why}")
                }
                _ => format!("no such key: {key}"),
            },
            error => words(&error),
        })
    }
}

fn read(expression: &str) -> Result<Arc<Expression>, String> {
    if let Some(known) = READ.lock().get(expression) {
        return Ok(known.clone());
    }
    let mut fresh = super::parse(expression)?;
    super::optional::rewrite(&mut fresh);
    made::rewrite(&mut fresh);
    super::make_ready(&mut fresh);
    let fresh = Arc::new(fresh);
    let mut kept = READ.lock();
    if kept.len() >= KEPT {
        kept.clear();
    }
    kept.insert(expression.to_owned(), fresh.clone());
    Ok(fresh)
}

/// A value as JSON. Objects in it have to be called as `expected`.
fn json(value: &Cel, expected: Option<&str>) -> Result<Value, String> {
    let unfit = || Err("evaluated to a type that could not marshal to JSON".to_owned());
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(value) => (*value).into(),
        Cel::Int(value) => (*value).into(),
        Cel::UInt(value) => (*value).into(),
        Cel::Float(value) => (*value).into(),
        Cel::String(value) => value.as_str().into(),
        Cel::Bytes(value) => BASE64_STANDARD.encode(&**value).into(),
        Cel::List(items) => {
            let items = items.iter().map(|item| json(item, expected));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Cel::Map(map) => {
            let name = match map.map.get(&Key::from(made::NAME)) {
                Some(Cel::String(name)) => Some(name.as_str()),
                _ => None,
            };
            if let Some((name, expected)) = name.zip(expected)
                && name != expected
            {
                return Err(format!(
                    "type mismatch: unexpected type name \"{name}\", expected \"{expected}\", which matches field name path from root Object type"
                ));
            }
            let name = name.filter(|name| made::is_object(name));
            let mut fields = serde_json::Map::new();
            for (key, value) in map.map.iter() {
                let Key::String(key) = key else {
                    return Err("keys of maps must be texts".to_owned());
                };
                if **key != *made::NAME {
                    let expected = name.map(|name| format!("{name}.{key}"));
                    fields.insert(key.to_string(), json(value, expected.as_deref())?);
                }
            }
            Value::Object(fields)
        }
        Cel::Opaque(opaque) => match opaque.downcast_ref::<OptionalValue>() {
            Some(optional) => {
                let value = optional.value();
                value.map_or(Ok(Value::Null), |value| json(value, expected))?
            }
            None => return unfit(),
        },
        _ => return unfit(),
    })
}

/// A value as CEL sees it that knows nothing of its type.
fn untyped(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(bool) => Cel::Bool(*bool),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cel::Int(whole),
            None => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Cel::from(text.as_str()),
        Value::Array(items) => Cel::from(items.iter().map(untyped).collect::<Vec<_>>()),
        Value::Object(fields) => {
            let field =
                |(name, value): (&String, &Value)| (Key::from(name.as_str()), untyped(value));
            Cel::from(fields.iter().map(field).collect::<HashMap<Key, Cel>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_that_fail_matter_where_they_are_used() {
        let object = json!({"spec": {"size": 3, "name": "a"}});
        let mut scope = Scope::new([("object", &object)]);
        scope.define("size", "object.spec.size");
        scope.define("double", "variables.size * 2");
        scope.define("color", "object.spec.color");
        for (expression, expected) in [
            ("variables.double == 6", Ok(Outcome::Bool(true))),
            ("object.spec.name + '!'", Ok(Outcome::Text("a!".to_owned()))),
            ("variables.size", Ok(Outcome::Other)),
            ("has(object.spec.color)", Ok(Outcome::Bool(false))),
            (
                "object.spec.color == 'red'",
                Err("no such key: color".to_owned()),
            ),
            (
                "variables.color == 'red'",
                Err(
                    "composited variable \"color\" fails to evaluate: no such key: color"
                        .to_owned(),
                ),
            ),
        ] {
            assert_eq!(scope.evaluate(expression), expected, "{expression}");
        }
        assert!(scope.evaluate("object.").is_err());
        let wide = scope.evaluate("object.?spec.?color.orValue('none') == 'none'");
        assert_eq!(wide, Ok(Outcome::Bool(true)));
    }
}
