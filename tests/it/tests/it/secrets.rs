//! Secrets: read and written with exactly the generated grant, with which nobody may list
//! or watch them.

use reeve_core::grant::{self, Grantee, Served, Subject};
use reeve_core::manifest::{Manifest, RawManifest, RawPrimary, RawRead, Scope, WriteRule};
use reeve_core::{GroupVersionKind, manifest};
use reeve_it::{
    AGENT, NAMESPACE, World, core_reference, guest, plugin_reference, profile_reference,
};
use reeve_sim::Verb;
use serde_json::{Value, json};
use std::time::Duration;

const PLUGIN: &str = "told";

/// Longer than it takes to notice what somebody did to a Secret.
const NOTICED: Duration = Duration::from_secs(310);

/// What the plugin declares, as its manifest and as its configuration say it.
struct Declared {
    reads: Vec<(Scope, Value, Vec<&'static str>)>,
    writes: Vec<&'static str>,
    /// Where, as for the reads.
    scope: (Scope, Value),
}

impl Declared {
    fn manifest(&self) -> Manifest {
        let kind = |kind: &str| GroupVersionKind::new("", "v1", kind);
        let reads = self.reads.iter().map(|(scope, _, names)| RawRead {
            kind: manifest::secret_kind().clone(),
            scope: scope.clone(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
            selector: String::new(),
        });
        let writes = self.writes.iter().map(|&write| WriteRule {
            kind: kind(write),
            scope: self.scope.0.clone(),
        });
        let raw = RawManifest {
            primary: Some(RawPrimary {
                kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
                selector: String::new(),
                projection: vec![],
            }),
            reads: reads.collect(),
            writes: writes.collect(),
            sources: vec![],
            actions: vec![],
        };
        Manifest::try_from(raw).unwrap()
    }

    fn config(&self) -> Value {
        let reads = self
            .reads
            .iter()
            .map(|(_, scope, names)| json!({"kind": "Secret.v1", "scope": scope, "names": names}));
        let writes = self.writes.iter().map(|write| format!("{write}.v1"));
        json!({
            "primary": "Profile.v1.kubeflow.org", "scope": self.scope.1,
            "reads": reads.collect::<Vec<_>>(), "writes": writes.collect::<Vec<_>>(),
            "reconcile": {"do": "nothing", "meant": true},
        })
    }

    /// Grants just what is declared, and installs the plugin.
    async fn install(&self, world: &World) {
        let served = |kind: &GroupVersionKind| Served {
            plural: format!("{}s", kind.kind.to_lowercase()),
            namespaced: kind.kind != "Profile",
        };
        let grantee = Grantee {
            plugin: PLUGIN,
            namespace: NAMESPACE,
            service_account: PLUGIN,
            agent: Subject::User(AGENT),
        };
        for object in grant::objects(&grantee, &self.manifest(), served) {
            world.apply(&object).await;
        }
        let component = [("plugin.wasm", guest("chameleon"))];
        world.deliver(PLUGIN, &component, Some(self.config())).await;
    }
}

fn writes_secrets() -> Declared {
    Declared {
        reads: vec![],
        writes: vec!["Secret"],
        scope: (Scope::Cluster, json!("cluster")),
    }
}

async fn world(declared: &Declared) -> World {
    let mut world = World::new().await;
    for namespace in ["shared", "alice"] {
        let namespace = reeve_test_support::samples::namespace(namespace);
        world.apply(&namespace).await;
    }
    declared.install(&world).await;
    world.start();
    world.tenant("alice", &[]).await;
    world.settle().await;
    let ready = world.plugin_condition(PLUGIN, "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");
    world
}

/// Has the plugin do this for a tenant, from the next run on.
async fn tell(world: &World, deed: Value) {
    let patch = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": deed.to_string()}}});
    world.edit(&profile_reference("alice"), patch).await;
}

fn returns(object: &Value) -> Value {
    json!({"do": "raw", "text": object.to_string()})
}

fn nothing() -> Value {
    json!({"do": "nothing", "meant": true})
}

/// A Secret with one value, which is no base64 of anything.
fn secret(namespace: &str, name: &str, value: &str) -> Value {
    let mut secret = core_reference("Secret", namespace, name);
    secret["data"] = json!({"value": value});
    secret
}

async fn value(world: &World, secret: &Value) -> Value {
    let found = world.get(secret).await.unwrap_or_default();
    found["data"]["value"].clone()
}

/// The names that the unit remembers, and whether it says anything else.
async fn remembered(world: &World) -> Option<(Vec<String>, bool)> {
    let unit = world.unit(PLUGIN, "alice").await?;
    let secrets = unit["status"]["secrets"].as_array();
    let names = secrets.into_iter().flatten().map(|secret| {
        let text = |field: &str| secret[field].as_str().unwrap().to_owned();
        format!("{}/{}", text("namespace"), text("name"))
    });
    let says = unit["status"]["conditions"].as_array();
    let says = says.is_some_and(|conditions| !conditions.is_empty());
    Some((names.collect(), says))
}

/// That nobody has listed or watched Secrets since requests were counted, but by name.
fn check_nobody_lists(world: &World) {
    let requests = world.server.requests();
    for verb in [Verb::List, Verb::Watch] {
        assert_eq!(requests.count(verb, "secrets"), 0, "{requests:?}");
    }
}

/// Whether a user may do this with all Secrets.
async fn may(world: &World, user: &str, groups: &[&str], verb: &str) -> bool {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "metadata": {"name": ""},
        "spec": {"user": user, "groups": groups,
                 "resourceAttributes": {"verb": verb, "resource": "secrets"}},
    });
    let api = world.api(&review);
    let review: kube::api::DynamicObject = serde_json::from_value(review).unwrap();
    let params = kube::api::PostParams::default();
    let answer = api.create(&params, &review).await.unwrap();
    answer.data["status"]["allowed"] == json!(true)
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_made_mended_and_deleted_by_its_name() {
    let world = world(&writes_secrets()).await;
    world.server.reset_requests();
    let first = secret("alice", "login", "Zmlyc3Q=");
    tell(&world, returns(&first)).await;
    world.settle().await;
    assert_eq!(value(&world, &first).await, "Zmlyc3Q=");
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.to_owned())
            .collect::<Vec<_>>()
    };
    let one = Some((names(&["alice/login"]), false));
    assert_eq!(remembered(&world).await, one);

    // What is changed or deleted by others is put back once it is noticed.
    let theirs = json!({"data": {"value": "dGhlaXJz"}});
    world.edit(&first, theirs).await;
    world.wait(NOTICED).await;
    assert_eq!(value(&world, &first).await, "Zmlyc3Q=");
    world.delete(&first).await;
    world.wait(NOTICED).await;
    assert_eq!(value(&world, &first).await, "Zmlyc3Q=");

    // Who asks for a look has one taken, also through the primary.
    let look = |annotation: &str| json!({"metadata": {"annotations": {annotation: "look"}}});
    for (asked, annotation) in [
        (plugin_reference(PLUGIN), "reeve.dev/reconcile-at"),
        (plugin_reference(PLUGIN), "reeve.dev/sync-at"),
        (profile_reference("alice"), "reeve.dev/reconcile-at"),
        (profile_reference("alice"), "reeve.dev/retry-at"),
    ] {
        let theirs = json!({"data": {"value": "dGhlaXJz"}});
        world.edit(&first, theirs).await;
        world.settle().await;
        assert_eq!(value(&world, &first).await, "dGhlaXJz", "seen at once");
        world.edit(&asked, look(annotation)).await;
        world.settle().await;
        let mended = value(&world, &first).await;
        assert_eq!(mended, "Zmlyc3Q=", "{annotation} of {asked}");
    }

    // What is wanted otherwise is at once.
    let changed = secret("alice", "login", "c2Vjb25k");
    tell(&world, returns(&changed)).await;
    world.settle().await;
    assert_eq!(value(&world, &changed).await, "c2Vjb25k");
    let other = secret("shared", "other", "b3RoZXI=");
    tell(&world, returns(&other)).await;
    world.settle().await;
    assert_eq!(world.get(&changed).await, None);
    assert_eq!(value(&world, &other).await, "b3RoZXI=");
    world.wait(Duration::from_secs(1)).await;
    let other_alone = Some((names(&["shared/other"]), false));
    assert_eq!(remembered(&world).await, other_alone);
    tell(&world, nothing()).await;
    world.settle().await;
    assert_eq!(world.get(&other).await, None);
    world.wait(Duration::from_secs(1)).await;
    assert_eq!(remembered(&world).await, None);
    check_nobody_lists(&world);
    let account = format!("system:serviceaccount:{NAMESPACE}:{PLUGIN}");
    for verb in ["list", "watch"] {
        assert!(!may(&world, AGENT, &[], verb).await, "the agent may {verb}");
        assert!(!may(&world, &account, &[], verb).await, "it may {verb}");
    }
    assert!(!may(&world, AGENT, &[], "get").await);
    assert!(may(&world, &account, &[], "get").await);
}

/// What the policy leaves to others is theirs while a Secret is looked at, too.
#[tokio::test(start_paused = true)]
async fn a_look_leaves_others_what_is_theirs() {
    let world = world(&writes_secrets()).await;
    let made = secret("alice", "login", "Zmlyc3Q=");
    tell(&world, returns(&made)).await;
    world.settle().await;
    let plugin = plugin_reference(PLUGIN);
    let ignore = json!([{"kind": "Secret", "managedFieldsManagers": ["issuer"]}]);
    world
        .edit(&plugin, json!({"spec": {"ignore": ignore}}))
        .await;
    world.settle().await;
    let theirs = secret("alice", "login", "dGhlaXJz");
    world.apply_as("issuer", &theirs).await;
    world.wait(NOTICED).await;
    assert_eq!(value(&world, &made).await, "dGhlaXJz");
    for look in ["1", "2"] {
        let annotations = json!({"reeve.dev/reconcile-at": look});
        let look = json!({"metadata": {"annotations": annotations}});
        world.edit(&plugin, look).await;
        world.settle().await;
        assert_eq!(value(&world, &made).await, "dGhlaXJz");
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_with_secrets_writes_nothing() {
    let mut world = world(&writes_secrets()).await;
    let made = secret("shared", "login", "Zmlyc3Q=");
    tell(&world, returns(&made)).await;
    world.settle().await;
    let before = world.get(&made).await;
    assert!(before.is_some());
    for _ in 0..2 {
        world.wait(Duration::from_secs(1)).await;
        world.stop().await;
        world.writes();
        world.start();
        world.settle().await;
        world.wait(NOTICED).await;
        assert_eq!(world.server.requests().writes(), 0);
        check_nobody_lists(&world);
    }
    assert_eq!(world.get(&made).await, before);
}

/// Nobody may list Secrets, so that what is not wanted any more would be lost, were it not
/// remembered.
#[tokio::test(start_paused = true)]
async fn what_ends_while_nobody_looks_goes_all_the_same() {
    for ends in [false, true] {
        let mut world = world(&writes_secrets()).await;
        // No owner can be in another namespace, so garbage collection takes none of it.
        let made = secret("shared", "login", "Zmlyc3Q=");
        tell(&world, returns(&made)).await;
        world.settle().await;
        assert!(world.get(&made).await.is_some());
        world.stop().await;
        if ends {
            let free = json!({"metadata": {"finalizers": null}});
            world.edit(&profile_reference("alice"), free).await;
            world.delete(&profile_reference("alice")).await;
        } else {
            tell(&world, nothing()).await;
        }
        world.start();
        world.settle().await;
        assert_eq!(world.get(&made).await, None, "ends: {ends}");
        world.wait(Duration::from_secs(1)).await;
        assert_eq!(remembered(&world).await, None, "ends: {ends}");
        check_nobody_lists(&world);
    }
}

/// A name that cannot be written down is of no Secret that is made.
#[tokio::test(start_paused = true)]
async fn nothing_is_made_that_is_not_remembered() {
    let mut world = world(&writes_secrets()).await;
    for object in grant::agent_base(NAMESPACE, Subject::User(AGENT)) {
        let mut object = object;
        let rules = object.get_mut("rules").and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten() {
            if rule["resources"] == json!(["units"]) {
                rule["verbs"] = json!(["get", "list", "watch"]);
            }
        }
        world.apply(&object).await;
    }
    let made = secret("shared", "login", "Zmlyc3Q=");
    tell(&world, returns(&made)).await;
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(world.get(&made).await, None);
    }
    world.stop().await;
    for object in grant::agent_base(NAMESPACE, Subject::User(AGENT)) {
        world.apply(&object).await;
    }
    world.start();
    world.settle().await;
    assert!(world.get(&made).await.is_some());
}

/// A Secret that somebody else made is not taken over, nor is one of another unit.
#[tokio::test(start_paused = true)]
async fn what_others_made_stays_theirs() {
    let world = world(&writes_secrets()).await;
    let theirs = secret("shared", "login", "dGhlaXJz");
    world.apply(&theirs).await;
    let wanted = secret("shared", "login", "Zmlyc3Q=");
    tell(&world, returns(&wanted)).await;
    world.settle().await;
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert_eq!(ready.reason, "Conflict", "{ready:?}");
    assert_eq!(value(&world, &theirs).await, "dGhlaXJz");
    // Once it is gone, the name is free; the plugin tries again by itself.
    world.delete(&theirs).await;
    world.wait(NOTICED).await;
    assert_eq!(value(&world, &wanted).await, "Zmlyc3Q=");
    tell(&world, nothing()).await;
    world.settle().await;
    assert_eq!(world.get(&wanted).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_removed_plugin_takes_its_secrets_along() {
    let world = world(&writes_secrets()).await;
    let made = secret("shared", "login", "Zmlyc3Q=");
    tell(&world, returns(&made)).await;
    world.settle().await;
    let policy = json!({"spec": {"deletionPolicy": "Delete"}});
    world.edit(&plugin_reference(PLUGIN), policy).await;
    world.settle().await;
    world
        .delete(&core_reference("ConfigMap", NAMESPACE, PLUGIN))
        .await;
    world.wait(Duration::from_secs(20)).await;
    assert!(world.get(&made).await.is_some());
    assert!(remembered(&world).await.is_some());
    world.wait(Duration::from_secs(60)).await;
    assert_eq!(world.get(&made).await, None);
    assert_eq!(remembered(&world).await, None);
}

/// A Secret of a known name in a namespace that follows from the primary is watched by
/// that name, with rights on no other.
#[tokio::test(start_paused = true)]
async fn a_named_secret_is_read_wherever_the_primary_is() {
    let (home, text) = (
        Scope::NamespaceNamedLikePrimary,
        json!("namespace-named-like-primary"),
    );
    let declared = Declared {
        reads: vec![(home.clone(), text.clone(), vec!["token"])],
        writes: vec!["ConfigMap"],
        scope: (home, text),
    };
    let world = world(&declared).await;
    let get =
        |name: &str| json!({"do": "get", "kind": "Secret.v1", "namespace": "alice", "name": name});
    world.apply(&secret("alice", "token", "b25l")).await;
    world.apply(&secret("alice", "other", "b25l")).await;
    world.apply(&secret("shared", "token", "b25l")).await;
    tell(&world, get("token")).await;
    world.settle().await;
    let answer = core_reference("ConfigMap", "alice", "chameleon-alice");
    let said = world.get(&answer).await.unwrap()["data"].to_string();
    assert!(said.contains("b25l"), "{said}");
    // It is an input: what changes it runs the unit.
    world.apply(&secret("alice", "token", "dHdv")).await;
    world.settle().await;
    let said = world.get(&answer).await.unwrap()["data"].to_string();
    assert!(said.contains("dHdv"), "{said}");
    tell(&world, get("other")).await;
    world.settle().await;
    let ready = world.unit_condition(PLUGIN, "alice", "Ready").await;
    assert!(ready.message.contains("undeclared: "), "{ready:?}");
    for verb in ["get", "list", "watch"] {
        assert!(!may(&world, AGENT, &[], verb).await, "the agent may {verb}");
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_without_names_are_refused() {
    for (field, config) in [
        ("reads[0]", json!({"reads": ["Secret.v1"]})),
        (
            "reads[0]",
            json!({"reads": [{"kind": "Secret.v1", "scope": ["shared"], "selector": "a=b"}]}),
        ),
        ("role.controller.kind", json!({"primary": "Secret.v1"})),
    ] {
        let world = World::started().await;
        let component = [("plugin.wasm", guest("chameleon"))];
        world.install(PLUGIN, &component, Some(config)).await;
        world.settle().await;
        let loaded = world.plugin_condition(PLUGIN, "Loaded").await;
        assert_eq!(loaded.reason, "ManifestInvalid", "{loaded:?}");
        let text = format!("{field}: Secrets are shown one by one");
        assert!(loaded.message.contains(&text), "{loaded:?}");
        check_nobody_lists(&world);
    }
}
