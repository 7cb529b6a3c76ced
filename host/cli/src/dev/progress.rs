//! Steps that take a while, told as they go.

use crate::output;
use std::io::IsTerminal as _;
use std::time::Instant;

/// Tells steps on standard output.
#[derive(Default)]
pub(crate) struct Progress {}

/// A step that is under way.
pub(crate) struct Step {
    name: String,
    started: Instant,
}

impl Progress {
    /// Begins a step.
    pub(crate) fn step(&self, name: impl Into<String>) -> Step {
        let name = name.into();
        if std::io::stdout().is_terminal() {
            // Progress that cannot be shown is no reason to stop.
            let _ = output::print(format_args!("  … {name}"));
        }
        Step {
            name,
            started: Instant::now(),
        }
    }

    /// A line below the step that was last done.
    pub(crate) fn detail(&self, text: &str) {
        output::tell(format_args!("      {text}"));
    }
}

impl Step {
    /// Ends the step.
    pub(crate) fn done(self, result: impl AsRef<str>) {
        let seconds = self.started.elapsed().as_secs_f64();
        let result = result.as_ref();
        let gap = if result.is_empty() { "" } else { ": " };
        let start = if std::io::stdout().is_terminal() {
            "\r"
        } else {
            ""
        };
        let name = &self.name;
        output::tell(format_args!(
            "{start}  ✓ {name}{gap}{result} ({seconds:.1} s)"
        ));
    }
}
