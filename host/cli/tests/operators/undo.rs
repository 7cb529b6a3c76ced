//! `reeve undo`.

use super::Desk;
use reeve_it::{core_reference, guest, profile_reference};
use serde_json::json;

/// Has the chameleon return this ConfigMap for alice, or nothing.
async fn tell(desk: &Desk, data: Option<&str>) {
    let deed = match data {
        None => json!({"do": "nothing", "meant": true}),
        Some(value) => {
            let mut object = core_reference("ConfigMap", "alice", "notes");
            object["data"] = json!({"text": value});
            json!({"do": "raw", "text": object.to_string()})
        }
    };
    let patch = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": deed.to_string()}}});
    desk.world.edit(&profile_reference("alice"), patch).await;
    // In real time the agent may not have heard yet.
    let notes = core_reference("ConfigMap", "alice", "notes");
    for _ in 0..10_000 {
        desk.world.settle().await;
        if desk.world.get(&notes).await.is_some() == data.is_some() {
            return;
        }
    }
    panic!("{data:?} has not come");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_comes_back_with_its_data() {
    let mut desk = Desk::new().await;
    desk.world.start();
    desk.reeve("undo").await.is(
        0,
        "the journal is empty: nothing was deleted or overwritten\n",
    );
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        "reconcile": {"do": "nothing", "meant": true},
    });
    let data = [("plugin.wasm", guest("chameleon"))];
    desk.world.install("chameleon", &data, Some(config)).await;
    desk.world.tenant("alice", &[]).await;
    desk.world.settle().await;
    tell(&desk, Some("remember me")).await;
    tell(&desk, None).await;

    let listed = desk.reeve("undo").await;
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    for part in ["Delete", "ConfigMap alice/notes", "by chameleon"] {
        assert!(listed.out.contains(part), "{part}: {}", listed.out);
    }
    let entry = listed.out.split_whitespace().next().unwrap().to_owned();
    let notes = core_reference("ConfigMap", "alice", "notes");

    // To look changes nothing.
    let tried = desk.reeve(&format!("undo {entry} --dry-run")).await;
    assert_eq!(tried.code, Some(0), "{}", tried.err);
    assert!(tried.out.contains("would be created"), "{}", tried.out);
    assert_eq!(desk.world.get(&notes).await, None);

    let done = desk.reeve(&format!("undo {entry}")).await;
    assert_eq!(done.code, Some(0), "{}", done.err);
    let back = desk.world.get(&notes).await.unwrap();
    assert_eq!(back["data"], json!({"text": "remember me"}));
    // It belongs to nobody, and so it stays.
    assert_eq!(back["metadata"].get("labels"), None, "{back}");
    assert_eq!(back["metadata"].get("ownerReferences"), None, "{back}");
    desk.world.settle().await;
    assert!(desk.world.get(&notes).await.is_some());

    // What is there again is left alone, and that is told.
    let again = desk.reeve(&format!("undo {entry}")).await;
    assert_eq!(again.code, Some(1), "{}", again.out);
    let said = format!("{}{}", again.out, again.err);
    assert!(
        said.contains("there is an object of that name again"),
        "{said}"
    );
    let none = desk.reeve("undo nothing").await;
    assert_eq!(none.code, Some(2), "{}", none.out);
    assert!(
        none.err.contains("the journal has no entry nothing"),
        "{}",
        none.err
    );
}
