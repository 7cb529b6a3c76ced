//! Paths beside those of objects, and requests at their edges.

use serde_json::{Value, json};

use crate::support::{CONFIG_MAPS, Http, admin, config_map};

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn make_pod(http: &Http, name: &str) {
    let asked = json!({"requests": {"cpu": "1"}});
    let container = json!({"name": "c", "image": "i:1", "resources": asked});
    let pod = json!({"metadata": {"name": name}, "spec": {
        "containers": [container],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "schedulingGates": [{"name": "hold"}],
    }});
    let (code, made) = http.post(PODS, pod).await;
    assert_eq!(code, 201, "{made}");
}

/// The code and the message of an answer.
fn told((code, answer): (u16, Value)) -> (u16, String) {
    let message = answer["message"].as_str().unwrap_or_default();
    (code, message.to_owned())
}

#[tokio::test]
async fn nothing_that_runs_is_reached() {
    let (_server, http) = admin();
    make_pod(&http, "p").await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let services = "/api/v1/namespaces/default/services";
    assert_eq!(http.post(services, service).await.0, 201);
    let check = async |method: &str, path: &str, code: u16, expected: &str| {
        let path = format!("/api/v1/namespaces/default/{path}");
        let answer = told(http.call(method, &path, Value::Null).await);
        assert_eq!(answer, (code, expected.to_owned()), "{method} {path}");
    };
    let homeless = "pod p does not have a host assigned";
    for method in ["GET", "POST"] {
        for way in ["exec?command=a", "attach", "portforward"] {
            check(method, &format!("pods/p/{way}"), 400, homeless).await;
        }
    }
    let other = "container x is not valid for pod p";
    check("GET", "pods/p/exec?command=a&container=x", 400, other).await;
    check("GET", "pods/x/attach", 404, "pods \"x\" not found").await;
    check("GET", "pods/p/proxy/x/y", 400, "address not allowed").await;
    let nobody = "services \"s\" not found";
    check("GET", "services/s/proxy", 404, nobody).await;
    check("DELETE", "services/s/proxy/x", 404, nobody).await;
    let port = "no service port 81 found for service \"s\"";
    check("GET", "services/s:81/proxy/", 503, port).await;
    let endpoints = json!({"metadata": {"name": "s"}});
    let path = "/api/v1/namespaces/default/endpoints";
    assert_eq!(http.post(path, endpoints).await.0, 201);
    let none = "no endpoints available for service \"s:80\"";
    check("GET", "services/s:80/proxy/", 503, none).await;
}

#[tokio::test]
async fn parts_of_a_pod_have_paths_of_their_own() {
    let (_server, http) = admin();
    make_pod(&http, "p").await;
    let patch = async |part: &str, change: Value| {
        let path = format!("{PODS}/p{part}");
        let media = "application/strategic-merge-patch+json";
        http.call_as("PATCH", &path, media, change).await
    };
    let debugged = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"ephemeralContainers": [{"name": "e", "image": "x:1"}]}});
    let (code, pod) = patch("/ephemeralcontainers", debugged).await;
    assert_eq!(code, 200, "{pod}");
    assert_eq!(pod["spec"]["ephemeralContainers"][0]["name"], "e");
    assert_eq!(pod["metadata"].get("labels"), None);
    let asked = json!({"requests": {"cpu": "2"}});
    let changed = json!([{"name": "c", "image": "other", "resources": asked}]);
    let (code, pod) = patch("/resize", json!({"spec": {"containers": changed}})).await;
    assert_eq!(code, 200, "{pod}");
    let container = &pod["spec"]["containers"][0];
    assert_eq!(
        (&container["resources"], &container["image"]),
        (&asked, &json!("i:1"))
    );
    let merge = async |spec: Value| {
        told(
            http.call("PATCH", &format!("{PODS}/p"), json!({"spec": spec}))
                .await,
        )
    };
    let invalid = |why: &str| (422, format!("Pod \"p\" is invalid: {why}"));
    assert_eq!(
        merge(json!({"tolerations": []})).await,
        invalid(
            "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
        )
    );
    assert_eq!(
        merge(json!({"schedulingGates": [{"name": "hold"}, {"name": "more"}]})).await,
        invalid(
            "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'more'"
        )
    );
    // What admission has added, it adds again.
    let kept = json!([{"key": "k", "operator": "Exists"}, {"key": "l", "operator": "Exists"}]);
    assert_eq!(
        merge(json!({"tolerations": kept, "schedulingGates": []}))
            .await
            .0,
        200
    );
    let (_, pod) = http.get(&format!("{PODS}/p")).await;
    assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 4);
    assert_eq!(pod["spec"].get("schedulingGates"), None);
}

#[tokio::test]
async fn a_binding_names_its_pod() {
    let (_server, http) = admin();
    let binding = |name: Value| json!({"metadata": {"name": name}, "target": {"name": "n"}});
    for (index, path) in ["pods/p0/binding", "bindings"].into_iter().enumerate() {
        let name = format!("p{index}");
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        assert_eq!(http.post(PODS, pod).await.0, 201);
        let path = format!("/api/v1/namespaces/default/{path}");
        let other = told(http.post(&path, binding(json!("other"))).await);
        let expected = match index {
            0 => (400, "name in URL does not match name in Binding object"),
            _ => (404, "pods \"other\" not found"),
        };
        assert_eq!(other, (expected.0, expected.1.to_owned()));
        assert_eq!(http.post(&path, binding(json!(5))).await.0, 400);
        assert_eq!(http.post(&path, binding(json!(name))).await.0, 201);
        let (_, pod) = http.get(&format!("{PODS}/{name}")).await;
        assert_eq!(pod["spec"]["nodeName"], "n");
    }
}

#[tokio::test]
async fn of_the_same_owners_one_is_kept() {
    let (_server, http) = admin();
    let (_, owner) = http.post(CONFIG_MAPS, config_map("owner", json!({}))).await;
    let uid = owner["metadata"]["uid"].clone();
    let reference =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid});
    let (own, other) = (reference("owner"), reference("other"));
    let mut object = config_map("a", json!({}));
    object["metadata"]["ownerReferences"] = json!([own, other, own]);
    let (code, made) = http.post(CONFIG_MAPS, object.clone()).await;
    assert_eq!(code, 201);
    let kept = json!([own, other]);
    assert_eq!(made["metadata"]["ownerReferences"], kept);
    let path = format!("{CONFIG_MAPS}/a");
    let (_, patched) = http.call("PATCH", &path, object).await;
    assert_eq!(patched["metadata"]["ownerReferences"], kept);
}

#[tokio::test]
async fn reviews_that_ask_too_much_or_nothing() {
    let (_server, http) = admin();
    let reviews = "/apis/authorization.k8s.io/v1";
    let check = async |path: &str, review: Value, expected: &[&str]| {
        let (code, answer) = http.post(path, review).await;
        let causes = answer["details"]["causes"].as_array().into_iter().flatten();
        let fields: Vec<&str> = causes
            .map(|cause| cause["field"].as_str().unwrap())
            .collect();
        assert_eq!((code, &fields[..]), (422, expected), "{answer}");
    };
    let subject = format!("{reviews}/subjectaccessreviews");
    let nothing = ["spec.resourceAttributes", "spec.user"];
    check(&subject, json!({"spec": {}}), &nothing).await;
    let resource = json!({"verb": "get", "resource": "pods"});
    let named =
        json!({"metadata": {"name": "x"}, "spec": {"user": "a", "resourceAttributes": resource}});
    check(&subject, named.clone(), &["metadata"]).await;
    let own = format!("{reviews}/selfsubjectaccessreviews");
    check(&own, named, &["metadata"]).await;
    let selector =
        json!({"rawSelector": "a", "requirements": [{"key": "a", "operator": "Exists"}]});
    let mut both = resource.clone();
    both["fieldSelector"] = selector;
    both["labelSelector"] = json!({});
    let path = "spec.resourceAttributes";
    check(
        &own,
        json!({"spec": {"resourceAttributes": both}}),
        &[
            &format!("{path}.fieldSelector.rawSelector"),
            &format!("{path}.labelSelector.requirements"),
        ],
    )
    .await;
    let tokens = "/apis/authentication.k8s.io/v1/tokenreviews";
    let empty = told(http.post(tokens, json!({"spec": {}})).await);
    let required = "token is required for TokenReview in authentication";
    assert_eq!(empty, (400, required.to_owned()));
    let of_nowhere = "/api/v1/namespaces/nowhere/serviceaccounts/default/token";
    let refused = told(http.post(of_nowhere, json!({})).await);
    assert_eq!(
        refused,
        (404, "namespaces \"nowhere\" not found".to_owned())
    );
}
