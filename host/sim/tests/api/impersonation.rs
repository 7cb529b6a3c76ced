//! Acting for somebody else, in each of the ways.

use crate::support::{CONFIG_MAPS, Http, admin};
use http::Request;
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const AUTHENTICATION: &str = "authentication.k8s.io";
const BOT: &str = "system:serviceaccount:default:bot";

/// Lets the user `joe` do what `rules` say, everywhere.
async fn grant(http: &Http, name: &str, rules: Value) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    });
    let (code, made) = http.post(&format!("{RBAC}/clusterroles"), role).await;
    assert_eq!(code, 201, "{made}");
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "joe"}],
    });
    let path = format!("{RBAC}/clusterrolebindings");
    let (code, made) = http.post(&path, binding).await;
    assert_eq!(code, 201, "{made}");
}

fn rule(group: &str, resource: &str, verb: &str) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]})
}

/// Who the API server takes the caller for, or why not.
async fn who(http: &Http, headers: &[(&str, &str)]) -> Result<Value, String> {
    let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", "application/json");
    let request = headers.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    let (code, review) = http.send(request.body(b"{}".to_vec()).unwrap()).await;
    match code {
        201 => Ok(review["status"]["userInfo"].clone()),
        _ => Err(review["message"].as_str().unwrap_or_default().to_owned()),
    }
}

async fn list_as(http: &Http, user: &str) -> Result<(), String> {
    let request = Request::get(CONFIG_MAPS).header("impersonate-user", user);
    let (code, answer) = http.send(request.body(Vec::new()).unwrap()).await;
    match code {
        200 => Ok(()),
        _ => Err(answer["message"].as_str().unwrap_or_default().to_owned()),
    }
}

#[tokio::test]
async fn who_is_impersonated_has_the_groups_of_such_a_user() {
    let (_server, http) = admin();
    let groups =
        async |headers: &[(&str, &str)]| who(&http, headers).await.unwrap()["groups"].clone();
    let user = "impersonate-user";
    let group = "impersonate-group";
    assert_eq!(
        groups(&[(user, "joe")]).await,
        json!(["system:authenticated"])
    );
    assert_eq!(
        groups(&[(user, "joe"), (group, "a"), (group, "b")]).await,
        json!(["a", "b", "system:authenticated"])
    );
    // Nobody may review himself, and see what is open to all.
    let anonymous = [(user, "system:anonymous")];
    assert!(who(&http, &anonymous).await.is_err());
    let open = Request::get("/version").header(user, "system:anonymous");
    assert_eq!(http.send(open.body(Vec::new()).unwrap()).await.0, 200);
    assert_eq!(
        groups(&[(user, "system:node:n-1")]).await,
        json!(["system:nodes", "system:authenticated"])
    );
    assert_eq!(
        groups(&[(user, "system:node:n-1"), (group, "a")]).await,
        json!(["a", "system:authenticated"])
    );
}

#[tokio::test]
async fn it_may_be_granted_for_some_requests_only() {
    let (server, http) = admin();
    // What the bot itself may do.
    grant(&http, "unused", json!([])).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "bot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "bot", "namespace": "default"}],
    });
    http.post(&format!("{RBAC}/clusterrolebindings"), binding)
        .await;
    let joe = Http(server.client_as("joe", [""; 0]));
    let refusal = |verb: &str, resource: &str, group: &str| {
        Err(format!(
            "{resource} is forbidden: User \"joe\" cannot {verb} resource {} in API group \"{group}\" in the namespace \"default\"",
            if resource.contains(' ') {
                "\"serviceaccounts\""
            } else {
                "\"configmaps\""
            }
        ))
    };
    let on = "impersonate-on:serviceaccount:list";
    assert_eq!(list_as(&joe, BOT).await, refusal(on, "configmaps", ""));
    grant(&http, "on", json!([rule("", "configmaps", on)])).await;
    assert_eq!(
        list_as(&joe, BOT).await,
        refusal(
            "impersonate:serviceaccount",
            "serviceaccounts.authentication.k8s.io \"bot\"",
            AUTHENTICATION
        )
    );
    let account = rule(
        AUTHENTICATION,
        "serviceaccounts",
        "impersonate:serviceaccount",
    );
    grant(&http, "account", json!([account])).await;
    assert_eq!(list_as(&joe, BOT).await, Ok(()));
    // For nothing else than lists of config maps, and for no other sort of user.
    let review = "selfsubjectreviews.authentication.k8s.io is forbidden: User \"joe\" cannot impersonate-on:serviceaccount:create resource \"selfsubjectreviews\" in API group \"authentication.k8s.io\" at the cluster scope";
    let as_bot = [("impersonate-user", BOT)];
    assert_eq!(who(&joe, &as_bot).await, Err(review.to_owned()));
    let on = "impersonate-on:user-info:list";
    assert_eq!(list_as(&joe, "ann").await, refusal(on, "configmaps", ""));
}

#[tokio::test]
async fn some_groups_are_taken_on_by_the_oldest_right_alone() {
    let (server, http) = admin();
    let joe = Http(server.client_as("joe", [""; 0]));
    let reviews = "selfsubjectreviews";
    grant(
        &http,
        "user-info",
        json!([
            rule(AUTHENTICATION, reviews, "impersonate-on:user-info:create"),
            rule(AUTHENTICATION, "users", "impersonate:user-info"),
            rule(AUTHENTICATION, "groups", "impersonate:user-info"),
        ]),
    )
    .await;
    let headers = [("impersonate-user", "ann"), ("impersonate-group", "a")];
    assert_eq!(
        who(&joe, &headers).await.unwrap()["groups"],
        json!(["a", "system:authenticated"])
    );
    let headers = [
        ("impersonate-user", "ann"),
        ("impersonate-group", "system:masters"),
    ];
    assert_eq!(
        who(&joe, &headers).await,
        Err("groups.authentication.k8s.io \"system:masters\" is forbidden: User \"joe\" cannot impersonate:user-info resource \"groups\" in API group \"authentication.k8s.io\" at the cluster scope: impersonating the system:masters group is not allowed".to_owned())
    );
    let old = [
        rule("", "users", "impersonate"),
        rule("", "groups", "impersonate"),
    ];
    grant(&http, "legacy", json!(old)).await;
    assert_eq!(
        who(&joe, &headers).await.unwrap()["groups"],
        json!(["system:masters", "system:authenticated"])
    );
    // What was open the last time is what a refusal is about.
    let headers = [("impersonate-user", "ann"), ("impersonate-uid", "1")];
    let refused = who(&joe, &headers).await.unwrap_err();
    assert!(
        refused.starts_with("uids.authentication.k8s.io \"1\" is forbidden: User \"joe\" cannot impersonate resource"),
        "{refused}"
    );
}
