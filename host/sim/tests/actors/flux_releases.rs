//! HelmReleases of Flux: install, upgrade, what they wait for.

use serde_json::{Value, json};

use crate::deliverers::{charts, flux, history, message, object, release};
use crate::world::{after, conditions, has};

const INSTALLED: [&str; 2] = [
    "Ready=True InstallSucceeded",
    "Released=True InstallSucceeded",
];
const UPGRADED: [&str; 2] = [
    "Ready=True UpgradeSucceeded",
    "Released=True UpgradeSucceeded",
];

#[tokio::test(start_paused = true)]
async fn a_release_is_installed_once_its_chart_is_there_and_upgraded_with_it() {
    let world = flux().await;
    world.create(release("web", &[], json!({}))).await;
    world.settle().await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        conditions(&found),
        ["Reconciling=True Progressing", "Ready=False ArtifactFailed"]
    );
    assert_eq!(
        message(&found, "Ready"),
        "could not get Source object: OCIRepository.source.toolkit.fluxcd.io \"web\" not found"
    );
    world.create(charts("web", &[])).await;
    world.settle().await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        conditions(&found),
        ["Reconciling=True Progressing", "Ready=False SourceNotReady"]
    );
    assert_eq!(
        message(&found, "Ready"),
        "OCIRepository 'default/web' is not ready: latest generation of object has not been reconciled"
    );
    after(1.5).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        conditions(&found),
        ["Reconciling=True Progressing", "Ready=Unknown Progressing"]
    );
    assert_eq!(
        message(&found, "Ready"),
        "Running 'install' action with timeout of 5m0s"
    );
    after(1.0).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(conditions(&found), INSTALLED);
    let version = found["status"]["lastAttemptedRevision"].as_str().unwrap();
    assert!(
        version.starts_with("6.5.0+") && version.len() == 18,
        "{version}"
    );
    assert_eq!(
        message(&found, "Ready"),
        format!("Helm install succeeded for release default/web.v1 with chart web@{version}")
    );
    has(
        &found["status"],
        json!({"observedGeneration": 1, "storageNamespace": "default"}),
    );
    assert_eq!(history(&found), [format!("v1 {version} deployed install")]);

    // A field that means nothing to the release is observed at once.
    world
        .patch("HelmRelease", "web", json!({"spec": {"interval": "1h"}}))
        .await;
    world.settle().await;
    let found = world.get("HelmRelease", "web").await;
    has(&found["status"], json!({"observedGeneration": 2}));
    assert_eq!(conditions(&found), INSTALLED);
    has(
        &found["status"]["conditions"][0],
        json!({"observedGeneration": 2}),
    );
    has(
        &found["status"]["conditions"][1],
        json!({"observedGeneration": 1}),
    );

    let values = json!({"spec": {"values": {"replicas": 2}}});
    world.patch("HelmRelease", "web", values).await;
    after(0.5).await;
    let found = world.get("HelmRelease", "web").await;
    has(
        &found["status"],
        json!({"observedGeneration": 2, "lastAttemptedGeneration": 3}),
    );
    assert_eq!(
        message(&found, "Reconciling"),
        "Running 'upgrade' action with timeout of 5m0s"
    );
    after(1.0).await;
    world
        .annotate("OCIRepository", "web", "revision", Some("6.6.0"))
        .await;
    after(2.5).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(conditions(&found), UPGRADED);
    let newer = found["status"]["lastAttemptedRevision"].as_str().unwrap();
    assert!(newer.starts_with("6.6.0+"), "{newer}");
    assert_eq!(
        history(&found),
        [
            format!("v3 {newer} deployed upgrade"),
            format!("v2 {version} superseded -")
        ]
    );

    // It is uninstalled before it goes.
    world.delete("HelmRelease", "web").await;
    after(0.5).await;
    assert_ne!(world.get("HelmRelease", "web").await, Value::Null);
    after(1.0).await;
    assert_eq!(world.get("HelmRelease", "web").await, Value::Null);
    let events = world.events("web").await;
    let end = "UninstallSucceeded: Helm uninstall succeeded for release default/web.v3";
    assert!(
        events.iter().any(|event| event.starts_with(end)),
        "{events:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_is_suspended_stays_as_it_is_and_leaves_everything_behind() {
    let world = flux().await;
    world.create(charts("web", &[])).await;
    world.create(release("web", &[], json!({}))).await;
    after(3.0).await;
    let change = json!({"spec": {"suspend": true, "values": {"replicas": 9}}});
    world.patch("HelmRelease", "web", change).await;
    after(60.0).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(history(&found).len(), 1);
    has(
        &found["status"],
        json!({"observedGeneration": 2, "lastAttemptedGeneration": 1}),
    );
    world.delete("HelmRelease", "web").await;
    world.settle().await;
    assert_eq!(world.get("HelmRelease", "web").await, Value::Null);
    let events = world.events("web").await;
    assert!(
        !events.iter().any(|e| e.starts_with("Uninstall")),
        "{events:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn releases_wait_for_those_on_which_they_depend() {
    let world = flux().await;
    world.create(charts("web", &[])).await;
    let needs = |rule: Option<&str>| {
        let mut need = json!({"name": "early"});
        if let Some(rule) = rule {
            need["readyExpr"] = json!(rule);
        }
        json!({"dependsOn": [need]})
    };
    let rule = "dep.status.history[0].version == 1 && self.spec.interval == '30m'";
    world.create(release("late", &[], needs(None))).await;
    world.create(release("ruled", &[], needs(Some(rule)))).await;
    world
        .create(release("broken", &[], needs(Some("dep."))))
        .await;
    world.settle().await;
    let found = world.get("HelmRelease", "late").await;
    assert_eq!(
        conditions(&found),
        [
            "Reconciling=True Progressing",
            "Ready=False DependencyNotReady"
        ]
    );
    assert_eq!(
        message(&found, "Ready"),
        "unable to get 'default/early' dependency: helmreleases.helm.toolkit.fluxcd.io \"early\" not found"
    );
    world
        .create(release("early", &[("ready-after", "40s")], json!({})))
        .await;
    after(31.0).await;
    let found = world.get("HelmRelease", "late").await;
    assert_eq!(
        message(&found, "Ready"),
        "dependency 'default/early' is not ready"
    );
    let found = world.get("HelmRelease", "broken").await;
    assert_eq!(
        conditions(&found),
        [
            "Stalled=True InvalidCELExpression",
            "Ready=False InvalidCELExpression"
        ]
    );
    after(40.0).await;
    for name in ["late", "ruled"] {
        let found = world.get("HelmRelease", name).await;
        assert_eq!(conditions(&found), INSTALLED, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn charts_of_templates_and_values_of_others_are_waited_for() {
    let world = flux().await;
    let spec = json!({"url": "https://charts.example.com", "interval": "1h"});
    world
        .create(object("HelmRepository", "source", "stable", &[], spec))
        .await;
    let source = json!({"kind": "HelmRepository", "name": "stable"});
    let template = json!({"spec": {"chart": "web", "version": "4.x", "sourceRef": source}});
    let values = json!([{"kind": "ConfigMap", "name": "values"}]);
    let more = json!({"chart": template, "valuesFrom": values});
    let mut made = release("web", &[], more);
    made["spec"].as_object_mut().unwrap().remove("chartRef");
    world.create(made).await;
    after(3.0).await;
    let chart = world.get("HelmChart", "default-web").await;
    assert_eq!(
        conditions(&chart),
        [
            "Ready=True ChartPullSucceeded",
            "ArtifactInStorage=True ChartPullSucceeded"
        ]
    );
    assert_eq!(
        message(&chart, "Ready"),
        "pulled 'web' chart with version '4.0.0'"
    );
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(
        message(&found, "Ready"),
        "could not resolve ConfigMap chart values reference 'default/values' with key 'values.yaml': configmaps \"values\" not found"
    );
    let of = |value: &str| json!({"data": {"values.yaml": value}});
    let mut map = of("a: 1");
    map["apiVersion"] = json!("v1");
    map["kind"] = json!("ConfigMap");
    map["metadata"] = json!({"name": "values"});
    world.create(map).await;
    after(40.0).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(history(&found), ["v1 4.0.0 deployed install"]);
    has(
        &found["status"],
        json!({"helmChart": "default/default-web"}),
    );
    // Other values are seen at the next interval, and make another release.
    world.patch("ConfigMap", "values", of("a: 2")).await;
    after(31.0 * 60.0).await;
    let found = world.get("HelmRelease", "web").await;
    assert_eq!(history(&found)[0], "v2 4.0.0 deployed upgrade");
    world.delete("HelmRelease", "web").await;
    after(2.0).await;
    assert_eq!(world.get("HelmChart", "default-web").await, Value::Null);
}
