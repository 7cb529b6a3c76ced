//! What becomes of objects when their plugin is removed.

use reeve_it::{AGENT, NAMESPACE, config_map_reference, core_reference, plugin_reference};
use reeve_sim::Actors;
use serde_json::{Value, json};

use crate::endings::{FINALIZER, finalizers, let_hold};
use crate::stage::{APPS, Happened, OTHER, Stage, bundle, config, config_map, widget, with};

fn held(name: &str, wave: i64) -> Value {
    let mut widget = widget(name, wave);
    widget["metadata"]["finalizers"] = json!(["example.com/hold"]);
    widget
}

async fn let_go(stage: &Stage, name: &str) {
    let patch = json!({"metadata": {"finalizers": null}});
    stage.world.edit(&widget(name, 0), patch).await;
}

fn claim() -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": APPS},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

async fn remove(stage: &Stage) {
    stage.world.delete(&config_map_reference("courier")).await;
}

/// What the Plugin says.
async fn said(stage: &Stage) -> String {
    let ready = stage.world.plugin_condition("courier", "Ready").await;
    assert_eq!(ready.reason, "ConfigMapAbsent", "{ready:?}");
    ready.message
}

#[tokio::test(start_paused = true)]
async fn objects_stay_unless_something_else_is_said() {
    let stage = Stage::new().await;
    stage.bundle("one", &[config_map("a", 0)]).await;
    stage.pass(10).await;
    remove(&stage).await;
    stage.pass(3600).await;
    assert!(stage.exists(&config_map("a", 0)).await);
    assert!(said(&stage).await.contains("and its objects stay."));
    // It may be said afterwards, too.
    let policy = json!({"spec": {"deletionPolicy": "Delete"}});
    stage.world.edit(&plugin_reference("courier"), policy).await;
    stage.pass(60).await;
    assert!(!stage.exists(&config_map("a", 0)).await);
    assert!(
        stage.exists(&bundle("one")).await,
        "it is nobody's to delete"
    );
}

#[tokio::test(start_paused = true)]
async fn objects_go_in_reverse_when_the_policy_says_so() {
    let mut stage = Stage::with_plugin(json!({"deletionPolicy": "Delete"})).await;
    let stays = with(config_map("stays", 0), &[("reeve.dev/delete", "never")]);
    stage
        .bundle("one", &[held("a", -1), held("b", 0), claim(), stays])
        .await;
    stage.bundle("two", &[config_map("two", 0)]).await;
    stage.pass(20).await;
    remove(&stage).await;
    stage.pass(20).await;
    assert!(stage.exists(&config_map("two", 0)).await, "not at once");
    assert!(said(&stage).await.contains("its objects stay for now"));
    stage.pass(20).await;
    assert!(!stage.exists(&config_map("two", 0)).await);
    assert_eq!(stage.all(Happened::Deleting), ["Widget/b"]);
    assert!(
        said(&stage)
            .await
            .contains("being deleted, as spec.deletionPolicy says; 2 left")
    );
    // A restart finds it again.
    stage.restart().await;
    let_go(&stage, "b").await;
    stage.pass(60).await;
    assert_eq!(stage.all(Happened::Deleting), ["Widget/b", "Widget/a"]);
    let_go(&stage, "a").await;
    stage.pass(10).await;
    assert_eq!(stage.all(Happened::Gone), ["Widget/b", "Widget/a"]);
    let message = said(&stage).await;
    for text in [
        "but for ConfigMap apps/stays, PersistentVolumeClaim apps/data",
        "`reeve.dev/prune: allow`",
    ] {
        assert!(message.contains(text), "{message}");
    }
    let like = json!({"apiVersion": "reeve.dev/v1alpha1", "kind": "JournalEntry",
        "metadata": {"name": "", "namespace": NAMESPACE}});
    let journal = stage.world.list(&like).await;
    assert_eq!(journal.len(), 3, "{journal:?}");
    assert_eq!(
        journal[0]["spec"]["reason"],
        "its plugin was removed, and spec.deletionPolicy says Delete"
    );
    stage
        .annotate(&claim(), "reeve.dev/prune", json!("allow"))
        .await;
    stage.pass(900).await;
    assert!(!stage.exists(&claim()).await);
    assert!(stage.exists(&config_map("stays", 0)).await);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_comes_back_keeps_what_it_has() {
    let stage = Stage::with_plugin(json!({"deletionPolicy": "Delete"})).await;
    stage.bundle("one", &[config_map("a", 0)]).await;
    stage.pass(10).await;
    let before = stage.world.get(&config_map("a", 0)).await;
    for seconds in [0, 29] {
        remove(&stage).await;
        stage.pass(seconds).await;
        stage.deliver(config()).await;
        stage.pass(120).await;
        assert_eq!(stage.world.get(&config_map("a", 0)).await, before);
    }
    // Nor is anything removed in a mode in which nothing is written.
    let policy = json!({"spec": {"mode": "PlanOnly"}});
    stage.world.edit(&plugin_reference("courier"), policy).await;
    remove(&stage).await;
    stage.pass(600).await;
    assert_eq!(stage.world.get(&config_map("a", 0)).await, before);
}

#[tokio::test(start_paused = true)]
async fn primaries_that_waited_for_a_plugin_are_let_go_with_it() {
    let stage = Stage::new().await;
    let rules =
        json!([{"apiGroups": ["example.com"], "resources": ["bundles"], "verbs": ["patch"]}]);
    let account = json!({"kind": "ServiceAccount", "name": "courier", "namespace": NAMESPACE});
    stage.world.role("courier-hold", &rules, &account).await;
    stage.pass(700).await;
    stage
        .bundle("one", &[config_map("a", 0), config_map("b", 1)])
        .await;
    stage.pass(10).await;
    let finalizers = async || {
        let found = stage.world.get(&bundle("one")).await.unwrap();
        found["metadata"]["finalizers"].clone()
    };
    assert_eq!(finalizers().await, json!(["reeve.dev/courier"]));
    remove(&stage).await;
    stage.pass(5).await;
    let warning = "until then do not delete this Plugin, or let them go yourself";
    assert!(said(&stage).await.contains(warning));
    stage.pass(60).await;
    assert_eq!(finalizers().await, Value::Null);
    assert!(stage.exists(&config_map("a", 0)).await);
    assert!(!said(&stage).await.contains(warning));
}

/// Where contributions were made only the manifest's namespaces are in reach.
#[tokio::test(start_paused = true)]
async fn contributions_in_named_namespaces_are_given_up() {
    let stage = Stage::with_plugin(json!({"deletionPolicy": "Delete"})).await;
    let world = &stage.world;
    let mut shared = config_map("shared", 0);
    shared["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("annotations");
    shared["data"] = json!({"theirs": "1"});
    world.apply(&shared).await;
    let mut ours = with(shared.clone(), &[("reeve.dev/apply", "Contribute")]);
    ours["data"] = json!({"ours": "1"});
    let data = async || world.get(&shared).await.unwrap()["data"].clone();
    stage.bundle("one", &[ours, widget("a", 0)]).await;
    stage.pass(20).await;
    assert_eq!(data().await, json!({"theirs": "1", "ours": "1"}));
    // What the agent may see of ConfigMaps is granted in the namespaces of the manifest.
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "courier-agent"}});
    let mut rules = world.get(&role).await.unwrap()["rules"].clone();
    let rules = rules.as_array_mut().unwrap();
    let (narrow, wide): (Vec<Value>, Vec<Value>) = rules
        .drain(..)
        .partition(|rule| rule["resources"] == json!(["configmaps"]));
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    world
        .role("courier-agent", &Value::from(wide), &agent)
        .await;
    for namespace in [APPS, OTHER] {
        let api = "rbac.authorization.k8s.io/v1";
        let metadata = json!({"name": "courier-agent", "namespace": namespace});
        world
            .apply(
                &json!({"apiVersion": api, "kind": "Role", "metadata": metadata, "rules": narrow}),
            )
            .await;
        let to = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "courier-agent"});
        world
            .apply(
                &json!({"apiVersion": api, "kind": "RoleBinding", "metadata": metadata,
                "roleRef": to, "subjects": [agent]}),
            )
            .await;
    }
    remove(&stage).await;
    stage.pass(120).await;
    assert_eq!(data().await, json!({"theirs": "1"}));
    let said = said(&stage).await;
    assert!(said.contains("its objects are deleted"), "{said}");
}

/// Contributions that cannot be given up are no reason for primaries to wait.
#[tokio::test(start_paused = true)]
async fn primaries_do_not_wait_for_contributions() {
    let stage = Stage::with_plugin(json!({"deletionPolicy": "Delete"})).await;
    let world = &stage.world;
    let_hold(&stage).await;
    let mut shared = config_map("shared", 0);
    shared["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("annotations");
    world.apply(&shared).await;
    let mut ours = with(shared.clone(), &[("reeve.dev/apply", "Contribute")]);
    ours["data"] = json!({"ours": "1"});
    stage
        .bundle("one", &[ours, widget("a", 0), widget("b", 1)])
        .await;
    stage.pass(20).await;
    assert_eq!(finalizers(&stage).await, json!([FINALIZER]));
    let fault = "internal-error: verb=patch, resource=configmaps, user=system:serviceaccount:*";
    world.server.set_faults(vec![fault.parse().unwrap()]);
    remove(&stage).await;
    stage.pass(120).await;
    assert_eq!(finalizers(&stage).await, Value::Null);
    let text = said(&stage).await;
    assert!(text.contains("that does not go on: "), "{text}");
    world.server.set_faults(Vec::new());
    stage.pass(60).await;
    assert_eq!(
        world.get(&shared).await.unwrap()["data"]["ours"],
        Value::Null
    );
    let text = said(&stage).await;
    assert!(!text.contains("that does not go on: "), "{text}");
}

/// Who takes the account away from a plugin wants nothing more done as it.
#[tokio::test(start_paused = true)]
async fn nothing_is_removed_as_an_account_that_does_not_agree() {
    let stage = Stage::with_plugin(json!({"deletionPolicy": "Delete"})).await;
    stage.bundle("one", &[config_map("a", 0)]).await;
    stage.pass(10).await;
    let account = core_reference("ServiceAccount", NAMESPACE, "courier");
    for (plugin, text) in [
        (Value::Null, "does not agree to be used"),
        (json!("another"), "is for plugin another"),
    ] {
        stage.annotate(&account, "reeve.dev/plugin", plugin).await;
        remove(&stage).await;
        stage.pass(300).await;
        assert!(stage.exists(&config_map("a", 0)).await, "{text}");
        let said = said(&stage).await;
        for part in [text, "`reeve release courier` lets primaries go"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        stage.deliver(config()).await;
        stage.pass(10).await;
    }
    remove(&stage).await;
    stage
        .annotate(&account, "reeve.dev/plugin", json!("courier"))
        .await;
    stage.pass(120).await;
    assert!(!stage.exists(&config_map("a", 0)).await);
}

const FLUX: &str = include_str!("../../../../plugins/packs/scenarios/crds/flux.yaml");

fn release(name: &str) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": APPS},
        "spec": {"interval": "30m", "chartRef": {"kind": "OCIRepository", "name": "chart"}},
    })
}

/// A stage on which Flux is played and the plugin may make releases, and a chart for them.
async fn stage_with_flux() -> Stage {
    let stage = Stage::with_plugin(json!({"deletionPolicy": "Delete"})).await;
    let world = &stage.world;
    let definitions: Vec<Value> = serde_saphyr::from_multiple(FLUX).unwrap();
    for definition in &definitions {
        world.apply(definition).await;
    }
    let kinds = [
        "HelmRelease.helm.toolkit.fluxcd.io",
        "OCIRepository.source.toolkit.fluxcd.io",
    ];
    world.server.set_actors(Some(Actors {
        kinds: kinds.iter().map(|kind| kind.parse().unwrap()).collect(),
        ..Actors::default()
    }));
    let chart = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository",
        "metadata": {"name": "chart", "namespace": APPS},
        "spec": {"interval": "5m", "url": "oci://registry.example.com/charts/chart"},
    });
    world.apply(&chart).await;
    let account = json!({"kind": "ServiceAccount", "name": "courier", "namespace": NAMESPACE});
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    let read = ["get", "list", "watch"];
    for (role, subject, verbs) in [
        ("courier-flux-agent", agent, &read[..]),
        (
            "courier-flux",
            account,
            &["get", "list", "watch", "create", "patch", "delete"],
        ),
    ] {
        let rules = json!([{"apiGroups": ["helm.toolkit.fluxcd.io"],
            "resources": ["helmreleases"], "verbs": verbs}]);
        world.role(role, &rules, &subject).await;
    }
    let mut config = config();
    config["writes"]["HelmRelease.v2.helm.toolkit.fluxcd.io"] = json!([APPS]);
    stage.deliver(config).await;
    stage.pass(5).await;
    world.approve("courier").await;
    stage.pass(60).await;
    stage
}

/// How often Flux has uninstalled a release.
async fn uninstalled(stage: &Stage, name: &str) -> usize {
    let events = stage.world.list(&core_reference("Event", APPS, "")).await;
    let events = events.iter().filter(|event| {
        event["involvedObject"]["name"] == name && event["reason"] == "UninstallSucceeded"
    });
    events.count()
}

/// Flux leaves behind what it has installed of a release that is suspended when it is deleted.
#[tokio::test(start_paused = true)]
async fn suspended_releases_are_resumed_before_they_go() {
    let stage = stage_with_flux().await;
    stage
        .bundle("one", &[release("runs"), release("suspended")])
        .await;
    stage.world.apply(&release("theirs")).await;
    stage.pass(600).await;
    for name in ["runs", "suspended", "theirs"] {
        let found = stage.world.get(&release(name)).await.unwrap();
        let conditions = found["status"]["conditions"].to_string();
        assert!(
            conditions.contains("InstallSucceeded"),
            "{name}: {conditions}"
        );
    }
    for name in ["suspended", "theirs"] {
        let suspend = json!({"spec": {"suspend": true}});
        stage.world.edit(&release(name), suspend).await;
    }
    stage.pass(60).await;
    let suspended = async |name: &str| {
        let found = stage.world.get(&release(name)).await.unwrap();
        found["spec"]["suspend"].clone()
    };
    assert_eq!(suspended("suspended").await, true, "that is left to others");

    remove(&stage).await;
    stage.pass(20).await;
    assert_eq!(suspended("suspended").await, true, "not before it goes");
    stage.pass(120).await;
    for name in ["runs", "suspended"] {
        assert_eq!(stage.world.get(&release(name)).await, None, "{name}");
        assert_eq!(uninstalled(&stage, name).await, 1, "{name}");
    }
    assert!(said(&stage).await.contains("its objects are deleted"));
    // One that the plugin has not made stays; who deletes it leaves behind what is installed.
    assert_eq!(suspended("theirs").await, true);
    stage.world.delete(&release("theirs")).await;
    stage.pass(60).await;
    assert_eq!(stage.world.get(&release("theirs")).await, None);
    assert_eq!(uninstalled(&stage, "theirs").await, 0);
}

/// What cannot be resumed is not deleted, for that would leave behind what Flux has installed.
#[tokio::test(start_paused = true)]
async fn a_release_that_cannot_be_resumed_stays() {
    let stage = stage_with_flux().await;
    stage.bundle("one", &[release("suspended")]).await;
    stage.pass(600).await;
    let suspend = json!({"spec": {"suspend": true}});
    stage.world.edit(&release("suspended"), suspend).await;
    let fault = "internal-error: verb=patch, resource=helmreleases, user=system:serviceaccount:*";
    stage.world.server.set_faults(vec![fault.parse().unwrap()]);
    remove(&stage).await;
    stage.pass(300).await;
    let found = stage.world.get(&release("suspended")).await.unwrap();
    assert_eq!(found["metadata"]["deletionTimestamp"], Value::Null);
    let text = said(&stage).await;
    assert!(text.contains("that does not go on: "), "{text}");
    stage.world.server.set_faults(Vec::new());
    stage.pass(300).await;
    assert_eq!(stage.world.get(&release("suspended")).await, None);
    assert_eq!(uninstalled(&stage, "suspended").await, 1);
}
