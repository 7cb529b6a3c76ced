//! The document's commands on a real API server, with the agent: each recipe is
//! installed, and a model is built as it says.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use reeve_real::eventually;
use reeve_test_support::component;
use serde_json::{Value, json};

use super::{RECIPES, minimum};
use crate::helm::{chart_of, helm};
use crate::stage::{NAMESPACE, Stage};

pub(super) const MODELS: &str = "datarobot-mlops";

#[test]
fn each_recipe_builds_models() -> Result<()> {
    let mut stage = Stage::new()?;
    stage.helm("install", &["--create-namespace"])?;
    stage.start_agent()?;
    stage.kubectl(&["create", "namespace", MODELS])?;
    what_the_recipes_tell_to_make(&stage)?;
    install(&stage, &[])?;
    let file = component("models").to_string_lossy().into_owned();
    let package = [
        "plugin",
        "package",
        &file,
        "--name",
        "models",
        "--namespace",
    ];
    let packed = stage.reeve(&[&package[..], &[NAMESPACE]].concat())?;
    stage.kubectl_with(&["apply", "--server-side", "-f", "-"], &packed)?;
    stage.wait_for_reason("models", "Ready", "Running")?;
    let mut before = runs(&stage)?;
    for (number, (name, recipe)) in RECIPES.into_iter().enumerate() {
        let values = stage.file(&format!("{name}.yaml"));
        fs::write(&values, recipe)?;
        install(&stage, &["--values", &values.to_string_lossy()])?;
        // To read a Secret that it did not read before is more than was approved; once it
        // was, it stays so.
        if name == "azure" {
            stage.wait_for_reason("models", "Loaded", "ApprovalRequired")?;
            let told = stage.reeve(&["plugin", "approve", "models"])?;
            ensure!(told.contains("registry-creds"), "{told}");
        }
        before = eventually(&format!("{name} is what runs"), || {
            let now = runs(&stage)?;
            ensure!(now != before, "it is {now} still");
            Ok(now)
        })?;
        stage.apply(&[model(name, number)])?;
        let spec = build_of(&stage, number)?;
        check(name, &spec).with_context(|| format!("{name}: {spec}"))?;
    }
    let account = "datarobot-management-agent-image-builder";
    let account = stage.get("serviceaccount", MODELS, account)?;
    let account = account.context("no account for builds")?;
    let annotation = "iam.gke.io/gcp-service-account";
    ensure!(
        account["metadata"]["annotations"][annotation].is_null(),
        "what the last recipe does not say stays: {account}"
    );
    let bosun = ["uninstall", "bosun", "--namespace", MODELS];
    let cluster = &stage.cluster;
    helm(cluster.folder(), Some(&cluster.kubeconfig()), &bosun)?;
    ensure!(stage.get("modeldeployment", MODELS, "aws")?.is_some());
    Ok(())
}

/// The document's command, with the chart's name changed.
pub(super) fn install(stage: &Stage, more: &[&str]) -> Result<()> {
    let chart = chart_of("models");
    let chart = chart.to_string_lossy();
    let command = ["upgrade", "--install", "bosun", &*chart];
    let arguments = [&command[..], &minimum(), more].concat();
    let cluster = &stage.cluster;
    let notes = helm(cluster.folder(), Some(&cluster.kubeconfig()), &arguments)?;
    let line = "reeve plugin package models.wasm --name models --namespace reeve-system";
    ensure!(notes.contains(line), "{notes}");
    Ok(())
}

fn what_the_recipes_tell_to_make(stage: &Stage) -> Result<()> {
    for arguments in [
        &[
            "secret",
            "generic",
            "mlops-api-key",
            "--from-literal=secret=token",
        ][..],
        &[
            "configmap",
            "docker-config",
            r#"--from-literal=config.json={"credsStore":"ecr-login"}"#,
        ],
        &[
            "secret",
            "docker-registry",
            "registry-creds",
            "--docker-server=registry.your-company.com",
            "--docker-username=u",
            "--docker-password=p",
        ],
        // As eksctl makes it.
        &["serviceaccount", "datarobot-management-agent-image-builder"],
    ] {
        stage.kubectl(&[&["create", "-n", MODELS], arguments].concat())?;
    }
    Ok(())
}

/// The digest of the configuration that runs.
fn runs(stage: &Stage) -> Result<Value> {
    let plugin = stage.get("plugin", NAMESPACE, "models")?;
    let plugin = plugin.context("no Plugin")?;
    let digest = plugin["status"]["lastGood"]["configDigest"].clone();
    ensure!(digest.is_string(), "{plugin}");
    Ok(digest)
}

fn model(name: &str, number: usize) -> Value {
    json!({
        "apiVersion": "models.reeve.dev/v1alpha1", "kind": "ModelDeployment",
        "metadata": {"name": name, "namespace": MODELS},
        "spec": {"model": {"id": format!("model-{number}"), "package": {
            "url": "https://app.datarobot.com/packages/1.mlpkg",
            "sha256": number.to_string().repeat(64),
        }}},
    })
}

/// The pod of the Job that builds a model.
fn build_of(stage: &Stage, number: usize) -> Result<Value> {
    eventually(&format!("model-{number} is built"), || {
        let jobs = stage.list("jobs", MODELS)?;
        let wanted = format!("frozen-models:model-{number}-");
        let found = jobs.iter().find(|job| job.to_string().contains(&wanted));
        let Some(found) = found else {
            let models = stage.list("modeldeployments", MODELS)?;
            let units = stage.list("units", NAMESPACE)?;
            bail!("there is no such Job; {models:?} {units:?}");
        };
        Ok(found["spec"]["template"]["spec"].clone())
    })
}

fn check(name: &str, spec: &Value) -> Result<()> {
    let account = "datarobot-management-agent-image-builder";
    ensure!(spec["serviceAccountName"] == account, "another account");
    let text = spec["volumes"].to_string();
    let mounts = |what: &str| text.contains(what);
    match name {
        "aws" => ensure!(mounts("docker-config") && !mounts("registry-creds")),
        "gcp" => ensure!(!mounts("docker-config") && !mounts("registry-creds")),
        _ => ensure!(mounts("registry-creds") && !mounts("docker-config")),
    }
    let insecure = spec["containers"].to_string();
    let insecure = insecure.contains("--insecure-registry=registry.your-company.com");
    ensure!(insecure == (name == "insecure"), "plain HTTP: {insecure}");
    Ok(())
}
