//! The policy on Secrets, of an account that may have them generated and of one that writes
//! them. No agent runs: requests are the accounts' own, and the API server is the layer that
//! refuses.

use anyhow::{Context as _, Result, ensure};
use reeve_real::eventually;
use reeve_test_support::guest;
use serde_json::{Value, json};

use crate::finalizers::{account, refused};
use crate::stage::{NAMESPACE, Stage};

const BY: &str = "reeve.dev/generated-by";

const MADE: &str = "what its account makes carries the label reeve.dev/plugin with its name";
const PLACES: &str = "its account may write secrets in no namespace whose name begins with `kube-`";
const HERE: &str = "its account may not write in namespace reeve-system";
const GENERATED: &str = "may not change or delete Secrets that were generated for another plugin";
const MARKS: &str = "may not give Secrets the annotation reeve.dev/generated-by of another plugin";

#[test]
fn accounts_make_their_own_secrets_and_touch_no_generated_ones_of_others() -> Result<()> {
    let stage = Stage::new()?;
    stage.helm("install", &["--create-namespace"])?;
    let generates = json!({"database": true});
    let writes = json!({"primary": "ConfigMap.v1", "writes": {"Secret.v1": "primary-namespace"}});
    for (plugin, config, does) in [
        ("envoy", generates, "has Secrets generated"),
        ("courier", writes, "writes Secrets"),
    ] {
        let component = guest(plugin);
        stage
            .cluster
            .deliver(NAMESPACE, plugin, &component, Some(&config))?;
        let said = stage.reeve(&["plugin", "grant", plugin, "--apply"])?;
        let caution = format!("caution: whoever {does} may get and overwrite any");
        ensure!(said.contains(&caution), "{said}");
        eventually("the policy is enforced", || {
            let made = create(
                &stage,
                plugin,
                &secret("ann", "probe"),
                &["--dry-run=server"],
            );
            refused(made, MADE)
        })?;
    }
    what_is_generated_is_made_where_it_may_be(&stage)?;
    what_is_there_is_kept(&stage)?;
    of_the_other_nothing_is_changed(&stage)
}

fn secret(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "stringData": {"password": "x"},
    })
}

fn generated(namespace: &str, name: &str, by: &str) -> Value {
    let mut secret = secret(namespace, name);
    secret["metadata"]["annotations"] = json!({BY: by});
    secret
}

fn create(stage: &Stage, plugin: &str, object: &Value, more: &[&str]) -> Result<String> {
    let account = account(plugin);
    let command = ["create", "-f", "-", "--as", &account];
    stage.kubectl_with(&[&command[..], more].concat(), &object.to_string())
}

fn patch(stage: &Stage, plugin: &str, place: (&str, &str), patch: &Value) -> Result<String> {
    let ((namespace, name), account) = (place, account(plugin));
    let patch = patch.to_string();
    let command = ["patch", "secret", name, "-n", namespace, "--type=merge"];
    stage.kubectl(&[&command[..], &["-p", &patch, "--as", &account]].concat())
}

fn what_is_generated_is_made_where_it_may_be(stage: &Stage) -> Result<()> {
    create(stage, "envoy", &generated("ann", "login", "envoy"), &[])?;
    let mut labelled = secret("ann", "labelled");
    labelled["metadata"]["labels"] = json!({"reeve.dev/plugin": "envoy"});
    let mut map = generated("ann", "map", "envoy");
    map["kind"] = json!("ConfigMap");
    map.as_object_mut()
        .context("no object")?
        .remove("stringData");
    for (object, expected) in [
        (secret("ann", "plain"), MADE),
        (generated("ann", "theirs", "courier"), MADE),
        (generated("kube-system", "login", "envoy"), PLACES),
        (generated(NAMESPACE, "login", "envoy"), HERE),
        (map, MADE),
    ] {
        let done = create(stage, "envoy", &object, &[]);
        refused(done, expected).with_context(|| object.to_string())?;
    }
    // What it writes besides is made as ever.
    create(stage, "envoy", &labelled, &[]).map(drop)
}

fn what_is_there_is_kept(stage: &Stage) -> Result<()> {
    let data = json!({"stringData": {"password": "y"}});
    patch(stage, "envoy", ("ann", "login"), &data)?;
    for (namespace, expected) in [("kube-system", PLACES), (NAMESPACE, HERE)] {
        stage.apply(&[secret(namespace, "theirs")])?;
        for plugin in ["envoy", "courier"] {
            refused(patch(stage, plugin, (namespace, "theirs"), &data), expected)?;
            // What no policy can refuse, and the caution is about.
            let account = account(plugin);
            stage.kubectl(&["get", "secret", "theirs", "-n", namespace, "--as", &account])?;
        }
    }
    Ok(())
}

fn of_the_other_nothing_is_changed(stage: &Stage) -> Result<()> {
    let mut own = secret("ann", "own");
    own["metadata"]["labels"] = json!({"reeve.dev/plugin": "courier"});
    create(stage, "courier", &own, &[])?;
    let login = || stage.get("secret", "ann", "login");
    let before = login()?;
    for change in [
        json!({"stringData": {"password": "z"}}),
        json!({"metadata": {"annotations": {BY: null}}}),
        json!({"metadata": {"annotations": {BY: "courier"}}}),
        json!({"metadata": {"labels": {"reeve.dev/plugin": "courier"}}}),
    ] {
        let done = patch(stage, "courier", ("ann", "login"), &change);
        refused(done, GENERATED).with_context(|| change.to_string())?;
    }
    let account = account("courier");
    let delete = ["delete", "secret", "login", "-n", "ann", "--as", &account];
    refused(stage.kubectl(&delete), GENERATED)?;
    ensure!(login()? == before, "it was changed");
    // Nor is one of its own passed off as generated for another, made or changed.
    let forged = json!({"metadata": {"annotations": {BY: "envoy"}}});
    refused(patch(stage, "courier", ("ann", "own"), &forged), MARKS)?;
    own["metadata"]["name"] = json!("forged");
    own["metadata"]["annotations"] = json!({BY: "envoy"});
    refused(create(stage, "courier", &own, &[]), MARKS)
}
