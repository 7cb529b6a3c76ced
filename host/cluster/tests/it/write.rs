//! Requests to the in-process API server: lookup, apply, delete, reviews, events.

use crate::support::{apply, config_map, config_maps, grant, server};
use reeve_cluster::{
    AccessCheck, Apply, Cluster, Delete, Deletion, Event, EventKind, Identity, Preconditions,
    Recorded, Recorder, ResolveError, Resource, WriteError, review::REVIEW_TTL,
};
use reeve_core::GroupVersionKind;
use reeve_core::waves::Propagation;
use reeve_sim::{Outage, Verb};
use serde_json::json;
use std::time::{Duration, UNIX_EPOCH};

fn request<'a>(resource: &'a Resource, body: &'a serde_json::Value) -> Apply<'a> {
    Apply {
        resource,
        namespace: body["metadata"]["namespace"].as_str(),
        name: body["metadata"]["name"].as_str().unwrap(),
        body: body.into(),
        onto: Preconditions::default(),
        manager: "reeve/one",
        force: false,
        strict: true,
        dry_run: false,
        identity: None,
    }
}

fn deletion<'a>(resource: &'a Resource, name: &'a str) -> Delete<'a> {
    Delete {
        resource,
        namespace: Some("default"),
        name,
        uid: None,
        resource_version: None,
        propagation: Propagation::Background,
        dry_run: false,
        identity: None,
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_that_are_found_are_remembered_until_forgotten() {
    let server = server();
    let cluster = Cluster::new(server.client());
    let kind = GroupVersionKind::new("apps", "v1", "Deployment");
    let found = cluster.resolve(&kind).await.unwrap();
    assert_eq!((&*found.plural, found.namespaced), ("deployments", true));

    server.faults().set_outage(Outage::Refused);
    assert_eq!(cluster.resolve(&kind).await.unwrap(), found);
    cluster.forget(&kind);
    let error = cluster.resolve(&kind).await.unwrap_err();
    assert!(matches!(error, ResolveError::Unreachable { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn kinds_that_are_not_served_are_asked_for_again() {
    let cluster = Cluster::new(server().client());
    for (group, kind) in [("", "Nothing"), ("nothing.test", "Nothing")] {
        let kind = GroupVersionKind::new(group, "v1", kind);
        for _ in 0..2 {
            let error = cluster.resolve(&kind).await.unwrap_err();
            assert!(matches!(error, ResolveError::NotServed { .. }), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_apply_gives_back_what_is_stored() {
    let cluster = Cluster::new(server().client());
    let maps = config_maps();
    let body = config_map("one", "web", "1");
    let object = cluster.apply(request(&maps, &body)).await.unwrap();
    assert_eq!(object.value()["data"], json!({"key": "1"}));
    let fields = object.manager_fields("reeve/one").unwrap();
    assert_eq!(fields["f:data"], json!({"f:key": {}}));
    assert_eq!(object.managers()[0].operation, "Apply");

    let live = cluster.get(&maps, Some("default"), "one").await.unwrap();
    assert_eq!(live.unwrap().json(), object.json());
    assert!(
        cluster
            .get(&maps, Some("default"), "two")
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_stores_nothing() {
    let server = server();
    let cluster = Cluster::new(server.client());
    let maps = config_maps();
    let body = config_map("one", "web", "1");
    let tried = Apply {
        dry_run: true,
        ..request(&maps, &body)
    };
    assert_eq!(cluster.apply(tried).await.unwrap().name(), "one");
    assert!(
        cluster
            .get(&maps, Some("default"), "one")
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(server.requests().writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn anothers_fields_are_taken_only_by_force() {
    let cluster = Cluster::new(server().client());
    let maps = config_maps();
    apply(&cluster, &config_map("one", "web", "theirs")).await;
    let ours = config_map("one", "web", "ours");
    let error = cluster.apply(request(&maps, &ours)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "ConfigMap default/one: .data.key is owned by test"
    );
    let forced = Apply {
        force: true,
        strict: true,
        ..request(&maps, &ours)
    };
    let object = cluster.apply(forced).await.unwrap();
    assert_eq!(object.value()["data"]["key"], "ours");
}

#[tokio::test(start_paused = true)]
async fn writes_that_cannot_be_say_why() {
    let cluster = Cluster::new(server().client());
    let maps = config_maps();
    let mut absent = config_map("one", "web", "1");
    absent["metadata"]["namespace"] = json!("nowhere");
    let mut invalid = config_map("one", "web", "1");
    invalid["data"] = json!({"no/key": "1"});
    let mut misspelt = config_map("one", "web", "1");
    misspelt["dat"] = json!({});
    for (body, expected) in [
        (
            absent,
            "ConfigMap nowhere/one waits for its namespace nowhere, which does not exist",
        ),
        (invalid, "ConfigMap default/one is invalid: "),
        (misspelt, "ConfigMap default/one is invalid: "),
    ] {
        let error = cluster.apply(request(&maps, &body)).await.unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }

    let unknown = Resource {
        kind: GroupVersionKind::new("nothing.test", "v1", "Nothing"),
        plural: "nothings".into(),
        namespaced: true,
    };
    let body = json!({"apiVersion": "nothing.test/v1", "kind": "Nothing",
        "metadata": {"name": "one", "namespace": "default"}});
    let error = cluster.apply(request(&unknown, &body)).await.unwrap_err();
    assert!(matches!(error, WriteError::NotServed { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn deletion_wants_the_object_that_was_meant() {
    let cluster = Cluster::new(server().client());
    let maps = config_maps();
    let object = apply(&cluster, &config_map("one", "web", "1")).await;
    for other in [
        Delete {
            uid: Some("another"),
            ..deletion(&maps, "one")
        },
        Delete {
            resource_version: Some("1"),
            propagation: Propagation::Background,
            ..deletion(&maps, "one")
        },
    ] {
        let error = cluster.delete(other).await.unwrap_err();
        assert!(matches!(error, WriteError::Precondition { .. }), "{error}");
    }
    let this = Delete {
        uid: Some(object.uid()),
        resource_version: Some(object.resource_version()),
        propagation: Propagation::Background,
        ..deletion(&maps, "one")
    };
    assert_eq!(cluster.delete(this).await.unwrap(), Deletion::Gone);
    assert_eq!(cluster.delete(this).await.unwrap(), Deletion::Absent);
}

#[tokio::test(start_paused = true)]
async fn an_object_with_a_finalizer_is_only_marked() {
    let cluster = Cluster::new(server().client());
    let maps = config_maps();
    let mut body = config_map("one", "web", "1");
    body["metadata"]["finalizers"] = json!(["test.dev/hold"]);
    apply(&cluster, &body).await;
    let marked = cluster.delete(deletion(&maps, "one")).await.unwrap();
    assert_eq!(marked, Deletion::Pending);
    let live = cluster.get(&maps, Some("default"), "one").await.unwrap();
    assert!(live.unwrap().is_deleting());
}

#[tokio::test(start_paused = true)]
async fn three_grants_stand_between_an_agent_and_a_write() {
    let server = server();
    let admin = Cluster::new(server.client());
    let agent = Cluster::new(server.client_as("agent", ["agents"]));
    let account = Identity::service_account("default", "plugin");
    let maps = config_maps();
    let body = config_map("one", "web", "1");
    let write = Apply {
        identity: Some(&account),
        ..request(&maps, &body)
    };

    let error = agent.apply(write).await.unwrap_err();
    assert!(
        matches!(error, WriteError::MayNotImpersonate { .. }),
        "{error}"
    );

    // One account by name is enough: no right on its groups is needed.
    let rule = json!({"apiGroups": [""], "resources": ["serviceaccounts"],
        "resourceNames": ["plugin"], "verbs": ["impersonate"]});
    grant(&admin, "impersonation", "agent", rule).await;
    let error = agent.apply(write).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{account} may not patch configmaps in namespace default; ConfigMap default/one needs it"
        )
    );
    let rule =
        json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "create"]});
    grant(&admin, "write", &account.user, rule).await;
    assert_eq!(agent.apply(write).await.unwrap().name(), "one");

    // What the account may, the agent still may not.
    let error = agent.apply(request(&maps, &body)).await.unwrap_err();
    assert!(
        error.to_string().starts_with("the agent may not patch"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn reviews_count_groups_and_are_asked_once_in_a_while() {
    let server = server();
    let cluster = Cluster::new(server.client());
    let account = Identity::service_account("default", "plugin");
    let maps = config_maps();
    let check = AccessCheck {
        verb: "list",
        resource: &maps,
        subresource: None,
        namespace: Some("default"),
        name: None,
    };
    assert!(!cluster.allowed(&account, check).await.unwrap());

    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "read", "namespace": "default"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "read", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "read"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
            "name": "system:serviceaccounts:default"}]});
    for (kind, body) in [("Role", role), ("RoleBinding", binding)] {
        let kind = GroupVersionKind::new("rbac.authorization.k8s.io", "v1", kind);
        let resource = cluster.resolve(&kind).await.unwrap();
        crate::support::apply_as(&cluster, &resource, &body)
            .await
            .unwrap();
    }
    // The answer is a moment old, and says so no longer than promised.
    assert!(!cluster.allowed(&account, check).await.unwrap());
    tokio::time::advance(REVIEW_TTL).await;
    server.reset_requests();
    for _ in 0..3 {
        assert!(cluster.allowed(&account, check).await.unwrap());
    }
    let reviews = "subjectaccessreviews.authorization.k8s.io";
    assert_eq!(server.requests().count(Verb::Create, reviews), 1);
    let elsewhere = AccessCheck {
        namespace: Some("kube-system"),
        ..check
    };
    assert!(!cluster.allowed(&account, elsewhere).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn no_answer_is_neither_yes_nor_no() {
    let server = server();
    let cluster = Cluster::new(server.client());
    server.faults().set_outage(Outage::Refused);
    assert!(!cluster.ready().await);
    let maps = config_maps();
    let body = config_map("one", "web", "1");
    let error = cluster.apply(request(&maps, &body)).await.unwrap_err();
    assert!(matches!(error, WriteError::Unreachable { .. }), "{error}");
    assert!(error.retries());
    let check = AccessCheck {
        verb: "list",
        resource: &maps,
        subresource: None,
        namespace: None,
        name: None,
    };
    let account = Identity::service_account("default", "plugin");
    assert!(cluster.allowed(&account, check).await.is_err());
    server.faults().set_outage(Outage::None);
    assert!(cluster.ready().await);
    assert!(!cluster.allowed(&account, check).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_same_event_is_one_event() {
    let cluster = Cluster::new(server().client());
    let recorder = Recorder::new(cluster.clone(), "pod-1");
    let object = apply(&cluster, &config_map("one", "web", "1")).await;
    let reference = object.reference();
    let event = Event {
        involved: &reference,
        uid: object.uid(),
        kind: EventKind::Warning,
        reason: "Unparsable",
        action: "Reconcile",
        message: "label cpu is no quantity",
        at: UNIX_EPOCH + Duration::from_millis(1_700_000_000_900),
    };
    assert_eq!(recorder.record(&event).await.unwrap(), Recorded::Now);
    let again = Event {
        at: event.at + Duration::from_secs(60),
        ..event
    };
    assert_eq!(recorder.record(&again).await.unwrap(), Recorded::Before);
    let long = "é".repeat(2_000);
    let other = Event {
        message: &long,
        ..event
    };
    assert_eq!(recorder.record(&other).await.unwrap(), Recorded::Now);

    let namespace = GroupVersionKind::new("", "v1", "Namespace");
    let namespace = reeve_core::ObjectReference::new(namespace, None, "kube-system");
    let on_cluster_scoped = Event {
        involved: &namespace,
        ..event
    };
    recorder.record(&on_cluster_scoped).await.unwrap();

    let kind = GroupVersionKind::new("", "v1", "Event");
    let events = cluster.resolve(&kind).await.unwrap();
    let (store, _changes) = reeve_cluster::Store::new(cluster.clone());
    let watch = store.watch(reeve_cluster::WatchSpec::all(events));
    watch.synced().await;
    let listed = store
        .snapshot()
        .list(&kind, Some("default"), &Default::default());
    let reeve_cluster::Answer::Found(listed) = listed else {
        panic!("{listed:?}");
    };
    let first = listed.iter().map(|event| event.value());
    let first = first
        .into_iter()
        .find(|event| {
            event["message"] == "label cpu is no quantity"
                && event["involvedObject"]["kind"] == "ConfigMap"
        })
        .unwrap();
    assert_eq!(listed.len(), 3);
    assert_eq!(first["involvedObject"]["uid"], object.uid());
    assert_eq!(first["firstTimestamp"], "2023-11-14T22:13:20Z");
    assert_eq!(first["count"], 1);
    assert_eq!(first["reportingComponent"], "reeve.dev/agent");
}
