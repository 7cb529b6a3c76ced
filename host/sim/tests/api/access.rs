//! Who may do what: RBAC, impersonation, reviews, tokens.

use crate::support::{CONFIG_MAPS, Http, admin, config_map};
use http::Request;
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const BOT: &str = "system:serviceaccount:default:bot";

/// Lets the service account `bot` do `verbs` to config maps in `default`.
async fn grant(http: &Http, verbs: Value) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "bot"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}],
    });
    let (code, made) = http
        .post(&format!("{RBAC}/namespaces/default/roles"), role)
        .await;
    assert_eq!(code, 201, "{made}");
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "bot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "bot"},
        "subjects": [{"kind": "ServiceAccount", "name": "bot", "namespace": "default"}],
    });
    let (code, made) = http
        .post(&format!("{RBAC}/namespaces/default/rolebindings"), binding)
        .await;
    assert_eq!(code, 201, "{made}");
}

async fn impersonate(http: &Http, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    http.send(request.body(Vec::new()).unwrap()).await
}

fn message(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["message"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn roles_grant_what_they_say_and_no_more() {
    let (server, http) = admin();
    let bot = Http(server.client_as(BOT, [""; 0]));
    assert_eq!(
        message(&bot.get(CONFIG_MAPS).await),
        (
            403,
            "configmaps is forbidden: User \"system:serviceaccount:default:bot\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\""
        )
    );
    grant(&http, json!(["list"])).await;
    assert_eq!(bot.get(CONFIG_MAPS).await.0, 200);
    assert_eq!(
        message(&bot.post(CONFIG_MAPS, config_map("a", json!({}))).await),
        (
            403,
            "configmaps is forbidden: User \"system:serviceaccount:default:bot\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\""
        )
    );
    assert_eq!(bot.get("/api/v1/configmaps").await.0, 403);
    assert_eq!(
        bot.get("/api").await.0,
        200,
        "discovery is for everybody known"
    );
    http.delete(&format!("{RBAC}/namespaces/default/rolebindings/bot"))
        .await;
    assert_eq!(bot.get(CONFIG_MAPS).await.0, 403);
}

#[tokio::test]
async fn rights_cannot_be_given_away_by_those_who_lack_them() {
    let (server, http) = admin();
    grant(&http, json!(["list"])).await;
    let everything = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "x"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "joe"}],
    });
    // Joe may write bindings, and yet not bind himself to more.
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "binder"},
        "rules": [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterrolebindings"], "verbs": ["create"]}],
    });
    http.post(&format!("{RBAC}/clusterroles"), role).await;
    let mut binding = everything.clone();
    binding["metadata"]["name"] = json!("binder");
    binding["roleRef"]["name"] = json!("binder");
    assert_eq!(
        http.post(&format!("{RBAC}/clusterrolebindings"), binding)
            .await
            .0,
        201
    );
    let joe = Http(server.client_as("joe", [""; 0]));
    let (code, status) = joe
        .post(&format!("{RBAC}/clusterrolebindings"), everything.clone())
        .await;
    assert_eq!(
        (code, &status["reason"]),
        (403, &json!("Forbidden")),
        "{status}"
    );
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("attempting to grant RBAC permissions not currently held")
    );
    assert_eq!(
        http.post(&format!("{RBAC}/clusterrolebindings"), everything)
            .await
            .0,
        201
    );
}

#[tokio::test]
async fn impersonation_is_a_right_and_brings_groups() {
    let (server, http) = admin();
    grant(&http, json!(["list"])).await;
    let as_bot = [("impersonate-user", BOT)];
    assert_eq!(impersonate(&http, CONFIG_MAPS, &as_bot).await.0, 200);
    let (_, review) = {
        let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header("impersonate-user", BOT)
            .header("content-type", "application/json")
            .body(b"{}".to_vec())
            .unwrap();
        http.send(request).await
    };
    assert_eq!(
        review["status"]["userInfo"]["groups"],
        json!([
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated"
        ])
    );
    let joe = Http(server.client_as("joe", [""; 0]));
    assert_eq!(
        message(&impersonate(&joe, CONFIG_MAPS, &as_bot).await),
        (
            403,
            "serviceaccounts \"bot\" is forbidden: User \"joe\" cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"default\""
        )
    );
    assert_eq!(
        impersonate(&http, CONFIG_MAPS, &[("impersonate-user", "joe")])
            .await
            .0,
        403
    );
}

#[tokio::test]
async fn reviews_say_what_requests_would_meet() {
    let (server, http) = admin();
    grant(&http, json!(["list"])).await;
    let review = |kind: &str, verb: &str, subject: Value| {
        let mut review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": kind,
            "metadata": {},
            "spec": {"resourceAttributes": {"verb": verb, "resource": "configmaps", "namespace": "default"}},
        });
        for (key, value) in subject.as_object().unwrap() {
            review["spec"][key] = value.clone();
        }
        review
    };
    let path = |plural: &str| format!("/apis/authorization.k8s.io/v1/{plural}");
    let bot = json!({"user": BOT});
    for (verb, allowed) in [("list", true), ("get", false)] {
        let (code, answer) = http
            .post(
                &path("subjectaccessreviews"),
                review("SubjectAccessReview", verb, bot.clone()),
            )
            .await;
        assert_eq!((code, &answer["status"]["allowed"]), (201, &json!(allowed)));
        let local = path("namespaces/default/localsubjectaccessreviews");
        let (code, answer) = http
            .post(
                &local,
                review("LocalSubjectAccessReview", verb, bot.clone()),
            )
            .await;
        assert_eq!((code, &answer["status"]["allowed"]), (201, &json!(allowed)));
        let client = Http(server.client_as(BOT, [""; 0]));
        let (code, answer) = client
            .post(
                &path("selfsubjectaccessreviews"),
                review("SelfSubjectAccessReview", verb, json!({})),
            )
            .await;
        assert_eq!((code, &answer["status"]["allowed"]), (201, &json!(allowed)));
    }
    let client = Http(server.client_as(BOT, [""; 0]));
    let rules = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}});
    let (_, answer) = client.post(&path("selfsubjectrulesreviews"), rules).await;
    let wanted = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]});
    assert!(
        answer["status"]["resourceRules"]
            .as_array()
            .unwrap()
            .contains(&wanted),
        "{answer}"
    );
    assert_eq!(server.requests().writes(), 2, "reviews are no writes");
}

#[tokio::test]
async fn a_service_account_gets_a_token() {
    let (_server, http) = admin();
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let (code, answer) = http
        .post(path, json!({"spec": {"expirationSeconds": 600}}))
        .await;
    assert_eq!(
        (code, &answer["status"]["expirationTimestamp"]),
        (201, &json!("2023-11-14T22:23:20Z"))
    );
    let review = json!({"spec": {"token": answer["status"]["token"]}});
    let (_, answer) = http
        .post("/apis/authentication.k8s.io/v1/tokenreviews", review)
        .await;
    assert_eq!(
        (
            &answer["status"]["authenticated"],
            &answer["status"]["user"]["username"]
        ),
        (
            &json!(true),
            &json!("system:serviceaccount:default:default")
        )
    );
    let missing = "/api/v1/namespaces/default/serviceaccounts/nope/token";
    assert_eq!(http.post(missing, json!({"spec": {}})).await.0, 404);
}
