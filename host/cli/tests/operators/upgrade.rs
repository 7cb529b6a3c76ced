//! `reeve plugin diff`, `approve` and `rollback`.

use super::Desk;
use reeve_it::{core_reference, guest, plugin_reference};
use serde_json::json;

/// Delivers a chameleon that makes so many objects for each Profile.
async fn deliver(desk: &Desk, count: usize) {
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        "reconcile": {"do": "objects", "count": count},
    });
    let data = [("plugin.wasm", guest("chameleon"))];
    let world = &desk.world;
    world.deliver("chameleon", &data, Some(config)).await;
    // With real time the agent may not have heard of it yet.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    world.settle().await;
}

async fn made(desk: &Desk) -> usize {
    let like = core_reference("ConfigMap", "alice", "");
    let all = desk.world.list(&like).await;
    let names = all
        .iter()
        .filter_map(|one| one["metadata"]["name"].as_str());
    names.filter(|name| name.starts_with("chameleon")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_version_is_shown_approved_and_gone_back_from() {
    let mut desk = Desk::new().await;
    desk.world.start();
    desk.world.tenant("alice", &[]).await;
    desk.world.allow("chameleon").await;
    deliver(&desk, 2).await;
    let said = desk.reeve("plugin rollback chameleon").await;
    said.fails(
        2,
        "no version of plugin chameleon is known that ran before the one that runs; deliver the \
         one that is to run",
    );
    let said = desk.reeve("plugin diff chameleon").await;
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    let first = "no version has been held against another yet\n";
    assert!(said.out.starts_with(first), "{}", said.out);

    let policy = json!({"spec": {"upgrade": {"maxDeleted": 0}}});
    desk.world
        .edit(&plugin_reference("chameleon"), policy)
        .await;
    deliver(&desk, 1).await;
    assert_eq!(made(&desk).await, 2);
    let said = desk.reeve("plugin diff chameleon").await;
    assert_eq!((said.code, said.err.as_str()), (Some(1), ""), "{said:?}");
    for line in [
        ": Held\n  objects  0 to create, 0 to change, 1 to delete; there are 2\n  units    0 of 1 \
         as they are, 0 newly failing\n    delete ConfigMap alice/chameleon-alice-1, of Profile \
         alice\n  UpgradeHeld: the new version, sha256:… with configuration sha256:…, is held for what \
         it would do: 1 of 2 objects would be deleted, where 0 may, such as to delete ConfigMap \
         alice/chameleon-alice-1, of Profile alice;",
        "    - delete ConfigMap alice/chameleon-alice-1: the plugin no longer returns it\n",
    ] {
        assert!(said.out.contains(line), "`{line}` is not in {}", said.out);
    }
    let (code, found) = desk.json("plugin diff chameleon").await;
    assert_eq!(code, Some(1));
    assert_eq!(found["shadow"]["deleted"], 1);
    assert_eq!(
        (&found["lookedAt"], &found["units"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(found["plan"]["summary"]["delete"], 1);

    let would = "~ create 0, change 0, delete 1 of 2 objects; 0 of 1 units newly failing\n  delete \
                 ConfigMap alice/chameleon-alice-1, of Profile alice\n";
    let said = desk.reeve("plugin approve chameleon --dry-run").await;
    said.is(0, &format!("{would}not approved: this is a dry run\n"));
    // What runs is no version to go back from.
    let said = desk.reeve("plugin rollback chameleon").await;
    assert_eq!(said.code, Some(2), "{said:?}");
    for part in [
        "the newest version of plugin chameleon does not run (UpgradeHeld",
        "add --running",
    ] {
        assert!(said.err.contains(part), "`{part}` is not in {}", said.err);
    }
    let said = desk.reeve("plugin approve chameleon --wait").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out.starts_with(&format!("{would}approved\n")),
        "{said:?}"
    );
    assert!(said.out.ends_with(" runs\n"), "{said:?}");
    desk.world.settle().await;
    assert_eq!(made(&desk).await, 1);
    let said = desk.reeve("plugin approve chameleon").await;
    said.is(0, "plugin chameleon has nothing that needs an approval\n");

    let said = desk.reeve("plugin rollback chameleon --wait").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    desk.world.settle().await;
    assert_eq!(made(&desk).await, 2);
    let said = desk.reeve("plugin rollback chameleon").await;
    let already = "error: plugin chameleon is rolled back already: rolled back on request from";
    assert!(said.err.starts_with(already), "{said:?}");
    // What comes meanwhile and is held changes nothing of that.
    deliver(&desk, 0).await;
    let said = desk.reeve("plugin rollback chameleon --running").await;
    let already = "plugin chameleon is rolled back already; --undo returns";
    assert!(said.err.contains(already), "{said:?}");
    let said = desk.reeve("plugin rollback chameleon --undo --wait").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out
            .contains("runs again; the newest version does not: UpgradeHeld"),
        "{said:?}"
    );
    desk.world.settle().await;
    assert_eq!(made(&desk).await, 1);
    deliver(&desk, 1).await;
    let said = desk.reeve("plugin rollback chameleon --wait").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    desk.world.settle().await;
    assert_eq!(made(&desk).await, 2);
    let said = desk.reeve("plugin rollback chameleon --undo --wait").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    desk.world.settle().await;
    assert_eq!(made(&desk).await, 1);
    let said = desk.reeve("plugin rollback chameleon --undo").await;
    assert!(
        said.out.contains("is not rolled back") || said.err.contains("is not rolled back"),
        "{said:?}"
    );
}
