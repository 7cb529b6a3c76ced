//! Profile and cluster in, PodDefault out.

use proptest::prelude::*;
use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

fn pod_defaults() -> Kind {
    Kind::new("kubeflow.org/v1alpha1", "PodDefault")
}

fn run(labels: &Value, config: &str, cx: Context) -> Outcome {
    let profile = json!({"metadata": {"name": "alice", "uid": "1", "labels": labels}});
    let manifest = ReevePlugin::describe(config.as_bytes()).unwrap();
    let cx = cx.declaring(manifest);
    ReevePlugin::reconcile(profile.to_string().as_bytes(), config.as_bytes(), &cx).unwrap()
}

fn check(labels: &Value, config: &str) {
    let outcome = run(labels, config, Context::test());
    let expected = json!({
        "apiVersion": "kubeflow.org/v1alpha1",
        "kind": "PodDefault",
        "metadata": {"name": "protected-b", "namespace": "alice"},
        "spec": {
            "desc": "Run a Protected B notebook / Exécuter un bloc-notes protégé B",
            "selector": {"matchLabels": {"notebook.statcan.gc.ca/protected-b": "true"}},
            "labels": {"data.statcan.gc.ca/classification": "protected-b"},
        },
    });
    assert_eq!(outcome.objects_json(), [expected]);
    assert!(outcome.conditions().is_empty() && outcome.events().is_empty());
    assert!(outcome.absences().is_empty());
}

#[test]
fn every_profile_gets_the_default_under_either_preset() {
    check(&json!({}), "{}");
    check(&json!({}), r#"{"preset": "main"}"#);
    check(&json!({}), r#"{"removeFormer": true}"#);
}

#[test]
fn former_defaults_go_only_where_that_is_wanted() {
    for name in ["minio-mounts", "blob-csi-mounts"] {
        for (config, labels, goes) in [
            ("{}", json!({}), false),
            (r#"{"preset": "main"}"#, json!({}), false),
            (r#"{"removeFormer": true}"#, json!({}), true),
            (
                r#"{"removeFormer": true}"#,
                json!({"reeve.dev/plugin": "other"}),
                false,
            ),
        ] {
            let found = json!({
                "apiVersion": "kubeflow.org/v1alpha1", "kind": "PodDefault",
                "metadata": {"name": name, "namespace": "alice", "uid": "7", "labels": labels},
            });
            let outcome = run(&json!({}), config, Context::test().with_object(found));
            let expected = pod_defaults()
                .object(name)
                .in_namespace("alice")
                .if_uid("7");
            let expected: Vec<_> = goes.then_some(expected).into_iter().collect();
            assert_eq!(outcome.absences(), expected, "{name} {config} {labels}");
        }
    }
}

#[test]
fn the_manifest_asks_for_no_more_than_is_needed() {
    let base = Manifest::controller(Kind::new("kubeflow.org/v1", "Profile"))
        .projection(["/metadata/name"])
        .writes(pod_defaults(), Scope::NamespaceNamedLikePrimary);
    let former = ReadRule::new(pod_defaults(), Scope::NamespaceNamedLikePrimary)
        .names(["blob-csi-mounts", "minio-mounts"]);
    assert_eq!(ReevePlugin::describe(b"{}"), Ok(base.clone()));
    assert_eq!(
        ReevePlugin::describe(br#"{"removeFormer": true}"#),
        Ok(base.reads(former))
    );
    for (config, error) in [
        (
            r#"{"preset": "new"}"#,
            "/preset: unknown variant `new`, expected `readme` or `main`",
        ),
        (
            r#"{"removeFormer": "yes"}"#,
            "/removeFormer: invalid type: string \"yes\", expected a boolean",
        ),
    ] {
        let found = ReevePlugin::describe(config.as_bytes()).unwrap_err();
        assert_eq!(found.to_string(), error);
    }
}

proptest! {
    #[test]
    fn no_label_changes_anything(labels in proptest::collection::btree_map("[a-z./]{1,12}", ".{0,12}", 0..4)) {
        check(&json!(labels), "{}");
    }
}
