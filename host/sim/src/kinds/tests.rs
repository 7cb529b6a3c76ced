//! The table as a whole, and kinds end to end.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::decode::{Shape, Type, type_of_kind};

#[test]
fn rows_are_told_apart() {
    let mut resources = BTreeSet::new();
    let mut kinds = BTreeSet::new();
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

#[test]
fn every_row_is_in_the_tables_that_go_with_it() {
    let status = reeve_ssa::Path::fields(["status"]);
    for kind in all() {
        let (group, version, name) = (kind.group, kind.version, kind.kind);
        assert!(
            reeve_ssa::builtin::schema(group, version, name).is_some(),
            "{group}/{version} {name} has no schema for merging"
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

/// Collects the paths at which a type has quantities.
fn quantities_of(ty: Type, path: &str, above: &mut Vec<Type>, found: &mut BTreeSet<String>) {
    if above.contains(&ty) {
        return;
    }
    above.push(ty);
    match ty.shape() {
        Shape::Quantity => {
            found.insert(path.to_owned());
        }
        Shape::List(item) => quantities_of(item, &format!("{path}[]"), above, found),
        Shape::Map(item) => quantities_of(item, &format!("{path}{{}}"), above, found),
        Shape::Struct(fields) => {
            for (name, field) in fields {
                let path = [path, name].join(".");
                quantities_of(field.ty, &path, above, found);
            }
        }
        _ => {}
    }
    above.pop();
}

#[test]
fn every_quantity_of_a_type_is_named_by_its_row() {
    for kind in all() {
        let mut found = BTreeSet::new();
        let ty = type_of_kind(&kind.api_version(), kind.kind).unwrap();
        quantities_of(ty, "", &mut Vec::new(), &mut found);
        let named = kind.quantities.iter().chain(kind.atomic_quantities);
        let named = named.map(|path| format!(".{path}").replace(".*", "{}"));
        assert_eq!(named.collect::<BTreeSet<_>>(), found, "{}", kind.kind);
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
    kind.settle(&mut object).map_err(|e| e.to_string())?;
    kind.admit(&mut object);
    kind.prepare_create(&mut object);
    kind.fill_late(&mut object);
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
        "ServiceAccount",
        json!({"secrets": [{"name": "a", "namespace": "b", "kind": "Secret"}, {"uid": "c"}]}),
        json!({"metadata": {"name": "x", "namespace": "n"}, "secrets": [{"name": "a"}, {}]}),
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

/// A StatefulSet with a claim of that size.
fn stateful_set(storage: &Value) -> Value {
    json!({"spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "serviceName": "s",
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i", "env": [{
                "name": "CPU",
                "valueFrom": {"resourceFieldRef": {
                    "resource": "limits.cpu", "divisor": "1000m",
                }},
            }]}]},
        },
        "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage}},
        }}],
    }})
}

#[test]
fn quantities_are_read_wherever_they_are() {
    let storage = "/spec/volumeClaimTemplates/0/spec/resources/requests/storage";
    let made = |storage: Value| created("apps", "v1", "StatefulSet", stateful_set(&storage));
    let mut old = made(json!("1024Mi")).unwrap();
    old["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(old.pointer(storage), Some(&json!("1Gi")));
    let divisor = "/spec/template/spec/containers/0/env/0/valueFrom/resourceFieldRef/divisor";
    assert_eq!(old.pointer(divisor), Some(&json!("1")));
    let found = made(json!(0)).unwrap_err();
    let expected = "spec.volumeClaimTemplates[0].spec.resources[storage]: Invalid value: \"0\": \
                    must be greater than zero";
    assert!(found.contains(expected), "{found}");

    let kind = by_kind("apps", "v1", "StatefulSet").unwrap();
    let updated = |storage: &str| {
        let mut new = made(json!(storage)).unwrap();
        new["metadata"]["resourceVersion"] = json!("1");
        kind.prepare_update(&mut new, &old);
        let generation = new["metadata"]["generation"].as_i64().unwrap();
        (generation, kind.validate_update(&new, &old).is_empty())
    };
    assert_eq!(updated("1Gi"), (1, true));
    assert_eq!(
        updated("1073741824"),
        (1, true),
        "the same, written otherwise"
    );
    assert_eq!(updated("2Gi"), (2, false));
}

#[test]
fn a_tolerance_is_a_quantity() {
    let autoscaler = |tolerance: Value| {
        let spec = json!({
            "maxReplicas": 2,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "behavior": {"scaleUp": {"tolerance": tolerance}},
        });
        let object = json!({ "spec": spec });
        created("autoscaling", "v2", "HorizontalPodAutoscaler", object)
    };
    let made = autoscaler(json!(0.1)).unwrap();
    assert_eq!(made["spec"]["behavior"]["scaleUp"]["tolerance"], "100m");
    let found = autoscaler(json!(-0.1)).unwrap_err();
    let expected = "spec.behavior.scaleUp.tolerance: Invalid value: \"-100m\": must be greater \
                    than or equal to 0";
    assert!(found.contains(expected), "{found}");
}

#[test]
fn an_update_of_an_account_keeps_names_of_secrets_alone() {
    let kind = by_kind("", "v1", "ServiceAccount").unwrap();
    let mut account = json!({"metadata": {}, "secrets": [{"name": "a", "kind": "Secret"}]});
    kind.prepare_update(&mut account, &json!({"metadata": {}}));
    assert_eq!(account["secrets"], json!([{"name": "a"}]));
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
