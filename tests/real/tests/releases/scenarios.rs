//! What is done to releases.

use serde_json::{Value, json};

/// The chart and its version.
pub(crate) const CHART: &str = "web";
pub(crate) const VERSION: &str = "6.5.0";

/// One release, and what is done to it.
pub(crate) struct Scenario {
    /// Of the release.
    pub(crate) name: &'static str,
    /// What its spec has beside the usual.
    pub(crate) spec: Value,
    pub(crate) steps: Vec<Step>,
}

/// What is done, and waited for.
pub(crate) enum Step {
    /// It is created, or its chart is to fail there from now on: an action of Helm, or
    /// nothing.
    Fails(&'static str),
    /// A merge patch.
    Patch(Value),
    /// Another object comes.
    Create(Value),
    /// It is deleted, and cannot go.
    Delete,
}

use Step::{Create, Delete, Fails, Patch};

fn scenario(name: &'static str, spec: Value, steps: impl Into<Vec<Step>>) -> Scenario {
    Scenario {
        name,
        spec,
        steps: steps.into(),
    }
}

/// Requests of Flux, with one token.
fn request(kinds: &[&str], token: &str) -> Step {
    let annotations: Value = kinds
        .iter()
        .map(|kind| (format!("reconcile.fluxcd.io/{kind}"), json!(token)))
        .collect();
    Patch(json!({"metadata": {"annotations": annotations}}))
}

fn values_from(kind: &str, name: &str) -> Value {
    json!({"valuesFrom": [{"kind": kind, "name": name}]})
}

fn retries(action: &str, remediation: &Value) -> Value {
    json!({action: {"remediation": remediation}})
}

pub(crate) fn all() -> Vec<Scenario> {
    let mut all = installs();
    all.extend(upgrades());
    all.extend(tests());
    all.extend(prerequisites());
    all.extend(ends());
    all
}

fn installs() -> Vec<Scenario> {
    let retry = json!({"install": {"strategy": {"name": "RetryOnFailure", "retryInterval": "1h"}}});
    vec![
        scenario("install", json!({}), [Fails("")]),
        scenario("install-fails", json!({}), [Fails("install"), Fails("")]),
        scenario(
            "install-retries",
            retries("install", &json!({"retries": 1})),
            [Fails("install"), Fails("")],
        ),
        scenario(
            "install-remedies-last",
            retries(
                "install",
                &json!({"retries": 1, "remediateLastFailure": true}),
            ),
            [Fails("install")],
        ),
        scenario("install-interval", retry, [Fails("install"), Fails("")]),
        scenario(
            "reset",
            json!({}),
            [
                Fails("install"),
                request(&["requestedAt", "resetAt"], "one"),
            ],
        ),
        scenario(
            "force",
            json!({}),
            [
                Fails("install"),
                request(&["requestedAt", "forceAt"], "one"),
            ],
        ),
    ]
}

fn upgrades() -> Vec<Scenario> {
    let retry = json!({"upgrade": {"strategy": {"name": "RetryOnFailure", "retryInterval": "1h"}}});
    vec![
        scenario(
            "upgrade-fails",
            json!({}),
            [Fails(""), Fails("upgrade"), Fails("none")],
        ),
        scenario(
            "upgrade-retries",
            retries("upgrade", &json!({"retries": 1})),
            [Fails(""), Fails("upgrade"), Fails("none")],
        ),
        scenario(
            "upgrade-keeps-last",
            retries(
                "upgrade",
                &json!({"retries": 1, "remediateLastFailure": false}),
            ),
            [Fails(""), Fails("upgrade")],
        ),
        scenario(
            "upgrade-remedies-only",
            retries("upgrade", &json!({"remediateLastFailure": true})),
            [Fails(""), Fails("upgrade")],
        ),
        scenario(
            "upgrade-uninstalls",
            retries("upgrade", &json!({"retries": 1, "strategy": "uninstall"})),
            [Fails(""), Fails("upgrade")],
        ),
        scenario("upgrade-interval", retry, [Fails(""), Fails("upgrade")]),
        scenario(
            "no-target",
            retries("upgrade", &json!({"retries": 1})),
            [Fails("install"), Fails("upgrade"), Fails("none")],
        ),
    ]
}

fn tests() -> Vec<Scenario> {
    let test = |more: Value| {
        let mut spec = json!({"test": {"enable": true}});
        for (field, value) in more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        spec
    };
    vec![
        scenario("test", test(json!({})), [Fails("")]),
        scenario("test-fails", test(json!({})), [Fails("test"), Fails("")]),
        scenario(
            "test-ignored",
            json!({"test": {"enable": true, "ignoreFailures": true}}),
            [Fails("test")],
        ),
        scenario(
            "test-retries",
            test(retries("install", &json!({"retries": 1}))),
            [Fails("test")],
        ),
        scenario(
            "test-rolls-back",
            test(retries("upgrade", &json!({"retries": 1}))),
            [Fails(""), Fails("test")],
        ),
        scenario(
            "test-interval",
            test(json!({"install": {"strategy": {"name": "RetryOnFailure"}}})),
            [Fails("test")],
        ),
        scenario(
            "test-unminded",
            test(retries(
                "install",
                &json!({"retries": 1, "ignoreTestFailures": true}),
            )),
            [Fails("test")],
        ),
        scenario("test-failed-install", test(json!({})), [Fails("install")]),
    ]
}

fn prerequisites() -> Vec<Scenario> {
    let needs = |needs: Value| json!({"dependsOn": [needs]});
    let chart = |name: &str| json!({"chartRef": {"kind": "OCIRepository", "name": name}});
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "late"},
        "data": {"values.yaml": "a: 1"},
    });
    let other = json!({"kind": "ConfigMap", "name": "other", "valuesKey": "wanted"});
    let broken = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "broken"},
        "data": {"values.yaml": "a text"},
    });
    vec![
        scenario(
            "values-absent",
            values_from("Secret", "absent"),
            [Fails("")],
        ),
        scenario(
            "values-late",
            values_from("ConfigMap", "late"),
            [Fails(""), Create(map)],
        ),
        scenario(
            "values-key",
            json!({"valuesFrom": [other]}),
            [
                Create(json!({
                    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"},
                })),
                Fails(""),
            ],
        ),
        scenario(
            "values-broken",
            values_from("ConfigMap", "broken"),
            [Create(broken), Fails("")],
        ),
        scenario(
            "needs-absent",
            needs(json!({"name": "absent"})),
            [Fails("")],
        ),
        scenario(
            "needs-failed",
            needs(json!({"name": "install-remedies-last"})),
            [Fails("")],
        ),
        scenario(
            "needs-rule",
            needs(json!({"name": "install", "readyExpr": "dep.metadata.name == 'other'"})),
            [Fails("")],
        ),
        scenario(
            "needs-nonsense",
            needs(json!({"name": "install", "readyExpr": "dep."})),
            [Fails("")],
        ),
        scenario("source-absent", chart("absent"), [Fails("")]),
        scenario("source-empty", chart("empty"), [Fails("")]),
        scenario("source-failing", chart("failing"), [Fails("")]),
        scenario("source-stalled", chart("stalled"), [Fails("")]),
        scenario("source-new", chart("new"), [Fails("")]),
        scenario("suspended", json!({"suspend": true}), [Fails("")]),
    ]
}

fn ends() -> Vec<Scenario> {
    vec![scenario(
        "end-fails",
        json!({}),
        [Fails("uninstall"), Delete],
    )]
}
