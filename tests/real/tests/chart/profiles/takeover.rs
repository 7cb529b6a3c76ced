//! The plugins take over what the controllers have made, with the rights of both
//! charts and no others, and nothing is deleted for it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use reeve_real::eventually;
use reeve_test_support::component;
use serde_json::{Value, json};

use super::{CHART, component_of};
use crate::stage::{NAMESPACE, Stage};

/// The plugins that are installed: those with something to do for every Profile.
const USUAL: [&str; 6] = [
    "authpolicy",
    "limitranges",
    "network",
    "notebook",
    "quotas",
    "rbac",
];

/// What the controllers wrote: kind, namespace and name.
const MADE: [(&str, &str); 3] = [
    ("resourcequota", "quotas"),
    ("limitrange", "default-container-limits"),
    ("networkpolicy", "vault-egress"),
];

#[test]
fn plugins_take_over_from_the_controllers() -> Result<()> {
    let mut stage = Stage::new()?;
    stage.helm("install", &["--create-namespace"])?;
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
    for folder in ["authpolicy", "notebook"] {
        for file in fs::read_dir(plugins.join(folder).join("scenarios/crds"))? {
            let definition = serde_saphyr::from_str(&fs::read_to_string(file?.path())?)?;
            stage.cluster.establish(&definition)?;
        }
    }
    the_controllers_have_been_here(&stage)?;
    let before = uids(&stage)?;
    stage.start_agent()?;

    // Looked at first, and nothing is written.
    let shadow =
        r#"plugin={"mode":"PlanOnly","adoption":"IfUnowned","adoptFrom":["profiles-controller"]}"#;
    let groups = r#"components.rbac.supportGroups=["support"]"#;
    let others = r#"replicaCount={"blobcsi":0,"cloudmain":0}"#;
    let settings = ["--set-json", groups, "--set-json", others, "--set-json"];
    let mut install = settings.to_vec();
    install.push(shadow);
    let notes = stage.helm_on(CHART, "install", &install)?;
    for plugin in USUAL {
        let line = format!("reeve plugin package {plugin}.wasm --name {plugin} ");
        ensure!(notes.contains(&line), "no `{line}` in {notes}");
    }
    the_release_is_small(&stage)?;
    for plugin in USUAL {
        deliver(&stage, plugin)?;
    }
    for plugin in USUAL {
        stage.wait_for_reason(plugin, "Ready", "Running")?;
    }
    let planned = eventually("what would be done is shown", || {
        let units = stage.list("units", NAMESPACE)?;
        let plans = units
            .iter()
            .filter(|unit| unit["status"]["plan"].is_object());
        ensure!(plans.count() >= USUAL.len(), "{units:?}");
        Ok(Value::from(units))
    })?;
    ensure!(uids(&stage)? == before, "{planned}");
    ensure!(
        stage.get("poddefault", "ann", "protected-b")?.is_none(),
        "something was written: {planned}"
    );

    // Then they go on, and the controllers are gone.
    let go = shadow.replace("PlanOnly", "Auto");
    let mut upgrade = settings.to_vec();
    upgrade.push(&go);
    stage.helm_on(CHART, "upgrade", &upgrade)?;
    for (kind, namespace, name) in [
        ("resourcequota", "bob", "quotas"),
        ("limitrange", "bob", "default-container-limits"),
        ("networkpolicy", "bob", "vault-egress"),
        ("poddefault", "ann", "protected-b"),
        ("rolebinding", "ann", "profile-support"),
        ("rolebinding", "ann", "ml-pipeline"),
        ("authorizationpolicy", "ann", "lab-protected-b-block"),
    ] {
        eventually(&format!("{kind} {namespace}/{name}"), || {
            let found = stage.get(kind, namespace, name)?;
            ensure!(found.is_some(), "it does not exist");
            Ok(())
        })?;
    }
    for (kind, name) in MADE {
        eventually(&format!("{kind} ann/{name} was taken over"), || {
            let found = stage.get(kind, "ann", name)?.context("it is gone")?;
            ensure!(
                found["metadata"]["labels"]["reeve.dev/plugin"].is_string(),
                "{found}"
            );
            let managers = found["metadata"]["managedFields"].as_array();
            let theirs = managers.into_iter().flatten();
            let mut theirs = theirs.filter(|entry| entry["manager"] == "profiles-controller");
            ensure!(theirs.next().is_none(), "{found}");
            Ok(())
        })?;
    }
    ensure!(uids(&stage)? == before, "something was made anew");
    // What somebody had added to it does not stay.
    stage.wait_for_pods("ann", "100")?;
    let quota = stage.get("resourcequota", "ann", "quotas")?;
    let hard = &quota.context("no quota")?["spec"]["hard"];
    ensure!(hard.get("count/secrets").is_none(), "{hard}");

    // Nothing is left to be said of any unit.
    eventually("all is well", || {
        let units = stage.list("units", NAMESPACE)?;
        ensure!(units.is_empty(), "{units:?}");
        Ok(())
    })?;

    // Uninstalled, the plugins leave what they made.
    stage.helm_on(CHART, "uninstall", &[])?;
    ensure!(uids(&stage)? == before, "something went with the chart");
    ensure!(stage.get("plugin", NAMESPACE, "quotas")?.is_some());
    ensure!(stage.get("configmap", NAMESPACE, "quotas")?.is_none());
    Ok(())
}

/// Objects as the controllers wrote them: by an update, owned by the Profile.
fn the_controllers_have_been_here(stage: &Stage) -> Result<()> {
    let profile = stage.get("profile", "", "ann")?.context("no Profile")?;
    let owner = json!([{
        "apiVersion": "kubeflow.org/v1", "kind": "Profile", "name": "ann",
        "uid": profile["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    let limits = json!({"cpu": "250m", "memory": "256M"});
    let vault = json!({
        "podSelector": {}, "policyTypes": ["Egress"],
        "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
    });
    for (api_version, kind, name, spec) in [
        (
            "v1",
            "ResourceQuota",
            "quotas",
            // Less than the default, and a key that is none of theirs.
            json!({"hard": {"pods": "5", "count/secrets": "3"}}),
        ),
        (
            "v1",
            "LimitRange",
            "default-container-limits",
            json!({"limits": [{"type": "Container", "default": limits, "defaultRequest": limits}]}),
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "vault-egress",
            vault,
        ),
    ] {
        let object = json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": "ann", "ownerReferences": owner},
            "spec": spec,
        });
        let create = ["create", "-f", "-", "--field-manager=profiles-controller"];
        stage.kubectl_with(&create, &object.to_string())?;
    }
    stage.apply(&[json!({
        "apiVersion": "kubeflow.org/v1", "kind": "Notebook",
        "metadata": {"name": "lab", "namespace": "ann"},
        "spec": {"template": {"spec": {"containers": [{"name": "lab", "image": "lab"}]}}},
    })])
}

/// By which it is told whether an object is still the same.
fn uids(stage: &Stage) -> Result<Vec<Value>> {
    MADE.iter()
        .map(|(kind, name)| {
            let found = stage.get(kind, "ann", name)?;
            let found = found.with_context(|| format!("{kind} {name} is gone"))?;
            Ok(found["metadata"]["uid"].clone())
        })
        .collect()
}

/// A release is kept in a Secret, which may have 1 MiB. Without components it has a
/// tenth of that.
fn the_release_is_small(stage: &Stage) -> Result<()> {
    let name = format!("sh.helm.release.v1.{CHART}.v1");
    let secret = stage
        .get("secret", NAMESPACE, &name)?
        .context("no release")?;
    let release = secret.pointer("/data/release").and_then(Value::as_str);
    let size = release.context("no release")?.len();
    ensure!(size < 100_000, "the release has {size} bytes");
    Ok(())
}

/// As the notes of the chart say.
fn deliver(stage: &Stage, plugin: &str) -> Result<()> {
    let file = component(component_of(plugin));
    let Some(file) = file.to_str() else {
        bail!("{} has an odd name", file.display());
    };
    let package = [
        "plugin",
        "package",
        file,
        "--name",
        plugin,
        "--namespace",
        NAMESPACE,
    ];
    let packed = stage.reeve(&package)?;
    let apply = ["apply", "--server-side", "-f", "-"];
    stage.kubectl_with(&apply, &packed).map(drop)
}
