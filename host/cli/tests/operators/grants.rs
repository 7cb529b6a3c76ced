//! `reeve plugin grant` beside an agent: what it must not grant, and not take away.

use super::Desk;
use reeve_it::{core_reference, guest, plugin_reference};
use serde_json::{Value, json};

/// Delivers a chameleon that may write these kinds there, and writes nothing.
async fn deliver(desk: &Desk, writes: &[&str], scope: Value) {
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": scope, "writes": writes,
        "reconcile": {"do": "nothing", "meant": true},
    });
    let data = [("plugin.wasm", guest("chameleon"))];
    desk.world.deliver("chameleon", &data, Some(config)).await;
}

async fn settle(desk: &Desk) {
    // With real time the agent may not have heard of it yet.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    desk.world.settle().await;
}

/// The resources that the plugin's account may patch, by its role for everywhere.
async fn patches(desk: &Desk) -> Vec<String> {
    let mut role = core_reference(
        "ClusterRole",
        "",
        "reeve-plugin-reeve-system.chameleon-account",
    );
    role["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
    role["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("namespace");
    let role = desk.world.get(&role).await.unwrap_or_default();
    let rules = role["rules"].as_array().cloned().unwrap_or_default();
    let mut resources: Vec<String> = rules
        .iter()
        .filter(|rule| rule["verbs"].as_array().unwrap().contains(&json!("patch")))
        .flat_map(|rule| rule["resources"].as_array().unwrap().clone())
        .map(|resource| resource.as_str().unwrap().to_owned())
        .collect();
    resources.sort();
    resources.dedup();
    resources
}

/// Also by who applies what is printed.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_another_plugin_is_not_taken() {
    let desk = Desk::new().await;
    let scope = json!("namespace-named-like-primary");
    deliver(&desk, &["ConfigMap.v1"], scope).await;
    let others = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {
            "name": "theirs", "namespace": "reeve-system",
            "annotations": {"reeve.dev/plugin": "another"},
        },
    });
    desk.world.apply(&others).await;
    for how in ["", " --apply"] {
        let grant = format!("plugin grant chameleon --service-account theirs{how}");
        let said = desk.reeve(&grant).await;
        assert_ne!(said.code, Some(0), "{said:?}");
        assert_eq!(said.out, "");
        assert!(said.err.contains("is for plugin another"), "{said:?}");
    }
    for option in [
        "--agent-user",
        "--agent-service-account",
        "--service-account",
    ] {
        let grant = format!("plugin grant chameleon {option}=");
        let said = desk.reeve(&grant).await;
        assert!(said.err.contains(option), "{said:?}");
        assert_eq!(said.out, "");
    }
}

/// The agent would never run it.
#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_not_granted() {
    let desk = Desk::new().await;
    deliver(&desk, &["ConfigMap.v1"], json!("primary-namespace")).await;
    desk.world.writes();
    for how in ["", " --apply"] {
        let said = desk.reeve(&format!("plugin grant chameleon{how}")).await;
        assert_ne!(said.code, Some(0), "{said:?}");
        assert_eq!(said.out, "");
        let why = "writes: ConfigMap.v1: the primary is cluster-scoped and has no namespace; use \
                   another scope; the agent refuses it, so nothing is granted";
        assert!(said.err.contains(why), "{said:?}");
    }
    assert_eq!(desk.world.writes(), 0, "nothing is written");
}

/// What was once the plugin's account could be so again by a word of whoever writes the Plugin.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_left_is_nobodys() {
    let desk = Desk::new().await;
    let scope = json!("namespace-named-like-primary");
    deliver(&desk, &["ConfigMap.v1"], scope).await;
    let account = async |name: &str| {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": "reeve-system"},
        });
        let found = desk.world.get(&account).await.unwrap();
        found["metadata"]["annotations"]["reeve.dev/plugin"].clone()
    };
    let grant = "plugin grant chameleon --apply --service-account default";
    let said = desk.reeve(grant).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    let caution = "caution: ServiceAccount reeve-system/default is that of every pod there";
    assert!(said.out.contains(caution), "{said:?}");
    assert_eq!(account("default").await, "chameleon");
    let said = desk.reeve("plugin grant chameleon --apply").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    let told =
        "changed: ServiceAccount reeve-system/default, which is no longer for plugin chameleon";
    assert!(said.out.contains(told), "{said:?}");
    assert_eq!(account("default").await, Value::Null);
    assert_eq!(account("chameleon").await, "chameleon");
}

/// Who may not look whose an account is says so to whoever applies what is printed.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_see_the_account_prints_a_caution() {
    let desk = Desk::new().await;
    let scope = json!("namespace-named-like-primary");
    deliver(&desk, &["ConfigMap.v1"], scope).await;
    let rule = |group: &str, resources: &[&str]| {
        json!({
            "apiGroups": [group], "resources": resources, "verbs": ["get", "list", "watch"],
        })
    };
    let rules = json!([
        rule("", &["configmaps"]),
        rule("reeve.dev", &["plugins", "units"]),
    ]);
    let subject = json!({
        "kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io",
    });
    desk.world.role("reader", &rules, &subject).await;
    desk.log_in("ann");
    let caution = "you may not see ServiceAccount reeve-system/chameleon: look whether";
    let said = desk.reeve("plugin grant chameleon").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    let line = said.out.lines().find(|line| line.contains(caution));
    assert!(line.is_some_and(|line| line.starts_with("# ")), "{said:?}");
    let said = desk.reeve("plugin grant chameleon --apply").await;
    assert_ne!(said.code, Some(0), "{said:?}");
    assert_eq!(said.out, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_granted_in_the_namespace_of_the_agent() {
    let desk = Desk::new().await;
    deliver(&desk, &["ConfigMap.v1", "Pod.v1"], json!(["reeve-system"])).await;
    desk.world.writes();
    let said = desk.reeve("plugin grant chameleon --apply").await;
    assert_ne!(said.code, Some(0), "{said:?}");
    assert_eq!(said.out, "");
    for part in [
        "writes: ConfigMap.v1",
        "namespace reeve-system is the agent's own",
    ] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    assert_eq!(desk.world.writes(), 0, "nothing is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_runs_keeps_its_rights_until_another_does() {
    let mut desk = Desk::new().await;
    desk.world.tenant("alice", &[]).await;
    // So that nothing here waits until the agent asks again what is granted.
    desk.world.allow("chameleon").await;
    desk.world.start();
    let like_primary = json!("namespace-named-like-primary");
    deliver(&desk, &["ConfigMap.v1"], like_primary.clone()).await;
    running(&desk, "write ConfigMap").await;
    let said = desk.reeve("plugin grant chameleon --apply").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.out.contains("kept"), "{}", said.out);
    desk.world.settle().await;
    assert_eq!(patches(&desk).await, ["configmaps"]);

    // The new one is granted beforehand.
    deliver(&desk, &["Service.v1"], like_primary).await;
    settle(&desk).await;
    let said = desk.reeve("plugin grant chameleon --apply").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out
            .contains("kept: what the version of chameleon that runs asks for beyond this"),
        "{}",
        said.out
    );
    assert!(!said.out.contains("deleted:"), "{}", said.out);
    assert_eq!(patches(&desk).await, ["configmaps", "services"]);

    // It takes over, and the rest goes.
    let said = desk.reeve("plugin approve chameleon --wait").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    desk.world.settle().await;
    let asks = desk
        .world
        .get(&plugin_reference("chameleon"))
        .await
        .unwrap();
    let asks = asks["status"]["asks"].to_string();
    assert!(
        asks.contains("Service") && !asks.contains("ConfigMap"),
        "{asks}"
    );
    let said = desk.reeve("plugin grant chameleon --apply").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.out.contains("kept"), "{}", said.out);
    assert_eq!(patches(&desk).await, ["services"]);
}

/// A version that is suspended runs, and is not ready.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_suspended_keeps_its_rights() {
    let mut desk = Desk::new().await;
    desk.world.tenant("alice", &[]).await;
    desk.world.allow("chameleon").await;
    desk.world.start();
    let like_primary = json!("namespace-named-like-primary");
    deliver(&desk, &["ConfigMap.v1"], like_primary.clone()).await;
    running(&desk, "write ConfigMap").await;
    let said = desk.reeve("plugin grant chameleon --apply").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = desk.reeve("suspend chameleon --wait").await;
    assert_eq!(said.code, Some(0), "{said:?}");

    deliver(&desk, &["Service.v1"], like_primary).await;
    settle(&desk).await;
    let plugin = desk.world.get(&plugin_reference("chameleon")).await;
    let conditions = plugin.unwrap()["status"]["conditions"].clone();
    let ready = conditions.as_array().unwrap().iter();
    let ready: Vec<&Value> = ready.filter(|one| one["type"] == "Ready").collect();
    assert_eq!(ready[0]["reason"], "Suspended");
    let said = desk.reeve("plugin grant chameleon").await;
    let caution = "a version of chameleon runs that asks for more";
    assert!(said.out.contains(caution), "{said:?}");
    let said = desk.reeve("plugin grant chameleon --apply").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    let kept = "kept: what the version of chameleon that runs asks for beyond this";
    assert!(said.out.contains(kept), "{}", said.out);
    assert!(!said.out.contains("deleted:"), "{}", said.out);
    assert_eq!(patches(&desk).await, ["configmaps", "services"]);
}

/// However much is missing, what brings it is said.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_leaves_room_for_the_command() {
    let mut desk = Desk::new().await;
    desk.world.allow("chameleon").await;
    desk.world.start();
    let like_primary = json!("namespace-named-like-primary");
    deliver(&desk, &["ConfigMap.v1"], like_primary).await;
    running(&desk, "write ConfigMap").await;

    let many: Vec<String> = (0..100)
        .map(|number| format!("team-{number}-{}", "x".repeat(50)))
        .collect();
    deliver(&desk, &["Pod.v1"], json!(many)).await;
    for (reason, expected) in [
        (
            "ApprovalRequired",
            " more. `reeve plugin approve chameleon --namespace reeve-system --dry-run` shows all of it; \
             without --dry-run the command lets it, which annotates",
        ),
        (
            "Forbidden",
            " more; grant it with `reeve plugin grant chameleon --namespace reeve-system ",
        ),
    ] {
        let condition = async |kind: &str| desk.world.plugin_condition("chameleon", kind).await;
        for _ in 0..300 {
            if condition("Loaded").await.reason == reason {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        let loaded = condition("Loaded").await;
        assert_eq!(loaded.reason, reason, "{}", loaded.message);
        // The one in which the other is.
        let ready = condition("Ready").await;
        assert_eq!(ready.status, "True", "{}", ready.message);
        for message in [&loaded.message, &ready.message] {
            assert!(message.contains(expected), "{message}");
        }
        if reason == "ApprovalRequired" {
            let events = core_reference("Event", "reeve-system", "");
            let events = json!(desk.world.list(&events).await).to_string();
            assert!(
                events.contains("the command lets it, which annotates"),
                "{events}"
            );
            desk.world.approve("chameleon").await;
        }
    }
}

/// Longer than the value of a label, by which parts would be asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_may_have_a_long_name() {
    let desk = Desk::new().await;
    let name = "chameleon-".repeat(10) + "x";
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "writes": ["ConfigMap.v1"],
        "reconcile": {"do": "nothing", "meant": true},
    });
    let data = [("plugin.wasm", guest("chameleon"))];
    desk.world.deliver(&name, &data, Some(config)).await;
    let said = desk.reeve(&format!("plugin grant {name} --apply")).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    let account = core_reference("ServiceAccount", "reeve-system", &name);
    let account = desk.world.get(&account).await.unwrap();
    assert_eq!(
        account["metadata"]["annotations"]["reeve.dev/plugin"],
        *name
    );
}

/// What the running version may, the policy for the new one must not forbid; nor the other way
/// round.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_lets_both_versions_write_where_they_may() {
    let mut desk = Desk::new().await;
    desk.world.tenant("alice", &[]).await;
    desk.world.tenant("shared", &[]).await;
    desk.world.allow("chameleon").await;
    desk.world.start();
    deliver(
        &desk,
        &["ConfigMap.v1"],
        json!(["shared", "kube-node-lease"]),
    )
    .await;
    running(&desk, "write ConfigMap in namespace shared").await;
    let said = desk.reeve("plugin grant chameleon --apply").await;
    assert_eq!(said.code, Some(0), "{said:?}");

    let like_primary = json!("namespace-named-like-primary");
    deliver(&desk, &["ConfigMap.v1"], like_primary).await;
    // What is to be applied by other means says what that would do.
    let said = desk.reeve("plugin grant chameleon").await;
    let caution = "Applied with kubectl, these objects take that away at once";
    assert!(said.out.contains(caution), "{said:?}");
    let said = desk.reeve("plugin grant chameleon --apply").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out.contains("(write ConfigMap in namespace "),
        "{}",
        said.out
    );
    let allowed = "request.namespace in ['kube-node-lease', 'shared'] || \
        (!request.namespace.startsWith('kube-'))";
    assert!(
        checks(&desk).await.contains(allowed),
        "{}: {}",
        checks(&desk).await,
        said.out
    );

    // The operator may say otherwise.
    let said = desk
        .reeve("plugin grant chameleon --apply --take-away")
        .await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("deleted: Role"), "{}", said.out);
    assert!(!checks(&desk).await.contains("'shared'"));
}

/// What the policy of the plugin checks.
async fn checks(desk: &Desk) -> String {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "reeve-plugin-reeve-system.chameleon"},
    });
    let policy = desk.world.get(&policy).await.unwrap_or_default();
    policy["spec"]["validations"].to_string()
}

/// Waits until a version runs that asks for this.
async fn running(desk: &Desk, line: &str) {
    for _ in 0..300 {
        let plugin = desk.world.get(&plugin_reference("chameleon")).await;
        let status = plugin.unwrap_or_default()["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
        if conditions.iter().any(is_ready) && status["asks"].to_string().contains(line) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("no version asks to {line}");
}
