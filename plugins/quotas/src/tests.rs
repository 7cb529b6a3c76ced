//! Labels in, quota and reports out.

mod properties;

use std::collections::BTreeMap;

use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;

const PREFIX: &str = "quotas.statcan.gc.ca/";

fn defaults() -> BTreeMap<String, String> {
    [
        ("requests.cpu", "70"),
        ("limits.cpu", "70"),
        ("requests.memory", "368G"),
        ("limits.memory", "368G"),
        ("requests.storage", "100T"),
        ("requests.nvidia.com/gpu", "2"),
        ("pods", "100"),
        ("services.nodeports", "0"),
        ("services.loadbalancers", "0"),
    ]
    .map(|(name, limit)| (name.to_owned(), limit.to_owned()))
    .into()
}

/// Runs the plugin for a profile `alice` with these labels.
fn run(labels: &[(&str, &str)], config: &str) -> Outcome {
    let labels: BTreeMap<_, _> = labels.iter().copied().collect();
    let profile = json!({
        "apiVersion": "kubeflow.org/v1",
        "kind": "Profile",
        "metadata": {"name": "alice", "uid": "1", "labels": labels},
    });
    let profile = profile.to_string();
    ReevePlugin::reconcile(profile.as_bytes(), config.as_bytes(), &Context::test()).unwrap()
}

/// Labels (without the prefix), how the limits differ from the defaults, and what
/// is reported.
fn check(labels: &[(&str, &str)], changed: &[(&str, &str)], reported: &[&str]) {
    let prefixed: Vec<_> = labels
        .iter()
        .map(|(name, value)| (format!("{PREFIX}{name}"), *value))
        .collect();
    let labels: Vec<_> = prefixed
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let outcome = run(&labels, "{}");

    let mut hard = defaults();
    for (name, limit) in changed {
        hard.insert((*name).to_owned(), (*limit).to_owned());
    }
    let expected = json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quotas", "namespace": "alice"},
        "spec": {"hard": hard},
    });
    assert_eq!(outcome.objects_json(), [expected], "{labels:?}");

    if reported.is_empty() {
        assert!(
            outcome.conditions().is_empty() && outcome.events().is_empty(),
            "{labels:?}"
        );
        return;
    }
    let text = format!(
        "Quota labels that cannot be used: {}. Set each to a number such as 10 or 4Gi, or remove it.",
        reported.join("; ")
    );
    assert_eq!(
        outcome.conditions(),
        [Condition::fails("LabelsUsable", "UnusableLabels", &*text)]
    );
    assert_eq!(outcome.events(), [Event::warning("UnusableLabels", text)]);
}

#[test]
fn no_labels_give_the_nine_defaults() {
    assert_eq!(defaults().len(), 9);
    check(&[], &[], &[]);
}

#[test]
fn a_profile_without_labels_in_its_projection_gives_the_defaults() {
    let profile = br#"{"metadata": {"name": "alice"}}"#;
    let outcome = ReevePlugin::reconcile(profile, b"{}", &Context::test()).unwrap();
    assert_eq!(outcome.objects_json()[0]["spec"]["hard"], json!(defaults()));
}

#[test]
fn each_label_overrides_its_limit_and_no_other() {
    for (name, _) in defaults() {
        if name.contains('/') {
            continue;
        }
        for value in ["0", "1", "250"] {
            check(&[(&name, value)], &[(&name, value)], &[]);
        }
    }
    check(
        &[("requests.cpu", "96"), ("requests.storage", "500Gi")],
        &[("requests.cpu", "96"), ("requests.storage", "500Gi")],
        &[],
    );
}

#[test]
fn limits_are_applied_as_they_were_written() {
    for value in [
        "0.5", "500m", "1000m", "1e3", "1E", "007", "+1", "0.1Ki", ".",
    ] {
        check(
            &[("limits.memory", value)],
            &[("limits.memory", value)],
            &[],
        );
    }
}

#[test]
fn the_gpu_label_is_a_decimal_integer() {
    for (value, limit) in [
        ("4", "4"),
        ("0", "0"),
        ("007", "7"),
        ("+4", "4"),
        ("-0", "0"),
        ("9223372036854775807", "9223372036854775807"),
    ] {
        check(
            &[("gpu", value)],
            &[("requests.nvidia.com/gpu", limit)],
            &[],
        );
    }
    for (value, problem) in [
        ("abc", "not a whole number"),
        ("1.5", "not a whole number"),
        ("", "not a whole number"),
        (" 4", "not a whole number"),
        ("1k", "not a whole number"),
        ("1e3", "not a whole number"),
        ("1_0", "not a whole number"),
        ("0x1", "not a whole number"),
        ("+", "not a whole number"),
        ("9223372036854775808", "not a whole number"),
        ("-1", "below zero"),
    ] {
        check(
            &[("gpu", value)],
            &[("requests.nvidia.com/gpu", "0")],
            &[&format!("{PREFIX}gpu={value} ({problem}, using 0)")],
        );
    }
}

#[test]
fn a_gpu_label_with_the_full_name_would_win() {
    // The API server admits no label with two slashes; the rule is the same.
    let name = "requests.nvidia.com/gpu";
    check(&[("gpu", "4"), (name, "8")], &[(name, "8")], &[]);
}

#[test]
fn a_limit_that_cannot_be_used_keeps_the_default_and_is_reported() {
    for (value, problem) in [
        ("two", "not a quantity"),
        ("", "not a quantity"),
        ("1 Gi", "not a quantity"),
        ("1K", "not a quantity"),
        ("-1", "below zero"),
        ("1.5", "not a whole number"),
        ("500m", "not a whole number"),
        ("1e9223372036854775807", "not a whole number"),
        ("9223372036854776", "more than the API server can count"),
        ("99999999999999999999", "more than the API server can count"),
    ] {
        check(
            &[("pods", value)],
            &[],
            &[&format!("{PREFIX}pods={value} ({problem}, using 100)")],
        );
    }
    // What the API server takes as "without end" is no mistake.
    let endless = "9223372036854775807";
    check(&[("pods", endless)], &[("pods", endless)], &[]);
    check(
        &[("requests.memory", "-1Gi")],
        &[],
        &[&format!(
            "{PREFIX}requests.memory=-1Gi (below zero, using 368G)"
        )],
    );
}

#[test]
fn one_report_names_every_label_and_spoils_no_other() {
    check(
        &[
            ("pods", "two"),
            ("gpu", "x"),
            ("limits.cpu", "8"),
            ("requests.cpu", "many"),
        ],
        &[("limits.cpu", "8"), ("requests.nvidia.com/gpu", "0")],
        &[
            &format!("{PREFIX}pods=two (not a quantity, using 100)"),
            &format!("{PREFIX}requests.cpu=many (not a quantity, using 70)"),
            &format!("{PREFIX}gpu=x (not a whole number, using 0)"),
        ],
    );
}

#[test]
fn the_fullest_report_fits_an_event_and_the_condition_has_all_of_it() {
    let bad = "x".repeat(63);
    let names: Vec<_> = defaults()
        .into_keys()
        .map(|name| {
            if name == "requests.nvidia.com/gpu" {
                "gpu".to_owned()
            } else {
                name
            }
        })
        .map(|name| format!("{PREFIX}{name}"))
        .collect();
    let labels: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), bad.as_str()))
        .collect();
    let outcome = run(&labels, "{}");
    let event = &outcome.events()[0].message;
    assert!(event.len() <= 1024, "{} bytes", event.len());
    assert!(event.contains("; 2 more. Set each to"), "{event}");
    let condition = &outcome.conditions()[0].message;
    assert!(
        names.iter().all(|name| condition.contains(name)),
        "{condition}"
    );
}

#[test]
fn other_labels_are_ignored() {
    check(
        &[
            ("requests.gpu", "9"),
            ("Pods", "9"),
            ("pods.max", "x"),
            ("", "x"),
        ],
        &[],
        &[],
    );
    let outcome = run(&[("pods", "9"), ("example.com/pods", "x")], "{}");
    assert_eq!(outcome.objects_json()[0]["spec"]["hard"], json!(defaults()));
    assert!(outcome.events().is_empty());
}

#[test]
fn removing_a_label_restores_the_default() {
    check(&[("pods", "5")], &[("pods", "5")], &[]);
    check(&[], &[], &[]);
}

#[test]
fn configuration_replaces_adds_and_removes_limits() {
    let config = r#"{
        "hard": {"pods": "20", "count/jobs.batch": "5", "requests.nvidia.com/gpu": null},
        "labelPrefix": "quota.example.com/"
    }"#;
    let mut expected = defaults();
    expected.insert("pods".to_owned(), "20".to_owned());
    expected.insert("count/jobs.batch".to_owned(), "5".to_owned());
    expected.remove("requests.nvidia.com/gpu");
    let outcome = run(
        &[
            ("quotas.statcan.gc.ca/pods", "7"),
            ("quota.example.com/gpu", "x"),
        ],
        config,
    );
    assert_eq!(outcome.objects_json()[0]["spec"]["hard"], json!(expected));
    assert!(outcome.events().is_empty());

    expected.insert("limits.cpu".to_owned(), "9".to_owned());
    let outcome = run(&[("quota.example.com/limits.cpu", "9")], config);
    assert_eq!(outcome.objects_json()[0]["spec"]["hard"], json!(expected));
}

#[test]
fn configuration_that_makes_no_sense_is_refused() {
    for (config, error) in [
        (
            r#"{"hard": {"pods": "two"}}"#,
            "/hard/pods: not a quantity: expected a number such as `10`, `500m` or `4Gi`",
        ),
        (r#"{"hard": {"pods": "-1"}}"#, "/hard/pods: below zero"),
        (
            r#"{"hard": {"count/jobs.batch": "1.5"}}"#,
            "/hard/count~1jobs.batch: not a whole number",
        ),
        (
            r#"{"hard": {"example.com/dongles": "500m"}}"#,
            "/hard/example.com~1dongles: not a whole number",
        ),
        (
            r#"{"hard": {"pods": "9223372036854776"}}"#,
            "/hard/pods: more than the API server can count",
        ),
        (
            r#"{"hard": {"": "1"}}"#,
            "/hard/: a limit without a resource name; name one such as `pods`",
        ),
        (
            r#"{"hard": {"pods": 5}}"#,
            "/hard/pods: invalid type: number, expected a string",
        ),
        (
            r#"{"labelprefix": ""}"#,
            "/labelprefix: unknown field `labelprefix`, expected one of `preset`, `hard`, `labelPrefix`",
        ),
        (
            r#"{"hard": {"bananas": "3"}}"#,
            "/hard/bananas: not a resource that a quota limits; name one such as `requests.cpu`, \
             `count/deployments.apps` or `requests.example.com/gpu`",
        ),
        (
            r#"{"hard": {"an apple/x": "3"}}"#,
            "/hard/an apple~1x: not a resource that a quota limits; name one such as \
             `requests.cpu`, `count/deployments.apps` or `requests.example.com/gpu`",
        ),
        (
            r#"{"labelPrefix": "Not A Domain!/"}"#,
            "/labelPrefix: not the start of a label name; expected a domain and a slash such as `example.com/`",
        ),
        (
            r#"{"labelPrefix": ""}"#,
            "/labelPrefix: not the start of a label name; expected a domain and a slash such as `example.com/`",
        ),
        (
            r#"{"labelPrefix": "quotas"}"#,
            "/labelPrefix: not the start of a label name; expected a domain and a slash such as `example.com/`",
        ),
        (
            r#"{"labelPrefix": "a/b/"}"#,
            "/labelPrefix: not the start of a label name; expected a domain and a slash such as `example.com/`",
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
        .projection(["/metadata/labels"])
        .writes(
            Kind::new("v1", "ResourceQuota"),
            Scope::NamespaceNamedLikePrimary,
        );
    assert_eq!(ReevePlugin::describe(b"{}"), Ok(expected));
    assert_eq!(ReevePlugin::metadata().name, "quotas");
}

#[test]
fn built_in_limits_are_in_the_order_of_their_names() {
    assert!(crate::hard::DEFAULTS.is_sorted());
}
