//! The store over the in-process API server: lists, watches, outages, our own
//! writes.

use crate::support::{apply, config_map, config_maps, grant, server, server_with_history};
use reeve_cluster::{
    Answer, Change, Cluster, Delete, Deletion, Snapshot, Store, WatchHandle, WatchScope, WatchSpec,
    WatchState,
};
use reeve_core::waves::Propagation;
use reeve_sim::{Outage, Server, Verb};
use serde_json::json;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{sleep, timeout};

struct Fixture {
    server: Server,
    cluster: Cluster,
    store: Store,
    changes: UnboundedReceiver<Change>,
}

impl Fixture {
    fn new() -> Self {
        Self::on(server())
    }

    fn on(server: Server) -> Self {
        let cluster = Cluster::new(server.client());
        let (store, changes) = Store::new(cluster.clone());
        Self {
            server,
            cluster,
            store,
            changes,
        }
    }

    async fn put(&self, name: &str, app: &str, value: &str) {
        apply(&self.cluster, &config_map(name, app, value)).await;
    }

    async fn delete(&self, name: &str) {
        let resource = config_maps();
        let deleted = self.cluster.delete(Delete {
            resource: &resource,
            namespace: Some("default"),
            name,
            uid: None,
            resource_version: None,
            propagation: Propagation::Background,
            dry_run: false,
            identity: None,
        });
        assert_eq!(deleted.await.unwrap(), Deletion::Gone);
    }

    async fn watch_default(&self) -> WatchHandle {
        let watch = self.store.watch(in_default(""));
        synced(&watch).await;
        watch
    }

    /// Breaks all watches, and returns while they wait before they come back: what
    /// is written now, they bring later.
    async fn hold_watches(&mut self) {
        self.assert_quiet().await;
        self.server.faults().drop_watches();
        sleep(Duration::from_millis(1)).await;
    }

    /// Waits for the next changes of objects, as `name: old -> new`.
    async fn next_changes(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        while texts.len() < count {
            let change = timeout(Duration::from_secs(60), self.changes.recv()).await;
            let change = change.unwrap_or_else(|_| panic!("only {texts:?}"));
            if let Change::Object(change) = change.unwrap() {
                let value = |object: Option<_>| -> String {
                    object.map_or(
                        "none".into(),
                        |object: std::sync::Arc<reeve_cluster::Object>| {
                            object.value()["data"]["key"].as_str().unwrap().to_owned()
                        },
                    )
                };
                texts.push(format!(
                    "{}: {} -> {}",
                    change.reference.name,
                    value(change.old),
                    value(change.new)
                ));
            }
        }
        texts
    }

    /// Waits until nothing more is on its way, and asserts that nothing came.
    async fn assert_quiet(&mut self) {
        sleep(Duration::from_secs(1)).await;
        while let Ok(change) = self.changes.try_recv() {
            assert!(matches!(change, Change::State { .. }), "{change:?}");
        }
    }
}

fn in_default(selector: &str) -> WatchSpec {
    WatchSpec {
        resource: config_maps(),
        scope: WatchScope::Namespace("default".into()),
        selector: selector.parse().unwrap(),
        without_payload: false,
    }
}

async fn synced(watch: &WatchHandle) {
    timeout(Duration::from_secs(60), watch.synced())
        .await
        .unwrap_or_else(|_| panic!("{watch:?}"));
}

async fn until(watch: &WatchHandle, wanted: impl Fn(&WatchState) -> bool) -> WatchState {
    let mut states = watch.states();
    let state = timeout(Duration::from_secs(60), states.wait_for(|s| wanted(s))).await;
    let state = state.unwrap_or_else(|_| panic!("{watch:?}"));
    state.unwrap().clone()
}

fn names(snapshot: &Snapshot, namespace: Option<&str>, selector: &str) -> String {
    let kind = config_maps().kind;
    match snapshot.list(&kind, namespace, &selector.parse().unwrap()) {
        Answer::Found(objects) => {
            let names: Vec<_> = objects.iter().map(|object| object.name()).collect();
            names.join(" ")
        }
        other => format!("{other:?}"),
    }
}

fn value(snapshot: &Snapshot, name: &str) -> String {
    match snapshot.get(&config_maps().kind, Some("default"), name) {
        Answer::Found(object) => object.value()["data"]["key"].as_str().unwrap().to_owned(),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_lists_and_follows() {
    let mut fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    let _watch = fixture.watch_default().await;
    let before = fixture.store.snapshot();
    fixture.put("b", "web", "1").await;
    fixture.put("a", "web", "2").await;
    fixture.delete("b").await;
    assert_eq!(
        fixture.next_changes(4).await,
        ["a: none -> 1", "b: none -> 1", "a: 1 -> 2", "b: 1 -> none"]
    );
    // A snapshot is one moment for good.
    assert_eq!(
        (&*value(&before, "a"), &*value(&before, "b")),
        ("1", "Absent")
    );
    let after = fixture.store.snapshot();
    assert_eq!(
        (&*value(&after, "a"), &*value(&after, "b")),
        ("2", "Absent")
    );
    assert!(after.version() > before.version());
}

#[tokio::test(start_paused = true)]
async fn an_object_is_stored_without_managed_fields_but_with_its_kind() {
    let fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    let _watch = fixture.watch_default().await;
    let Answer::Found(listed) =
        fixture
            .store
            .snapshot()
            .get(&config_maps().kind, Some("default"), "a")
    else {
        panic!("not found");
    };
    let value = listed.value();
    assert_eq!(
        (&value["apiVersion"], &value["kind"]),
        (&json!("v1"), &json!("ConfigMap"))
    );
    assert!(value["metadata"].get("managedFields").is_none());
    assert!(listed.manager_fields("test").is_some());
    assert_eq!(listed.label("app"), Some("web"));
}

#[tokio::test(start_paused = true)]
async fn long_lists_come_in_pages() {
    let fixture = Fixture::new();
    for number in 0..1_100 {
        fixture.put(&format!("n{number:04}"), "web", "1").await;
    }
    fixture.server.reset_requests();
    let _watch = fixture.watch_default().await;
    let listed = names(&fixture.store.snapshot(), Some("default"), "app=web");
    let listed: Vec<_> = listed.split(' ').collect();
    assert_eq!(listed.len(), 1_100);
    assert!(listed.is_sorted());
    assert_eq!(fixture.server.requests().count(Verb::List, "configmaps"), 3);
}

#[tokio::test(start_paused = true)]
async fn equal_specs_share_a_watch_until_the_last_handle_goes() {
    let fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    fixture.server.reset_requests();
    let first = fixture.watch_default().await;
    let second = fixture.watch_default().await;
    assert_eq!(fixture.server.requests().count(Verb::List, "configmaps"), 1);
    drop(first);
    assert_eq!(value(&fixture.store.snapshot(), "a"), "1");
    drop(second.clone());
    assert_eq!(value(&fixture.store.snapshot(), "a"), "1");
    drop(second);
    assert_eq!(value(&fixture.store.snapshot(), "a"), "NotWatched");
    let _third = fixture.watch_default().await;
    assert_eq!(value(&fixture.store.snapshot(), "a"), "1");
}

#[tokio::test(start_paused = true)]
async fn answers_come_only_from_what_covers_the_question() {
    let fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    fixture.put("b", "db", "1").await;
    let object = WatchScope::Object {
        namespace: Some("default".into()),
        name: "b".into(),
    };
    let all = |scope| WatchSpec {
        scope,
        ..in_default("")
    };
    for (spec, a, b, all_names, default_names, web) in [
        (all(WatchScope::All), "1", "1", None, Some("a b"), Some("a")),
        (
            in_default(""),
            "1",
            "1",
            Some("NotWatched"),
            Some("a b"),
            Some("a"),
        ),
        (
            in_default("app=web"),
            "1",
            "NotWatched",
            Some("NotWatched"),
            Some("NotWatched"),
            Some("a"),
        ),
        (
            all(object),
            "NotWatched",
            "1",
            Some("NotWatched"),
            Some("NotWatched"),
            Some("NotWatched"),
        ),
    ] {
        let shown = spec.to_string();
        let watch = fixture.store.watch(spec);
        let early = value(&fixture.store.snapshot(), if a == "1" { "a" } else { "b" });
        let expected = if shown.contains("app=web") {
            "NotWatched"
        } else {
            "NotSynced(Syncing)"
        };
        assert_eq!(early, expected, "{shown}");
        synced(&watch).await;
        let now = fixture.store.snapshot();
        assert_eq!((&*value(&now, "a"), &*value(&now, "b")), (a, b), "{shown}");
        for (namespace, selector, expected) in [
            (None, "", all_names),
            (Some("default"), "", default_names),
            (Some("default"), "app=web", web),
        ] {
            if let Some(expected) = expected {
                assert_eq!(
                    names(&now, namespace, selector),
                    expected,
                    "{shown} {selector}"
                );
            }
        }
    }
}

/// Another of its kind may be there all the same.
#[tokio::test(start_paused = true)]
async fn a_watch_of_one_object_tells_of_no_other() {
    let fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    fixture.put("b", "db", "1").await;
    let only = |name: &str| WatchSpec {
        scope: WatchScope::Object {
            namespace: Some("default".into()),
            name: name.into(),
        },
        ..in_default("")
    };
    let watches = ["b", "c"].map(|name| fixture.store.watch(only(name)));
    for watch in &watches {
        synced(watch).await;
    }
    let now = fixture.store.snapshot();
    let seen = |watch: usize, name| now.get_in(watches[watch].spec(), Some("default"), name);
    assert!(matches!(seen(0, "b"), Answer::Found(_)));
    assert!(matches!(seen(1, "c"), Answer::Absent));
    for (watch, name) in [(0, "a"), (0, "c"), (1, "b")] {
        assert!(matches!(seen(watch, name), Answer::NotWatched), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_selected_no_more_leaves() {
    let mut fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    let watch = fixture.store.watch(in_default("app=web"));
    synced(&watch).await;
    fixture.put("a", "db", "2").await;
    fixture.put("a", "web", "3").await;
    assert_eq!(
        fixture.next_changes(3).await,
        ["a: none -> 1", "a: 1 -> none", "a: none -> 3"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_outage_keeps_the_objects_and_its_end_finds_what_was_missed() {
    for compacted in [false, true] {
        for outage in [Outage::Refused, Outage::Unavailable] {
            let mut fixture = Fixture::new();
            fixture.put("a", "web", "1").await;
            fixture.put("b", "web", "1").await;
            let watch = fixture.watch_default().await;
            fixture.next_changes(2).await;

            fixture.server.faults().set_outage(outage);
            let state = until(&watch, |state| matches!(state, WatchState::Failing { .. })).await;
            assert!(!state.to_string().is_empty());
            assert_eq!(names(&fixture.store.snapshot(), Some("default"), ""), "a b");

            // Over before the next attempt: these happen unseen.
            fixture.server.faults().set_outage(Outage::None);
            fixture.delete("a").await;
            fixture.put("b", "web", "2").await;
            fixture.put("c", "web", "1").await;
            if compacted {
                fixture.server.compact();
            }
            let mut changes = fixture.next_changes(3).await;
            changes.sort();
            assert_eq!(changes, ["a: 1 -> none", "b: 1 -> 2", "c: none -> 1"]);
            synced(&watch).await;
            fixture.assert_quiet().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_watch_goes_on_where_it_was() {
    let mut fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    let watch = fixture.watch_default().await;
    fixture.next_changes(1).await;
    fixture.server.reset_requests();
    fixture.server.faults().drop_watches();
    fixture.put("a", "web", "2").await;
    assert_eq!(fixture.next_changes(1).await, ["a: 1 -> 2"]);
    assert_eq!(watch.state(), WatchState::Synced);
    assert_eq!(fixture.server.requests().count(Verb::List, "configmaps"), 0);
}

/// A connection may be dead although nobody has closed it. Bookmarks come every minute on
/// one that is not.
#[tokio::test(start_paused = true)]
async fn a_watch_that_says_nothing_is_not_waited_for_long() {
    let mut fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    let watch = fixture.watch_default().await;
    fixture.next_changes(1).await;
    sleep(Duration::from_secs(200)).await;
    fixture.server.reset_requests();
    let silent = "silent-watch: resource=configmaps".parse().unwrap();
    fixture.server.set_faults(vec![silent]);
    fixture.put("a", "web", "2").await;
    fixture.put("b", "web", "1").await;
    sleep(Duration::from_secs(80)).await;
    assert_eq!(
        value(&fixture.store.snapshot(), "a"),
        "1",
        "nobody has said so"
    );
    assert_eq!(fixture.server.requests().count(Verb::List, "configmaps"), 0);
    sleep(Duration::from_secs(80)).await;
    let mut changes = fixture.next_changes(2).await;
    changes.sort();
    assert_eq!(changes, ["a: 1 -> 2", "b: none -> 1"]);
    assert_eq!(watch.state(), WatchState::Synced);
    // Over: no more lists than that one.
    fixture.server.set_faults(Vec::new());
    sleep(Duration::from_secs(200)).await;
    fixture.server.reset_requests();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(fixture.server.requests().count(Verb::List, "configmaps"), 0);
}

/// The API server opens a watch at once, or not at all.
#[tokio::test(start_paused = true)]
async fn a_watch_that_does_not_open_says_so() {
    let mut fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    let watch = fixture.watch_default().await;
    fixture.next_changes(1).await;
    let slow = "latency: delay=1h, verb=watch".parse().unwrap();
    fixture.server.set_faults(vec![slow]);
    fixture.server.faults().drop_watches();
    let state = until(&watch, |state| matches!(state, WatchState::Failing { .. })).await;
    let text = "the api server gave no answer within 30 s";
    assert!(state.to_string().contains(text), "{state}");
    fixture.server.set_faults(Vec::new());
    synced(&watch).await;
    fixture.put("a", "web", "2").await;
    assert_eq!(fixture.next_changes(1).await, ["a: 1 -> 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_outlives_compaction() {
    let mut fixture = Fixture::on(server_with_history(4));
    fixture.put("a", "web", "1").await;
    let _watch = fixture.watch_default().await;
    fixture.next_changes(1).await;
    // Two hours, in which the server ends the watch many times.
    for turn in 0..24 {
        sleep(Duration::from_secs(300)).await;
        for value in 0..5 {
            fixture.put("a", "web", &format!("{turn}-{value}")).await;
        }
        fixture.next_changes(1).await;
    }
    sleep(Duration::from_secs(60)).await;
    assert_eq!(value(&fixture.store.snapshot(), "a"), "23-4");
}

#[tokio::test(start_paused = true)]
async fn rights_that_come_and_go_are_noticed() {
    let server = server();
    let admin = Cluster::new(server.client());
    apply(&admin, &config_map("a", "web", "1")).await;
    let (store, _changes) = Store::new(Cluster::new(server.client_as("agent", ["agents"])));
    let watch = store.watch(in_default(""));
    let state = until(&watch, |state| *state != WatchState::Syncing).await;
    let WatchState::Forbidden { message } = state else {
        panic!("{state:?}");
    };
    assert!(
        message.contains(r#"cannot list resource "configmaps""#),
        "{message}"
    );
    assert!(value(&store.snapshot(), "a").starts_with("NotSynced(Forbidden"));

    let rule =
        |verbs: &[&str]| json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs});
    grant(&admin, "read", "agent", rule(&["list", "watch"])).await;
    synced(&watch).await;
    assert_eq!(value(&store.snapshot(), "a"), "1");

    grant(&admin, "read", "agent", rule(&["get"])).await;
    server.faults().drop_watches();
    until(&watch, |state| {
        matches!(state, WatchState::Forbidden { .. })
    })
    .await;
    assert!(value(&store.snapshot(), "a").starts_with("NotSynced(Forbidden"));
}

/// A watch under the names that a kind had before has no part in what the watch
/// under its new names sees, whichever goes first.
#[tokio::test(start_paused = true)]
async fn a_kind_may_come_back_under_other_names() {
    let fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    let renamed = WatchSpec {
        resource: reeve_cluster::Resource {
            plural: "formerly".into(),
            ..config_maps()
        },
        ..in_default("")
    };
    for old_goes_first in [true, false] {
        let old = fixture.store.watch(renamed.clone());
        until(&old, |state| *state == WatchState::NotServed).await;
        let new = fixture.watch_default().await;
        let seen = |spec| fixture.store.snapshot().get_in(spec, Some("default"), "a");
        assert!(matches!(seen(&renamed), Answer::NotWatched));
        assert!(matches!(seen(new.spec()), Answer::Found(_)));
        if old_goes_first {
            drop(old);
            // It tries, and must not say so of the other.
            sleep(Duration::from_secs(60)).await;
            assert_eq!(new.state(), WatchState::Synced);
            assert!(matches!(seen(new.spec()), Answer::Found(_)));
        } else {
            drop(new);
            sleep(Duration::from_secs(60)).await;
            assert_eq!(value(&fixture.store.snapshot(), "a"), "NotWatched");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_may_come_later() {
    let fixture = Fixture::new();
    let widgets = reeve_cluster::Resource {
        kind: reeve_core::GroupVersionKind::new("test.dev", "v1", "Widget"),
        plural: "widgets".into(),
        namespaced: true,
    };
    let watch = fixture.store.watch(WatchSpec::all(widgets.clone()));
    until(&watch, |state| *state == WatchState::NotServed).await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.test.dev"},
        "spec": {
            "group": "test.dev",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let kind =
        reeve_core::GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions = fixture.cluster.resolve(&kind).await.unwrap();
    crate::support::apply_as(&fixture.cluster, &definitions, &definition)
        .await
        .unwrap();
    synced(&watch).await;
    assert_eq!(
        fixture.cluster.resolve(&widgets.kind).await.unwrap(),
        widgets
    );
}

#[tokio::test(start_paused = true)]
async fn our_own_writes_are_seen_at_once_and_told_once() {
    let mut fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    let _watch = fixture.watch_default().await;
    let _selected = fixture.store.watch(in_default("app=db"));
    fixture.next_changes(1).await;
    fixture.hold_watches().await;

    let second = apply(&fixture.cluster, &config_map("a", "web", "2")).await;
    let third = apply(&fixture.cluster, &config_map("a", "web", "3")).await;
    fixture.store.observe(third);
    assert_eq!(value(&fixture.store.snapshot(), "a"), "3");
    // Answers may arrive out of order, and the watch brings both once more.
    fixture.store.observe(second);
    assert_eq!(value(&fixture.store.snapshot(), "a"), "3");
    assert_eq!(fixture.next_changes(1).await, ["a: 1 -> 3"]);
    fixture.assert_quiet().await;
    assert_eq!(
        names(&fixture.store.snapshot(), Some("default"), "app=db"),
        ""
    );
}

#[tokio::test(start_paused = true)]
async fn our_own_deletions_are_not_undone_by_what_comes_late() {
    let mut fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    let _watch = fixture.watch_default().await;
    fixture.next_changes(1).await;
    fixture.hold_watches().await;

    let last = apply(&fixture.cluster, &config_map("a", "web", "2")).await;
    fixture.delete("a").await;
    fixture.store.observe_deleted(&last.reference(), last.uid());
    assert_eq!(value(&fixture.store.snapshot(), "a"), "Absent");
    // The watch still has the change to 2 and the deletion to bring.
    assert_eq!(fixture.next_changes(1).await, ["a: 1 -> none"]);
    fixture.assert_quiet().await;

    // Another object of that name is another object.
    fixture.put("a", "web", "3").await;
    assert_eq!(fixture.next_changes(1).await, ["a: none -> 3"]);
    fixture.store.observe_deleted(&last.reference(), last.uid());
    assert_eq!(value(&fixture.store.snapshot(), "a"), "3");
}

/// A watch may lag behind: who must not act on what was true before asks anew.
#[tokio::test(start_paused = true)]
async fn a_refresh_brings_what_a_watch_has_yet_to_bring() {
    let mut fixture = Fixture::new();
    fixture.put("a", "web", "1").await;
    let watch = fixture.watch_default().await;
    fixture.next_changes(1).await;
    let old = fixture.store.snapshot();

    fixture.hold_watches().await;
    fixture.put("a", "web", "2").await;
    assert_eq!(value(&fixture.store.snapshot(), "a"), "1", "the watch lags");
    let refreshed = fixture.store.refresh();
    let doubted = value(&fixture.store.snapshot(), "a");
    assert!(doubted.starts_with("NotSynced(Syncing"), "{doubted}");
    refreshed.await;
    assert_eq!(watch.state(), WatchState::Synced);
    assert_eq!(value(&fixture.store.snapshot(), "a"), "2");
    assert_eq!(value(&old, "a"), "1", "an earlier version stays as it was");

    // Without a server nothing is answered, for as long as that lasts.
    fixture.server.faults().set_outage(Outage::Refused);
    let refreshed = fixture.store.refresh();
    let waited = timeout(Duration::from_secs(60), refreshed).await;
    assert!(waited.is_err());
    let doubted = value(&fixture.store.snapshot(), "a");
    assert!(doubted.starts_with("NotSynced(Failing"), "{doubted}");
    fixture.server.faults().set_outage(Outage::None);
    synced(&watch).await;
    assert_eq!(value(&fixture.store.snapshot(), "a"), "2");
}

#[tokio::test(start_paused = true)]
async fn what_is_large_need_not_be_kept() {
    let mut fixture = Fixture::new();
    let put = |component: &str| {
        let mut map = config_map("a", "x", "1");
        map["binaryData"] = json!({"plugin.wasm": component.repeat(5_000)});
        let copy = map.to_string();
        map["metadata"]["annotations"] =
            json!({"kubectl.kubernetes.io/last-applied-configuration": copy});
        map
    };
    apply(&fixture.cluster, &put("AAAA")).await;
    let spec = WatchSpec {
        without_payload: true,
        ..in_default("")
    };
    let slim = fixture.store.watch(spec);
    let whole = fixture.watch_default().await;
    synced(&slim).await;
    let kept = |fixture: &Fixture, watch: &WatchHandle| {
        let snapshot = fixture.store.snapshot();
        let found = snapshot.get_in(watch.spec(), Some("default"), "a");
        found.found().unwrap()
    };
    let mark = |fixture: &Fixture| {
        let object = kept(fixture, &slim);
        let value = object.value();
        assert_eq!(value["data"]["key"], "1");
        let read: k8s_openapi::api::core::v1::ConfigMap = serde_json::from_value(value).unwrap();
        let mark = read.binary_data.unwrap()["plugin.wasm"].0.clone();
        assert!(object.json().len() < 2_000 && mark.len() == 24);
        mark
    };
    let first = mark(&fixture);
    // Others see all of it.
    assert!(kept(&fixture, &whole).json().len() > 20_000);
    apply(&fixture.cluster, &put("BBBB")).await;
    fixture.next_changes(4).await;
    let second = mark(&fixture);
    assert_ne!(first, second);
    apply(&fixture.cluster, &put("AAAA")).await;
    fixture.next_changes(2).await;
    assert_eq!(mark(&fixture), first);
}
