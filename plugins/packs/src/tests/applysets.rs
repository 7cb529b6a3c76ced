//! Packs and their objects as ApplySets.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reeve_sdk::prelude::*;
use sha2::{Digest as _, Sha256};

use super::world::{World, example, objects};
use crate::applyset::{PART_OF, mark_parent};
use crate::catalog::{PACKS, find};
use crate::cloud::Cloud;

/// As kubectl makes it.
fn id(name: &str, namespace: &str, kind: &str, group: &str) -> String {
    let text = format!("{name}.{namespace}.{kind}.{group}");
    let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(text));
    format!("applyset-{digest}-v1")
}

#[test]
fn ids_are_those_of_kubectl() {
    // Of its own tests.
    assert_eq!(
        id("test-foo", "test-ns", "Foo", "foo.bar"),
        "applyset-f9Rk5tKHoB72oV1tU2iFKxDwL8MBZTjMHFQ8V9WNNlA-v1"
    );
    for pack in &PACKS {
        assert_eq!(pack.set, id(pack.name, "", "Pack", "packs.reeve.dev"));
    }
}

#[test]
fn a_pack_says_what_it_can_have() {
    let mut pack = json!({"metadata": {"name": "istio"}});
    mark_parent(&mut pack, find("istio").unwrap());
    let metadata = json!({
        "name": "istio",
        "labels": {
            "applyset.kubernetes.io/id": "applyset-zrw3PV87LCZCY4-GxFTrGRKYXK7vP_AV7rYdLjgzKj8-v1",
        },
        "annotations": {
            "applyset.kubernetes.io/tooling": concat!("reeve/", env!("CARGO_PKG_VERSION")),
            "applyset.kubernetes.io/contains-group-kinds":
                "ConfigMap,Gateway.networking.istio.io,HelmRelease.helm.toolkit.fluxcd.io,\
                 HelmRepository.source.toolkit.fluxcd.io,Namespace,\
                 OCIRepository.source.toolkit.fluxcd.io,Secret,\
                 TargetGroupBinding.elbv2.k8s.aws",
            "applyset.kubernetes.io/additional-namespaces": "flux-system,istio-ingress,istio-system",
        },
    });
    assert_eq!(pack["metadata"], metadata);
}

/// What a kubectl that takes a set over would look for.
#[test]
fn all_that_a_pack_makes_is_of_its_set() {
    for cloud in Cloud::ALL {
        let mut world = World::new(&example(cloud, true)).with_flux();
        world.install_all();
        for definition in &PACKS {
            let mut pack = json!({});
            mark_parent(&mut pack, definition);
            let annotations = &pack["metadata"]["annotations"];
            let listed = |key: &str| -> Vec<String> {
                let text = annotations[format!("applyset.kubernetes.io/{key}")].as_str();
                text.unwrap().split(',').map(str::to_owned).collect()
            };
            let (kinds, namespaces) = (
                listed("contains-group-kinds"),
                listed("additional-namespaces"),
            );
            let role = match definition.name {
                "flux" => "Flux",
                _ => "Releases",
            };
            let mut made = objects(
                &world
                    .try_run(definition.name, &json!({"role": role}))
                    .unwrap(),
            );
            if let "istio" | "identity-service" = definition.name {
                let config =
                    json!({"role": "FrontDoor", "targetGroupBinding": cloud == Cloud::Aws});
                made.extend(objects(&world.try_run(definition.name, &config).unwrap()));
            }
            assert!(!made.is_empty());
            for (name, object) in &made {
                let metadata = &object["metadata"];
                // Somebody else's objects are of no set of ours.
                let contributed = metadata["annotations"]["reeve.dev/apply"] == "Contribute";
                let set = metadata["labels"][PART_OF].as_str();
                assert_eq!(set, (!contributed).then_some(definition.set), "{name}");
                let kind = object["kind"].as_str().unwrap();
                let api_version = object["apiVersion"].as_str().unwrap();
                let kind = match api_version.split_once('/') {
                    Some((group, _)) => format!("{kind}.{group}"),
                    None => kind.to_owned(),
                };
                assert!(kinds.contains(&kind), "{}: {name}", definition.name);
                if let Some(namespace) = metadata["namespace"].as_str() {
                    assert!(
                        namespaces.iter().any(|one| one == namespace),
                        "{}: {name}",
                        definition.name
                    );
                }
            }
        }
    }
}
