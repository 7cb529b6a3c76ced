//! The table at the end: what ran, how it went, how long it took.

use std::fmt;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

use anyhow::Result;

/// How many tests went which way. A check without tests of its own counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Counts {
    pub(crate) const ONE_PASSED: Self = Self {
        passed: 1,
        failed: 0,
        skipped: 0,
    };
    pub(crate) const ONE_FAILED: Self = Self {
        passed: 0,
        failed: 1,
        skipped: 0,
    };
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(
            formatter,
            "{passed} passed, {failed} failed, {skipped} skipped"
        )
    }
}

struct Row {
    step: String,
    counts: Counts,
    time: Duration,
    note: String,
}

/// The rows so far.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    failed: Vec<String>,
}

impl Report {
    /// Runs one check and adds its row. Returns what the check returned, unless
    /// it failed: then its error has been shown, and the other steps go on.
    pub(crate) fn check<T>(&mut self, step: &str, check: impl FnOnce() -> Result<T>) -> Option<T> {
        eprintln!("\n=== {step}");
        let started = Instant::now();
        let result = check();
        let (counts, note) = match &result {
            Ok(_) => (Counts::ONE_PASSED, String::new()),
            Err(error) => {
                eprintln!("error: {error:#}");
                (Counts::ONE_FAILED, first_line(&format!("{error:#}")))
            }
        };
        self.add(step, counts, started.elapsed(), note);
        result.ok()
    }

    /// Runs a step that counts its own tests and adds its row.
    pub(crate) fn count(&mut self, step: &str, run: impl FnOnce() -> Result<Counts>) {
        eprintln!("\n=== {step}");
        let started = Instant::now();
        let result = run();
        self.counted(step, result, started.elapsed());
    }

    /// Adds the row of a step that has counted its own tests.
    pub(crate) fn counted(&mut self, step: &str, result: Result<Counts>, time: Duration) {
        let (counts, note) = result.map_or_else(
            |error| {
                eprintln!("error: {error:#}");
                (Counts::ONE_FAILED, first_line(&format!("{error:#}")))
            },
            |counts| (counts, String::new()),
        );
        self.add(step, counts, time, note);
    }

    /// Adds a row for tests that could not run, and says so at once.
    pub(crate) fn skip(&mut self, step: &str, tests: usize, why: &str) {
        eprintln!("\n=== {step}\n!!! SKIPPED: {why}");
        let counts = Counts {
            skipped: tests,
            ..Counts::default()
        };
        self.add(step, counts, Duration::ZERO, format!("SKIPPED: {why}"));
    }

    fn add(&mut self, step: &str, counts: Counts, time: Duration, note: String) {
        self.rows.push(Row {
            step: step.to_owned(),
            counts,
            time,
            note,
        });
    }

    /// Names what failed of the steps that have counted their own tests.
    pub(crate) fn name_failed(&mut self, names: impl IntoIterator<Item = String>) {
        self.failed.extend(names);
    }

    pub(crate) fn total(&self) -> Counts {
        let mut total = Counts::default();
        for row in &self.rows {
            total += row.counts;
        }
        total
    }
}

impl fmt::Display for Report {
    /// The table, what failed, and the line of counts alone on the last line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.step.len()).max();
        let width = width.unwrap_or_default();
        writeln!(
            formatter,
            "{:width$}  {:8} {:>6} {:>6} {:>7} {:>8}",
            "step", "result", "passed", "failed", "skipped", "time"
        )?;
        for row in &self.rows {
            let Counts {
                passed,
                failed,
                skipped,
            } = row.counts;
            let result = match row.counts {
                Counts { failed: 1.., .. } => "FAILED",
                Counts { passed: 1.., .. } => "ok",
                Counts { skipped: 1.., .. } => "SKIPPED",
                Counts { .. } => "empty",
            };
            let time = format!("{:.1} s", row.time.as_secs_f32());
            let line = format!(
                "{:width$}  {result:8} {passed:>6} {failed:>6} {skipped:>7} {time:>8}  {}",
                row.step, row.note
            );
            writeln!(formatter, "{}", line.trim_end())?;
        }
        if !self.failed.is_empty() {
            writeln!(formatter, "\nfailed:")?;
        }
        for name in &self.failed {
            writeln!(formatter, "  {name}")?;
        }
        write!(formatter, "\n{}", self.total())
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn every_outcome_has_a_row_and_the_counts_come_last() {
        let mut report = Report::default();
        assert_eq!(report.check("formatting", || Ok(5)), Some(5));
        assert_eq!(
            report.check("lints", || Err::<(), _>(anyhow!("a\nb"))),
            None
        );
        report.count("tests", || {
            Ok(Counts {
                passed: 3,
                failed: 0,
                skipped: 1,
            })
        });
        report.count("crashed", || Err(anyhow!("no start")));
        report.skip("real", 4, "no Go");
        report.name_failed(["crate, target: a::test".to_owned()]);

        let text = report.to_string();
        let results: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().take(5).collect())
            .collect();
        assert_eq!(results[1], ["formatting", "ok", "1", "0", "0"]);
        assert_eq!(results[2], ["lints", "FAILED", "0", "1", "0"]);
        assert_eq!(results[3], ["tests", "ok", "3", "0", "1"]);
        assert_eq!(results[4], ["crashed", "FAILED", "0", "1", "0"]);
        assert_eq!(results[5], ["real", "SKIPPED", "0", "0", "4"]);
        assert!(text.contains("SKIPPED: no Go"), "{text}");
        assert!(
            text.contains("\nfailed:\n  crate, target: a::test\n\n"),
            "{text}"
        );
        let last = text.lines().last().unwrap();
        assert_eq!(last, "4 passed, 2 failed, 5 skipped");
    }
}
