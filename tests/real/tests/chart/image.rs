//! The image that the chart runs: built as the documentation says, pushed to a registry,
//! pulled from it, unpacked, and run as the chart's Deployment asks for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use rcgen::{CertificateParams, KeyPair};
use reeve_real::{Buildah, Container, Registry, Unpacked};
use reeve_test_support::{component, skipped};
use serde_json::{Value, json};

use crate::stage::{NAMESPACE, Stage};

#[test]
fn the_image_is_all_that_the_agent_needs() -> Result<()> {
    let Some(buildah) = Buildah::possible()? else {
        return Ok(());
    };
    if !Container::possible() {
        skipped("the image is not run, without mounts of its own");
        return Ok(());
    }
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["localhost".to_owned()])?.self_signed(&key)?;
    let registry = Registry::start(&certificate.pem(), &key.serialize_pem())?;

    let mut stage = Stage::new()?;
    let repository = format!("image.repository={}", registry.image("reeve"));
    stage.helm("install", &["--create-namespace", "--set", &repository])?;
    let deployment = stage.get("deployment", NAMESPACE, "reeve")?;
    let deployment = deployment.context("no Deployment")?;
    // What the chart pulls.
    let wanted = deployment.pointer("/spec/template/spec/containers/0/image");
    let wanted = wanted.and_then(Value::as_str).context("no image")?;
    ensure!(wanted == registry.image("reeve:0.1.0"), "{wanted}");

    buildah.build(&context()?, "reeve")?;
    buildah.push("reeve", wanted)?;
    // From nothing but the registry.
    let elsewhere = Buildah::possible()?.context("it was possible before")?;
    let image = elsewhere.pull(wanted)?;
    it_holds_the_agent_alone(&image)?;
    stage.start_agent_of(&image)?;
    let file = component("quotas").to_string_lossy().into_owned();
    let packed = stage.reeve(&["plugin", "package", &file, "--namespace", NAMESPACE])?;
    stage.cluster.apply(&packed)?;
    stage.wait_for_reason("quotas", "Granted", "ServiceAccountUnusable")?;
    stage.reeve(&["plugin", "grant", "quotas", "--apply"])?;
    stage.wait_for_pods("ann", "100")?;
    stage.wait_for_reason("quotas", "Ready", "Running")?;
    // What it has compiled is in the one place where it can write.
    let cache = stage.file("var-cache").join("components");
    let kept = fs::read_dir(&cache)
        .with_context(|| cache.display().to_string())?
        .count();
    ensure!(kept > 1, "{kept} files");
    Ok(())
}

/// Nothing but the program, which needs nothing else, whom it trusts, and whom it runs as.
fn it_holds_the_agent_alone(image: &Unpacked) -> Result<()> {
    let mut files = Vec::new();
    let mut folders = vec![image.root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path.strip_prefix(&image.root)?.display().to_string()),
            }
        }
    }
    files.sort();
    // Where the agent looks for them.
    let authorities = "etc/ssl/certs/ca-certificates.crt";
    ensure!(files == [authorities, "reeve"], "{files:?}");
    let authorities = fs::read_to_string(image.root.join(authorities))?;
    ensure!(authorities.contains("BEGIN CERTIFICATE"), "{authorities}");
    let config = &image.config["config"];
    ensure!(config["User"] == "65532:65532", "{config}");
    ensure!(config["Entrypoint"] == json!(["/reeve"]), "{config}");
    ensure!(config["Cmd"] == json!(["run"]), "{config}");
    // There is no loader in there, and no library.
    let said = Command::new("chroot")
        .args(["--userspec=65532:65532"])
        .arg(&image.root)
        .args(["/reeve", "--version"])
        .output()?;
    let version = String::from_utf8_lossy(&said.stdout).into_owned();
    let trouble = String::from_utf8_lossy(&said.stderr).into_owned();
    ensure!(version.starts_with("reeve "), "{version}{trouble}");
    Ok(())
}

/// What `cargo xtask image` left.
fn context() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("target/image/dev");
    ensure!(
        folder.join("reeve").is_file(),
        "there is no {}; run `cargo xtask image --profile dev`",
        folder.display()
    );
    Ok(folder)
}
