//! The tests of all crates, compiled at once and run program by program.
//!
//! Cargo could run them too, but it would not count, would not end a test that
//! hangs, and could not leave out the tests against real servers without
//! compiling half of the workspace a second time with other features.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::jobs::Job;
use crate::process::{self, Captured};
use crate::report::Counts;
use crate::workspace::{Workspace, executable_named};

/// No program of tests takes nearly as long.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Everything the workspace compiles to, tests included.
pub(crate) struct Suite {
    /// The `reeve` binary, from the same compilation.
    pub(crate) reeve: PathBuf,
    programs: Vec<Program>,
    logs: PathBuf,
    compiled: PathBuf,
    root: PathBuf,
    failed: Mutex<Vec<String>>,
}

/// One program of tests.
struct Program {
    package: String,
    target: String,
    executable: PathBuf,
    /// Where tests expect to run.
    folder: PathBuf,
}

impl Suite {
    /// Compiles all targets of all crates, in one go: one set of features, one
    /// profile, nothing twice.
    pub(crate) fn build(workspace: &Workspace) -> Result<Self> {
        let mut build = workspace.cargo(["build", "--workspace", "--all-targets"]);
        let messages = process::messages(&mut build)?;
        let logs = workspace.output("test-logs");
        std::fs::create_dir_all(&logs)?;
        let reeve = executable_named(&messages, "reeve")?;
        // Where agents of tests against real servers keep theirs.
        let compiled = reeve.with_file_name("compiled-for-tests");
        Ok(Self {
            reeve,
            compiled,
            programs: messages.iter().filter_map(Program::from_message).collect(),
            logs,
            root: workspace.root().to_owned(),
            failed: Mutex::default(),
        })
    }

    /// The tests whose names contain `filter`, of all programs for which `runs` says so of
    /// their package and name: a job for each program, in the row of its package.
    pub(crate) fn jobs<'a>(
        &'a self,
        runs: impl Fn(&str, &str) -> bool,
        filter: Option<&'a str>,
    ) -> impl Iterator<Item = Job<'a>> {
        let all = self.programs.iter();
        let chosen = all.filter(move |one| runs(&one.package, &one.target));
        chosen.map(move |program| Job {
            row: program.package.clone(),
            name: program.target.clone(),
            run: Box::new(move || self.run_one(program, filter)),
        })
    }

    /// How many tests would run of all programs for which `runs` says so of their
    /// package and name.
    pub(crate) fn count(
        &self,
        runs: impl Fn(&str, &str) -> bool,
        filter: Option<&str>,
    ) -> Result<usize> {
        let mut total = 0;
        let all = self.programs.iter();
        for program in all.filter(|one| runs(&one.package, &one.target)) {
            let listing = self.command(program, filter).arg("--list").output()?;
            if !listing.status.success() {
                bail!(
                    "{} of {} cannot list its tests ({}): {}",
                    program.target,
                    program.package,
                    listing.status,
                    String::from_utf8_lossy(&listing.stderr)
                );
            }
            let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
            total += listing
                .lines()
                .filter(|line| line.ends_with(": test"))
                .count();
        }
        Ok(total)
    }

    /// Lets a program keep compiled components for the others and for the next run.
    pub(crate) fn share(&self, program: &mut Command) {
        program.env("REEVE_CACHE", &self.compiled);
    }

    fn command(&self, program: &Program, filter: Option<&str>) -> Command {
        let mut command = Command::new(&program.executable);
        self.share(&mut command);
        command
            .args(filter)
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env("RUST_BACKTRACE", "0");
        command
    }

    fn run_one(&self, program: &Program, filter: Option<&str>) -> Result<Counts> {
        let target = match program.target.as_str() {
            own if own.replace('_', "-") == program.package => "unit tests",
            other => other,
        };
        let what = format!("{}, {target}", program.package);
        let log = self
            .logs
            .join(format!("{}-{}.log", program.package, program.target));
        let started = Instant::now();
        let captured = process::capture(&mut self.command(program, filter), &what, &log, LIMIT)
            .with_context(|| format!("cannot run {}", program.executable.display()))?;
        let counts = counts_of(&captured);
        if counts.failed > 0 {
            eprintln!("{}", captured.output);
            self.note_failed(&what, &captured.output, &log);
        }
        if let Some(failure) = &captured.failure {
            eprintln!("{what} ended with {failure}");
        }
        eprintln!(
            "  {what}: {counts} ({:.0} s)",
            started.elapsed().as_secs_f32()
        );
        for skipped in skips_in(&captured.output) {
            eprintln!("!!! {what}: {skipped}");
        }
        Ok(counts)
    }

    /// Keeps the names of tests that failed for the end of the run, or else the place of
    /// the log.
    pub(crate) fn note_failed(&self, what: &str, output: &str, log: &Path) {
        let mut names = failed_in(output);
        if names.is_empty() {
            names.push("see its log".to_owned());
        }
        let log = log.strip_prefix(&self.root).unwrap_or(log).display();
        let names = names.iter().map(|name| format!("{what}: {name} ({log})"));
        // Nobody dies with this in hand.
        if let Ok(mut failed) = self.failed.lock() {
            failed.extend(names);
        }
    }

    /// What failed so far, by program and name.
    pub(crate) fn failed(&self) -> Vec<String> {
        let failed = self.failed.lock();
        failed.map(|failed| failed.clone()).unwrap_or_default()
    }

    /// The folder for what the tests print.
    pub(crate) fn logs(&self) -> &Path {
        &self.logs
    }
}

impl Program {
    fn from_message(message: &Value) -> Option<Self> {
        if message["profile"]["test"] != true {
            return None;
        }
        let manifest = Path::new(message["manifest_path"].as_str()?);
        // "path+file:///…/core#reeve-core@0.1.0" or "path+file:///…/quotas#0.1.0".
        let (path, fragment) = message["package_id"].as_str()?.rsplit_once('#')?;
        let package = match fragment.split_once('@') {
            Some((name, _)) => name,
            None => path.rsplit('/').next()?,
        };
        Some(Self {
            package: package.to_owned(),
            target: message["target"]["name"].as_str()?.to_owned(),
            executable: message["executable"].as_str()?.into(),
            folder: manifest.parent()?.to_owned(),
        })
    }
}

/// What the programs of tests in a captured output counted. One that ended badly
/// without having counted a failure crashed, which is one. A test that says that it was
/// skipped, which the test runner takes for one that passed, was skipped.
pub(crate) fn counts_of(captured: &Captured) -> Counts {
    let mut counts = Counts::default();
    for line in captured.output.lines() {
        if let Some(result) = line.strip_prefix("test result: ") {
            counts += counts_in(result);
        }
    }
    let skipped = skips_in(&captured.output).len().min(counts.passed);
    counts.passed -= skipped;
    counts.skipped += skipped;
    if captured.failure.is_some() && counts.failed == 0 {
        counts.failed = 1;
    }
    counts
}

/// What tests in an output say that they have not done, and why; each thing of a test once.
pub(crate) fn skips_in(output: &str) -> BTreeSet<&str> {
    let said = output
        .lines()
        .filter_map(|line| line.find(SKIPPED).map(|at| &line[at..]));
    said.collect()
}

/// How a test begins to say that.
const SKIPPED: &str = "SKIPPED: ";

/// The names of tests that failed, as libtest lists them at its end.
fn failed_in(output: &str) -> Vec<String> {
    let mut lists = false;
    let mut names = Vec::new();
    for line in output.lines() {
        match line.strip_prefix("    ") {
            Some(name) if lists => names.push(name.to_owned()),
            _ => lists = line == "failures:",
        }
    }
    names
}

/// Reads "ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; …".
fn counts_in(result: &str) -> Counts {
    let number_before = |word: &str| {
        result
            .split([';', '.'])
            .filter_map(|part| part.trim().strip_suffix(word))
            .find_map(|number| number.trim().parse().ok())
            .unwrap_or(0)
    };
    Counts {
        passed: number_before("passed"),
        failed: number_before("failed"),
        skipped: number_before("ignored"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn captured(output: &str, failure: Option<&str>) -> Captured {
        Captured {
            output: output.to_owned(),
            failure: failure.map(str::to_owned),
        }
    }

    #[test]
    fn results_of_all_programs_are_added() {
        let output = "test a ... ok\n\
            test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.00s\n\
            test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n";
        let counts = counts_of(&captured(output, Some("exit status: 101")));
        assert_eq!(counts.to_string(), "14 passed, 3 failed, 1 skipped");
    }

    #[test]
    fn what_failed_is_named() {
        let output = "test a::b ... \nFAILED\n\nfailures:\n\n---- a::b stdout ----\n    no\n\n\
            failures:\n    a::b\n    c\n\ntest result: FAILED. 2 passed; 2 failed;\n";
        assert_eq!(failed_in(output), ["a::b", "c"]);
        assert!(failed_in("test a ... ok\n").is_empty());
    }

    #[test]
    fn what_is_skipped_has_not_passed() {
        let output = "SKIPPED: a: no definitions\n\
            test a ... SKIPPED: a: no definitions\n\
            ok\n\
            SKIPPED: b: no definitions\n\
            test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        assert_eq!(
            skips_in(output),
            BTreeSet::from(["SKIPPED: a: no definitions", "SKIPPED: b: no definitions"])
        );
        let counts = counts_of(&captured(output, None));
        assert_eq!(counts.to_string(), "1 passed, 0 failed, 2 skipped");
    }

    #[test]
    fn a_crash_is_a_failure() {
        let counts = counts_of(&captured("", Some("signal: 6 (SIGABRT)")));
        assert_eq!(counts, Counts::ONE_FAILED);
        assert_eq!(counts_of(&captured("", None)), Counts::default());
    }

    #[test]
    fn packages_are_found_in_both_forms_of_an_id() {
        for (id, package) in [
            ("path+file:///src/host/core#reeve-core@0.1.0", "reeve-core"),
            ("path+file:///src/plugins/quotas#0.1.0", "quotas"),
        ] {
            let message = json!({
                "package_id": id,
                "manifest_path": "/src/x/Cargo.toml",
                "target": { "name": "t" },
                "profile": { "test": true },
                "executable": "/src/target/t",
            });
            let program = Program::from_message(&message).unwrap();
            assert_eq!(program.package, package);
            assert_eq!(program.folder, Path::new("/src/x"));
        }
    }
}
