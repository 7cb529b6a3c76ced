//! The policy by which the account of a plugin may have its primaries wait, and may
//! change nothing else of them. No agent runs: requests are the account's own, and the
//! API server is the layer that refuses.

use anyhow::{Context as _, Result, bail, ensure};
use reeve_real::eventually;
use reeve_test_support::{component, guest, samples};
use serde_json::{Value, json};

use crate::stage::{NAMESPACE, Stage};

const OURS: &str = "reeve.dev/quotas";
const HOOKS: &str = "hooks.reeve.dev/quotas";
/// Of another plugin of Profiles, and of somebody else.
const OTHER: &str = "reeve.dev/limitranges";
const FOREIGN: &str = "example.com/theirs";

/// What the policies say.
const POLICY: &str = "of its primaries, its account may change nothing but the finalizers";

/// What RBAC says.
const RBAC: &str = "cannot";

#[test]
fn an_account_changes_its_finalizers_and_nothing_else_of_a_primary() -> Result<()> {
    let stage = Stage::new()?;
    stage.helm("install", &["--create-namespace"])?;
    for plugin in ["quotas", "limitranges"] {
        stage
            .cluster
            .deliver(NAMESPACE, plugin, &component(plugin), None)?;
        let said = stage.reeve(&["plugin", "grant", plugin, "--apply"])?;
        let granted = "patch profiles.kubeflow.org cluster-wide, by policy for Reeve's finalizers";
        ensure!(said.contains(granted), "{said}");
    }
    let profile = Primary::profile(&stage)?;
    for plugin in ["quotas", "limitranges"] {
        profile.wait_until_enforced(plugin)?;
    }
    its_own_come_and_go(&profile)?;
    all_else_is_refused(&profile)?;
    what_the_policy_does_not_see_is_not_granted(&profile)?;
    one_that_is_deleted_waits_and_goes(&profile)?;
    so_it_is_with_a_kind_that_has_no_generation(&stage)
}

/// An object that is the primary of plugins, and requests to change it.
struct Primary<'a> {
    stage: &'a Stage,
    kind: &'static str,
    namespace: &'static str,
    name: &'static str,
    /// Whose requests these are, unless another is named.
    plugin: &'static str,
}

impl<'a> Primary<'a> {
    /// The Profile of ann, with something in each place.
    fn profile(stage: &'a Stage) -> Result<Self> {
        let mut profile = samples::profile("ann");
        profile["metadata"]["labels"] = json!({"team": "x"});
        profile["metadata"]["annotations"] = json!({"note": "x"});
        profile["metadata"]["finalizers"] = json!([FOREIGN, OTHER]);
        stage.apply(&[profile])?;
        Ok(Self {
            stage,
            kind: "profile",
            namespace: "",
            name: "ann",
            plugin: "quotas",
        })
    }

    /// Waits until the API server has learnt of the policy for a plugin. What gets through
    /// meanwhile is not what is tried later.
    fn wait_until_enforced(&self, plugin: &str) -> Result<()> {
        let mut number = 0;
        eventually("the policy is enforced", || {
            number += 1;
            let label = json!({"metadata": {"labels": {"probe": number.to_string()}}});
            refused(self.patch(plugin, "merge", &label), POLICY)
        })
    }

    fn get(&self) -> Result<Value> {
        let object = self.stage.get(self.kind, self.namespace, self.name)?;
        object.with_context(|| format!("the {} went", self.kind))
    }

    fn finalizers(&self) -> Result<Value> {
        Ok(self.get()?["metadata"]["finalizers"].clone())
    }

    fn patch(&self, plugin: &str, kind: &str, patch: &Value) -> Result<String> {
        let (kind, patch) = (format!("--type={kind}"), patch.to_string());
        let account = account(plugin);
        let mut command = vec!["patch", self.kind, self.name, &kind, "-p", &patch];
        command.extend(["--as", &account]);
        if !self.namespace.is_empty() {
            command.extend(["-n", self.namespace]);
        }
        self.stage.kubectl(&command)
    }

    fn merge(&self, patch: &Value) -> Result<String> {
        self.patch(self.plugin, "merge", patch)
    }

    /// Has just these finalizers on it.
    fn set(&self, finalizers: &[&str]) -> Result<String> {
        self.merge(&json!({"metadata": {"finalizers": finalizers}}))
    }

    fn refuses(&self, patch: &Value) -> Result<()> {
        refused(self.merge(patch), POLICY).with_context(|| patch.to_string())
    }
}

pub(crate) fn account(plugin: &str) -> String {
    format!("system:serviceaccount:{NAMESPACE}:{plugin}")
}

pub(crate) fn refused(result: Result<String>, expected: &str) -> Result<()> {
    match result {
        Ok(done) => bail!("not refused: {done}"),
        Err(error) => {
            let text = format!("{error:#}");
            ensure!(text.contains(expected), "no `{expected}` in: {text}");
            Ok(())
        }
    }
}

/// Both of them, one at a time and together, wherever they stand in the list.
fn its_own_come_and_go(primary: &Primary<'_>) -> Result<()> {
    let before = primary.get()?;
    for finalizers in [
        &[FOREIGN, OTHER, OURS][..],
        &[FOREIGN, OTHER, HOOKS],
        &[FOREIGN, OTHER, OURS, HOOKS],
        &[HOOKS, FOREIGN, OTHER],
        &[FOREIGN, OURS, OTHER],
        &[FOREIGN, OTHER],
    ] {
        primary
            .set(finalizers)
            .with_context(|| format!("{finalizers:?}"))?;
        let now = primary.finalizers()?;
        ensure!(now == json!(finalizers), "{finalizers:?}: {now}");
    }
    let add = json!([{"op": "add", "path": "/metadata/finalizers/-", "value": OURS}]);
    primary.patch("quotas", "json", &add)?;
    ensure!(primary.finalizers()? == json!([FOREIGN, OTHER, OURS]));
    // The other plugin's account has the same right to its own.
    let of_other = |finalizers: &[&str]| {
        let patch = json!({"metadata": {"finalizers": finalizers}});
        primary.patch("limitranges", "merge", &patch)
    };
    of_other(&[FOREIGN, OURS])?;
    of_other(&[FOREIGN, OTHER, OURS])?;
    refused(of_other(&[FOREIGN, OTHER]), POLICY)?;
    primary.set(&[FOREIGN, OTHER])?;
    let after = primary.get()?;
    for place in ["/spec", "/metadata/labels", "/metadata/annotations"] {
        ensure!(after.pointer(place) == before.pointer(place), "{after}");
    }
    Ok(())
}

fn all_else_is_refused(primary: &Primary<'_>) -> Result<()> {
    let before = primary.get()?;
    let own = json!([FOREIGN, OTHER, OURS]);
    for metadata in [
        // Finalizers of others.
        json!({"finalizers": [FOREIGN]}),
        json!({"finalizers": [OTHER]}),
        json!({"finalizers": [FOREIGN, OURS]}),
        json!({"finalizers": []}),
        json!({"finalizers": null}),
        json!({"finalizers": [OTHER, FOREIGN]}),
        json!({"finalizers": [FOREIGN, OTHER, "example.com/another"]}),
        json!({"finalizers": [FOREIGN, OTHER, "reeve.dev/quotas2"]}),
        json!({"finalizers": [FOREIGN, OTHER, "reeve.dev/other"]}),
        // What else is in the metadata; the last ones speak to the agent.
        json!({"labels": {"team": "y"}}),
        json!({"labels": {"team": null}}),
        json!({"labels": {"new": "x"}}),
        json!({"labels": null}),
        json!({"annotations": {"note": "y"}}),
        json!({"annotations": {"note": null}}),
        json!({"annotations": null}),
        json!({"ownerReferences": [{
            "apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "x",
        }]}),
        json!({"annotations": {"reeve.dev/release": "true"}}),
        json!({"labels": {"reeve.dev/plugin": "quotas"}}),
        // Behind what is allowed.
        json!({"finalizers": own, "labels": {"new": "x"}}),
        json!({"finalizers": own, "annotations": {"new": "x"}}),
    ] {
        primary.refuses(&json!({"metadata": metadata}))?;
    }
    for spec in [
        json!({"owner": {"name": "eve@example.com"}}),
        json!({"owner": null}),
        json!({"resourceQuotaSpec": {"hard": {"pods": "1"}}}),
        json!(null),
    ] {
        primary.refuses(&json!({"spec": spec}))?;
        primary.refuses(&json!({"spec": spec, "metadata": {"finalizers": own}}))?;
    }
    let replace = json!([{"op": "replace", "path": "/spec/owner/name", "value": "eve"}]);
    refused(primary.patch("quotas", "json", &replace), POLICY)?;
    // Nor by an apply, as the agent writes other objects.
    let mut applied = samples::profile("ann");
    applied["metadata"]["labels"] = json!({"team": "y"});
    let account = account("quotas");
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    let apply = [&apply[..], &["--as", &account]].concat();
    let done = primary.stage.kubectl_with(&apply, &applied.to_string());
    refused(done, POLICY)?;
    let after = primary.get()?;
    ensure!(after == before, "{before} became {after}");
    Ok(())
}

/// Requests that are no update of the Profile.
fn what_the_policy_does_not_see_is_not_granted(primary: &Primary<'_>) -> Result<()> {
    let stage = primary.stage;
    let (before, account) = (primary.get()?, account("quotas"));
    let new = samples::profile("eve").to_string();
    let status = r#"{"status":{"conditions":[]}}"#;
    let status = ["patch", "profile", "ann", "--type=merge", "-p", status];
    let status = [&status[..], &["--subresource=status"]].concat();
    // To make an object by an apply takes the right to create it, which is looked at late;
    // old versions of Kubernetes give no reason then.
    let made = "profiles.kubeflow.org \"eve\" is forbidden:";
    for (command, input, reason) in [
        (&["delete", "profile", "ann", "--wait=false"][..], "", RBAC),
        (&["create", "-f", "-"], &new, RBAC),
        (&["apply", "--server-side", "-f", "-"], &new, made),
        (&["replace", "-f", "-"], &before.to_string(), RBAC),
        (&status, "", RBAC),
    ] {
        let command = [command, &["--as", &account]].concat();
        let done = stage.kubectl_with(&command, input);
        // By rights and not by a policy, whose refusals begin alike.
        let said = done.as_ref().err().map(|error| format!("{error:#}"));
        let by_policy = said.is_some_and(|said| said.contains("ValidatingAdmissionPolicy"));
        ensure!(!by_policy, "{}: {done:?}", command.join(" "));
        refused(done, reason).with_context(|| command.join(" "))?;
    }
    let after = primary.get()?;
    ensure!(after == before, "{before} became {after}");
    ensure!(stage.get("profile", "", "eve")?.is_none(), "it was made");
    Ok(())
}

/// What the right is for: a Profile that somebody deletes goes when the account says so,
/// and is neither let go of by it for others nor kept for more.
fn one_that_is_deleted_waits_and_goes(primary: &Primary<'_>) -> Result<()> {
    let stage = primary.stage;
    primary.set(&[FOREIGN, OTHER, OURS])?;
    stage.kubectl(&["delete", "profile", "ann", "--wait=false"])?;
    ensure!(primary.get()?["metadata"]["deletionTimestamp"].is_string());
    refused(primary.set(&[]), POLICY)?;
    primary.refuses(&json!({"metadata": {"labels": {"new": "x"}}}))?;
    // Whoever owns the others takes them off.
    let left = json!({"metadata": {"finalizers": [OURS]}}).to_string();
    stage.kubectl(&["patch", "profile", "ann", "--type=merge", "-p", &left])?;
    ensure!(primary.finalizers()? == json!([OURS]));
    primary.set(&[])?;
    let after = stage.get("profile", "", "ann")?;
    ensure!(after.is_none(), "it stays: {after:?}");
    Ok(())
}

/// Of a Profile, the API server counts in its metadata how often the rest has changed. Where
/// it counts nothing, the rest is kept as well.
fn so_it_is_with_a_kind_that_has_no_generation(stage: &Stage) -> Result<()> {
    const OURS: &str = "reeve.dev/courier";
    let config = json!({
        "primary": "ConfigMap.v1", "writes": {"ResourceQuota.v1": "primary-namespace"},
    });
    let courier = guest("courier");
    stage
        .cluster
        .deliver(NAMESPACE, "courier", &courier, Some(&config))?;
    stage.reeve(&["plugin", "grant", "courier", "--apply"])?;
    stage.apply(&[json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": "ann", "finalizers": [FOREIGN]},
        "data": {"a": "x"},
    })])?;
    let primary = Primary {
        stage,
        kind: "configmap",
        namespace: "ann",
        name: "one",
        plugin: "courier",
    };
    primary.wait_until_enforced("courier")?;
    let before = primary.get()?;
    ensure!(before["metadata"]["generation"].is_null(), "{before}");
    primary.set(&[FOREIGN, OURS])?;
    ensure!(primary.finalizers()? == json!([FOREIGN, OURS]));
    primary.set(&[FOREIGN])?;
    let before = primary.get()?;
    for patch in [
        json!({"data": {"a": "y"}}),
        json!({"data": {"a": null}}),
        json!({"data": {"b": "x"}}),
        json!({"data": null}),
        json!({"binaryData": {"b": "eA=="}}),
        json!({"immutable": true}),
        json!({"data": {"a": "y"}, "metadata": {"finalizers": [FOREIGN, OURS]}}),
        json!({"metadata": {"labels": {"new": "x"}}}),
        json!({"metadata": {"finalizers": []}}),
    ] {
        primary.refuses(&patch)?;
    }
    let after = primary.get()?;
    ensure!(after == before, "{before} became {after}");
    Ok(())
}
