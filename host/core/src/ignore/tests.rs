//! Rules as people write them, on objects as they are.

use super::*;
use crate::kind::GroupVersionKind;
use proptest::prelude::*;
use serde_json::json;

fn rule(text: &Value) -> Rule {
    let text: RuleText = serde_json::from_value(text.clone()).unwrap();
    Rule::try_from(text).unwrap()
}

fn deployment() -> (ObjectReference, Value) {
    let kind = GroupVersionKind::new("apps", "v1", "Deployment");
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "a", "labels": {"x": "y"}},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [
            {"name": "main", "image": "a"}, {"name": "side", "image": "b"},
            {"name": "last", "image": "c"},
        ]}}},
    });
    (ObjectReference::new(kind, Some("a".into()), "web"), object)
}

fn stripped(rules: &[Value], live: Option<&Value>) -> Stripped {
    let (reference, object) = deployment();
    let rules: Vec<_> = rules.iter().map(rule).collect();
    strip(&reference, &object, &rules, live)
}

#[test]
fn rules_choose_their_objects() {
    let (reference, _) = deployment();
    for (text, applies) in [
        (json!({"group": "apps", "kind": "Deployment"}), true),
        (json!({"group": "*", "kind": "*"}), true),
        (json!({"group": "a*s", "kind": "Deploy*"}), true),
        (
            json!({"group": "apps", "kind": "{StatefulSet,Deployment}"}),
            true,
        ),
        (json!({"group": "apps", "kind": "[DS]*"}), true),
        (json!({"group": "apps", "kind": "deployment"}), false),
        (json!({"group": "Apps", "kind": "Deployment"}), false),
        (json!({"kind": "Deployment"}), false),
        (
            json!({"group": "apps", "kind": "Deployment", "name": "web"}),
            true,
        ),
        (
            json!({"group": "apps", "kind": "Deployment", "name": "we*"}),
            false,
        ),
        (
            json!({"group": "apps", "kind": "Deployment", "namespace": "a"}),
            true,
        ),
        (
            json!({"group": "apps", "kind": "Deployment", "namespace": "b"}),
            false,
        ),
    ] {
        let mut text = text;
        text["jsonPointers"] = json!(["/spec/replicas"]);
        assert_eq!(rule(&text).applies_to(&reference), applies, "{text}");
    }
    let pointers = json!(["/spec"]);
    let core = rule(&json!({"group": "*", "kind": "Service", "jsonPointers": pointers}));
    let service = ObjectReference::new(GroupVersionKind::new("", "v1", "Service"), None, "s");
    assert!(core.applies_to(&service));
}

#[test]
fn what_is_ignored_is_left_out() {
    let apps = |more: Value| {
        let mut text = json!({"group": "apps", "kind": "Deployment"});
        text.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        text
    };
    let found = stripped(
        &[
            apps(json!({"jsonPointers": ["/spec/replicas", "/spec/missing/deep"]})),
            apps(json!({"jqPathExpressions":
                [".spec.template.spec.containers[] | select(.name != \"main\")"]})),
            json!({"group": "batch", "kind": "*", "jsonPointers": ["/spec"]}),
        ],
        None,
    );
    let containers = "/spec/template/spec/containers";
    let expected = [
        "/spec/replicas".to_owned(),
        format!("{containers}/1"),
        format!("{containers}/2"),
    ];
    assert_eq!(found.removed, expected);
    assert_eq!(found.problems, Vec::<String>::new());
    let left = json!({"template": {"spec": {"containers": [{"name": "main", "image": "a"}]}}});
    assert_eq!(found.object["spec"], left);
}

#[test]
fn other_managers_keep_their_fields() {
    let text = json!({"group": "apps", "kind": "Deployment", "managedFieldsManagers": ["hpa"]});
    let live = json!({"metadata": {"managedFields": [
        {"manager": "hpa", "operation": "Update", "apiVersion": "apps/v1",
         "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]}});
    assert_eq!(
        stripped(std::slice::from_ref(&text), Some(&live)).removed,
        ["/spec/replicas"]
    );
    assert_eq!(stripped(&[text], None).removed, Vec::<String>::new());
}

#[test]
fn the_object_stays_itself() {
    let text = json!({"group": "*", "kind": "*", "jqPathExpressions":
        [".", ".metadata.name", ".metadata.labels", ".missing[]"]});
    let found = stripped(&[text], None);
    assert_eq!(found.removed, ["/metadata/labels"]);
    let (_, mut expected) = deployment();
    expected["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("labels");
    assert_eq!(found.object, expected);
    assert_eq!(found.problems.len(), 3, "{:?}", found.problems);
    let name = "Deployment a/web: /metadata/name identifies the object and is not ignored";
    assert!(
        found.problems.contains(&name.to_owned()),
        "{:?}",
        found.problems
    );
}

#[test]
fn rules_that_cannot_be_meant_are_refused() {
    for (text, expected) in [
        (
            json!({"jsonPointers": ["/a"]}),
            "ignore rule: `kind` is empty; name a kind, or `*` for all",
        ),
        (
            json!({"kind": "Pod"}),
            "ignore rule for Pod: nothing is ignored; give jsonPointers, jqPathExpressions or \
             managedFieldsManagers",
        ),
        (
            json!({"kind": "Pod", "jsonPointers": ["spec"]}),
            "ignore rule for Pod: `spec` is no JSON Pointer: expected text such as \
             `/spec/replicas`, with `~1` for a slash in a name",
        ),
        (
            json!({"kind": "Pod", "jsonPointers": ["/metadata/name"]}),
            "ignore rule for Pod: `/metadata/name` identifies the object and cannot be ignored",
        ),
        (
            json!({"kind": "Pod", "jsonPointers": [""]}),
            "ignore rule for Pod: `` identifies the object and cannot be ignored",
        ),
        (
            json!({"kind": "Pod", "jqPathExpressions": ["del(.a)"]}),
            "ignore rule for Pod: `del(.a)`",
        ),
    ] {
        let text: RuleText = serde_json::from_value(text).unwrap();
        assert_eq!(Rule::try_from(text).unwrap_err().to_string(), expected);
    }
    let unknown = json!({"kind": "Pod", "jqPaths": [".a"]});
    assert!(serde_json::from_value::<RuleText>(unknown).is_err());
}

proptest! {
    #[test]
    fn nothing_else_is_left_out(
        items in prop::collection::vec(0_i64..5, 0..8),
        picked in prop::collection::vec(0_usize..10, 0..6),
    ) {
        let object = json!({"kind": "L", "items": items, "other": items});
        let pointers: Vec<_> = picked.iter().map(|index| format!("/items/{index}")).collect();
        let kind = GroupVersionKind::new("", "v1", "L");
        let reference = ObjectReference::new(kind, None, "l");
        let mut rules = Vec::new();
        if !pointers.is_empty() {
            rules.push(rule(&json!({"kind": "L", "jsonPointers": pointers})));
        }
        let found = strip(&reference, &object, &rules, None);
        let left = items.iter().enumerate().filter(|(index, _)| !picked.contains(index));
        let left: Vec<_> = left.map(|(_, item)| *item).collect();
        prop_assert_eq!(&found.object, &json!({"kind": "L", "items": left, "other": items}));
        let again = strip(&reference, &found.object, &[], None);
        prop_assert_eq!(again.object, found.object);
    }
}
