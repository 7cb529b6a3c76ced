//! CustomResourceDefinitions and the objects that they define.

use crate::support::{Http, admin, settle};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "required": ["color"],
                            "properties": {
                                "color": {"type": "string"},
                                "size": {"type": "integer", "default": 3},
                            },
                        },
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    },
                }},
            }],
        },
    })
}

async fn define(http: &Http) -> Value {
    let (code, made) = http.post(DEFINITIONS, definition()).await;
    assert_eq!(code, 201, "{made}");
    http.get(&format!("{DEFINITIONS}/widgets.example.com"))
        .await
        .1
}

fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_definition_is_served_at_once() {
    let (_server, http) = admin();
    assert_eq!(http.get(WIDGETS).await.0, 404);
    let made = define(&http).await;
    let conditions: Vec<_> = made["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            format!(
                "{}={}",
                c["type"].as_str().unwrap(),
                c["status"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(conditions, ["NamesAccepted=True", "Established=True"]);
    assert_eq!(made["status"]["acceptedNames"]["singular"], "widget");
    let (code, list) = http.get(WIDGETS).await;
    assert_eq!((code, &list["kind"]), (200, &json!("WidgetList")));
    let (code, group) = http.get("/apis/example.com").await;
    assert_eq!(
        (code, &group["preferredVersion"]["version"]),
        (200, &json!("v1"))
    );
    let (_, resources) = http.get("/apis/example.com/v1").await;
    let names: Vec<_> = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].clone())
        .collect();
    assert_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
}

#[tokio::test]
async fn custom_objects_follow_their_schema() {
    let (_server, http) = admin();
    define(&http).await;
    let mut object = widget("a", &json!({"color": "red", "weight": 4}));
    object["status"] = json!({"a": 1});
    let (code, made) = http.post(WIDGETS, object).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(
        made["spec"],
        json!({"color": "red", "size": 3}),
        "pruned and defaulted"
    );
    assert_eq!(
        (made.get("status"), &made["metadata"]["generation"]),
        (None, &json!(1))
    );
    let path = format!("{WIDGETS}/a");
    let (code, got) = http
        .call(
            "PATCH",
            &format!("{path}/status"),
            json!({"spec": {"color": "blue"}, "status": {"b": 2}}),
        )
        .await;
    assert_eq!(
        (
            code,
            &got["spec"]["color"],
            &got["status"],
            &got["metadata"]["generation"]
        ),
        (200, &json!("red"), &json!({"b": 2}), &json!(1))
    );
    let (code, got) = http
        .call(
            "PATCH",
            &path,
            json!({"spec": {"color": "blue"}, "status": null}),
        )
        .await;
    assert_eq!(
        (code, &got["status"], &got["metadata"]["generation"]),
        (200, &json!({"b": 2}), &json!(2))
    );
    let (code, got) = http
        .call(
            "PATCH",
            &format!("{path}/scale"),
            json!({"spec": {"replicas": 8}}),
        )
        .await;
    assert_eq!((code, &got["spec"]["replicas"]), (200, &json!(8)));
    assert_eq!(http.get(&path).await.1["spec"]["size"], 8);
}

#[tokio::test]
async fn refusals_of_custom_objects_are_worded_as_the_server_words_them() {
    let (_server, http) = admin();
    define(&http).await;
    http.post(WIDGETS, widget("a", &json!({"color": "red"})))
        .await;
    let a = &format!("{WIDGETS}/a");
    let typed = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "b"}, "spec": {"color": "red"}});
    let cases = [
        (
            "POST",
            WIDGETS,
            widget("b", &json!({"size": "s"})),
            422,
            "Widget.example.com \"b\" is invalid: [spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\", spec.color: Required value, .spec.size: Invalid value: 0: .spec.size accessor error: s is of the type string, expected int64]",
        ),
        (
            "POST",
            WIDGETS,
            typed("example.com/v1", "Gadget"),
            422,
            "Gadget.example.com \"b\" is invalid: kind: Invalid value: \"Gadget\": must be Widget",
        ),
        (
            "POST",
            WIDGETS,
            typed("example.com/v2", "Widget"),
            400,
            "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)",
        ),
        (
            "PUT",
            a,
            widget("a", &json!({"color": "red"})),
            422,
            "widgets.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
        ),
        (
            "POST",
            &format!("{WIDGETS}?fieldValidation=Strict"),
            widget("b", &json!({"color": "red", "weight": 4})),
            400,
            "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.weight\"",
        ),
    ];
    for (method, path, body, code, message) in cases {
        let (got, status) = http.call(method, path, body).await;
        assert_eq!(
            (got, status["message"].as_str()),
            (code, Some(message)),
            "{method} {path}"
        );
    }
    let (code, _) = http
        .call_as(
            "PATCH",
            a,
            "application/strategic-merge-patch+json",
            json!({}),
        )
        .await;
    assert_eq!(code, 415);
}

#[tokio::test]
async fn custom_objects_can_be_applied() {
    let (_server, http) = admin();
    define(&http).await;
    let path = format!("{WIDGETS}/a");
    let (code, made) = http
        .apply(&path, "m", widget("a", &json!({"color": "red"})))
        .await;
    assert_eq!((code, &made["spec"]["size"]), (201, &json!(3)));
    let (code, same) = http
        .apply(&path, "m", widget("a", &json!({"color": "red"})))
        .await;
    assert_eq!((code, same), (200, made));
    let (code, status) = http
        .apply(&path, "m", widget("a", &json!({"size": "s"})))
        .await;
    assert_eq!(
        (code, status["message"].as_str()),
        (
            500,
            Some(
                "failed to create typed patch object (/a; example.com/v1, Kind=Widget): .spec.size: expected numeric (int or float), got string"
            )
        )
    );
}

#[tokio::test]
async fn a_definition_ends_with_its_objects() {
    let (_server, http) = admin();
    define(&http).await;
    http.post(WIDGETS, widget("a", &json!({"color": "red"})))
        .await;
    let (code, ending) = http
        .delete(&format!("{DEFINITIONS}/widgets.example.com"))
        .await;
    assert_eq!(
        (code, &ending["metadata"]["finalizers"]),
        (200, &json!(["customresourcecleanup.apiextensions.k8s.io"]))
    );
    settle().await;
    assert_eq!(
        http.get(&format!("{DEFINITIONS}/widgets.example.com"))
            .await
            .0,
        404
    );
    assert_eq!(http.get(WIDGETS).await.0, 404);
    define(&http).await;
    let (_, list) = http.get(WIDGETS).await;
    assert_eq!(
        list["items"],
        json!([]),
        "the objects of the former definition are gone"
    );
}

#[tokio::test]
async fn a_name_that_is_given_up_goes_to_who_waits_for_it() {
    let (server, http) = admin();
    let of = |plural: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com",
                "names": {"plural": plural, "kind": "Same"},
                "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {"type": "object"},
                }}],
            },
        })
    };
    for plural in ["firsts", "seconds"] {
        assert_eq!(http.post(DEFINITIONS, of(plural)).await.0, 201);
    }
    let seconds = "/apis/example.com/v1/namespaces/default/seconds";
    assert_eq!(http.get(seconds).await.0, 404, "its kind is another's");
    // A fork has to find out by itself who waits.
    let fork = Http(server.fork(reeve_sim::Clock::system()).client());
    for http in [&fork, &http] {
        http.delete(&format!("{DEFINITIONS}/firsts.example.com"))
            .await;
        settle().await;
        let (_, second) = http
            .get(&format!("{DEFINITIONS}/seconds.example.com"))
            .await;
        let accepted = &second["status"]["acceptedNames"]["kind"];
        assert_eq!(accepted, "Same", "{}", second["status"]);
        assert_eq!(http.get(seconds).await.0, 200);
    }
}

#[tokio::test]
async fn rules_that_are_usual_work() {
    let (_server, http) = admin();
    let mut definition = definition();
    *definition
        .pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec")
        .unwrap() = json!({
        "type": "object",
        "properties": {
            "color": {"type": "string"},
            "max_size": {"type": "integer"},
            "ratio": {"type": "number"},
        },
        "x-kubernetes-validations": [
            {"rule": "!has(self.max_size) || self.max_size > 0", "message": "max_size must be positive"},
            {"rule": "self.?ratio.orValue(1.0) * 2.0 < 5.0", "message": "ratio too large"},
            {
                "rule": "!oldSelf.hasValue() || oldSelf.value().color == self.color",
                "optionalOldSelf": true,
                "message": "color is immutable",
            },
        ],
    });
    let (code, made) = http.post(DEFINITIONS, definition).await;
    assert_eq!(code, 201, "{made}");
    let fine = widget("a", &json!({"color": "red", "max_size": 1, "ratio": 1}));
    let (code, made) = http.post(WIDGETS, fine).await;
    assert_eq!(code, 201, "{made}");
    for (spec, why) in [
        (json!({"max_size": 0}), "max_size must be positive"),
        (json!({"ratio": 3}), "ratio too large"),
        (json!({"color": "blue"}), "color is immutable"),
    ] {
        let (code, refused) = http
            .call("PATCH", &format!("{WIDGETS}/a"), json!({"spec": spec}))
            .await;
        assert_eq!(
            (code, refused["message"].as_str()),
            (
                422,
                Some(
                    format!("Widget.example.com \"a\" is invalid: spec: Invalid value: {why}")
                        .as_str()
                )
            ),
            "{spec}"
        );
    }
}

#[tokio::test]
async fn a_stricter_schema_is_held_against_changes_only() {
    let (_server, http) = admin();
    define(&http).await;
    let spec = json!({"color": "red", "size": 5});
    let (code, made) = http.post(WIDGETS, widget("a", &spec)).await;
    assert_eq!(code, 201, "{made}");
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let (_, mut stricter) = http.get(&path).await;
    let schema = stricter
        .pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec")
        .unwrap();
    schema["properties"]["size"]["maximum"] = json!(3);
    schema["x-kubernetes-validations"] =
        json!([{"rule": "self.color != 'red'", "message": "no red"}]);
    let (code, changed) = http.call("PUT", &path, stricter).await;
    assert_eq!(code, 200, "{changed}");
    let patch = |body: Value| {
        http.call(
            "PATCH",
            "/apis/example.com/v1/namespaces/default/widgets/a",
            body,
        )
    };
    let (code, labelled) = patch(json!({"metadata": {"labels": {"x": "y"}}})).await;
    assert_eq!(code, 200, "{labelled}");
    for (change, why) in [
        (
            json!({"size": 6}),
            "spec.size: Invalid value: 6: spec.size in body should be less than or equal to 3",
        ),
        // The size may stay; that the spec is changed brings its own rules back.
        (
            json!({"other": 1, "size": 2}),
            "spec: Invalid value: no red",
        ),
    ] {
        let (code, refused) = patch(json!({"spec": change})).await;
        let message = refused["message"].as_str().unwrap();
        assert_eq!(code, 422, "{refused}");
        assert!(message.contains(why), "{message}");
    }
    let (code, fine) = patch(json!({"spec": {"color": "blue"}})).await;
    assert_eq!((code, &fine["spec"]["size"]), (200, &json!(5)), "{fine}");
}
