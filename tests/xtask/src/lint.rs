//! Checks that run no test: formatting, lints, dependencies, generated files.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::report::Report;
use crate::workspace::Workspace;
use crate::{process, tools};

const GO_SOURCES: &str = "tests/real/parts";
const CRDS: &str = "charts/reeve/crds/reeve.yaml";

/// Every check, as `cargo xtask test` runs them, and the tests of the tree.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let mut report = Report::default();
    report.check("formatting", || formatting(workspace));
    report.check("clippy", || clippy(workspace));
    report.check("tidy", || {
        process::run(&mut workspace.cargo(["test", "--quiet", "--package", "reeve-tidy"]))
    });
    report.check("dependencies", || dependencies(workspace));
    println!("\n{report}");
    Ok(exit_code(&report))
}

pub(crate) fn exit_code(report: &Report) -> ExitCode {
    if report.total().failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

pub(crate) fn format(workspace: &Workspace) -> Result<()> {
    process::run(&mut workspace.cargo(["fmt", "--all"]))?;
    if process::is_there("go", "version") {
        process::run(gofmt(workspace).arg("-w").arg(GO_SOURCES))?;
    }
    Ok(())
}

/// Fails when a source is not formatted.
pub(crate) fn formatting(workspace: &Workspace) -> Result<()> {
    process::run(&mut workspace.cargo(["fmt", "--all", "--check"]))?;
    if process::is_there("go", "version") {
        let output = gofmt(workspace).args(["-l", GO_SOURCES]).output()?;
        let unformatted = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() || !unformatted.is_empty() {
            bail!("run `cargo xtask fmt` for {}", unformatted.trim());
        }
    }
    Ok(())
}

fn gofmt(workspace: &Workspace) -> Command {
    let mut gofmt = Command::new("gofmt");
    gofmt.current_dir(workspace.root());
    gofmt
}

/// Fails on any warning of clippy or the compiler.
pub(crate) fn clippy(workspace: &Workspace) -> Result<()> {
    let mut clippy = workspace.cargo(["clippy", "--workspace", "--all-targets", "--quiet"]);
    process::run(clippy.args(["--", "--deny", "warnings"]))
}

/// Checks licences, sources and banned crates, as deny.toml says.
///
/// Known vulnerabilities are left out: their list is on a server of its own, and
/// a test run must not fail because of what was published since yesterday.
pub(crate) fn dependencies(workspace: &Workspace) -> Result<()> {
    let mut deny = Command::new(tools::cargo_deny(workspace)?);
    deny.current_dir(workspace.root())
        .args(["--log-level", "error", "--workspace", "check"])
        .args(["bans", "licenses", "sources"]);
    process::run(&mut deny)
}

/// Writes the CRDs that `reeve` generates into the chart, or checks that they
/// are the ones in it.
pub(crate) fn crds(workspace: &Workspace, reeve: &Path, check: bool) -> Result<()> {
    let output = Command::new(reeve).arg("crds").output()?;
    if !output.status.success() {
        bail!("reeve crds: {}", String::from_utf8_lossy(&output.stderr));
    }
    let path = workspace.root().join(CRDS);
    if fs::read(&path).is_ok_and(|present| present == output.stdout) {
        return Ok(());
    }
    if check {
        bail!("{CRDS} is not what `reeve crds` prints; run `cargo xtask crds`");
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&path, output.stdout).with_context(|| format!("cannot write {CRDS}"))?;
    println!("wrote {CRDS}");
    Ok(())
}
