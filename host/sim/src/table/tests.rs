//! Tables of a few kinds, with the cells that the server has.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use super::*;
use crate::kinds::by_kind;

/// Five minutes after the objects were made.
fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_767_225_600 + 300)
}

fn with_meta(mut object: Value) -> Value {
    object["metadata"] = json!({"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"});
    object
}

#[track_caller]
fn check(group: &str, kind: &str, object: Value, cells: Value) {
    let table = Table::of_kind(by_kind(group, "v1", kind).unwrap());
    let shown = table.render(&[with_meta(object)], json!({}), Include::None, now());
    assert_eq!(shown["rows"][0]["cells"], cells);
    let columns = shown["columnDefinitions"].as_array().unwrap();
    assert_eq!(columns.len(), cells.as_array().unwrap().len(), "{kind}");
}

#[test]
fn cells() {
    check(
        "",
        "Namespace",
        json!({"status": {"phase": "Active"}}),
        json!(["x", "Active", "5m"]),
    );
    check(
        "",
        "ConfigMap",
        json!({"data": {"a": ""}, "binaryData": {"b": ""}}),
        json!(["x", 2, "5m"]),
    );
    check(
        "",
        "LimitRange",
        json!({}),
        json!(["x", "2026-01-01T00:00:00Z"]),
    );
    check(
        "",
        "ResourceQuota",
        json!({"status": {"hard": {"cpu": "1", "limits.cpu": "2"}, "used": {"cpu": "500m"}}}),
        json!(["x", "cpu: 500m/1", "limits.cpu: 0/2", "5m"]),
    );
    check(
        "apps",
        "Deployment",
        json!({"spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
            "status": {"readyReplicas": 1}}),
        json!(["x", "1/3", 0, 0, "5m", "c", "i", "a=b"]),
    );
    check(
        "",
        "Service",
        json!({"spec": {"type": "NodePort", "clusterIPs": ["10.0.0.1"],
            "ports": [{"port": 80, "nodePort": 30000, "protocol": "TCP"}]}}),
        json!([
            "x",
            "NodePort",
            "10.0.0.1",
            "<none>",
            "80:30000/TCP",
            "5m",
            "<none>"
        ]),
    );
    check(
        "rbac.authorization.k8s.io",
        "RoleBinding",
        json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [
            {"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}),
        json!(["x", "Role/r", "5m", "u", "", "n/s"]),
    );
    check(
        "",
        "Event",
        json!({"involvedObject": {"kind": "Pod", "name": "p"}, "reason": "R", "type": "Normal",
            "message": "m\n", "source": {"component": "c"}, "lastTimestamp": "2026-01-01T00:04:00Z",
            "firstTimestamp": "2026-01-01T00:00:00Z", "count": 3}),
        json!(["60s", "Normal", "R", "pod/p", "", "c", "m", "5m", 3, "x"]),
    );
    check(
        "",
        "PersistentVolumeClaim",
        json!({"spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}}),
        json!([
            "x",
            "Pending",
            "",
            "",
            "",
            "",
            "<unset>",
            "5m",
            "Filesystem"
        ]),
    );
}

#[test]
fn cells_of_rarer_kinds() {
    let slice = |addresses: Value, ports: Value| json!({"addressType": "IPv4", "ports": ports, "endpoints": [{"addresses": addresses}]});
    check(
        "discovery.k8s.io",
        "EndpointSlice",
        slice(
            json!(["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"]),
            json!([{"port": 80}, {"name": "web"}, {}]),
        ),
        json!([
            "x",
            "IPv4",
            "80,web,*",
            "1.1.1.1,2.2.2.2,3.3.3.3 + 1 more...",
            "5m"
        ]),
    );
    check(
        "discovery.k8s.io",
        "EndpointSlice",
        slice(json!([]), Value::Null),
        json!(["x", "IPv4", "<unset>", "<unset>", "5m"]),
    );
    check(
        "networking.k8s.io",
        "IngressClass",
        json!({"spec": {"controller": "c", "parameters": {"apiGroup": "g", "kind": "K", "name": "n"}}}),
        json!(["x", "c", "K.g/n", "5m"]),
    );
    check(
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        json!({"webhooks": [{}, {}]}),
        json!(["x", 2, "5m"]),
    );
    check(
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        json!({"spec": {"validations": [{}], "paramKind": {"apiVersion": "g/v1", "kind": "K"}}}),
        json!(["x", 1, "g/v1/K", "5m"]),
    );
    check(
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
        json!({"spec": {"policyName": "p", "paramRef": {"name": "n"}}}),
        json!(["x", "p", "*/n", "5m"]),
    );
    check(
        "apiregistration.k8s.io",
        "APIService",
        json!({"spec": {"service": {"namespace": "n", "name": "s"}}, "status": {"conditions": [
            {"type": "Available", "status": "False", "reason": "MissingEndpoints"}]}}),
        json!(["x", "n/s", "False (MissingEndpoints)", "5m"]),
    );
    check(
        "storage.k8s.io",
        "CSIDriver",
        json!({"spec": {"attachRequired": false, "tokenRequests": [{"audience": "a"}]}}),
        json!(["x", false, false, false, "a", false, "<none>", "5m"]),
    );
    check(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        json!({"spec": {"signerName": "s", "username": "u", "expirationSeconds": 86400},
            "status": {"conditions": [{"type": "Approved"}], "certificate": "AA=="}}),
        json!(["x", "5m", "s", "u", "24h", "Approved,Issued"]),
    );
}

#[test]
fn pods() {
    let pod = |status: Value, ready: &str, reason: &str, restarts: &str| {
        check(
            "",
            "Pod",
            json!({"spec": {"containers": [{}], "initContainers": [{}]}, "status": status}),
            json!([
                "x", ready, reason, restarts, "5m", "<none>", "<none>", "<none>", "<none>"
            ]),
        );
    };
    pod(json!({"phase": "Pending"}), "0/1", "Pending", "0");
    pod(
        json!({"phase": "Running", "containerStatuses": [
            {"ready": true, "restartCount": 2, "state": {"running": {}},
             "lastState": {"terminated": {"finishedAt": "2026-01-01T00:04:00Z"}}}]}),
        "1/1",
        "Running",
        "2 (60s ago)",
    );
    pod(
        json!({"phase": "Pending", "initContainerStatuses": [
            {"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}),
        "0/1",
        "Init:ImagePullBackOff",
        "0",
    );
    pod(
        json!({"phase": "Failed", "containerStatuses": [
            {"state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}),
        "0/1",
        "Error",
        "0",
    );
    let table = Table::of_kind(by_kind("", "v1", "Pod").unwrap());
    let done = with_meta(json!({"status": {"phase": "Succeeded"}}));
    let shown = table.render(&[done], json!({}), Include::Metadata, now());
    assert_eq!(shown["rows"][0]["conditions"][0]["type"], "Completed");
    assert_eq!(shown["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

#[test]
fn sidecars_count_as_containers() {
    let running = || json!({"running": {}});
    let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
    let ended = |code: i64, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason, "finishedAt": "2026-01-01T00:04:00Z"}});
    let side = |state: Value, started: bool, ready: bool| json!({"name": "side", "state": state, "started": started, "ready": ready});
    let init = |state: Value| json!({"name": "init", "state": state});
    let main = |state: Value, ready: bool| json!({"name": "c", "state": state, "ready": ready});
    let restarted = |mut container: Value, times: i64| {
        container["restartCount"] = json!(times);
        container["lastState"] = ended(1, "Error");
        container
    };
    let check = |phase: &str, inits: Value, mains: Value, cells: [&str; 3]| {
        let conditions = if mains == json!([]) {
            json!([])
        } else {
            json!([{"type": "Initialized", "status": "True"}])
        };
        let spec = json!({"initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "init"}],
            "containers": [{"name": "c"}]});
        let status = json!({"phase": phase, "conditions": conditions,
            "initContainerStatuses": inits, "containerStatuses": mains});
        let [ready, reason, restarts] = cells;
        check(
            "",
            "Pod",
            json!({"spec": spec, "status": status}),
            json!([
                "x", ready, reason, restarts, "5m", "<none>", "<none>", "<none>", "<none>"
            ]),
        );
    };
    let done = || init(ended(0, "Completed"));
    let up = || main(running(), true);
    check("Pending", json!([]), json!([]), ["0/2", "Pending", "0"]);
    for (inits, cells) in [
        (
            json!([
                side(running(), false, false),
                init(waiting("PodInitializing"))
            ]),
            ["0/2", "Init:0/2", "0"],
        ),
        (
            json!([
                side(running(), true, true),
                init(waiting("PodInitializing"))
            ]),
            ["1/2", "Init:1/2", "0"],
        ),
        (
            json!([side(running(), true, false), init(running())]),
            ["0/2", "Init:1/2", "0"],
        ),
        (
            json!([restarted(
                side(waiting("CrashLoopBackOff"), false, false),
                4
            )]),
            ["0/2", "Init:CrashLoopBackOff", "4 (60s ago)"],
        ),
    ] {
        check("Pending", inits, json!([]), cells);
    }
    for (inits, cells) in [
        (
            json!([
                restarted(side(running(), true, true), 2),
                restarted(done(), 3)
            ]),
            ["2/2", "Running", "2 (60s ago)"],
        ),
        (
            json!([side(running(), true, false), done()]),
            ["1/2", "Running", "0"],
        ),
        (
            json!([side(waiting("CrashLoopBackOff"), false, false), done()]),
            ["1/2", "Init:CrashLoopBackOff", "0"],
        ),
        (
            json!([side(ended(3, "Error"), false, false), done()]),
            ["1/2", "Init:Error", "0"],
        ),
    ] {
        check("Running", inits, json!([up()]), cells);
    }
    check(
        "Succeeded",
        json!([side(ended(0, "Completed"), false, false), done()]),
        json!([main(ended(0, "Completed"), false)]),
        ["0/2", "Completed", "0"],
    );
}

#[test]
fn autoscalers_show_all_sorts_of_metrics() {
    let check = |metrics: &[(&str, Value, Value)], unmeasured: &str, measured: &str| {
        let of = |kind: &str, field: &str, values: &Value| {
            let mut source = json!({"name": "memory"});
            source[field] = values.clone();
            let mut metric = json!({ "type": kind });
            metric[kind[..1].to_lowercase() + &kind[1..]] = source;
            metric
        };
        let specs: Vec<Value> = metrics
            .iter()
            .map(|(kind, target, _)| of(kind, "target", target))
            .collect();
        let statuses: Vec<Value> = metrics
            .iter()
            .map(|(kind, _, current)| of(kind, "current", current))
            .collect();
        for (present, shown) in [(json!([]), unmeasured), (json!(statuses), measured)] {
            check(
                "autoscaling",
                "HorizontalPodAutoscaler",
                json!({"spec": {"maxReplicas": 3, "metrics": specs}, "status": {"currentMetrics": present}}),
                json!(["x", "/", shown, "<unset>", 3, 0, "5m"]),
            );
        }
    };
    let average = |value: &str| json!({ "averageValue": value });
    let value = |value: &str| json!({ "value": value });
    let percent = |percent: i64| json!({ "averageUtilization": percent });
    check(&[], "<none>", "<none>");
    for (kind, target, current, unmeasured, measured) in [
        (
            "Resource",
            average("100Mi"),
            average("30Mi"),
            "memory: <unknown>/100Mi",
            "memory: 30Mi/100Mi",
        ),
        (
            "Resource",
            average("100Mi"),
            percent(3),
            "memory: <unknown>/100Mi",
            "memory: <nil>/100Mi",
        ),
        (
            "Resource",
            percent(50),
            percent(3),
            "memory: <unknown>/50%",
            "memory: 3%/50%",
        ),
        (
            "ContainerResource",
            percent(50),
            percent(3),
            "memory: <unknown>/50%",
            "memory: 3%/50%",
        ),
        (
            "ContainerResource",
            average("1Gi"),
            average("500m"),
            "memory: <unknown>/1Gi",
            "memory: 500m/1Gi",
        ),
        (
            "Pods",
            average("100"),
            average("7"),
            "<unknown>/100",
            "7/100",
        ),
        (
            "Object",
            value("100"),
            value("1500m"),
            "<unknown>/100",
            "1500m/100",
        ),
        (
            "Object",
            value("100"),
            average("7"),
            "<unknown>/100",
            "<nil>/100",
        ),
        (
            "Object",
            average("100"),
            average("7"),
            "<unknown>/100 (avg)",
            "7/100 (avg)",
        ),
        (
            "External",
            average("30"),
            average("7"),
            "<unknown>/30 (avg)",
            "7/30 (avg)",
        ),
        (
            "External",
            average("30"),
            value("7"),
            "<unknown>/30 (avg)",
            "<unknown>/30 (avg)",
        ),
        (
            "External",
            value("3"),
            value("1500m"),
            "<unknown>/3",
            "1500m/3",
        ),
    ] {
        check(&[(kind, target, current)], unmeasured, measured);
    }
    check(
        &[
            ("Pods", average("100"), average("7")),
            ("Object", value("100"), value("2")),
            ("Resource", percent(50), percent(3)),
        ],
        "<unknown>/100, <unknown>/100 + 1 more...",
        "7/100, 2/100 + 1 more...",
    );
}

#[test]
fn endpoints_go_by_port() {
    let shown = |subsets: Value, shown: &str| {
        check(
            "",
            "Endpoints",
            json!({ "subsets": subsets }),
            json!(["x", shown, "5m"]),
        );
    };
    let two = json!([{"ip": "1.1.1.1"}, {"ip": "1.1.1.2"}]);
    shown(
        json!([{"addresses": two, "ports": [{"port": 80}, {"port": 81}]}]),
        "1.1.1.1:80,1.1.1.2:80,1.1.1.1:81 + 1 more...",
    );
    shown(json!([{ "addresses": two }]), "1.1.1.1,1.1.1.2");
    shown(
        json!([{"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 80}]}]),
        "[fd00::1]:80",
    );
    shown(
        json!([{"notReadyAddresses": two, "ports": [{"port": 80}]}]),
        "",
    );
    shown(json!([]), "<none>");
}

#[test]
fn capacities_have_no_columns_of_their_own() {
    check(
        "storage.k8s.io",
        "CSIStorageCapacity",
        json!({"storageClassName": "s", "capacity": "1Gi"}),
        json!(["x", "2026-01-01T00:00:00Z"]),
    );
}

#[test]
fn scales_of_custom_resources_have_a_date() {
    for (table, kind) in [
        (Table::of_scale(), "string"),
        (Table::of_custom_scale(), "date"),
    ] {
        let scale = with_meta(json!({"spec": {"replicas": 3}, "status": {}}));
        let shown = table.render(&[scale], json!({}), Include::None, now());
        assert_eq!(shown["columnDefinitions"][3]["type"], kind);
        assert_eq!(shown["rows"][0]["cells"], json!(["x", 3, 0, "5m"]));
    }
}

#[test]
fn custom_columns() {
    let column =
        |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
    let table = Table::of_columns(&[
        column("A", "integer", ".spec.a"),
        column("B", "string", ".spec.b"),
        column("C", "date", ".spec.c"),
        column("D", "boolean", ".spec.d"),
        column("E", "string", ".spec.e"),
        column("F", "number", ".spec.f"),
        column("G", "string", ".spec.missing"),
    ]);
    let object = with_meta(json!({"spec": {
        "a": 3, "b": "t", "c": "2026-01-01T00:00:00Z", "d": true, "e": ["x"], "f": 1.5,
    }}));
    let shown = table.render(
        &[object],
        json!({"resourceVersion": "1"}),
        Include::Object,
        now(),
    );
    assert_eq!(
        shown["rows"][0]["cells"],
        json!(["x", 3, "t", "5m", true, "[\"x\"]", 1.5, null])
    );
    assert_eq!(shown["metadata"], json!({"resourceVersion": "1"}));
    let plain = Table::of_columns(&[]);
    let shown = plain.render(&[with_meta(json!({}))], json!({}), Include::None, now());
    assert_eq!(shown["rows"][0]["cells"], json!(["x", "5m"]));
    assert_eq!(shown["columnDefinitions"][1]["name"], "Age");
}
