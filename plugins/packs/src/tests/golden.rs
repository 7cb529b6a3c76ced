//! What each pack consists of, for each cloud, with everything configured and with just
//! what is needed. `REEVE_UPDATE_GOLDEN=1` writes it down anew.

use std::collections::BTreeMap;
use std::path::Path;

use reeve_sdk::prelude::*;

use super::world::{World, example, objects};
use crate::catalog::PACKS;
use crate::cloud::Cloud;

fn rendered(cloud: Cloud, all: bool) -> String {
    let mut world = World::new(&example(cloud, all)).with_flux();
    world.install_all();
    let mut packs = BTreeMap::new();
    for pack in &PACKS {
        let config = match pack.name {
            "flux" => json!({"role": "Flux"}),
            _ => json!({}),
        };
        let mut found = objects(&world.try_run(pack.name, &config).unwrap());
        if let "istio" | "identity-service" = pack.name {
            let config = json!({"role": "FrontDoor", "targetGroupBinding": cloud == Cloud::Aws});
            found.extend(objects(&world.try_run(pack.name, &config).unwrap()));
        }
        packs.insert(pack.name, found);
    }
    let mut text = serde_json::to_string_pretty(&packs).unwrap();
    text.push('\n');
    text
}

fn is_as_written_down(name: &str, found: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/golden");
    let path = folder.join(name);
    if std::env::var_os("REEVE_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    for (line, (found, written)) in found.lines().zip(written.lines()).enumerate() {
        assert_eq!(found, written, "{}:{}", path.display(), line + 1);
    }
    assert_eq!(found, written, "{}", path.display());
}

#[test]
fn each_pack_is_as_written_down() {
    for cloud in Cloud::ALL {
        for (all, name) in [(true, "all"), (false, "needed")] {
            let name = format!("{}-{name}.json", cloud.name());
            is_as_written_down(&name, &rendered(cloud, all));
        }
    }
}

/// All that packs see of a cluster in which everything is configured and installed. It is
/// what the benchmark of the packs renders from.
#[test]
fn the_world_is_as_written_down() {
    let mut world = World::new(&example(Cloud::Aws, true)).with_flux();
    world.install_all();
    let objects: Vec<&Value> = world.objects.values().collect();
    let mut text = serde_json::to_string_pretty(&objects).unwrap();
    text.push('\n');
    is_as_written_down("aws-world.json", &text);
}

#[test]
fn what_is_not_asked_for_is_not_installed() {
    let mut world = World::new(&example(Cloud::Gcp, false)).with_flux();
    world.install_all();
    let releases = |world: &World| -> Vec<String> {
        let found = objects(&world.run("sgp-apps")).into_keys();
        found
            .filter_map(|name| name.strip_prefix("HelmRelease sgp/").map(str::to_owned))
            .collect()
    };
    assert_eq!(releases(&world), ["sgp"]);
    for (path, value, release) in [
        ("/deployAgentex", json!(true), Some("agentex")),
        ("/deployAgentex", json!(false), None),
        ("/deploySae", json!(true), Some("sae")),
        ("/datadog/enabled", json!(true), Some("datadog")),
        ("/datadog/env", json!("prod"), None),
        ("/gcp/cloudDeployEnabled", json!(true), Some("cloud-deploy")),
        ("/gcp/cloudBuildBucket", json!("b"), None),
        ("/gcp/compassBucketName", json!("b"), Some("compass")),
        ("/gcp/reductoDatabaseUrl", json!("b"), Some("reducto")),
        ("/gcp/modelEngineBucket", json!("b"), Some("model-engine")),
        ("/gcp/pubsubPolicyTemplate", json!(""), None),
        ("/gcp/dex/prefix", json!("duc"), Some("dex")),
        ("/gcp/train/dataBucket", json!("b"), Some("train")),
        (
            "/gcp/registryProxy/workspaceConfig",
            json!("{}"),
            Some("registry-proxy"),
        ),
    ] {
        let mut configuration = example(Cloud::Gcp, false);
        crate::values::put(configuration.as_object_mut().unwrap(), path, value.clone());
        let mut world = world.clone();
        world.configure(&configuration.to_string());
        world.install_all();
        let mut expected = vec!["sgp"];
        expected.extend(release);
        expected.sort_unstable();
        assert_eq!(releases(&world), expected, "{path}={value}");
    }
}
