//! That everything packs consist of is what the true definitions allow, rules in CEL among
//! them: by the API server, which stores nothing of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use reeve_real::ControlPlane;
use reeve_test_support::definitions::FOLDER;
use reeve_test_support::{samples, skipped};
use serde_json::{Value, json};

use super::rendered;
use crate::stage::Stage;

/// The kinds of which packs and their chart have objects. Of what binds target groups there is
/// no definition here.
const DEFINITIONS: [&str; 7] = [
    "externalsecrets.external-secrets.io",
    "gateways.networking.istio.io",
    "helmreleases.helm.toolkit.fluxcd.io",
    "helmrepositories.source.toolkit.fluxcd.io",
    "ocirepositories.source.toolkit.fluxcd.io",
    "secretstores.external-secrets.io",
    "virtualservices.networking.istio.io",
];
const UNDEFINED: &str = "TargetGroupBinding";

/// What the unit tests of the packs write down.
const GOLDEN: &str = "../../plugins/packs/src/tests/golden";

/// Documents from the secret manager of each cloud.
const FROM_CLOUDS: [&str; 3] = [
    r#"externalSecrets={"provider":"aws","aws":{"region":"us-east-1","role":"arn:r"}}"#,
    r#"externalSecrets={"provider":"gcp","gcp":{"projectID":"p","clusterName":"c","clusterLocation":"l"}}"#,
    r#"externalSecrets={"provider":"azure","azure":{"vaultUrl":"https://v","tenantId":"t"}}"#,
];

#[test]
fn all_that_packs_consist_of_is_allowed() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER) else {
        skipped(&format!(
            "what packs consist of is not held against the true definitions; name a folder of \
             them in {FOLDER}"
        ));
        return Ok(());
    };
    let stage = Stage::on(ControlPlane::builder().controllers([]).start()?)?;
    for name in DEFINITIONS {
        let file = Path::new(&folder).join(format!("{name}.yaml"));
        let file = file.to_string_lossy();
        stage.kubectl(&["apply", "--server-side", "-f", &file])?;
    }
    let established = DEFINITIONS.map(|name| format!("crd/{name}"));
    let mut wait = vec!["wait", "--for=condition=Established", "--timeout=60s"];
    wait.extend(established.iter().map(String::as_str));
    stage.kubectl(&wait)?;

    let groups = all(&stage)?;
    let objects = || groups.values().flatten();
    let namespaces = objects().filter_map(|object| object["metadata"]["namespace"].as_str());
    let namespaces: BTreeSet<&str> = namespaces.collect();
    let namespaces: Vec<Value> = namespaces.into_iter().map(samples::namespace).collect();
    stage.apply(&namespaces)?;
    let kinds: BTreeSet<&str> = objects()
        .filter_map(|object| object["kind"].as_str())
        .collect();
    for kind in [
        "ExternalSecret",
        "Gateway",
        "HelmRelease",
        "SecretStore",
        "VirtualService",
    ] {
        ensure!(kinds.contains(kind), "there is no {kind} among {kinds:?}");
    }
    for (place, group) in &groups {
        allows(&stage, group).with_context(|| place.clone())?;
    }
    eprintln!("{} objects of {} kinds", objects().count(), kinds.len());

    // Who would allow anything would have allowed these.
    let release = objects().find(|one| one["kind"] == "HelmRelease");
    let release = release.context("no release")?;
    let chart = json!({"spec": {
        "chart": "x", "sourceRef": {"kind": "HelmRepository", "name": "x"},
    }});
    // A field that there is not, and a chart beside a chartRef, which a rule forbids.
    for (field, value) in [("intervall", json!("5m")), ("chart", chart)] {
        let mut wrong = release.clone();
        wrong["spec"][field] = value;
        ensure!(allows(&stage, &[wrong]).is_err(), "{field} is allowed");
    }
    Ok(())
}

/// Whether the API server would store these.
fn allows(stage: &Stage, objects: &[Value]) -> Result<()> {
    let dry = [
        "apply",
        "--server-side",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        "-",
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    stage.kubectl_with(&dry, &list.to_string()).map(drop)
}

/// All objects, by where they are from.
fn all(stage: &Stage) -> Result<BTreeMap<String, Vec<Value>>> {
    let mut groups = BTreeMap::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN);
    for cloud in ["aws", "gcp", "azure"] {
        for configured in ["all", "needed"] {
            let name = format!("{cloud}-{configured}.json");
            let file = folder.join(&name);
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let packs: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_str(&text)?;
            let mut objects: Vec<Value> = packs
                .into_values()
                .flat_map(BTreeMap::into_values)
                .collect();
            objects.retain(|object| {
                // A part of another's object is no object.
                let how = &object["metadata"]["annotations"]["reeve.dev/apply"];
                how != "Contribute" && object["kind"] != UNDEFINED
            });
            groups.insert(name, objects);
        }
    }
    let home = stage.file("");
    for settings in FROM_CLOUDS {
        let documents = [
            settings,
            r#"configuration.externalSecret={"key":"prod/config","property":"a"}"#,
            r#"desiredState.externalSecret={"key":"prod/state"}"#,
        ];
        let mut objects = rendered(&home, &documents)?;
        objects
            .retain(|object| object["kind"] == "ExternalSecret" || object["kind"] == "SecretStore");
        groups.insert(settings.to_owned(), objects);
    }
    Ok(groups)
}
