//! The macros that the parser does not know, written out: those over two variables, and
//! `sortBy`.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, LiteralValue, MapExpr,
    operators,
};
use kube_cel::cel::parser::Expression;

/// Puts an entry, or those of a map, into a map.
const INSERT: &str = "@mapInsert";
/// Sorts a list by what another says of its items.
const SORT: &str = "@sortByAssociatedKeys";
/// The list that is sorted.
const SORTED: &str = "@__sortBy_input__";
/// What a macro has come to so far.
const RESULT: &str = "@result";
/// The numbers of what is written out begin here: what was read has none as large.
const FIRST: u64 = 1 << 40;

/// An expression in which these macros are written out; none where there is none of them.
pub(super) fn written_out(expression: &Expression) -> Option<Expression> {
    let mut written = expression.clone();
    let mut writer = Writer { next: FIRST };
    writer.visit(&mut written);
    (writer.next > FIRST).then_some(written)
}

struct Writer {
    next: u64,
}

impl Writer {
    fn visit(&mut self, expression: &mut Expression) {
        let mut parts: Vec<&mut Expression> = Vec::new();
        match &mut expression.expr {
            Expr::Call(call) => {
                parts.extend(call.target.as_deref_mut());
                parts.extend(&mut call.args);
            }
            Expr::Select(select) => parts.push(&mut select.operand),
            Expr::List(list) => parts.extend(&mut list.elements),
            Expr::Map(map) => map.entries.iter_mut().for_each(|e| entry(e, &mut parts)),
            Expr::Struct(made) => made.entries.iter_mut().for_each(|e| entry(e, &mut parts)),
            Expr::Comprehension(of) => {
                let of = of.as_mut();
                parts.extend([&mut of.iter_range, &mut of.accu_init]);
                parts.extend([&mut of.loop_cond, &mut of.loop_step, &mut of.result]);
            }
            Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        }
        for part in parts {
            self.visit(part);
        }
        if let Expr::Call(call) = &expression.expr
            && let Some(target) = &call.target
            && let Some(written) = self.written(&call.func_name, target, &call.args)
        {
            *expression = written;
        }
    }

    fn written(
        &mut self,
        name: &str,
        of: &Expression,
        arguments: &[Expression],
    ) -> Option<Expression> {
        if let ("sortBy", [variable, key]) = (name, arguments) {
            return Some(self.sorted(of, named(variable)?, key));
        }
        let (first, second, rest) = match arguments {
            [first, second, rest @ ..] => (named(first)?, named(second)?, rest),
            _ => return None,
        };
        let [start, condition, step, result] = match (name, rest) {
            ("all", [test]) => {
                let so_far = self.result();
                let condition = self.call(operators::NOT_STRICTLY_FALSE, vec![so_far]);
                let so_far = self.result();
                let step = self.call(operators::LOGICAL_AND, vec![so_far, test.clone()]);
                [self.bool(true), condition, step, self.result()]
            }
            ("exists", [test]) => {
                let so_far = self.result();
                let not = self.call(operators::LOGICAL_NOT, vec![so_far]);
                let condition = self.call(operators::NOT_STRICTLY_FALSE, vec![not]);
                let so_far = self.result();
                let step = self.call(operators::LOGICAL_OR, vec![so_far, test.clone()]);
                [self.bool(false), condition, step, self.result()]
            }
            ("existsOne" | "exists_one", [test]) => {
                let more = vec![self.result(), self.int(1)];
                let more = self.call(operators::ADD, more);
                let step = vec![test.clone(), more, self.result()];
                let step = self.call(operators::CONDITIONAL, step);
                let result = vec![self.result(), self.int(1)];
                let result = self.call(operators::EQUALS, result);
                [self.int(0), self.bool(true), step, result]
            }
            ("transformList", [filter @ .., made]) if filter.len() < 2 => {
                let made = self.list(vec![made.clone()]);
                let step = vec![self.result(), made];
                let step = self.call(operators::ADD, step);
                let step = self.filtered(filter, step);
                [self.list(Vec::new()), self.bool(true), step, self.result()]
            }
            ("transformMap", [filter @ .., made]) if filter.len() < 2 => {
                let key = self.part(Expr::Ident(first.to_owned()));
                let step = vec![self.result(), key, made.clone()];
                let step = self.call(INSERT, step);
                let step = self.filtered(filter, step);
                [self.map(), self.bool(true), step, self.result()]
            }
            ("transformMapEntry", [filter @ .., made]) if filter.len() < 2 => {
                let step = vec![self.result(), made.clone()];
                let step = self.call(INSERT, step);
                let step = self.filtered(filter, step);
                [self.map(), self.bool(true), step, self.result()]
            }
            _ => return None,
        };
        Some(self.part(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: of.clone(),
            iter_var: first.to_owned(),
            iter_var2: Some(second.to_owned()),
            accu_var: RESULT.to_owned(),
            accu_init: start,
            loop_cond: condition,
            loop_step: step,
            result,
        }))))
    }

    /// A list that gets a name, is mapped to its keys, and sorted by them.
    fn sorted(&mut self, list: &Expression, variable: &str, key: &Expression) -> Expression {
        let made = self.list(vec![key.clone()]);
        let step = vec![self.result(), made];
        let keys = ComprehensionExpr {
            iter_range: self.part(Expr::Ident(SORTED.to_owned())),
            iter_var: variable.to_owned(),
            iter_var2: None,
            accu_var: RESULT.to_owned(),
            accu_init: self.list(Vec::new()),
            loop_cond: self.bool(true),
            loop_step: self.call(operators::ADD, step),
            result: self.result(),
        };
        let keys = self.part(Expr::Comprehension(Box::new(keys)));
        let input = self.part(Expr::Ident(SORTED.to_owned()));
        let sorted = self.part(Expr::Call(CallExpr {
            func_name: SORT.to_owned(),
            target: Some(Box::new(input)),
            args: vec![keys],
        }));
        let bound = ComprehensionExpr {
            iter_range: self.list(Vec::new()),
            iter_var: "#unused".to_owned(),
            iter_var2: None,
            accu_var: SORTED.to_owned(),
            accu_init: list.clone(),
            loop_cond: self.bool(false),
            loop_step: self.part(Expr::Ident(SORTED.to_owned())),
            result: sorted,
        };
        self.part(Expr::Comprehension(Box::new(bound)))
    }

    fn filtered(&mut self, filter: &[Expression], step: Expression) -> Expression {
        match filter {
            [filter, ..] => {
                let step = vec![filter.clone(), step, self.result()];
                self.call(operators::CONDITIONAL, step)
            }
            [] => step,
        }
    }

    fn part(&mut self, expr: Expr) -> Expression {
        let id = self.next;
        self.next += 1;
        Expression { id, expr }
    }

    fn result(&mut self) -> Expression {
        self.part(Expr::Ident(RESULT.to_owned()))
    }

    fn bool(&mut self, value: bool) -> Expression {
        self.part(Expr::Literal(LiteralValue::Boolean(value.into())))
    }

    fn int(&mut self, value: i64) -> Expression {
        self.part(Expr::Literal(LiteralValue::Int(value.into())))
    }

    fn list(&mut self, elements: Vec<Expression>) -> Expression {
        self.part(Expr::List(ListExpr::new(elements)))
    }

    fn map(&mut self) -> Expression {
        let entries = Vec::new();
        self.part(Expr::Map(MapExpr { entries }))
    }

    fn call(&mut self, name: &str, args: Vec<Expression>) -> Expression {
        self.part(Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args,
        }))
    }
}

fn entry<'e>(entry: &'e mut IdedEntryExpr, parts: &mut Vec<&'e mut Expression>) {
    match &mut entry.expr {
        EntryExpr::StructField(field) => parts.push(&mut field.value),
        EntryExpr::MapEntry(entry) => parts.extend([&mut entry.key, &mut entry.value]),
    }
}

/// The name that a variable of a macro has.
fn named(variable: &Expression) -> Option<&str> {
    match &variable.expr {
        Expr::Ident(name) => Some(name),
        _ => None,
    }
}
