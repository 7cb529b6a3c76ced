//! `reeve get`, `reconcile`, `retry`, `suspend`, `resume` and `approve`.

use super::{Desk, Said};
use reeve_it::{config_map_reference, core_reference, guest, plugin, plugin_reference};
use serde_json::{Value, json};

/// A chameleon that does this for each Profile.
async fn chameleon(desk: &Desk, deed: Value) {
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        "reconcile": deed,
    });
    let data = [("plugin.wasm", guest("chameleon"))];
    desk.world.install("chameleon", &data, Some(config)).await;
}

async fn desk() -> Desk {
    let mut desk = Desk::new().await;
    desk.world.start();
    desk
}

/// The cells of a table's rows, without what changes with time.
fn rows(said: &Said, dropped: usize) -> Vec<Vec<String>> {
    let table = said.out.lines().take_while(|line| !line.is_empty());
    table
        .map(|line| {
            let mut cells: Vec<String> = line
                .split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .map(str::to_owned)
                .collect();
            cells.remove(dropped);
            cells
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn troubled_units_come_first() {
    let desk = desk().await;
    desk.reeve("get plugins")
        .await
        .is(0, "no plugins in namespace reeve-system\n");
    desk.world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    chameleon(&desk, json!({"do": "echo"})).await;
    desk.world.tenant("alice", &[]).await;
    let mut bob = reeve_test_support::samples::profile("bob");
    bob["metadata"]["annotations"]["chameleon.reeve.dev/do"] =
        json!(json!({"do": "fail", "how": "terminal", "text": "not this one"}).to_string());
    desk.world
        .apply(&reeve_test_support::samples::namespace("bob"))
        .await;
    desk.world.apply(&bob).await;
    desk.world.settle().await;
    let said = desk.reeve("get units").await;
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let mut table = rows(&said, 3);
    // It may have been asked again by then.
    let failures = std::mem::replace(&mut table[1][3], "some".to_owned());
    assert!(failures.parse::<u32>().is_ok_and(|failures| failures > 0));
    assert_eq!(
        table,
        [
            vec![
                "PLUGIN",
                "PRIMARY",
                "READY",
                "FAILURES",
                "REASON",
                "BLOCKED BY"
            ],
            vec!["chameleon", "Profile bob", "False", "some", "Terminal"],
        ]
    );
    let counts = "\nchameleon: 1 of 2 units ready, 1 failing\nquotas: 2 of 2 units ready\n";
    assert!(said.out.ends_with(counts), "{}", said.out);
    let all = desk.reeve("get units --all").await;
    let names: Vec<Vec<String>> = rows(&all, 3);
    let names: Vec<(&str, &str)> = names[1..]
        .iter()
        .map(|row| (row[1].as_str(), row[2].as_str()))
        .collect();
    assert_eq!(
        names,
        [
            ("Profile bob", "False"),
            ("Profile alice", "True"),
            ("Profile alice", "True"),
            ("Profile bob", "True"),
        ]
    );
    let wide = desk.reeve("get units chameleon -o wide").await;
    assert!(wide.out.contains("not this one"), "{}", wide.out);
    let (code, answer) = desk.json("get units chameleon").await;
    let since = answer["units"][0]["since"].clone();
    let failures = answer["units"][0]["failures"].clone();
    assert_eq!(code, Some(0));
    assert_eq!(
        answer,
        json!({
            "units": [{
                "plugin": "chameleon",
                "primary": {
                    "apiVersion": "kubeflow.org/v1", "kind": "Profile",
                    "namespace": null, "name": "bob",
                },
                "ready": false, "reason": "Terminal", "message": "not this one",
                "since": since, "failures": failures, "blockedBy": null, "plan": null,
            }],
            "plugins": [{"name": "chameleon", "total": 2, "ready": 1, "failing": 1}],
        })
    );
    let said = desk.reeve("get plugins").await;
    let names: Vec<String> = rows(&said, 5).iter().map(|row| row[0].clone()).collect();
    assert_eq!(names, ["NAME", "chameleon", "quotas"], "in trouble first");
    assert!(
        said.out.ends_with("\n1 plugin well, 1 not\n"),
        "{}",
        said.out
    );
    let (_, answer) = desk.json("get plugins").await;
    assert_eq!(
        answer["plugins"][0]["units"],
        json!({"total": 2, "failing": 1})
    );
    desk.reeve("get units quota").await.fails(
        2,
        "there is no plugin quota in namespace reeve-system; there are: chameleon, quotas",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_is_done_and_told() {
    let mut desk = desk().await;
    desk.world
        .install("quotas", &[("plugin.wasm", plugin("quotas"))], None)
        .await;
    desk.world.tenant("alice", &[]).await;
    desk.world.settle().await;
    let mut said = desk.reeve("reconcile quotas --wait").await;
    // It may be done before the first look.
    said.out = said.out.replace("quotas: not done yet\n", "");
    said.is(
        0,
        "quotas: asked to run all units\nquotas: 1 of 1 units ready\n",
    );
    let said = desk.reeve("reconcile quotas --unit alice --wait").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.starts_with("quotas: asked to run Profile alice\n"));
    assert!(
        said.out
            .ends_with("quotas: Profile alice is as it should be\n"),
        "{}",
        said.out
    );

    let said = desk.reeve("suspend quotas --wait").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out.ends_with("quotas: nothing of it runs\n"),
        "{}",
        said.out
    );
    let quota = core_reference("ResourceQuota", "alice", "quotas");
    desk.world.delete(&quota).await;
    desk.world.settle().await;
    assert!(desk.world.get(&quota).await.is_none(), "it is suspended");
    desk.reeve("suspend quotas")
        .await
        .is(0, "quotas: is suspended already\n");
    desk.reeve("reconcile quotas").await.fails(
        2,
        "plugin quotas is suspended, so nothing runs; `reeve resume quotas` lets it go on",
    );
    let plan = desk.reeve("plan quotas").await;
    assert_eq!(plan.code, Some(2));
    assert!(
        plan.out
            .contains("  suspended: nothing of this is done before `reeve resume quotas`\n"),
        "{}",
        plan.out
    );
    let said = desk.reeve("resume quotas --wait").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    desk.world.settle().await;
    assert!(desk.world.get(&quota).await.is_some(), "it went on");

    desk.reeve("retry quota").await.fails(
        2,
        "there is no plugin quota in namespace reeve-system; `reeve get plugins` lists those that \
         there are",
    );
    desk.reeve("reconcile quotas --unit bob").await.fails(
        2,
        "plugin quotas: it has no unit bob; its units are named by their primaries: Profile alice",
    );
    desk.world.stop().await;
    let said = desk.reeve("reconcile quotas --wait --timeout 1s").await;
    assert_eq!(said.code, Some(1));
    assert_eq!(
        said.err,
        "error: not done within 1 s: not done yet; is an agent running? `reeve get plugins -o \
         wide` says how it stands\n"
    );
}

/// What failed is tried again at once, and its back-off begins anew.
#[tokio::test(flavor = "multi_thread")]
async fn what_failed_can_be_tried_again() {
    let desk = desk().await;
    chameleon(
        &desk,
        json!({"do": "fail", "how": "terminal", "text": "no"}),
    )
    .await;
    desk.world.tenant("alice", &[]).await;
    desk.world.settle().await;
    for _ in 0..3 {
        let said = desk.reeve("reconcile chameleon --wait").await;
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(
            said.out
                .ends_with("chameleon: Profile alice: Terminal: no\n"),
            "{}",
            said.out
        );
        assert_eq!(
            said.err,
            "error: plugin chameleon is not well; `reeve get plugins -o wide` and `reeve get units chameleon -o wide` say more\n"
        );
    }
    desk.world.settle().await;
    let failures = async || {
        let unit = desk.world.unit("chameleon", "alice").await.unwrap();
        unit["status"]["failures"].clone()
    };
    assert_eq!(failures().await, 4);
    assert_eq!(desk.reeve("retry chameleon --wait").await.code, Some(1));
    desk.world.settle().await;
    assert_eq!(failures().await, 1, "it began anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn held_deletions_can_be_listed_and_approved() {
    let desk = desk().await;
    chameleon(&desk, json!({"do": "objects", "count": 2})).await;
    desk.world.tenant("alice", &[]).await;
    desk.world.settle().await;
    desk.reeve("approve chameleon")
        .await
        .is(0, "nothing of plugin chameleon waits for approval\n");
    desk.reeve("approve chameleon --all")
        .await
        .fails(2, "nothing of plugin chameleon waits for approval");
    // An empty answer that is not said to be meant holds what there was, where the policy lets
    // such a version take over.
    let policy = json!({"spec": {"upgrade": {"shadow": "Report"}}});
    desk.world
        .edit(&plugin_reference("chameleon"), policy)
        .await;
    desk.world.settle().await;
    chameleon(&desk, json!({"do": "nothing"})).await;
    desk.world.settle().await;
    let object =
        |number| core_reference("ConfigMap", "alice", &format!("chameleon-alice-{number}"));
    assert!(desk.world.get(&object(0)).await.is_some(), "held");
    let plan = desk.json("plan chameleon").await;
    assert_eq!(plan.0, Some(2));
    assert_eq!(plan.1["summary"]["held"], 2);
    let said = desk.reeve("approve chameleon").await;
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let token = said.out.lines().next().unwrap_or_default().to_owned();
    assert_eq!(
        said.out,
        format!(
            "{token}\n  Profile alice: 2 deletions are held: the plugin returned no objects and \
             did not say that an empty set is meant (of objects of others, only what it contributes goes): ConfigMap alice/chameleon-alice-0, ConfigMap \
             alice/chameleon-alice-1\n  approve with: reeve approve chameleon {token}\n"
        )
    );
    desk.reeve("approve chameleon 0123456789abcdef0123")
        .await
        .fails(
            2,
            "0123456789abcdef0123 stands for nothing of plugin chameleon that waits now: what \
             waits has changed, or is gone; `reeve approve chameleon` lists it",
        );
    let said = desk
        .reeve(&format!("approve chameleon {token} --wait"))
        .await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out
            .ends_with("chameleon: what was approved no longer waits for it\n"),
        "{}",
        said.out
    );
    desk.world.settle().await;
    for number in 0..2 {
        assert!(desk.world.get(&object(number)).await.is_none(), "{number}");
    }
    let plugin = desk
        .world
        .get(&plugin_reference("chameleon"))
        .await
        .unwrap();
    assert_eq!(
        plugin["metadata"]["annotations"]["reeve.dev/approve-deletion"],
        json!(token)
    );
    // A plugin without a version says so instead of having no units.
    let config_map = config_map_reference("chameleon");
    desk.world.delete(&config_map).await;
    desk.world.settle().await;
    let said = desk.reeve("get units chameleon").await;
    assert_eq!(
        said.out,
        "chameleon: does not run (ConfigMapAbsent); see `reeve get plugins -o wide`\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_can_be_seen_approved_and_carried_out() {
    let desk = desk().await;
    let mut plugin = plugin_reference("chameleon");
    plugin["spec"] = json!({"mode": "OnRequest"});
    desk.world.apply(&plugin).await;
    chameleon(&desk, json!({"do": "objects", "count": 1})).await;
    desk.world.tenant("alice", &[]).await;
    desk.world.settle().await;
    let object = core_reference("ConfigMap", "alice", "chameleon-alice-0");
    assert!(desk.world.get(&object).await.is_none());
    let said = desk.reeve("approve chameleon").await;
    let token = said.out.lines().next().unwrap_or_default().to_owned();
    assert_eq!(
        said.out,
        format!(
            "{token}\n  Profile alice: 1 to create, 0 to change, 0 to delete\n    Create ConfigMap \
             alice/chameleon-alice-0\n  approve with: reeve approve chameleon {token}\n"
        )
    );
    // Whoever plans at the desk sees the plan that the agent made.
    let plan = desk.json("plan chameleon").await;
    assert_eq!(plan.0, Some(2));
    assert_eq!(plan.1["plugins"][0]["mode"], "OnRequest");
    assert_eq!(plan.1["plugins"][0]["units"][0]["approval"], token);
    let said = desk.reeve("plan chameleon").await;
    let line = format!("approve with: reeve approve chameleon {token}");
    assert!(said.out.contains(&line), "{}", said.out);
    let units = desk.json("get units chameleon").await.1;
    assert_eq!(units["units"][0]["reason"], "AwaitingApproval");
    assert_eq!(units["units"][0]["plan"]["id"], token);
    let said = desk
        .reeve(&format!("approve chameleon {token} --wait"))
        .await;
    assert_eq!(said.code, Some(0), "{said:?}");
    desk.world.settle_with(&object).await;
    assert!(desk.world.get(&object).await.is_some());
}
