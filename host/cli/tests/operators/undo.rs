//! `reeve undo`.

use super::Desk;
use reeve_it::{AGENT, NAMESPACE, core_reference, guest, profile_reference};
use serde_json::{Value, json};

/// A cluster with the chameleon, which writes objects of this kind.
async fn desk(writes: &str) -> Desk {
    let mut desk = Desk::new().await;
    desk.world.start();
    let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]}]);
    let account = json!({"kind": "ServiceAccount", "name": "chameleon", "namespace": NAMESPACE});
    desk.world.role("secrets-account", &rules, &account).await;
    let agent = json!({"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"});
    desk.world.role("secrets-agent", &rules, &agent).await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org", "scope": "namespace-named-like-primary",
        "writes": writes, "reconcile": {"do": "nothing", "meant": true},
    });
    let data = [("plugin.wasm", guest("chameleon"))];
    desk.world.install("chameleon", &data, Some(config)).await;
    desk.world.tenant("alice", &[]).await;
    desk.world.settle().await;
    desk
}

/// Has the chameleon return this object, or nothing, and waits until that is so.
async fn want(desk: &Desk, object: &Value, wanted: bool, there: impl Fn(&Value) -> bool) {
    let deed = match wanted {
        false => json!({"do": "nothing", "meant": true}),
        true => json!({"do": "raw", "text": object.to_string()}),
    };
    let patch = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": deed.to_string()}}});
    desk.world.edit(&profile_reference("alice"), patch).await;
    for _ in 0..10_000 {
        desk.world.settle().await;
        let live = desk.world.get(object).await;
        if live.is_some_and(|live| there(&live)) == wanted {
            return;
        }
    }
    panic!("{object} has not come to be as it is wanted");
}

/// The first entry of this operation that the journal has.
async fn entry(desk: &Desk, operation: &str) -> String {
    let listed = desk.reeve("undo").await;
    let mut lines = listed.out.lines();
    let line = lines.find(|line| line.split_whitespace().nth(1) == Some(operation));
    let line = line.unwrap_or_else(|| panic!("no {operation}: {}", listed.out));
    line.split_whitespace().next().unwrap().to_owned()
}

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

/// What is in a Secret is in no journal, and whoever restores one is told so.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_comes_back_without_its_data() {
    let desk = desk("Secret.v1").await;
    let mut secret = core_reference("Secret", "alice", "login");
    secret["metadata"]["labels"] = json!({"app": "web"});
    secret["stringData"] = json!({"password": "correct-horse"});
    want(&desk, &secret, true, |_| true).await;
    want(&desk, &secret, false, |_| true).await;
    let listed = desk.reeve("undo").await;
    assert!(listed.out.contains("cannot restore /data"), "{listed:?}");
    let entry = entry(&desk, "Delete").await;
    let (code, done) = desk.json(&format!("undo {entry} --dry-run")).await;
    assert_eq!((code, &done[0]["omitted"]), (Some(0), &json!(["/data"])));
    let done = desk.reeve(&format!("undo {entry}")).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    for part in [
        "Secret alice/login: created",
        "without /data: set it yourself",
    ] {
        assert!(done.out.contains(part), "{part}: {done:?}");
    }
    let back = desk.world.get(&secret).await.unwrap();
    assert_eq!(back["metadata"]["labels"], json!({"app": "web"}));
    assert_eq!(back.get("data"), None, "{back}");
}

/// What was made anew since it cannot be changed cannot be put back in the place of what
/// is there now.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_anew_comes_back_when_there_is_room() {
    let desk = desk("ConfigMap.v1").await;
    let sealed = |value: &str| {
        let mut object = core_reference("ConfigMap", "alice", "sealed");
        object["metadata"]["annotations"] = json!({"reeve.dev/sync-options": "Force=true"});
        object["data"] = json!({"text": value});
        object["immutable"] = json!(true);
        object
    };
    for value in ["old", "new"] {
        let is = |live: &Value| live["data"]["text"] == value;
        want(&desk, &sealed(value), true, is).await;
    }
    let entry = entry(&desk, "Recreate").await;
    let refused = desk.reeve(&format!("undo {entry}")).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for part in ["ConfigMap alice/sealed: not restored: ", "delete it, and"] {
        assert!(refused.out.contains(part), "{part}: {refused:?}");
    }
    let live = desk.world.get(&sealed("")).await.unwrap();
    assert_eq!(live["data"]["text"], "new");
    want(&desk, &sealed("new"), false, |_| true).await;
    let done = desk.reeve(&format!("undo {entry}")).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let back = desk.world.get(&sealed("")).await.unwrap();
    assert_eq!(back["data"], json!({"text": "old"}));
    assert_eq!(back["immutable"], true);
}
