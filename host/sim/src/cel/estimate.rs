//! What an expression costs at most when it is evaluated, before there is a value to
//! evaluate it on. The numbers are those of the real server's library, wherever they come
//! from: they decide which definitions it accepts.

mod calls;
mod extent;
mod range;
mod standard;
mod trail;

use std::collections::HashMap;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, MapExpr, SelectExpr, operators,
};
use kube_cel::cel::parser::Expression;

pub(crate) use self::extent::Extent;
use self::range::Range;
use self::trail::{INDICES, ITEMS, KEYS, Trail, VALUES};
use super::check::{self, Environment};
use super::facts::Facts;
use super::types::Type;

/// What using a variable or a field costs.
const USE: Range = Range::fixed(1);
const FREE: Range = Range::fixed(0);
/// What making something costs, but for its parts.
const LIST: Range = Range::fixed(10);
const MAP: Range = Range::fixed(30);
const OBJECT: Range = Range::fixed(40);
/// The function that makes anything of a value.
const DYN: &str = "dyn";

/// What an expression may cost at most, which was found to be right in an environment and
/// of whose parts these `facts` are known. All variables are as large as `variables` says.
pub(crate) fn cost(
    expression: &Expression,
    facts: &Facts,
    environment: &Environment,
    variables: &Extent,
) -> u64 {
    let estimated = || {
        if let Some(written) = super::macros::written_out(expression)
            && let Ok((_, facts)) = check::check(&written, environment)
        {
            return Estimate::new(&facts, variables).cost(&written).most;
        }
        Estimate::new(facts, variables).cost(expression).most
    };
    if super::is_deep(expression) {
        super::on_a_large_stack(estimated).unwrap_or(u64::MAX)
    } else {
        estimated()
    }
}

struct Estimate<'e> {
    facts: &'e Facts,
    /// How large the variables of the expression are.
    root: &'e Extent,
    /// Where parts of the expression lead to, by their numbers.
    trails: HashMap<u64, Trail>,
    /// How large they are, where it had to be found out.
    sizes: HashMap<u64, Range>,
    /// How large what is in them is.
    contents: HashMap<u64, Contents>,
    /// The variables of macros, the innermost of a name last.
    variables: HashMap<String, Vec<Variable>>,
}

/// How large the keys and values in a list or a map are.
#[derive(Debug, Clone, Copy)]
struct Contents {
    is_list: bool,
    key: Range,
    value: Range,
}

/// A variable of a macro.
#[derive(Debug, Clone, Default)]
struct Variable {
    trail: Trail,
    size: Option<Range>,
    contents: Option<Contents>,
}

/// What a function is called on or with.
struct Argument<'e> {
    expression: &'e Expression,
    ty: Type,
    trail: Trail,
    size: Option<Range>,
}

impl<'e> Estimate<'e> {
    fn new(facts: &'e Facts, root: &'e Extent) -> Self {
        Estimate {
            facts,
            root,
            trails: HashMap::new(),
            sizes: HashMap::new(),
            contents: HashMap::new(),
            variables: HashMap::new(),
        }
    }

    fn cost(&mut self, expression: &'e Expression) -> Range {
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => FREE,
            Expr::Ident(name) => self.named(expression, name.trim_start_matches('.')),
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => self.call(expression, call),
            Expr::List(list) => {
                let mut sum = FREE;
                let mut item = match list.elements.is_empty() {
                    true => FREE,
                    false => Range::NEITHER,
                };
                for element in &list.elements {
                    sum = sum.plus(self.cost(element));
                    item = item.joined(self.size_or_unknown(element));
                }
                let contents = Contents {
                    is_list: true,
                    key: Range::fixed(1),
                    value: item,
                };
                self.contents.insert(expression.id, contents);
                sum.plus(LIST)
            }
            Expr::Map(map) => self.map(expression, map),
            Expr::Struct(made) => {
                let mut sum = FREE;
                for entry in &made.entries {
                    if let EntryExpr::StructField(field) = &entry.expr {
                        sum = sum.plus(self.cost(&field.value));
                    }
                }
                sum.plus(OBJECT)
            }
            Expr::Comprehension(of) if is_binding(of) => {
                let sum = self.cost(&of.iter_range);
                let sum = sum.plus(self.cost(&of.accu_init));
                self.bind(&of.accu_var, &of.accu_init);
                let sum = sum.plus(self.cost(&of.result));
                self.unbind(&of.accu_var);
                self.is_as_large(expression, &of.result);
                sum
            }
            Expr::Comprehension(of) => self.comprehension(expression, of),
        }
    }

    fn named(&mut self, expression: &Expression, name: &str) -> Range {
        let trail = match self.variable(name) {
            Some(variable) => variable.trail.clone(),
            None => Trail::of(name),
        };
        self.trails.insert(expression.id, trail);
        USE
    }

    fn select(&mut self, expression: &Expression, select: &'e SelectExpr) -> Range {
        if let Some(name) = self.facts.name(expression.id) {
            return self.named(expression, name);
        }
        let sum = self.cost(&select.operand);
        if select.test {
            return sum;
        }
        let trail = self.trail(&select.operand).grown(&select.field);
        self.trails.insert(expression.id, trail);
        match self.facts.ty(select.operand.id) {
            Type::Map(..) | Type::Object(_) => sum.plus(USE),
            _ => sum,
        }
    }

    fn map(&mut self, expression: &Expression, map: &'e MapExpr) -> Range {
        let start = match map.entries.is_empty() {
            true => FREE,
            false => Range::NEITHER,
        };
        let (mut sum, mut key, mut value) = (FREE, start, start);
        for entry in &map.entries {
            if let EntryExpr::MapEntry(entry) = &entry.expr {
                sum = sum.plus(self.cost(&entry.key));
                sum = sum.plus(self.cost(&entry.value));
                key = key.joined(self.size_or_unknown(&entry.key));
                value = value.joined(self.size_or_unknown(&entry.value));
            }
        }
        let contents = Contents {
            is_list: false,
            key,
            value,
        };
        self.contents.insert(expression.id, contents);
        sum.plus(MAP)
    }

    fn call(&mut self, expression: &Expression, call: &'e CallExpr) -> Range {
        if call.func_name.trim_start_matches('.') == DYN
            && let [of] = call.args.as_slice()
        {
            let cost = self.cost(of);
            self.is_as_large(expression, of);
            return cost.plus(USE);
        }
        let mut arguments = Vec::with_capacity(call.args.len());
        let mut paid = Vec::with_capacity(call.args.len());
        for argument in &call.args {
            paid.push(self.cost(argument));
            arguments.push(self.argument(argument));
        }
        let facts = self.facts;
        let Some(chosen) = facts.call(expression.id) else {
            return self.special(expression, call, &paid);
        };
        let is_member = chosen.overloads.iter().any(|overload| overload.is_member);
        let (mut sum, mut on) = (FREE, None);
        if let Some(target) = call.target.as_deref().filter(|_| is_member) {
            sum = self.cost(target);
            on = Some(self.argument(target));
        }
        let made = standard::Call {
            expression,
            name: &chosen.name,
            on: on.as_ref(),
            arguments: &arguments,
            paid: &paid,
        };
        let mut cost = Range::NEITHER;
        let mut size: Option<Range> = None;
        for overload in &chosen.overloads {
            let (of_overload, large) = self.overload(&made, overload);
            cost = cost.joined(of_overload);
            size = match (size, large) {
                (Some(known), Some(large)) => Some(known.joined(large)),
                (known, large) => known.or(large),
            };
            if chosen.name == operators::INDEX
                && let Some(of) = call.args.first()
                && let Some(part) = match overload.arguments.first() {
                    Some(Type::List(_)) => Some(ITEMS),
                    Some(Type::Map(..)) => Some(VALUES),
                    _ => None,
                }
            {
                size = self.contents_of(of).map(|contents| contents.value);
                let trail = self.trail(of).grown(part);
                self.trails.insert(expression.id, trail);
            }
            size = size.or_else(|| self.size(expression));
        }
        if let Some(size) = size {
            self.sizes.insert(expression.id, size);
        }
        sum.plus(cost)
    }

    /// What calls cost that are of no function in the table.
    fn special(&mut self, expression: &Expression, call: &CallExpr, paid: &[Range]) -> Range {
        let all = paid.iter().fold(FREE, |sum, paid| sum.plus(*paid));
        let cost = match call.func_name.as_str() {
            // What is on the left may be enough.
            operators::LOGICAL_AND | operators::LOGICAL_OR => Range {
                least: paid.first().map_or(0, |first| first.least),
                ..all
            },
            operators::OPT_SELECT => all.plus(USE),
            _ => return FREE,
        };
        if let Some(size) = self.size(expression) {
            self.sizes.insert(expression.id, size);
        }
        cost
    }

    fn comprehension(&mut self, expression: &Expression, of: &'e ComprehensionExpr) -> Range {
        let sum = self.cost(&of.iter_range);
        let sum = sum.plus(self.cost(&of.accu_init));
        self.bind(&of.accu_var, &of.accu_init);
        match &of.iter_var2 {
            Some(second) => {
                self.iterate(&of.iter_var, &of.iter_range, Iterated::Keys);
                self.iterate(second, &of.iter_range, Iterated::Values);
            }
            None => self.iterate(&of.iter_var, &of.iter_range, Iterated::Only),
        }
        let condition = self.cost(&of.loop_cond);
        let step = self.cost(&of.loop_step);
        self.unbind(&of.iter_var);
        if let Some(second) = &of.iter_var2 {
            self.unbind(second);
        }
        let sum = sum.plus(self.cost(&of.result));
        self.unbind(&of.accu_var);
        let count = self.size_or_unknown(&of.iter_range);
        match &of.accu_init.expr {
            Expr::Literal(_) => {
                if let Some(size) = self.size(&of.accu_init) {
                    self.sizes.insert(expression.id, size);
                }
            }
            Expr::List(_) | Expr::Map(_) => {
                self.sizes.insert(expression.id, count);
                if let Some(contents) = self.contents_of(&of.loop_step) {
                    self.contents.insert(expression.id, contents);
                }
            }
            _ => {}
        }
        sum.plus(count.times(step.plus(condition)))
    }
}

/// Which variable of a macro it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Iterated {
    Keys,
    Values,
    /// The only one: the items of a list, the keys of a map.
    Only,
}

impl<'e> Estimate<'e> {
    fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.get(name)?.last()
    }

    fn bind(&mut self, name: &str, to: &Expression) {
        let variable = Variable {
            trail: self.trail(to),
            contents: self.contents_of(to),
            size: self.size(to),
        };
        self.declare(name, variable);
    }

    fn declare(&mut self, name: &str, variable: Variable) {
        let known = self.variables.entry(name.to_owned()).or_default();
        known.push(variable);
    }

    fn unbind(&mut self, name: &str) {
        if let Some(known) = self.variables.get_mut(name) {
            known.pop();
        }
    }

    fn iterate(&mut self, name: &str, range: &Expression, what: Iterated) {
        let contents = self.contents_of(range);
        let is_list = match contents {
            Some(contents) => contents.is_list,
            None => matches!(self.facts.ty(range.id), Type::List(_)),
        };
        let (part, is_key) = match (what, is_list) {
            (Iterated::Keys, true) => (INDICES, true),
            (Iterated::Keys | Iterated::Only, false) => (KEYS, true),
            (Iterated::Values | Iterated::Only, true) => (ITEMS, false),
            (Iterated::Values, false) => (VALUES, false),
        };
        let size = contents.map(|contents| match is_key {
            true => contents.key,
            false => contents.value,
        });
        let variable = Variable {
            trail: self.trail(range).grown(part),
            size,
            contents: None,
        };
        self.declare(name, variable);
    }

    fn argument(&mut self, expression: &'e Expression) -> Argument<'e> {
        Argument {
            expression,
            ty: self.facts.ty(expression.id).clone(),
            trail: self.trail(expression),
            size: self.size(expression),
        }
    }

    fn trail(&self, expression: &Expression) -> Trail {
        let variable = match &expression.expr {
            Expr::Ident(name) => self.variable(name),
            _ => None,
        };
        match variable {
            Some(variable) => variable.trail.clone(),
            None => self.trails.get(&expression.id).cloned().unwrap_or_default(),
        }
    }

    fn size_or_unknown(&mut self, expression: &Expression) -> Range {
        self.size(expression).unwrap_or(Range::UNKNOWN)
    }

    /// How large a part is, where something is known of that.
    fn size(&mut self, expression: &Expression) -> Option<Range> {
        if let Some(known) = self.sizes.get(&expression.id) {
            return Some(*known);
        }
        if let Some(size) = as_written(expression) {
            return Some(Range::fixed(size));
        }
        if let Some(size) = self.root.size(&self.trail(expression)) {
            self.sizes.insert(expression.id, size);
            return Some(size);
        }
        if is_scalar(self.facts.ty(expression.id)) {
            return Some(Range::fixed(1));
        }
        match &expression.expr {
            Expr::Ident(name) => self.variable(name)?.size,
            _ => None,
        }
    }

    fn contents_of(&self, expression: &Expression) -> Option<Contents> {
        if let Some(known) = self.contents.get(&expression.id) {
            return Some(*known);
        }
        match &expression.expr {
            Expr::Ident(name) => self.variable(name)?.contents,
            _ => None,
        }
    }

    /// Notes that one part is as large as another.
    fn is_as_large(&mut self, expression: &Expression, as_this: &Expression) {
        if let Some(size) = self.size(as_this) {
            self.sizes.insert(expression.id, size);
        }
        if let Some(contents) = self.contents_of(as_this) {
            self.contents.insert(expression.id, contents);
        }
    }
}

/// Whether a macro gives a value a name, and goes through nothing.
fn is_binding(of: &ComprehensionExpr) -> bool {
    matches!(&of.iter_range.expr, Expr::List(list) if list.elements.is_empty())
        && matches!(&of.loop_cond.expr, Expr::Literal(LiteralValue::Boolean(value)) if !*value.inner())
}

/// How large what is written out is.
fn as_written(expression: &Expression) -> Option<u64> {
    let size = match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => text.inner().chars().count(),
        Expr::Literal(LiteralValue::Bytes(bytes)) => bytes.inner().len(),
        Expr::Literal(_) => 1,
        Expr::List(list) => list.elements.len(),
        Expr::Map(map) => map.entries.len(),
        _ => return None,
    };
    Some(size as u64)
}

/// Whether all values of a type are of the same size.
fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Optional(of) => is_scalar(of),
        _ => false,
    }
}
