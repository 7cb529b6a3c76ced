//! kubectl: the same command lines on both servers, and what they print.
//!
//! The command lines are the `*.script` files in this folder; `script.rs` says
//! how they are written.

mod normal;
mod runner;
mod script;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use reeve_real::parts::KUBERNETES;
use reeve_real::{ControlPlane, EmbeddedCluster};

use runner::Runner;
use script::Script;

/// Where the scripts are.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/kubectl")
}

#[test]
fn kubectl_sees_no_difference() -> Result<()> {
    // For working on one script.
    let wanted = std::env::var("REEVE_KUBECTL_SCRIPT").unwrap_or_default();
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(folder())? {
        let path = entry?.path();
        let is_script = path.extension().is_some_and(|e| e == "script");
        if is_script && path.to_string_lossy().contains(&wanted) {
            scripts.push(Script::read(&path)?);
        }
    }
    ensure!(!scripts.is_empty(), "no script is named like {wanted:?}");
    scripts.sort_by(|a, b| a.name.cmp(&b.name));

    let programs = KUBERNETES.get()?;
    let real = ControlPlane::start()?;
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
