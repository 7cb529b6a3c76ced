//! The grants of the chart are those that `reeve plugin grant` prints, object by
//! object, for each plugin and configuration.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::values::PULLED;
use super::{component_of, rendered};
use crate::grants::Asked;

/// Settings of the chart, and the selector of namespaces that says the same.
const CASES: [(&[&str], &str); 6] = [
    (&["replicaCount=1"], ""),
    // The agent gets the login with which it pulls.
    (&["replicaCount=1", PULLED], ""),
    (&["replicaCount=1", r#"preset="main""#], ""),
    (
        &[r#"namespaceLabels={"team":"a","example.com/b":"c"}"#],
        "example.com/b=c,team=a",
    ),
    // Every switch that has a say in it is the other way round.
    (
        &[
            r#"preset="main""#,
            r#"components.authpolicies.settings={"uploadDownloadBlock":false,"namespacePolicy":false}"#,
            r#"components.blobcsi.settings={"deletePods":false,"fdi":{"unclassified":{"internalStorageAccount":"abc"}}}"#,
            r#"components.cloudmain.settings={"removeForeign":false}"#,
            r#"components.network.settings={"removeStrays":false,"removeFormer":false}"#,
            r#"components.notebook.settings={"removeFormer":true}"#,
            r#"components.rbac.settings={"removeSupportBinding":false}"#,
            r#"components.s3proxy={"enabled":true,"settings":{"keepOnOptOut":false,"argocdNamespace":"argocd"}}"#,
        ],
        "",
    ),
    (
        &[
            r#"components.authpolicies.settings={"namespacePolicy":true}"#,
            r#"components.blobcsi.settings={"deletePods":true,"fdi":{"source":"configmap","configMap":{"namespace":"x","name":"y"},"protectedB":{"externalStorageAccount":"abc"}}}"#,
            r#"components.blobcsi.accountKeys={"https://a.example.com":"azure/one","https://b.example.com":"two"}"#,
            r#"components.cloudmain.settings={"removeForeign":true}"#,
            r#"components.network.settings={"removeStrays":true}"#,
            r#"components.rbac={"supportGroups":["g"],"settings":{"removeSupportBinding":true}}"#,
            r#"components.giteaProtectedB={"enabled":true,"settings":{"argocdNamespace":"argocd"}}"#,
        ],
        "",
    ),
];

#[test]
fn each_plugin_is_granted_what_it_asks_for() -> Result<()> {
    let plugins = ["quotas", "authpolicy", "cloudmain", "notebook", "s3proxy"];
    let folders = plugins.map(|plugin| format!("{plugin}/scenarios/crds"));
    let asked = Asked::new(&folders.each_ref().map(String::as_str))?;
    for (settings, selector) in CASES {
        let objects = rendered(asked.home(), settings)?;
        asked
            .check(&objects, component_of, selector)
            .with_context(|| format!("{settings:?}"))?;
    }
    Ok(())
}

/// What no manifest can ask for, and so is not among the above: just what the
/// configuration of rbac needs.
#[test]
fn rbac_may_bind_what_it_binds_and_hold_what_it_hands_on() -> Result<()> {
    let home = tempfile::tempdir()?;
    let bind = |names: &[&str]| {
        json!({
            "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
            "resourceNames": names, "verbs": ["bind"],
        })
    };
    let pods = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    let role = r#"components.rbac.settings={"role":{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}}"#;
    let groups = r#"components.rbac.supportGroups=["g"]"#;
    let cases: [(&[&str], Value); 5] = [
        (&[], json!([bind(&["ml-pipeline"])])),
        (
            &[groups],
            json!([bind(&["ml-pipeline", "profile-support"])]),
        ),
        (&[r#"preset="main""#], Value::Null),
        (
            &[r#"preset="main""#, groups],
            json!([bind(&["profile-support"])]),
        ),
        (&[role], json!([pods, bind(&["ml-pipeline"])])),
    ];
    for (settings, expected) in cases {
        let objects = rendered(home.path(), settings)?;
        let role = objects.iter().find(|object| {
            object["kind"] == "ClusterRole"
                && object["metadata"]["name"] == "reeve-plugin-reeve-system.rbac-binds"
        });
        let rules = role.map_or(Value::Null, |role| role["rules"].clone());
        ensure!(rules == expected, "{settings:?}: {rules}");
    }
    Ok(())
}
