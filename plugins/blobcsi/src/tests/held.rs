//! What bad input costs: what it is about, and nothing else.

use reeve_sdk::prelude::*;

use super::*;

const URL: &str = "http://opa.unclassified:8181/v1/data";

fn config() -> Value {
    json!({
        "fdi": {
            "tenantId": "tenant",
            "clientIds": {"sp": "client"},
            "unclassified": {
                "opaEndpoint": URL,
                "storageAccount": "uncacct",
                "resourceGroup": "rg",
                "principal": {"secretName": "own-secret", "clientId": "own"},
            },
            "protectedB": {
                "opaEndpoint": "http://opa.protected-b:8181/v1/data",
                "storageAccount": "prbacct",
                "resourceGroup": "rg",
            },
        },
    })
}

fn answering(buckets: &Value) -> Context {
    let protected_b = json!({"result": {"prb": {"readers": ["carol"]}}});
    Context::test()
        .with_source("unclassified", json!({"result": buckets}).to_string())
        .with_source("protected-b", protected_b.to_string())
}

/// A bucket of the second generation that alice may read.
fn named(label: &str) -> Value {
    json!({"readers": ["alice"], "name": label, "spn": "sp"})
}

/// Three buckets that alice may read, the last of the first generation.
fn settled() -> Outcome {
    let buckets =
        json!({"one": named("first"), "one/x": named("inner"), "two": {"readers": ["alice"]}});
    let outcome = run(&config(), answering(&buckets));
    assert_eq!(volumes(&outcome), ["first", "inner", "two"]);
    outcome
}

/// What volumes there are, by what they are called, sorted. Each has its claim.
fn volumes(outcome: &Outcome) -> Vec<String> {
    let of = |kind: &str| {
        let names = names(outcome);
        let names = names.iter().filter_map(|name| name.strip_prefix(kind));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut labels = of("PersistentVolume alice-fdi-unclassified-");
    labels.sort();
    let mut claims = of("PersistentVolumeClaim ");
    for claim in &mut claims {
        let label = claim.strip_suffix("-unclassified").unwrap();
        *claim = label.trim_start_matches("fdi-").to_owned();
    }
    claims.sort();
    assert_eq!(labels, claims);
    labels
}

#[test]
fn a_bucket_that_cannot_be_read_costs_no_other() {
    let settled = settled();
    let reads = json!({"readers": ["alice"]});
    for (buckets, left, told) in [
        // What is gone goes, and what is new is made.
        (
            json!({"one": 1, "new": reads}),
            &["first", "new"][..],
            Some("one: no object"),
        ),
        (
            json!({"one/x": {"readers": "alice"}, "two": reads}),
            &["inner", "two"],
            Some("one/x: readers is no array of namespaces"),
        ),
        // By its label, if it is in another container now.
        (
            json!({"other": {"readers": 1, "name": "Inner"}}),
            &["inner"],
            Some("other: readers is no array of namespaces"),
        ),
        (
            json!({"one": {"readers": ["bob", "alice"], "name": 1, "spn": 1}}),
            &["first"],
            Some("one: name is no text; spn is no text"),
        ),
        // Who may not read it is told apart from what else is wrong.
        (json!({"one": {"readers": ["bob"], "spn": 1}}), &[], None),
        // What was never there is not made.
        (
            json!({"three": {"readers": ["alice"], "spn": 1}}),
            &[],
            Some("three: spn is no text"),
        ),
    ] {
        let outcome = run(&config(), converged(&settled, answering(&buckets)));
        assert_eq!(volumes(&outcome), left, "{buckets}");
        let told = told.map(|told| {
            format!("OPA gateway {URL}: {told}. Volumes that came of it stay as they are until that is mended")
        });
        assert_eq!(
            condition(&outcome, "SourcesUsable"),
            told.as_deref(),
            "{buckets}"
        );
        // It names the bucket, so there is something to do about it.
        let events: Vec<&str> = outcome
            .events()
            .iter()
            .map(|event| &*event.message)
            .collect();
        assert_eq!(events, told.as_deref().as_slice(), "{buckets}");
        // As they are, in each field.
        for object in outcome.objects_json() {
            let is_new = object["metadata"]["name"].as_str().unwrap().contains("new");
            assert!(
                is_new || settled.objects_json().contains(&object),
                "{object}"
            );
        }
    }
}

#[test]
fn where_nobody_can_tell_which_bucket_it_is_all_of_the_account_stay() {
    let config = main_config();
    let described = |internal: &Value, external: &Value| {
        Context::test().with_object(map(&[
            ("unclassified-internal", &internal.to_string()),
            ("unclassified-external", &external.to_string()),
            ("protected-b-internal", "[]"),
            ("protected-b-external", "[]"),
        ]))
    };
    let settled = run(
        &config,
        described(
            &json!([bucket("aaa", "in")]),
            &json!([bucket("bbb", "out")]),
        ),
    );
    assert_eq!(volumes(&settled), ["in", "out"]);
    let other = bucket("ccc", "other");
    let place = "ConfigMap daaas-system/fdi-aaw-configuration: \
                 data[\"fdi-unclassified-internal.json\"]: item 0: ";
    let stay = "Volumes that came of it stay as they are until that is mended";
    let any = "so nobody can tell which bucket it is about, and it may be any of storage account \
               uncint (unclassified)";
    for (entry, left, told) in [
        (json!(1), &["in", "other"][..], format!("no object, {any}")),
        (json!({}), &["in", "other"], format!("no bucketName, {any}")),
        (
            json!({"bucketName": 1, "readers": ["alice"]}),
            &["in", "other"],
            format!("bucketName is no text, {any}"),
        ),
        // What it is called is enough.
        (
            json!({"bucketName": 1, "pvName": "in"}),
            &["in", "other"],
            "bucketName is no text".to_owned(),
        ),
        (
            json!({"bucketName": 1, "pvName": "else"}),
            &["other"],
            "bucketName is no text".to_owned(),
        ),
        (
            json!({"bucketName": "aaa", "subfolder": 1}),
            &["in", "other"],
            "aaa: subfolder is no text".to_owned(),
        ),
    ] {
        let cx = described(&json!([entry, other]), &json!([bucket("ddd", "out2")]));
        let outcome = run(&config, converged(&settled, cx));
        let mut left = left.to_vec();
        left.push("out2");
        assert_eq!(volumes(&outcome), left, "{entry}");
        assert_eq!(
            condition(&outcome, "SourcesUsable"),
            Some(&*format!("{place}{told}. {stay}")),
            "{entry}"
        );
    }
    // It is not about who is not among its readers.
    let entry = json!({"bucketName": 1, "readers": ["bob"]});
    let outcome = run(
        &config,
        converged(&settled, described(&json!([entry, other]), &json!([]))),
    );
    assert_eq!(volumes(&outcome), ["other", "out"]);
    assert_eq!(condition(&outcome, "SourcesUsable"), None);
}

#[test]
fn an_answer_that_names_no_bucket_at_all_is_not_believed_unless_it_may_be() {
    let settled = settled();
    let told = |count: usize| {
        format!(
            "OPA gateway {URL}: it names no bucket at all, which would withdraw every volume that came \
             of it, {count} here; if that is meant, set /fdi/unclassified/allowEmptyAnswer to true in \
             config.yaml"
        )
    };
    let mut allowing = config();
    allowing["fdi"]["unclassified"]["allowEmptyAnswer"] = json!(true);
    let mut of_other_class = config();
    of_other_class["fdi"]["protectedB"]["allowEmptyAnswer"] = json!(true);
    let none: &[&str] = &[];
    for buckets in [json!({}), json!({"httpapi": {"authz": {}}})] {
        for config in [config(), of_other_class.clone()] {
            let outcome = run(&config, converged(&settled, answering(&buckets)));
            assert_eq!(volumes(&outcome), ["first", "inner", "two"]);
            let expected = Condition::holds("KeptOnEmptyAnswer", "EmptyAnswer", told(3));
            assert_eq!(outcome.conditions(), [expected]);
        }
        let outcome = run(&allowing, converged(&settled, answering(&buckets)));
        assert_eq!(volumes(&outcome), none);
        assert!(outcome.conditions().is_empty());
        // Who has nothing has nothing to lose.
        let outcome = run(&config(), answering(&buckets));
        assert_eq!(volumes(&outcome), none);
        assert!(outcome.conditions().is_empty());
        let cx = converged(&settled, answering(&buckets));
        let bob = try_run("bob", &config(), cx).unwrap();
        assert!(bob.objects_json().is_empty() && bob.conditions().is_empty());
    }
    // As long as any bucket is named, each may be withdrawn, the last of a Profile as well.
    for buckets in [
        json!({"bobs": {"readers": ["bob"]}}),
        json!({"one": {"readers": [], "name": "first", "spn": "sp"}}),
    ] {
        let outcome = run(&config(), converged(&settled, answering(&buckets)));
        assert_eq!(volumes(&outcome), none);
        assert!(outcome.conditions().is_empty());
    }
    // A claim that has lost its volume stays with the others.
    let mut cx = answering(&json!({}));
    for object in settled.objects_json() {
        if object["metadata"]["name"] != "alice-fdi-unclassified-two" {
            cx = cx.with_object(applied(object, "Bound"));
        }
    }
    let outcome = run(&config(), cx);
    assert_eq!(outcome.objects_json().len(), 5);
    assert_eq!(condition(&outcome, "KeptOnEmptyAnswer"), Some(&*told(3)));
    // A storage account by another name has the answer of the same gateway.
    let mut moved = config();
    moved["fdi"]["unclassified"]["storageAccount"] = json!("another");
    let outcome = run(&moved, converged(&settled, answering(&json!({}))));
    assert_eq!(volumes(&outcome), ["first", "inner", "two"]);
    let outcome = run(&moved, converged(&settled, answering(&json!({"one": 1}))));
    assert_eq!(volumes(&outcome), ["first"]);
}

#[test]
fn of_the_keys_of_the_configmap_one_may_be_empty_as_long_as_it_had_nothing() {
    let config = main_config();
    let of = |internal: &str, external: &str| {
        Context::test().with_object(map(&[
            ("unclassified-internal", internal),
            ("unclassified-external", external),
            ("protected-b-internal", "[]"),
            ("protected-b-external", "[]"),
        ]))
    };
    let all = json!([bucket("aaa", "in"), bucket("bbb", "in2")]).to_string();
    let settled = run(&config, of(&all, "[]"));
    assert_eq!(volumes(&settled), ["in", "in2"]);
    assert!(settled.conditions().is_empty());
    let less = json!([bucket("aaa", "in")]).to_string();
    let outcome = run(&config, converged(&settled, of(&less, "[]")));
    assert_eq!(volumes(&outcome), ["in"]);
    assert!(outcome.conditions().is_empty());
    let new = json!([bucket("ccc", "out")]).to_string();
    let outcome = run(&config, converged(&settled, of("[]", &new)));
    assert_eq!(volumes(&outcome), ["in", "in2", "out"]);
    let told = condition(&outcome, "KeptOnEmptyAnswer").unwrap();
    assert!(told.starts_with("ConfigMap daaas-system/fdi-aaw-configuration: "));
    assert_eq!(told.matches("names no bucket").count(), 1);
}

#[test]
fn a_bucket_that_cannot_be_used_any_more_keeps_what_it_has() {
    let settled = settled();
    let buckets =
        json!({"one": named("first"), "three": named("third"), "two": {"readers": ["alice"]}});
    let mut unknown = config();
    unknown["fdi"]["clientIds"] = json!({});
    let outcome = run(&unknown, converged(&settled, answering(&buckets)));
    assert_eq!(volumes(&outcome), ["first", "two"]);
    let told = condition(&outcome, "BucketsUsable").unwrap();
    assert_eq!(told.matches("service principal sp is not known").count(), 2);
    // With the right to read it goes.
    let buckets = json!({"one": {"readers": ["bob"], "name": "first", "spn": "sp"}});
    let outcome = run(&unknown, converged(&settled, answering(&buckets)));
    assert!(outcome.objects_json().is_empty() && outcome.conditions().is_empty());
}

#[test]
fn pods_that_mount_what_is_held_go_on() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "lab", "namespace": "alice", "uid": "lab"},
        "spec": {"volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "two-unclassified"}},
        ]},
    });
    let mut config = config();
    config["deletePods"] = json!(true);
    for (buckets, ended) in [
        (json!({}), 0),
        (json!({"two": 1}), 0),
        (json!({"three": 1}), 1),
    ] {
        let mut cx = answering(&buckets).with_object(pod.clone());
        for mut object in settled().objects_json() {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            cx = cx.with_object(applied(object, "Bound"));
        }
        assert_eq!(run(&config, cx).absences().len(), ended, "{buckets}");
    }
}
