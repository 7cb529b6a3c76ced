//! What comes and goes while others work on it: primaries, kinds, versions of
//! kinds, and what the agent reports.

use crate::widgets::{crd, widget};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use reeve_it::{World, condition, core_reference, guest, plugin, profile_reference};
use serde_json::{Value, json};
use std::time::Duration;

async fn install(world: &World, config: Value) {
    let component = [("plugin.wasm", guest("chameleon"))];
    world.install("chameleon", &component, Some(config)).await;
}

fn made(namespace: &str, primary: &str) -> Value {
    core_reference("ConfigMap", namespace, &format!("chameleon-{primary}"))
}

/// Long enough for a guest to be caught at it, short of its limit.
const SPIN: u64 = 300_000_000;

/// Waits until a unit runs, and not until it has run.
async fn until_running(world: &World) {
    let mut status = world.agent().status();
    let running = status.wait_for(|status| status.running > 0);
    let running = tokio::time::timeout(Duration::from_secs(1), running);
    let status = running.await.unwrap().unwrap();
    assert_eq!(status.running, 1);
}

/// A primary in whose reach its objects are takes them with it; where garbage
/// collection does not reach, the agent does.
#[tokio::test(start_paused = true)]
async fn a_primary_that_is_deleted_during_its_run_leaves_nothing() {
    let note = core_reference("ConfigMap", "alice", "note");
    for (config, primary, made) in [
        (
            json!({"primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary"}),
            reeve_test_support::samples::profile("alice"),
            made("alice", "alice"),
        ),
        (
            json!({"primary": "Widget.v1.example.com", "scope": ["bob"]}),
            widget("alice", "note"),
            made("bob", "note"),
        ),
    ] {
        for again in [false, true] {
            let world = World::started().await;
            world.apply(&crd("widgets")).await;
            for name in ["alice", "bob"] {
                let namespace = reeve_test_support::samples::namespace(name);
                world.apply(&namespace).await;
            }
            world.apply(&note).await;
            let mut config = config.clone();
            config["reconcile"] = json!({"do": "spin", "rounds": SPIN});
            install(&world, config).await;
            world.settle().await;
            world.apply(&primary).await;
            until_running(&world).await;
            world.delete(&primary).await;
            if again {
                world.apply(&primary).await;
            }
            world.settle().await;
            // The next look at what nobody watches.
            world.wait(Duration::from_secs(60)).await;
            let found = world.get(&made).await;
            if again {
                let owner = &found.unwrap()["metadata"]["annotations"]["reeve.dev/primary-uid"];
                let uid = &world.get(&primary).await.unwrap()["metadata"]["uid"];
                assert_eq!(owner, uid, "it belongs to the new one");
            } else {
                assert_eq!(found, None, "{primary}");
            }
            let name = primary["metadata"]["name"].as_str().unwrap();
            assert_eq!(world.unit("chameleon", name).await, None);
            assert!(world.get(&note).await.is_some());
        }
    }
}

/// The same objects, read in another version of their kind, are the same units.
#[tokio::test(start_paused = true)]
async fn another_version_of_the_primarys_kind_takes_over() {
    let world = World::started().await;
    let mut profiles = reeve_test_support::samples::profile_crd();
    let mut beta = profiles["spec"]["versions"][0].clone();
    beta["name"] = json!("v1beta1");
    beta["storage"] = json!(false);
    profiles["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .push(beta);
    world.apply(&profiles).await;
    let config = |version: &str| {
        json!({
            "primary": format!("Profile.{version}.kubeflow.org"),
            "scope": "namespace-named-like-primary",
        })
    };
    world.tenant("alice", &[]).await;
    install(&world, config("v1beta1")).await;
    world.settle().await;
    let alice = made("alice", "alice");
    let before = world.get(&alice).await.unwrap();
    let owner = |object: &Value| object["metadata"]["ownerReferences"].clone();
    assert_eq!(owner(&before)[0]["apiVersion"], "kubeflow.org/v1beta1");

    // A unit that fails over the swap keeps its one report.
    let fail = json!({"do": "fail", "how": "terminal", "text": "no such plan"}).to_string();
    let mut bob = reeve_test_support::samples::profile("bob");
    bob["metadata"]["annotations"] = json!({"chameleon.reeve.dev/do": fail});
    world
        .apply(&reeve_test_support::samples::namespace("bob"))
        .await;
    world.apply(&bob).await;
    world.settle().await;
    assert!(world.unit("chameleon", "bob").await.is_some());

    install(&world, config("v1")).await;
    world.settle().await;
    let after = world.get(&alice).await.unwrap();
    assert_eq!(
        after["metadata"]["uid"], before["metadata"]["uid"],
        "it stayed"
    );
    assert_eq!(owner(&after).as_array().unwrap().len(), 1);
    assert_eq!(owner(&after)[0]["apiVersion"], "kubeflow.org/v1");
    let unit = world.unit("chameleon", "bob").await.unwrap();
    assert_eq!(unit["spec"]["primary"]["apiVersion"], "kubeflow.org/v1");
    assert_eq!(condition(&unit, "Ready").reason, "Terminal");
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert!(
        ready.message.starts_with("1 of 2 units ready, 1 failing"),
        "{ready:?}"
    );

    // And it is watched as before.
    world.edit(&alice, json!({"data": {"config": "x"}})).await;
    world.settle().await;
    assert_eq!(world.get(&alice).await.unwrap()["data"], after["data"]);
    world.delete(&profile_reference("alice")).await;
    world.settle().await;
    assert_eq!(world.get(&alice).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_report_that_is_deleted_by_hand_comes_back_at_once() {
    let world = World::started().await;
    let fail = json!({"do": "fail", "how": "terminal", "text": "no such plan"});
    install(
        &world,
        json!({
            "primary": "Profile.v1.kubeflow.org",
            "scope": "namespace-named-like-primary",
            "reconcile": fail,
        }),
    )
    .await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    let before = world.unit("chameleon", "alice").await.unwrap();
    let runs = world.agent().status().borrow().runs;
    world.delete(&before).await;
    world.settle().await;
    let after = world.unit("chameleon", "alice").await.unwrap();
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(after["status"], before["status"]);
    assert_eq!(
        world.agent().status().borrow().runs,
        runs,
        "nothing ran for it"
    );

    // One that the agent itself takes away stays away.
    let echo = json!({"chameleon.reeve.dev/do": json!({"do": "echo"}).to_string()});
    let mend = json!({"metadata": {"annotations": echo}});
    world.edit(&profile_reference("alice"), mend).await;
    world.settle().await;
    assert_eq!(world.unit("chameleon", "alice").await, None);
}

/// Applies a Widget under this plural.
async fn apply_widget(world: &World, plural: &str, object: &Value) {
    let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let (name, namespace) = (
        &object["metadata"]["name"],
        &object["metadata"]["namespace"],
    );
    let api: Api<DynamicObject> =
        Api::namespaced_with(world.admin.clone(), namespace.as_str().unwrap(), &resource);
    let params = PatchParams::apply("test");
    let object = Patch::Apply(object);
    let applied = api.patch(name.as_str().unwrap(), &params, &object).await;
    applied.unwrap();
}

/// A CRD that goes is waited for; what comes back may have other names.
#[tokio::test(start_paused = true)]
async fn a_kind_that_goes_and_comes_back_is_followed() {
    for plural in ["widgets", "gadgets"] {
        let world = World::started().await;
        let honest = [("plugin.wasm", plugin("quotas"))];
        world.install("quotas", &honest, None).await;
        world.apply(&crd("widgets")).await;
        world.tenant("alice", &[]).await;
        world.apply(&widget("alice", "w")).await;
        install(
            &world,
            json!({"primary": "Widget.v1.example.com", "reconcile": {"do": "echo"}}),
        )
        .await;
        let rule = json!({"apiGroups": ["example.com"], "resources": ["gadgets"], "verbs": ["get", "list", "watch"]});
        for (role, subject) in [
            (
                "a",
                json!({"kind": "ServiceAccount", "name": "chameleon", "namespace": reeve_it::NAMESPACE}),
            ),
            (
                "b",
                json!({"kind": "User", "name": reeve_it::AGENT, "apiGroup": "rbac.authorization.k8s.io"}),
            ),
        ] {
            world.role(role, &json!([rule]), &subject).await;
        }
        world.settle().await;
        assert!(world.get(&made("alice", "w")).await.is_some());

        world.delete(&crd("widgets")).await;
        world.wait(Duration::from_secs(20)).await;
        let ready = world.plugin_condition("chameleon", "Ready").await;
        assert_eq!(
            (ready.status.as_str(), ready.reason.as_str()),
            ("False", "KindNotServed"),
            "{ready:?}"
        );
        for text in ["widgets.example.com", "install the CRD again"] {
            assert!(ready.message.contains(text), "`{text}` is not in {ready:?}");
        }
        let quotas = core_reference("ResourceQuota", "alice", "quotas");
        world.delete(&quotas).await;
        world.settle().await;
        assert!(world.get(&quotas).await.is_some(), "the other plugin works");

        world.apply(&crd(plural)).await;
        apply_widget(&world, plural, &widget("alice", "again")).await;
        world.wait(Duration::from_secs(20)).await;
        let ready = world.plugin_condition("chameleon", "Ready").await;
        assert_eq!(ready.status, "True", "{plural}: {ready:?}");
        let loaded = world.plugin_condition("chameleon", "Loaded").await;
        assert_eq!(loaded.status, "True", "{plural}: {loaded:?}");
        assert!(world.get(&made("alice", "again")).await.is_some());
        assert_eq!(world.get(&made("alice", "w")).await, None);
    }
}
