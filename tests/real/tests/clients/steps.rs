//! Command lines with how they end, on an embedded cluster with actors.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use reeve_real::EmbeddedCluster;
use reeve_real::parts::{HELM, KUBERNETES};

/// How a command line ends: with success, and this in its last line of output; or
/// without, and this in what it complains of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    Well(&'static str),
    Badly(&'static str),
}

/// Runs them one after the other, each in this folder of the tests.
pub(crate) fn run(steps: &[(&str, Ends)], folder: &str) -> Result<()> {
    let programs = [KUBERNETES.get()?, HELM.get()?];
    let cluster = EmbeddedCluster::start_with(&["--actors"])?;
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(programs.into_iter().chain(std::env::split_paths(&others)))?;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    for (command, ends) in steps {
        let ran = Command::new("sh")
            .args(["-c", command])
            .current_dir(&folder)
            .env("PATH", &path)
            .env("HOME", cluster.folder())
            .env("KUBECONFIG", cluster.kubeconfig())
            .output()
            .context("sh")?;
        let output = String::from_utf8_lossy(&ran.stdout);
        let errors = String::from_utf8_lossy(&ran.stderr);
        let last = output.lines().last().unwrap_or_default();
        let as_expected = match ends {
            Ends::Well(text) => ran.status.success() && last.contains(text),
            Ends::Badly(text) => !ran.status.success() && errors.contains(text),
        };
        ensure!(
            as_expected,
            "{command}\nshould end: {ends:?}\nended: {}\n{output}{errors}",
            ran.status
        );
    }
    Ok(())
}
