//! The grants of the chart are those that `reeve plugin grant` prints, object by
//! object, for each plugin and configuration.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use reeve_real::parts::KUBERNETES;
use reeve_real::{EmbeddedCluster, binary};
use reeve_test_support::component;
use serde_json::{Value, json};

use super::{component_of, configured, rendered};

/// Kind, namespace and name.
type Key = (String, String, String);

/// Settings of the chart, and the selector of namespaces that says the same.
const CASES: [(&[&str], &str); 5] = [
    (&["replicaCount=1"], ""),
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

fn key(object: &Value) -> Key {
    let text = |pointer: &str| {
        let found = object.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    (
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name"),
    )
}

/// What means the same, written the same.
fn normal(mut object: Value) -> (Key, Value) {
    let labels = object["metadata"]["labels"].as_object();
    let granted: serde_json::Map<String, Value> = labels
        .into_iter()
        .flatten()
        .filter(|(label, _)| label.starts_with("reeve.dev/"))
        .map(|(label, value)| (label.clone(), value.clone()))
        .collect();
    object["metadata"]["labels"] = json!(granted);
    if let Some(rules) = object.get_mut("rules").and_then(Value::as_array_mut) {
        rules.sort_by_key(Value::to_string);
    }
    (key(&object), object)
}

/// Applies a file, or those of a folder.
fn apply(cluster: &EmbeddedCluster, path: &Path) -> Result<()> {
    let applied = Command::new(KUBERNETES.get()?.join("kubectl"))
        .args(["apply", "--server-side", "--force-conflicts", "-f"])
        .arg(path)
        .env("KUBECONFIG", cluster.kubeconfig())
        .output()?;
    ensure!(
        applied.status.success(),
        "{}: {}",
        path.display(),
        String::from_utf8_lossy(&applied.stderr)
    );
    Ok(())
}

#[test]
fn each_plugin_is_granted_what_it_asks_for() -> Result<()> {
    let cluster = EmbeddedCluster::start()?;
    let home = cluster.folder();
    let definitions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
    for plugin in ["quotas", "authpolicy", "cloudmain", "notebook", "s3proxy"] {
        apply(&cluster, &definitions.join(plugin).join("scenarios/crds"))?;
    }
    let kinds = Command::new(binary()?).arg("crds").output()?;
    fs::write(home.join("kinds.yaml"), kinds.stdout)?;
    apply(&cluster, &home.join("kinds.yaml"))?;
    for (settings, selector) in CASES {
        let objects = rendered(home, settings)?;
        // What the Plugins may reach outside has a part in it.
        let plugins: Vec<&Value> = objects
            .iter()
            .filter(|one| one["kind"] == "Plugin")
            .collect();
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "reeve-system"},
        });
        let items: Vec<&Value> = std::iter::once(&namespace).chain(plugins).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        fs::write(home.join("plugins.json"), list.to_string())?;
        apply(&cluster, &home.join("plugins.json"))?;
        for (plugin, config) in configured(&objects) {
            let file = home.join(format!("{plugin}.yaml"));
            fs::write(&file, config)?;
            let printed = Command::new(binary()?)
                .args(["plugin", "grant", &plugin, "-o", "json"])
                .args(["--namespace", "reeve-system"])
                .args(["--namespace-selector", selector])
                .arg("--component")
                .arg(component(component_of(&plugin)))
                .arg("--config")
                .arg(&file)
                .env("KUBECONFIG", cluster.kubeconfig())
                .output()?;
            ensure!(
                printed.status.success(),
                "{plugin}: {}",
                String::from_utf8_lossy(&printed.stderr)
            );
            let printed: Value = serde_json::from_slice(&printed.stdout)?;
            let asked = printed["items"].as_array().context("no objects")?;
            let asked: BTreeMap<Key, Value> = asked.iter().cloned().map(normal).collect();
            let granted = objects.iter().filter(|object| {
                let label = &object["metadata"]["labels"]["reeve.dev/granted-to"];
                *label == plugin.as_str() || asked.contains_key(&key(object))
            });
            let granted: BTreeMap<Key, Value> = granted.cloned().map(normal).collect();
            for key in asked.keys().chain(granted.keys()) {
                ensure!(
                    asked.get(key) == granted.get(key),
                    "{plugin} with {settings:?}: {key:?} is {:?} in the chart, and {:?} is asked for",
                    granted.get(key),
                    asked.get(key)
                );
            }
        }
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
                && object["metadata"]["name"] == "reeve-plugin-reeve-system-rbac-binds"
        });
        let rules = role.map_or(Value::Null, |role| role["rules"].clone());
        ensure!(rules == expected, "{settings:?}: {rules}");
    }
    Ok(())
}
