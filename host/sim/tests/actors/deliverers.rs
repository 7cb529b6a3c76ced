//! The ground for the kinds of Flux and of Argo CD: their definitions, our own with what
//! a status needs, or those of the projects.

use reeve_sim::Actors;
use reeve_test_support::{definitions, skipped};
use serde_json::{Value, json};

use crate::world::{World, addressed};

/// Names the folder with the definitions of other projects.
const FOLDER: &str = "REEVE_DEFINITIONS";

/// A world in which these kinds are acted for.
pub(crate) fn with(kinds: &[&str]) -> World {
    World::with(Actors {
        kinds: kinds.iter().map(|kind| kind.parse().unwrap()).collect(),
        ..Actors::default()
    })
}

/// The definitions of the projects; none, and a word on it, where nobody says where they
/// are.
pub(crate) fn of_projects(kinds: &[&str]) -> Option<Vec<Value>> {
    let Ok(folder) = std::env::var(FOLDER) else {
        skipped(&format!(
            "statuses of Flux and Argo CD are not compared with the true definitions; name a \
             folder of them in {FOLDER}"
        ));
        return None;
    };
    let read = |kind: &&str| {
        let (kind, group) = kind.split_once('.').unwrap();
        let plural = match kind.strip_suffix('y') {
            Some(stem) => format!("{}ies", stem.to_lowercase()),
            None => format!("{}s", kind.to_lowercase()),
        };
        let path = format!("{folder}/{plural}.{group}.yaml");
        let text = std::fs::read_to_string(&path);
        assert!(text.is_ok(), "{path}: {text:?}");
        let text = text.unwrap();
        serde_saphyr::from_str(&text).unwrap()
    };
    Some(kinds.iter().map(read).collect())
}

/// The kinds of Flux.
pub(crate) const FLUX: &[&str] = &[
    "GitRepository.source.toolkit.fluxcd.io",
    "OCIRepository.source.toolkit.fluxcd.io",
    "HelmRepository.source.toolkit.fluxcd.io",
    "Bucket.source.toolkit.fluxcd.io",
    "HelmChart.source.toolkit.fluxcd.io",
    "Kustomization.kustomize.toolkit.fluxcd.io",
    "HelmRelease.helm.toolkit.fluxcd.io",
];

/// A world in which Flux is played.
pub(crate) async fn flux() -> World {
    let world = with(FLUX);
    for (plural, kind, group, version) in [
        ("gitrepositories", "GitRepository", "source", "v1"),
        ("ocirepositories", "OCIRepository", "source", "v1"),
        ("helmrepositories", "HelmRepository", "source", "v1"),
        ("buckets", "Bucket", "source", "v1"),
        ("helmcharts", "HelmChart", "source", "v1"),
        ("kustomizations", "Kustomization", "kustomize", "v1"),
        ("helmreleases", "HelmRelease", "helm", "v2"),
    ] {
        let group = format!("{group}.toolkit.fluxcd.io");
        world
            .create(definitions::open(plural, kind, &group, version))
            .await;
    }
    world
}

/// An object of Flux.
pub(crate) fn object(
    kind: &str,
    group: &str,
    name: &str,
    annotations: &[(&str, &str)],
    spec: Value,
) -> Value {
    json!({
        "apiVersion": format!("{group}.toolkit.fluxcd.io/{}", if group == "helm" { "v2" } else { "v1" }),
        "kind": kind,
        "metadata": {"name": name, "annotations": addressed(annotations)},
        "spec": spec,
    })
}

/// A repository of charts.
pub(crate) fn charts(name: &str, annotations: &[(&str, &str)]) -> Value {
    let url = format!("oci://registry.example.com/charts/{name}");
    let spec = json!({"interval": "5m", "url": url, "ref": {"semver": ">=6.5.0"}});
    object("OCIRepository", "source", name, annotations, spec)
}

/// A Git repository.
pub(crate) fn git(name: &str, annotations: &[(&str, &str)]) -> Value {
    let spec =
        json!({"interval": "5m", "url": "https://git.example.com/a", "ref": {"branch": "main"}});
    object("GitRepository", "source", name, annotations, spec)
}

/// A release of the chart `web`.
pub(crate) fn release(name: &str, annotations: &[(&str, &str)], more: Value) -> Value {
    let mut spec = json!({
        "interval": "30m",
        "chartRef": {"kind": "OCIRepository", "name": "web"},
        "values": {"replicas": 1},
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    object("HelmRelease", "helm", name, annotations, spec)
}

/// A Kustomization of the Git repository `a`.
pub(crate) fn kustomization(name: &str, annotations: &[(&str, &str)], more: Value) -> Value {
    let mut spec = json!({
        "interval": "10m",
        "prune": true,
        "path": "./deploy",
        "sourceRef": {"kind": "GitRepository", "name": "a"},
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    object("Kustomization", "kustomize", name, annotations, spec)
}

/// The message of a condition.
pub(crate) fn message(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|c| c["type"] == kind);
    assert!(found.is_some(), "no condition {kind}: {object:#}");
    found.unwrap()["message"].as_str().unwrap().to_owned()
}

/// The releases in a history.
pub(crate) fn history(object: &Value) -> Vec<String> {
    let releases = object["status"]["history"].as_array().cloned();
    let releases = releases.unwrap_or_default();
    let shown = releases.iter().map(|r| {
        let text = |field: &str| r[field].as_str().unwrap_or("-").to_owned();
        format!(
            "v{} {} {} {}",
            r["version"],
            text("chartVersion"),
            text("status"),
            text("action")
        )
    });
    shown.collect()
}
