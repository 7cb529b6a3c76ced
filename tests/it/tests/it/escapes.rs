//! Ways out of what a plugin was given, each closed by the agent itself: the
//! account has more rights than the manifest, so that RBAC does not refuse. (That
//! RBAC and the admission policy refuse without the agent is shown against a real
//! API server, with the chart.)

use crate::logged::Log;
use reeve_core::grant::{ACCOUNT_ANNOTATION, Subject, agent_base};
use reeve_it::{NAMESPACE, World, config_map_reference, core_reference, guest, plugin_reference};
use serde_json::{Value, json};

fn component() -> Vec<(&'static str, Vec<u8>)> {
    vec![("plugin.wasm", guest("chameleon"))]
}

/// A plugin that may write everywhere and makes an object in the agent's namespace.
#[tokio::test(start_paused = true)]
async fn the_agents_namespace_is_no_place_for_objects() {
    let world = World::started().await;
    world.tenant("alice", &[]).await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "cluster",
        "reconcile": {"do": "foreign-namespace", "namespace": NAMESPACE},
    });
    // As this name, its own label would make a plugin of what it writes.
    world.install("true", &component(), Some(config)).await;
    world.settle().await;
    let made = config_map_reference("chameleon-alice");
    assert_eq!(world.get(&made).await, None);
    let ready = world.unit_condition("true", "alice", "Ready").await;
    assert_eq!(ready.reason, "OutcomeRefused", "{ready:?}");
    assert!(ready.message.contains("is the agent's own"), "{ready:?}");
}

#[tokio::test(start_paused = true)]
async fn the_agents_namespace_cannot_be_declared() {
    let world = World::started().await;
    let config = json!({"scope": [NAMESPACE]});
    world.install("chameleon", &component(), Some(config)).await;
    world.settle().await;
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.reason, "ManifestInvalid", "{ready:?}");
    assert!(ready.message.contains("is the agent's own"), "{ready:?}");
}

/// Even an account that agrees is not used when it is the agent's.
#[tokio::test(start_paused = true)]
async fn the_agents_account_is_nobodys() {
    let user = format!("system:serviceaccount:{NAMESPACE}:reeve");
    let mut world = World::new().await;
    for object in agent_base(NAMESPACE, Subject::ServiceAccount("reeve")) {
        world.apply(&object).await;
    }
    world
        .apply(&json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {
                "name": "reeve", "namespace": NAMESPACE,
                "annotations": {ACCOUNT_ANNOTATION: "chameleon"},
            },
        }))
        .await;
    world.start_as(&user);
    let mut policy = plugin_reference("chameleon");
    policy["spec"] = json!({"serviceAccountName": "reeve"});
    world.apply(&policy).await;
    let config = json!({"primary": "Profile.v1.kubeflow.org", "scope": "cluster"});
    world.deliver("chameleon", &component(), Some(config)).await;
    world.settle().await;
    let granted = world.plugin_condition("chameleon", "Granted").await;
    assert_eq!(granted.reason, "ServiceAccountUnusable", "{granted:?}");
    assert!(
        granted.message.contains("is the agent's own"),
        "{granted:?}"
    );
}

/// The name becomes a part of that of a user, in which nothing else may stand.
#[tokio::test(start_paused = true)]
async fn what_is_no_account_of_the_agents_namespace_is_nobodys() {
    let world = World::started().await;
    world.deliver("chameleon", &component(), None).await;
    for name in [
        "system:serviceaccount:kube-system:default",
        "kube-system:default",
        "kube-system/default",
        "../default",
        "system:masters",
        "Default",
        "",
    ] {
        let mut policy = plugin_reference("chameleon");
        policy["spec"] = json!({"serviceAccountName": name});
        world.apply(&policy).await;
        world.settle().await;
        let ready = world.plugin_condition("chameleon", "Ready").await;
        assert_eq!(ready.reason, "PolicyInvalid", "{name}: {ready:?}");
        let words = format!("spec.serviceAccountName: `{name}` is no name of a ServiceAccount");
        assert!(ready.message.contains(&words), "{ready:?}");
    }
}

/// A primary that names the namespace of others, in its own name, leads nowhere
/// but there; what it says elsewhere is not a place.
#[tokio::test(start_paused = true)]
async fn a_primary_cannot_send_its_plugin_to_another_namespace() {
    let world = World::started().await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
    });
    world.install("chameleon", &component(), Some(config)).await;
    for name in ["alice", "victim"] {
        world
            .apply(&reeve_test_support::samples::namespace(name))
            .await;
    }
    let deed = json!({"do": "foreign-namespace", "namespace": "victim"}).to_string();
    let mut profile: Value = reeve_test_support::samples::profile("alice");
    profile["metadata"]["annotations"] = json!({
        "chameleon.reeve.dev/do": deed,
        "reeve.dev/primary": "Profile.v1.kubeflow.org/victim",
    });
    world.apply(&profile).await;
    world.settle().await;
    let like = core_reference("ConfigMap", "victim", "");
    let found = world.list(&like).await;
    let ours = |object: &&Value| object["metadata"]["labels"]["reeve.dev/plugin"].is_string();
    assert_eq!(found.iter().find(ours), None);
    let ready = world.unit_condition("chameleon", "alice", "Ready").await;
    assert_eq!(ready.reason, "OutcomeRefused", "{ready:?}");
}

/// Whoever may make a primary may call it like a namespace that is somebody else's.
#[tokio::test(start_paused = true)]
async fn no_primary_lends_its_plugin_the_namespaces_of_others() {
    let world = World::started().await;
    let home = "namespace-named-like-primary";
    let of = |scope: &str, reads: Value| {
        let deed = json!({"do": "nothing", "meant": true});
        json!({
            "primary": "Profile.v1.kubeflow.org", "scope": scope,
            "reads": reads, "reconcile": deed,
        })
    };
    let reader = of("cluster", json!([{"kind": "ConfigMap.v1", "scope": home}]));
    let config = of(home, json!([]));
    world.install("writer", &component(), Some(config)).await;
    world.install("reader", &component(), Some(reader)).await;
    let free = of("cluster", json!(["ConfigMap.v1"]));
    world.install("free", &component(), Some(free)).await;
    world
        .apply(&reeve_test_support::samples::namespace("kube-system"))
        .await;
    for (name, whose) in [
        (NAMESPACE, "the agent's own"),
        ("kube-system", "Kubernetes' own"),
    ] {
        world
            .apply(&reeve_test_support::samples::profile(name))
            .await;
        world.settle().await;
        for plugin in ["writer", "reader"] {
            let ready = world.unit_condition(plugin, name, "Ready").await;
            assert_eq!(ready.reason, "NamespaceReserved", "{plugin}: {ready:?}");
            for part in [&format!("Profile {name}: "), whose] {
                assert!(ready.message.contains(part), "{plugin}: {ready:?}");
            }
        }
        // Who declares all namespaces needs no primary for that.
        let unit = world.unit("free", name).await;
        assert_eq!(unit, None);
    }
    // An ordinary one is served, and one of those goes without a trace.
    world.tenant("alice", &[]).await;
    world
        .delete(&reeve_it::profile_reference("kube-system"))
        .await;
    world.settle().await;
    for plugin in ["writer", "reader"] {
        for name in ["alice", "kube-system"] {
            assert_eq!(world.unit(plugin, name).await, None, "{plugin} of {name}");
        }
    }
}

/// What a plugin declares in the next test: ConfigMaps where its primary is, one
/// Secret by name, and LimitRanges that carry a label.
fn narrow() -> Value {
    let home = "namespace-named-like-primary";
    json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": home,
        "reads": [
            {"kind": "ConfigMap.v1", "scope": home},
            {"kind": "Secret.v1", "scope": ["shared"], "names": ["open"]},
            {"kind": "LimitRange.v1", "scope": "cluster", "selector": "public=yes"},
        ],
        "reconcile": {"do": "nothing", "meant": true},
    })
}

/// What it tries, and what it is told: the reason and some words of the message.
fn attempts() -> Vec<(Value, &'static str, &'static str)> {
    let raw = |object: Value| json!({"do": "raw", "text": object.to_string()});
    let made = |kind: &str, namespace: &str, name: &str| core_reference(kind, namespace, name);
    let home = |metadata: Value| {
        let mut object = made("ConfigMap", "HOME", "x");
        for (key, value) in metadata.as_object().into_iter().flatten() {
            object["metadata"][key] = value.clone();
        }
        raw(object)
    };
    let rbac = |kind: &str, metadata: Value| {
        raw(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata,
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{"kind": "Group", "name": "system:authenticated",
                          "apiGroup": "rbac.authorization.k8s.io"}],
        }))
    };
    let absent = |kind: &str, namespace: &str, name: &str| json!({"do": "absent", "kind": kind, "namespace": namespace, "name": name});
    let get = |kind: &str, namespace: &str, name: &str| json!({"do": "get", "kind": kind, "namespace": namespace, "name": name});
    let list = |how: &str, kind: &str, namespace: Value, selector: &str| json!({"do": how, "kind": kind, "namespace": namespace, "selector": selector});
    let (refused, told) = ("OutcomeRefused", "Terminal");
    vec![
        // Another namespace, in several spellings.
        (
            raw(made("ConfigMap", "victim", "x")),
            refused,
            "outside the declared scope",
        ),
        (
            raw(made("ConfigMap", "kube-system", "x")),
            refused,
            "outside the declared scope",
        ),
        (
            raw(made("ConfigMap", "HOME/../victim", "x")),
            refused,
            "is not the name of a namespace",
        ),
        (
            home(json!({"name": "../../victim/configmaps/kept"})),
            refused,
            "cannot be part of a URL",
        ),
        (
            home(json!({"namespace": null})),
            refused,
            "the kind lives in namespaces",
        ),
        // The agent's own.
        (
            raw(made("ConfigMap", NAMESPACE, "other")),
            refused,
            "outside the declared scope",
        ),
        (
            raw(plugin_reference("other")),
            refused,
            "declares no write of Plugin",
        ),
        // Kinds that are not declared, of namespaces and of the cluster.
        (
            raw(made("Secret", "HOME", "x")),
            refused,
            "declares no write of Secret",
        ),
        (
            raw(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})),
            refused,
            "declares no write of Namespace",
        ),
        (
            rbac("RoleBinding", json!({"name": "x", "namespace": "HOME"})),
            refused,
            "declares no write of RoleBinding",
        ),
        (
            rbac("ClusterRoleBinding", json!({"name": "x"})),
            refused,
            "declares no write of ClusterRoleBinding",
        ),
        // What steers the agent, and the garbage collector.
        (
            home(json!({"labels": {"reeve.dev/plugin": "other"}})),
            refused,
            "is set by the host",
        ),
        (
            home(json!({"labels": {"reeve.dev/plugin-part-of": "other"}})),
            refused,
            "is set by the host",
        ),
        (
            home(json!({"annotations": {"reeve.dev/primary": "Profile.kubeflow.org//victim"}})),
            refused,
            "is set by the host",
        ),
        (
            home(
                json!({"annotations": {"reeve.dev/generated-for": "Profile.kubeflow.org//a b c"}}),
            ),
            refused,
            "is set by the host",
        ),
        (
            home(json!({"annotations": {"reeve.dev/generated-by": "other"}})),
            refused,
            "is set by the host",
        ),
        (
            home(json!({"annotations": {"reeve.dev/suspend": "true"}})),
            refused,
            "is for people to set",
        ),
        (
            home(json!({"finalizers": ["reeve.dev/forever"]})),
            refused,
            "is set by the host",
        ),
        (
            home(
                json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace",
                                          "name": "victim", "uid": "u"}]}),
            ),
            refused,
            "metadata.ownerReferences: set by the host",
        ),
        (
            home(json!({"managedFields": [{"manager": "reeve/other"}]})),
            refused,
            "is decided by the API server",
        ),
        (
            home(json!({"uid": "u"})),
            refused,
            "is decided by the API server",
        ),
        // What others have is not said to be absent.
        (
            absent("ConfigMap.v1", "victim", "kept"),
            refused,
            "outside the declared scope",
        ),
        (
            absent("Secret.v1", "shared", "open"),
            refused,
            "declares no write of Secret",
        ),
        // Reads beyond what is declared: kinds, namespaces, names, selectors.
        (get("Secret.v1", "victim", "kept"), told, "undeclared: "),
        (get("Secret.v1", "shared", "closed"), told, "undeclared: "),
        (
            list("list", "Secret.v1", json!("shared"), ""),
            told,
            "undeclared: ",
        ),
        (
            list("list-keys", "Secret.v1", Value::Null, ""),
            told,
            "undeclared: ",
        ),
        (get("Service.v1", "HOME", "kept"), told, "undeclared: "),
        (get("ConfigMap.v1", "victim", "kept"), told, "undeclared: "),
        (
            list("list", "ConfigMap.v1", json!("victim"), ""),
            told,
            "undeclared: ",
        ),
        (
            list("list", "ConfigMap.v1", Value::Null, ""),
            told,
            "undeclared: ",
        ),
        (
            list("list", "ConfigMap.v1", Value::Null, "tenant=victim"),
            told,
            "undeclared: ",
        ),
        (
            list(
                "list-keys",
                "ConfigMap.v1",
                Value::Null,
                "metadata.name=kept",
            ),
            told,
            "undeclared: ",
        ),
        (
            get("LimitRange.v1", "victim", "kept"),
            told,
            "declared with a selector",
        ),
        (
            list("list", "LimitRange.v1", Value::Null, ""),
            told,
            "undeclared: ",
        ),
        (
            list("list", "LimitRange.v1", json!("victim"), "public!=yes"),
            told,
            "undeclared: ",
        ),
        (
            list("list-keys", "LimitRange.v1", Value::Null, "tenant=victim"),
            told,
            "undeclared: ",
        ),
    ]
}

/// The account, and the agent, may do everything: only the manifest is in the way.
/// Every attempt is refused in its own words, and nothing of others has changed or
/// was seen.
#[tokio::test(start_paused = true)]
async fn with_every_right_the_manifest_still_holds() {
    let world = World::started().await;
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let rbac = "rbac.authorization.k8s.io";
    let account = json!({"kind": "ServiceAccount", "name": "chameleon", "namespace": NAMESPACE});
    let agent = json!({"kind": "User", "name": reeve_it::AGENT, "apiGroup": rbac});
    world
        .role("everything-account", &everything, &account)
        .await;
    world.role("everything-agent", &everything, &agent).await;
    for namespace in ["victim", "shared"] {
        let namespace = reeve_test_support::samples::namespace(namespace);
        world.apply(&namespace).await;
    }
    let mut kept = Vec::new();
    for (kind, namespace, name) in [
        ("ConfigMap", "victim", "kept"),
        ("Secret", "victim", "kept"),
        ("LimitRange", "victim", "kept"),
        ("Secret", "shared", "open"),
        ("Secret", "shared", "closed"),
    ] {
        let mut object = core_reference(kind, namespace, name);
        object["metadata"]["labels"] = json!({"tenant": "victim"});
        world.apply(&object).await;
        kept.push(world.get(&object).await.unwrap());
    }
    world
        .install("chameleon", &component(), Some(narrow()))
        .await;
    world.settle().await;
    let ready = world.plugin_condition("chameleon", "Ready").await;
    assert_eq!(ready.status, "True", "{ready:?}");

    let log = Log::kept();
    let attempts = attempts();
    let name = |number: usize| format!("attempt-{number}");
    for (number, (deed, ..)) in attempts.iter().enumerate() {
        let home = name(number);
        world
            .apply(&reeve_test_support::samples::namespace(&home))
            .await;
        let mut profile = reeve_test_support::samples::profile(&home);
        let deed = deed.to_string().replace("HOME", &home);
        profile["metadata"]["annotations"] = json!({"chameleon.reeve.dev/do": deed});
        world.apply(&profile).await;
    }
    world.settle().await;
    for (number, (deed, reason, text)) in attempts.iter().enumerate() {
        let ready = world
            .unit_condition("chameleon", &name(number), "Ready")
            .await;
        assert_eq!(ready.reason, *reason, "{deed}: {ready:?}");
        assert!(ready.message.contains(text), "{deed}: {ready:?}");
        let (plugin, primary) = ("plugin=chameleon ", format!("{} ", name(number)));
        let reason = format!("reason={reason} ");
        let logged = log.has(&[plugin, &primary, &reason, text]);
        assert!(logged, "{deed} is not in the log");
        let like = core_reference("ConfigMap", &name(number), "");
        assert_eq!(world.list(&like).await, Vec::<Value>::new(), "{deed}");
    }
    for object in kept {
        assert_eq!(world.get(&object).await.as_ref(), Some(&object));
    }
    for (kind, namespace) in [("ConfigMap", "victim"), ("ConfigMap", "kube-system")] {
        let found = world.list(&core_reference(kind, namespace, "")).await;
        let ours = |object: &&Value| object["metadata"]["labels"]["reeve.dev/plugin"].is_string();
        assert_eq!(found.iter().find(ours), None);
    }
    let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}});
    assert_eq!(world.get(&made).await, None);
    assert_eq!(world.get(&plugin_reference("other")).await, None);
    // What is declared is shown: the refusals above are no accident.
    for (tenant, deed) in [
        (
            "named",
            json!({"do": "get", "kind": "Secret.v1", "namespace": "shared", "name": "open"}),
        ),
        (
            "labelled",
            json!({"do": "list", "kind": "LimitRange.v1", "selector": "public=yes"}),
        ),
        (
            "home",
            json!({"do": "list-keys", "kind": "ConfigMap.v1", "namespace": "home"}),
        ),
    ] {
        world
            .apply(&reeve_test_support::samples::namespace(tenant))
            .await;
        let mut profile = reeve_test_support::samples::profile(tenant);
        profile["metadata"]["annotations"] = json!({"chameleon.reeve.dev/do": deed.to_string()});
        world.apply(&profile).await;
        world.settle().await;
        let made = core_reference("ConfigMap", tenant, &format!("chameleon-{tenant}"));
        assert!(world.get(&made).await.is_some(), "{deed}");
    }
}
