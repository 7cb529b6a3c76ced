//! Whose a container is where nobody can be asked.

use reeve_sdk::prelude::*;

use super::{applied, names, try_run};

fn config() -> Value {
    json!({"instances": [
        {"name": "rw", "classification": "unclassified", "secretRef": "s"},
        {"name": "other", "classification": "unclassified", "secretRef": "t"},
    ]})
}

fn run(profile: &str, cx: Context) -> Outcome {
    try_run(profile, &config(), cx).unwrap()
}

/// With the volumes of a Profile as they were made at a time.
fn made(profile: &str, time: &str, cx: Context) -> Context {
    let objects = run(profile, Context::test()).objects_json();
    objects.into_iter().fold(cx, |cx, object| {
        let mut object = applied(object, "Bound");
        object["metadata"]["creationTimestamp"] = json!(time);
        cx.with_object(object)
    })
}

/// How many objects a Profile has there, and whose its containers are said to be.
fn found(profile: &str, cx: Context) -> (usize, Vec<String>) {
    let outcome = run(profile, cx);
    let told = outcome.conditions().iter().map(|one| one.message.clone());
    (names(&outcome).len(), told.collect())
}

#[test]
fn who_has_a_container_of_another_name_says_so() {
    for (profile, label) in [("a-b", Value::Null), ("a--b", json!("a-b"))] {
        for object in run(profile, Context::test()).objects_json() {
            let labels = &object["metadata"]["labels"];
            let expected = match object["kind"] == "PersistentVolume" {
                true => &label,
                false => &Value::Null,
            };
            assert_eq!(labels["blobcsi.reeve.dev/container"], *expected, "{object}");
        }
    }
}

#[test]
fn who_came_first_has_the_container() {
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    for (first, second) in [
        ("a-b", "a--b"),
        ("a--b", "a-b"),
        ("a--b", "a---b"),
        ("ab", "aba"),
    ] {
        let one = || made(first, early, Context::test());
        assert_eq!(found("alice", one()), (4, vec![]));
        assert_eq!(found(first, one()), (4, vec![]), "{first}");
        let (objects, told) = found(second, one());
        assert_eq!(objects, 0, "{second}");
        assert!(
            told[0].contains(&format!("is that of Profile {first}")),
            "{told:?}"
        );
        let both = || made(second, late, one());
        assert_eq!(found(first, both()), (4, vec![]), "{first}");
        assert_eq!(found(second, both()).0, 0, "{second}");
    }
    // Of two that came together it is that of its name.
    let both = || made("a--b", early, made("a-b", early, Context::test()));
    assert_eq!(found("a-b", both()), (4, vec![]));
    assert_eq!(found("a--b", both()).0, 0);
    // What goes makes room.
    assert_eq!(
        found("a--b", made("a--b", late, Context::test())),
        (4, vec![])
    );
}

#[test]
fn containers_of_other_accounts_and_of_nobody_are_no_rivals() {
    let mut cx = Context::test();
    for mut object in run("a-b", Context::test()).objects_json() {
        if object["kind"] == "PersistentVolume" {
            object = applied(object, "Bound");
            object["spec"]["csi"]["nodeStageSecretRef"]["name"] = json!("elsewhere");
            cx = cx.with_object(object);
        }
    }
    assert_eq!(found("a--b", cx), (4, vec![]));
    let theirs = run("a-b", Context::test()).objects_json();
    let cx = theirs
        .into_iter()
        .fold(Context::test(), Context::with_object);
    assert_eq!(found("a--b", cx), (4, vec![]), "somebody else's volumes");
}
