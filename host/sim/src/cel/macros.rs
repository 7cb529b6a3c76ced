//! The macros that the parser does not know, written out: those over two variables,
//! `sortBy`, `optMap` and `optFlatMap`.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, ListExpr, LiteralValue, MapExpr,
    operators,
};
use kube_cel::cel::parser::Expression;

use super::meter;
use super::source::Fault;

/// Puts an entry, or those of a map, into a map.
pub(super) const INSERT: &str = "cel.@mapInsert";
/// Sorts a list by what another says of its items.
pub(super) const SORT: &str = "@sortByAssociatedKeys";
/// What is in a list or a map, in pairs with places or keys.
pub(super) const PAIRS: &str = "@pairs";
/// The macros that are written out here: what is in them is looked at when they are. With
/// how many arguments they come at least.
pub(super) const KNOWN: [(&str, usize); 10] = [
    ("all", 3),
    ("exists", 3),
    ("existsOne", 3),
    ("exists_one", 3),
    ("transformList", 3),
    ("transformMap", 3),
    ("transformMapEntry", 3),
    ("sortBy", 2),
    ("optMap", 2),
    ("optFlatMap", 2),
];
/// A pair of which one is gone through.
const PAIR: &str = "@pair";
/// The list that is sorted.
const SORTED: &str = "@__sortBy_input__";
/// So many parts are written twice at most: values that may be absent, one after another,
/// double each time, as they do in the real server, where no limit but that of costs is set
/// to it. What is beyond is left as it is, and no function.
const TWICE: usize = 1 << 16;
/// What a macro has come to so far.
const RESULT: &str = "@result";
/// The numbers of what is written out begin here: what was read has none as large.
const FIRST: u64 = 1 << 40;

/// An expression in which these macros are written out, each part with a number of its own;
/// none where there is none of them.
pub(super) fn written_out(expression: &Expression) -> Option<Expression> {
    write(expression, false)
}

/// As [`written_out`], but what is written out is where its macro is, and has its number.
pub(super) fn written_in_place(expression: &Expression) -> Option<Expression> {
    write(expression, true)
}

fn write(expression: &Expression, in_place: bool) -> Option<Expression> {
    let mut written = expression.clone();
    let mut writer = Writer {
        room: TWICE,
        next: FIRST,
        in_place,
        place: 0,
    };
    writer.visit(&mut written);
    (writer.next > FIRST).then_some(written)
}

/// What is wrong with the variables of these macros, in the order of the text.
pub(super) fn misused(expression: &mut Expression) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    if let Expr::Call(call) = &expression.expr
        && call.target.is_some()
    {
        let name = call.func_name.as_str();
        let is_macro = |(known, least): &(&str, usize)| *known == name && *least <= call.args.len();
        if KNOWN.iter().any(is_macro) {
            faults.extend(misnamed(name, &call.args));
        }
    }
    for part in parts(expression) {
        faults.extend(misused(part));
    }
    faults
}

fn misnamed(name: &str, arguments: &[Expression]) -> Option<Fault> {
    let fault = |at: &Expression, text: String| Some(Fault { id: at.id, text });
    let simple = match name {
        "sortBy" => "argument is not an identifier".to_owned(),
        "optMap" | "optFlatMap" => format!("{name}() variable name must be a simple identifier"),
        _ => "argument must be a simple name".to_owned(),
    };
    let variables = match name {
        "sortBy" | "optMap" | "optFlatMap" => 1,
        _ => 2,
    };
    let variables = arguments.get(..variables)?;
    if let Some(wrong) = variables.iter().find(|given| named(given).is_none()) {
        return fault(wrong, simple);
    }
    match variables {
        [first, second] if named(first) == named(second) => {
            let twice = named(first).unwrap_or_default();
            fault(second, format!("duplicate variable name: {twice}"))
        }
        _ => None,
    }
}

/// Makes loops over two variables, which the evaluator does not know, ones over pairs.
/// Whoever counts what parts cost has done so before.
pub(super) fn paired(expression: &mut Expression) {
    for part in parts(expression) {
        paired(part);
    }
    let id = expression.id;
    let part = |expr| Expression { id, expr };
    let Expr::Comprehension(of) = &mut expression.expr else {
        return;
    };
    let Some(second) = of.iter_var2.take() else {
        return;
    };
    let of_pair = |place: i64| {
        let place = Expr::Literal(LiteralValue::Int(place.into()));
        part(Expr::Call(CallExpr {
            func_name: operators::INDEX.to_owned(),
            target: None,
            args: vec![part(Expr::Ident(PAIR.to_owned())), part(place)],
        }))
    };
    let first = std::mem::replace(&mut of.iter_var, PAIR.to_owned());
    let step = std::mem::take(&mut of.loop_step);
    of.loop_step = named_in(
        &part,
        first,
        of_pair(0),
        named_in(&part, second, of_pair(1), step),
    );
    let range = std::mem::take(&mut of.iter_range);
    of.iter_range = part(Expr::Call(CallExpr {
        func_name: PAIRS.to_owned(),
        target: None,
        args: vec![range],
    }));
}

/// Gives a value a name inside of an expression: a loop that goes through nothing.
fn named_in(
    part: &impl Fn(Expr) -> Expression,
    name: String,
    value: Expression,
    inside: Expression,
) -> Expression {
    part(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: part(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_init: value,
        loop_cond: part(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: part(Expr::Ident(name.clone())),
        accu_var: name,
        result: inside,
    })))
}

/// What an expression directly consists of.
fn parts(expression: &mut Expression) -> Vec<&mut Expression> {
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
    parts
}

/// Whether an expression has no more parts than are `left`, which are taken from those.
fn is_small(expression: &Expression, left: &mut usize) -> bool {
    let Some(less) = left.checked_sub(1) else {
        return false;
    };
    *left = less;
    let parts = meter::parts(expression);
    parts.into_iter().all(|part| is_small(part, left))
}

struct Writer {
    next: u64,
    /// How many parts may still be written twice.
    room: usize,
    /// Whether what is written gets the number of the macro.
    in_place: bool,
    place: u64,
}

impl Writer {
    fn visit(&mut self, expression: &mut Expression) {
        for part in parts(expression) {
            self.visit(part);
        }
        self.place = expression.id;
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
        match (name, arguments) {
            ("sortBy", [variable, key]) => {
                return Some(self.sorted(of, named(variable)?, key));
            }
            ("optMap" | "optFlatMap", [variable, made]) if is_small(of, &mut self.room) => {
                return Some(self.mapped(of, named(variable)?, made, name == "optMap"));
            }
            _ => {}
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
        self.bound(SORTED, list.clone(), sorted)
    }

    /// What is made of a value that may be absent, where it is there: something that `may`
    /// be absent itself, or not.
    fn mapped(
        &mut self,
        of: &Expression,
        variable: &str,
        made: &Expression,
        is_there: bool,
    ) -> Expression {
        let present = self.member(of.clone(), "hasValue", Vec::new());
        let value = self.member(of.clone(), "value", Vec::new());
        let mut made = self.bound(variable, value, made.clone());
        let optional = || Expr::Ident("optional".to_owned());
        if is_there {
            let of = self.part(optional());
            made = self.member(of, "of", vec![made]);
        }
        let none = self.part(optional());
        let none = self.member(none, "none", Vec::new());
        self.call(operators::CONDITIONAL, vec![present, made, none])
    }

    /// An expression in which a value has a name.
    fn bound(&mut self, name: &str, value: Expression, inside: Expression) -> Expression {
        let bound = ComprehensionExpr {
            iter_range: self.list(Vec::new()),
            iter_var: "#unused".to_owned(),
            iter_var2: None,
            accu_var: name.to_owned(),
            accu_init: value,
            loop_cond: self.bool(false),
            loop_step: self.part(Expr::Ident(name.to_owned())),
            result: inside,
        };
        self.part(Expr::Comprehension(Box::new(bound)))
    }

    fn member(&mut self, of: Expression, name: &str, args: Vec<Expression>) -> Expression {
        self.part(Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: Some(Box::new(of)),
            args,
        }))
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
        let id = if self.in_place { self.place } else { self.next };
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
