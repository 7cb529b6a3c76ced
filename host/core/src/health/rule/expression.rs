//! One expression: parsed within bounds, evaluated within bounds.

use super::super::object::readable;
use super::{RuleError, cost};
use kube_cel::cel::{self, Program, Value as CelValue};
use std::sync::Arc;

/// The longest expression, in bytes. Those that people write have a line or two,
/// and the parser recurses.
pub(super) const MAX_LENGTH: usize = 2048;
/// The deepest nesting of brackets: the parser recurses along it.
pub(super) const MAX_NESTING: usize = 16;
/// What the parser gets to recurse in: a level of brackets takes some 200 KiB of
/// it in a build that is not optimised, more than two of them for one that is
/// never closed. Only what is used is ever backed by memory.
const PARSER_STACK: usize = 64 << 20;
/// The most parts of one expression.
pub(super) const MAX_NODES: usize = 500;
/// The deepest nesting of parts: evaluation recurses along it, on the stack of
/// whoever asks. `a + b + c` nests like `(a + b) + c`.
pub(super) const MAX_DEPTH: usize = 48;
/// Steps that an evaluation may take at most, as [`cost`] estimates them: some
/// tens of milliseconds.
pub(super) const MAX_COST: u64 = 1_000_000;

/// An expression of a rule, ready to be evaluated.
#[derive(Clone)]
pub(super) struct Expression {
    program: Arc<Program>,
    pub(super) name: &'static str,
}

/// Why an expression has no result.
pub(super) enum Problem {
    TooCostly(u64),
    Failed(String),
}

impl Expression {
    pub(super) fn compile(name: &'static str, source: &str) -> Result<Self, RuleError> {
        if source.len() > MAX_LENGTH {
            let length = source.len();
            return Err(RuleError::TooLong { name, length });
        }
        if source.trim().is_empty() {
            return Err(RuleError::Shape(format!("`{name}` is empty")));
        }
        if cost::nesting(source) > MAX_NESTING {
            return Err(RuleError::TooLarge { name });
        }
        let syntax = |problem: String| RuleError::Syntax {
            name,
            problem: readable(&problem),
        };
        let program = std::thread::scope(|scope| {
            let parser = std::thread::Builder::new().stack_size(PARSER_STACK);
            let parsed = parser
                .spawn_scoped(scope, || Program::compile(source))
                .map_err(|error| syntax(format!("no thread to parse it in: {error}")))?;
            match parsed.join() {
                Ok(result) => result.map_err(|error| syntax(error.to_string())),
                Err(_) => Err(syntax("the parser gave up".to_owned())),
            }
        })?;
        let expression = program.expression();
        if cost::nodes(expression) > MAX_NODES || cost::depth(expression) > MAX_DEPTH {
            return Err(RuleError::TooLarge { name });
        }
        if let Some(what) = cost::not_offered(program.expression()) {
            return Err(RuleError::NotOffered { name, what });
        }
        Ok(Self {
            program: Arc::new(program),
            name,
        })
    }

    pub(super) fn ask(&self, context: &cel::Context<'_>, size: u64) -> Result<CelValue, Problem> {
        let cost = cost::estimate(self.program.expression(), size);
        if cost > MAX_COST {
            return Err(Problem::TooCostly(cost));
        }
        self.program
            .execute(context)
            .map_err(|error| Problem::Failed(readable(&error.to_string())))
    }
}
