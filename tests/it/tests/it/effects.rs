//! Outside effects: made once, looked at, made again, taken away.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::any;
use parking_lot::Mutex;
use reeve_it::{NAMESPACE, World, core_reference, guest, plugin_reference, profile_reference};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// What nobody but the service may ever see.
const TOKEN: &str = "canary-7c9e6679-7425-40de";

/// A service whose resources exist or not.
#[derive(Clone, Default)]
pub(crate) struct Service {
    pub(crate) there: Arc<Mutex<BTreeSet<String>>>,
    asked: Arc<Mutex<Vec<String>>>,
    pub(crate) broken: Arc<Mutex<bool>>,
    /// Whether it does what it is asked and never says so.
    silent: Arc<Mutex<bool>>,
    /// Told when it was silent.
    heard: Arc<Notify>,
}

impl Service {
    async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new()
            .route("/v1/{name}", any(answer))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://127.0.0.1:{port}/v1/")
    }

    /// Does what it is asked from now on, and never says so.
    pub(crate) fn be_silent(&self) {
        *self.silent.lock() = true;
    }

    /// What it was asked since this was last called.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock())
    }
}

async fn answer(
    State(service): State<Service>,
    method: Method,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> (StatusCode, &'static str) {
    service.asked.lock().push(format!("{method} {name}"));
    let authorized = headers
        .get("authorization")
        .is_some_and(|value| *value == *format!("Bearer {TOKEN}"));
    if !authorized {
        return (StatusCode::UNAUTHORIZED, "who are you?");
    }
    if *service.broken.lock() {
        return (StatusCode::INTERNAL_SERVER_ERROR, "broken");
    }
    if *service.silent.lock() {
        service.there.lock().insert(name);
        service.heard.notify_one();
        return std::future::pending().await;
    }
    let mut there = service.there.lock();
    match method.as_str() {
        "PUT" => {
            there.insert(name);
            (StatusCode::CREATED, "made")
        }
        "DELETE" => {
            there.remove(&name);
            (StatusCode::OK, "gone")
        }
        _ if there.contains(&name) => (StatusCode::OK, "there"),
        _ => (StatusCode::NOT_FOUND, "absent"),
    }
}

pub(crate) fn capabilities(url: &str) -> Value {
    json!({
        "http": [{"url": url, "key": "service"}],
        "keys": [{"name": "service", "type": "Bearer", "secret": {"name": "token"}}],
    })
}

async fn grant(world: &World, capabilities: Value) {
    let mut plugin = plugin_reference("envoy");
    plugin["spec"] = json!({"capabilities": capabilities});
    world.apply(&plugin).await;
}

/// Lets the plugin have Secrets generated.
pub(crate) async fn allow_secrets(world: &World) {
    let rule =
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "get", "patch"]});
    let account = json!({"kind": "ServiceAccount", "name": "envoy", "namespace": NAMESPACE});
    world.role("envoy-secrets", &json!([rule]), &account).await;
}

/// A world with the service, the key to it, and one tenant.
pub(crate) async fn world(config: Value) -> (World, Service, String) {
    world_under(config, None).await
}

/// As [`world`], granted and in a mode from the beginning.
pub(crate) async fn world_under(config: Value, mode: Option<&str>) -> (World, Service, String) {
    let service = Service::default();
    let url = service.serve().await;
    let world = World::started().await;
    let mut token = core_reference("Secret", NAMESPACE, "token");
    token["stringData"] = json!({"token": TOKEN});
    world.apply(&token).await;
    let rules = json!([{
        "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["token"], "verbs": ["get"],
    }]);
    let agent = json!({
        "kind": "User", "name": reeve_it::AGENT, "apiGroup": "rbac.authorization.k8s.io",
    });
    world.role("agent-token", &rules, &agent).await;
    if let Some(mode) = mode {
        let mut plugin = plugin_reference("envoy");
        plugin["spec"] = json!({"mode": mode, "capabilities": capabilities(&url)});
        world.apply(&plugin).await;
    }
    let mut config = config;
    config["service"] = json!(url);
    let component = vec![("plugin.wasm", guest("envoy"))];
    world.install("envoy", &component, Some(config)).await;
    world.tenant("alice", &[]).await;
    (world, service, url)
}

pub(crate) async fn fact(world: &World) -> Value {
    let report = world
        .get(&core_reference("ConfigMap", "alice", "report"))
        .await;
    report.unwrap_or_default()["data"]["service"].clone()
}

pub(crate) async fn action(world: &World) -> Value {
    let unit = world.unit("envoy", "alice").await.unwrap_or_default();
    unit["status"]["actions"][0].clone()
}

#[tokio::test(start_paused = true)]
async fn an_effect_is_made_once_and_remembered() {
    let (mut world, service, url) = world(json!({})).await;
    world.settle().await;
    let refused = world.unit_condition("envoy", "alice", "Ready").await;
    assert_eq!(refused.reason, "ActionFailed");
    assert!(
        refused
            .message
            .contains("is not granted; grant it in Plugin spec.capabilities.http"),
        "{refused:?}"
    );
    assert!(service.asked().is_empty(), "nothing was sent");
    let granted = world.plugin_condition("envoy", "Granted").await;
    assert_eq!(granted.status, "False", "{granted:?}");
    let lacking = format!("action service: to send requests to {url}; `reeve plugin grant envoy`");
    assert!(granted.message.contains(&lacking), "{granted:?}");

    grant(&world, capabilities(&url)).await;
    world.wait(Duration::from_secs(60)).await;
    let granted = world.plugin_condition("envoy", "Granted").await;
    assert_eq!(granted.status, "True", "{granted:?}");
    assert_eq!(service.asked(), ["PUT alice"]);
    assert_eq!(fact(&world).await, r#"{"answer":"made"}"#);
    let done = action(&world).await;
    assert_eq!(
        (&done["state"], &done["failures"]),
        (&json!("InPlace"), &json!(0))
    );
    let ready = world.unit_condition("envoy", "alice", "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");

    // Neither time nor a change of something else nor a restart makes it again.
    world
        .edit(
            &profile_reference("alice"),
            json!({"metadata": {"labels": {"a": "b"}}}),
        )
        .await;
    world.settle().await;
    world.stop().await;
    world.start();
    world.settle().await;
    assert_eq!(service.asked(), [""; 0]);
    assert_eq!(fact(&world).await, r#"{"answer":"made"}"#);
    assert_eq!(action(&world).await, done);
}

#[tokio::test(start_paused = true)]
async fn another_request_makes_it_again() {
    let (world, service, url) = world(json!({})).await;
    grant(&world, capabilities(&url)).await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(service.asked(), ["PUT alice"]);
    world
        .deliver(
            "envoy",
            &[("plugin.wasm", guest("envoy"))],
            Some(json!({"service": url, "revision": 2})),
        )
        .await;
    world.settle().await;
    assert_eq!(service.asked(), ["PUT alice"]);
}

#[tokio::test(start_paused = true)]
async fn failures_are_tried_again_with_growing_delays() {
    let (world, service, url) = world(json!({})).await;
    *service.broken.lock() = true;
    grant(&world, capabilities(&url)).await;
    world.wait(Duration::from_secs(120)).await;
    let ready = world.unit_condition("envoy", "alice", "Ready").await;
    assert_eq!(ready.reason, "ActionFailed");
    let expected = "action service (service), apply: the service answers 500";
    assert!(ready.message.contains(expected), "{ready:?}");
    assert_eq!(action(&world).await["state"], "Failing");
    let tries = service.asked().len();
    assert!((4..=12).contains(&tries), "{tries} in two minutes");
    *service.broken.lock() = false;
    world.wait(Duration::from_secs(301)).await;
    assert_eq!(fact(&world).await, r#"{"answer":"made"}"#);
    assert_eq!(action(&world).await["failures"], 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_is_made_again() {
    let (world, service, url) = world(json!({})).await;
    grant(&world, capabilities(&url)).await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(service.asked(), ["PUT alice"]);
    world.wait(Duration::from_secs(601)).await;
    assert_eq!(
        service.asked(),
        ["GET alice"],
        "looked at every ten minutes"
    );
    service.there.lock().clear();
    world.wait(Duration::from_secs(601)).await;
    assert_eq!(service.asked(), ["GET alice", "PUT alice"]);
    // Or when a person asks for a look, though no more often than a plugin may.
    for annotation in ["reeve.dev/reconcile-at", "reeve.dev/sync-at"] {
        world.wait(Duration::from_secs(10)).await;
        service.there.lock().clear();
        let look = |text: &str| json!({"metadata": {"annotations": {annotation: text}}});
        world.edit(&plugin_reference("envoy"), look("look")).await;
        world.settle().await;
        assert_eq!(
            service.asked(),
            ["GET alice", "PUT alice"],
            "at {annotation}"
        );
        world.edit(&plugin_reference("envoy"), look("again")).await;
        world.settle().await;
        assert_eq!(service.asked(), [""; 0], "too soon, at {annotation}");
    }
    world.wait(Duration::from_secs(599)).await;
    assert_eq!(service.asked(), [""; 0], "looked at again");
    let events = world.events("alice").await;
    let gone = events.iter().find(|event| event["reason"] == "EffectGone");
    assert!(gone.is_some(), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_no_more_is_taken_away_or_kept() {
    for retire in [true, false] {
        let (mut world, service, url) = world(json!({"retire": retire})).await;
        grant(&world, capabilities(&url)).await;
        world.wait(Duration::from_secs(60)).await;
        assert_eq!(service.asked(), ["PUT alice"]);
        // The service is away when the primary goes, and the agent ends meanwhile.
        *service.broken.lock() = true;
        world.delete(&profile_reference("alice")).await;
        world.settle().await;
        if retire {
            assert_eq!(action(&world).await["state"], "Retiring");
            // That is trouble of the plugin's, though nobody's unit any more.
            let found = world.agent().status().borrow().plugins[0].units.clone();
            assert_eq!((found.total, found.failing), (1, 1), "{found:?}");
            world.stop().await;
            world.start();
            world.settle().await;
            let found = world.agent().status().borrow().plugins[0].units.clone();
            assert_eq!((found.total, found.failing), (1, 1), "{found:?}");
            *service.broken.lock() = false;
            // A person need not wait for it.
            let request = json!({"metadata": {"annotations": {
                "reeve.dev/retry-at": "1 Profile.kubeflow.org//alice",
            }}});
            world.edit(&plugin_reference("envoy"), request).await;
            world.settle().await;
            assert!(service.there.lock().is_empty());
            let found = world.agent().status().borrow().plugins[0].units.clone();
            assert_eq!(found.total, 0, "{found:?}");
        } else {
            assert_eq!(service.asked(), [""; 0]);
            assert_eq!(service.there.lock().len(), 1);
        }
        assert_eq!(world.unit("envoy", "alice").await, None, "retire: {retire}");
    }
}

/// Nobody who is still there is left without a word: what is kept is told, and what is to
/// be taken away and cannot be stays known.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_dropped_while_the_primary_lives() {
    let component = || [("plugin.wasm", guest("envoy"))];
    for retire in [false, true] {
        let (world, service, url) = world(json!({"retire": retire})).await;
        grant(&world, capabilities(&url)).await;
        world.wait(Duration::from_secs(60)).await;
        assert_eq!(service.asked(), ["PUT alice"]);
        let without = json!({"retire": retire});
        world.deliver("envoy", &component(), Some(without)).await;
        world.wait(Duration::from_secs(60)).await;
        if retire {
            // What the next version could never take away is told before it takes over.
            let held = world.plugin_condition("envoy", "Loaded").await;
            assert_eq!(held.reason, "UpgradeHeld", "{held:?}");
            let expected = "this version declares no such action";
            assert!(held.message.contains(expected), "{held:?}");
            let (_, token) = held.message.rsplit_once('=').unwrap();
            let approval = json!({"reeve.dev/approve-upgrade": token});
            let approval = json!({"metadata": {"annotations": approval}});
            world.edit(&plugin_reference("envoy"), approval).await;
            world.wait(Duration::from_secs(60)).await;
        }
        let kept = |event: &Value| event["reason"] == "EffectKept";
        let events = world.events("alice").await;
        let kept = events.iter().find(|event| kept(event));
        assert_eq!(kept.is_some(), !retire, "{events:?}");
        if let Some(kept) = kept {
            let message = kept["message"].as_str().unwrap();
            let expected = "the outside effect service (service) is asked for no more; it stays";
            assert!(message.starts_with(expected), "{message}");
            assert_eq!(action(&world).await, Value::Null);
        } else {
            // This version does not say how.
            assert_eq!(action(&world).await["state"], "Retiring");
            let ready = world.unit_condition("envoy", "alice", "Ready").await;
            let expected = "declares no such action any more";
            assert!(ready.message.contains(expected), "{ready:?}");
        }
        assert_eq!(service.asked(), [""; 0]);
        assert_eq!(service.there.lock().len(), 1);
        // Asked for again, what is known is in place, and what is not is made once more.
        let with = json!({"retire": retire, "service": url});
        world.deliver("envoy", &component(), Some(with)).await;
        world.settle().await;
        world.approve("envoy").await;
        world.wait(Duration::from_secs(400)).await;
        match retire {
            // It is looked for, since that was some time ago.
            true => assert_eq!(service.asked(), ["GET alice"]),
            false => assert_eq!(service.asked(), ["PUT alice"]),
        }
        assert_eq!(action(&world).await["state"], "InPlace");
    }
}

/// What was taken away by hand is forgotten on a person's word, and nothing else is.
#[tokio::test(start_paused = true)]
async fn what_a_person_took_away_is_forgotten() {
    let (mut world, service, url) = world(json!({"retire": true})).await;
    grant(&world, capabilities(&url)).await;
    world.wait(Duration::from_secs(60)).await;
    let forget = async |world: &World| {
        let written = action(world).await;
        let text = |field: &str| written[field].as_str();
        let token = reeve_agent::forget_token(text("request").unwrap(), text("appliedAt"));
        let name = world.unit("envoy", "alice").await.unwrap()["metadata"]["name"].clone();
        let unit = json!({
            "apiVersion": "reeve.dev/v1alpha1", "kind": "Unit",
            "metadata": {"namespace": NAMESPACE, "name": name},
        });
        let annotations = json!({"reeve.dev/forget-effects": format!("0123, {token}")});
        let patch = json!({"metadata": {"annotations": annotations}});
        world.edit(&unit, patch).await;
        world.settle().await;
    };
    forget(&world).await;
    assert_eq!(action(&world).await["state"], "InPlace", "it is asked for");
    *service.broken.lock() = true;
    world.delete(&profile_reference("alice")).await;
    world.settle().await;
    // The word that was given stands, and was for this.
    assert_eq!(world.unit("envoy", "alice").await, None);

    *service.broken.lock() = false;
    world.tenant("bob", &[]).await;
    world.settle().await;
    *service.broken.lock() = true;
    world.delete(&profile_reference("bob")).await;
    world.settle().await;
    world.stop().await;
    world.start();
    world.settle().await;
    let found = world.agent().status().borrow().plugins[0].units.clone();
    assert_eq!((found.total, found.failing), (1, 1), "{found:?}");
}

/// Of what was begun when the agent died, nobody else knows. The next one takes it away,
/// though it never saw the primary; or keeps it, where that was wanted.
#[tokio::test(start_paused = true)]
async fn what_was_begun_when_the_agent_ended_is_not_lost() {
    for retire in [true, false] {
        let (mut world, service, url) = world(json!({"retire": retire})).await;
        service.be_silent();
        grant(&world, capabilities(&url)).await;
        let heard = service.heard.notified();
        tokio::time::timeout(Duration::from_secs(600), heard)
            .await
            .unwrap();
        assert_eq!(service.asked(), ["PUT alice"]);
        world.stop().await;
        let begun = action(&world).await;
        // It may have failed before it was granted.
        let states = [json!("Pending"), json!("Failing")];
        assert!(states.contains(&begun["state"]), "{begun}");
        assert_eq!(begun["fingerprint"], Value::Null);

        *service.silent.lock() = false;
        world.delete(&profile_reference("alice")).await;
        world.start();
        world.wait(Duration::from_secs(60)).await;
        match retire {
            true => assert_eq!(service.asked(), ["DELETE alice"]),
            false => assert_eq!(service.asked(), [""; 0]),
        }
        assert_eq!(service.there.lock().is_empty(), retire);
        assert_eq!(world.unit("envoy", "alice").await, None, "retire: {retire}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_down_is_not_begun() {
    let (world, service, url) = world(json!({"database": true})).await;
    let fault = "internal-error: verb=patch, resource=units";
    world.server.set_faults(vec![fault.parse().unwrap()]);
    allow_secrets(&world).await;
    grant(&world, capabilities(&url)).await;
    // It tries again and again, and does not settle.
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(service.asked(), [""; 0]);
    let login = core_reference("Secret", "alice", "login");
    assert_eq!(world.get(&login).await, None, "not even its Secret");
    world.server.set_faults(Vec::new());
    world.wait(Duration::from_secs(300)).await;
    assert_eq!(service.asked(), ["PUT alice"]);
    assert_eq!(fact(&world).await, r#"{"answer":"made"}"#);
    assert!(world.get(&login).await.is_some());
}

/// A primary that is no longer selected may have lost its label by mistake: while it is
/// held what that gives up, what is outside stays, too.
#[tokio::test(start_paused = true)]
async fn what_is_held_holds_the_effects() {
    let config = json!({"retire": true, "selector": "team=a", "contribute": true});
    let (world, service, url) = world(config).await;
    let mut plugin = plugin_reference("envoy");
    plugin["spec"] = json!({"capabilities": capabilities(&url), "limits": {"deletionsPerHour": 0}});
    world.apply(&plugin).await;
    let mut report = core_reference("ConfigMap", "alice", "report");
    report["data"] = json!({"theirs": "x"});
    world.apply(&report).await;
    let team = |team: Value| json!({"metadata": {"labels": {"team": team}}});
    let alice = profile_reference("alice");
    world.edit(&alice, team(json!("a"))).await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(service.asked(), ["PUT alice"]);
    let has = async || world.get(&report).await.unwrap()["data"]["envoy"].clone();
    assert_eq!(has().await, "was here");

    world.edit(&alice, team(Value::Null)).await;
    world.wait(Duration::from_secs(3600)).await;
    assert_eq!(has().await, "was here");
    assert_eq!(service.asked(), [""; 0]);
    let ready = world.unit_condition("envoy", "alice", "Ready").await;
    assert_eq!(ready.reason, "DeletionHeld", "{ready:?}");
    assert_eq!(action(&world).await["state"], "InPlace");

    let token = ready.message.rsplit(' ').next().unwrap().trim_matches('`');
    let approve = json!({"metadata": {"annotations": {"reeve.dev/approve-deletion": token}}});
    world.edit(&plugin_reference("envoy"), approve).await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(has().await, Value::Null);
    assert_eq!(service.asked(), ["DELETE alice"]);
    assert_eq!(world.unit("envoy", "alice").await, None);
}

/// Everything that anybody can read, but the Secret itself.
async fn everything(world: &World) -> String {
    let mut all = String::new();
    for (api, kind) in [
        ("reeve.dev/v1alpha1", "Plugin"),
        ("reeve.dev/v1alpha1", "Unit"),
        ("reeve.dev/v1alpha1", "JournalEntry"),
        ("v1", "ConfigMap"),
        ("v1", "Event"),
    ] {
        let like = json!({"apiVersion": api, "kind": kind, "metadata": {"name": ""}});
        for mut object in world.list(&like).await {
            // The component itself.
            object["binaryData"] = json!(null);
            all.push_str(&object.to_string());
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn credentials_are_seen_nowhere() {
    let (world, service, url) = world(json!({"retire": true})).await;
    grant(&world, capabilities(&url)).await;
    world.wait(Duration::from_secs(60)).await;
    // What somebody else has set is in the journal when it is overwritten.
    let report = core_reference("ConfigMap", "alice", "report");
    let theirs = json!({"data": {"service": "theirs"}});
    world.edit(&report, theirs).await;
    world.settle().await;
    assert_eq!(fact(&world).await, r#"{"answer":"made"}"#);
    *service.broken.lock() = true;
    service.there.lock().clear();
    world.wait(Duration::from_secs(1300)).await;
    world.delete(&profile_reference("alice")).await;
    world.settle().await;
    // A key whose Secret is no key says so, and not what it is.
    let mut token = core_reference("Secret", NAMESPACE, "token");
    token["stringData"] = json!({"token": format!("{TOKEN}\nx")});
    world.apply(&token).await;
    world.wait(Duration::from_secs(400)).await;
    let all = everything(&world).await;
    let entry = json!({
        "apiVersion": "reeve.dev/v1alpha1", "kind": "JournalEntry", "metadata": {"name": ""},
    });
    assert_ne!(
        world.list(&entry).await.len(),
        0,
        "the journal was looked at"
    );
    assert!(
        all.contains("has characters that no header can hold"),
        "it was looked for"
    );
    for part in [TOKEN, &TOKEN[..12]] {
        assert!(!all.contains(part));
    }
}

/// A plugin that wants nothing while it cannot read a document may not mean it.
#[tokio::test(start_paused = true)]
async fn nothing_is_taken_away_for_want_of_a_document() {
    let (world, service, url) =
        world(json!({"configMap": "notes", "needsNotes": true, "retire": true})).await;
    let shared = reeve_test_support::samples::namespace("shared");
    world.apply(&shared).await;
    let mut notes = core_reference("ConfigMap", "shared", "notes");
    notes["data"] = json!({"notes": "first"});
    world.apply(&notes).await;
    grant(&world, capabilities(&url)).await;
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(service.asked(), ["PUT alice"]);
    let report = core_reference("ConfigMap", "alice", "report");
    assert!(world.get(&report).await.is_some());
    world.delete(&notes).await;
    world.wait(Duration::from_secs(60)).await;
    let ready = world.unit_condition("envoy", "alice", "Ready").await;
    assert_eq!(ready.reason, "DeletionHeld", "{ready:?}");
    for part in [
        "ConfigMap shared/notes does not exist",
        "ConfigMap alice/report",
    ] {
        assert!(ready.message.contains(part), "{part}: {ready:?}");
    }
    assert!(world.get(&report).await.is_some());
    world.wait(Duration::from_secs(700)).await;
    assert_eq!(service.asked(), ["GET alice"], "it is looked after");
    world.apply(&notes).await;
    world.wait(Duration::from_secs(60)).await;
    let ready = world.unit_condition("envoy", "alice", "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");
    assert!(world.get(&report).await.is_some());
}
