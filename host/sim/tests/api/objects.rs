//! Create, get, list, update, patch and delete, through `kube::Client`.

use crate::support::{CONFIG_MAPS, admin, config_map};
use serde_json::{Value, json};

#[tokio::test]
async fn a_created_object_can_be_read_listed_changed_and_deleted() {
    let (_server, http) = admin();
    let (code, made) = http
        .post(CONFIG_MAPS, config_map("a", json!({"x": "1"})))
        .await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(
        made["metadata"]["creationTimestamp"],
        "2023-11-14T22:13:20Z"
    );
    assert_eq!(made["metadata"]["namespace"], "default");
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "tests");
    let path = format!("{CONFIG_MAPS}/a");
    assert_eq!(http.get(&path).await, (200, made.clone()));

    let (code, list) = http.get(CONFIG_MAPS).await;
    assert_eq!((code, &list["kind"]), (200, &json!("ConfigMapList")));
    // The items leave out what the list says of them.
    let mut item = made.clone();
    for field in ["apiVersion", "kind"] {
        item.as_object_mut().unwrap().remove(field);
    }
    assert_eq!(list["items"], json!([item]));
    assert_eq!(
        list["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"]
    );

    let mut changed = made.clone();
    changed["data"]["x"] = json!("2");
    let (code, changed) = http.call("PUT", &path, changed).await;
    assert_eq!((code, &changed["data"]["x"]), (200, &json!("2")));
    assert_ne!(
        changed["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"]
    );
    assert_eq!(changed["metadata"]["uid"], made["metadata"]["uid"]);

    let (code, same) = http.call("PUT", &path, changed.clone()).await;
    assert_eq!(
        (code, &same),
        (200, &changed),
        "an update without a change writes nothing"
    );

    let (code, status) = http.delete(&path).await;
    assert_eq!((code, &status["status"]), (200, &json!("Success")));
    assert_eq!(
        status["details"],
        json!({"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]})
    );
    assert_eq!(http.get(&path).await.0, 404);
}

#[tokio::test]
async fn names_are_generated() {
    let (_server, http) = admin();
    let mut object = config_map("", json!({}));
    object["metadata"] = json!({"generateName": "a-"});
    let (code, made) = http.post(CONFIG_MAPS, object).await;
    let name = made["metadata"]["name"].as_str().unwrap();
    assert_eq!((code, name.len(), &name[..2]), (201, 7, "a-"));
}

/// What is sent, and what is answered: method, path, body, code, reason, message.
type Case<'a> = (&'a str, &'a str, Value, u16, &'a str, &'a str);

#[tokio::test]
async fn refusals_are_worded_as_the_server_words_them() {
    let (_server, http) = admin();
    let (code, made) = http
        .post(CONFIG_MAPS, config_map("a", json!({"x": "1"})))
        .await;
    assert_eq!(code, 201, "{made}");
    let a = &format!("{CONFIG_MAPS}/a");
    let uid = made["metadata"]["uid"].as_str().unwrap();
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    let with = |field: &str, value: &str| {
        let mut object = config_map("a", json!({}));
        object["metadata"][field] = json!(value);
        object
    };
    let cases: &[Case<'_>] = &[
        (
            "GET",
            &format!("{CONFIG_MAPS}/nope"),
            Value::Null,
            404,
            "NotFound",
            "configmaps \"nope\" not found",
        ),
        (
            "GET",
            "/api/v1/nothing",
            Value::Null,
            404,
            "NotFound",
            "the server could not find the requested resource",
        ),
        (
            "PATCH",
            "/api/v1/configmaps",
            json!({}),
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ),
        (
            "PUT",
            CONFIG_MAPS,
            config_map("a", json!({})),
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ),
        (
            "POST",
            CONFIG_MAPS,
            config_map("a", json!({})),
            409,
            "AlreadyExists",
            "configmaps \"a\" already exists",
        ),
        (
            "POST",
            "/api/v1/namespaces/nope/configmaps",
            config_map("a", json!({})),
            404,
            "NotFound",
            "namespaces \"nope\" not found",
        ),
        (
            "POST",
            CONFIG_MAPS,
            with("namespace", "other"),
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            "POST",
            CONFIG_MAPS,
            with("resourceVersion", "5"),
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ),
        (
            "POST",
            CONFIG_MAPS,
            with("name", ""),
            422,
            "Invalid",
            "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
        ),
        (
            "PUT",
            a,
            with("resourceVersion", "5"),
            409,
            "Conflict",
            "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again",
        ),
        (
            "PUT",
            a,
            with("name", "b"),
            400,
            "BadRequest",
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        (
            "PUT",
            a,
            with("uid", "x"),
            409,
            "Conflict",
            &format!(
                "Operation cannot be fulfilled on configmaps \"a\": StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: x, UID in object meta: {uid}"
            ),
        ),
        (
            "PATCH",
            a,
            json!({"metadata": {"resourceVersion": "1"}}),
            409,
            "Conflict",
            "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again",
        ),
        (
            "PATCH",
            a,
            json!({"metadata": {"name": "b"}}),
            400,
            "BadRequest",
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        (
            "DELETE",
            a,
            json!({"preconditions": {"uid": "z"}}),
            409,
            "Conflict",
            &format!(
                "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (z) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            ),
        ),
        (
            "DELETE",
            a,
            json!({"preconditions": {"resourceVersion": "1"}}),
            409,
            "Conflict",
            &format!(
                "Operation cannot be fulfilled on ConfigMap \"a\": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({version}). The object might have been modified"
            ),
        ),
        (
            "DELETE",
            "/api/v1/namespaces/default",
            Value::Null,
            403,
            "Forbidden",
            "namespaces \"default\" is forbidden: this namespace may not be deleted",
        ),
        (
            "GET",
            &format!("{CONFIG_MAPS}?limit=abc"),
            Value::Null,
            400,
            "BadRequest",
            "strconv.ParseInt: parsing \"abc\": invalid syntax",
        ),
        (
            "GET",
            &format!("{CONFIG_MAPS}?labelSelector=a%20b%20c"),
            Value::Null,
            400,
            "BadRequest",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "GET",
            &format!("{CONFIG_MAPS}?fieldSelector=spec.x%3Dy"),
            Value::Null,
            400,
            "BadRequest",
            "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        (
            "GET",
            "/api/v1/configmaps?resourceVersionMatch=Exact",
            Value::Null,
            422,
            "Invalid",
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
    ];
    for (method, path, body, code, reason, message) in cases {
        let (got, status) = http.call(method, path, body.clone()).await;
        let got = (
            got,
            status["reason"].as_str().unwrap_or_default(),
            status["message"].as_str().unwrap_or_default(),
        );
        assert_eq!(got, (*code, *reason, *message), "{method} {path}");
    }
}

#[tokio::test]
async fn patches_change_objects_in_every_language() {
    let (_server, http) = admin();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"l": "1"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let (code, made) = http.post(pods, pod).await;
    assert_eq!(code, 201, "{made}");
    let path = format!("{pods}/a");
    let cases = [
        (
            "application/merge-patch+json",
            json!({"metadata": {"labels": {"l": null, "m": "2"}}}),
            "/metadata/labels",
            json!({"m": "2"}),
        ),
        (
            "application/json-patch+json",
            json!([{"op": "add", "path": "/metadata/labels/n", "value": "3"}]),
            "/metadata/labels",
            json!({"m": "2", "n": "3"}),
        ),
        (
            "application/strategic-merge-patch+json",
            json!({"spec": {"containers": [{"name": "c", "image": "j"}]}}),
            "/spec/containers/0/image",
            json!("j"),
        ),
    ];
    for (media, patch, pointer, expected) in cases {
        let (code, got) = http.call_as("PATCH", &path, media, patch).await;
        assert_eq!(
            (code, got.pointer(pointer)),
            (200, Some(&expected)),
            "{media}: {got}"
        );
    }
    let (code, status) = http
        .call_as(
            "PATCH",
            &path,
            "application/json-patch+json",
            json!([{"op": "test", "path": "/kind", "value": "x"}]),
        )
        .await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    let (code, status) = http.call_as("PATCH", &path, "text/plain", json!({})).await;
    assert_eq!(
        (code, &status["reason"]),
        (415, &json!("UnsupportedMediaType"))
    );
}

#[tokio::test]
async fn a_dry_run_answers_and_stores_nothing() {
    let (server, http) = admin();
    let (code, made) = http
        .post(
            &format!("{CONFIG_MAPS}?dryRun=All"),
            config_map("a", json!({})),
        )
        .await;
    assert_eq!((code, &made["metadata"]["name"]), (201, &json!("a")));
    assert_eq!(made["metadata"].get("resourceVersion"), None);
    assert_eq!(http.get(&format!("{CONFIG_MAPS}/a")).await.0, 404);
    assert_eq!(server.requests().writes(), 0);
    http.post(CONFIG_MAPS, config_map("a", json!({"x": "1"})))
        .await;
    let path = format!("{CONFIG_MAPS}/a");
    let (_, tried) = http
        .call(
            "PATCH",
            &format!("{path}?dryRun=All"),
            json!({"data": {"x": "2"}}),
        )
        .await;
    assert_eq!(tried["data"]["x"], "2");
    assert_eq!(http.get(&path).await.1["data"]["x"], "1");
    assert_eq!(http.delete(&format!("{path}?dryRun=All")).await.0, 200);
    assert_eq!(http.get(&path).await.0, 200);
    assert_eq!(server.requests().writes(), 1);
}

#[tokio::test]
async fn finalizers_hold_an_object_back() {
    let (_server, http) = admin();
    let mut object = config_map("a", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/x"]);
    http.post(CONFIG_MAPS, object).await;
    let path = format!("{CONFIG_MAPS}/a");
    let (code, ending) = http.delete(&path).await;
    assert_eq!(
        (code, &ending["metadata"]["deletionTimestamp"]),
        (200, &json!("2023-11-14T22:13:20Z"))
    );
    let (code, same) = http.delete(&path).await;
    assert_eq!((code, same), (200, ending));
    let (code, _) = http
        .call("PATCH", &path, json!({"metadata": {"finalizers": null}}))
        .await;
    assert_eq!(code, 200);
    assert_eq!(http.get(&path).await.0, 404);
}
