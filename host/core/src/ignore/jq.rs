//! Path expressions of jq: which places in an object they name.
//!
//! jq is a whole language, and an expression is written by whoever may write an
//! annotation or a policy, so of the language there is what names places:
//! paths, pipes, alternatives, comparisons, `select` and the like. What defines,
//! accumulates, computes or assigns is refused. What is left ends, but may take
//! long, so every step of it is counted, and ends at a limit (Argo CD ends it
//! after a second, which is another result on another machine).

mod meter;
mod restrict;

use super::remove::{Location, Step};
use jaq_core::load::{Arena, File, Loader, parse};
use jaq_core::{Compiler, Ctx, Vars, unwrap_valr};
use jaq_json::Val;
use jaq_std::ValT as _;
use meter::{Meter, Metered};
use serde_json::Value;

/// The longest expression, in bytes.
const MAX_LENGTH: usize = 1024;
/// What the parser gets to recurse in. Only what is used is ever backed by
/// memory.
const PARSER_STACK: usize = 64 << 20;
/// Steps that an evaluation may take: some tens of milliseconds.
const FUEL: u32 = 100_000;

/// Why an expression cannot be used.
///
/// There are: `.`, `..`, fields, items, `[]`, `?`, `|`, `,`, `//`, `and`, `or`,
/// `not`, comparisons, `if`, `try`, lists, texts, numbers, and the functions
/// `select`, `first`, `last`, `any`, `all`, `has`, `keys`, `length`, `type`,
/// `startswith`, `endswith`, `test`, `contains`, `inside`, `in`, `map`,
/// `to_entries`, `ascii_downcase`, `empty`, `true`, `false`, `null`, and the
/// selections by type, such as `strings`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JqError {
    /// It is longer than is accepted.
    #[error("it has {0} bytes; at most {MAX_LENGTH} are accepted")]
    TooLong(usize),
    /// It nests deeper than is accepted, or has more parts.
    #[error(
        "it is too deep or too large; at most {} parts in each other and {} in all are accepted",
        restrict::MAX_DEPTH,
        restrict::MAX_PARTS
    )]
    TooLarge,
    /// It is no jq.
    #[error("it is no jq")]
    Syntax,
    /// It uses something of jq that is not offered.
    #[error("it uses {0}, which is not offered for naming places")]
    NotOffered(String),
}

/// A path expression, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JqPath {
    source: String,
}

/// Why an expression names nothing in an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misfit {
    #[error("it takes more than {FUEL} steps on this object")]
    TooCostly,
    #[error("{0}")]
    Failed(String),
}

impl JqPath {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// When it is none, or uses what is not offered.
    pub(super) fn parse(source: &str) -> Result<Self, JqError> {
        if source.len() > MAX_LENGTH {
            return Err(JqError::TooLong(source.len()));
        }
        std::thread::scope(|scope| {
            let parser = std::thread::Builder::new().stack_size(PARSER_STACK);
            let checked = parser.spawn_scoped(scope, || {
                let term = parse(source, |parser| parser.term()).ok_or(JqError::Syntax)?;
                restrict::check(&term)?;
                compile(source).map(|_| ()).ok_or(JqError::Syntax)
            });
            let checked = checked.map_err(|_| JqError::TooLarge)?;
            checked.join().unwrap_or(Err(JqError::Syntax))
        })?;
        Ok(Self {
            source: source.to_owned(),
        })
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Which places of an object it names. Those that it names without there
    /// being anything are among them.
    pub(super) fn find(&self, object: &Value) -> Result<Vec<Location>, Misfit> {
        let failed = |text: String| Misfit::Failed(crate::annotations::shortened(&text, 200));
        let filter = compile(&self.source).ok_or_else(|| failed("it is no jq".to_owned()))?;
        let input = jaq_json::read::parse_single(object.to_string().as_bytes())
            .map_err(|error| failed(error.to_string()))?;
        let meter = Meter::new(FUEL);
        let context = Ctx::<Metered>::new(meter.data(&filter.lut), Vars::new([]));
        let mut locations = Vec::new();
        let mut problem = None;
        for output in filter.id.run((context, input)).map(unwrap_valr) {
            match output {
                Ok(path) => locations.extend(location(object, &path)),
                Err(error) => {
                    problem = Some(failed(error.to_string()));
                    break;
                }
            }
        }
        if meter.is_empty() {
            return Err(Misfit::TooCostly);
        }
        match problem {
            Some(problem) => Err(problem),
            None => Ok(locations),
        }
    }
}

/// The name under which the expression is defined. No expression can call it:
/// only known functions are offered.
const MAIN: &str = "main_expression";

/// Compiles an expression that was checked: `path(EXPRESSION)`, metered.
fn compile(source: &str) -> Option<jaq_core::Filter<Metered>> {
    let term = parse(source, |parser| parser.term())?;
    let main = parse::Def {
        name: MAIN,
        args: Vec::new(),
        body: meter::metered(term),
    };
    let standard = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let offered = standard
        .filter(|definition| restrict::DEFINED.contains(&definition.name))
        .map(shorter);
    let arena = Arena::default();
    let file = File {
        code: "path(main_expression)",
        path: (),
    };
    let modules = Loader::new(offered.chain([main])).load(&arena, file).ok()?;
    let functions = jaq_core::funs::<Metered>()
        .chain(jaq_std::base_funs())
        .chain(jaq_json::funs())
        .chain(meter::functions())
        .map(|(name, arguments, run)| -> (&str, _, _) { (name, arguments, run) });
    Compiler::default()
        .with_funs(functions)
        .compile(modules)
        .ok()
}

/// Definitions of the standard library outlive an expression that they are loaded
/// with, which has to be said.
fn shorter<'s>(definition: parse::Def<&'static str>) -> parse::Def<&'s str> {
    definition
}

/// A path as jq writes it: a list of names and numbers; negative numbers count
/// from the end.
fn location(object: &Value, path: &Val) -> Option<Location> {
    let Val::Arr(parts) = path else { return None };
    let mut value = Some(object);
    let mut steps = Vec::with_capacity(parts.len());
    for part in parts.iter() {
        let step = match part {
            Val::TStr(name) => Step::Field(String::from_utf8(name.to_vec()).ok()?),
            Val::Num(_) => {
                let index = part.as_isize()?;
                let length = value.and_then(Value::as_array).map_or(0, Vec::len);
                Step::Item(match usize::try_from(index) {
                    Ok(index) => index,
                    Err(_) => length.checked_sub(index.unsigned_abs())?,
                })
            }
            _ => return None,
        };
        value = value.and_then(|value| match &step {
            Step::Field(name) => value.get(name),
            Step::Item(index) => value.get(index),
        });
        steps.push(step);
    }
    Some(Location(steps))
}

#[cfg(test)]
mod tests;
