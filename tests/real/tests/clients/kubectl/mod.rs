//! kubectl and Helm: the same command lines on both servers, and what they print.
//!
//! The command lines are the `*.script` files in this folder; `script.rs` says
//! how they are written.

mod normal;
mod runner;
mod script;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use reeve_real::parts::{HELM, KUBERNETES, NEWEST_KUBECTL};
use reeve_real::{ControlPlane, EmbeddedCluster};
use reeve_test_support::skipped;

use runner::Runner;
use script::{Compared, Script};

/// Where the scripts are.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/kubectl")
}

/// The scripts whose names contain `wanted`.
fn scripts(wanted: &str) -> Result<Vec<Script>> {
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(folder())? {
        let path = entry?.path();
        let is_script = path.extension().is_some_and(|e| e == "script");
        if is_script && path.to_string_lossy().contains(wanted) {
            scripts.push(Script::read(&path)?);
        }
    }
    ensure!(!scripts.is_empty(), "no script is named like {wanted:?}");
    scripts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(scripts)
}

/// What is not compared, and why, as a table in Markdown.
fn marks(scripts: &[Script]) -> String {
    let mut rows = BTreeSet::new();
    for step in scripts.iter().flat_map(|script| &script.steps) {
        let compared = match step.compared {
            Compared::Everything => continue,
            Compared::Unordered => "all but the order of lines",
            Compared::Success => "the exit code",
        };
        let command = step.command.replace('|', "\\|");
        rows.insert(format!("| `{command}` | {compared} | {} |\n", step.why));
    }
    let rows: String = rows.into_iter().collect();
    format!("| Command line | Compared | Reason |\n|---|---|---|\n{rows}")
}

/// Writes the table in the documents in place of comparing it.
const UPDATE: &str = "REEVE_UPDATE_TABLE";

#[test]
fn what_is_not_compared_is_in_the_documents() -> Result<()> {
    const MARKS: [&str; 2] = [
        "<!-- differences of kubectl -->\n",
        "<!-- end of differences of kubectl -->",
    ];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/embedded-cluster.md");
    let document = std::fs::read_to_string(&path)?;
    let (before, rest) = document.split_once(MARKS[0]).context("no table")?;
    let (table, after) = rest.split_once(MARKS[1]).context("no end of the table")?;
    let wanted = marks(&scripts("")?);
    if std::env::var_os(UPDATE).is_some() {
        let document = [before, MARKS[0], &wanted, MARKS[1], after].concat();
        std::fs::write(&path, document)?;
        return Ok(());
    }
    ensure!(
        table == wanted,
        "{UPDATE}=1 writes what the scripts say:\n{wanted}"
    );
    Ok(())
}

#[test]
fn kubectl_sees_no_difference() -> Result<()> {
    sees_no_difference(KUBERNETES.get()?, |_| true)
}

#[test]
fn the_newest_kubectl_sees_no_difference() -> Result<()> {
    sees_no_difference(NEWEST_KUBECTL.get()?, |_| true)
}

#[test]
fn the_kubectl_of_this_machine_sees_no_difference() -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::split_paths(&path).find(|folder| folder.join("kubectl").is_file());
    match own {
        // It may begin another program, as Google's does by the server's version, which
        // outlives it: what has to be ended is tried with the others.
        Some(folder) => sees_no_difference(folder, |script| script.name != "wait"),
        None => {
            skipped("this machine has no kubectl of its own to try");
            Ok(())
        }
    }
}

/// The kubectl in this folder, and Helm beside it.
fn sees_no_difference(kubectl: PathBuf, is_tried: impl Fn(&Script) -> bool) -> Result<()> {
    // For working on one script.
    let wanted = std::env::var("REEVE_KUBECTL_SCRIPT").unwrap_or_default();
    let mut scripts = scripts(&wanted)?;
    scripts.retain(is_tried);

    let programs = [kubectl, HELM.get()?];
    let real = ControlPlane::keeping_up_namespaces()?;
    let embedded = EmbeddedCluster::start()?;
    let real = Runner::new(&programs, &real.kubeconfig(), real.folder())?;
    let embedded = Runner::new(&programs, &embedded.kubeconfig(), embedded.folder())?;

    let mut differences = Vec::new();
    let mut commands = 0;
    for script in &scripts {
        commands += script.steps.len();
        let found = runner::compare(script, &real, &embedded)
            .with_context(|| format!("script {}", script.name))?;
        differences.extend(found);
    }
    eprintln!("{commands} command lines in {} scripts", scripts.len());
    ensure!(
        differences.is_empty(),
        "{} of {commands} command lines differ (- kube-apiserver, + reeve):\n\n{}",
        differences.len(),
        differences.join("\n")
    );
    Ok(())
}
