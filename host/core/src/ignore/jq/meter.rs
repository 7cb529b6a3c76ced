//! Counting the steps of an evaluation.
//!
//! Every part of an expression is put between two calls of a function that
//! counts: once for each time that it is evaluated, once for each result. That is
//! where all work of an expression without definitions passes by. Once nothing is
//! left to spend, each of them fails at once, also where failures are caught.

use jaq_core::box_iter::box_once;
use jaq_core::load::parse::{BinaryOp, Term};
use jaq_core::path::{Part, Path};
use jaq_core::{Bind, DataT, Error, Exn, Lut, Native, ValR, native};
use jaq_json::Val;
use jaq_std::ValT as _;
use regex::{Regex, RegexBuilder};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

const TICK: &str = "metered_step";

/// The largest pattern, compiled; those that people write are far below.
const MAX_PATTERN: usize = 64 << 10;
/// Patterns that one evaluation may have: they come from the expression, or from
/// the object.
const MAX_PATTERNS: usize = 16;

/// Data of an evaluation that is metered.
pub(super) struct Metered;

impl DataT for Metered {
    type V<'a> = Val;
    type Data<'a> = Data<'a>;
}

/// What an evaluation may spend, and what it keeps for itself.
pub(super) struct Meter {
    left: Cell<u32>,
    patterns: RefCell<HashMap<String, Option<Regex>>>,
}

/// What functions see of that.
#[derive(Clone)]
pub(super) struct Data<'a> {
    lut: &'a Lut<Metered>,
    meter: &'a Meter,
}

impl<'a> jaq_core::data::HasLut<'a, Metered> for Data<'a> {
    fn lut(&self) -> &'a Lut<Metered> {
        self.lut
    }
}

impl Meter {
    pub(super) fn new(fuel: u32) -> Self {
        Self {
            left: Cell::new(fuel),
            patterns: RefCell::default(),
        }
    }

    pub(super) fn data<'a>(&'a self, lut: &'a Lut<Metered>) -> Data<'a> {
        Data { lut, meter: self }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.get() == 0
    }

    fn tick(&self) -> Result<(), Exn<'static, Val>> {
        let left = self.left.get().saturating_sub(1);
        self.left.set(left);
        if left == 0 {
            return Err(Exn::from(Error::str("too many steps")));
        }
        Ok(())
    }

    /// Whether a text matches a pattern; compiling one is what costs.
    fn matches(&self, text: &str, pattern: &str) -> Result<bool, String> {
        let mut patterns = self.patterns.borrow_mut();
        if !patterns.contains_key(pattern) {
            if patterns.len() >= MAX_PATTERNS {
                return Err(format!("more than {MAX_PATTERNS} patterns"));
            }
            let compiled = RegexBuilder::new(pattern).size_limit(MAX_PATTERN).build();
            patterns.insert(pattern.to_owned(), compiled.ok());
        }
        match patterns.get(pattern) {
            Some(Some(compiled)) => Ok(compiled.is_match(text)),
            _ => Err(format!("`{pattern}` is no pattern")),
        }
    }
}

/// The functions of our own: the one that counts, and `test`, which the standard
/// library has only together with clocks and logs.
pub(super) fn functions() -> impl Iterator<Item = native::Fun<Metered>> {
    let tick: Native<Metered> = Native::new(|cv| {
        let ticked = cv.0.data().meter.tick();
        box_once(ticked.map(|()| cv.1))
    });
    let tick = tick.with_paths(|cv| {
        let ticked = cv.0.data().meter.tick();
        box_once(ticked.map(|()| cv.1))
    });
    let test: Native<Metered> = Native::new(|mut cv| {
        let pattern = cv.0.pop_var();
        let found = test(cv.0.data().meter, &cv.1, &pattern);
        box_once(found.map_err(Exn::from))
    });
    let no_arguments: Box<[Bind]> = Box::new([]);
    [(TICK, no_arguments, tick), ("test", native::v(1), test)].into_iter()
}

fn test(meter: &Meter, text: &Val, pattern: &Val) -> ValR<Val> {
    fn utf8(value: &Val) -> Option<&str> {
        std::str::from_utf8(value.as_utf8_bytes()?).ok()
    }
    match (utf8(text), utf8(pattern)) {
        (Some(text), Some(pattern)) => meter
            .matches(text, pattern)
            .map(Val::Bool)
            .map_err(Error::str),
        _ => Err(Error::str("only texts can be tested")),
    }
}

/// The same expression, counting.
pub(super) fn metered(term: Term<&str>) -> Term<&str> {
    let boxed = |term: Box<Term<_>>| Box::new(metered(*term));
    let inside = match term {
        Term::Arr(Some(term)) => Term::Arr(Some(boxed(term))),
        Term::BinOp(left, operator, right) => Term::BinOp(boxed(left), operator, boxed(right)),
        Term::TryCatch(tried, caught) => Term::TryCatch(boxed(tried), caught.map(boxed)),
        Term::IfThenElse(cases, otherwise) => {
            let cases = cases.into_iter();
            let cases = cases.map(|(condition, then)| (metered(condition), metered(then)));
            Term::IfThenElse(cases.collect(), otherwise.map(boxed))
        }
        Term::Call(name, arguments) => {
            Term::Call(name, arguments.into_iter().map(metered).collect())
        }
        Term::Path(term, Path(path)) => {
            let path = path.into_iter().map(|(part, optional)| {
                let part = match part {
                    Part::Index(index) => Part::Index(metered(index)),
                    Part::Range(from, to) => Part::Range(from.map(metered), to.map(metered)),
                };
                (part, optional)
            });
            Term::Path(boxed(term), Path(path.collect()))
        }
        other => other,
    };
    let tick = || Box::new(Term::Call(TICK, Vec::new()));
    let then = |left, right| Term::BinOp(left, BinaryOp::Pipe(None), right);
    then(tick(), Box::new(then(Box::new(inside), tick())))
}
