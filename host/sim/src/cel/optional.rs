//! What may be absent, in a form that the evaluator gets right: it takes `x.?f` of an
//! absent field for an error and `x.?f.g` for `false`, and `x[?"f"]` for what it is.

use kube_cel::cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedEntryExpr, LiteralValue, operators,
};
use kube_cel::cel::parser::Expression;

/// Writes selections of what may be absent as indexing.
pub(crate) fn rewrite(expression: &mut Expression) {
    expression.expr = match std::mem::take(&mut expression.expr) {
        Expr::Call(mut call) => {
            call.target.iter_mut().for_each(|target| rewrite(target));
            call.args.iter_mut().for_each(rewrite);
            if call.func_name == operators::OPT_SELECT {
                operators::OPT_INDEX.clone_into(&mut call.func_name);
            }
            Expr::Call(call)
        }
        Expr::Select(mut select) => {
            rewrite(&mut select.operand);
            if select.test || !is_optional(&select.operand) {
                Expr::Select(select)
            } else {
                let field = Expression {
                    id: expression.id,
                    expr: Expr::Literal(LiteralValue::String(select.field.as_str().into())),
                };
                Expr::Call(CallExpr {
                    func_name: operators::OPT_INDEX.to_owned(),
                    target: None,
                    args: vec![*select.operand, field],
                })
            }
        }
        Expr::List(mut list) => {
            list.elements.iter_mut().for_each(rewrite);
            Expr::List(list)
        }
        Expr::Map(mut map) => {
            map.entries.iter_mut().for_each(entry);
            Expr::Map(map)
        }
        Expr::Struct(mut made) => {
            made.entries.iter_mut().for_each(entry);
            Expr::Struct(made)
        }
        Expr::Comprehension(mut of) => {
            for part in [
                &mut of.iter_range,
                &mut of.accu_init,
                &mut of.loop_cond,
                &mut of.loop_step,
                &mut of.result,
            ] {
                rewrite(part);
            }
            Expr::Comprehension(of)
        }
        plain @ (Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_)) => plain,
    };
}

fn entry(entry: &mut IdedEntryExpr) {
    match &mut entry.expr {
        EntryExpr::StructField(field) => rewrite(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            rewrite(&mut entry.key);
            rewrite(&mut entry.value);
        }
    }
}

/// Whether a rewritten expression is of something that may be absent: a selection or
/// an index that says so, or one behind that.
fn is_optional(expression: &Expression) -> bool {
    match &expression.expr {
        Expr::Call(call) if call.func_name == operators::OPT_INDEX => true,
        Expr::Call(call) if call.func_name == operators::INDEX => {
            call.args.first().is_some_and(is_optional)
        }
        _ => false,
    }
}
