//! Each key of the configuration, from the document to whoever uses it.

use std::collections::{BTreeMap, BTreeSet};

use reeve_sdk::prelude::*;

use super::world::{World, example, example_of, objects};
use crate::catalog::PACKS;
use crate::cloud::Cloud;
use crate::forms::decode;
use crate::keys::{At, By, Form, KEYS, Place};

/// Everything that is made of a configuration: what stands in Secrets, and all else.
fn made_of(configuration: &Value) -> (String, String) {
    let mut world = World::new(configuration).with_flux();
    world.install_all();
    let (mut secret, mut open) = (String::new(), String::new());
    for pack in &PACKS {
        for config in [
            json!({}),
            json!({"role": "Flux"}),
            json!({"role": "FrontDoor", "targetGroupBinding": true}),
            json!({"role": "DesiredState"}),
        ] {
            let outcome = world.try_run(pack.name, &config).unwrap();
            for (name, mut object) in objects(&outcome) {
                if name.starts_with("Secret ") {
                    for (_, value) in object["data"].as_object_mut().unwrap() {
                        let bytes = decode(value.as_str().unwrap()).unwrap();
                        secret.push_str(&String::from_utf8(bytes).unwrap());
                        *value = Value::Null;
                    }
                }
                open.push_str(&object.to_string());
            }
            open.push_str(&format!(
                "{:?} {:?}",
                outcome.conditions(),
                outcome.events()
            ));
        }
    }
    (secret, open)
}

#[test]
fn each_key_reaches_somebody_and_secrets_only_secrets() {
    for cloud in Cloud::ALL {
        let (secret, open) = made_of(&example(cloud, true));
        for key in KEYS {
            let (path, id) = (key.path(cloud), key.id());
            let name = path.rsplit('/').next().unwrap();
            let name = name.replace('*', "backend");
            match key.form {
                _ if path.is_empty() => {}
                // What these hold is looked for below, or in tests of their own.
                Form::Pem => {}
                _ if ["/baseRepository", "/initialDesiredState"].contains(&id) => {}
                _ if id == "/aws/fluxIrsaRoleArn" => {
                    assert!(open.contains(&format!("{name}-value")), "{path}");
                }
                _ if key.secret => {
                    assert!(secret.contains(&format!("\"{name}\":")), "{path}");
                    let value = match key.form {
                        Form::Text => format!("{name}-value"),
                        _ => continue,
                    };
                    assert!(secret.contains(&value), "{path}");
                    assert!(!open.contains(&value), "{path} is told");
                }
                _ => assert!(open.contains(&format!("\"{name}\":")), "{path}"),
            }
        }
        let pem = super::world::PRIVATE_KEY.lines().nth(1).unwrap();
        assert!(secret.contains(pem));
        assert!(!open.contains(pem));
        assert!(secret.contains(super::world::CERTIFICATE.lines().nth(1).unwrap()));
    }
}

/// What each release is given: what may be seen, and what may not.
fn given(configuration: &Value) -> BTreeMap<String, [Value; 2]> {
    let mut world = World::new(configuration).with_flux();
    world.install_all();
    let mut given = BTreeMap::new();
    for pack in &PACKS {
        let found = objects(&world.run(pack.name));
        for release in pack.releases {
            let place = format!("{}/{}", release.namespace, release.name);
            let open = found[&format!("HelmRelease {place}")]["spec"]["values"].clone();
            let secret = found.get(&format!("Secret {place}-values"));
            let secret = secret.map_or(Value::Null, |secret| {
                let text = secret["data"]["values.yaml"].as_str().unwrap();
                serde_json::from_slice(&decode(text).unwrap()).unwrap()
            });
            given.insert(release.name.to_owned(), [open, secret]);
        }
    }
    given
}

#[test]
fn each_key_reaches_just_the_releases_that_it_is_for_at_its_own_path() {
    for cloud in Cloud::ALL {
        let given = given(&example(cloud, true));
        for key in KEYS.iter().filter(|key| !key.path(cloud).is_empty()) {
            let path = key.path(cloud).replacen('*', "sgpModels", 1);
            let path = format!("/global/sgp{}", path.replacen('*', "backend", 1));
            for (release, values) in &given {
                let [open, secret] = values.each_ref().map(|tree| tree.pointer(&path));
                let (here, elsewhere) = match key.secret {
                    true => (secret, open),
                    false => (open, secret),
                };
                assert_eq!(here.is_some(), key.reaches(release), "{release}: {path}");
                assert_eq!(elsewhere, None, "{release}: {path}");
                if key.form != Form::Json {
                    let expected = key.reaches(release).then(|| example_of(key, cloud));
                    assert_eq!(here, expected.as_ref(), "{release}: {path}");
                }
            }
        }
    }
}

#[test]
fn every_key_has_one_place_and_a_consumer() {
    let releases: BTreeSet<&str> = PACKS
        .iter()
        .flat_map(|pack| pack.releases)
        .map(|release| release.name)
        .collect();
    for cloud in Cloud::ALL {
        let mut paths: Vec<&str> = KEYS.iter().map(|key| key.path(cloud)).collect();
        paths.retain(|path| !path.is_empty());
        let all = paths.len();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), all);
    }
    for key in KEYS {
        if let By::Releases(names) = key.by {
            assert!(!names.is_empty(), "{}", key.id());
            for name in names {
                assert!(releases.contains(name), "{}: {name}", key.id());
            }
        }
        for pack in key.needed_by {
            assert!(crate::catalog::find(pack).is_some(), "{}: {pack}", key.id());
        }
    }
}

#[test]
fn a_key_that_is_missing_is_one_error_with_its_path() {
    for cloud in Cloud::ALL {
        let mut installed = World::new(&example(cloud, false)).with_flux();
        installed.install_all();
        for key in KEYS.iter().filter(|key| !key.path(cloud).is_empty()) {
            let path = key.path(cloud);
            let mut configuration = example(cloud, false);
            let (block, name) = path.rsplit_once('/').unwrap();
            if let Some(block) = configuration.pointer_mut(block) {
                block.as_object_mut().unwrap().remove(name);
            }
            let mut world = installed.clone();
            world.configure(&configuration.to_string());
            for pack in key.needed_by {
                assert_eq!(
                    world.failure(pack),
                    Failure::terminal(format!(
                        "pack {pack} and its configuration cannot be used, and what it said \
                         before stays: {path}: pack {pack} needs it; set it"
                    )),
                );
            }
        }
    }
}

#[test]
fn the_published_example_has_no_key_without_a_place() {
    // The keys of the published document, in its order.
    let published = [
        "/cloudProvider",
        "/baseRepository",
        "/samlSetupEnabled",
        "/oidcSetupEnabled",
        "/deploymentURL",
        "/workspaceId",
        "/authType",
        "/baseDomain",
        "/scaletrain_tenant_prefix",
        "/train_tenant_prefix",
        "/deployAgentex",
        "/deploySae",
        "/aws/accountId",
        "/aws/region",
        "/aws/prefix",
        "/aws/modelEngineS3Bucket",
        "/aws/sqsQueuePolicyTemplate",
        "/aws/sqsQueueTagTemplate",
        "/aws/clusterName",
        "/aws/karpenterIrsaArn",
        "/aws/targetGroupArn",
        "/aws/nodeSubnets",
        "/aws/nodeSecurityGroup",
        "/aws/postgresHostTemporal",
        "/aws/compassBucketName",
        "/aws/compassMongoHost",
        "/aws/compassRedisHost",
        "/aws/reductoBucketName",
        "/aws/reductoDatabaseUrl",
        "/aws/reductoIrsaRoleArn",
        "/aws/reductoAzureVisionEndpoint",
        "/aws/reductoAzureVisionKey",
        "/aws/codeBuildProjectName",
        "/aws/codeBuildS3Bucket",
        "/aws/codeBuildRegistryUrl",
        "/aws/codeBuildServiceRoleArn",
        "/aws/cloudDeployEnabled",
        "/aws/dex/irsaRoleArn",
        "/aws/dex/prefix",
        "/aws/identities/sgpModels/irsaArn",
        "/aws/identities/sgpModels/secretArns/backend",
        "/aws/identities/sgpModels/secretArns/model-providers",
        "/aws/train/irsaRoleArn",
        "/aws/train/sagemakerExecutionRoleArn",
        "/aws/train/sagemakerSecurityGroupId",
        "/aws/train/databaseHost",
        "/aws/train/dataBucket",
        "/aws/train/checkpointsBucket",
        "/aws/train/outputBucket",
        "/aws/train/stagingBucket",
        "/aws/registryProxy/irsaRoleArn",
        "/aws/registryProxy/ecrRepositoryUrl",
        "/aws/registryProxy/jwtSecret",
        "/aws/registryProxy/workspaceConfig",
        "/frontDoorSSLCertB64",
        "/frontDoorSSLKeyB64",
        "/initialDesiredState",
        "/datadog/enabled",
        "/datadog/env",
        "/datadog/clusterName",
        "/datadog/secretName",
        "/datadog/irsaRoleArn",
    ];
    for path in published {
        let whole = At::Inside(Place::whole(Cloud::Aws));
        let found = path
            .split('/')
            .skip(1)
            .fold(whole, |found, name| match found {
                At::Inside(place) => place.at(name),
                At::Key(_) | At::Unknown => At::Unknown,
            });
        assert!(matches!(found, At::Key(_)), "{path}");
    }
}
