//! kubectl with the kubeconfig that `reeve dev` prints: what its guide says works, a hand
//! edit is put back, and what goes with a Profile goes.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use reeve_real::parts::KUBERNETES;
use reeve_real::{EmbeddedCluster, eventually, without_collecting};

const PODS: &str = "jsonpath={.spec.hard.pods}";

#[test]
fn what_dev_says_works_with_kubectl() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let dev = EmbeddedCluster::dev(&root.context("no root")?.join("plugins/quotas"))?;
    let said = dev.log()?;
    let kubeconfig = format!("export KUBECONFIG={}\n", dev.kubeconfig().display());
    ensure!(said.contains(&kubeconfig), "no {kubeconfig} in:\n{said}");

    let all = dev.kubectl(&["get", "profiles,resourcequotas", "-A"])?;
    for expected in ["profile.kubeflow.org/alice", "resourcequota/quotas"] {
        ensure!(all.contains(expected), "no {expected} in:\n{all}");
    }
    let plugins = dev.kubectl(&["get", "plugins"])?;
    let quotas = plugins.lines().find(|line| line.starts_with("quotas "));
    let runs = quotas.is_some_and(|line| line.contains("True"));
    ensure!(runs, "quotas does not run:\n{plugins}");

    let before = pods(&dev)?;
    let editor = format!("sed -i /pods:/s/{before}/7654321/");
    edit(&dev, &editor, &["resourcequota", "quotas", "-n", "alice"])?;
    eventually("the hand edit is put back", || {
        let now = pods(&dev)?;
        ensure!(now == before, "pods: {now}, not {before}");
        Ok(())
    })?;

    dev.kubectl(&["label", "profile", "alice", "quotas.statcan.gc.ca/pods=31"])?;
    eventually("the label counts", || {
        let now = pods(&dev)?;
        ensure!(now == "31", "pods: {now}, not 31");
        Ok(())
    })?;

    dev.kubectl(&["delete", "resourcequota", "quotas", "-n", "alice"])?;
    eventually("what was deleted by hand is there again", || pods(&dev))?;

    dev.kubectl(&["delete", "profile", "alice"])?;
    eventually("the quota goes with its Profile", || {
        let left = dev.kubectl(&["get", "resourcequotas", "-n", "alice", "-o", "name"])?;
        ensure!(left.is_empty(), "there is {left}");
        Ok(())
    })
}

fn pods(dev: &EmbeddedCluster) -> Result<String> {
    dev.kubectl(&["get", "resourcequota", "quotas", "-n", "alice", "-o", PODS])
}

fn edit(dev: &EmbeddedCluster, editor: &str, object: &[&str]) -> Result<()> {
    let mut kubectl = Command::new(KUBERNETES.get()?.join("kubectl"));
    let output = without_collecting(&mut kubectl)
        .arg("edit")
        .args(object)
        .env("KUBECONFIG", dev.kubeconfig())
        .env("KUBE_EDITOR", editor)
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    let edited = output.status.success() && said.contains("edited");
    ensure!(edited, "kubectl edit: {said}{failed}");
    Ok(())
}
