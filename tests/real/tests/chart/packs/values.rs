//! What each value does, what is granted, and what is refused.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::left_out::{each_left_out, leaves};
use super::{CHART, component_of, rendered};
use crate::grants::{Asked, configured};
use crate::helm::{chart_of, helm};

/// Settings, an object by kind and name, and what then stands at a place of it; null for
/// nothing, also for no object. The configuration of a part is read at `config:`.
type Case = (
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static str,
    Value,
);

/// Where the manifests of Flux are published, by version.
const PUBLISHED: &str = "https://github.com/fluxcd/flux2/releases/download/";
const EXTERNAL: &str =
    r#"externalSecrets={"provider":"aws","aws":{"region":"us-east-1","role":"arn:r"}}"#;
const FROM_EXTERNAL: &str =
    r#"configuration.externalSecret={"key":"prod/config","property":"a","version":"v1"}"#;

fn cases() -> Vec<Case> {
    vec![
        (
            &[r#"agent.namespace="x""#],
            "Plugin",
            "packs",
            "/metadata/namespace",
            json!("x"),
        ),
        (
            &[r#"configuration={"namespace":"x","secret":"s","key":"k"}"#],
            "ConfigMap",
            "packs",
            "config:/configuration",
            json!({"namespace": "x", "secret": "s", "key": "k"}),
        ),
        (
            &[r#"desiredState.configMap="c""#],
            "ConfigMap",
            "packs-desired-state",
            "config:/desiredState/configMap",
            json!("c"),
        ),
        (
            &[r#"desiredState.file="/etc/documents/s.json""#],
            "ConfigMap",
            "packs-desired-state",
            "config:/desiredState",
            json!({"file": "/etc/documents/s.json"}),
        ),
        (
            &[
                EXTERNAL,
                r#"desiredState.externalSecret={"key":"prod/state","property":"a","version":"v1"}"#,
            ],
            "ExternalSecret",
            "desired-state",
            "/spec/data/0/remoteRef",
            json!({"key": "prod/state", "property": "a", "version": "v1"}),
        ),
        (
            &[
                EXTERNAL,
                FROM_EXTERNAL,
                r#"externalSecrets.refreshInterval="5m""#,
            ],
            "ExternalSecret",
            "system-manager-config",
            "/spec/refreshInterval",
            json!("5m"),
        ),
        (
            &[
                EXTERNAL,
                FROM_EXTERNAL,
                "externalSecrets.serviceAccount.create=false",
            ],
            "SecretStore",
            "packs-documents",
            "/spec/provider/aws/role",
            json!("arn:r"),
        ),
        (
            &[r#"flux.manifests={"secret":"f","namespace":"x","key":"k"}"#],
            "ConfigMap",
            "packs-flux",
            "config:/fluxManifests",
            json!({"namespace": "x", "secret": "f", "key": "k"}),
        ),
        (
            &[r#"flux.binds=["crd-controller-flux-system"]"#],
            "ClusterRole",
            "reeve-plugin-reeve-system.packs-flux-escalates",
            "/rules/1/resourceNames",
            json!(["crd-controller-flux-system"]),
        ),
        (
            &[r#"parts.flux.plugin={"mode":"PlanOnly"}"#],
            "Plugin",
            "packs-flux",
            "/spec/mode",
            json!("PlanOnly"),
        ),
        (
            &[r#"parts.releases.plugin={"mode":"PlanOnly"}"#],
            "Plugin",
            "packs",
            "/spec/mode",
            json!("PlanOnly"),
        ),
        (
            &[r#"parts.frontDoor.plugin={"mode":"PlanOnly"}"#],
            "Plugin",
            "packs-front-door",
            "/spec/mode",
            json!("PlanOnly"),
        ),
        (
            &[r#"parts.frontDoor.settings={"pullSecret":"x"}"#],
            "ConfigMap",
            "packs-front-door",
            "config:/pullSecret",
            json!("x"),
        ),
        (
            &[r#"parts.desiredState.settings={"configuration":{"secret":"x"}}"#],
            "ConfigMap",
            "packs-desired-state",
            "config:/configuration/secret",
            json!("x"),
        ),
        (
            &["parts.desiredState.enabled=false"],
            "Plugin",
            "packs-desired-state",
            "",
            Value::Null,
        ),
        (
            &[r#"agent.serviceAccountName="x""#],
            "RoleBinding",
            "reeve-plugin-reeve-system.packs-impersonate",
            "/subjects/0/name",
            json!("x"),
        ),
        (
            &["namespaces.create=[]"],
            "Namespace",
            "sgp",
            "",
            Value::Null,
        ),
        (
            &[r#"configuration.configMap="c""#],
            "ConfigMap",
            "packs",
            "config:/configuration",
            json!({"namespace": "sgp-system-manager", "configMap": "c", "key": "system-manager-config.json"}),
        ),
        (
            &[r#"configuration.file="/etc/documents/c.json""#],
            "ConfigMap",
            "packs",
            "config:/configuration",
            json!({"file": "/etc/documents/c.json"}),
        ),
        (
            &[r#"configuration.file="/etc/documents/c.json""#],
            "Plugin",
            "packs-front-door",
            "/spec/capabilities/files",
            json!(["/etc/documents"]),
        ),
        (
            &[r#"configuration.document={"cloudProvider":"gcp"}"#],
            "Secret",
            "system-manager-config",
            "/data/system-manager-config.json",
            // {"cloudProvider":"gcp"}
            json!("eyJjbG91ZFByb3ZpZGVyIjoiZ2NwIn0="),
        ),
        (
            &[r#"desiredState={"secret":"s","key":"k","document":"text"}"#],
            "Secret",
            "s",
            "/data/k",
            json!("dGV4dA=="),
        ),
        (
            &[r#"desiredState.namespace="x""#],
            "ConfigMap",
            "packs-desired-state",
            "config:/desiredState/namespace",
            json!("x"),
        ),
        (
            &[EXTERNAL, FROM_EXTERNAL],
            "ExternalSecret",
            "system-manager-config",
            "/spec/data/0",
            json!({
                "secretKey": "system-manager-config.json",
                "remoteRef": {"key": "prod/config", "property": "a", "version": "v1"},
            }),
        ),
        (
            &[EXTERNAL, FROM_EXTERNAL],
            "SecretStore",
            "packs-documents",
            "/spec/provider",
            json!({"aws": {
                "service": "SecretsManager", "region": "us-east-1", "role": "arn:r",
                "auth": {"jwt": {"serviceAccountRef": {"name": "packs-documents"}}},
            }}),
        ),
        (
            &[
                FROM_EXTERNAL,
                r#"externalSecrets={"provider":"gcp","gcp":{"projectID":"p","clusterName":"c","clusterLocation":"l"}}"#,
            ],
            "SecretStore",
            "packs-documents",
            "/spec/provider",
            json!({"gcpsm": {"projectID": "p", "auth": {"workloadIdentity": {
                "clusterName": "c", "clusterLocation": "l",
                "serviceAccountRef": {"name": "packs-documents"},
            }}}}),
        ),
        (
            &[
                FROM_EXTERNAL,
                r#"externalSecrets={"provider":"azure","azure":{"vaultUrl":"https://v","tenantId":"t"},"serviceAccount":{"name":"x","annotations":{"a":"b"}}}"#,
            ],
            "SecretStore",
            "packs-documents",
            "/spec/provider",
            json!({"azurekv": {
                "authType": "WorkloadIdentity", "vaultUrl": "https://v", "tenantId": "t",
                "serviceAccountRef": {"name": "x"},
            }}),
        ),
        (
            &[
                EXTERNAL,
                FROM_EXTERNAL,
                r#"externalSecrets.serviceAccount.annotations={"a":"b"}"#,
            ],
            "ServiceAccount",
            "packs-documents",
            "/metadata/annotations",
            json!({"a": "b"}),
        ),
        (
            &[
                FROM_EXTERNAL,
                r#"externalSecrets={"store":{"name":"all","kind":"ClusterSecretStore"},"refreshInterval":"5m"}"#,
            ],
            "ExternalSecret",
            "system-manager-config",
            "/spec/secretStoreRef",
            json!({"kind": "ClusterSecretStore", "name": "all"}),
        ),
        (
            &[
                r#"flux.manifests={"url":"https://mirror.example.com/flux.yaml?token=x","redirects":[]}"#,
            ],
            "Plugin",
            "packs-flux",
            "/spec/capabilities",
            json!({"http": [{"url": "https://mirror.example.com/flux.yaml", "methods": ["GET"]}]}),
        ),
        (
            &[
                r#"parts.flux.settings={"fluxManifests":{"url":"https://mirror.example.com/flux.yaml"}}"#,
                "flux.manifests.redirects=null",
                r#"plugin.capabilities={"http":[{"url":"https://example.com/"}]}"#,
            ],
            "Plugin",
            "packs-flux",
            "/spec/capabilities",
            json!({"http": [
                {"url": "https://example.com/"},
                {"url": "https://mirror.example.com/flux.yaml", "methods": ["GET"]},
            ]}),
        ),
        (
            &[r#"parts.flux.settings={"fluxManifests":{"configMap":"flux"}}"#],
            "ConfigMap",
            "packs-flux",
            "config:/fluxManifests",
            json!({"configMap": "flux"}),
        ),
        (
            &[
                r#"flux.manifests.sha256="0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef""#,
            ],
            "ConfigMap",
            "packs-flux",
            "config:/fluxManifests/sha256",
            json!("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
        ),
        (
            &[
                r#"flux.manifests.sha256="0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef""#,
                r#"parts.flux.settings={"fluxManifests":{"configMap":"flux"}}"#,
            ],
            "ConfigMap",
            "packs-flux",
            "config:/fluxManifests",
            json!({
                "configMap": "flux",
                "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            }),
        ),
        (
            &[r#"flux.manifests.file="/etc/flux/install.yaml""#],
            "Plugin",
            "packs-flux",
            "/spec/capabilities",
            json!({"files": ["/etc/flux"]}),
        ),
        (
            &[r#"flux.manifests.configMap="flux""#],
            "ConfigMap",
            "packs-flux",
            "config:/fluxManifests",
            json!({"namespace": "sgp-system-manager", "configMap": "flux", "key": "flux.json"}),
        ),
        (
            &[r#"flux.roles=["crd-controller-flux-system"]"#],
            "ClusterRole",
            "reeve-plugin-reeve-system.packs-flux-escalates",
            "/rules",
            json!([
                {
                    "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
                    "resourceNames": ["crd-controller-flux-system"],
                    "verbs": ["escalate"],
                },
                {
                    "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
                    "resourceNames": ["cluster-admin", "crd-controller-flux-system"],
                    "verbs": ["bind"],
                },
            ]),
        ),
        (
            &[r#"flux.manifests.url="""#],
            "ClusterRole",
            "reeve-plugin-reeve-system.packs-flux-escalates",
            "",
            Value::Null,
        ),
        (
            &[r#"pullSecret="x""#],
            "ConfigMap",
            "packs-front-door",
            "config:/pullSecret",
            json!("x"),
        ),
        (
            &["targetGroupBinding=true"],
            "ConfigMap",
            "packs-front-door",
            "config:/targetGroupBinding",
            json!(true),
        ),
        (
            &["removeNamespaces=false"],
            "ConfigMap",
            "packs-flux",
            "config:/removeNamespaces",
            json!(false),
        ),
        (&["packSet.create=false"], "PackSet", "sgp", "", Value::Null),
        (
            &["packSet.allowEmpty=true"],
            "PackSet",
            "sgp",
            "/spec/allowEmpty",
            json!(true),
        ),
        (
            &[r#"packSet.name="x""#],
            "PackSet",
            "x",
            "/metadata/name",
            json!("x"),
        ),
        (
            &[r#"plugin={"deletionPolicy":"Delete"}"#],
            "Plugin",
            "packs-desired-state",
            "/spec",
            json!({"deletionPolicy": "Delete", "mode": "OnRequest"}),
        ),
        (
            &[r#"parts.desiredState.plugin.mode="Auto""#],
            "Plugin",
            "packs-desired-state",
            "/spec/mode",
            json!("Auto"),
        ),
        (
            &["parts.frontDoor.enabled=false"],
            "Plugin",
            "packs-front-door",
            "",
            Value::Null,
        ),
        (
            &["parts.flux.enabled=false"],
            "ServiceAccount",
            "packs-flux",
            "",
            Value::Null,
        ),
        (
            &[r#"parts.releases.settings={"pullSecret":"x"}"#],
            "ConfigMap",
            "packs",
            "config:/pullSecret",
            json!("x"),
        ),
    ]
}

/// What is at a place of an object.
fn look(objects: &[Value], kind: &str, name: &str, pointer: &str) -> Result<Value> {
    let found = objects
        .iter()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    let Some(found) = found else {
        return Ok(Value::Null);
    };
    let Some(pointer) = pointer.strip_prefix("config:") else {
        return Ok(found.pointer(pointer).cloned().unwrap_or_default());
    };
    let text = found["data"]["config.yaml"].as_str();
    let config: Value = serde_saphyr::from_str(text.context("no configuration")?)?;
    Ok(config.pointer(pointer).cloned().unwrap_or_default())
}

#[test]
fn each_value_does_what_it_says() -> Result<()> {
    let home = tempfile::tempdir()?;
    let values = fs::read_to_string(chart_of(CHART).join("values.yaml"))?;
    let values: Value = serde_saphyr::from_str(&values)?;
    let defaults = rendered(home.path(), &[])?;
    let mut tried = BTreeSet::new();
    for (settings, kind, name, pointer, expected) in cases() {
        let found = look(&rendered(home.path(), settings)?, kind, name, pointer)?;
        ensure!(
            found == expected,
            "{settings:?}: {kind} {name}{pointer} is {found}, not {expected}"
        );
        let usual = look(&defaults, kind, name, pointer)?;
        ensure!(
            usual != expected,
            "{settings:?} changes nothing of {kind} {name}{pointer}"
        );
        let whole = rendered(home.path(), settings)?;
        for (name, rest) in each_left_out(settings)? {
            let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
            // What cannot do without it is refused.
            let without = rendered(home.path(), &rest).ok();
            ensure!(
                without.as_ref() != Some(&whole),
                "{settings:?}: {name} changes nothing"
            );
            tried.insert(name);
        }
    }
    let mut all = Vec::new();
    leaves(&values, String::new(), &mut all);
    let is_tried = |name: &String| {
        let below = format!("{name}.");
        tried
            .iter()
            .any(|one| one == name || one.starts_with(&below))
    };
    all.retain(|name| !is_tried(name));
    ensure!(all.is_empty(), "not tried: {all:?}");
    Ok(())
}

#[test]
fn what_cannot_be_used_is_refused_by_name() -> Result<()> {
    let home = tempfile::tempdir()?;
    let cases: [(&[&str], &str); 12] = [
        (&["pack=1"], "pack"),
        (
            &[r#"parts.flux.settings={"fluxManifests":{"sha256":"x"}}"#],
            "parts.flux.settings.fluxManifests names no place",
        ),
        (
            &[r#"configuration.document={"cloudProvider":"x"}"#],
            "/configuration/document/cloudProvider",
        ),
        (
            &[r#"desiredState.document={"version":"1","packs":[]}"#],
            "/desiredState/document/version",
        ),
        (&[r#"configuration.file="c.json""#], "/configuration/file"),
        (
            &[FROM_EXTERNAL],
            "say provider (aws, gcp or azure), or name a store",
        ),
        (
            &[FROM_EXTERNAL, r#"externalSecrets.provider="azure""#],
            "externalSecrets.azure.vaultUrl: without it the secret manager cannot be found",
        ),
        (
            &[EXTERNAL, FROM_EXTERNAL, r#"configuration.document="text""#],
            "configuration: document and externalSecret.key are two sources of one Secret",
        ),
        (
            &[r#"desiredState={"document":"text","configMap":"x"}"#],
            "desiredState: document and externalSecret.key make a Secret, which is not looked at",
        ),
        (
            &[r#"configuration.secret="""#],
            "configuration: secret, configMap and file are all empty",
        ),
        (
            &[r#"desiredState={"secret":"","document":"text"}"#],
            "desiredState: secret, configMap and file are all empty",
        ),
        (
            &[r#"configuration={"file":"/x","configMap":"x"}"#],
            "configuration: configMap and file are two places",
        ),
    ];
    for (settings, expected) in cases {
        match rendered(home.path(), settings) {
            Ok(_) => bail!("{settings:?} was taken"),
            Err(error) => {
                let text = format!("{error:#}");
                ensure!(text.contains(expected), "no `{expected}` in: {text}");
            }
        }
    }
    Ok(())
}

#[test]
fn it_lints() -> Result<()> {
    let home = tempfile::tempdir()?;
    let chart = chart_of(CHART);
    let lint = ["lint", "--strict", &chart.to_string_lossy()];
    let text = helm(home.path(), None, &lint)?;
    ensure!(text.contains("0 chart(s) failed"), "{text}");
    Ok(())
}

#[test]
fn each_part_is_granted_what_it_asks_for() -> Result<()> {
    let folders = ["packs/crds", "packs/scenarios/crds"];
    let asked = Asked::new(&folders)?;
    let group = "elbv2.k8s.aws";
    asked.apply(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("targetgroupbindings.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "TargetGroupBinding", "plural": "targetgroupbindings"},
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    }))?;
    let cases: [&[&str]; 5] = [
        &[],
        &[r#"flux.manifests.url="""#],
        &[r#"parts.flux.settings={"fluxManifests":{"url":""}}"#],
        &[
            r#"flux.manifests.configMap="flux""#,
            "targetGroupBinding=true",
            r#"configuration.configMap="c""#,
            r#"desiredState={"namespace":"x","secret":"y"}"#,
        ],
        // Documents where the plugin writes, so that one right is within another; and a
        // file, for which nothing is read.
        &[
            r#"configuration={"configMap":"c","namespace":"flux-system"}"#,
            r#"flux.manifests={"configMap":"flux","namespace":"flux-system"}"#,
            r#"desiredState={"configMap":"d","namespace":"sgp"}"#,
            r#"parts.releases.settings={"configuration":{"file":"/etc/documents/c.json","configMap":""}}"#,
        ],
    ];
    for settings in cases {
        let objects = rendered(asked.home(), settings)?;
        ensure!(configured(&objects).len() == 4, "not all parts");
        asked
            .check(&objects, component_of, "")
            .with_context(|| format!("{settings:?}"))?;
    }
    Ok(())
}

#[test]
fn flux_comes_from_where_it_is_published() -> Result<()> {
    let home = tempfile::tempdir()?;
    let objects = rendered(home.path(), &[])?;
    let url = json!(format!("{PUBLISHED}v2.9.4/install.yaml"));
    let found = look(&objects, "ConfigMap", "packs-flux", "config:/fluxManifests")?;
    ensure!(found == json!({"url": url}), "{found}");
    let granted = [
        url,
        json!("https://release-assets.githubusercontent.com/"),
        json!("https://objects.githubusercontent.com/"),
    ]
    .map(|url| json!({"url": url, "methods": ["GET"]}));
    let found = look(&objects, "Plugin", "packs-flux", "/spec/capabilities")?;
    ensure!(found == json!({"http": granted}), "{found}");
    Ok(())
}

/// Beyond what manifests ask for, the chart grants nothing to anybody but to Flux's part,
/// and to that only with manifests.
#[test]
fn only_the_part_of_flux_escalates() -> Result<()> {
    let home = tempfile::tempdir()?;
    let wide = |settings: &[&str]| -> Result<Vec<String>> {
        let objects = rendered(home.path(), settings)?;
        let rules = objects.iter().filter(|object| {
            let rules = object["rules"].to_string();
            ["\"*\"", "escalate", "\"bind\""]
                .iter()
                .any(|word| rules.contains(word))
        });
        Ok(rules
            .map(|object| object["metadata"]["name"].to_string())
            .collect())
    };
    for without in [
        r#"flux.manifests.url="""#,
        "flux.manifests=null",
        r#"parts.flux.settings={"fluxManifests":{"url":""}}"#,
        r#"parts.flux.settings={"fluxManifests":null}"#,
        "parts.flux.enabled=false",
    ] {
        let found = wide(&[without])?;
        ensure!(found == Vec::<String>::new(), "{without}: {found:?}");
    }
    for with in [&[][..], &[r#"flux.manifests.configMap="flux""#]] {
        let with = wide(with)?;
        ensure!(
            with == [r#""reeve-plugin-reeve-system.packs-flux-escalates""#],
            "{with:?}"
        );
    }
    Ok(())
}
