//! Calls that go wrong, each for a Profile of its own.

use anyhow::{Result, ensure};
use reeve_test_support::samples;
use serde_json::{Value, json};

use crate::ground::{Said, chameleon, create, wait_until_said};
use crate::stage::Stage;

/// An object as the guest is to return it, word for word.
fn raw(object: &Value) -> Value {
    json!({"do": "raw", "text": object.to_string()})
}

/// Makes a Profile for each case, and returns what is to be said of it.
pub(crate) fn deliver(stage: &Stage) -> Result<Vec<Said>> {
    stage.grant("wayward", "ConfigMap")?;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        // Profiles of other tests are none of its business.
        "reconcile": {"do": "nothing", "meant": true},
    });
    let in_place = |name: &str, namespace: &str, field: Value| {
        let mut object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace},
        });
        object["data"] = field;
        object
    };
    let mut objects = vec![chameleon("wayward", &config)?];
    let mut said = Vec::new();
    for (name, deed, reason, texts) in [
        (
            "trap",
            json!({"do": "trap"}),
            "Trapped",
            &["reconcile", "unreachable"][..],
        ),
        (
            "panic",
            json!({"do": "panic", "text": "no such tenant"}),
            "Trapped",
            &["no such tenant"],
        ),
        (
            "loop",
            json!({"do": "loop"}),
            "LimitExceeded",
            &["2 s", "endless loop"],
        ),
        (
            "hoard",
            json!({"do": "hoard"}),
            "LimitExceeded",
            &["memory limit of 64 MiB"],
        ),
        (
            "no-json",
            json!({"do": "raw", "text": "{"}),
            "OutcomeRefused",
            &["objects[0]", "JSON"],
        ),
        (
            "no-name",
            json!({"do": "no-name"}),
            "OutcomeRefused",
            &["metadata.name"],
        ),
        (
            "undeclared",
            json!({"do": "undeclared-kind"}),
            "OutcomeRefused",
            &["declares no write of Service.v1"],
        ),
        (
            "twice",
            json!({"do": "duplicate"}),
            "OutcomeRefused",
            &["objects[1]", "twice"],
        ),
        (
            "elsewhere",
            json!({"do": "foreign-namespace", "namespace": "kube-system"}),
            "OutcomeRefused",
            &["kube-system", "may be written in namespace unit-elsewhere"],
        ),
        // What only the API server finds out, in its words.
        (
            "bad-key",
            raw(&in_place("a", "unit-bad-key", json!({"not/a/key": "x"}))),
            "ApplyFailed",
            &[
                "ConfigMap unit-bad-key/a",
                "data[not/a/key]",
                "a valid config key must consist of",
            ],
        ),
        (
            "bad-name",
            raw(&in_place("Not_A_Name", "unit-bad-name", json!({}))),
            "ApplyFailed",
            &[
                "unit-bad-name/Not_A_Name",
                "metadata.name",
                "lowercase RFC 1123 subdomain",
            ],
        ),
        (
            "bad-type",
            raw(&in_place("a", "unit-bad-type", json!(7))),
            "ApplyFailed",
            &["ConfigMap unit-bad-type/a", ".data"],
        ),
    ] {
        let name = format!("unit-{name}");
        let mut profile = samples::profile(&name);
        profile["metadata"]["annotations"] = json!({"chameleon.reeve.dev/do": deed.to_string()});
        objects.extend([samples::namespace(&name), profile]);
        said.push(Said::new(&name, reason, texts));
    }
    let echo = json!({"do": "echo"}).to_string();
    let mut good = samples::profile("unit-good");
    good["metadata"]["annotations"] = json!({"chameleon.reeve.dev/do": echo});
    objects.extend([samples::namespace("unit-good"), good]);
    create(stage, &objects)?;
    Ok(said)
}

/// Each says what went wrong, and another unit of the plugin works.
pub(crate) fn check(stage: &Stage, said: &[Said]) -> Result<()> {
    let primary = |unit: &Value| {
        let ours = unit["spec"]["plugin"] == "wayward";
        let name = unit["spec"]["primary"]["name"].as_str();
        name.filter(|_| ours).map(str::to_owned)
    };
    wait_until_said(stage, "units", primary, said)?;
    let made = ("configmap", "unit-good", "chameleon-unit-good");
    stage.wait_for(made, "/kind", "ConfigMap")?;
    let bad = stage.get("configmap", "unit-trap", "chameleon-unit-trap")?;
    ensure!(bad.is_none(), "a call that trapped made {bad:?}");
    Ok(())
}
