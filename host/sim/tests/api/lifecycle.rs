//! What the cluster does by itself: garbage collection, the ends of namespaces
//! and definitions, service accounts, aggregated roles.

use crate::support::{CONFIG_MAPS, Http, admin, config_map, settle};
use serde_json::{Value, json};

async fn owner(http: &Http) -> Value {
    http.post(CONFIG_MAPS, config_map("owner", json!({})))
        .await
        .1
}

/// Makes a config map that `owner` owns.
async fn dependent(http: &Http, name: &str, owner: &Value, blocks: bool) {
    let mut object = config_map(name, json!({}));
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    }]);
    let (code, made) = http.post(CONFIG_MAPS, object).await;
    assert_eq!(code, 201, "{made}");
}

/// The names of the config maps that are there, with a star where ending.
async fn names(http: &Http) -> Vec<String> {
    let (_, list) = http.get(CONFIG_MAPS).await;
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            let ending = item["metadata"]
                .get("deletionTimestamp")
                .map_or("", |_| "*");
            format!("{}{ending}", item["metadata"]["name"].as_str().unwrap())
        })
        .collect()
}

async fn delete(http: &Http, name: &str, policy: &str) {
    let options = json!({"propagationPolicy": policy});
    let (code, answer) = http
        .call("DELETE", &format!("{CONFIG_MAPS}/{name}"), options)
        .await;
    assert_eq!(code, 200, "{answer}");
    settle().await;
}

#[tokio::test]
async fn dependents_go_after_their_owner() {
    let (_server, http) = admin();
    let top = owner(&http).await;
    dependent(&http, "a", &top, false).await;
    let (_, a) = http.get(&format!("{CONFIG_MAPS}/a")).await;
    dependent(&http, "b", &a, false).await;
    settle().await;
    assert_eq!(names(&http).await, ["a", "b", "owner"]);
    delete(&http, "owner", "Background").await;
    assert_eq!(names(&http).await, [""; 0]);
}

#[tokio::test]
async fn dependents_that_block_go_before_their_owner() {
    let (_server, http) = admin();
    let top = owner(&http).await;
    dependent(&http, "a", &top, true).await;
    http.call(
        "PATCH",
        &format!("{CONFIG_MAPS}/a"),
        json!({"metadata": {"finalizers": ["example.com/x"]}}),
    )
    .await;
    delete(&http, "owner", "Foreground").await;
    assert_eq!(names(&http).await, ["a*", "owner*"]);
    http.call(
        "PATCH",
        &format!("{CONFIG_MAPS}/a"),
        json!({"metadata": {"finalizers": null}}),
    )
    .await;
    settle().await;
    assert_eq!(names(&http).await, [""; 0]);
}

#[tokio::test]
async fn orphans_stay() {
    let (_server, http) = admin();
    let top = owner(&http).await;
    dependent(&http, "a", &top, false).await;
    delete(&http, "owner", "Orphan").await;
    assert_eq!(names(&http).await, ["a"]);
    let (_, a) = http.get(&format!("{CONFIG_MAPS}/a")).await;
    assert_eq!(a["metadata"].get("ownerReferences"), None);
}

#[tokio::test]
async fn an_owner_that_never_was_takes_its_dependents_along() {
    let (_server, http) = admin();
    let nobody = json!({"metadata": {"name": "nobody", "uid": "no-such-uid"}});
    dependent(&http, "a", &nobody, false).await;
    settle().await;
    assert_eq!(names(&http).await, [""; 0]);
}

#[tokio::test]
async fn a_namespace_ends_with_what_is_in_it() {
    let (_server, http) = admin();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let (code, made) = http.post("/api/v1/namespaces", namespace).await;
    assert_eq!(
        (code, &made["status"]["phase"], &made["spec"]["finalizers"]),
        (201, &json!("Active"), &json!(["kubernetes"]))
    );
    settle().await;
    assert_eq!(
        http.get("/api/v1/namespaces/n/serviceaccounts/default")
            .await
            .0,
        200
    );
    let inside = "/api/v1/namespaces/n/configmaps";
    let mut held = config_map("a", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/x"]);
    http.post(inside, held).await;
    http.post(inside, config_map("b", json!({}))).await;

    let (code, ending) = http.delete("/api/v1/namespaces/n").await;
    assert_eq!(
        (code, &ending["status"]["phase"]),
        (200, &json!("Terminating"))
    );
    settle().await;
    assert_eq!(http.get(&format!("{inside}/b")).await.0, 404);
    let (code, status) = http.post(inside, config_map("c", json!({}))).await;
    assert_eq!(
        (code, status["message"].as_str()),
        (
            403,
            Some(
                "configmaps \"c\" is forbidden: unable to create new content in namespace n because it is being terminated"
            )
        )
    );
    assert_eq!(http.get("/api/v1/namespaces/n").await.0, 200);
    http.call(
        "PATCH",
        &format!("{inside}/a"),
        json!({"metadata": {"finalizers": null}}),
    )
    .await;
    settle().await;
    assert_eq!(http.get("/api/v1/namespaces/n").await.0, 404);
    assert_eq!(
        http.get("/api/v1/namespaces/n/serviceaccounts/default")
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn the_default_service_account_comes_back() {
    let (_server, http) = admin();
    let path = "/api/v1/namespaces/default/serviceaccounts/default";
    http.delete(path).await;
    settle().await;
    assert_eq!(http.get(path).await.0, 200);
}

#[tokio::test]
async fn roles_aggregate() {
    let (_server, http) = admin();
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let (_, before) = http.get(&format!("{roles}/admin")).await;
    settle().await;
    assert_eq!(
        http.get(&format!("{roles}/admin")).await.1,
        before,
        "the roles at the start are settled"
    );
    let rule = json!({"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "widgets", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [rule],
    });
    let (code, made) = http.post(roles, role).await;
    assert_eq!(code, 201, "{made}");
    settle().await;
    for name in ["view", "edit", "admin"] {
        let (_, role) = http.get(&format!("{roles}/{name}")).await;
        assert!(role["rules"].as_array().unwrap().contains(&rule), "{name}");
    }

    // What nobody gathers yet is gathered by who comes later, and no longer once it has lost
    // the label for that.
    let of = async |name: &str| http.get(&format!("{roles}/{name}")).await.1["rules"].clone();
    let apart = json!({"metadata": {"name": "apart", "labels": {"is": "apart"}}, "rules": [rule]});
    assert_eq!(http.post(roles, apart).await.0, 201);
    settle().await;
    let late = json!({
        "metadata": {"name": "late"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"is": "apart"}}]},
    });
    assert_eq!(http.post(roles, late).await.0, 201);
    settle().await;
    assert_eq!(of("late").await, json!([rule]));
    for name in ["apart", "widgets"] {
        let (path, body) = (
            format!("{roles}/{name}"),
            json!({"metadata": {"labels": null}}),
        );
        let (code, patched) = http
            .call_as("PATCH", &path, "application/merge-patch+json", body)
            .await;
        assert_eq!(code, 200, "{patched}");
        settle().await;
    }
    assert_eq!(of("late").await, Value::Null);
    assert!(!of("view").await.as_array().unwrap().contains(&rule));
}

#[tokio::test]
async fn roles_that_gather_each_other_come_to_rest() {
    let (_server, http) = admin();
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let rule = |name: &str| json!({"apiGroups": [name], "resources": ["things"], "verbs": ["get"]});
    // Two, and a circle of three, which hand their rules around; one takes from the circle.
    let names = ["a", "b", "one", "two", "three", "taker"];
    let sources = ["b", "a", "three", "one", "two", "one"];
    for (name, source) in names.iter().zip(sources) {
        let role = json!({
            "metadata": {"name": name, "labels": {"is": name}},
            "rules": [rule(name)],
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"is": source}}]},
        });
        assert_eq!(http.post(roles, role).await.0, 201);
    }
    let widgets = json!({
        "metadata": {"name": "widgets", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [rule("widgets")],
    });
    assert_eq!(http.post(roles, widgets).await.0, 201);
    settle().await;
    let versions = async || {
        let (_, list) = http.get(roles).await;
        let items = list["items"].as_array().unwrap().iter();
        let versions = items.map(|role| role["metadata"]["resourceVersion"].clone());
        versions.collect::<Vec<_>>()
    };
    let before = versions().await;
    settle().await;
    assert_eq!(versions().await, before);
    let (_, view) = http.get(&format!("{roles}/view")).await;
    let gathered = view["rules"].as_array().unwrap();
    assert!(gathered.contains(&rule("widgets")), "others gather as ever");
}

#[tokio::test]
async fn forks_go_their_own_ways() {
    let (server, http) = admin();
    let top = owner(&http).await;
    dependent(&http, "a", &top, false).await;
    let fork = server.fork(reeve_sim::Clock::system());
    assert_eq!(fork.requests().total(), 0);
    let forked = Http(fork.client());
    assert_eq!(names(&forked).await, ["a", "owner"]);
    // The garbage collector of the fork knows what was there before it.
    delete(&forked, "owner", "Background").await;
    dependent(&http, "b", &top, false).await;
    settle().await;
    assert_eq!(names(&forked).await, [""; 0]);
    assert_eq!(names(&http).await, ["a", "b", "owner"]);
    // Uids go on where the original was.
    let (_, one) = http.post(CONFIG_MAPS, config_map("c", json!({}))).await;
    assert_ne!(one["metadata"]["uid"], top["metadata"]["uid"]);
}

/// The events about an object, by name.
async fn events(http: &Http, about: &str) -> Vec<String> {
    let (_, list) = http.get("/api/v1/namespaces/default/events").await;
    let items = list["items"].as_array().unwrap().iter();
    let about = items.filter(|event| event["involvedObject"]["name"] == about);
    about
        .map(|event| {
            format!(
                "{}: {}",
                event["reason"].as_str().unwrap(),
                event["message"].as_str().unwrap()
            )
        })
        .collect()
}

#[tokio::test]
async fn an_owner_in_another_namespace_is_none() {
    let (_server, http) = admin();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    http.post("/api/v1/namespaces", namespace).await;
    let (_, there) = http
        .post(
            "/api/v1/namespaces/n/configmaps",
            config_map("owner", json!({})),
        )
        .await;
    dependent(&http, "a", &there, false).await;
    settle().await;
    assert_eq!(names(&http).await, [""; 0]);
    let uid = there["metadata"]["uid"].as_str().unwrap();
    assert_eq!(
        events(&http, "a").await,
        [format!(
            "OwnerRefInvalidNamespace: ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {uid}] \
         does not exist in namespace \"default\""
        )]
    );
}

#[tokio::test]
async fn what_cannot_be_looked_up_is_not_known_to_be_absent() {
    let (_server, http) = admin();
    let top = owner(&http).await;
    let owned = |name: &str, kind: &str, uid: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "ownerReferences": [
                {"apiVersion": "v1", "kind": kind, "name": "owner", "uid": uid}]},
            "rules": [],
        })
    };
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    // An object of the cluster cannot belong to one of a namespace.
    let uid = top["metadata"]["uid"].as_str().unwrap();
    http.post(roles, owned("of-namespace", "ConfigMap", uid))
        .await;
    http.post(roles, owned("of-nobody", "ConfigMap", "no-such-uid"))
        .await;
    http.post(roles, owned("of-unknown", "Unheard", "no-such-uid"))
        .await;
    http.post(roles, owned("of-absent", "Namespace", "no-such-uid"))
        .await;
    settle().await;
    for (name, code) in [
        ("of-namespace", 200),
        ("of-nobody", 200),
        ("of-unknown", 200),
        ("of-absent", 404),
    ] {
        assert_eq!(http.get(&format!("{roles}/{name}")).await.0, code, "{name}");
    }
    assert_eq!(events(&http, "of-namespace").await.len(), 1);
}

/// An owner that was seen to go is absent, even if nobody can look it up any more.
#[tokio::test]
async fn dependents_go_after_an_owner_whose_kind_goes_too() {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
    let (_server, http) = admin();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    assert_eq!(http.post(DEFINITIONS, definition.clone()).await.0, 201);
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    let (_, widget) = http.post(WIDGETS, widget).await;
    let owned = |name: &str, uid: &Value| {
        let mut object = config_map(name, json!({}));
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "uid": uid,
        }]);
        object
    };
    let known = owned("known", &widget["metadata"]["uid"]);
    assert_eq!(http.post(CONFIG_MAPS, known).await.0, 201);
    settle().await;
    let path = format!("{DEFINITIONS}/widgets.example.com");
    assert_eq!(http.delete(&path).await.0, 200);
    settle().await;
    assert_eq!(names(&http).await, [""; 0]);

    // One that was never seen cannot be looked up.
    let unknown = owned("unknown", &json!("other"));
    let (_, unknown) = http.post(CONFIG_MAPS, unknown).await;
    let mut below = config_map("below", json!({}));
    below["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "unknown", "uid": unknown["metadata"]["uid"],
    }]);
    assert_eq!(http.post(CONFIG_MAPS, below.clone()).await.0, 201);
    settle().await;
    assert_eq!(names(&http).await, ["below", "unknown"]);

    // Once it can be, a change of what it owns itself has it looked up.
    assert_eq!(http.post(DEFINITIONS, definition).await.0, 201);
    settle().await;
    below["data"] = json!({"a": "b"});
    let path = format!("{CONFIG_MAPS}/below");
    assert_eq!(http.apply(&path, "m", below).await.0, 200);
    settle().await;
    assert_eq!(names(&http).await, [""; 0]);
}

#[tokio::test]
async fn a_dependent_with_another_owner_does_not_keep_one_waiting() {
    let (_server, http) = admin();
    let owner = |name: &str| http.post(CONFIG_MAPS, config_map(name, json!({})));
    let (_, stays) = owner("stays").await;
    let (_, goes) = owner("goes").await;
    let reference = |owner: &Value, blocks: bool| {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocks,
        })
    };
    let mut both = config_map("both", json!({}));
    both["metadata"]["ownerReferences"] = json!([reference(&stays, false), reference(&goes, true)]);
    http.post(CONFIG_MAPS, both).await;
    settle().await;
    delete(&http, "goes", "Foreground").await;
    assert_eq!(names(&http).await, ["both", "stays"]);
    let (_, both) = http.get(&format!("{CONFIG_MAPS}/both")).await;
    assert_eq!(
        both["metadata"]["ownerReferences"],
        json!([reference(&stays, false)])
    );
}

#[tokio::test]
async fn a_circle_of_owners_ends() {
    let (_server, http) = admin();
    let top = owner(&http).await;
    dependent(&http, "a", &top, true).await;
    let (_, a) = http.get(&format!("{CONFIG_MAPS}/a")).await;
    let back = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "a",
        "uid": a["metadata"]["uid"],
        "blockOwnerDeletion": true,
    }]}});
    let (code, _) = http
        .call("PATCH", &format!("{CONFIG_MAPS}/owner"), back)
        .await;
    assert_eq!(code, 200);
    settle().await;
    assert_eq!(names(&http).await, ["a", "owner"]);
    delete(&http, "owner", "Foreground").await;
    assert_eq!(names(&http).await, [""; 0]);
}

#[tokio::test]
async fn a_deletion_without_a_policy_keeps_the_one_of_before() {
    let (_server, http) = admin();
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "finalizers": ["example.com/x"]},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "x"}],
        }}},
    });
    let (code, made) = http.post(jobs, job).await;
    assert_eq!(code, 201, "{made}");
    // It has to wait for this one.
    let mut held = config_map("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/y"]);
    held["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "j",
        "uid": made["metadata"]["uid"],
        "blockOwnerDeletion": true,
    }]);
    assert_eq!(http.post(CONFIG_MAPS, held).await.0, 201);
    settle().await;
    let path = format!("{jobs}/j");
    let finalizers = |answer: &Value| answer["metadata"]["finalizers"].clone();
    let (code, ending) = http
        .call("DELETE", &path, json!({"propagationPolicy": "Foreground"}))
        .await;
    assert_eq!(
        (code, finalizers(&ending)),
        (200, json!(["example.com/x", "foregroundDeletion"]))
    );
    let (code, again) = http.delete(&path).await;
    assert_eq!(
        (code, finalizers(&again)),
        (200, json!(["example.com/x", "foregroundDeletion"]))
    );
}

#[tokio::test]
async fn objects_of_the_cluster_have_no_namespace() {
    let (_server, http) = admin();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "r", "namespace": "default"},
        "rules": [],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let (code, made) = http.post(roles, role.clone()).await;
    assert_eq!(
        (code, made["metadata"].get("namespace")),
        (201, None),
        "{made}"
    );
    let path = format!("{roles}/r");
    let mut labelled = role.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    labelled.as_object_mut().unwrap().remove("rules");
    for (what, answer) in [
        ("update", http.call("PUT", &path, role.clone()).await),
        ("apply", http.apply(&path, "m", labelled).await),
    ] {
        assert_eq!(
            (answer.0, answer.1["metadata"].get("namespace")),
            (200, None),
            "{what}: {}",
            answer.1
        );
    }
}
