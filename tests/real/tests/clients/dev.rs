//! kubectl with the kubeconfig that `reeve dev` prints: what its guide says works, a hand
//! edit is put back, and what goes with a Profile goes. With a state, all of it is there
//! after a kill.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use reeve_real::parts::KUBERNETES;
use reeve_real::{EmbeddedCluster, eventually, without_collecting};

const PODS: &str = "jsonpath={.spec.hard.pods}";
const READY: &str = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";

#[test]
fn what_dev_says_works_with_kubectl() -> Result<()> {
    let dev = EmbeddedCluster::dev(&quotas()?)?;
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

/// What is there of Profiles and what `reeve dev` makes, except what is named here.
const KINDS: &str = "crds,namespaces,serviceaccounts,profiles,notebooks,resourcequotas,configmaps,\
                     plugins,clusterroles,clusterrolebindings,roles,rolebindings";
/// One line an object, the same as long as nobody makes it anew or changes what is asked of it.
const AS_IT_IS: &str = "jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} \
                        {.metadata.uid} {.metadata.generation} {.metadata.labels}{\"\\n\"}{end}";

#[test]
fn what_was_done_in_dev_stays_done_when_it_is_killed() -> Result<()> {
    let mut dev = EmbeddedCluster::dev_with(&quotas()?, &["--state=state"])?;
    let kubeconfig = fs::read_to_string(dev.kubeconfig())?;
    let profiles = ["get", "profiles", "-o", "name"];
    let begun = dev.kubectl(&profiles)?;
    ensure!(begun.lines().count() == 3, "{begun}");

    // Changed, made, deleted, and being deleted when it is killed.
    dev.kubectl(&["label", "profile", "alice", "quotas.statcan.gc.ca/pods=31"])?;
    becomes(&dev, "31", "the label counts")?;
    dev.kubectl(&["annotate", "namespace", "alice", "by=hand"])?;
    dev.kubectl(&["delete", "notebook", "lab", "-n", "alice"])?;
    dev.kubectl(&["create", "namespace", "carol"])?;
    let carol = dev.folder().join("carol.yaml");
    fs::write(
        &carol,
        "{apiVersion: kubeflow.org/v1, kind: Profile, metadata: {name: carol}, \
         spec: {owner: {kind: User, name: carol@example.com}}}",
    )?;
    dev.kubectl(&["apply", "-f", &carol.display().to_string()])?;
    eventually("carol has a quota", || {
        have_quotas(&dev, &["alice", "bob", "carol", "data-team"])
    })?;
    dev.kubectl(&["delete", "profile", "bob"])?;
    dev.kubectl(&["delete", "namespace", "bob"])?;
    let before = as_it_is(&dev)?;
    dev.kubectl(&["delete", "profile", "data-team", "--wait=false"])?;
    dev.kill()?;

    dev.start_again()?;
    let again = fs::read_to_string(dev.kubeconfig())?;
    ensure!(again == kubeconfig, "the kubeconfig is another one");
    eventually("what was being deleted is gone", || {
        let left = dev.kubectl(&profiles)?;
        let expected = "profile.kubeflow.org/alice\nprofile.kubeflow.org/carol\n";
        ensure!(left == expected, "there are:\n{left}");
        have_quotas(&dev, &["alice", "carol"])
    })?;
    ensure!(pods(&dev)? == "31", "the label does not count any more");
    let of_data_team = |line: &String| {
        line.starts_with("Profile /data-team ") || line.starts_with("ResourceQuota data-team/")
    };
    let mut expected = before.clone();
    expected.retain(|line| !of_data_team(line));
    same(&expected, &as_it_is(&dev)?)?;
    let hand = [
        "get",
        "namespace",
        "alice",
        "-o",
        "jsonpath={.metadata.annotations.by}",
    ];
    ensure!(dev.kubectl(&hand)? == "hand", "the annotation is gone");

    // The agent is at work, and a kill in the middle of nothing changes nothing.
    dev.kubectl(&["label", "profile", "carol", "quotas.statcan.gc.ca/pods=7"])?;
    eventually("the label of carol counts", || {
        let now = dev.kubectl(&["get", "resourcequota", "quotas", "-n", "carol", "-o", PODS])?;
        ensure!(now == "7", "pods: {now}");
        Ok(())
    })?;
    let before = as_it_is(&dev)?;
    dev.kill()?;
    dev.start_again()?;
    same(&before, &as_it_is(&dev)?)?;
    have_quotas(&dev, &["alice", "carol"])
}

/// All that is there, each in a line.
fn as_it_is(dev: &EmbeddedCluster) -> Result<BTreeSet<String>> {
    let all = dev.kubectl(&["get", KINDS, "-A", "-o", AS_IT_IS])?;
    Ok(all.lines().map(str::to_owned).collect())
}

fn same(expected: &BTreeSet<String>, found: &BTreeSet<String>) -> Result<()> {
    let lost: Vec<_> = expected.difference(found).collect();
    let new: Vec<_> = found.difference(expected).collect();
    let same = lost.is_empty() && new.is_empty();
    ensure!(same, "lost: {lost:#?}\nnew: {new:#?}");
    Ok(())
}

/// That these namespaces have a quota each, and no others.
fn have_quotas(dev: &EmbeddedCluster, expected: &[&str]) -> Result<()> {
    let each = "jsonpath={range .items[*]}{.metadata.namespace} {end}";
    let found = dev.kubectl(&["get", "resourcequotas", "-A", "-o", each])?;
    let found: Vec<_> = found.split_whitespace().collect();
    ensure!(found == expected, "quotas are in {found:?}");
    Ok(())
}

/// The folder of the plugin.
fn quotas() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    Ok(root.context("no root")?.join("plugins/quotas"))
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
