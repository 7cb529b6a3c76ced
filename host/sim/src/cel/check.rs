//! The check of the types in an expression, in the words of the real server's library.

mod known;

use std::collections::HashMap;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr,
    StructExpr, operators,
};
use kube_cel::cel::parser::Expression;

use self::known::{named_type, of_literal, qualified, shifted};
use super::facts::Facts;
use super::functions::{self, Overload};
use super::library;
use super::macros;
use super::made;
use super::source::Fault;
use super::types::{Bindings, Type};

/// What an expression may refer to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    variables: HashMap<String, Type>,
    /// Whether it may make objects.
    makes_objects: bool,
}

impl Environment {
    /// The same with one more variable, whose name may have dots.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, ty: Type) -> Self {
        self.variables.insert(name.to_owned(), ty);
        self
    }

    /// The same for expressions that may make objects.
    #[must_use]
    pub(crate) fn making_objects(mut self) -> Self {
        self.makes_objects = true;
        self
    }
}

/// The type of an expression, and what is known of its parts.
///
/// # Errors
///
/// All that is wrong with it.
pub(super) fn check(
    expression: &Expression,
    environment: &Environment,
) -> Result<(Type, Facts), Vec<Fault>> {
    let mut checker = Checker {
        environment,
        scopes: Vec::new(),
        bindings: Bindings::default(),
        facts: Facts::default(),
        faults: Vec::new(),
        late: Vec::new(),
        mixed: 0,
    };
    let ty = checker.check(expression);
    if !checker.faults.is_empty() {
        Err(checker.faults)
    } else if !checker.late.is_empty() {
        Err(checker.late)
    } else {
        let ty = checker.bindings.settle(&ty);
        Ok((ty, checker.facts.settled(&checker.bindings)))
    }
}

/// The function that only those know that make objects.
const ESCAPE: &str = "jsonpatch.escapeKey";

/// The function whose lists may hold items of several types.
const MIXED: &str = "format";

struct Checker<'e> {
    environment: &'e Environment,
    /// The variables of the macros around, the innermost last.
    scopes: Vec<(String, Type)>,
    bindings: Bindings,
    facts: Facts,
    faults: Vec<Fault>,
    /// What is only looked at where nothing else is wrong.
    late: Vec<Fault>,
    /// How many calls are around whose lists may hold items of several types.
    mixed: usize,
}

impl Checker<'_> {
    fn check(&mut self, expression: &Expression) -> Type {
        let ty = self.found(expression);
        self.facts.has_type(expression.id, &ty);
        ty
    }

    fn found(&mut self, expression: &Expression) -> Type {
        let id = expression.id;
        match &expression.expr {
            Expr::Unspecified => Type::Dyn,
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => match self.variable(name) {
                Some(ty) => ty,
                None => self.undeclared(id, name),
            },
            Expr::Select(select) => self.select(expression, select),
            Expr::Call(call) => self.call(id, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Struct(made) => self.made(id, made),
            Expr::Comprehension(of) => self.comprehension(of),
        }
    }

    /// An object that is made, where that is possible.
    fn made(&mut self, id: u64, object: &StructExpr) -> Type {
        let name = object.type_name.trim_start_matches('.');
        let is_patch = name == made::PATCH;
        if !self.environment.makes_objects || !(is_patch || made::is_object(name)) {
            return self.undeclared(id, name);
        }
        for entry in &object.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                continue;
            };
            let found = self.check(&field.value);
            let expected = match field.field.as_str() {
                _ if !is_patch => continue,
                "op" | "path" | "from" => Some(Type::Text),
                "value" => continue,
                _ => None,
            };
            if !expected
                .as_ref()
                .is_some_and(|ty| self.bindings.unify(&found, ty))
            {
                let found = self.bindings.resolve(&found);
                let expected = expected.map(|ty| ty.to_string()).unwrap_or_default();
                let text = format!(
                    "expected type of field '{}' is '{expected}' but provided type is '{found}'",
                    field.field
                );
                self.fault(entry.id, text);
            }
        }
        match name {
            made::PATCH => Type::Opaque(made::PATCH),
            made::OBJECT => Type::Opaque(made::OBJECT),
            _ => Type::Dyn,
        }
    }

    fn fault(&mut self, id: u64, text: String) -> Type {
        self.faults.push(Fault { id, text });
        Type::Error
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Type {
        let text = format!("undeclared reference to '{name}' (in container '')");
        self.fault(id, text)
    }

    fn mismatch(&mut self, id: u64, expected: &Type, found: &Type) -> Type {
        let text = format!("expected type '{expected}' but found '{found}'");
        self.fault(id, text)
    }

    fn variable(&self, name: &str) -> Option<Type> {
        let name = name.trim_start_matches('.');
        let mut scopes = self.scopes.iter().rev();
        let near = scopes.find(|(variable, _)| variable == name);
        let found = near.map(|(_, ty)| ty);
        let found = found.or_else(|| self.environment.variables.get(name));
        found.cloned().or_else(|| named_type(name))
    }

    fn select(&mut self, expression: &Expression, select: &SelectExpr) -> Type {
        // A name with dots may be that of one variable.
        if !select.test
            && let Some(name) = qualified(expression)
            && let known = self.environment.variables.get(&name).cloned()
            && let Some(ty) = known.or_else(|| named_type(&name))
        {
            self.facts.has_name(expression.id, name);
            return ty;
        }
        let ty = self.field(expression.id, &select.operand, &select.field, false);
        if select.test { Type::Bool } else { ty }
    }

    /// The type of a field; `optional` where it may be absent.
    fn field(&mut self, id: u64, of: &Expression, field: &str, optional: bool) -> Type {
        let holder = self.check(of);
        let holder = self.bindings.resolve(&holder);
        let (holder, may_be_absent) = match holder {
            Type::Optional(value) => (Type::clone(&value), true),
            other => (other, false),
        };
        let ty = match &holder {
            Type::Map(_, value) => Type::clone(value),
            Type::Object(object) => match object.fields.get(field) {
                Some(ty) => ty.clone(),
                None => self.fault(id, format!("undefined field '{field}'")),
            },
            Type::Opaque(_) => self.fault(id, format!("undefined field '{field}'")),
            Type::Variable(_) => {
                self.bindings.unify(&Type::Dyn, &holder);
                Type::Dyn
            }
            open if open.is_open() => Type::Dyn,
            other => {
                let text = format!("type '{other}' does not support field selection");
                self.fault(id, text);
                Type::Dyn
            }
        };
        if may_be_absent || optional {
            Type::optional(ty)
        } else {
            ty
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Type {
        if call.func_name == operators::OPT_SELECT
            && let [of, field] = call.args.as_slice()
            && let Expr::Literal(LiteralValue::String(field)) = &field.expr
        {
            return self.field(id, of, field.inner(), true);
        }
        let macro_like = (call.func_name.as_str(), call.args.len());
        if let Some(target) = &call.target
            && macros::KNOWN
                .iter()
                .any(|(name, least)| *name == macro_like.0 && *least <= macro_like.1)
        {
            self.check(target);
            return match macro_like.0 {
                "all" | "exists" | "existsOne" | "exists_one" => Type::Bool,
                _ => Type::Dyn,
            };
        }
        let may_be_mixed = usize::from(call.func_name == MIXED);
        self.mixed += may_be_mixed;
        let arguments: Vec<Type> = call.args.iter().map(|arg| self.check(arg)).collect();
        self.mixed -= may_be_mixed;
        self.literal(call);
        let name = call.func_name.trim_start_matches('.');
        let Some(target) = &call.target else {
            if matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR) {
                return self.logical(call, &arguments);
            }
            return match functions::named(name) {
                Some(overloads) => self.resolve(id, name, overloads, &arguments, false),
                None => self.undeclared(id, name),
            };
        };
        if let Some(prefix) = qualified(target) {
            let name = format!("{prefix}.{name}");
            let is_known = self.environment.makes_objects || name != ESCAPE;
            if is_known && let Some(overloads) = functions::named(&name) {
                return self.resolve(id, &name, overloads, &arguments, false);
            }
        }
        let target = self.check(target);
        match functions::named(name) {
            Some(overloads) => {
                let arguments: Vec<Type> = std::iter::once(target).chain(arguments).collect();
                self.resolve(id, name, overloads, &arguments, true)
            }
            None => self.undeclared(id, name),
        }
    }

    /// Looks into texts that functions would have to refuse whenever they are called.
    fn literal(&mut self, call: &CallExpr) {
        let Some(argument) = call.args.first() else {
            return;
        };
        let Expr::Literal(LiteralValue::String(text)) = &argument.expr else {
            return;
        };
        let name = call.func_name.as_str();
        let fits = match name {
            "matches" => library::is_pattern(text.inner()),
            "duration" | "timestamp" => library::takes(name, text.inner()),
            _ => return,
        };
        if !fits {
            let text = format!("invalid {name} argument");
            self.late.push(Fault {
                id: argument.id,
                text,
            });
        }
    }

    fn logical(&mut self, call: &CallExpr, arguments: &[Type]) -> Type {
        let mut ty = Type::Bool;
        for (argument, found) in call.args.iter().zip(arguments) {
            if !self.bindings.unify(found, &Type::Bool) {
                let found = self.bindings.resolve(found);
                ty = self.mismatch(argument.id, &Type::Bool, &found);
            }
        }
        ty
    }

    /// What comes out of a call, by the ways that fit.
    fn resolve(
        &mut self,
        id: u64,
        name: &str,
        overloads: &'static [Overload],
        arguments: &[Type],
        is_member: bool,
    ) -> Type {
        let mut result: Option<Type> = None;
        let mut chosen = Vec::new();
        let overloads = overloads.iter().filter(|o| o.is_member == is_member);
        for overload in overloads.filter(|o| o.arguments.len() == arguments.len()) {
            let first = self.bindings.fresh(overload.variables);
            let wanted = overload.arguments.iter().map(|ty| shifted(ty, first));
            let wanted: Vec<Type> = wanted.collect();
            if !self.bindings.unify_all(arguments.iter().zip(&wanted)) {
                continue;
            }
            chosen.push(overload);
            let made = self.bindings.resolve(&shifted(&overload.result, first));
            result = Some(match result {
                None => made,
                Some(other) if other == Type::Dyn || other == made => other,
                Some(_) => Type::Dyn,
            });
        }
        if let Some(result) = result {
            self.facts.calls(id, name, chosen);
            return result;
        }
        let arguments = arguments
            .iter()
            .map(|ty| self.bindings.settle(ty).to_string());
        let mut arguments: Vec<String> = arguments.collect();
        let on = if is_member && !arguments.is_empty() {
            format!("{}.", arguments.remove(0))
        } else {
            String::new()
        };
        let text = format!(
            "found no matching overload for '{name}' applied to '{on}({})'",
            arguments.join(", ")
        );
        self.fault(id, text)
    }

    fn list(&mut self, list: &ListExpr) -> Type {
        let mut item = None;
        for (index, element) in list.elements.iter().enumerate() {
            let mut ty = self.check(element);
            if list.optional_indices.contains(&index) {
                ty = self.unwrapped(element.id, &ty);
            }
            item = Some(self.joined(element.id, item, ty));
        }
        let item = item.unwrap_or_else(|| Type::Variable(self.bindings.fresh(1)));
        Type::list(item)
    }

    fn map(&mut self, map: &MapExpr) -> Type {
        let (mut key, mut value) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let ty = self.check(&entry.key);
            // No keys when it is evaluated; as types, they would double with each map.
            let ty = match self.bindings.resolve(&ty) {
                Type::List(_) | Type::Map(..) | Type::Optional(_) => Type::Dyn,
                plain => plain,
            };
            key = Some(self.joined(entry.key.id, key, ty));
            let mut ty = self.check(&entry.value);
            if entry.optional {
                ty = self.unwrapped(entry.value.id, &ty);
            }
            value = Some(self.joined(entry.value.id, value, ty));
        }
        let mut or_any = |ty: Option<Type>| {
            ty.unwrap_or_else(|| Type::Variable(self.bindings.fresh(1)))
                .into()
        };
        Type::Map(or_any(key), or_any(value))
    }

    /// What an item that may be absent is when it is there.
    fn unwrapped(&mut self, id: u64, ty: &Type) -> Type {
        match self.bindings.resolve(ty) {
            Type::Optional(value) => Type::clone(&value),
            open if open.is_open() => open,
            other => {
                self.mismatch(id, &Type::optional(other.clone()), &other);
                other
            }
        }
    }

    /// The type of several items of a list.
    fn joined(&mut self, id: u64, before: Option<Type>, ty: Type) -> Type {
        let Some(before) = before else { return ty };
        if self.bindings.unify(&before, &ty) {
            return before.more_general(ty);
        }
        if self.mixed > 0 {
            return Type::Dyn;
        }
        let [before, ty] = [before, ty].map(|ty| self.bindings.resolve(&ty));
        self.mismatch(id, &before, &ty)
    }

    fn comprehension(&mut self, of: &ComprehensionExpr) -> Type {
        let range = self.check(&of.iter_range);
        let sum = self.check(&of.accu_init);
        let range = self.bindings.resolve(&range);
        let (first, second) = match &range {
            Type::List(item) if of.iter_var2.is_some() => (Type::Int, Type::clone(item)),
            Type::List(item) => (Type::clone(item), Type::Dyn),
            Type::Map(key, value) => (Type::clone(key), Type::clone(value)),
            Type::Dyn | Type::Error | Type::Variable(_) => {
                self.bindings.unify(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.fault(of.iter_range.id, text);
                (Type::Error, Type::Error)
            }
        };
        let depth = self.scopes.len();
        self.scopes.push((of.accu_var.clone(), sum.clone()));
        self.scopes.push((of.iter_var.clone(), first));
        if let Some(variable) = &of.iter_var2 {
            self.scopes.push((variable.clone(), second));
        }
        self.expect(&of.loop_cond, &Type::Bool);
        self.expect(&of.loop_step, &sum);
        self.scopes.truncate(depth + 1);
        let result = self.check(&of.result);
        self.scopes.truncate(depth);
        self.bindings.resolve(&result)
    }

    fn expect(&mut self, expression: &Expression, wanted: &Type) {
        let found = self.check(expression);
        if !self.bindings.unify(wanted, &found) {
            let [wanted, found] = [wanted, &found].map(|ty| self.bindings.resolve(ty));
            self.mismatch(expression.id, &wanted, &found);
        }
    }
}
