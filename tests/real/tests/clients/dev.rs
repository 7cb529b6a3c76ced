//! kubectl with the kubeconfig that `reeve dev` prints: what its guide says works, a hand
//! edit is put back, and what goes with a Profile goes.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use reeve_real::parts::KUBERNETES;
use reeve_real::{EmbeddedCluster, eventually, without_collecting};

const PODS: &str = "jsonpath={.spec.hard.pods}";
const READY: &str = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";

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
    let listed = plugins.lines().any(|line| line.starts_with("quotas "));
    ensure!(listed, "quotas is not listed:\n{plugins}");
    let ready = dev.kubectl(&["get", "plugin", "quotas", "-o", READY])?;
    ensure!(ready == "True", "quotas is not ready: {ready}");

    let before = pods(&dev)?;
    let editor = format!("sed -i /pods:/s/{before}/7654321/");
    edit(&dev, &editor, &["resourcequota", "quotas", "-n", "alice"])?;
    becomes(&dev, &before, "the hand edit is put back")?;

    dev.kubectl(&["label", "profile", "alice", "quotas.statcan.gc.ca/pods=31"])?;
    becomes(&dev, "31", "the label counts")?;

    dev.kubectl(&["delete", "resourcequota", "quotas", "-n", "alice"])?;
    becomes(&dev, "31", "what was deleted by hand is there again")?;

    dev.kubectl(&["delete", "profile", "alice"])?;
    eventually("the quota goes with its Profile", || {
        let left = dev.kubectl(&["get", "resourcequotas", "-n", "alice", "-o", "name"])?;
        ensure!(left.is_empty(), "there is {left}");
        Ok(())
    })
}

/// Waits until this is the limit.
fn becomes(dev: &EmbeddedCluster, limit: &str, what: &str) -> Result<()> {
    eventually(what, || {
        let now = pods(dev)?;
        ensure!(now == limit, "pods: {now}, not {limit}");
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
        .env("KUBECACHEDIR", dev.kubeconfig().with_extension("cache"))
        .env("KUBE_EDITOR", editor)
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    let edited = output.status.success() && said.contains("edited");
    ensure!(edited, "kubectl edit: {said}{failed}");
    Ok(())
}
