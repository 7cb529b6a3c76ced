//! Objects that expressions of mutations make: `Object.spec{replicas: 3}` and
//! `JSONPatch{op: "remove", path: "/spec"}`. The evaluator knows no such thing, so they are
//! written as maps, with what they are called in an entry that no object has.

use kube_cel::cel::common::ast::{
    EntryExpr, Expr, IdedEntryExpr, LiteralValue, MapEntryExpr, MapExpr,
};
use kube_cel::cel::parser::Expression;

use super::rights;

/// The key of the entry that says what a map was written as.
pub(super) const NAME: &str = "\0name";

/// What objects are called; their fields are called after them and their names.
pub(super) const OBJECT: &str = "Object";
/// What operations of patches are called.
pub(super) const PATCH: &str = "JSONPatch";

/// Whether objects are called so, or fields of them.
pub(super) fn is_object(name: &str) -> bool {
    name.strip_prefix(OBJECT)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Writes objects that are made as maps.
pub(super) fn rewrite(expression: &mut Expression) {
    match &mut expression.expr {
        Expr::Call(call) => {
            let target = call.target.as_deref_mut().into_iter();
            target.chain(&mut call.args).for_each(rewrite);
        }
        Expr::Select(select) => match &select.operand.expr {
            // A variable with a dot in its name.
            Expr::Ident(of) if of == rights::AUTHORIZER && !select.test => {
                let name = format!("{of}.{}", select.field);
                if name == rights::OF_REQUEST {
                    expression.expr = Expr::Ident(name);
                }
            }
            _ => rewrite(&mut select.operand),
        },
        Expr::List(list) => list.elements.iter_mut().for_each(rewrite),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    rewrite(&mut entry.key);
                    rewrite(&mut entry.value);
                }
            }
        }
        Expr::Struct(made) => {
            let name = made.type_name.trim_start_matches('.');
            let id = expression.id;
            let name = entry(id, NAME, text(id, name), false);
            let fields = std::mem::take(&mut made.entries);
            let fields = fields.into_iter().map(field);
            let entries = std::iter::once(name).chain(fields).collect();
            expression.expr = Expr::Map(MapExpr { entries });
        }
        Expr::Comprehension(of) => {
            for part in [
                &mut of.iter_range,
                &mut of.accu_init,
                &mut of.loop_cond,
                &mut of.loop_step,
                &mut of.result,
            ] {
                rewrite(part);
            }
        }
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
}

/// A field as the entry of a map.
fn field(of: IdedEntryExpr) -> IdedEntryExpr {
    match of.expr {
        EntryExpr::StructField(mut field) => {
            rewrite(&mut field.value);
            entry(of.id, &field.field, field.value, field.optional)
        }
        EntryExpr::MapEntry(_) => of,
    }
}

fn entry(id: u64, key: &str, value: Expression, optional: bool) -> IdedEntryExpr {
    IdedEntryExpr {
        id,
        expr: EntryExpr::MapEntry(MapEntryExpr {
            key: text(id, key),
            value,
            optional,
        }),
    }
}

fn text(id: u64, text: &str) -> Expression {
    Expression {
        id,
        expr: Expr::Literal(LiteralValue::String(text.into())),
    }
}
