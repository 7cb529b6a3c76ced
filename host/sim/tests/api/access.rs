//! Who may do what: RBAC, impersonation, reviews, tokens.

use crate::support::{CONFIG_MAPS, Http, admin, config_map};
use http::Request;
use reeve_sim::{Clock, Server};
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
async fn a_new_server_has_granted_what_is_usual() {
    let (server, http) = admin();
    let code = async |user: &str, path: &str| {
        let client = Http(server.client_as(user, [""; 0]));
        client.get(path).await.0
    };
    let scheduler = "system:kube-scheduler";
    assert_eq!(code(scheduler, "/api/v1/pods").await, 200);
    assert_eq!(code(scheduler, "/api/v1/secrets").await, 403);
    let shared = "configmaps/extension-apiserver-authentication";
    let path = |namespace: &str| format!("/api/v1/namespaces/{namespace}/{shared}");
    assert_eq!(code(scheduler, &path("kube-system")).await, 404);
    assert_eq!(code(scheduler, &path("default")).await, 403);
    let collector = "system:serviceaccount:kube-system:generic-garbage-collector";
    assert_eq!(code(collector, "/api/v1/secrets").await, 200);
    let elsewhere = "system:serviceaccount:default:generic-garbage-collector";
    assert_eq!(code(elsewhere, "/api/v1/secrets").await, 403);

    let path = format!("{RBAC}/namespaces/default/rolebindings");
    let binding = json!({
        "metadata": {"name": "edits"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "User", "name": "ann"}],
    });
    assert_eq!(http.post(&path, binding).await.0, 201);
    let ann = Http(server.client_as("ann", [""; 0]));
    for (group, resource, verb, allowed) in [
        ("discovery.k8s.io", "endpointslices", "list", true),
        ("discovery.k8s.io", "endpointslices", "create", false),
        ("events.k8s.io", "events", "create", true),
        ("apps", "deployments/status", "get", true),
        ("apps", "controllerrevisions", "get", true),
        ("apps", "controllerrevisions", "update", false),
        ("", "endpoints", "update", false),
        ("", "pods/exec", "get", true),
        ("", "pods/eviction", "create", true),
        ("", "pods/eviction", "get", false),
    ] {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({"spec": {"resourceAttributes": {
            "namespace": "default", "verb": verb, "group": group,
            "resource": resource, "subresource": subresource,
        }}});
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let (_, answer) = ann.post(path, review).await;
        let found = &answer["status"]["allowed"];
        assert_eq!(*found, allowed, "{verb} {group} {resource} {subresource}");
    }
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

/// Whoever was refused or served a moment ago is asked about anew once a binding changes,
/// here or in a fork.
#[tokio::test]
async fn rights_in_the_whole_cluster_hold_for_as_long_as_they_are_bound() {
    let (server, http) = admin();
    let reads = |server: &Server| Http(server.client_as("joe", [""; 0]));
    let joe = reads(&server);
    assert_eq!(joe.get("/api/v1/nodes").await.0, 403);
    let role = json!({
        "metadata": {"name": "nodes"},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
    });
    let roles = format!("{RBAC}/clusterroles");
    assert_eq!(http.post(&roles, role).await.0, 201);
    let binding = json!({
        "metadata": {"name": "nodes"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "nodes"},
        "subjects": [{"kind": "User", "name": "joe"}],
    });
    let bindings = format!("{RBAC}/clusterrolebindings");
    assert_eq!(http.post(&bindings, binding).await.0, 201);
    assert_eq!(joe.get("/api/v1/nodes").await.0, 200);

    let fork = server.fork(Clock::system());
    assert_eq!(reads(&fork).get("/api/v1/nodes").await.0, 200);
    let admin = Http(fork.client());
    assert_eq!(admin.delete(&format!("{bindings}/nodes")).await.0, 200);
    assert_eq!(reads(&fork).get("/api/v1/nodes").await.0, 403);
    assert_eq!(joe.get("/api/v1/nodes").await.0, 200);

    assert_eq!(http.delete(&format!("{roles}/nodes")).await.0, 200);
    assert_eq!(joe.get("/api/v1/nodes").await.0, 403);
    assert_eq!(http.delete(&format!("{bindings}/nodes")).await.0, 200);
    assert_eq!(joe.get("/api/v1/nodes").await.0, 403);
}

/// Whoever asks the same again is told what holds now, here or in a fork, of himself or of
/// others.
#[tokio::test]
async fn reviews_follow_from_the_rules_as_they_are() {
    const REVIEWS: &str = "/apis/authorization.k8s.io/v1";
    let (server, http) = admin();
    let asked = json!({"verb": "list", "resource": "nodes"});
    let of_joe = json!({"spec": {"user": "joe", "resourceAttributes": asked}});
    let of_oneself = json!({"spec": {"resourceAttributes": asked}});
    let of_joe = &of_joe;
    let others = format!("{REVIEWS}/subjectaccessreviews");
    let own = format!("{REVIEWS}/selfsubjectaccessreviews");
    let may = async |server: &Server| {
        let mut said = Vec::new();
        for _ in 0..2 {
            let (code, answer) = Http(server.client()).post(&others, of_joe.clone()).await;
            assert_eq!(code, 201, "{answer}");
            assert_eq!(answer["spec"], of_joe["spec"]);
            said.push(answer["status"]["allowed"].clone());
        }
        for name in ["joe", "ann", "joe"] {
            let client = Http(server.client_as(name, [""; 0]));
            let (_, answer) = client.post(&own, of_oneself.clone()).await;
            said.push(answer["status"]["allowed"].clone());
        }
        json!(said)
    };
    let (no, yes) = (
        json!([false, false, false, false, false]),
        json!([true, true, true, false, true]),
    );
    assert_eq!(may(&server).await, no);
    let role = json!({
        "metadata": {"name": "nodes"},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
    });
    let roles = format!("{RBAC}/clusterroles");
    assert_eq!(http.post(&roles, role).await.0, 201);
    let binding = json!({
        "metadata": {"name": "nodes"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "nodes"},
        "subjects": [{"kind": "User", "name": "joe"}],
    });
    let bindings = format!("{RBAC}/clusterrolebindings");
    let before = server.fork(Clock::system());
    assert_eq!(http.post(&bindings, binding).await.0, 201);
    assert_eq!(may(&server).await, yes);
    assert_eq!(may(&before).await, no);

    let fork = server.fork(Clock::system());
    assert_eq!(may(&fork).await, yes);
    let admin = Http(fork.client());
    assert_eq!(admin.delete(&format!("{bindings}/nodes")).await.0, 200);
    assert_eq!(may(&fork).await, no);
    assert_eq!(may(&server).await, yes);
    assert_eq!(http.delete(&format!("{roles}/nodes")).await.0, 200);
    assert_eq!(may(&server).await, no);
}

/// What was answered with a warning is refused to who asks for that, and the other way round.
#[tokio::test]
async fn reviews_with_unknown_fields_are_told_of_as_their_askers_wish() {
    let (_, http) = admin();
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let review = json!({"spec": {
        "user": "joe", "resourceAttributes": {"verb": "list", "resource": "nodes"}, "x": 1,
    }});
    let mut warned = Vec::new();
    for query in [
        "",
        "",
        "?fieldValidation=Strict",
        "?fieldValidation=Ignore",
        "",
    ] {
        let request = Request::post(format!("{path}{query}"))
            .header("content-type", "application/json")
            .body(review.to_string().into_bytes());
        let answer = http.0.send(request.unwrap().map(Into::into)).await.unwrap();
        warned.push((
            answer.status().as_u16(),
            answer.headers().contains_key("warning"),
        ));
    }
    let told = (201, true);
    assert_eq!(warned, [told, told, (400, false), (201, false), told]);
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
            "configmaps is forbidden: User \"joe\" cannot impersonate-on:serviceaccount:list resource \"configmaps\" in API group \"\" in the namespace \"default\""
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

#[tokio::test]
async fn one_name_is_listed_and_watched_by_who_may_see_that() {
    let (server, http) = admin();
    let bot = Http(server.client_as(BOT, [""; 0]));
    grant(&http, json!(["create"])).await;
    let rules = json!({"rules": [{
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["s"],
        "verbs": ["list", "watch", "deletecollection"],
    }]});
    let role = format!("{RBAC}/namespaces/default/roles/bot");
    assert_eq!(http.call("PATCH", &role, rules).await.0, 200);
    http.post(CONFIG_MAPS, config_map("s", json!({}))).await;
    for (query, expected) in [
        ("fieldSelector=metadata.name%3Ds", 200),
        (
            "fieldSelector=metadata.name%3D%3Ds,metadata.namespace%3Ddefault",
            200,
        ),
        (
            "watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Ds",
            200,
        ),
        ("fieldSelector=metadata.name%3Dt", 403),
        ("fieldSelector=metadata.name!%3Ds", 403),
        ("labelSelector=metadata.name%3Ds", 403),
        ("", 403),
    ] {
        let path = format!("{CONFIG_MAPS}?{query}");
        if query.starts_with("watch") {
            // The stream itself is looked at elsewhere.
            let request = Request::get(&path).body(kube::client::Body::empty());
            let answer = bot.0.send(request.unwrap()).await.unwrap();
            assert_eq!(answer.status().as_u16(), expected, "{query}");
            continue;
        }
        assert_eq!(bot.get(&path).await.0, expected, "{query}");
    }
    let (code, refused) = bot
        .get(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dt"))
        .await;
    assert_eq!(
        (code, refused["message"].as_str()),
        (
            403,
            Some(
                "configmaps \"t\" is forbidden: User \"system:serviceaccount:default:bot\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\""
            )
        )
    );
    let (code, _) = bot
        .delete(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Ds"))
        .await;
    assert_eq!(
        code, 403,
        "a collection is deleted by who may delete all of it"
    );
}

#[tokio::test]
async fn a_token_ends_with_what_it_is_bound_to() {
    let (_server, http) = admin();
    crate::support::settle().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bot"}});
    http.post(accounts, account.clone()).await;
    http.post(
        "/api/v1/namespaces/default/secrets",
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}),
    )
    .await;
    let request = |spec: Value| {
        http.post(
            "/api/v1/namespaces/default/serviceaccounts/bot/token",
            json!({"spec": spec}),
        )
    };
    let known = |token: Value| {
        let review = json!({"spec": {"token": token}});
        let http = http.clone();
        async move {
            let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
            http.post(reviews, review).await.1["status"]["authenticated"] == true
        }
    };
    let token = |answer: (u16, Value)| {
        assert_eq!(answer.0, 201, "{}", answer.1);
        answer.1["status"]["token"].clone()
    };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "name": "s"});
    let plain = token(request(json!({})).await);
    let bound = token(request(json!({"boundObjectRef": secret})).await);
    assert!(known(plain.clone()).await && known(bound.clone()).await);
    http.delete("/api/v1/namespaces/default/secrets/s").await;
    assert!(!known(bound).await, "the secret is gone");
    assert!(known(plain.clone()).await);
    http.delete(&format!("{accounts}/bot")).await;
    assert!(!known(plain.clone()).await, "the account is gone");
    http.post(accounts, account).await;
    assert!(
        !known(plain).await,
        "another account of that name is another"
    );
    assert_eq!(
        message(&request(json!({"boundObjectRef": secret})).await),
        (404, "secrets \"s\" not found")
    );
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "s"});
    assert_eq!(
        message(&request(json!({"boundObjectRef": config})).await),
        (
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap"
        )
    );
    let tried = http
        .post(
            "/api/v1/namespaces/default/serviceaccounts/bot/token?dryRun=All",
            json!({"spec": {}}),
        )
        .await;
    assert!(!known(token(tried)).await, "a token that was only tried");
}

#[tokio::test]
async fn reviews_and_token_requests_are_typed() {
    let (_server, http) = admin();
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let wrong = json!({"spec": {"resourceAttributes": {"verb": 5}}});
    assert_eq!(
        message(&http.post(reviews, wrong).await),
        (
            400,
            "SelfSubjectAccessReview in version \"v1\" cannot be handled as a SelfSubjectAccessReview: json: cannot unmarshal number into Go struct field ResourceAttributes.spec.resourceAttributes.verb of type string"
        )
    );
    let unknown = json!({"spec": {"resourceAttributes": {"verb": "get", "what": "x"}}});
    assert_eq!(
        message(
            &http
                .post(&format!("{reviews}?fieldValidation=Strict"), unknown)
                .await
        ),
        (
            400,
            "SelfSubjectAccessReview in version \"v1\" cannot be handled as a SelfSubjectAccessReview: strict decoding error: unknown field \"spec.resourceAttributes.what\""
        )
    );
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let wrong = json!({"spec": {"expirationSeconds": "long"}});
    assert_eq!(
        message(&http.post(path, wrong).await),
        (
            400,
            "TokenRequest in version \"v1\" cannot be handled as a TokenRequest: json: cannot unmarshal string into Go struct field TokenRequestSpec.spec.expirationSeconds of type int64"
        )
    );
}

#[tokio::test]
async fn requests_to_what_is_not_served_are_not_kept() {
    let (server, http) = admin();
    http.get(CONFIG_MAPS).await;
    let before = server.requests().total();
    for n in 0..10 {
        http.get(&format!("/apis/g{n}.example.com/v1/things")).await;
        http.get(&format!("{CONFIG_MAPS}/a/sub{n}")).await;
    }
    assert_eq!(server.requests().total(), before);
}
