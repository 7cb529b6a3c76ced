//! Expressions as they are evaluated: with what counts their costs, and with calls of our
//! functions in place of operators that the evaluator understands otherwise.
//!
//! The costs are those of the real server's library. What is always evaluated together is
//! counted once, before it: so nothing runs that is not paid for.

use kube_cel::cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedEntryExpr, LiteralValue, operators,
};
use kube_cel::cel::parser::Expression;

use super::library;

/// What creates a list costs so much.
const LIST: u64 = 10;
/// And what creates a map.
const MAP: u64 = 30;

/// The function that counts a cost.
pub(super) const SPEND: &str = "@spend";
/// The function that counts how large a value is which is put into another one.
pub(super) const HELD: &str = "@held";
/// Operators that are functions of ours: texts and lists cost by their size, and some
/// lists are sets.
pub(super) const EQUALS: &str = "@equals";
pub(super) const DIFFERS: &str = "@differs";
pub(super) const ADD: &str = "@add";
pub(super) const IN: &str = "@within";
/// The least whole number has no negative.
pub(super) const NEGATE: &str = "@negate";
pub(super) const COMPARE: [(&str, &str); 4] = [
    (operators::LESS, "@less"),
    (operators::LESS_EQUALS, "@lessOrEquals"),
    (operators::GREATER, "@greater"),
    (operators::GREATER_EQUALS, "@greaterOrEquals"),
];

/// Makes an expression one that counts.
pub(super) fn metered(expression: &mut Expression) {
    let cost = count(expression);
    charge(expression, cost);
}

/// How deep an expression nests: evaluation takes some of the stack for each level.
pub(super) fn depth(expression: &Expression) -> usize {
    1 + parts(expression).into_iter().map(depth).max().unwrap_or(0)
}

/// What an expression is made of.
pub(super) fn parts(expression: &Expression) -> Vec<&Expression> {
    let mut all: Vec<&Expression> = Vec::new();
    match &expression.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Select(select) => all.push(&select.operand),
        Expr::Call(call) => {
            all.extend(call.target.as_deref());
            all.extend(&call.args);
        }
        Expr::List(list) => all.extend(&list.elements),
        Expr::Map(map) => all.extend(map.entries.iter().flat_map(of_entry)),
        Expr::Struct(made) => all.extend(made.entries.iter().flat_map(of_entry)),
        Expr::Comprehension(of) => {
            all.extend([&of.iter_range, &of.accu_init]);
            all.extend([&of.loop_cond, &of.loop_step, &of.result]);
        }
    }
    all
}

fn of_entry(entry: &IdedEntryExpr) -> Vec<&Expression> {
    match &entry.expr {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

/// Puts a cost before an expression.
fn charge(expression: &mut Expression, cost: u64) {
    if cost == 0 {
        return;
    }
    let id = expression.id;
    let literal = |literal| Expression {
        id,
        expr: Expr::Literal(literal),
    };
    let cost = i64::try_from(cost).unwrap_or(i64::MAX);
    let spend = CallExpr {
        func_name: SPEND.to_owned(),
        target: None,
        args: vec![literal(LiteralValue::Int(cost.into()))],
    };
    let spend = Expression {
        id,
        expr: Expr::Call(spend),
    };
    let paid = std::mem::take(expression);
    // A condition that fails ends all that is around it, unlike the sides of `||`.
    *expression = Expression {
        id,
        expr: Expr::Call(CallExpr {
            func_name: operators::CONDITIONAL.to_owned(),
            target: None,
            args: vec![spend, paid, literal(LiteralValue::Null)],
        }),
    };
}

/// What an expression costs in any case; what it may cost is counted inside of it.
fn count(expression: &mut Expression) -> u64 {
    match &mut expression.expr {
        Expr::Unspecified | Expr::Literal(_) => 0,
        Expr::Ident(_) => 1,
        Expr::Select(select) => count(&mut select.operand) + u64::from(!select.test),
        Expr::Call(call) => count_call(call),
        Expr::List(list) => list.elements.iter_mut().map(count_held).sum::<u64>() + LIST,
        Expr::Map(map) => map.entries.iter_mut().map(count_entry).sum::<u64>() + MAP,
        // The evaluator knows none, and has no error for them.
        Expr::Struct(made) => {
            let name = std::mem::take(&mut made.type_name);
            expression.expr = Expr::Ident(name);
            1
        }
        Expr::Comprehension(of) => {
            let of = of.as_mut();
            let each = count(&mut of.loop_cond) + count(&mut of.loop_step);
            charge(&mut of.loop_cond, each);
            count(&mut of.iter_range) + count(&mut of.accu_init) + count(&mut of.result)
        }
    }
}

fn count_entry(entry: &mut IdedEntryExpr) -> u64 {
    match &mut entry.expr {
        EntryExpr::StructField(field) => count(&mut field.value),
        EntryExpr::MapEntry(entry) => count(&mut entry.key) + count_held(&mut entry.value),
    }
}

/// What a part of a list or a map costs, whose size is counted when it is put there: by
/// nothing else can values grow beyond what they are made of.
fn count_held(part: &mut Expression) -> u64 {
    let cost = count(part);
    let is_small = match &part.expr {
        Expr::Literal(_) => true,
        Expr::List(list) => list.elements.is_empty(),
        Expr::Map(map) => map.entries.is_empty(),
        _ => false,
    };
    if !is_small {
        let (id, value) = (part.id, std::mem::take(part));
        *part = Expression {
            id,
            expr: Expr::Call(CallExpr {
                func_name: HELD.to_owned(),
                target: None,
                args: vec![value],
            }),
        };
    }
    cost
}

fn count_call(call: &mut CallExpr) -> u64 {
    let is_lazy = matches!(
        call.func_name.as_str(),
        operators::CONDITIONAL | operators::LOGICAL_AND | operators::LOGICAL_OR
    );
    if is_lazy {
        let mut cost = 0;
        for (index, argument) in call.args.iter_mut().enumerate() {
            if index == 0 {
                cost = count(argument);
            } else {
                metered(argument);
            }
        }
        return cost;
    }
    let cost = call
        .target
        .iter_mut()
        .map(|target| count(target))
        .sum::<u64>()
        + call.args.iter_mut().map(count).sum::<u64>();
    match ours(call) {
        Some(name) => name.clone_into(&mut call.func_name),
        None if is_counted(call) => {}
        None => return cost + 1,
    }
    // It counts what it costs when it is called.
    cost
}

/// Whether a function counts what it costs.
fn is_counted(call: &CallExpr) -> bool {
    let in_namespace = match call.target.as_deref() {
        Some(Expression {
            expr: Expr::Ident(prefix),
            ..
        }) => library::has(&format!("{prefix}.{}", call.func_name)),
        _ => false,
    };
    in_namespace || library::has(&call.func_name)
}

/// The function of ours that stands for an operator.
fn ours(call: &CallExpr) -> Option<&'static str> {
    // These neither cost more, nor are they compared otherwise.
    let is_plain = |argument: &Expression| match &argument.expr {
        Expr::Literal(literal) => {
            !matches!(literal, LiteralValue::String(_) | LiteralValue::Bytes(_))
        }
        _ => false,
    };
    // Macros that make lists add to them one at a time.
    let is_made = |argument: &Expression| match &argument.expr {
        Expr::Ident(name) => name.starts_with('@'),
        _ => false,
    };
    let is_listed = call.args.len() > 2;
    let name = call.func_name.as_str();
    let compared = || COMPARE.iter().find(|(operator, _)| *operator == name);
    match name {
        operators::IN => Some(IN),
        operators::NEGATE if !call.args.iter().any(is_plain) => Some(NEGATE),
        _ if !is_listed && call.args.iter().any(is_plain) => None,
        operators::EQUALS => Some(EQUALS),
        operators::NOT_EQUALS => Some(DIFFERS),
        operators::ADD if !call.args.first().is_some_and(is_made) => Some(ADD),
        _ => compared().map(|(_, ours)| *ours),
    }
}
