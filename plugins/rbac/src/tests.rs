//! Profile, configuration and cluster in, bindings out.

use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use proptest::prelude::*;
use reeve_sdk::prelude::*;
use reeve_sdk::{Plugin, Value};

use crate::ReevePlugin;

fn run(profile: &Value, config: &Value, cx: &Context) -> Outcome {
    let (profile, config) = (profile.to_string(), config.to_string());
    ReevePlugin::reconcile(profile.as_bytes(), config.as_bytes(), cx).unwrap()
}

fn alice() -> Value {
    json!({
        "metadata": {"name": "alice", "uid": "1"},
        "spec": {"owner": {"kind": "User", "name": "alice@example.com"}},
    })
}

fn binding(name: &str, subjects: &[(&str, &str)]) -> Value {
    let group = "rbac.authorization.k8s.io";
    let subjects: Vec<_> = subjects
        .iter()
        .map(|(kind, name)| json!({"apiGroup": group, "kind": kind, "name": name}))
        .collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {
            "name": name, "namespace": "alice",
            "annotations": {"reeve.dev/sync-options": "Force=true"},
        },
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": subjects,
    })
}

fn pipeline() -> Value {
    binding("ml-pipeline", &[("User", "alice@example.com")])
}

/// A configuration, and the objects for a profile `alice`.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a literal wherever it is called"
)]
fn check(config: Value, expected: &[Value]) {
    let outcome = run(&alice(), &config, &Context::test());
    assert_eq!(outcome.objects_json(), expected, "{config}");
    assert!(outcome.conditions().is_empty() && outcome.events().is_empty());
}

#[test]
fn presets_and_switches_decide_which_bindings_there_are() {
    let support = binding("profile-support", &[("Group", "g1"), ("Group", "g2")]);
    check(json!({}), &[pipeline()]);
    check(json!({"preset": "main"}), &[]);
    check(json!({"mlPipeline": false}), &[]);
    check(json!({"preset": "main", "mlPipeline": true}), &[pipeline()]);
    check(
        json!({"supportGroups": ["g1", "g2"]}),
        &[pipeline(), support.clone()],
    );
    check(
        json!({"preset": "main", "supportGroups": ["g1", "g2"]}),
        &[support],
    );
}

#[test]
fn groups_are_sorted_and_bound_once() {
    check(
        json!({"preset": "main", "supportGroups": ["b", "a", "b"]}),
        &[binding(
            "profile-support",
            &[("Group", "a"), ("Group", "b")],
        )],
    );
}

#[test]
fn a_role_is_made_of_configured_rules() {
    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    let named = json!({"apiGroups": ["apps"], "resources": ["deployments"],
        "resourceNames": ["web"], "verbs": ["patch"]});
    let role = |name: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": name, "namespace": "alice"},
            "rules": [rule, named],
        })
    };
    check(
        json!({"preset": "main", "role": {"rules": [rule, named]}}),
        &[role("profile")],
    );
    check(
        json!({"preset": "main", "role": {"name": "mine", "rules": [rule, named]}}),
        &[role("mine")],
    );
}

#[test]
fn an_owner_that_cannot_be_bound_is_named_and_costs_only_that_binding() {
    let empty = "spec.owner.name is empty, so there is no RoleBinding ml-pipeline; \
        set it to the name of the user who owns the Profile";
    let group = "spec.owner.kind is Group, but only a User can be bound to ml-pipeline, \
        so there is no such RoleBinding; set it to User, or turn mlPipeline off";
    for (spec, problem) in [
        (json!(null), empty),
        (json!({}), empty),
        (json!({"owner": {"kind": "User"}}), empty),
        (json!({"owner": {"kind": "User", "name": ""}}), empty),
        (json!({"owner": {"kind": "Group", "name": "g"}}), group),
    ] {
        let profile = json!({"metadata": {"name": "alice", "uid": "1"}, "spec": spec});
        let outcome = run(&profile, &json!({"supportGroups": ["g"]}), &Context::test());
        assert_eq!(
            outcome.objects_json(),
            [binding("profile-support", &[("Group", "g")])]
        );
        assert_eq!(
            outcome.conditions(),
            [Condition::fails("OwnerUsable", "UnusableOwner", problem)]
        );
        assert_eq!(outcome.events(), [Event::warning("UnusableOwner", problem)]);
        // Nobody asks for an owner that nobody needs.
        let outcome = run(&profile, &json!({"preset": "main"}), &Context::test());
        assert!(outcome.conditions().is_empty());
    }
}

/// Which binding for support is in the cluster, and whether it is to go.
#[test]
fn a_support_binding_goes_only_where_that_is_wanted() {
    let reference = Kind::new("rbac.authorization.k8s.io/v1", "RoleBinding")
        .object("profile-support")
        .in_namespace("alice");
    let foreign = |labels: Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "profile-support", "namespace": "alice", "uid": "7", "labels": labels},
        })
    };
    for (config, labels, goes) in [
        (json!({"preset": "main"}), json!({}), true),
        (json!({"removeSupportBinding": true}), json!({}), true),
        (json!({}), json!({}), false),
        (
            json!({"preset": "main", "removeSupportBinding": false}),
            json!({}),
            false,
        ),
        (
            json!({"preset": "main", "supportGroups": ["g"]}),
            json!({}),
            false,
        ),
        (
            json!({"preset": "main"}),
            json!({"reeve.dev/plugin": "rbac"}),
            false,
        ),
    ] {
        let manifest = ReevePlugin::describe(config.to_string().as_bytes()).unwrap();
        let cx = Context::test()
            .with_object(foreign(labels))
            .declaring(manifest);
        let expected: Vec<_> = goes
            .then(|| reference.clone().if_uid("7"))
            .into_iter()
            .collect();
        assert_eq!(run(&alice(), &config, &cx).absences(), expected, "{config}");
    }
    let outcome = run(&alice(), &json!({"preset": "main"}), &Context::test());
    assert!(outcome.absences().is_empty());
}

#[test]
fn configuration_that_makes_no_sense_is_refused() {
    for (config, error) in [
        (
            json!({"preset": "Main"}),
            "/preset: unknown variant `Main`, expected `readme` or `main`",
        ),
        (
            json!({"supportGroups": ["g", ""]}),
            "/supportGroups/1: empty; name a group or remove it",
        ),
        (
            json!({"role": {"name": "A"}}),
            "/role/name: expected lower-case letters, digits, `-` and `.`, each part with a \
             letter or digit at both ends",
        ),
        (
            json!({"role": {"rules": [{"resources": ["pods"], "verbs": ["get"]}]}}),
            "/role/rules/0/apiGroups: empty; name an API group, \"\" for the core group",
        ),
        (
            json!({"role": {"rules": [{"apiGroups": [""], "verbs": ["get"]}]}}),
            "/role/rules/0/resources: empty; name a resource",
        ),
        (
            json!({"role": {"rules": [{"apiGroups": [""], "resources": ["pods"]}]}}),
            "/role/rules/0/verbs: empty; name a verb",
        ),
        (
            json!({"groups": []}),
            "/groups: unknown field `groups`, expected one of `preset`, `supportGroups`, \
             `mlPipeline`, `role`, `removeSupportBinding`",
        ),
    ] {
        let found = ReevePlugin::describe(config.to_string().as_bytes()).unwrap_err();
        assert_eq!(found.to_string(), error);
    }
}

#[test]
fn the_manifest_asks_for_no_more_than_is_needed() {
    let kind = |kind| Kind::new("rbac.authorization.k8s.io/v1", kind);
    let place = || Scope::NamespaceNamedLikePrimary;
    let base = |part: &str| {
        Manifest::controller(Kind::new("kubeflow.org/v1", "Profile"))
            .projection([part])
            .writes(kind("RoleBinding"), place())
            .writes(kind("Role"), place())
    };
    let support = || ReadRule::new(kind("RoleBinding"), place()).names(["profile-support"]);
    for (config, expected) in [
        ("{}", base("/spec/owner")),
        (
            r#"{"preset": "main", "supportGroups": ["g"]}"#,
            base("/metadata/name"),
        ),
        (
            r#"{"preset": "main"}"#,
            base("/metadata/name").reads(support()),
        ),
    ] {
        assert_eq!(ReevePlugin::describe(config.as_bytes()), Ok(expected));
    }
}

/// Whether an object has just the fields of its type.
fn is_whole<T: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) -> bool {
    let typed: T = serde_json::from_value(object.clone()).unwrap();
    json!(typed) == *object
}

proptest! {
    /// Any owner and groups give bindings that RBAC knows, or a named problem.
    #[test]
    fn any_input_gives_whole_objects(
        kind in proptest::option::of("[A-Za-z]{0,8}"),
        name in proptest::option::of(".{0,20}"),
        groups in proptest::collection::vec(".{1,12}", 0..5),
        main: bool,
        rules in proptest::collection::vec(proptest::collection::vec("[a-z*]{1,6}", 1..3), 0..3),
    ) {
        let profile = json!({"metadata": {"name": "alice"}, "spec": {"owner": {"kind": kind, "name": name}}});
        let rules: Vec<_> = rules
            .iter()
            .map(|words| json!({"apiGroups": words, "resources": words, "verbs": words}))
            .collect();
        let config = json!({
            "preset": if main { "main" } else { "readme" },
            "supportGroups": groups,
            "role": {"rules": rules},
        });
        let outcome = run(&profile, &config, &Context::test());
        let objects = outcome.objects_json();
        for object in &objects {
            prop_assert_eq!(&object["metadata"]["namespace"], "alice");
            let whole = match object["kind"].as_str() {
                Some("Role") => is_whole::<Role>(object),
                _ => is_whole::<RoleBinding>(object),
            };
            prop_assert!(whole, "{object}");
        }
        let pipeline = objects.iter().any(|o| o["metadata"]["name"] == "ml-pipeline");
        let usable = kind.is_none_or(|kind| kind == "User") && name.is_some_and(|name| !name.is_empty());
        prop_assert_eq!(pipeline, !main && usable);
        prop_assert_eq!(outcome.conditions().is_empty(), main || usable);
        prop_assert_eq!(outcome.conditions().len(), outcome.events().len());
        let subjects: Vec<_> = objects
            .iter()
            .filter(|o| o["metadata"]["name"] == "profile-support")
            .flat_map(|o| o["subjects"].as_array().unwrap().clone())
            .map(|s| s["name"].as_str().unwrap().to_owned())
            .collect();
        prop_assert!(subjects.is_sorted_by(|a, b| a < b));
        prop_assert!(groups.iter().all(|group| subjects.contains(group)));
    }
}
