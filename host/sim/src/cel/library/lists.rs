//! Lists that are sets or maps: their order counts for nothing, and what is added to them
//! is there once. So it is for the value on the left of an operator, as in the real server.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::cel::Value;
use kube_cel::cel::common::ast::operators;
use kube_cel::cel::objects::{Key, Opaque};

use super::super::budget::spend;

/// Which lists of a value are no plain ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    /// What the value itself is, if it is a list.
    pub(crate) kind: ListKind,
    /// The values of its fields, by the names that rules call them.
    pub(crate) fields: BTreeMap<String, Lists>,
    /// Its items, or the values of its entries.
    pub(crate) inner: Option<Box<Lists>>,
}

/// How the items of a list are told apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// By their place.
    #[default]
    Plain,
    /// By their value.
    Set,
    /// By these fields.
    Map(Vec<String>),
}

impl Opaque for Lists {
    fn runtime_type_name(&self) -> &str {
        "lists"
    }
}

impl Lists {
    /// Whether all are plain.
    pub(crate) fn is_plain(&self) -> bool {
        self.kind == ListKind::Plain && self.fields.is_empty() && self.inner.is_none()
    }

    /// As the value of a variable.
    pub(crate) fn value(self) -> Value {
        Value::Opaque(Arc::new(self))
    }

    fn below(&self, name: &str) -> Option<&Lists> {
        self.fields.get(name).or(self.inner.as_deref())
    }
}

/// What an operator makes of its operands where a third says which lists are no plain
/// ones; none of others.
pub(super) fn operated(operator: &str, arguments: &[Value]) -> Option<Value> {
    let [left, right, Value::Opaque(lists)] = arguments else {
        return None;
    };
    let lists = lists.downcast_ref::<Lists>()?;
    match operator {
        operators::EQUALS => Some(Value::Bool(is_equal(Some(lists), left, right))),
        operators::NOT_EQUALS => Some(Value::Bool(!is_equal(Some(lists), left, right))),
        operators::ADD => added(lists, left, right),
        _ => None,
    }
}

fn is_equal(lists: Option<&Lists>, left: &Value, right: &Value) -> bool {
    let Some(lists) = lists else {
        return left == right;
    };
    match (left, right) {
        (Value::List(left), Value::List(right)) => {
            let inner = lists.inner.as_deref();
            left.len() == right.len()
                && match &lists.kind {
                    ListKind::Plain => {
                        let mut pairs = left.iter().zip(right.iter());
                        pairs.all(|(left, right)| is_equal(inner, left, right))
                    }
                    // Most often each is where it was; otherwise this may take long, and then
                    // it ends with the time of the evaluation.
                    ListKind::Set => right.iter().enumerate().all(|(at, item)| {
                        spend(0) && (left.get(at) == Some(item) || left.contains(item))
                    }),
                    ListKind::Map(keys) => right.iter().enumerate().all(|(at, item)| {
                        let here = left.get(at).filter(|left| is_same(keys, left, item));
                        let same = || left.iter().find(|left| is_same(keys, left, item));
                        let same = spend(0).then(|| here.or_else(same)).flatten();
                        same.is_some_and(|left| is_equal(inner, left, item))
                    }),
                }
        }
        (Value::Map(left), Value::Map(right)) => {
            left.map.len() == right.map.len()
                && left.map.iter().all(|(key, value)| {
                    let below = match key {
                        Key::String(name) => lists.below(name),
                        _ => None,
                    };
                    let other = right.map.get(key);
                    other.is_some_and(|other| is_equal(below, value, other))
                })
        }
        _ => left == right,
    }
}

/// Whether two items of a map are under the same keys.
fn is_same(keys: &[String], left: &Value, right: &Value) -> bool {
    let (Value::Map(left), Value::Map(right)) = (left, right) else {
        return false;
    };
    keys.iter().all(|key| {
        let key = Key::String(Arc::new(key.clone()));
        left.map.get(&key) == right.map.get(&key)
    })
}

fn added(lists: &Lists, left: &Value, right: &Value) -> Option<Value> {
    let (Value::List(left), Value::List(right)) = (left, right) else {
        return None;
    };
    let mut sum = left.to_vec();
    for item in right.iter() {
        if !spend(0) {
            break;
        }
        let before = match &lists.kind {
            ListKind::Plain => None,
            ListKind::Set => sum.iter_mut().find(|left| *left == item),
            ListKind::Map(keys) => sum.iter_mut().find(|left| is_same(keys, left, item)),
        };
        match before {
            Some(before) => *before = item.clone(),
            None => sum.push(item.clone()),
        }
    }
    Some(Value::List(Arc::new(sum)))
}
