//! Profile, Notebooks and RoleBindings in, policies out.

use std::collections::BTreeSet;

use proptest::prelude::*;
use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

fn run(owner: &Value, config: &Value, cx: Context) -> Outcome {
    let profile = json!({"metadata": {"name": "alice", "uid": "1"}, "spec": {"owner": owner}});
    let config = config.to_string();
    let manifest = ReevePlugin::describe(config.as_bytes()).unwrap();
    let cx = cx.declaring(manifest);
    ReevePlugin::reconcile(profile.to_string().as_bytes(), config.as_bytes(), &cx).unwrap()
}

fn alice() -> Value {
    json!({"kind": "User", "name": "alice@example.com"})
}

fn notebook(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "kubeflow.org/v1", "kind": "Notebook",
        "metadata": {"name": name, "namespace": namespace}})
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "a literal wherever it is called"
)]
fn binding(name: &str, role: &str, subjects: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": "alice", "annotations": {"role": role}},
        "subjects": subjects})
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name})
}

/// The first rule's users under preset main without Notebooks, and the problems.
fn access(owner: &Value, bindings: Vec<Value>) -> (Vec<String>, String) {
    let cx = bindings
        .into_iter()
        .fold(Context::test(), Context::with_object);
    let outcome = run(owner, &json!({"preset": "main"}), cx);
    let condition = outcome.conditions().first();
    let events: Vec<_> = outcome.events().iter().map(|e| &*e.message).collect();
    let problems = condition.map_or("", |condition| &condition.message);
    // An event has less room than a condition, and says how many it leaves out.
    let head = |event: &str| match event.rsplit_once("; ") {
        Some((head, left_out)) if left_out.ends_with(" more") => head.to_owned(),
        _ => event.to_owned(),
    };
    match events.as_slice() {
        [] => assert_eq!(problems, ""),
        [event] => assert!(
            *event == problems || (event.len() > 900 && problems.starts_with(&head(event))),
            "{event:?} of {problems:?}"
        ),
        more => panic!("{more:?}"),
    }
    let policy = &outcome.objects_json()[0];
    let rules = policy["spec"]["rules"].as_array().unwrap();
    let users = match rules.len() {
        3 => vec![],
        4 => serde_json_values(&rules[0]["when"][0]["values"]),
        count => panic!("{count} rules"),
    };
    (users, problems.to_owned())
}

fn serde_json_values(values: &Value) -> Vec<String> {
    let values = values.as_array().unwrap();
    values
        .iter()
        .map(|v| v.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_notebook_of_the_namespace_gets_its_block() {
    let cx = Context::test()
        .with_object(notebook("alice", "lab"))
        .with_object(notebook("alice", "r.studio"))
        .with_object(notebook("bob", "other"));
    let outcome = run(&alice(), &json!({}), cx);
    let operation = |method: &str, path: &str| json!({"operation": {"methods": [method], "paths": [format!("/notebook/alice/lab{path}")]}});
    let objects = outcome.objects_json();
    assert_eq!(
        objects[0],
        json!({
            "apiVersion": "security.istio.io/v1beta1",
            "kind": "AuthorizationPolicy",
            "metadata": {"name": "lab-protected-b-block", "namespace": "alice"},
            "spec": {
                "action": "DENY",
                "selector": {"matchLabels": {
                    "notebook-name": "lab",
                    "data.statcan.gc.ca/classification": "protected-b",
                }},
                "rules": [{"to": [
                    operation("POST", "/rstudio/upload"),
                    operation("GET", "/rstudio/export*"),
                    operation("GET", "/files*"),
                    operation("GET", "/nbconvert*"),
                ]}],
            },
        })
    );
    assert_eq!(objects[1]["metadata"]["name"], "r.studio-protected-b-block");
    assert_eq!(objects.len(), 2);
    assert!(outcome.conditions().is_empty() && outcome.events().is_empty());
}

#[test]
fn preset_main_adds_the_policy_of_the_namespace() {
    let cx = Context::test()
        .with_object(notebook("alice", "lab"))
        .with_object(binding("b", "edit", json!([user("bob"), user("ann")])));
    let objects = run(&alice(), &json!({"preset": "main"}), cx).objects_json();
    assert_eq!(objects.len(), 2);
    assert_eq!(
        objects[0],
        json!({
            "apiVersion": "security.istio.io/v1beta1",
            "kind": "AuthorizationPolicy",
            "metadata": {"name": "namespace-owner-access-istio", "namespace": "alice"},
            "spec": {"rules": [
                {"when": [{
                    "key": "request.headers[kubeflow-userid]",
                    "values": ["alice@example.com", "ann", "bob"],
                }]},
                {"when": [{"key": "source.namespace", "values": ["alice"]}]},
                {"to": [{"operation": {"paths": ["/healthz", "/metrics", "/wait-for-drain"]}}]},
                {
                    "from": [{"source": {"principals":
                        ["cluster.local/ns/kubeflow/sa/notebook-controller-service-account"]}}],
                    "to": [{"operation": {"methods": ["GET"], "paths": ["*/api/status"]}}],
                },
            ]},
        })
    );
}

#[test]
fn switches_beat_presets() {
    for (config, names) in [
        (json!({}), vec!["lab-protected-b-block"]),
        (json!({"uploadDownloadBlock": false}), vec![]),
        (
            json!({"namespacePolicy": true}),
            vec!["namespace-owner-access-istio", "lab-protected-b-block"],
        ),
        (
            json!({"preset": "main", "uploadDownloadBlock": false}),
            vec!["namespace-owner-access-istio"],
        ),
        (
            json!({"preset": "main", "namespacePolicy": false}),
            vec!["lab-protected-b-block"],
        ),
    ] {
        let cx = Context::test().with_object(notebook("alice", "lab"));
        let objects = run(&alice(), &config, cx).objects_json();
        let found: Vec<_> = objects
            .iter()
            .map(|object| object["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(found, names, "{config}");
    }
}

#[test]
fn only_users_in_bindings_for_editors_are_collaborators() {
    let others = json!([
        user("a"),
        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "g"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "alice"},
        {"kind": "User", "apiGroup": "example.com", "name": "x"},
    ]);
    let (users, problems) = access(
        &alice(),
        vec![
            binding("edit", "edit", others),
            binding("view", "view", json!([user("v")])),
            binding("none", "edit", json!([])),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": "plain", "namespace": "alice"}, "subjects": [user("p")]}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": "nobody", "namespace": "alice", "annotations": {"role": "edit"}}}),
        ],
    );
    assert_eq!(
        (users, &*problems),
        (vec!["alice@example.com".to_owned(), "a".to_owned()], "")
    );
}

#[test]
fn the_list_is_sorted_without_doubles_and_revoked_exactly() {
    let bindings = |names: &[&str]| -> Vec<Value> {
        names
            .iter()
            .map(|name| binding(&format!("user-{name}"), "edit", json!([user(name)])))
            .chain([binding(
                "again",
                "edit",
                json!([user("b"), user("alice@example.com")]),
            )])
            .collect()
    };
    let users = |names: &[&str]| access(&alice(), bindings(names)).0;
    assert_eq!(
        users(&["c", "b", "a"]),
        ["alice@example.com", "a", "b", "c"]
    );
    // Also who stands last is revoked.
    assert_eq!(users(&["b", "a"]), ["alice@example.com", "a", "b"]);
    assert_eq!(users(&[]), ["alice@example.com", "b"]);
}

#[test]
fn who_cannot_be_let_in_alone_is_left_out_and_named() {
    let pattern = "would let in everybody whose name fits the pattern";
    for name in ["*", "*@example.com", "a*"] {
        let (users, problems) = access(
            &alice(),
            vec![binding("b", "edit", json!([user(name), user("ok")]))],
        );
        assert_eq!(users, ["alice@example.com", "ok"]);
        assert_eq!(
            problems,
            format!(
                "RoleBinding b: the user {name:?} in its subjects {pattern}; it is left out, change or remove it"
            )
        );
    }
    for (owner, problem) in [
        (
            json!(null),
            "spec.owner.name \"\" is empty, so the owner is not let in; set it to the name of the user who owns the Profile",
        ),
        (
            json!({"kind": "User", "name": "*"}),
            "spec.owner.name \"*\" would let in everybody whose name fits the pattern, so the owner is not let in; set it to the name of the user who owns the Profile",
        ),
        (
            json!({"kind": "Group", "name": "team"}),
            "spec.owner.kind is Group, but only a User can be told by the header of a request, so the owner is not let in; set it to User",
        ),
    ] {
        let editors = || vec![binding("b", "edit", json!([user("ok")]))];
        assert_eq!(
            access(&owner, editors()),
            (vec!["ok".to_owned()], problem.to_owned())
        );
        // With nobody, the rule is left out; the others still close the namespace.
        assert_eq!(access(&owner, vec![]), (vec![], problem.to_owned()));
    }
}

#[test]
fn a_notebook_whose_name_is_too_long_is_named_and_costs_no_other_its_block() {
    let long = "a".repeat(64);
    let cx = Context::test()
        .with_object(notebook("alice", &long))
        .with_object(notebook("alice", "lab"));
    let outcome = run(&alice(), &json!({}), cx);
    assert_eq!(outcome.objects_json().len(), 1);
    let problem = format!(
        "Notebook alice/{long}: its name cannot be the value of the label notebook-name, by which \
         its pods are found (longer than the 63 characters that Kubernetes allows here), so nothing \
         blocks its uploads and downloads; make it anew under another name"
    );
    assert_eq!(
        outcome.conditions(),
        [Condition::fails(
            "NotebooksUsable",
            "UnusableNotebooks",
            &*problem
        )]
    );
    assert_eq!(
        outcome.events(),
        [Event::warning("UnusableNotebooks", problem)]
    );
}

#[test]
fn what_cannot_be_read_fails_the_call() {
    let notebooks = Kind::new("kubeflow.org/v1", "Notebook");
    let cx = Context::test().without_sync(notebooks);
    let profile = br#"{"metadata": {"name": "alice"}}"#;
    let failure = ReevePlugin::reconcile(profile, b"{}", &cx).unwrap_err();
    assert!(matches!(failure, Failure::NotReady(_)), "{failure:?}");
}

#[test]
fn the_manifest_asks_for_no_more_than_is_needed() {
    let place = || Scope::NamespaceNamedLikePrimary;
    let policies = Kind::new("security.istio.io/v1beta1", "AuthorizationPolicy");
    let profile = |part: &str| {
        Manifest::controller(Kind::new("kubeflow.org/v1", "Profile"))
            .projection([part])
            .writes(policies.clone(), place())
    };
    let notebooks = || (Kind::new("kubeflow.org/v1", "Notebook"), place());
    let bindings = || {
        (
            Kind::new("rbac.authorization.k8s.io/v1", "RoleBinding"),
            place(),
        )
    };
    for (config, expected) in [
        ("{}", profile("/metadata/name").reads(notebooks())),
        (
            r#"{"preset": "main"}"#,
            profile("/spec/owner").reads(notebooks()).reads(bindings()),
        ),
        (
            r#"{"uploadDownloadBlock": false}"#,
            profile("/metadata/name"),
        ),
    ] {
        assert_eq!(ReevePlugin::describe(config.as_bytes()), Ok(expected));
    }
    assert_eq!(
        ReevePlugin::describe(br#"{"preset": "other"}"#)
            .unwrap_err()
            .to_string(),
        "/preset: unknown variant `other`, expected `readme` or `main`"
    );
}

proptest! {
    /// Whatever stands in bindings, nobody is let in who is not named there.
    #[test]
    fn access_is_exactly_the_owner_and_the_users_named(
        owner in "[a-c*]{0,2}",
        bindings in proptest::collection::vec(
            (any::<bool>(), proptest::collection::vec(("[a-d*]{0,2}", any::<bool>()), 0..4)), 0..4
        ),
    ) {
        let is_one = |name: &str| !name.is_empty() && !name.starts_with('*') && !name.ends_with('*');
        let mut expected = BTreeSet::new();
        let mut odd = !is_one(&owner);
        let objects = bindings.iter().enumerate().map(|(index, (edits, subjects))| {
            for (name, is_user) in subjects {
                if *edits && *is_user {
                    odd |= !is_one(name);
                    if is_one(name) && *name != owner {
                        expected.insert(name.clone());
                    }
                }
            }
            let subjects: Vec<_> = subjects.iter().map(|(name, is_user)| json!({
                "kind": if *is_user { "User" } else { "Group" },
                "apiGroup": "rbac.authorization.k8s.io",
                "name": name,
            })).collect();
            binding(&format!("b{index}"), if *edits { "edit" } else { "view" }, json!(subjects))
        }).collect();
        let (users, problems) = access(&json!({"kind": "User", "name": owner}), objects);
        let mut all: Vec<String> = is_one(&owner).then(|| owner.clone()).into_iter().collect();
        all.extend(expected);
        prop_assert_eq!(users, all);
        prop_assert_eq!(!problems.is_empty(), odd);
    }

    /// Every Notebook has a policy, or is named.
    #[test]
    fn every_notebook_is_blocked_or_named(name in "[a-z0-9]([-a-z0-9.]{0,80}[a-z0-9])?") {
        let outcome = run(&alice(), &json!({}), Context::test().with_object(notebook("alice", &name)));
        let named = outcome.conditions().iter().any(|c| c.message.contains(&name));
        prop_assert_eq!(outcome.objects_json().len() + usize::from(named), 1);
        prop_assert_eq!(named, name.len() > 63);
    }
}
