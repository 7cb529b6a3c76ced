//! Names of releases, namespaces and objects, some of which look like something else.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::helm::{names_are_texts, template_with};
use crate::render::look;

#[test]
fn names_may_look_like_something_else() -> Result<()> {
    let home = tempfile::tempdir()?;
    let arguments = [
        "--namespace=2024",
        "--set-json=fullnameOverride=\"true\"",
        "--set-json=nameOverride=\"1e3\"",
        "--set-json=serviceAccount.name=\"1000\"",
        "--set-json=serviceMonitor.enabled=true",
        "--set-json=dashboard.enabled=true",
        "--set-json=cache.sizeLimit=\"1\"",
    ];
    let objects = template_with("reeve", "123", home.path(), &arguments)?;
    names_are_texts(&objects)?;
    for (kind, pointer, expected) in [
        ("Deployment", "/metadata/name", "true"),
        ("Deployment", "/metadata/namespace", "2024"),
        ("ConfigMap", "/metadata/name", "true-config"),
        ("ClusterRole", "/metadata/name", "2024.true"),
        ("RoleBinding", "/subjects/0/name", "1000"),
        (
            "Service",
            "/spec/selector/app.kubernetes.io~1instance",
            "123",
        ),
        ("Service", "/spec/selector/app.kubernetes.io~1name", "1e3"),
        (
            "Deployment",
            "/spec/template/spec/volumes/1/emptyDir/sizeLimit",
            "1",
        ),
    ] {
        let found = look(&objects, kind, pointer);
        ensure!(found == expected, "{kind}{pointer} is {found}");
    }
    Ok(())
}

/// So it is in the charts of plugins.
#[test]
fn names_may_look_like_something_else_for_plugins_too() -> Result<()> {
    let home = tempfile::tempdir()?;
    let charts: [(&str, &[&str]); 3] = [
        (
            "profile-plugins",
            &[
                "--set-json=agent.serviceAccountName=\"1000\"",
                "--set-json=replicaCount={\"gitea\":1,\"s3proxy\":1}",
            ],
        ),
        (
            "models",
            &[
                "--set-json=agent.namespace=\"1000\"",
                "--set-json=namespaces=[\"1e3\"]",
                "--set-json=datarobot={\"predictionEnvId\":\"1\",\"apiSecretName\":\"2\"}",
            ],
        ),
        (
            "packs",
            &[
                "--set-json=namespaces.create=[\"1000\"]",
                "--set-json=configuration={\"namespace\":\"1000\",\"secret\":\"7\",\"key\":\"8\",\"document\":\"{}\"}",
                "--set-json=desiredState={\"secret\":\"9\",\"key\":\"8\",\"externalSecret\":{\"key\":\"x\"}}",
                "--set-json=externalSecrets={\"provider\":\"aws\",\"aws\":{\"region\":\"x\"}}",
                "--set-json=packSet.name=\"9\"",
            ],
        ),
    ];
    for (name, arguments) in charts {
        let arguments: Vec<&str> = [&["--namespace=2024"], arguments].concat();
        let objects =
            template_with(name, "123", home.path(), &arguments).with_context(|| name.to_owned())?;
        names_are_texts(&objects).with_context(|| name.to_owned())?;
    }
    Ok(())
}

/// A Service is called what begins with a letter and has no dots.
#[test]
fn a_release_that_names_no_service_is_refused() -> Result<()> {
    let home = tempfile::tempdir()?;
    for release in ["123", "a.b"] {
        match template_with("reeve", release, home.path(), &[]) {
            Ok(_) => anyhow::bail!("release {release} was taken"),
            Err(error) => {
                let expected =
                    format!("fullnameOverride: without it all objects would be called {release}-");
                let text = format!("{error:#}");
                ensure!(text.contains(&expected), "no {expected} in: {text}");
            }
        }
        let named = ["--set", "fullnameOverride=x"];
        template_with("reeve", release, home.path(), &named)?;
    }
    Ok(())
}

/// What is cluster-wide belongs to one release, whatever the names of both.
#[test]
fn releases_do_not_meet_in_the_cluster() -> Result<()> {
    let home = tempfile::tempdir()?;
    let name = |namespace: &str, release: &str| -> Result<Value> {
        let arguments = ["--namespace", namespace];
        let objects = template_with("reeve", release, home.path(), &arguments)?;
        Ok(look(&objects, "ClusterRole", "/metadata/name"))
    };
    ensure!(name("team", "prod")? == "team.prod-reeve");
    ensure!(name("team-prod", "reeve")? == "team-prod.reeve");
    Ok(())
}
