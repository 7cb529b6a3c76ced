//! Profile and configuration in, limit range out.

mod properties;

use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

/// The one limit for a profile `alice`.
fn check(config: &str, default: (&str, &str), request: (&str, &str)) {
    let profile = br#"{"apiVersion": "kubeflow.org/v1", "kind": "Profile", "metadata": {"name": "alice", "uid": "1"}}"#;
    let outcome = ReevePlugin::reconcile(profile, config.as_bytes(), &Context::test()).unwrap();
    let expected = json!({
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "default-container-limits", "namespace": "alice"},
        "spec": {"limits": [{
            "type": "Container",
            "default": {"cpu": default.0, "memory": default.1},
            "defaultRequest": {"cpu": request.0, "memory": request.1},
        }]},
    });
    assert_eq!(outcome.objects_json(), [expected]);
    assert!(outcome.conditions().is_empty() && outcome.events().is_empty());
}

#[test]
fn without_configuration_both_are_the_defaults() {
    check("{}", ("250m", "256M"), ("250m", "256M"));
}

#[test]
fn configuration_replaces_single_amounts() {
    check(
        r#"{"default": {"cpu": "1", "memory": "20G"}, "defaultRequest": {"cpu": "50m"}}"#,
        ("1", "20G"),
        ("50m", "256M"),
    );
    check(
        r#"{"default": {"cpu": "1"}, "defaultRequest": {"cpu": "1000m"}}"#,
        ("1", "256M"),
        ("1000m", "256M"),
    );
}

#[test]
fn configuration_that_makes_no_sense_is_refused() {
    for (config, error) in [
        (
            r#"{"default": {"cpu": "one"}}"#,
            "/default/cpu: not a quantity: expected a number such as `10`, `500m` or `4Gi`",
        ),
        (
            r#"{"defaultRequest": {"memory": "-1"}}"#,
            "/defaultRequest/memory: below zero",
        ),
        (
            r#"{"default": {"cpu": "1"}, "defaultRequest": {"cpu": "1001m"}}"#,
            "/defaultRequest/cpu: `1001m` is above /default/cpu, `1`; set both",
        ),
        // Of the two, one is as it is unless set.
        (
            r#"{"default": {"memory": "128Mi"}}"#,
            "/defaultRequest/memory: `256M` is above /default/memory, `128Mi`; set both",
        ),
        (
            r#"{"default": {"gpu": "1"}}"#,
            "/default/gpu: unknown field `gpu`, expected `cpu` or `memory`",
        ),
        (
            r#"{"defaultrequest": {}}"#,
            "/defaultrequest: unknown field `defaultrequest`, expected one of `preset`, `default`, `defaultRequest`",
        ),
    ] {
        assert_eq!(
            ReevePlugin::describe(config.as_bytes())
                .unwrap_err()
                .to_string(),
            error
        );
    }
}

#[test]
fn the_manifest_asks_for_no_more_than_is_needed() {
    let expected = Manifest::controller(Kind::new("kubeflow.org/v1", "Profile"))
        .projection(["/metadata/name"])
        .writes(
            Kind::new("v1", "LimitRange"),
            Scope::NamespaceNamedLikePrimary,
        );
    assert_eq!(ReevePlugin::describe(b"{}"), Ok(expected));
    assert_eq!(ReevePlugin::metadata().name, "limitranges");
}
