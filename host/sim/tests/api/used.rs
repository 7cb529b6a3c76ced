//! Objects as they are used: what ordinary manifests and clients do with one another.

use http::Request;
use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, Http, admin, config_map};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

/// The answer to a request that `user` sends.
async fn send_as(http: &Http, user: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
    let media = match method {
        "PATCH" => "application/apply-patch+yaml",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .header("impersonate-user", user);
    let body = body.to_string().into_bytes();
    http.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn who_may_write_but_not_create_creates_nothing() {
    let (_server, http) = admin();
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]},
    ]);
    let role = json!({"metadata": {"name": "writer"}, "rules": rules});
    let to = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"});
    let pat = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "pat"}]);
    let binding = json!({"metadata": {"name": "writer"}, "roleRef": to, "subjects": pat});
    assert_eq!(http.post(&format!("{rbac}/roles"), role).await.0, 201);
    assert_eq!(
        http.post(&format!("{rbac}/rolebindings"), binding).await.0,
        201
    );
    let check = async |method: &str, path: &str, kind: (&str, &str), expected: &str| {
        let body = json!({"apiVersion": kind.0, "kind": kind.1, "metadata": {"name": "a"}});
        let (code, answer) = send_as(&http, "pat", method, path, body).await;
        assert_eq!((code, answer["message"].as_str()), (403, Some(expected)));
        assert_eq!(http.get(path).await.0, 404, "nothing is there");
    };
    let path = format!("{CONFIG_MAPS}/a");
    check(
        "PATCH",
        &format!("{path}?fieldManager=x"),
        ("v1", "ConfigMap"),
        r#"configmaps "a" is forbidden: User "pat" cannot create resource "configmaps" in API group "" in the namespace "default""#,
    )
    .await;
    check(
        "PUT",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases/a",
        ("coordination.k8s.io/v1", "Lease"),
        r#"leases.coordination.k8s.io "a" is forbidden: User "pat" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "default""#,
    )
    .await;
    // What is there may be written to.
    http.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    let path = format!("{path}?fieldManager=x");
    let body = config_map("a", json!({"k": "v"}));
    let (code, written) = send_as(&http, "pat", "PATCH", &path, body).await;
    assert_eq!((code, &written["data"]["k"]), (200, &json!("v")));
}

#[tokio::test]
async fn workloads_that_are_fine_are_taken() {
    let (_server, http) = admin();
    let check = async |plural: &str, spec: Value, complaint: &str| {
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": spec});
        let mut workload = json!({"metadata": {"name": "w"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}}, "template": template,
        }});
        if plural == "statefulsets" {
            let asked = json!({"requests": {"storage": "1Gi"}});
            let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": asked});
            workload["spec"]["volumeClaimTemplates"] =
                json!([{"metadata": {"name": "d"}, "spec": claim}]);
        }
        let path = format!("/apis/apps/v1/namespaces/default/{plural}?dryRun=All");
        let (code, answer) = http.post(&path, workload).await;
        let causes = answer["details"]["causes"].as_array().into_iter().flatten();
        let causes: Vec<String> = causes
            .map(|cause| {
                let text = |field: &str| cause[field].as_str().unwrap().to_owned();
                format!("{}: {}", text("field"), text("message"))
            })
            .collect();
        let expected = if complaint.is_empty() { 201 } else { 422 };
        assert_eq!((code, causes.join("; ")), (expected, complaint.to_owned()));
    };
    let mounting = |volume: &str| json!({"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": volume, "mountPath": "/d"}]}]});
    let missing = "spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"d\"";
    check("statefulsets", mounting("d"), "").await;
    check("deployments", mounting("d"), missing).await;
    let mut both = mounting("d");
    both["volumes"] = json!([{"name": "d", "emptyDir": {}}]);
    both["hostname"] = json!("Looked_At");
    check("statefulsets", both, "").await;
    let on_host = |ports: Value| json!({"hostNetwork": true, "containers": [{"name": "c", "image": "i", "ports": [ports]}]});
    check("daemonsets", on_host(json!({"containerPort": 80})), "").await;
    let other = on_host(json!({"containerPort": 80, "hostPort": 81}));
    let wrong = "spec.template.spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true";
    check("daemonsets", other, wrong).await;
}

#[tokio::test]
async fn definitions_keep_defaults_that_are_empty() {
    let (_server, http) = admin();
    let text = json!({"type": "string"});
    let nullable = json!({"type": "string", "nullable": true});
    let fields = json!({
        "a": {"type": "object", "default": {}, "properties": {"b": {"type": "string", "default": "x"}}},
        "c": {"type": "object", "default": {"d": null}, "properties": {"d": nullable}},
        "l": {"type": "array", "default": [], "example": [], "items": text},
        "limits": {"type": "object", "default": {}, "additionalProperties": text},
    });
    let spec = json!({"type": "object", "properties": fields});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ws.x.io"},
        "spec": {"group": "x.io", "scope": "Cluster", "names": {"plural": "ws", "kind": "W"}, "versions": [version]},
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for how in ["POST", "PATCH"] {
        let (code, made) = match how {
            "POST" => http.post(path, definition.clone()).await,
            _ => {
                let path = format!("{path}/ws.x.io");
                http.apply(&path, "m", definition.clone()).await
            }
        };
        assert!(code < 300, "{made}");
        let kept = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        assert_eq!(made.pointer(kept), Some(&fields), "{how}");
    }
    let object =
        json!({"apiVersion": "x.io/v1", "kind": "W", "metadata": {"name": "a"}, "spec": {}});
    let (_, made) = http.post("/apis/x.io/v1/ws", object).await;
    let expected = json!({"a": {"b": "x"}, "c": {"d": null}, "l": [], "limits": {}});
    assert_eq!(made["spec"], expected);
}

#[tokio::test]
async fn an_option_that_cannot_be_read_holds_a_deletion_back() {
    let (_server, http) = admin();
    http.post(CONFIG_MAPS, config_map("a", json!({}))).await;
    let path = format!("{CONFIG_MAPS}/a");
    let check = async |query: &str, body: Value, code: u16, expected: &str| {
        let path = format!("{path}{query}");
        let (got, answer) = http.call("DELETE", &path, body).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!(got, code, "{answer}");
        assert!(message.contains(expected), "{message}");
        assert_eq!(http.get(&format!("{CONFIG_MAPS}/a")).await.0, 200);
    };
    for (body, expected) in [
        (
            json!({"preconditions": {"uid": 5}}),
            "json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID",
        ),
        (
            json!({"propagationPolicy": 5}),
            "json: cannot unmarshal number into Go struct field DeleteOptions.propagationPolicy of type v1.DeletionPropagation",
        ),
        (
            json!({"gracePeriodSeconds": "x"}),
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
        (
            json!({"orphanDependents": "x"}),
            "json: cannot unmarshal string into Go struct field DeleteOptions.orphanDependents of type bool",
        ),
    ] {
        check("", body, 400, expected).await;
    }
    let number = "strconv.ParseInt: parsing \"x\": invalid syntax";
    check("?gracePeriodSeconds=x", Value::Null, 400, number).await;
    let uid = "the UID in the precondition (x) does not match";
    check("?uid=x", Value::Null, 409, uid).await;
    check("?dryRun=All", Value::Null, 200, "").await;
    check("", json!({"dryRun": ["All"]}), 200, "").await;
    // Of a collection as it was once, what was not there then is not deleted.
    let (code, answer) = http
        .delete(&format!("{CONFIG_MAPS}?resourceVersion=1"))
        .await;
    assert_eq!((code, &answer["items"]), (200, &json!([])));
    check("?dryRun=All", Value::Null, 200, "").await;
}

#[tokio::test]
async fn what_names_no_class_gets_the_default_one() {
    let (_server, http) = admin();
    let claim = |name: &str, class: Value| {
        let asked = json!({"requests": {"storage": "1Gi"}});
        let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": asked});
        if !class.is_null() {
            spec["storageClassName"] = class;
        }
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let check = async |name: &str, class: Value, expected: Value| {
        let (code, made) = http.post(CLAIMS, claim(name, class)).await;
        assert_eq!(code, 201, "{made}");
        let given = made["spec"].get("storageClassName");
        assert_eq!(given.cloned().unwrap_or_default(), expected);
    };
    check("before", Value::Null, Value::Null).await;
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    for (name, mark) in [
        ("plain", "none"),
        ("b", "storageclass.kubernetes.io/is-default-class"),
        ("c", "storageclass.beta.kubernetes.io/is-default-class"),
    ] {
        let metadata = json!({"name": name, "annotations": {mark: "true"}});
        let class = json!({"metadata": metadata, "provisioner": "x"});
        assert_eq!(http.post(classes, class).await.0, 201);
    }
    // Both are as old, and the first of them is taken.
    check("after", Value::Null, json!("b")).await;
    check("none", json!(""), json!("")).await;
    check("named", json!("plain"), json!("plain")).await;
    let metadata = json!({"name": "i", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}});
    let class = json!({"metadata": metadata, "spec": {"controller": "x.io/y"}});
    let classes = "/apis/networking.k8s.io/v1/ingressclasses";
    assert_eq!(http.post(classes, class).await.0, 201);
    let ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let spec = json!({"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}});
    for (name, annotations, expected) in [
        ("a", json!({}), json!("i")),
        (
            "b",
            json!({"kubernetes.io/ingress.class": "other"}),
            Value::Null,
        ),
    ] {
        let metadata = json!({"name": name, "annotations": annotations});
        let ingress = json!({"metadata": metadata, "spec": spec});
        let (code, made) = http.post(ingresses, ingress).await;
        assert_eq!(code, 201, "{made}");
        let given = made["spec"].get("ingressClassName");
        assert_eq!(given.cloned().unwrap_or_default(), expected);
    }
}

#[tokio::test]
async fn an_object_has_the_fields_of_the_version_that_it_is_asked_for_in() {
    let (_server, http) = admin();
    let text = json!({"type": "string"});
    let version = |name: &str, fields: Value| {
        let spec = json!({"type": "object", "properties": fields});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}})
    };
    let definition = json!({"metadata": {"name": "ws.x.io"}, "spec": {
        "group": "x.io", "scope": "Cluster", "names": {"plural": "ws", "kind": "W"},
        "versions": [version("v1", json!({"a": text, "c": text})), version("v2", json!({"a": text, "b": text}))],
    }});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(http.post(definitions, definition).await.0, 201);
    let object = |version: &str, spec: Value| json!({"apiVersion": version, "kind": "W", "metadata": {"name": "m"}, "spec": spec});
    let sent = object("x.io/v2", json!({"a": "1", "b": "2"}));
    let (code, made) = http.post("/apis/x.io/v2/ws", sent).await;
    assert_eq!((code, &made["apiVersion"]), (201, &json!("x.io/v2")));
    assert_eq!(
        made["spec"],
        json!({"a": "1"}),
        "what is not stored is lost"
    );
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let path = "/apis/x.io/v1/ws/m?fieldValidation=Strict";
    let (code, written) = http.call("PATCH", path, labelled.clone()).await;
    assert_eq!(code, 200, "{written}");
    // A change of nothing is no write, though it comes through the other version.
    let (_, again) = http.call("PATCH", "/apis/x.io/v2/ws/m", labelled).await;
    let version = "/metadata/resourceVersion";
    assert_eq!(again.pointer(version), written.pointer(version));
    let change = json!({"spec": {"c": "3"}});
    let (code, written) = http.call("PATCH", path, change).await;
    assert_eq!((code, &written["spec"]["c"]), (200, &json!("3")));
    let (_, shown) = http.get("/apis/x.io/v2/ws/m").await;
    assert_eq!(shown["spec"], json!({"a": "1"}));
    assert_eq!(shown["apiVersion"], "x.io/v2");
    let config = object("x.io/v1", json!({"a": "5"}));
    let (code, refused) = http.apply("/apis/x.io/v1/ws/m", "x", config.clone()).await;
    let message = refused["message"].as_str().unwrap();
    assert_eq!(code, 409, "{message}");
    assert!(message.contains(".spec.a"), "{message}");
    let (code, applied) = http
        .apply("/apis/x.io/v1/ws/m?force=true", "x", config)
        .await;
    assert_eq!(
        (code, &applied["spec"]),
        (200, &json!({"a": "5", "c": "3"}))
    );
    // What writes through a version writes all of it: what that has not is lost.
    let change = json!({"spec": {"a": "6"}});
    let (code, _) = http.call("PATCH", "/apis/x.io/v2/ws/m", change).await;
    assert_eq!(code, 200);
    let (_, shown) = http.get("/apis/x.io/v1/ws/m").await;
    assert_eq!(shown["spec"], json!({"a": "6"}));
}
