//! `cargo xtask test`: everything that must hold.

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use reeve_real::Postgres;

use crate::jobs::Job;
use crate::report::{Counts, Report};
use crate::suite::{self, Suite};
use crate::workspace::Workspace;
use crate::{components, image, jobs, lint, process};

/// Its tests need real servers.
const REAL: &str = "reeve-real";

/// How many programs run at once: one more than the cores of the smallest machine on which
/// all of this must run, since those with real servers wait for them much of the time.
const LANES: usize = 3;

/// The programs that take longest, the longest first.
const LONGEST: &[&str] = &[
    "profiles",
    "faithful",
    "chart",
    "clients",
    "releases",
    "it",
    "faults",
    "ha",
    "registry",
    "bad_input",
    "story",
    "outside",
    "sync",
    "state",
    "operators",
];

/// The program of the real servers' tests that needs servers which are no part of a cluster.
const OUTSIDE: [&str; 2] = ["outside", "profiles"];

/// The program of the real servers' tests that installs charts.
const CHART: &str = "chart";

/// The program of the real servers' tests that has the whole story.
const STORY: &str = "story";

/// Far more than all scenarios of one plugin take.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// What `reeve test` says about a filter that leaves nothing; fine here, where the
/// filter is meant for all tests.
const NOTHING_MATCHES: &str = "no scenario has";

/// Runs every step, also after one has failed. With a filter, only tests run.
pub(crate) fn run(workspace: &Workspace, filter: Option<&str>) -> Result<ExitCode> {
    thread::scope(|scope| {
        if filter.is_none() && process::is_there("go", "version") {
            // Compiling Rust leaves cores idle now and then, and so does compiling Go. Where
            // this fails, the step that needs a part tries again and says why.
            scope.spawn(|| {
                for part in reeve_real::parts::ALL {
                    let _ = part.get();
                }
            });
        }
        steps(workspace, filter)
    })
}

/// Runs the tests in which the agent is installed and used, on the oldest Kubernetes that
/// is supported.
///
/// # Errors
///
/// When one of them fails.
pub(crate) fn oldest(workspace: &Workspace) -> Result<()> {
    components::build_plugins(workspace)?;
    components::build_guests(workspace)?;
    workspace.build_reeve()?;
    image::context(workspace, "dev")?;
    for part in reeve_real::parts::ALL {
        part.get()?;
    }
    reeve_real::parts::OLDEST_KUBERNETES.get()?;
    let mut tests = workspace.cargo(["test", "--package", REAL]);
    tests
        .args(["--test", STORY, "--test", CHART])
        .env(reeve_real::parts::WHICH, "oldest");
    process::run(&mut tests)
}

fn steps(workspace: &Workspace, filter: Option<&str>) -> Result<ExitCode> {
    let mut report = Report::default();
    if filter.is_none() {
        report.check("formatting", || lint::formatting(workspace));
    }
    report.check("build of plugins and guests", || {
        components::build_plugins(workspace)?;
        components::build_guests(workspace)
    });
    if let Some(suite) = report.check("build of all crates", || Suite::build(workspace)) {
        if filter.is_none() {
            report.check("nothing is built twice", || workspace.check_built_once());
        }
        let before = report.total();
        programs(&mut report, workspace, &suite, filter)?;
        doc_tests(&mut report, workspace, &suite, filter);
        if let Some(filter) = filter
            && report.total() == before
        {
            report.counted(
                "tests",
                Err(anyhow!(
                    "no test and no scenario has `{filter}` in its name"
                )),
                Duration::ZERO,
            );
        }
        report.name_failed(suite.failed());
        if filter.is_none() {
            report.check("dev --once", || dev_once(workspace, &suite));
            report.check("generated CRDs", || {
                lint::crds(workspace, &suite.reeve, true)
            });
        }
    }
    if filter.is_none() {
        report.check("clippy", || lint::clippy(workspace));
        report.check("dependencies", || lint::dependencies(workspace));
    }
    println!("\n{report}");
    Ok(lint::exit_code(&report))
}

/// The programs of tests of all crates, those against real servers among them, and the
/// scenarios of all plugins.
fn programs(
    report: &mut Report,
    workspace: &Workspace,
    suite: &Suite,
    filter: Option<&str>,
) -> Result<()> {
    let real = match real_servers(report, workspace, suite, filter) {
        Ok(real) => real,
        Err(error) => {
            report.counted(REAL, Err(error), Duration::ZERO);
            Real::None
        }
    };
    let has =
        |target: &str| real == Real::All || (real == Real::Inside && !OUTSIDE.contains(&target));
    let runs = |package: &str, target: &str| package != REAL || has(target);
    let plugins = workspace.folders_in("plugins")?;
    eprintln!("\n=== tests");
    let mut all: Vec<_> = suite.jobs(runs, filter).collect();
    for plugin in &plugins {
        let name = plugin.file_name().unwrap_or_default().to_string_lossy();
        let row = format!("scenarios of {name}");
        all.push(Job {
            run: {
                let row = row.clone();
                Box::new(move || scenarios(workspace, suite, plugin, &row, filter))
            },
            name: row.clone(),
            row,
        });
    }
    for ran in jobs::run(LANES, all, LONGEST) {
        report.counted(&ran.row, ran.result, ran.time);
    }
    Ok(())
}

/// The examples in documentation; cargo alone can compile these.
fn doc_tests(report: &mut Report, workspace: &Workspace, suite: &Suite, filter: Option<&str>) {
    report.count("examples in documentation", || {
        let mut cargo = workspace.cargo(["test", "--workspace", "--doc", "--no-fail-fast"]);
        cargo.arg("--").args(filter);
        let log = suite.logs().join("doc-tests.log");
        let captured = process::capture(&mut cargo, "rustdoc", &log, LIMIT)?;
        let counts = suite::counts_of(&captured);
        if counts.failed > 0 {
            eprintln!("{}", captured.output);
            suite.note_failed("examples in documentation", &captured.output, &log);
        }
        eprintln!("  {counts}");
        Ok(counts)
    });
}

/// The scenarios beside a plugin, by the command that its author uses.
fn scenarios(
    workspace: &Workspace,
    suite: &Suite,
    plugin: &Path,
    row: &str,
    filter: Option<&str>,
) -> Result<Counts> {
    let name = plugin.file_name().unwrap_or_default().to_string_lossy();
    let results = suite.logs().join(format!("scenarios-{name}.xml"));
    // Those of an earlier run must not stand for this one.
    if results.exists() {
        std::fs::remove_file(&results)?;
    }
    let mut test = workspace.program(&suite.reeve);
    suite.share(&mut test);
    test.arg("test").arg(plugin).arg("--junit").arg(&results);
    if let Some(filter) = filter {
        test.args(["--filter", filter]);
    }
    let log = suite.logs().join(format!("scenarios-{name}.log"));
    let captured = process::capture(&mut test, row, &log, LIMIT)?;
    if filter.is_some() && captured.output.contains(NOTHING_MATCHES) {
        return Ok(Counts::default());
    }
    if captured.failure.is_some() {
        eprintln!("{}", captured.output);
        suite.note_failed(row, &captured.output, &log);
    }
    let mut counts = junit_counts(&results).with_context(|| captured.output.clone())?;
    if captured.failure.is_some() && counts.failed == 0 {
        counts.failed = 1;
    }
    eprintln!("  {row}: {counts}");
    Ok(counts)
}

/// The README's first command, with all plugins and the sample objects.
fn dev_once(workspace: &Workspace, suite: &Suite) -> Result<()> {
    let folder = workspace.output("test-dev");
    std::fs::create_dir_all(&folder)?;
    let mut dev = workspace.program(&suite.reeve);
    suite.share(&mut dev);
    dev.args(["dev", "--once", "--kubeconfig"])
        .arg(folder.join("kubeconfig"));
    let log = suite.logs().join("dev-once.log");
    let captured = process::capture(&mut dev, "dev --once", &log, LIMIT)?;
    let plugins = workspace.folders_in("plugins")?.len();
    let ending = format!(" objects from {plugins} plugins in ");
    let converged = |line: &str| line.starts_with("converged: ") && line.contains(&ending);
    match captured.failure {
        Some(failure) => bail!("it ended with {failure}:\n{}", captured.output),
        None if captured.output.lines().any(converged) => Ok(()),
        None => bail!(
            "not all of {plugins} plugins converged:\n{}",
            captured.output
        ),
    }
}

/// Counts the cases in a JUnit file.
fn junit_counts(path: &Path) -> Result<Counts> {
    let text = std::fs::read_to_string(path).context("the run left no results")?;
    let count = |tag: &str| text.matches(tag).count();
    let (failed, skipped) = (count("<failure") + count("<error"), count("<skipped"));
    Ok(Counts {
        passed: count("<testcase").saturating_sub(failed + skipped),
        failed,
        skipped,
    })
}

/// Which tests against real servers can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Real {
    None,
    /// All but those that need servers outside of a cluster.
    Inside,
    All,
}

/// Builds the real servers, if need be, and says which tests can run against them. On the
/// build machine they must run; on others they cannot be had without Go.
fn real_servers(
    report: &mut Report,
    workspace: &Workspace,
    suite: &Suite,
    filter: Option<&str>,
) -> Result<Real> {
    let tests = suite.count(|package, _| package == REAL, filter)?;
    if tests == 0 {
        return Ok(Real::None);
    }
    let built = reeve_real::parts::ALL
        .iter()
        .all(|part| part.is_built().unwrap_or(false));
    let must_run = env::var_os("CI").is_some_and(|value| value == "true");
    if !built && !must_run && !process::is_there("go", "version") {
        let why = "Go is not installed, so the real servers cannot be built";
        report.skip(REAL, tests, why);
        return Ok(Real::None);
    }
    let parts = report.check("build of the real servers", || {
        reeve_real::parts::ALL
            .iter()
            .try_for_each(|part| part.get().map(drop))
    });
    if parts.is_none() {
        report.skip(REAL, tests, "the real servers could not be built");
        return Ok(Real::None);
    }
    let charts = |package: &str, target: &str| package == REAL && target == CHART;
    if cfg!(target_os = "linux") && suite.count(charts, filter)? > 0 {
        // One of its tests puts this into an image; the test says when it is not there.
        report.check("static program for the image", || {
            image::context(workspace, "dev").map(drop)
        });
    }
    Ok(match has_outside(report, suite, filter, must_run)? {
        true => Real::All,
        false => Real::Inside,
    })
}

/// The same for servers outside of a cluster, which take more than Go. Returns whether
/// their tests can run.
fn has_outside(
    report: &mut Report,
    suite: &Suite,
    filter: Option<&str>,
    must_run: bool,
) -> Result<bool> {
    let step = format!("{REAL} {}", OUTSIDE.join(" and "));
    let outside = |package: &str, target: &str| package == REAL && OUTSIDE.contains(&target);
    let tests = suite.count(outside, filter)?;
    if tests == 0 {
        return Ok(false);
    }
    let built = reeve_real::parts::OUTSIDE
        .iter()
        .all(|part| part.is_built().unwrap_or(false));
    let absent = if !Postgres::is_installed() {
        Some("PostgreSQL is not installed")
    } else if !process::is_there("node", "--version") {
        Some("Node.js is not installed")
    } else if !built && !process::is_there("npm", "--version") {
        Some("npm is not installed")
    } else {
        None
    };
    if let Some(absent) = absent.filter(|_| !must_run) {
        report.skip(&step, tests, absent);
        return Ok(false);
    }
    let parts = report.check("servers outside of a cluster", || {
        if let Some(absent) = absent {
            bail!(absent);
        }
        let mut parts = reeve_real::parts::OUTSIDE.iter();
        parts.try_for_each(|part| part.get().map(drop))
    });
    if parts.is_none() {
        report.skip(&step, tests, "what they need is not there");
    }
    Ok(parts.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_of_a_junit_file_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.xml");
        let text = r#"<testsuites><testsuite name="quotas">
            <testcase name="a"/>
            <testcase name="b"><failure message="m">text</failure></testcase>
            <testcase name="c"><skipped/></testcase>
            <testcase name="d"></testcase>
            </testsuite></testsuites>"#;
        std::fs::write(&path, text).unwrap();
        let counts = junit_counts(&path).unwrap();
        assert_eq!(counts.to_string(), "2 passed, 1 failed, 1 skipped");
        assert!(junit_counts(&folder.path().join("absent")).is_err());
    }
}
