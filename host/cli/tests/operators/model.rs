//! `reeve model`, without an agent: what is asked for, and how it is answered.

use super::Desk;
use kube::api::{Patch, PatchParams};
use reeve_it::NAMESPACE;
use reeve_test_support::samples;
use serde_json::{Value, json};

const DEFINITION: &str =
    include_str!("../../../../plugins/models/scenarios/crds/modeldeployment.yaml");

async fn desk() -> Desk {
    let desk = Desk::new().await;
    let definition: Value = serde_saphyr::from_str(DEFINITION).unwrap();
    desk.world.apply(&definition).await;
    desk.world
        .apply(&samples::namespace("datarobot-mlops"))
        .await;
    desk
}

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "models.reeve.dev/v1alpha1", "kind": "ModelDeployment",
        "metadata": {"name": name, "namespace": "datarobot-mlops"},
    })
}

/// As the agent tells what it is refused.
async fn refuse(desk: &Desk, name: &str) {
    let found = desk.world.get(&deployment(name)).await.unwrap();
    let unit = json!({
        "apiVersion": "reeve.dev/v1alpha1", "kind": "Unit",
        "metadata": {"name": "models-refused", "namespace": NAMESPACE},
        "spec": {"plugin": "models", "primary": {
            "apiVersion": "models.reeve.dev/v1alpha1", "kind": "ModelDeployment",
            "namespace": "datarobot-mlops", "name": name, "uid": found["metadata"]["uid"],
        }},
    });
    desk.world.apply(&unit).await;
    let status = json!({"status": {"conditions": [{
        "type": "Ready", "status": "False", "reason": "ApplyFailed",
        "message": "Deployment datarobot-mlops/churn: denied by a webhook",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    let api = desk.world.api(&unit);
    let status = Patch::Merge(&status);
    api.patch_status("models-refused", &PatchParams::default(), &status)
        .await
        .unwrap();
}

const MODEL: &str = "--model-id m1 --package-url https://app.datarobot.com/m1 --sha256 aa";

async fn spec_of(desk: &Desk, name: &str) -> Value {
    desk.world.get(&deployment(name)).await.unwrap()["spec"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_set_fields_of_the_resource() {
    let desk = desk().await;
    let package = json!({"url": "https://app.datarobot.com/m1", "sha256": "aa".repeat(32)});
    let model = MODEL.replace("--sha256 aa", &format!("--sha256 {}", "aa".repeat(32)));
    desk.reeve("model list").await.is(
        0,
        "no deployments in namespace datarobot-mlops; `reeve model start ID` makes one\n",
    );
    let (code, result) = desk
        .json(&format!("model start 64F0 {model} --replicas 2"))
        .await;
    assert_eq!(code, Some(0));
    for (field, expected) in [
        ("deploymentId", json!("64F0")),
        ("state", json!("unknown")),
        ("status", json!("unknown")),
        ("statusCode", json!(3)),
    ] {
        assert_eq!(result[field], expected, "{result}");
    }
    let mut expected =
        json!({"deploymentId": "64F0", "replicas": 2, "model": {"id": "m1", "package": package}});
    assert_eq!(spec_of(&desk, "deployment-64f0").await, expected);

    let said = desk.reeve("model stop 64F0").await;
    assert!(
        said.out
            .ends_with("`reeve model status 64F0` says how far it is\n"),
        "{said:?}"
    );
    expected["stopped"] = json!(true);
    assert_eq!(spec_of(&desk, "deployment-64f0").await, expected);
    desk.reeve("model relaunch 64F0").await.fails(
        2,
        "deployment 64F0 is stopped; `reeve model start 64F0` starts it",
    );
    assert_eq!(
        desk.reeve(&format!("model start 64F0 {model}")).await.code,
        Some(0)
    );
    expected.as_object_mut().unwrap().remove("stopped");
    assert_eq!(spec_of(&desk, "deployment-64f0").await, expected);

    let digest = format!("r.example.com/m2@sha256:{}", "b".repeat(64));
    let other = format!("--model-id m2 --artifact {digest}");
    desk.reeve(&format!("model start 64F0 {other}")).await.fails(
        2,
        "deployment 64F0 is there and wants model m1; `reeve model replace 64F0` has it serve m2",
    );
    assert_eq!(
        desk.reeve(&format!("model replace 64F0 {other}"))
            .await
            .code,
        Some(0)
    );
    expected["model"] = json!({"id": "m2", "artifact": digest});
    assert_eq!(spec_of(&desk, "deployment-64f0").await, expected);
    assert_eq!(desk.reeve("model relaunch 64F0").await.code, Some(0));
    assert!(spec_of(&desk, "deployment-64f0").await["relaunch"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn standings_are_told_in_words_and_numbers() {
    let desk = desk().await;
    let mut churn = deployment("churn");
    churn["spec"] =
        json!({"model": {"id": "m2", "package": {"url": "u", "sha256": "a".repeat(64)}}});
    churn["status"] = json!({
        "state": "ready", "status": "warning", "statusCode": 2, "message": "the build failed",
        "oldModelInUse": true, "currentModelId": "m1", "predictionUrl": "https://example.com/churn",
    });
    desk.world.apply(&churn).await;
    let mut second = deployment("second");
    second["spec"] = json!({"deploymentId": "s", "model": {"id": "m3"}});
    desk.world.apply(&second).await;

    desk.reeve("model status churn").await.is(
        0,
        "ID     STATE  STATUS   MODEL  WANTED  MESSAGE\n\
         churn  ready  warning  m1     m2      the build failed\n",
    );
    let (code, result) = desk.json("model status churn").await;
    let data = json!({"oldModelInUse": true, "currentModelId": "m1", "predictionUrl": "https://example.com/churn"});
    assert_eq!((code, &result["data"]), (Some(0), &data));
    assert_eq!(result["statusCode"], 2);
    assert_eq!(desk.reeve("model status s").await.code, Some(1));
    refuse(&desk, "churn").await;
    let (code, result) = desk.json("model status churn").await;
    let refused = json!("ApplyFailed: Deployment datarobot-mlops/churn: denied by a webhook");
    assert_eq!((code, &result["data"]["agent"]), (Some(0), &refused));
    let (code, all) = desk.json("model list").await;
    assert_eq!((code, &all["status"]), (Some(0), &json!("unknown")));
    assert_eq!(all["data"]["deploymentsStatus"]["churn"]["state"], "ready");
    assert_eq!(all["data"]["deploymentsStatus"]["s"]["statusCode"], 3);
}

/// The plugin has seen the spec as it becomes, and all is as it was.
#[tokio::test(flavor = "multi_thread")]
async fn what_changes_nothing_is_soon_waited_for() {
    let desk = desk().await;
    let mut churn = deployment("churn");
    churn["spec"] = json!({"model": {"id": "m1"}, "stopped": false});
    churn["status"] = json!({
        "state": "ready", "status": "passing", "statusCode": 0, "message": "the model serves",
        "oldModelInUse": false, "currentModelId": "m1", "replicas": 1, "observed": "31a0dd444a6a",
    });
    desk.world.apply(&churn).await;
    let wait = "--wait --timeout 20s";
    let started = desk.reeve(&format!("model start churn {wait}")).await;
    assert_eq!(started.code, Some(0), "{started:?}");
    // Of another spec nothing is known.
    let short = desk
        .reeve("model start churn --replicas 1 --wait --timeout 2s")
        .await;
    assert_eq!(short.code, Some(1), "{short:?}");

    let mut idle = deployment("idle");
    idle["spec"] = json!({"model": {"id": "m1"}});
    idle["status"] = json!({
        "state": "ready", "status": "unknown", "statusCode": 3, "message": "none is wanted",
        "oldModelInUse": false, "replicas": 0, "observed": "053b0cb035bf",
    });
    desk.world.apply(&idle).await;
    let scaled = desk
        .reeve(&format!("model start idle --replicas 0 {wait}"))
        .await;
    assert_eq!(scaled.code, Some(0), "{scaled:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_names_the_next_command() {
    let bare = Desk::new().await;
    let said = bare.reeve("model list").await;
    assert!(
        said.err.contains("`helm install bosun charts/models`"),
        "{said:?}"
    );
    let desk = desk().await;
    desk.reeve("model stop x").await.fails(
        2,
        "no deployment in namespace datarobot-mlops has the id x; there is none. `reeve model start \
         x` makes one, and --namespace names another place",
    );
    desk.reeve("model start x").await.fails(
        2,
        "there is no deployment x in namespace datarobot-mlops yet; say which model it is to serve: \
         --model-id, and --package-url with --sha256 or --artifact",
    );
    desk.reeve("model start x --model-id m").await.fails(
        2,
        "where is model m? Say --package-url and --sha256, or --artifact",
    );
    for name in ["a", "b"] {
        let mut twice = deployment(name);
        twice["spec"] = json!({"deploymentId": "x", "model": {"id": "m"}});
        desk.world.apply(&twice).await;
    }
    desk.reeve("model status x").await.fails(
        2,
        "ModelDeployments a and b in namespace datarobot-mlops both say spec.deploymentId x; delete \
         one, or give it another id",
    );
}
