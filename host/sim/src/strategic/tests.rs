//! Patches of built-in types, and what they come to.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::*;
use crate::decode;

fn patched(api_version: &str, kind: &str, object: Value, patch: Value) -> Result<Value, String> {
    let ty = decode::type_of_kind(api_version, kind).unwrap();
    let map = |value: Value| -> Map<String, Value> { serde_json::from_value(value).unwrap() };
    let mut object = map(object);
    merge(ty, &mut object, map(patch)).map_err(|error| error.to_string())?;
    Ok(Value::Object(object))
}

#[track_caller]
fn check(api_version: &str, kind: &str, object: Value, patch: Value, expected: Value) {
    let patched = patched(api_version, kind, object, patch);
    assert_eq!(patched, Ok(expected));
}

/// As `check`, of the spec of a Pod.
#[track_caller]
fn check_pod(spec: Value, patch: Value, expected: Value) {
    let wrap = |spec: Value| json!({ "spec": spec });
    check("v1", "Pod", wrap(spec), wrap(patch), wrap(expected));
}

#[track_caller]
fn refused(spec: Value, patch: Value, expected: &str) {
    let patched = patched("v1", "Pod", json!({"spec": spec}), json!({"spec": patch}));
    assert_eq!(patched.unwrap_err(), expected);
}

#[test]
fn maps_merge_and_null_removes() {
    check(
        "v1",
        "ConfigMap",
        json!({"data": {"x": "1", "y": "2"}, "immutable": true}),
        json!({"data": {"x": null, "z": "3"}, "immutable": null}),
        json!({"data": {"y": "2", "z": "3"}}),
    );
    check(
        "v1",
        "ConfigMap",
        json!({"data": {"x": "1", "y": "2"}}),
        json!({"data": {"$retainKeys": ["y", "z"], "z": "1"}}),
        json!({"data": {"y": "2", "z": "1"}}),
    );
    check(
        "v1",
        "ConfigMap",
        json!({"data": {"x": "1"}}),
        json!({"data": {"$patch": "replace", "z": "1"}}),
        json!({"data": {"z": "1"}}),
    );
    // What replaces nothing is nothing.
    check(
        "v1",
        "ConfigMap",
        json!({}),
        json!({"data": {"$patch": "replace", "z": "1"}}),
        json!({}),
    );
}

#[test]
fn keyed_lists_merge_by_key() {
    check_pod(
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}),
        json!({"containers": [
            {"name": "a", "image": "2"},
            {"name": "b", "$patch": "delete"},
            {"name": "c", "ports": [{"containerPort": 1, "name": "x"}]},
        ]}),
        json!({"containers": [
            {"name": "a", "image": "2"},
            {"name": "c", "ports": [{"containerPort": 1, "name": "x"}]},
        ]}),
    );
    check(
        "v1",
        "Service",
        json!({"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}}),
        json!({"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}),
        json!({"spec": {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}]}}),
    );
    check_pod(
        json!({"containers": [{"name": "a"}, {"name": "b"}]}),
        json!({"containers": [{"name": "c"}, {"$patch": "replace"}]}),
        json!({"containers": [{"name": "c"}]}),
    );
    // New ones come first, and the others stay in their order.
    check_pod(
        json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
        json!({"containers": [{"name": "d"}, {"name": "b", "image": "x"}]}),
        json!({"containers": [
            {"name": "d"}, {"name": "a"}, {"name": "b", "image": "x"}, {"name": "c"},
        ]}),
    );
}

#[test]
fn lists_merge_as_their_type_says_and_not_as_they_are_called() {
    check(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        json!({"webhooks": [{"name": "a", "sideEffects": "None", "clientConfig": {"url": "u"}}]}),
        json!({"webhooks": [{"name": "a", "clientConfig": {"caBundle": "eA=="}}]}),
        json!({"webhooks": [{
            "name": "a", "sideEffects": "None",
            "clientConfig": {"url": "u", "caBundle": "eA=="},
        }]}),
    );
    check(
        "policy/v1",
        "PodDisruptionBudget",
        json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}}),
        json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}}),
        json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}}),
    );
    check(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        json!({"ports": [{"name": "a", "port": 80}]}),
        json!({"ports": [{"port": 80}]}),
        json!({"ports": [{"port": 80}]}),
    );
    check(
        "v1",
        "Node",
        json!({"spec": {"podCIDRs": ["10.0.0.0/24"]}}),
        json!({"spec": {"podCIDRs": ["fd00::/64"]}}),
        json!({"spec": {"podCIDRs": ["fd00::/64", "10.0.0.0/24"]}}),
    );
}

#[test]
fn other_lists_are_replaced_and_sets_grow() {
    check_pod(
        json!({"containers": [{"name": "a", "args": ["a"]}]}),
        json!({"containers": [{"name": "a", "args": ["b"]}]}),
        json!({"containers": [{"name": "a", "args": ["b"]}]}),
    );
    check(
        "v1",
        "Pod",
        json!({"metadata": {"finalizers": ["x", "y"]}}),
        json!({"metadata": {
            "finalizers": ["z"],
            "$deleteFromPrimitiveList/finalizers": ["x"],
            "$setElementOrder/finalizers": ["z", "y"],
        }}),
        json!({"metadata": {"finalizers": ["z", "y"]}}),
    );
}

#[test]
fn an_order_that_comes_with_a_list_is_kept() {
    check_pod(
        json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
        json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}),
        json!({"containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}]}),
    );
    refused(
        json!({"containers": [{"name": "a"}]}),
        json!({
            "containers": [{"name": "b"}, {"name": "a"}],
            "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
        }),
        "The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:a] map[name:b]]\n",
    );
}

#[test]
fn patches_that_break_the_rules_are_refused() {
    let containers = json!({"containers": [{"name": "a"}]});
    refused(
        containers.clone(),
        json!({"containers": [{"image": "x"}]}),
        "map: map[image:x] does not contain declared merge key: name",
    );
    refused(
        containers.clone(),
        json!({"containers": ["x"]}),
        "list element types are not identical: [[map[name:a]] [x]]",
    );
    refused(
        containers.clone(),
        json!({"containers": [{"name": "a", "$patch": "merge"}]}),
        "merging lists cannot yet be specified in the patch",
    );
    refused(
        containers.clone(),
        json!({"$patch": "merge"}),
        "unknown patch type: merge in map: map[$patch:merge]",
    );
    refused(
        containers.clone(),
        json!({"$retainKeys": ["volumes"], "containers": []}),
        "invalid patch format of retainKeys",
    );
    refused(
        containers.clone(),
        json!({"$setElementOrder/containers": "a"}),
        "expected a []interface {}, but received a string",
    );
    refused(
        containers,
        json!({"$setElementOrder/boxes": []}),
        "unable to find api field in struct PodSpec for the json field \"boxes\"",
    );
}

#[test]
fn long_lists_take_no_longer_than_they_are() {
    let items = |from: usize| -> Vec<Value> {
        let names = from..from + 30_000;
        names.map(|n| json!({"name": format!("v{n}")})).collect()
    };
    let begun = Instant::now();
    let object = json!({"spec": {"volumes": items(0)}});
    let patch = json!({"spec": {"volumes": items(15_000)}});
    let patched = patched("v1", "Pod", object, patch).unwrap();
    assert_eq!(patched["spec"]["volumes"].as_array().unwrap().len(), 45_000);
    // A comparison of each with each would take minutes.
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn messages_show_what_merging_left_of_a_patch() {
    let check = |object: Value, patch: Value, expected: Value| {
        let patch: Map<String, Value> = serde_json::from_value(patch).unwrap();
        assert_eq!(Value::Object(spent(&patch, &object)), expected, "{object}");
    };
    let patch = json!({"metadata": {"labels": {"l": null, "m": "1"}}, "data": null});
    let new = json!({"metadata": {"labels": {"m": "1"}}, "data": null});
    check(json!({}), patch.clone(), new.clone());
    check(json!({"metadata": {}}), patch.clone(), new);
    let labeled = json!({"metadata": {"labels": {"l": "1"}}});
    check(labeled, patch.clone(), patch);
}
