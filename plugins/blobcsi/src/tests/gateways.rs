//! Buckets that OPA gateways describe.

use reeve_sdk::prelude::*;

use super::*;
use crate::config::{Config, Source};

fn config() -> Value {
    json!({
        "fdi": {
            "tenantId": "tenant",
            "clientIds": {"sp": "client"},
            "unclassified": {
                "opaEndpoint": "http://opa.unclassified:8181/v1/data",
                "storageAccount": "uncacct",
                "resourceGroup": "rg",
                "principal": {"secretName": "own-secret", "clientId": "own", "aadEndpoint": "https://aad"},
            },
            "protectedB": {
                "opaEndpoint": "http://opa.protected-b:8181/v1/data",
                "storageAccount": "prbacct",
                "resourceGroup": "rg",
            },
        },
    })
}

const NONE: &str = r#"{"result": {"httpapi": {}}}"#;

fn cx(unclassified: &str) -> Context {
    Context::test()
        .with_source("unclassified", unclassified)
        .with_source("protected-b", NONE)
}

fn answer() -> String {
    json!({"result": {
        "data/x": {"readers": ["alice"], "writers": ["alice"], "spn": "sp", "name": "deep"},
        "plain": {"readers": ["alice"]},
        "theirs": {"readers": ["bob"]},
    }})
    .to_string()
}

#[test]
fn buckets_of_both_generations_are_mounted() {
    let outcome = run(&config(), cx(&answer()));
    assert!(outcome.conditions().is_empty());
    assert_eq!(
        names(&outcome),
        [
            "PersistentVolume alice-fdi-unclassified-deep",
            "PersistentVolumeClaim fdi-deep-unclassified",
            "PersistentVolume alice-fdi-unclassified-plain",
            "PersistentVolumeClaim plain-unclassified",
        ]
    );
    let csi = |index: usize| outcome.objects_json()[index]["spec"]["csi"].clone();
    assert_eq!(csi(0)["nodeStageSecretRef"]["name"], "sp-secret");
    assert_eq!(
        csi(0)["volumeAttributes"]["AzureStorageAADEndpoint"],
        Value::Null
    );
    assert_eq!(
        csi(2),
        json!({
            "driver": "blob.csi.azure.com",
            "volumeHandle": "alice-fdi-unclassified-plain",
            "readOnly": true,
            "volumeAttributes": {
                "containerName": "plain",
                "storageAccount": "uncacct",
                "resourceGroup": "rg",
                "AzureStorageAuthType": "spn",
                "AzureStorageSPNClientId": "own",
                "AzureStorageSPNTenantId": "tenant",
                "AzureStorageAADEndpoint": "https://aad",
                "protocol": "fuse2",
            },
            "nodeStageSecretRef": {"name": "own-secret", "namespace": "azure-blob-csi-system"},
        })
    );
}

#[test]
fn a_gateway_that_has_not_answered_or_answers_nonsense_changes_nothing() {
    let settled = run(&config(), cx(&answer()));
    let place = "OPA gateway http://opa.unclassified:8181/v1/data";
    let stays = "Volumes that came of it stay as they are until that is mended";
    let silent = Context::test().with_source("protected-b", NONE);
    for (cx, why) in [
        (silent, "source unclassified has not been fetched yet"),
        (cx("<html>"), "no JSON: "),
        (cx("{}"), "no object under `result`"),
    ] {
        let outcome = run(&config(), converged(&settled, cx));
        let sorted = |outcome: &Outcome| {
            let mut names = names(outcome);
            names.sort();
            names
        };
        assert_eq!(sorted(&outcome), sorted(&settled));
        let told = condition(&outcome, "SourcesUsable").unwrap();
        assert!(
            told.starts_with(&format!("{place}: {why}")) && told.ends_with(stays),
            "{told}"
        );
    }
}

#[test]
fn what_describes_buckets_follows_from_what_is_said() {
    for (preset, fdi, source) in [
        ("readme", json!({}), Source::Opa),
        (
            "readme",
            json!({"protectedB": {"externalStorageAccount": "abc"}}),
            Source::ConfigMap,
        ),
        (
            "readme",
            json!({"unclassified": {
                "internalStorageAccount": "abc", "opaEndpoint": "http://opa", "storageAccount": "abc",
            }}),
            Source::Opa,
        ),
        ("main", config()["fdi"].clone(), Source::ConfigMap),
        ("main", json!({"source": "opa"}), Source::Opa),
        ("readme", json!({"source": "configmap"}), Source::ConfigMap),
    ] {
        let config = json!({"preset": preset, "fdi": fdi});
        let read: Config = reeve_sdk::parse_json(&config.to_string()).unwrap();
        assert_eq!(read.source(), source, "{config}");
    }
}

#[test]
fn the_gateways_are_asked_for() {
    let manifest = ReevePlugin::describe(config().to_string().as_bytes()).unwrap();
    let source = |class: &str| {
        SourceRule::url(class, format!("http://opa.{class}:8181/v1/data"))
            .describe(format!("{class} buckets, and who may use them"))
            .every(std::time::Duration::from_secs(2))
    };
    let base = ReevePlugin::describe(b"{}").unwrap();
    assert_eq!(
        manifest,
        base.source(source("unclassified"))
            .source(source("protected-b"))
    );
}
