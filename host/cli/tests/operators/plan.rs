//! `reeve plan`.

use super::Desk;
use reeve_it::{core_reference, guest, plugin, profile_reference};
use serde_json::{Value, json};

/// A cluster in which the plugin `quotas` has done its work for alice.
async fn converged() -> Desk {
    let mut desk = Desk::new().await;
    desk.world.start();
    desk.world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    desk.world.tenant("alice", &[]).await;
    desk.world
        .settle_with(&core_reference("ResourceQuota", "alice", "quotas"))
        .await;
    desk
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converged_cluster_needs_nothing() {
    let desk = converged().await;
    desk.world.writes();
    desk.reeve("plan").await.is(
        0,
        "quotas 0.1.0 (sha256:…): 0 of 1 unit differ\n\n\
         nothing to do, 1 object as they should be\n",
    );
    desk.reeve("plan quotas --unit Profile/alice --verbose")
        .await
        .is(
            0,
            "quotas 0.1.0 (sha256:…): 0 of 1 unit differ\n  \
               Profile alice: 1 object as they should be\n\n\
             nothing to do, 1 object as they should be\n",
        );
    assert_eq!(desk.world.writes(), 0, "a plan writes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_what_the_agent_then_does() {
    let mut desk = converged().await;
    desk.world.tenant("dora", &[]).await;
    desk.world
        .settle_with(&core_reference("ResourceQuota", "dora", "quotas"))
        .await;
    desk.world.stop().await;
    // Somebody changes a field of ours, a label changes what is wanted, one tenant
    // is new, one has no namespace yet, and one has a quota of its own.
    let quota = core_reference("ResourceQuota", "alice", "quotas");
    desk.world
        .edit(&quota, json!({"spec": {"hard": {"pods": "7"}}}))
        .await;
    let label = json!({"metadata": {"labels": {"quotas.statcan.gc.ca/pods": "5"}}});
    desk.world.edit(&profile_reference("dora"), label).await;
    desk.world.tenant("bob", &[]).await;
    let profile = reeve_test_support::samples::profile("carol");
    desk.world.apply(&profile).await;
    let mut foreign = core_reference("ResourceQuota", "eve", "quotas");
    foreign["spec"] = json!({"hard": {"pods": "3"}});
    desk.world
        .apply(&reeve_test_support::samples::namespace("eve"))
        .await;
    desk.world.apply(&foreign).await;
    desk.world
        .apply(&reeve_test_support::samples::profile("eve"))
        .await;
    desk.world.writes();

    let mut said = desk.reeve("plan quotas").await;
    let refusal = said.out.lines().find(|line| line.contains("refused: "));
    let refusal = refusal.unwrap_or_default().to_owned();
    assert!(
        refusal.starts_with(
            "    x refused: ResourceQuota eve/quotas exists already and is not this unit's: "
        ),
        "{refusal}"
    );
    assert!(refusal.contains("\"test\""), "{refusal}");
    said.out = said.out.replace(&refusal, "    (the refusal)");
    said.is(
        1,
        r#"quotas 0.1.0 (sha256:…): 5 of 5 units differ
  Profile alice
    ~ change ResourceQuota alice/quotas: kubectl-edit changed fields of the plugin
        ~ spec.hard.pods: "7" -> "100"
  Profile bob
    + create ResourceQuota bob/quotas
        + spec.hard["limits.cpu"]: "70"
        + spec.hard["limits.memory"]: "368G"
        + spec.hard.pods: "100"
        + spec.hard["requests.cpu"]: "70"
        + spec.hard["requests.memory"]: "368G"
        + spec.hard["requests.nvidia.com/gpu"]: "2"
        + spec.hard["requests.storage"]: "100T"
        + spec.hard["services.loadbalancers"]: "0"
        + spec.hard["services.nodeports"]: "0"
  Profile carol
    + create ResourceQuota carol/quotas, later: namespace carol does not exist yet
        + spec.hard["limits.cpu"]: "70"
        + spec.hard["limits.memory"]: "368G"
        + spec.hard.pods: "100"
        + spec.hard["requests.cpu"]: "70"
        + spec.hard["requests.memory"]: "368G"
        + spec.hard["requests.nvidia.com/gpu"]: "2"
        + spec.hard["requests.storage"]: "100T"
        + spec.hard["services.loadbalancers"]: "0"
        + spec.hard["services.nodeports"]: "0"
  Profile dora
    ~ change ResourceQuota dora/quotas: the plugin wants something else than before
        ~ spec.hard.pods: "100" -> "5"
  Profile eve
    (the refusal)

2 to create, 2 to change, 1 of these later, 1 refused, 0 objects as they should be
"#,
    );
    let (code, plan) = desk.json("plan quotas --unit alice").await;
    assert_eq!(code, Some(2), "changes alone are no error");
    let digest = plan["plugins"][0]["digest"].clone();
    assert_eq!(
        plan,
        json!({
            "plugins": [{
                "plugin": "quotas", "version": "0.1.0", "digest": digest,
                "suspended": false, "mode": "Auto", "warnings": [],
                "units": [{
                    "primary": {
                        "apiVersion": "kubeflow.org/v1", "kind": "Profile",
                        "namespace": null, "name": "alice",
                    },
                    "planned": true, "unchanged": 0, "approval": null, "notices": [],
                    "problems": [],
                    "changes": [{
                        "object": {
                            "apiVersion": "v1", "kind": "ResourceQuota",
                            "namespace": "alice", "name": "quotas",
                        },
                        "action": "change", "standing": "now", "step": null,
                        "reason": "kubectl-edit changed fields of the plugin",
                        "fields": [{
                            "path": "spec.hard.pods",
                            "old": {"value": "7"}, "new": {"value": "100"},
                        }],
                    }],
                    "effects": [],
                }],
            }],
            "summary": {
                "create": 0, "change": 1, "delete": 0, "waiting": 0, "held": 0,
                "refused": 0, "unchanged": 0, "effects": 0, "failed": 0,
            },
        })
    );
    let again = desk.json("plan quotas --unit alice").await.1;
    assert_eq!(again, plan, "the same situation has the same plan");
    assert_eq!(desk.world.writes(), 0, "a plan writes nothing");

    // The agent does what was said.
    desk.world.start();
    desk.world.settle().await;
    let pods = |quota: Option<Value>| quota.unwrap()["spec"]["hard"]["pods"].clone();
    for (name, expected) in [
        ("alice", "100"),
        ("bob", "100"),
        ("dora", "5"),
        ("eve", "3"),
    ] {
        let quota = core_reference("ResourceQuota", name, "quotas");
        assert_eq!(pods(desk.world.get(&quota).await), expected, "{name}");
    }
}

/// A component can be looked at before it is delivered, and its configuration too.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_installed_can_be_planned() {
    let desk = converged().await;
    desk.file("limits.wasm", &plugin("limitranges"));
    desk.file("quotas.wasm", &plugin("quotas"));
    desk.file("config.yaml", b"hard: {pods: \"3\"}\n");
    desk.file("odd.yaml", b"hard: {pods: 3}\n");
    desk.world.writes();
    let said = desk.reeve("plan limits --component limits.wasm").await;
    assert_eq!((said.code, said.err.as_str()), (Some(2), ""), "{said:?}");
    for part in [
        "limits 0.1.0 (sha256:…): 1 of 1 unit differs",
        "warning: ServiceAccount reeve-system/limits does not exist; create it with the \
         annotation reeve.dev/plugin: limits",
        "+ create LimitRange alice/",
        "1 to create, 0 objects as they should be",
    ] {
        assert!(said.out.contains(part), "{part}\n{}", said.out);
    }
    let said = desk
        .reeve("plan quotas --component quotas.wasm --config config.yaml")
        .await;
    assert_eq!(said.code, Some(2));
    assert!(
        said.out.contains("~ spec.hard.pods: \"100\" -> \"3\"\n"),
        "{}",
        said.out
    );
    let said = desk
        .reeve("plan quotas --component quotas.wasm --config odd.yaml")
        .await;
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(
        said.err
            .starts_with("error: plugin quotas cannot be loaded: ConfigInvalid: data[\"config.yaml\"]: /hard/pods: 3 is not"),
        "{}",
        said.err
    );
    assert_eq!(desk.world.writes(), 0, "a plan writes nothing");
}

/// What a new configuration no longer wants is seen before it is delivered.
#[tokio::test(flavor = "multi_thread")]
async fn withdrawals_are_seen_before_they_happen() {
    let mut desk = Desk::new().await;
    desk.world.start();
    let config = |count: u32| {
        json!({
            "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
            "reconcile": {"do": "objects", "count": count},
        })
    };
    let data = [("plugin.wasm", guest("chameleon"))];
    desk.world
        .install("chameleon", &data, Some(config(3)))
        .await;
    desk.world.tenant("alice", &[]).await;
    desk.world.settle().await;
    desk.file("chameleon.wasm", &guest("chameleon"));
    desk.file("config.yaml", config(1).to_string().as_bytes());
    desk.world.writes();
    let said = desk
        .reeve("plan chameleon --component chameleon.wasm --config config.yaml")
        .await;
    said.is(
        2,
        "chameleon 0.1.0 (sha256:…): 1 of 1 unit differs\n  \
           Profile alice\n    \
             - delete ConfigMap alice/chameleon-alice-2: the plugin no longer returns it\n    \
             - delete ConfigMap alice/chameleon-alice-1: the plugin no longer returns it\n\n\
         2 to delete, 1 object as they should be\n",
    );
    // Nothing of that was delivered.
    assert_eq!(desk.reeve("plan chameleon").await.code, Some(0));
    assert_eq!(desk.world.writes(), 0, "a plan writes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_secrets_are_not_shown() {
    let desk = Desk::new().await;
    let secret = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "token", "namespace": "alice"},
            "stringData": {"password": value},
        })
    };
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "writes": "Secret.v1",
        "scope": "namespace-named-like-primary",
        "reconcile": {"do": "raw", "text": secret("correct-horse").to_string()},
    });
    desk.world
        .install(
            "chameleon",
            &[("plugin.wasm", guest("chameleon"))],
            Some(config),
        )
        .await;
    desk.world.tenant("alice", &[]).await;
    for output in ["", " -o json", " --verbose"] {
        let said = desk.reeve(&format!("plan chameleon{output}")).await;
        assert_eq!((said.code, said.err.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.out.contains("data.password"), "{}", said.out);
        assert!(said.out.contains("hidden"), "{}", said.out);
        assert!(!said.out.contains("correct-horse"), "{}", said.out);
    }
}

/// A dependency within a wave is none that waves keep.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_is_not_as_it_looks_is_told() {
    let desk = Desk::new().await;
    let definition = reeve_test_support::samples::open_crd("Widget", "widgets");
    desk.world.apply(&definition).await;
    let config = json!({
        "primary": "Widget.v1.example.com", "writes": {"ConfigMap.v1": ["alice"]},
    });
    let data = [("plugin.wasm", guest("courier"))];
    desk.world.install("courier", &data, Some(config)).await;
    desk.world.tenant("alice", &[]).await;
    let object = |name: &str, annotations: Value| {
        let mut object = core_reference("ConfigMap", "alice", name);
        object["metadata"]["annotations"] = annotations;
        object
    };
    let second = json!({"reeve.dev/wave": "1", "reeve.dev/depends-on": "ConfigMap/first"});
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "alice"},
        "spec": {"objects": [
            object("first", json!({"reeve.dev/wave": "1"})), object("second", second),
        ]},
    });
    desk.world.apply(&widget).await;
    let notice = "ConfigMap alice/second depends on ConfigMap alice/first, and both are in Sync \
                  wave 1: the wave is divided";
    let said = desk.reeve("plan courier").await;
    assert_eq!(said.code, Some(2), "{said:?}");
    let line = format!("\n    note: {notice}\n");
    assert!(said.out.contains(&line), "{}", said.out);
    let (_, plan) = desk.json("plan courier").await;
    assert_eq!(plan["plugins"][0]["units"][0]["notices"], json!([notice]));
}

/// What is wrong with one plugin or unit does not hide the others.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_planned_is_said_beside_what_can() {
    let desk = converged().await;
    desk.world
        .deliver("broken", &[("plugin.wasm", b"text".to_vec())], None)
        .await;
    desk.world.settle().await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        "reconcile": {"do": "trap"},
    });
    desk.world
        .install(
            "chameleon",
            &[("plugin.wasm", guest("chameleon"))],
            Some(config),
        )
        .await;
    desk.world.settle().await;
    let (code, plan) = desk.json("plan").await;
    assert_eq!(code, Some(1));
    let plugins: Vec<&Value> = plan["plugins"].as_array().unwrap().iter().collect();
    let names: Vec<&Value> = plugins.iter().map(|plugin| &plugin["plugin"]).collect();
    assert_eq!(names, ["broken", "chameleon", "quotas"]);
    let error = plugins[0]["error"].as_str().unwrap();
    assert!(
        error.starts_with("plugin broken cannot be loaded: NotAComponent: "),
        "{error}"
    );
    let unit = &plugins[1]["units"][0];
    assert_eq!(unit["planned"], false);
    assert_eq!(unit["problems"][0]["reason"], "Trapped");
    assert_eq!(plugins[2]["units"][0]["unchanged"], 1);
    assert_eq!(plan["summary"]["failed"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_say_what_there_is() {
    let desk = converged().await;
    for (arguments, expected) in [
        (
            "plan quota",
            "no plugin quota is installed in namespace reeve-system; there are quotas",
        ),
        (
            "plan quotas --namespace elsewhere",
            "no plugin quotas is installed in namespace elsewhere; nothing is; give a file with \
             --component, or name the agent's namespace with --namespace",
        ),
        (
            "plan quotas --unit bob",
            "plugin quotas: it has no unit bob; its units are named by their primaries: \
             Profile alice",
        ),
        (
            "plan quotas --component none.wasm",
            "cannot read the component none.wasm: No such file or directory (os error 2)",
        ),
    ] {
        desk.reeve(arguments).await.fails(1, expected);
    }
    // Code 2 would mean that there are changes.
    for arguments in ["plan --nonsense", "plan --unit alice"] {
        let said = desk.reeve(arguments).await;
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    }
    assert_eq!(desk.reeve("explain --nonsense").await.code, Some(2));
    desk.reeve("plan --namespace elsewhere")
        .await
        .is(0, "no plugin is installed\n");
}

/// Reading is done with the rights of whoever asks, and a lack of them is told to
/// them.
#[tokio::test(flavor = "multi_thread")]
async fn the_rights_are_those_of_the_reader() {
    let mut desk = converged().await;
    desk.log_in("ann");
    let said = desk.reeve("plan").await;
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(
        said.err.starts_with(
            "error: what is installed in namespace reeve-system cannot be seen: Forbidden: you \
             may not list and watch configmaps: "
        ),
        "{}",
        said.err
    );
    let said = desk.reeve("explain quota quotas -n alice").await;
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(
        said.err
            .starts_with("error: you may not get ResourceQuota alice/quotas: "),
        "{}",
        said.err
    );
    // With the rights that are documented, and no others, there is a plan.
    let rule = |group: &str, resources: &[&str]| {
        json!({
            "apiGroups": [group], "resources": resources, "verbs": ["get", "list", "watch"],
        })
    };
    let rules = json!([
        rule("", &["configmaps", "resourcequotas"]),
        rule("reeve.dev", &["plugins", "units"]),
        rule("kubeflow.org", &["profiles"]),
    ]);
    let subject = json!({
        "kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io",
    });
    desk.world.role("reader", &rules, &subject).await;
    let quota = core_reference("ResourceQuota", "alice", "quotas");
    desk.world.stop().await;
    desk.world
        .edit(&quota, json!({"spec": {"hard": {"pods": "7"}}}))
        .await;
    let said = desk.reeve("plan quotas").await;
    assert_eq!((said.code, said.err.as_str()), (Some(2), ""), "{said:?}");
    for part in [
        "warning: ServiceAccount reeve-system/quotas cannot be read: you may not get ServiceAccount \
         reeve-system/quotas: ",
        "warning: you may not create subjectaccessreviews.authorization.k8s.io, so the rights of ",
        "~ spec.hard.pods: \"7\" -> \"100\"\n",
    ] {
        assert!(said.out.contains(part), "{part}\n{}", said.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contributions_to_objects_of_others_are_told_as_such() {
    let mut desk = Desk::new().await;
    desk.world.start();
    desk.world.tenant("alice", &[]).await;
    let mut shared = core_reference("ConfigMap", "alice", "shared");
    shared["data"] = json!({"theirs": "x"});
    desk.world.apply(&shared).await;
    let install = async |desk: &Desk, deed: Value| {
        let config = json!({
            "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
            "reconcile": deed,
        });
        let data = [("plugin.wasm", guest("chameleon"))];
        desk.world.install("chameleon", &data, Some(config)).await;
    };
    let contribute = |value: &str| {
        let mut object = core_reference("ConfigMap", "alice", "shared");
        object["metadata"]["annotations"] = json!({"reeve.dev/apply": "Contribute"});
        object["data"] = json!({"ours": value});
        json!({"do": "raw", "text": object.to_string()})
    };
    install(&desk, contribute("1")).await;
    for _ in 0..600 {
        desk.world.settle().await;
        let live = desk.world.get(&shared).await.unwrap();
        if live["data"]["ours"] == "1" {
            break;
        }
    }
    desk.world.stop().await;
    install(&desk, contribute("2")).await;
    desk.reeve("plan chameleon").await.is(
        2,
        r#"chameleon 0.1.0 (sha256:…): 1 of 1 unit differs
  warning: this is about the version that was delivered last, sha256:… with configuration sha256:…, which does not run for all units (not taken up yet); what runs is sha256:… with configuration sha256:…
  Profile alice
    ~ contribute to ConfigMap alice/shared: the plugin contributes these fields
        ~ data.ours: "1" -> "2"

1 to change, 0 objects as they should be
"#,
    );
    install(&desk, json!({"do": "nothing", "meant": true})).await;
    desk.reeve("plan chameleon").await.is(
        2,
        r#"chameleon 0.1.0 (sha256:…): 1 of 1 unit differs
  warning: this is about the version that was delivered last, sha256:… with configuration sha256:…, which does not run for all units (not taken up yet); what runs is sha256:… with configuration sha256:…
  Profile alice
    ~ give up fields of ConfigMap alice/shared: the plugin no longer contributes to it
        - data.ours: "1"

1 to change, 0 objects as they should be
"#,
    );
    let (_, plan) = desk.json("plan chameleon").await;
    let change = &plan["plugins"][0]["units"][0]["changes"][0];
    assert_eq!(change["action"], "release");
}
