//! How HelmReleases of Flux stand once nothing more is done about what failed: conditions,
//! messages, counts and histories, each as helm-controller leaves them, against which
//! `tests/real/tests/releases` holds the same.

use serde_json::{Value, json};

use crate::deliverers::{charts, flux, history, message, release};
use crate::world::{World, after, conditions, has};

/// What is asked to fail at first, and with each change of the values after that.
type Steps = &'static [&'static str];

struct Case {
    name: &'static str,
    spec: Value,
    steps: Steps,
    conditions: &'static [&'static str],
    /// Why it stalls, where it does.
    stalled: &'static str,
    /// Version, state and action of each release.
    history: &'static [&'static str],
    /// Failures at all, of installs and of upgrades.
    failures: [Value; 3],
}

fn counts(all: i64, installs: i64, upgrades: i64) -> [Value; 3] {
    [all, installs, upgrades].map(|count| match count {
        0 => Value::Null,
        count => json!(count),
    })
}

fn cases() -> Vec<Case> {
    let test = |mut spec: Value| {
        spec["test"] = json!({"enable": true});
        spec
    };
    let remediation = |action: &str, with: Value| json!({action: {"remediation": with}});
    vec![
        Case {
            name: "test-fails",
            spec: test(json!({})),
            steps: &["test"],
            conditions: &[
                "Stalled=True RetriesExceeded",
                "Ready=False TestFailed",
                "Released=True InstallSucceeded",
                "TestSuccess=False TestFailed",
            ],
            stalled: "Failed to install after 1 attempt(s)",
            history: &["v1 deployed install Failed"],
            failures: counts(1, 1, 0),
        },
        Case {
            name: "test-ignored",
            spec: json!({"test": {"enable": true, "ignoreFailures": true}}),
            steps: &["test"],
            conditions: &[
                "Ready=True InstallSucceeded",
                "Released=True InstallSucceeded",
                "TestSuccess=False TestFailed",
            ],
            stalled: "",
            history: &["v1 deployed install Failed"],
            failures: counts(1, 0, 0),
        },
        Case {
            name: "test-unminded",
            spec: test(remediation(
                "install",
                json!({"retries": 1, "ignoreTestFailures": true}),
            )),
            steps: &["test"],
            conditions: &[
                "Ready=False TestFailed",
                "Released=True InstallSucceeded",
                "TestSuccess=False TestFailed",
            ],
            stalled: "",
            history: &["v1 deployed install Failed"],
            failures: counts(1, 0, 0),
        },
        Case {
            name: "test-rolls-back",
            spec: test(remediation("upgrade", json!({"retries": 1}))),
            steps: &["none", "test"],
            conditions: &[
                "Stalled=True RetriesExceeded",
                "Ready=False RollbackSucceeded",
                "Released=True UpgradeSucceeded",
                "Remediated=True RollbackSucceeded",
                "TestSuccess=False TestFailed",
            ],
            stalled: "Failed to upgrade after 2 attempt(s)",
            history: &[
                "v5 deployed rollback -",
                "v4 superseded rollback Failed",
                "v3 superseded - -",
            ],
            failures: counts(2, 0, 2),
        },
        Case {
            name: "remedied-at-last",
            spec: remediation(
                "install",
                json!({"retries": 1, "remediateLastFailure": true}),
            ),
            steps: &["install"],
            conditions: &[
                "Stalled=True RetriesExceeded",
                "Ready=False InstallFailed",
                "Released=False InstallFailed",
                "Remediated=True UninstallSucceeded",
            ],
            stalled: "Failed to install after 2 attempt(s)",
            history: &["v1 uninstalling uninstall-remediation -"],
            failures: counts(2, 2, 0),
        },
        Case {
            name: "upgrade-fails",
            spec: json!({}),
            steps: &["none", "upgrade"],
            conditions: &[
                "Stalled=True RetriesExceeded",
                "Ready=False UpgradeFailed",
                "Released=False UpgradeFailed",
            ],
            stalled: "Failed to upgrade after 1 attempt(s)",
            history: &["v2 failed upgrade -", "v1 deployed - -"],
            failures: counts(1, 0, 1),
        },
        Case {
            name: "upgrade-uninstalls",
            spec: remediation("upgrade", json!({"retries": 1, "strategy": "uninstall"})),
            steps: &["none", "upgrade"],
            conditions: &[
                "Ready=True InstallSucceeded",
                "Released=True InstallSucceeded",
            ],
            stalled: "",
            history: &["v1 deployed install -"],
            failures: counts(1, 0, 1),
        },
        Case {
            name: "no-target",
            spec: remediation("upgrade", json!({"retries": 1})),
            steps: &["install", "upgrade"],
            conditions: &[
                "Stalled=True MissingRollbackTarget",
                "Ready=False UpgradeFailed",
                "Released=False UpgradeFailed",
            ],
            stalled: "Failed to perform remediation: missing target release for rollback: cannot remediate failed release",
            history: &["v2 failed upgrade -", "v1 failed - -"],
            failures: counts(1, 0, 1),
        },
    ]
}

/// Creates a release, or gives it other values.
async fn step(world: &World, case: &Case, place: usize) {
    let action = case.steps[place];
    if place == 0 {
        let made = release(case.name, &[("fail", action)], case.spec.clone());
        world.create(made).await;
        return;
    }
    let change = json!({
        "metadata": {"annotations": {"actor.reeve.dev/fail": action}},
        "spec": {"values": {"place": place}},
    });
    world.patch("HelmRelease", case.name, change).await;
}

#[tokio::test(start_paused = true)]
async fn what_failed_for_the_last_time_stands_as_it_is() {
    let world = flux().await;
    world.create(charts("web", &[])).await;
    let cases = cases();
    for place in 0..2 {
        for case in cases.iter().filter(|case| place < case.steps.len()) {
            step(&world, case, place).await;
        }
        after(60.0).await;
    }
    // A day later nothing else was tried.
    after(24.0 * 3600.0).await;
    for case in &cases {
        let found = world.get("HelmRelease", case.name).await;
        assert_eq!(conditions(&found), case.conditions, "{}", case.name);
        if !case.stalled.is_empty() {
            assert_eq!(message(&found, "Stalled"), case.stalled, "{}", case.name);
        }
        let releases = found["status"]["history"].as_array().unwrap();
        let shown: Vec<String> = releases
            .iter()
            .map(|entry| {
                let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
                let tests = entry["testHooks"].as_object();
                let phase = tests.and_then(|tests| tests.values().next());
                let phase = phase.map_or("-".to_owned(), |hook| text(&hook["phase"]));
                let (status, action) = (text(&entry["status"]), text(&entry["action"]));
                format!("v{} {status} {action} {phase}", entry["version"])
            })
            .collect();
        assert_eq!(shown, case.history, "{}", case.name);
        let [all, installs, upgrades] = &case.failures;
        has(
            &found["status"],
            json!({
                "observedGeneration": case.steps.len(),
                "lastAttemptedGeneration": case.steps.len(),
                "failures": all,
                "installFailures": installs,
                "upgradeFailures": upgrades,
            }),
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_waits_for_its_interval_is_observed() {
    let world = flux().await;
    world.create(charts("web", &[])).await;
    let spec = json!({
        "install": {"strategy": {"name": "RetryOnFailure", "retryInterval": "1h"}},
        "test": {"enable": true},
    });
    for (name, failure) in [("installs", "install"), ("tests", "test")] {
        world
            .create(release(name, &[("fail", failure)], spec.clone()))
            .await;
    }
    after(10.0).await;
    for name in ["installs", "tests"] {
        let found = world.get("HelmRelease", name).await;
        assert_eq!(
            conditions(&found)[0],
            "Reconciling=True ProgressingWithRetry"
        );
        assert_eq!(message(&found, "Reconciling"), "retrying after 1h0m0s");
        has(
            &found["status"],
            json!({"observedGeneration": 1, "installFailures": 1}),
        );
    }
}

#[tokio::test(start_paused = true)]
async fn values_that_are_none_are_told() {
    let world = flux().await;
    world.create(charts("web", &[])).await;
    for (name, data) in [
        ("empty", json!({})),
        ("text", json!({"values.yaml": "a text"})),
        ("good", json!({"values.yaml": "a: 1"})),
    ] {
        world
            .create(json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data,
            }))
            .await;
    }
    for (name, kind, why) in [
        ("absent", "Secret", "secrets \"absent\" not found"),
        ("empty", "ConfigMap", "key not found"),
        (
            "text",
            "ConfigMap",
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type common.Values",
        ),
    ] {
        let values = json!({"valuesFrom": [{"kind": kind, "name": name}]});
        world.create(release(name, &[], values)).await;
        after(5.0).await;
        let found = world.get("HelmRelease", name).await;
        assert_eq!(
            conditions(&found),
            ["Reconciling=True Progressing", "Ready=False ValuesError"]
        );
        let expected = format!(
            "could not resolve {kind} chart values reference 'default/{name}' with key 'values.yaml': {why}"
        );
        assert_eq!(message(&found, "Ready"), expected);
        has(
            &found["status"],
            json!({"observedGeneration": -1, "history": null, "failures": null}),
        );
    }
    let optional = json!([{"kind": "ConfigMap", "name": "empty", "optional": true}, {"kind": "ConfigMap", "name": "good"}]);
    let values = json!({"valuesFrom": optional});
    world.create(release("good", &[], values)).await;
    after(5.0).await;
    let found = world.get("HelmRelease", "good").await;
    assert_eq!(conditions(&found)[0], "Ready=True InstallSucceeded");
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_uninstalled_stays_and_says_so() {
    let world = flux().await;
    world.create(charts("web", &[])).await;
    world
        .create(release("web", &[("fail", "uninstall")], json!({})))
        .await;
    after(5.0).await;
    world.delete("HelmRelease", "web").await;
    after(3600.0).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        conditions(&found),
        [
            "Ready=False UninstallFailed",
            "Released=False UninstallFailed"
        ]
    );
    let version = found["status"]["lastAttemptedRevision"].as_str().unwrap();
    assert_eq!(
        message(&found, "Ready"),
        format!(
            "Helm uninstall failed for release default/web.v1 with chart web@{version}: asked for by annotation"
        )
    );
    assert_eq!(
        history(&found),
        [format!("v1 {version} uninstalling uninstall")]
    );
    // The deletion is a generation that nobody is done with.
    has(
        &found,
        json!({
            "metadata": {"generation": 2, "finalizers": ["finalizers.fluxcd.io"]},
            "status": {"observedGeneration": 1, "failures": 1},
        }),
    );
    world.annotate("HelmRelease", "web", "fail", None).await;
    after(5.0).await;
    assert_eq!(world.get("HelmRelease", "web").await, Value::Null);
}
