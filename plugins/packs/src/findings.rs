//! What is wrong with a document: all of it at once, each with its place.

use std::fmt::Display;

pub(crate) use reeve_sdk::pointer::below;
use reeve_sdk::prelude::*;

/// What is wrong with one document, as far as it was looked at.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What stands in its way.
    pub(crate) errors: Vec<String>,
    /// What somebody should know, and stands in no way.
    pub(crate) warnings: Vec<String>,
}

impl Findings {
    /// The document cannot be used because of what stands at `path`.
    pub(crate) fn error(&mut self, path: &str, problem: impl Display) {
        self.errors.push(at(path, problem));
    }

    /// What stands at `path` should be looked at.
    pub(crate) fn warn(&mut self, path: &str, problem: impl Display) {
        self.warnings.push(at(path, problem));
    }

    /// Nothing, or a failure that lists every error. What was there before stays.
    pub(crate) fn check(&self, document: &str) -> Result<(), Failure> {
        if self.errors.is_empty() {
            return Ok(());
        }
        Err(Failure::terminal(format!(
            "{document} cannot be used, and what it said before stays: {}",
            self.errors.join("; ")
        )))
    }

    /// Tells the warnings about a document, in a condition of this type.
    pub(crate) fn tell(&self, kind: &str, document: &str, outcome: Outcome) -> Outcome {
        let mut problems = Problems::about(document, "All else of it is in force.");
        for warning in &self.warnings {
            problems.add(warning);
        }
        outcome.problems(kind, "DocumentDoubtful", &problems)
    }
}

fn at(path: &str, problem: impl Display) -> String {
    match path {
        "" => problem.to_string(),
        path => format!("{path}: {problem}"),
    }
}
