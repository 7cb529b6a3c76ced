//! As whom things are done, and what happens when that is not granted.

use reeve_core::grant::ACCOUNT_ANNOTATION;
use reeve_it::{AGENT, NAMESPACE, World, core_reference, plugin, profile_reference};
use reeve_sim::Verb;
use serde_json::{Value, json};
use std::time::Duration;

fn component() -> Vec<(&'static str, Vec<u8>)> {
    vec![("plugin.wasm", plugin("quotas"))]
}

fn quota() -> Value {
    core_reference("ResourceQuota", "alice", "quotas")
}

async fn annotate_account(world: &World, annotations: Value) {
    world
        .apply(&json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "quotas", "namespace": NAMESPACE, "annotations": annotations},
        }))
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_account_that_is_absent_or_for_another_is_not_used() {
    let world = World::started().await;
    world.tenant("alice", &[]).await;
    world.deliver("quotas", &component(), None).await;
    world.settle().await;
    let check = async |text: &str| {
        for kind in ["Ready", "Granted"] {
            let found = world.plugin_condition("quotas", kind).await;
            assert_eq!(
                (found.status.as_str(), found.reason.as_str()),
                ("False", "ServiceAccountUnusable"),
                "{found:?}"
            );
            assert!(found.message.contains(text), "`{text}` is not in {found:?}");
        }
    };
    check("reeve-system/quotas does not exist").await;
    annotate_account(&world, json!({})).await;
    world.wait(Duration::from_secs(11)).await;
    check("annotate it reeve.dev/plugin: quotas").await;
    annotate_account(&world, json!({ACCOUNT_ANNOTATION: "other"})).await;
    world.wait(Duration::from_secs(11)).await;
    check("is for plugin other").await;
    world.allow("quotas").await;
    world.wait(Duration::from_secs(21)).await;
    assert!(world.get(&quota()).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_missing_read_names_the_rule() {
    let world = World::started().await;
    annotate_account(&world, json!({ACCOUNT_ANNOTATION: "quotas"})).await;
    world.deliver("quotas", &component(), None).await;
    world.settle().await;
    let granted = world.plugin_condition("quotas", "Granted").await;
    assert_eq!(
        (granted.status.as_str(), granted.reason.as_str()),
        ("False", "Forbidden")
    );
    for text in [
        "system:serviceaccount:reeve-system:quotas",
        "get, list, watch profiles.kubeflow.org cluster-wide",
        "create, delete, patch resourcequotas",
    ] {
        assert!(
            granted.message.contains(text),
            "`{text}` is not in {granted:?}"
        );
    }
}

/// Rights in the tenant's namespace alone are enough there, and only there.
#[tokio::test(start_paused = true)]
async fn a_grant_in_one_namespace_works_in_that_one() {
    let world = World::started().await;
    annotate_account(&world, json!({ACCOUNT_ANNOTATION: "quotas"})).await;
    let account = json!({"kind": "ServiceAccount", "name": "quotas", "namespace": NAMESPACE});
    let read = json!(["get", "list", "watch"]);
    let profiles = json!({"apiGroups": ["kubeflow.org"], "resources": ["profiles"], "verbs": read});
    world
        .role("quotas-read", &json!([profiles]), &account)
        .await;
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    let watch = json!({"apiGroups": [""], "resources": ["resourcequotas"], "verbs": read});
    let impersonate = json!({"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"], "resourceNames": ["quotas"]});
    world
        .role(
            "quotas-agent",
            &json!([profiles, watch, impersonate]),
            &agent,
        )
        .await;
    for tenant in ["alice", "bob"] {
        world.tenant(tenant, &[]).await;
    }
    let api = "rbac.authorization.k8s.io/v1";
    world
        .apply(&json!({
            "apiVersion": api, "kind": "Role",
            "metadata": {"name": "quotas", "namespace": "alice"},
            "rules": [{"apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["create", "patch", "delete"]}],
        }))
        .await;
    world
        .apply(&json!({
            "apiVersion": api, "kind": "RoleBinding",
            "metadata": {"name": "quotas", "namespace": "alice"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "quotas"},
            "subjects": [account],
        }))
        .await;
    world.deliver("quotas", &component(), None).await;
    world.settle().await;
    assert!(world.get(&quota()).await.is_some());
    let other = core_reference("ResourceQuota", "bob", "quotas");
    assert_eq!(world.get(&other).await, None);
    let ready = world.unit_condition("quotas", "bob", "Ready").await;
    assert_eq!(ready.reason, "Forbidden", "{ready:?}");
    for text in ["resourcequotas", "bob", "patch"] {
        assert!(ready.message.contains(text), "`{text}` is not in {ready:?}");
    }
    assert_eq!(
        world.plugin_condition("quotas", "Granted").await.status,
        "Unknown"
    );
}

/// The agent alone can write nothing that a plugin manages.
#[tokio::test(start_paused = true)]
async fn without_impersonation_nothing_is_written() {
    let world = World::started().await;
    world.allow("quotas").await;
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    let read = json!(["get", "list", "watch"]);
    let rules = json!([
        {"apiGroups": ["kubeflow.org"], "resources": ["profiles"], "verbs": read},
        {"apiGroups": [""], "resources": ["resourcequotas"], "verbs": read},
    ]);
    world.role("quotas-agent", &rules, &agent).await;
    world.tenant("alice", &[]).await;
    world.deliver("quotas", &component(), None).await;
    world.settle().await;
    assert_eq!(world.get(&quota()).await, None);
    let ready = world.unit_condition("quotas", "alice", "Ready").await;
    assert_eq!(ready.reason, "Forbidden", "{ready:?}");
    assert!(ready.message.contains("impersonate"), "{ready:?}");
    let granted = world.plugin_condition("quotas", "Granted").await;
    assert_eq!(
        (granted.status.as_str(), granted.reason.as_str()),
        ("False", "Forbidden"),
        "{granted:?}"
    );
    for text in [
        "may not impersonate ServiceAccount reeve-system/quotas",
        &format!(
            "`reeve plugin grant quotas --namespace reeve-system --agent-user {AGENT} --apply`"
        ),
    ] {
        assert!(
            granted.message.contains(text),
            "`{text}` is not in {granted:?}"
        );
    }

    // The right to act as others by the rules of 1.36 is one, too.
    let constrained = json!([
        {"apiGroups": ["authentication.k8s.io"], "resources": ["serviceaccounts"],
         "resourceNames": ["quotas"], "verbs": ["impersonate:serviceaccount"]},
        {"apiGroups": [""], "resources": ["resourcequotas"],
         "verbs": ["impersonate-on:serviceaccount:patch"]},
    ]);
    world.role("quotas-constrained", &constrained, &agent).await;
    world.wait(Duration::from_secs(60)).await;
    let granted = world.plugin_condition("quotas", "Granted").await;
    assert_eq!(granted.status, "True", "{granted:?}");
    assert!(world.get(&quota()).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_agent_may_not_make_is_named() {
    let world = World::started().await;
    world.allow("quotas").await;
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    world.role("quotas-agent", &json!([]), &agent).await;
    world.deliver("quotas", &component(), None).await;
    world.settle().await;
    let granted = world.plugin_condition("quotas", "Granted").await;
    assert_eq!(granted.reason, "Forbidden", "{granted:?}");
    for text in ["agent", "profiles"] {
        assert!(
            granted.message.contains(text),
            "`{text}` is not in {granted:?}"
        );
    }
    // Granted later, it starts by itself.
    world.allow("quotas").await;
    world.tenant("alice", &[]).await;
    world.wait(Duration::from_secs(30)).await;
    assert!(world.get(&quota()).await.is_some());
    assert!(world.get(&profile_reference("alice")).await.is_some());
}

/// What was granted once is asked about again.
#[tokio::test(start_paused = true)]
async fn a_revoked_grant_stops_the_plugin() {
    let world = World::started().await;
    world.install("quotas", &component(), None).await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    assert!(world.get(&quota()).await.is_some());
    annotate_account(&world, json!({ACCOUNT_ANNOTATION: "other"})).await;
    world.wait(Duration::from_secs(45)).await;
    let ready = world.plugin_condition("quotas", "Ready").await;
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "ServiceAccountUnusable")
    );
    world.delete(&quota()).await;
    world.wait(Duration::from_secs(45)).await;
    assert_eq!(world.get(&quota()).await, None, "it acts no more");
    world.allow("quotas").await;
    world.wait(Duration::from_secs(45)).await;
    assert!(world.get(&quota()).await.is_some());
}

/// However long nothing happened, a unit runs on a fresh answer only.
#[tokio::test(start_paused = true)]
async fn a_grant_revoked_while_nothing_happens_is_not_used() {
    let world = World::started().await;
    world.install("quotas", &component(), None).await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    world.wait(Duration::from_secs(3 * 3600)).await;
    annotate_account(&world, json!({ACCOUNT_ANNOTATION: "other"})).await;
    world.tenant("bob", &[]).await;
    world.settle().await;
    let bobs = core_reference("ResourceQuota", "bob", "quotas");
    assert_eq!(world.get(&bobs).await, None);
    let ready = world.plugin_condition("quotas", "Ready").await;
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "ServiceAccountUnusable")
    );
    world.allow("quotas").await;
    world.wait(Duration::from_secs(45)).await;
    assert!(world.get(&bobs).await.is_some());
}

/// A plugin with nothing to do costs the API server next to nothing.
#[tokio::test(start_paused = true)]
async fn who_has_nothing_to_do_is_hardly_asked_about() {
    let world = World::started().await;
    world.install("quotas", &component(), None).await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    world.server.reset_requests();
    world.wait(Duration::from_secs(24 * 3600)).await;
    let requests = world.server.requests();
    let asked = requests.count(Verb::Get, "serviceaccounts");
    // Every ten minutes, and a little more often at first.
    assert!((143..=150).contains(&asked), "{requests:?}");
    assert_eq!(requests.writes(), 0);
}

/// What is asked about rights follows from kinds and places, never from how many objects
/// there are.
#[tokio::test(start_paused = true)]
async fn a_thousand_units_cost_as_many_reviews_as_ten() {
    let mut asked = Vec::new();
    for count in [10, 1_000] {
        let mut world = World::new().await;
        for number in 0..count {
            world.tenant(&format!("tenant-{number}"), &[]).await;
        }
        world.install("quotas", &component(), None).await;
        world.server.reset_requests();
        world.start();
        world.settle().await;
        let everywhere =
            json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": ""}});
        let made = world.list(&everywhere).await;
        assert_eq!(made.len(), count);
        let requests = world.server.requests();
        let reviews = "subjectaccessreviews.authorization.k8s.io";
        asked.push(requests.count(Verb::Create, reviews));
    }
    // A question for each verb on each of two kinds.
    assert!((5..=10).contains(&asked[0]), "{asked:?}");
    assert_eq!(asked[0], asked[1]);
}

/// A read that is not granted is not served, whatever else the plugin declares.
#[tokio::test(start_paused = true)]
async fn a_declared_write_is_no_way_to_read() {
    let world = World::started().await;
    annotate_account(&world, json!({ACCOUNT_ANNOTATION: "quotas"})).await;
    let account = json!({"kind": "ServiceAccount", "name": "quotas", "namespace": NAMESPACE});
    let profiles = json!({"apiGroups": ["kubeflow.org"], "resources": ["profiles"], "verbs": ["get", "list", "watch"]});
    world
        .role("quotas-read", &json!([profiles]), &account)
        .await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "reads": ["ConfigMap.v1"],
    });
    let chameleon = vec![("plugin.wasm", reeve_it::guest("chameleon"))];
    world.deliver("quotas", &chameleon, Some(config)).await;
    world.settle().await;
    let granted = world.plugin_condition("quotas", "Granted").await;
    assert_eq!(
        (granted.status.as_str(), granted.reason.as_str()),
        ("False", "Forbidden")
    );
    assert!(
        granted
            .message
            .contains("get, list, patch, watch configmaps cluster-wide"),
        "{granted:?}"
    );
}

/// A watch that is lost says so, and deletes nothing.
#[tokio::test(start_paused = true)]
async fn a_primary_that_cannot_be_seen_is_not_gone() {
    let world = World::started().await;
    world.install("quotas", &component(), None).await;
    world.tenant("alice", &[]).await;
    world.settle().await;
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    let quotas = json!({"apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["get", "list", "watch"]});
    world.role("quotas-agent", &json!([quotas]), &agent).await;
    world.server.faults().drop_watches();
    world.server.compact();
    world.wait(Duration::from_secs(20)).await;
    world
        .edit(&quota(), json!({"spec": {"hard": {"pods": "9"}}}))
        .await;
    world.wait(Duration::from_secs(20)).await;
    assert!(world.get(&quota()).await.is_some());
    let ready = world.plugin_condition("quotas", "Ready").await;
    assert_eq!(ready.status, "False", "{ready:?}");
    assert!(ready.message.contains("profiles"), "{ready:?}");
    world.allow("quotas").await;
    world.wait(Duration::from_secs(60)).await;
    let hard = world.get(&quota()).await.unwrap()["spec"]["hard"]["pods"].clone();
    assert_eq!(hard, "100");
    assert_eq!(
        world.plugin_condition("quotas", "Ready").await.status,
        "True"
    );
}

/// A list that is granted in part is none: it would only be shorter.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_granted_in_part_is_not_given() {
    let world = World::started().await;
    let api = "rbac.authorization.k8s.io/v1";
    let account = json!({"kind": "ServiceAccount", "name": "chameleon", "namespace": NAMESPACE});
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    let rule = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": ["", "kubeflow.org"], "resources": resources, "verbs": verbs});
    let read = ["get", "list", "watch"];
    world
        .apply(&json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "chameleon", "namespace": NAMESPACE,
                "annotations": {ACCOUNT_ANNOTATION: "chameleon"}},
        }))
        .await;
    let write = ["create", "patch", "delete"];
    let rules = json!([rule(&["profiles"], &read), rule(&["configmaps"], &write)]);
    world.role("chameleon-account", &rules, &account).await;
    let impersonate = rule(&["serviceaccounts"], &["impersonate"]);
    let seen = rule(&["profiles", "configmaps", "services"], &read);
    let rules = json!([seen, impersonate]);
    world.role("chameleon-agent", &rules, &agent).await;
    let grant_in = async |namespace: &str| {
        let metadata = json!({"name": "services", "namespace": namespace});
        world
            .apply(&json!({
                "apiVersion": api, "kind": "Role", "metadata": metadata,
                "rules": [rule(&["services"], &read)],
            }))
            .await;
        world
            .apply(&json!({
                "apiVersion": api, "kind": "RoleBinding", "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                    "name": "services"},
                "subjects": [account],
            }))
            .await;
    };
    for namespace in ["one", "two"] {
        world.tenant(namespace, &[]).await;
        let mut service = core_reference("Service", namespace, &format!("in-{namespace}"));
        service["spec"] = json!({"ports": [{"port": 80}]});
        world.apply(&service).await;
    }
    grant_in("one").await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        "reads": [{"kind": "Service.v1", "scope": ["one", "two"]}],
        "reconcile": {"do": "list-keys", "kind": "Service.v1", "namespace": "two"},
    });
    let component = [("plugin.wasm", reeve_it::guest("chameleon"))];
    world.deliver("chameleon", &component, Some(config)).await;
    world.settle().await;
    let made = core_reference("ConfigMap", "one", "chameleon-one");
    let refused = async || {
        let ready = world.plugin_condition("chameleon", "Granted").await;
        assert_eq!(ready.reason, "Forbidden", "{ready:?}");
        let lacks = "get, list, watch services in namespace two";
        assert!(ready.message.contains(lacks), "{ready:?}");
    };
    refused().await;
    assert_eq!(world.get(&made).await, None);

    grant_in("two").await;
    world.wait(Duration::from_secs(30)).await;
    let given = world.get(&made).await.unwrap();
    assert!(given["data"].to_string().contains("in-two"), "{given}");

    // Taken away, nothing is made of what is left.
    let binding = json!({
        "apiVersion": api, "kind": "RoleBinding",
        "metadata": {"name": "services", "namespace": "two"},
    });
    world.delete(&binding).await;
    world.wait(Duration::from_secs(60)).await;
    let again = json!({"metadata": {"annotations": {"reeve.dev/reconcile-at": "1"}}});
    world.edit(&profile_reference("one"), again).await;
    world.wait(Duration::from_secs(700)).await;
    refused().await;
    assert_eq!(world.get(&made).await.unwrap(), given);
}
