//! What came of all scenarios.

use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// What came of all scenarios, in the order in which they were found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Each scenario.
    pub scenarios: Vec<ScenarioReport>,
    /// Files that an update has rewritten.
    pub rewritten: Vec<PathBuf>,
    /// Wall-clock time of playing them all, in seconds. Building and compiling the
    /// components is not in it.
    pub seconds: f64,
}

/// What came of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioReport {
    /// The plugin that it is about.
    pub plugin: String,
    /// The file that it is in.
    pub file: PathBuf,
    /// The line at which it begins.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// Wall-clock time, in seconds.
    pub seconds: f64,
    /// How it went.
    pub verdict: Verdict,
    /// What went wrong; empty unless the verdict is [`Verdict::Failed`].
    pub failures: Vec<Failure>,
    /// All conditions of the plugin and its units at the failure.
    pub conditions: Vec<String>,
    /// What the plugin, and the agent, said until the failure.
    pub log: Vec<String>,
}

/// How a scenario went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything was as expected.
    Passed,
    /// Not everything was as expected, and the expectations were rewritten.
    Updated,
    /// Not everything was as expected.
    Failed,
}

/// One thing that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// After which step, from 1; 0 stands for what is given.
    pub step: usize,
    /// The step's name, if it has one.
    pub name: Option<String>,
    /// Line of the expectation, or of the step.
    pub line: usize,
    /// What is wrong, on one line.
    pub message: String,
    /// A unified diff or other details; empty when the message says it all.
    pub difference: String,
}

/// How many scenarios went which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// [`Verdict::Passed`].
    pub passed: usize,
    /// [`Verdict::Updated`].
    pub updated: usize,
    /// [`Verdict::Failed`].
    pub failed: usize,
}

impl Report {
    /// How many scenarios went which way.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for scenario in &self.scenarios {
            match scenario.verdict {
                Verdict::Passed => counts.passed += 1,
                Verdict::Updated => counts.updated += 1,
                Verdict::Failed => counts.failed += 1,
            }
        }
        counts
    }

    /// Scenarios in a second.
    pub fn rate(&self) -> f64 {
        // A count of scenarios fits a float exactly.
        let count = u32::try_from(self.scenarios.len()).unwrap_or(u32::MAX);
        f64::from(count) / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// What the process is to exit with: 0 when nothing failed, else 1. Input that
    /// cannot be used has no report; its code is [`crate::Error::EXIT_CODE`].
    pub fn exit_code(&self) -> u8 {
        u8::from(self.counts().failed > 0)
    }
}

/// Wall-clock time as the report has it.
pub(crate) fn seconds(time: Duration) -> f64 {
    // Microseconds: what is finer is noise.
    (time.as_secs_f64() * 1e6).round() / 1e6
}
