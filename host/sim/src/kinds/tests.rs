//! The table as a whole, and kinds end to end.

use serde_json::{Value, json};

use super::*;

#[test]
fn rows_are_told_apart() {
    let mut resources = std::collections::BTreeSet::new();
    let mut kinds = std::collections::BTreeSet::new();
    for kind in all() {
        assert!(resources.insert((kind.group, kind.version, kind.plural)));
        // Kinds of subresource bodies aside, a kind is one resource.
        assert!(kinds.insert((kind.group, kind.version, kind.kind)));
        assert_eq!(
            by_resource(kind.group, kind.version, kind.plural).map(|k| k.kind),
            Some(kind.kind)
        );
    }
    assert!(by_kind("apps", "v1", "Deployment").is_some());
    assert!(by_kind("apps", "v2", "Deployment").is_none());
}

/// Groups whose kinds are merged without types, every list as a whole.
const UNTYPED: [&str; 7] = [
    "authorization.k8s.io",
    "certificates.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "node.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
];

#[test]
fn every_row_is_in_the_tables_that_go_with_it() {
    let status = reeve_ssa::Path::fields(["status"]);
    for kind in all() {
        let (group, version, name) = (kind.group, kind.version, kind.kind);
        assert_ne!(
            reeve_ssa::builtin::schema(group, version, name).is_some(),
            UNTYPED.contains(&group),
            "{group}/{version} {name}: a schema for merging, or a place in the list above"
        );
        assert!(
            // Their schemas have another form in JSON, and nobody sends them so.
            group == "apiextensions.k8s.io" || crate::protobuf::knows(&kind.api_version(), name),
            "{group}/{version} {name} has no protobuf form"
        );
        let has_status = kind.subresource("status").is_some();
        let ignored = reeve_ssa::reset::built_in(group, name, "");
        assert_eq!(
            ignored.iter().any(|path| path == status),
            has_status,
            "{group} {name}: a row of reeve_ssa::reset for each kind with a status, and for no other"
        );
        let ignored = reeve_ssa::reset::built_in(group, name, "status");
        assert_ne!(ignored.is_empty(), has_status, "{group} {name}");
    }
}

/// What becomes of an object when it is created.
fn created(group: &str, version: &str, kind: &str, mut object: Value) -> Result<Value, String> {
    let kind = by_kind(group, version, kind).unwrap();
    if object.get("metadata").is_none() {
        object["metadata"] = json!({"name": "x"});
    }
    if kind.namespaced {
        object["metadata"]["namespace"] = json!("n");
    }
    kind.normalize(&mut object).map_err(|e| e.to_string())?;
    kind.default(&mut object);
    kind.admit(&mut object);
    kind.prepare_create(&mut object);
    let once = object.clone();
    kind.default(&mut object);
    assert_eq!(object, once, "defaulting twice changes nothing");
    let errors = kind.validate_create(&object);
    if errors.is_empty() {
        Ok(object)
    } else {
        Err(errors.message(&kind.qualified_kind(), "x"))
    }
}

#[test]
fn created_objects_are_complete() {
    let check = |kind: &str, object: Value, expected: Value| {
        assert_eq!(created("", "v1", kind, object).unwrap(), expected);
    };
    check(
        "Namespace",
        json!({}),
        json!({
            "metadata": {"name": "x", "labels": {"kubernetes.io/metadata.name": "x"}},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }),
    );
    check(
        "Secret",
        json!({"stringData": {"a": "b"}}),
        json!({
            "metadata": {"name": "x", "namespace": "n"},
            "data": {"a": "Yg=="}, "type": "Opaque",
        }),
    );
    check(
        "ResourceQuota",
        json!({"spec": {"hard": {"cpu": "0.1", "memory": "1.5Gi", "pods": "1000"}}, "status": {"x": 1}}),
        json!({
            "metadata": {"name": "x", "namespace": "n"},
            "spec": {"hard": {"cpu": "100m", "memory": "1536Mi", "pods": "1k"}},
            "status": {},
        }),
    );
    check(
        "Event",
        json!({"involvedObject": {"kind": "Pod", "namespace": "n", "name": "x"}, "reason": "A"}),
        json!({
            "metadata": {"name": "x", "namespace": "n"},
            "involvedObject": {"kind": "Pod", "namespace": "n", "name": "x"}, "reason": "A",
            "eventTime": null, "firstTimestamp": null, "lastTimestamp": null,
            "reportingComponent": "", "reportingInstance": "", "source": {},
        }),
    );
    check(
        "Pod",
        json!({"spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}),
        json!({
            "metadata": {"name": "x", "namespace": "n", "generation": 1},
            "spec": {
                "containers": [{
                    "image": "nginx:1", "imagePullPolicy": "IfNotPresent", "name": "c",
                    "resources": {}, "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }],
                "dnsPolicy": "ClusterFirst", "enableServiceLinks": true,
                "restartPolicy": "Always", "schedulerName": "default-scheduler",
                "securityContext": {}, "terminationGracePeriodSeconds": 30,
                "tolerations": [
                    {"effect": "NoExecute", "key": "node.kubernetes.io/not-ready",
                     "operator": "Exists", "tolerationSeconds": 300},
                    {"effect": "NoExecute", "key": "node.kubernetes.io/unreachable",
                     "operator": "Exists", "tolerationSeconds": 300},
                ],
            },
            "status": {"phase": "Pending", "qosClass": "BestEffort"},
        }),
    );
}

#[test]
fn a_deployment_is_complete() {
    let object = json!({"spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        },
    }});
    let deployment = created("apps", "v1", "Deployment", object).unwrap();
    assert_eq!(
        deployment,
        json!({
            "metadata": {"generation": 1, "name": "x", "namespace": "n"},
            "spec": {
                "progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10,
                "selector": {"matchLabels": {"a": "b"}},
                "strategy": {
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                    "type": "RollingUpdate",
                },
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {
                        "containers": [{
                            "image": "nginx", "imagePullPolicy": "Always", "name": "c",
                            "resources": {}, "terminationMessagePath": "/dev/termination-log",
                            "terminationMessagePolicy": "File",
                        }],
                        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
                        "schedulerName": "default-scheduler", "securityContext": {},
                        "terminationGracePeriodSeconds": 30,
                    },
                },
            },
            "status": {},
        })
    );
}

#[test]
fn wrong_objects_are_refused() {
    let check = |group: &str, kind: &str, object: Value, expected: &str| {
        let found = created(group, "v1", kind, object).unwrap_err();
        assert!(found.contains(expected), "{found}");
    };
    check(
        "",
        "ResourceQuota",
        json!({"spec": {"hard": {"cpu": "much"}}}),
        "quantities must match the regular expression",
    );
    check(
        "",
        "ResourceQuota",
        json!({"spec": {"hard": {"cpu": "-1", "gpu": "1"}}}),
        "spec.hard[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
    );
    check(
        "",
        "ResourceQuota",
        json!({"spec": {"hard": {"count/a": "500m"}}}),
        "ResourceQuota \"x\" is invalid: spec.hard[count/a]: Invalid value: \"500m\": must be an \
         integer",
    );
    check(
        "",
        "ConfigMap",
        json!({"data": {"a/b": "x"}}),
        "data[a/b]: Invalid value: \"a/b\": a valid config key must consist of",
    );
    check(
        "",
        "Secret",
        json!({"type": "kubernetes.io/tls"}),
        "Secret \"x\" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]",
    );
    check(
        "",
        "Service",
        json!({"spec": {"ports": [{"port": 80}, {"port": 81}]}}),
        "Service \"x\" is invalid: [spec.ports[0].name: Required value, spec.ports[1].name: \
         Required value]",
    );
    check(
        "apps",
        "Deployment",
        json!({"spec": {
            "selector": {"matchLabels": {"a": "c"}},
            "template": {"metadata": {"labels": {"a": "b"}},
                         "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }}),
        "Deployment.apps \"x\" is invalid: spec.template.metadata.labels: Invalid value: \
         {\"a\":\"b\"}: `selector` does not match template `labels`",
    );
    check(
        "rbac.authorization.k8s.io",
        "RoleBinding",
        json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User"}]}),
        "subjects[0].name: Required value",
    );
    check(
        "",
        "PersistentVolumeClaim",
        json!({}),
        "spec.accessModes: Required value: at least 1 access mode is required",
    );
}

#[test]
fn what_is_fixed_stays() {
    let check = |group: &str, kind: &str, old: Value, pointer: &str, to: Value, expected: &str| {
        let mut old = created(group, "v1", kind, old).unwrap();
        old["metadata"]["resourceVersion"] = json!("1");
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = to;
        let kind = by_kind(group, "v1", kind).unwrap();
        kind.prepare_update(&mut new, &old);
        let errors = kind.validate_update(&new, &old);
        assert_eq!(errors.aggregate(), expected);
    };
    check(
        "rbac.authorization.k8s.io",
        "RoleBinding",
        json!({"roleRef": {"kind": "Role", "name": "r"}}),
        "/roleRef/name",
        json!("s"),
        "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\
         \"Name\":\"s\"}: cannot change roleRef",
    );
    check(
        "",
        "Secret",
        json!({"data": {"a": "eA=="}}),
        "/type",
        json!("other"),
        "type: Invalid value: \"other\": field is immutable",
    );
    check(
        "",
        "ConfigMap",
        json!({"data": {"a": "b"}, "immutable": true}),
        "/data/a",
        json!("c"),
        "data: Forbidden: field is immutable when `immutable` is set",
    );
}

#[test]
fn generations_count_changes() {
    let deployment = by_kind("apps", "v1", "Deployment").unwrap();
    let old = json!({"metadata": {"generation": 3}, "spec": {"replicas": 1}, "status": {"a": 1}});
    let check = |new: Value, generation: i64| {
        let mut new = new;
        deployment.prepare_update(&mut new, &old);
        assert_eq!(new["metadata"]["generation"], generation);
        assert_eq!(new["status"], json!({"a": 1}));
    };
    check(json!({"metadata": {}, "spec": {"replicas": 1}}), 3);
    check(json!({"metadata": {}, "spec": {"replicas": 2}}), 4);
    check(
        json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"replicas": 1}}),
        4,
    );
    check(
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1}}),
        3,
    );
    let config_map = by_kind("", "v1", "ConfigMap").unwrap();
    let mut new = json!({"metadata": {"generation": 7}, "data": {}});
    config_map.prepare_update(&mut new, &json!({"metadata": {}}));
    assert!(new["metadata"].get("generation").is_none());
}
