//! Names of containers, and configuration that makes no sense.

use proptest::prelude::*;
use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use crate::ReevePlugin;
use crate::azure::{check_container, container_of};

#[test]
fn a_profile_has_the_container_that_the_original_gave_it() {
    let long = "x".repeat(70);
    let cut = "x".repeat(63);
    let dash_at_the_end = format!("{}-{}", "x".repeat(62), "y");
    let replaced = format!("{}a", "x".repeat(62));
    for (profile, container) in [
        ("alice", "alice"),
        ("Alice_Bob", "alicebob"),
        ("a--b", "a-b"),
        ("a.b.c", "abc"),
        ("-x-y", "a-x-y"),
        ("ab", "aba"),
        ("x", "xaa"),
        ("abc-", "abca"),
        (&long, &cut),
        (&dash_at_the_end, &replaced),
    ] {
        assert_eq!(
            container_of(profile).as_deref(),
            Some(container),
            "{profile}"
        );
    }
    for nothing in ["", "_", "äö"] {
        assert_eq!(container_of(nothing), None);
    }
}

#[test]
fn azure_has_few_names() {
    for good in ["abc", "a-b", "0-1-2", &"x".repeat(63)] {
        assert!(check_container(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "ab",
        "a--b",
        "-ab",
        "ab-",
        "aBc",
        "a_b",
        "a.b",
        "$web",
        &"x".repeat(64),
    ] {
        assert!(check_container(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn every_name_gives_a_container_that_azure_has_or_none(name in ".{0,80}|[a-z-]{0,70}") {
        if let Some(container) = container_of(&name) {
            prop_assert!(check_container(&container).is_ok(), "{container}");
        }
    }
}

#[test]
fn configuration_that_makes_no_sense_is_refused() {
    let instance = |field: &str, value: Value| {
        let mut instance = json!({"name": "a", "classification": "unclassified", "secretRef": "s"});
        instance[field] = value;
        json!({"instances": [instance]})
    };
    let class = |field: &str, value: Value| {
        let mut class = json!({});
        class[field] = value;
        json!({"fdi": {"protectedB": class}})
    };
    for (config, path) in [
        (instance("name", json!("")), "/instances/0/name"),
        (instance("name", json!("WBD")), "/instances/0/name"),
        (
            instance("classification", json!("secret")),
            "/instances/0/classification",
        ),
        (
            instance("classification", json!("")),
            "/instances/0/classification",
        ),
        (instance("secretRef", json!("")), "/instances/0/secretRef"),
        (
            instance("secretRef", json!("s/a.b")),
            "/instances/0/secretRef",
        ),
        (instance("secretRef", json!("S")), "/instances/0/secretRef"),
        (instance("capacity", json!(0)), "/instances/0/capacity"),
        (instance("capacity", json!("10Ti")), "/instances/0/capacity"),
        (
            json!({"instances": [
                {"name": "a", "classification": "unclassified", "secretRef": "s"},
                {"name": "a", "classification": "protected-b", "secretRef": "s"},
            ]}),
            "/instances/1/name",
        ),
        (
            json!({"fdi": {"configMap": {"namespace": ""}}}),
            "/fdi/configMap/namespace",
        ),
        (
            json!({"fdi": {"configMap": {"name": "A"}}}),
            "/fdi/configMap/name",
        ),
        (class("authType", json!("key")), "/fdi/protectedB/authType"),
        (class("capacity", json!(0)), "/fdi/protectedB/capacity"),
        (
            class("secretNamespace", json!("")),
            "/fdi/protectedB/secretNamespace",
        ),
        (
            class("internalStorageAccount", json!("A")),
            "/fdi/protectedB/internalStorageAccount",
        ),
        (
            class("externalStorageAccount", json!("x".repeat(25))),
            "/fdi/protectedB/externalStorageAccount",
        ),
        (
            class("principal", json!({"secretName": "a b"})),
            "/fdi/protectedB/principal/secretName",
        ),
        (json!({"preset": "x"}), "/preset"),
    ] {
        let error = ReevePlugin::describe(config.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.path, path, "{error}");
    }
}

#[test]
fn the_manifest_asks_for_no_more_than_is_needed() {
    let place = || Scope::NamespaceNamedLikePrimary;
    let (volume, claim) = (
        Kind::new("v1", "PersistentVolume"),
        Kind::new("v1", "PersistentVolumeClaim"),
    );
    let profile = Kind::new("kubeflow.org/v1", "Profile");
    let base = Manifest::controller(profile.clone())
        .projection(["/metadata/name"])
        .reads((profile, Scope::Cluster))
        .reads((volume.clone(), Scope::Cluster))
        .reads((claim.clone(), place()))
        .writes(volume, Scope::Cluster)
        .writes(claim, place());
    assert_eq!(ReevePlugin::describe(b"{}"), Ok(base.clone()));
    // Without accounts, no description is read.
    let pod = Kind::new("v1", "Pod");
    let pods = base
        .clone()
        .reads((pod.clone(), place()))
        .writes(pod, place());
    assert_eq!(
        ReevePlugin::describe(br#"{"preset": "main"}"#),
        Ok(pods.clone())
    );
    let map = ReadRule::new(
        Kind::new("v1", "ConfigMap"),
        Scope::Namespaces(vec!["daaas-system".to_owned()]),
    )
    .names(["fdi-aaw-configuration"]);
    let config = super::main_config();
    assert_eq!(
        ReevePlugin::describe(config.to_string().as_bytes()),
        Ok(pods.reads(map.clone()))
    );
    let mut config = config;
    config["deletePods"] = json!(false);
    assert_eq!(
        ReevePlugin::describe(config.to_string().as_bytes()),
        Ok(base.reads(map))
    );
}
