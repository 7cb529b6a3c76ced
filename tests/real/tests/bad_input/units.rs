//! Calls that go wrong, each for a Profile of its own, for which all was well before.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use reeve_real::eventually;
use reeve_test_support::samples;
use serde_json::{Value, json};

use crate::ground::{Said, chameleon, create, grant_of, wait_until_said};
use crate::stage::Stage;

/// Where a Profile says what the guest is to do for it.
const DEED: &str = "chameleon.reeve.dev/do";

/// An object as the guest is to return it, word for word.
fn raw(object: &Value) -> Value {
    json!({"do": "raw", "text": object.to_string()})
}

/// The cases as they are known when all is well.
pub(crate) struct Cases {
    /// The Profiles as they are to become.
    turned: Vec<Value>,
    said: Vec<Said>,
}

/// What was made for each Profile before it went wrong.
pub(crate) struct Turned {
    made: BTreeMap<String, Value>,
    said: Vec<Said>,
}

/// Makes a Profile for each case, for which all is well.
pub(crate) fn deliver(stage: &Stage) -> Result<Cases> {
    stage.apply(&grant_of("wayward", "ConfigMap")?)?;
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
    let echo = json!({"do": "echo"}).to_string();
    let profile = |name: &str, deed: &str| {
        let mut profile = samples::profile(name);
        profile["metadata"]["annotations"] = json!({DEED: deed});
        profile
    };
    let mut objects = vec![chameleon("wayward", &config)?];
    let mut turned = Vec::new();
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
        objects.extend([samples::namespace(&name), profile(&name, &echo)]);
        turned.push(profile(&name, &deed.to_string()));
        said.push(Said::new(&name, reason, texts));
    }
    objects.extend([samples::namespace("unit-good"), profile("unit-good", &echo)]);
    create(stage, &objects)?;
    Ok(Cases { turned, said })
}

/// What the guest made for each Profile, by its name: who it is, and its version.
fn made(stage: &Stage) -> Result<BTreeMap<String, Value>> {
    let objects = stage.cluster.list("configmaps", "")?;
    let ours = objects
        .iter()
        .filter(|object| object["metadata"]["labels"]["reeve.dev/plugin"] == "wayward");
    let made = ours.map(|object| {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let is = json!([metadata["uid"], metadata["resourceVersion"]]);
        (name.replace("chameleon-", ""), is)
    });
    Ok(made.collect())
}

/// Waits until all is well, and lets all but one go wrong.
pub(crate) fn turn(stage: &Stage, cases: Cases) -> Result<Turned> {
    let Cases { turned, said } = cases;
    let made = eventually("an object is made for every case", || {
        let made = made(stage)?;
        ensure!(made.len() == said.len() + 1, "only {:?}", made.keys());
        Ok(made)
    })?;
    stage.apply(&turned)?;
    Ok(Turned { made, said })
}

/// Each says what went wrong, another unit of the plugin works, and what was made before is
/// as it was.
pub(crate) fn check(stage: &Stage, turned: &Turned) -> Result<()> {
    let primary = |unit: &Value| {
        let ours = unit["spec"]["plugin"] == "wayward";
        let name = unit["spec"]["primary"]["name"].as_str();
        name.filter(|_| ours).map(str::to_owned)
    };
    wait_until_said(stage, "units", primary, &turned.said)?;
    let now = made(stage)?;
    ensure!(
        now == turned.made,
        "something was lost or changed: {now:?} instead of {:?}",
        turned.made
    );
    // The one that is well is put right when somebody takes it away.
    let made = ("configmap", "unit-good", "chameleon-unit-good");
    let delete = ["delete", made.0, made.2, "-n", made.1];
    stage.cluster.kubectl(&delete)?;
    stage.wait_for(made, "/kind", "ConfigMap").map(drop)
}
