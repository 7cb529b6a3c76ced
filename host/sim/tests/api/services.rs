//! What Services are given, and what a change of theirs keeps.

use serde_json::{Value, json};

use crate::support::{Http, admin};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

/// Merges into the spec of a Service; the code, and the spec or what is wrong.
async fn patch(http: &Http, name: &str, spec: Value) -> (u16, Value) {
    let path = format!("{SERVICES}/{name}");
    let (code, answer) = http.call("PATCH", &path, json!({ "spec": spec })).await;
    let told = if code == 200 { "spec" } else { "message" };
    (code, answer[told].clone())
}

#[tokio::test]
async fn a_port_that_goes_with_the_type_takes_no_node_ports_along() {
    let (_server, http) = admin();
    let path = format!("{SERVICES}/a");
    // The node ports that are given belong to nobody, and so stay with the merge.
    let both = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    let wanted = service("a", json!({"type": "NodePort", "ports": both}));
    let (code, _) = http.apply(&path, "m", wanted).await;
    assert_eq!(code, 201);
    let one = json!([{"name": "b", "port": 81}]);
    let wanted = service("a", json!({"type": "ClusterIP", "ports": one}));
    let (code, changed) = http.apply(&path, "m", wanted).await;
    assert_eq!(code, 200, "{changed}");
    let expected = json!([{"name": "b", "port": 81, "protocol": "TCP", "targetPort": 81}]);
    assert_eq!(changed["spec"]["ports"], expected);
}

#[tokio::test]
async fn a_port_for_checks_is_given_and_taken_back() {
    let (_server, http) = admin();
    let local = json!({
        "type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}],
    });
    let (code, made) = http.post(SERVICES, service("a", local)).await;
    assert_eq!(code, 201);
    let check = made["spec"]["healthCheckNodePort"].clone();
    assert!(check.is_i64(), "{made}");
    let asking = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": check}]});
    let (code, _) = http.post(SERVICES, service("b", asking.clone())).await;
    assert_eq!(code, 422);

    let (code, why) = patch(&http, "a", json!({"healthCheckNodePort": 30500})).await;
    assert_eq!(code, 422);
    let expected =
        "Service \"a\" is invalid: spec.healthCheckNodePort: Forbidden: field is immutable";
    assert_eq!(why, expected);
    let (_, kept) = patch(&http, "a", json!({"healthCheckNodePort": null})).await;
    assert_eq!(kept["healthCheckNodePort"], check);
    let (_, freed) = patch(&http, "a", json!({"externalTrafficPolicy": "Cluster"})).await;
    assert_eq!(freed["healthCheckNodePort"], Value::Null);
    let (code, made) = http.post(SERVICES, service("b", asking)).await;
    assert_eq!(code, 201, "{made}");
}

#[tokio::test]
async fn families_are_those_of_the_cluster() {
    let (_server, http) = admin();
    let check = async |spec: Value, why: &str| {
        let mut spec = spec;
        spec["ports"] = json!([{"port": 80}]);
        let (code, answer) = http.post(SERVICES, service("a", spec)).await;
        let expected = format!("Service \"a\" is invalid: {why}");
        assert_eq!((code, &answer["message"]), (422, &json!(expected)));
    };
    check(
        json!({"ipFamilyPolicy": "RequireDualStack"}),
        "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured \
         for dual-stack services",
    )
    .await;
    // Nothing else is said of it then.
    check(
        json!({"ipFamilies": ["IPv6"], "sessionAffinity": "x"}),
        "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
    )
    .await;
    let spec = json!({"ports": [{"port": 80}], "ipFamilyPolicy": "PreferDualStack"});
    let (code, made) = http.post(SERVICES, service("a", spec)).await;
    assert_eq!((code, &made["spec"]["ipFamilies"]), (201, &json!(["IPv4"])));
    let (code, changed) = patch(&http, "a", json!({"selector": {"a": "b"}})).await;
    assert_eq!(code, 200);
    assert_eq!(changed["ipFamilyPolicy"], "PreferDualStack");
}
