//! What happens to volumes that exist: kept while nobody can tell, made anew where
//! they cannot be changed, withdrawn with the pods that mount them.

use reeve_sdk::prelude::*;

use super::*;

const VOLUME: &str = "PersistentVolume alice-fdi-unclassified-wbd";
const CLAIM: &str = "PersistentVolumeClaim fdi-wbd-unclassified";

/// Alice's one bucket.
fn wbd() -> Value {
    described(&json!([bucket("wbd", "wbd")]))
}

fn settled() -> Outcome {
    let outcome = run(&main_config(), Context::test().with_object(wbd()));
    assert_eq!(names(&outcome), [VOLUME, CLAIM]);
    outcome
}

/// The cluster with a volume and claim as they are once applied, with a change.
fn with(map: Value, phases: [&str; 2], change: impl Fn(&mut Value)) -> Context {
    let mut cx = Context::test().with_object(map);
    for (object, phase) in settled().objects_json().into_iter().zip(phases) {
        let mut object = applied(object, phase);
        change(&mut object);
        cx = cx.with_object(object);
    }
    cx
}

#[test]
fn what_is_as_it_should_be_stays() {
    let outcome = run(
        &main_config(),
        converged(&settled(), Context::test().with_object(wbd())),
    );
    assert_eq!(outcome, settled());
    // The server has filled in what nobody said.
    let filled = with(wbd(), ["Bound", "Bound"], |object| {
        object["spec"]["volumeMode"] = json!("Filesystem");
        if object["kind"] == "PersistentVolume" {
            object["spec"]["claimRef"]["uid"] = json!("7");
        }
    });
    assert_eq!(run(&main_config(), filled), settled());
}

#[test]
fn what_cannot_be_changed_goes_first() {
    let none: [&str; 0] = [];
    let change = |kind: &'static str, path: &'static str, value: Value| {
        move |object: &mut Value| {
            if object["kind"] == kind {
                *object.pointer_mut(path).unwrap() = value.clone();
            }
        }
    };
    let volume = "PersistentVolume";
    let claim = "PersistentVolumeClaim";
    let attribute = "/spec/csi/volumeAttributes/containerName";
    for change in [
        change(volume, attribute, json!("other")),
        change(
            volume,
            "/spec/csi/nodeStageSecretRef/name",
            json!("old-secret"),
        ),
        change(volume, "/spec/csi/readOnly", json!(false)),
        change(claim, "/spec/accessModes", json!(["ReadWriteMany"])),
        change(claim, "/spec/resources/requests/storage", json!("2T")),
        change(claim, "/spec/volumeName", json!("other")),
    ] {
        let cx = with(wbd(), ["Bound", "Bound"], change);
        assert_eq!(names(&run(&main_config(), cx)), none);
    }
    // What can be changed, is.
    let cx = with(wbd(), ["Bound", "Bound"], |object| {
        if object["kind"] == "PersistentVolume" {
            object["spec"]["mountOptions"] = json!([]);
            object["spec"]["capacity"] = json!({"storage": "1T"});
        }
    });
    assert_eq!(run(&main_config(), cx), settled());
}

#[test]
fn an_amount_that_the_server_writes_in_another_way_is_no_change() {
    for (capacity, size, spellings) in [
        (1, "1T", &["1000G", "1e12", "1T"][..]),
        (999, "999T", &["999T"]),
        (1000, "1P", &["1000T", "1P", "1e15"]),
        (1024, "1024T", &["1024T", "1024000G"]),
        (1500, "1500T", &["1.5P", "1500T"]),
        (20_000, "20P", &["20P", "20000T"]),
        (1_000_000, "1E", &["1000P", "1E"]),
        (u32::MAX, "4294967295T", &["4294967295T"]),
    ] {
        let mut config = main_config();
        config["fdi"]["unclassified"]["capacity"] = json!(capacity);
        let settled = run(&config, Context::test().with_object(wbd()));
        let objects = settled.objects_json();
        assert_eq!(objects[0]["spec"]["capacity"]["storage"], size);
        assert_eq!(objects[1]["spec"]["resources"]["requests"]["storage"], size);
        for spelling in spellings {
            let mut cx = Context::test().with_object(wbd());
            for mut object in settled.objects_json() {
                let path = match object["kind"] == "PersistentVolume" {
                    true => "/spec/capacity/storage",
                    false => "/spec/resources/requests/storage",
                };
                *object.pointer_mut(path).unwrap() = json!(spelling);
                cx = cx.with_object(applied(object, "Bound"));
            }
            assert_eq!(run(&config, cx), settled, "{spelling}");
        }
        // Almost is not the same.
        let mut cx = Context::test().with_object(wbd());
        for mut object in settled.objects_json() {
            if let Some(amount) = object.pointer_mut("/spec/resources/requests/storage") {
                *amount = json!(format!("{capacity}000000000001k"));
            }
            cx = cx.with_object(applied(object, "Bound"));
        }
        assert!(names(&run(&config, cx)).is_empty());
    }
}

#[test]
fn a_volume_without_its_claim_and_a_claim_without_its_volume_are_made_anew() {
    for (phases, left) in [
        (["Released", "Pending"], &[CLAIM][..]),
        (["Failed", "Pending"], &[CLAIM]),
        (["Available", "Lost"], &[VOLUME]),
        (["Available", "Pending"], &[VOLUME, CLAIM]),
    ] {
        let outcome = run(&main_config(), with(wbd(), phases, |_| ()));
        assert_eq!(names(&outcome), left, "{phases:?}");
    }
}

/// The API server keeps it until its claim is gone.
#[test]
fn a_volume_that_is_deleted_under_its_claim_takes_it_along() {
    let going = |kind: &'static str| {
        move |object: &mut Value| {
            if object["kind"] == kind {
                object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
        }
    };
    let run_with = |kind| run(&main_config(), with(wbd(), ["Bound", "Bound"], going(kind)));
    assert!(names(&run_with("PersistentVolume")).is_empty());
    // A claim that goes is waited for, and is no reason to delete its volume.
    assert_eq!(names(&run_with("PersistentVolumeClaim")), [VOLUME, CLAIM]);
    // Nor does one that is claimed no more take its claim's successor along.
    for phase in ["Released", "Failed", "Available"] {
        let cx = with(wbd(), [phase, "Pending"], going("PersistentVolume"));
        assert!(
            names(&run(&main_config(), cx)).contains(&CLAIM.to_owned()),
            "{phase}"
        );
    }
}

#[test]
fn what_others_made_is_not_looked_at() {
    let cx = with(wbd(), ["Released", "Lost"], |object| {
        object["metadata"]["labels"] = json!({"kubeflow-profile": "alice"});
    });
    // The host says whose it is.
    assert_eq!(run(&main_config(), cx), settled());
}

#[test]
fn without_a_whole_answer_nothing_is_withdrawn() {
    let gone = |text: &str| {
        map(&[
            ("unclassified-internal", text),
            ("unclassified-external", "[]"),
            ("protected-b-internal", "[]"),
            ("protected-b-external", "[]"),
        ])
    };
    let place =
        "ConfigMap daaas-system/fdi-aaw-configuration: data[\"fdi-unclassified-internal.json\"]";
    let stays = ". Volumes that came of it stay as they are until that is mended";
    for (text, problem) in [
        ("{}", format!("{place}: no array of buckets{stays}")),
        (
            "?",
            format!("{place}: no JSON: not JSON: expected a JSON value at byte 0{stays}"),
        ),
    ] {
        let cx = with(gone(text), ["Bound", "Bound"], |_| ());
        let outcome = run(&main_config(), cx);
        assert_eq!(outcome.objects_json(), settled().objects_json(), "{text}");
        assert_eq!(condition(&outcome, "SourcesUsable"), Some(&*problem));
        assert!(outcome.events().is_empty());
    }
    // A key that is missing, and all of them.
    let missing = map(&[
        ("unclassified-external", "[]"),
        ("protected-b-internal", "[]"),
        ("protected-b-external", "[]"),
    ]);
    let outcome = run(&main_config(), with(missing, ["Bound", "Bound"], |_| ()));
    assert_eq!(outcome.objects_json(), settled().objects_json());
    assert_eq!(
        condition(&outcome, "SourcesUsable"),
        Some(&*format!("{place}: there is no such key{stays}"))
    );
    let mut cx = Context::test();
    for object in settled().objects_json() {
        cx = cx.with_object(applied(object, "Bound"));
    }
    let outcome = run(&main_config(), cx);
    assert_eq!(outcome.objects_json(), settled().objects_json());
    let told = condition(&outcome, "SourcesUsable").unwrap();
    assert_eq!(told.matches("it does not exist").count(), 4);
}

#[test]
fn a_whole_answer_decides_for_its_account_and_no_other() {
    let none: [&str; 0] = [];
    let answers = |internal: &str, external: &str| {
        map(&[
            ("unclassified-internal", internal),
            ("unclassified-external", external),
            ("protected-b-internal", "?"),
            ("protected-b-external", "?"),
        ])
    };
    let others = r#"[{"bucketName": "bobs", "readers": ["bob"]}]"#;
    for (internal, external, left) in [
        (others, others, &none[..]),
        (others, "[]", &none),
        (others, "?", &none),
        ("?", others, &[VOLUME, CLAIM]),
        ("?", "[]", &[VOLUME, CLAIM]),
    ] {
        let cx = with(answers(internal, external), ["Bound", "Bound"], |_| ());
        assert_eq!(
            names(&run(&main_config(), cx)),
            left,
            "{internal} {external}"
        );
    }
    // Where two are about one account, both decide.
    let mut shared = main_config();
    shared["fdi"]["unclassified"]["externalStorageAccount"] = json!("uncint");
    for (internal, external, left) in [
        (others, "?", &[VOLUME, CLAIM][..]),
        (others, "[]", &none),
        (others, others, &none),
    ] {
        let cx = with(answers(internal, external), ["Bound", "Bound"], |_| ());
        assert_eq!(names(&run(&shared, cx)), left, "{internal} {external}");
    }
    // The claim stays also when its volume is gone.
    let mut cx = Context::test().with_object(answers("?", "?"));
    cx = cx.with_object(applied(settled().objects_json().remove(1), "Lost"));
    assert_eq!(names(&run(&main_config(), cx)), [CLAIM]);
}

#[test]
fn volumes_of_instances_do_not_wait_for_descriptions() {
    let mut config = main_config();
    config["instances"] =
        json!([{"name": "own", "classification": "unclassified", "secretRef": "s"}]);
    let outcome = run(&config, Context::test());
    assert_eq!(
        names(&outcome),
        ["PersistentVolume alice-own", "PersistentVolumeClaim own"]
    );
    // And one that is no longer wanted goes.
    let cx = converged(&outcome, Context::test());
    assert!(names(&run(&main_config(), cx)).is_empty());
}

#[test]
fn pods_on_claims_that_are_going_end_only_where_that_is_wanted() {
    let pod = |name: &str, claim: Option<&str>| {
        let volume = match claim {
            Some(claim) => json!({"name": "v", "persistentVolumeClaim": {"claimName": claim}}),
            None => json!({"name": "v", "emptyDir": {}}),
        };
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "alice", "uid": name},
            "spec": {"volumes": [volume]},
        })
    };
    let ended = Kind::new("v1", "Pod")
        .object("lab")
        .in_namespace("alice")
        .if_uid("lab");
    let going = |object: &mut Value| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")
    };
    let still = |_: &mut Value| ();
    let gone = described(&json!([bucket("other", "other")]));
    type Change<'a> = &'a dyn Fn(&mut Value);
    for (map, change, setting, ends) in [
        // The host may hold back what is withdrawn.
        (&gone, &still as Change<'_>, json!(true), false),
        (&gone, &going, json!(true), true),
        (&gone, &going, json!(false), false),
        // Somebody deleted a claim that is wanted.
        (&wbd(), &going, json!(true), false),
    ] {
        let cx = with(map.clone(), ["Bound", "Bound"], change)
            .with_object(pod("lab", Some("fdi-wbd-unclassified")))
            .with_object(pod("other", Some("other")))
            .with_object(pod("none", None));
        let mut config = main_config();
        config["deletePods"] = setting;
        let outcome = run(&config, cx);
        let expected: &[Absence] = if ends {
            std::slice::from_ref(&ended)
        } else {
            &[]
        };
        assert_eq!(outcome.absences(), expected);
    }
}
