//! An install on a real API server, with the agent: Flux comes from manifests with just
//! the rights that the chart grants, the test plays what Flux does, and packs come one
//! after the other.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use reeve_real::eventually;
use reeve_test_support::definitions::FOLDER;
use reeve_test_support::{component, skipped};
use serde_json::{Value, json};

use super::CHART;
use super::published::Published;
use crate::stage::{AGENT, NAMESPACE, Stage};

const DEFINITIONS: [&str; 4] = [
    "helmcharts.source.toolkit.fluxcd.io",
    "helmreleases.helm.toolkit.fluxcd.io",
    "helmrepositories.source.toolkit.fluxcd.io",
    "ocirepositories.source.toolkit.fluxcd.io",
];

pub(super) const PARTS: [&str; 4] = [
    "packs",
    "packs-desired-state",
    "packs-flux",
    "packs-front-door",
];

#[test]
fn packs_are_installed_one_after_the_other() -> Result<()> {
    let mut stage = Stage::new()?;
    stage.helm("install", &["--create-namespace"])?;
    stage.start_agent()?;
    let configuration = json!({
        "cloudProvider": "gcp",
        "baseRepository": "oci://us-east1-docker.pkg.dev/project/charts",
        "workspaceId": "ws",
        "deploymentURL": "https://ws.example.com",
        "baseDomain": "example.com",
        "gcp": {"postgresHostTemporal": "postgres.example.com", "temporal": {"databasePassword": "canary"}},
    });
    let state = json!({
        "version": "0.1",
        "packs": [{"name": "flux"}, {"name": "sgp-helm-repository"}, {"name": "temporalf"}],
    });
    let published = Published::new(&flux())?;
    let manifests = json!({"url": published.url, "redirects": [published.redirect]});
    let notes = stage.helm_on(
        CHART,
        "install",
        &[
            "--set-json",
            &format!("configuration.document={configuration}"),
            "--set-json",
            &format!("desiredState.document={state}"),
            "--set-json",
            &format!("flux.manifests={manifests}"),
        ],
    )?;
    for line in [
        "reeve plugin package packs.wasm --name packs --namespace reeve-system",
        "WHOEVER MAY WRITE PACKS, THE DESIRED STATE OR THE CONFIGURATION MAY DO ALL THAT FLUX MAY",
        "THE ACCOUNT reeve-system/packs-flux CAN MAKE AN ADMINISTRATOR OF THE CLUSTER",
        &published.url,
    ] {
        ensure!(notes.contains(line), "no `{line}` in {notes}");
    }
    let file = component("packs").to_string_lossy().into_owned();
    let package = ["plugin", "package", &file, "--name", "packs", "--namespace"];
    let packed = stage.reeve(&[&package[..], &[NAMESPACE]].concat())?;
    stage.kubectl_with(&["apply", "--server-side", "-f", "-"], &packed)?;
    establish(&stage)?;
    for part in PARTS {
        stage.wait_for_reason(part, "Ready", "Running")?;
    }

    nothing_comes_before_somebody_asks(&stage)?;
    let told = stage.reeve(&["pack", "reconcile"])?;
    ensure!(told.contains("3 to create, 0 to change"), "{told}");
    flux_comes_with_its_roles_and_no_others(&stage)?;
    exists(
        &stage,
        "helmrepository",
        "flux-system",
        "sgp-helm-repository",
    )?;
    // What source-controller does.
    let chart = exists(&stage, "ocirepository", "flux-system", "temporalf")?;
    set_status(
        &stage,
        "ocirepository",
        "flux-system",
        "temporalf",
        &ready(&chart),
    )?;
    let release = exists(&stage, "helmrelease", "temporalf", "temporalf")?;
    let host = release.pointer("/spec/values/global/sgp/gcp/postgresHostTemporal");
    ensure!(host == Some(&json!("postgres.example.com")), "{release}");
    ensure!(!release.to_string().contains("canary"), "{release}");
    eventually("the pack waits for its release", || {
        let told = stage.reeve(&["pack", "list", "-o", "json"])?;
        let list: Value = serde_json::from_str(&told)?;
        let pack = &list["packs"][2];
        ensure!(
            pack["name"] == "temporalf" && pack["state"] == "Waiting",
            "{list}"
        );
        ensure!(pack["releases"][0]["ready"] == false, "{list}");
        Ok(())
    })?;
    set_status(
        &stage,
        "helmrelease",
        "temporalf",
        "temporalf",
        &ready(&release),
    )?;
    // It fails while something is not.
    eventually("all is well", || stage.reeve(&["pack", "status"]))?;
    nobody_may_list_secrets(&stage)?;
    kubectl_knows_a_pack_as_an_apply_set(&stage)?;
    packs_are_changed_from_the_command_line(&stage)?;

    // Uninstalled, the platform stays.
    stage.helm_on(CHART, "uninstall", &[])?;
    for (kind, namespace, name) in [
        ("packset", "", "sgp"),
        ("pack", "", "sgp-helm-repository"),
        ("helmrepository", "flux-system", "sgp-helm-repository"),
        ("namespace", "", "temporalf"),
        ("plugin", NAMESPACE, "packs-flux"),
    ] {
        ensure!(
            stage.get(kind, namespace, name)?.is_some(),
            "{kind} {name} went with the chart"
        );
    }
    let role = "reeve-plugin-reeve-system.packs-flux-escalates";
    ensure!(
        stage.get("clusterrole", "", role)?.is_none(),
        "its rights stay"
    );
    Ok(())
}

/// With exactly the rights of the chart, with which a part reads Secrets and another makes
/// them. The names of those that were made are remembered.
fn nobody_may_list_secrets(stage: &Stage) -> Result<()> {
    let accounts = PARTS.map(|part| format!("system:serviceaccount:{NAMESPACE}:{part}"));
    for user in accounts.iter().map(String::as_str).chain([AGENT]) {
        for verb in ["list", "watch", "deletecollection"] {
            let ask = ["auth", "can-i", verb, "secrets", "-A", "--as", user];
            // kubectl fails where the answer is no.
            ensure!(stage.kubectl(&ask).is_err(), "{user} may {verb} Secrets");
        }
    }
    let get = [
        "auth",
        "can-i",
        "get",
        "secrets",
        "-n",
        "temporalf",
        "--as",
        AGENT,
    ];
    ensure!(stage.kubectl(&get).is_err(), "the agent may get Secrets");
    let units = stage.list("units", NAMESPACE)?;
    let remembered = units
        .iter()
        .filter_map(|unit| unit["status"]["secrets"].as_array())
        .flatten();
    let mut names = 0;
    for secret in remembered {
        let text = |field: &str| secret[field].as_str().unwrap_or_default();
        exists(stage, "secret", text("namespace"), text("name"))?;
        names += 1;
    }
    ensure!(names > 0, "no Secret is remembered");
    Ok(())
}

/// The definitions that charts of the platform bring: those of their projects, or, where
/// nobody has these, plain ones.
pub(super) fn establish(stage: &Stage) -> Result<()> {
    let plain = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/packs/scenarios/crds");
    let mut files = vec![plain.join("istio.yaml")];
    match env::var_os(FOLDER).map(PathBuf::from) {
        Some(folder) => files.extend(DEFINITIONS.map(|name| folder.join(format!("{name}.yaml")))),
        None => {
            skipped(&format!(
                "the chart of packs is not tried with the true definitions of Flux; name a folder \
                 of them in {FOLDER}"
            ));
            files.push(plain.join("flux.yaml"));
        }
    }
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        for definition in serde_saphyr::from_multiple::<Value>(&text)? {
            stage.cluster.establish(&definition)?;
        }
    }
    Ok(())
}

/// It finds what is of it, and changes nothing of what is not its own.
fn kubectl_knows_a_pack_as_an_apply_set(stage: &Stage) -> Result<()> {
    let pack = exists(stage, "pack", "", "temporalf")?;
    let id = &pack["metadata"]["labels"]["applyset.kubernetes.io/id"];
    let id = id.as_str().with_context(|| format!("no id: {pack}"))?;
    let selector = format!("--selector=applyset.kubernetes.io/part-of={id}");
    let kinds = "helmreleases,ocirepositories";
    let found = stage.kubectl(&["get", kinds, "-A", &selector, "-o", "name"])?;
    for name in [
        "helmrelease.helm.toolkit.fluxcd.io/temporalf",
        "ocirepository.source.toolkit.fluxcd.io/temporalf",
    ] {
        ensure!(found.lines().any(|line| line == name), "no {name}: {found}");
    }
    ensure!(found.lines().count() == 2, "{found}");
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "other", "namespace": "temporalf"},
    });
    let set = "--applyset=packs.packs.reeve.dev/temporalf";
    let apply = ["apply", "--prune", set, "-n", "temporalf", "-f", "-"];
    let refused = stage.kubectl_with(&apply, &object.to_string());
    let refused = refused.err().context("kubectl has taken the set")?;
    let refused = format!("{refused:#}");
    let said = "is managed by tooling \"reeve\" instead of \"kubectl\"";
    ensure!(refused.contains(said), "{refused}");
    Ok(())
}

/// A Flux that is small, and has roles as Flux has them.
fn flux() -> [Value; 5] {
    let rbac = "rbac.authorization.k8s.io/v1";
    let deployment = |name: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "flux-system"},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "manager", "image": "example.com/flux"}]},
                },
            },
        })
    };
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}}),
        json!({
            "apiVersion": rbac, "kind": "ClusterRole",
            "metadata": {"name": "crd-controller-flux-system"},
            "rules": [{"apiGroups": ["helm.toolkit.fluxcd.io"], "resources": ["*"], "verbs": ["*"]}],
        }),
        json!({
            "apiVersion": rbac, "kind": "ClusterRoleBinding",
            "metadata": {"name": "cluster-reconciler-flux-system"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "helm-controller", "namespace": "flux-system"}],
        }),
        deployment("source-controller"),
        deployment("helm-controller"),
    ]
}

/// The same, where a cluster has no internet.
pub(super) fn flux_is_described(stage: &Stage) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": flux()});
    stage.apply(&[json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "flux", "namespace": "sgp-system-manager"},
        "data": {"flux.json": list.to_string()},
    })])
}

fn packs_are_changed_from_the_command_line(stage: &Stage) -> Result<()> {
    let told = stage.reeve(&["pack", "add", "spicedb", "--version", "1.x"])?;
    for line in [
        "was added in Secret",
        "Helm's release packs",
        "`reeve pack reconcile`",
    ] {
        ensure!(told.contains(line), "no `{line}` in {told}");
    }
    let told = stage.reeve(&["pack", "remove", "temporalf"])?;
    ensure!(told.contains("was removed"), "{told}");
    ensure!(
        stage.get("pack", "", "spicedb")?.is_none(),
        "nobody has asked for it"
    );
    stage.reeve(&["pack", "reconcile"])?;
    exists(stage, "pack", "", "spicedb")?;
    eventually("the pack that was removed is gone", || {
        let release = stage.get("helmrelease", "temporalf", "temporalf")?;
        ensure!(release.is_none(), "{release:?}");
        Ok(())
    })
}

fn nothing_comes_before_somebody_asks(stage: &Stage) -> Result<()> {
    eventually("the desired state waits", || {
        let told = stage.reeve(&["approve", "packs-desired-state"])?;
        ensure!(told.contains("3 to create"), "{told}");
        Ok(())
    })?;
    let packs = stage.kubectl(&["get", "packs", "-o", "name"])?;
    ensure!(packs.is_empty(), "{packs}");
    Ok(())
}

fn flux_comes_with_its_roles_and_no_others(stage: &Stage) -> Result<()> {
    exists(stage, "clusterrole", "", "crd-controller-flux-system")?;
    exists(
        stage,
        "clusterrolebinding",
        "",
        "cluster-reconciler-flux-system",
    )?;
    // The same rights under another name are refused by the API server itself.
    let account = "system:serviceaccount:reeve-system:packs-flux";
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "another"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    });
    let apply = ["apply", "--server-side", "-f", "-", "--as", account];
    match stage.kubectl_with(&apply, &role.to_string()) {
        Ok(done) => bail!("another role was written: {done}"),
        Err(error) => {
            let text = format!("{error:#}");
            ensure!(
                text.contains("attempting to grant RBAC permissions"),
                "{text}"
            );
        }
    }
    for name in ["source-controller", "helm-controller"] {
        let deployment = exists(stage, "deployment", "flux-system", name)?;
        let available = json!({"status": {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            ],
        }});
        set_status(stage, "deployment", "flux-system", name, &available)?;
    }
    Ok(())
}

fn exists(stage: &Stage, kind: &str, namespace: &str, name: &str) -> Result<Value> {
    eventually(&format!("{kind} {namespace}/{name}"), || {
        let found = stage.get(kind, namespace, name)?;
        if found.is_none() {
            let units = stage.list("units", NAMESPACE)?;
            bail!("it does not exist; {units:?}");
        }
        found.context("it does not exist")
    })
}

/// The status of an object with which Flux has succeeded.
fn ready(object: &Value) -> Value {
    let generation = &object["metadata"]["generation"];
    json!({"status": {"observedGeneration": generation, "conditions": [{
        "type": "Ready", "status": "True", "reason": "Succeeded", "message": "done",
        "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}})
}

pub(super) fn set_status(
    stage: &Stage,
    kind: &str,
    namespace: &str,
    name: &str,
    patch: &Value,
) -> Result<()> {
    let patch = patch.to_string();
    let arguments = ["patch", kind, name, "-n", namespace, "--subresource=status"];
    let how = ["--type=merge", "-p", &patch];
    stage.kubectl(&[&arguments[..], &how].concat()).map(drop)
}
