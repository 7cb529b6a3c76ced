//! Lists that a schema says to be sets or maps, in the expressions of its rules: operators
//! on them learn which they are.

use kube_cel::cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedEntryExpr, LiteralValue, operators,
};
use kube_cel::cel::parser::Expression;
use serde_json::Value;

use super::values::escaped;
use crate::cel::{ListKind, Lists};
use crate::kinds::edit::{entries, items, text};

/// The lists of a schema that are no plain ones.
pub(super) fn lists(schema: &Value) -> Lists {
    let named = |name: &str| escaped(name).unwrap_or_else(|| name.to_owned());
    let fields = entries(schema, "properties").map(|(name, schema)| (named(name), lists(schema)));
    let below = |field: &str| {
        let schema = schema.get(field).filter(|schema| schema.is_object());
        let lists = schema.map(lists).filter(|lists| !lists.is_plain());
        lists.map(Box::new)
    };
    let keys = items(schema, "x-kubernetes-list-map-keys").filter_map(Value::as_str);
    Lists {
        kind: match text(schema, "x-kubernetes-list-type") {
            "set" => ListKind::Set,
            "map" => ListKind::Map(keys.map(named).collect()),
            _ => ListKind::Plain,
        },
        fields: fields.filter(|(_, lists)| !lists.is_plain()).collect(),
        inner: below("items").or_else(|| below("additionalProperties")),
    }
}

/// Gives operators on lists that are no plain ones a third operand, which says so: a
/// variable whose value is added to `known`.
pub(super) fn name(expression: &mut Expression, lists: &Lists, known: &mut Vec<Lists>) {
    if lists.is_plain() {
        return;
    }
    let mut naming = Naming {
        scopes: vec![
            ("self".to_owned(), Some(lists)),
            ("oldSelf".to_owned(), Some(lists)),
        ],
        known,
    };
    naming.walk(expression);
}

/// The name of a variable that `name` has made.
pub(super) fn variable(index: usize) -> String {
    format!("@lists{index}")
}

struct Naming<'l, 'k> {
    /// The variables around, the innermost last.
    scopes: Vec<(String, Option<&'l Lists>)>,
    known: &'k mut Vec<Lists>,
}

impl<'l> Naming<'l, '_> {
    fn walk(&mut self, expression: &mut Expression) {
        let id = expression.id;
        match &mut expression.expr {
            Expr::Call(call) => {
                let left = call.args.first().and_then(|left| self.of(left));
                call.target.iter_mut().for_each(|target| self.walk(target));
                call.args
                    .iter_mut()
                    .for_each(|argument| self.walk(argument));
                let is_operator = matches!(
                    call.func_name.as_str(),
                    operators::EQUALS | operators::NOT_EQUALS | operators::ADD
                );
                if let Some(lists) = left.filter(|lists| is_operator && !lists.is_plain()) {
                    let name = variable(self.known.len());
                    self.known.push(lists.clone());
                    call.args.push(Expression {
                        id,
                        expr: Expr::Ident(name),
                    });
                }
            }
            Expr::Select(select) => self.walk(&mut select.operand),
            Expr::List(list) => list.elements.iter_mut().for_each(|item| self.walk(item)),
            Expr::Map(map) => map.entries.iter_mut().for_each(|entry| self.entry(entry)),
            Expr::Struct(made) => made.entries.iter_mut().for_each(|entry| self.entry(entry)),
            Expr::Comprehension(of) => {
                let of = of.as_mut();
                let item = self
                    .of(&of.iter_range)
                    .and_then(|lists| lists.inner.as_deref());
                self.walk(&mut of.iter_range);
                self.walk(&mut of.accu_init);
                let depth = self.scopes.len();
                self.scopes.push((of.accu_var.clone(), None));
                self.scopes.push((of.iter_var.clone(), item));
                for part in [&mut of.loop_cond, &mut of.loop_step, &mut of.result] {
                    self.walk(part);
                }
                self.scopes.truncate(depth);
            }
            Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        }
    }

    fn entry(&mut self, entry: &mut IdedEntryExpr) {
        match &mut entry.expr {
            EntryExpr::StructField(field) => self.walk(&mut field.value),
            EntryExpr::MapEntry(entry) => {
                self.walk(&mut entry.key);
                self.walk(&mut entry.value);
            }
        }
    }

    /// What is known of the lists in the value of an expression.
    fn of(&self, expression: &Expression) -> Option<&'l Lists> {
        match &expression.expr {
            Expr::Ident(name) => {
                let mut scopes = self.scopes.iter().rev();
                scopes.find(|(known, _)| known == name)?.1
            }
            Expr::Select(select) if !select.test => {
                below(self.of(&select.operand)?, Some(&select.field))
            }
            Expr::Call(call) => self.of_call(call),
            _ => None,
        }
    }

    fn of_call(&self, call: &CallExpr) -> Option<&'l Lists> {
        match (call.func_name.as_str(), call.args.as_slice(), &call.target) {
            (operators::INDEX | operators::OPT_INDEX, [of, index], _) => {
                let name = match &index.expr {
                    Expr::Literal(LiteralValue::String(name)) => Some(name.inner()),
                    _ => None,
                };
                below(self.of(of)?, name)
            }
            // What may be absent is the same where it is there.
            ("value" | "orValue", _, Some(of)) => self.of(of),
            _ => None,
        }
    }
}

/// What is known of a field, or of an item or entry.
fn below<'l>(lists: &'l Lists, name: Option<&str>) -> Option<&'l Lists> {
    let field = name.and_then(|name| lists.fields.get(name));
    field.or(lists.inner.as_deref())
}
