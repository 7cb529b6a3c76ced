//! As whom the agent acts, and by which rules: the chart's ServiceAccount, with what the
//! chart and the grants of its plugins give it.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::stage::{AGENT, NAMESPACE, Stage};

/// All that the agent writes in its own name: what it asks, and what it says in its
/// namespace. Events about Profiles are in `default`, as of all that has no namespace.
const OWN: [&str; 11] = [
    "authentication.k8s.io selfsubjectreviews ",
    "authorization.k8s.io selfsubjectaccessreviews ",
    "authorization.k8s.io subjectaccessreviews ",
    "coordination.k8s.io leases reeve-system",
    "core events default",
    "core events reeve-system",
    "reeve.dev journalentries reeve-system",
    "reeve.dev plugins reeve-system",
    "reeve.dev plugins/status reeve-system",
    "reeve.dev units reeve-system",
    "reeve.dev units/status reeve-system",
];

/// The API server's own account of who wrote what holds nothing but that, and nothing of
/// it was forbidden.
pub(crate) fn check(stage: &Stage) -> Result<()> {
    its_rules_are_of_the_chart_and_of_grants(stage)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut by_plugins = BTreeSet::new();
    for event in stage.cluster.audit_log()? {
        if event["user"]["username"] != AGENT {
            continue;
        }
        ensure!(event["responseStatus"]["code"] != 403, "{event}");
        let about = &event["objectRef"];
        let resource = text(&about["resource"]);
        if let Some(account) = event["impersonatedUser"]["username"].as_str() {
            by_plugins.insert(format!("{account} {resource}"));
            continue;
        }
        let group = about["apiGroup"].as_str().unwrap_or("core");
        let subresource = about["subresource"].as_str();
        let subresource = subresource.map_or(String::new(), |name| format!("/{name}"));
        let namespace = text(&about["namespace"]);
        let wrote = format!("{group} {resource}{subresource} {namespace}");
        ensure!(OWN.contains(&&*wrote), "{wrote}: {event}");
    }
    let expected = [("limitranges", "limitranges"), ("quotas", "resourcequotas")]
        .map(|(plugin, kind)| format!("system:serviceaccount:{NAMESPACE}:{plugin} {kind}"));
    ensure!(by_plugins == BTreeSet::from(expected), "{by_plugins:?}");
    Ok(())
}

/// Who binds the account: Helm, or `reeve plugin grant`.
fn its_rules_are_of_the_chart_and_of_grants(stage: &Stage) -> Result<()> {
    let account = json!({"kind": "ServiceAccount", "name": "reeve", "namespace": NAMESPACE});
    let mut by_helm = 0;
    for kind in ["rolebindings", "clusterrolebindings"] {
        for binding in stage.cluster.list(kind, "")? {
            let subjects = binding["subjects"].as_array();
            if !subjects.is_some_and(|all| all.contains(&account)) {
                continue;
            }
            let labels = &binding["metadata"]["labels"];
            let role = binding["roleRef"]["name"].as_str().context("no role")?;
            if labels["app.kubernetes.io/managed-by"] == "Helm" {
                by_helm += 1;
                continue;
            }
            let granted = labels["reeve.dev/granted-in"] == NAMESPACE;
            ensure!(
                granted && role.starts_with("reeve-plugin-reeve-system."),
                "{binding}"
            );
        }
    }
    // In its namespace, and in the cluster.
    ensure!(by_helm == 2, "the chart binds its account {by_helm} times");
    Ok(())
}
