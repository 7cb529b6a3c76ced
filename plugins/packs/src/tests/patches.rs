//! Patches of what packs consist of.

use reeve_sdk::prelude::*;

use super::world::{World, example, objects};
use crate::cloud::Cloud;

fn world() -> World {
    let mut world = World::new(&example(Cloud::Gcp, false)).with_flux();
    world.install_all();
    world
}

fn patched(pack: &str, patches: &Value) -> World {
    let mut world = world();
    world.say(pack, &json!({"patches": patches}));
    world
}

#[test]
fn objects_of_a_pack_are_patched_before_they_are_judged() {
    let mut world = patched(
        "istio",
        &json!([
            {"patch": {"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": "istio-ingress", "labels": {"team": "mesh"}}}},
            {"target": {"kind": "HelmRelease", "name": "istio.*"},
             "patch": [{"op": "replace", "path": "/spec/interval", "value": "1m"}]},
            {"target": {"kind": "HelmRelease"}, "type": "Merge", "patch": {"spec": {"driftDetection": null}}},
        ]),
    );
    let found = objects(&world.run("istio"));
    let namespace = &found["Namespace istio-ingress"]["metadata"]["labels"];
    assert_eq!(namespace["team"], "mesh");
    assert_eq!(namespace["packs.reeve.dev/pack"], "istio");
    for name in ["istio-system/istiod", "istio-ingress/istio-gateway"] {
        let spec = &found[&format!("HelmRelease {name}")]["spec"];
        assert_eq!(spec["interval"], "1m", "{name}");
        assert_eq!(spec.get("driftDetection"), None, "{name}");
    }
    assert_eq!(world.run("istio").conditions(), []);
    // What others wait for is what was patched.
    let revision = |world: &World| {
        let found = objects(&world.run("istio"));
        found["HelmRelease istio-system/istiod"]["metadata"]["annotations"]["packs.reeve.dev/revision"].clone()
    };
    assert_ne!(revision(&world), revision(&self::world()));
    world
        .objects
        .remove("HelmRelease identity-service/identity-service");
    let blocked = world.failure("identity-service").to_string();
    assert!(blocked.contains("is not yet as it is wanted"), "{blocked}");
    world.install("istio");
    assert!(world.try_run("identity-service", &json!({})).is_ok());
}

#[test]
fn a_release_that_is_taken_out_is_not_waited_for() {
    let mut world = patched(
        "istio",
        &json!([{"target": {"name": "istio-gateway"}, "patch": {"$patch": "delete"}}]),
    );
    world
        .objects
        .remove("HelmRelease istio-ingress/istio-gateway");
    world
        .objects
        .remove("HelmRelease identity-service/identity-service");
    world.install("istio");
    let found = objects(&world.run("istio"));
    assert!(!found.contains_key("HelmRelease istio-ingress/istio-gateway"));
    assert!(!found.contains_key("OCIRepository flux-system/istio-gateway"));
    assert!(world.try_run("identity-service", &json!({})).is_ok());
}

#[test]
fn every_part_patches_its_own() {
    let world = patched(
        "istio",
        &json!([{"target": {"kind": "Gateway"}, "patch": {"metadata": {"labels": {"a": "b"}}}}]),
    );
    let door = world
        .try_run("istio", &json!({"role": "FrontDoor"}))
        .unwrap();
    let gateway = &objects(&door)["Gateway istio-ingress/front-door"];
    assert_eq!(gateway["metadata"]["labels"]["a"], "b");
    // Who does not see a Gateway does not miss it.
    assert_eq!(world.run("istio").conditions(), []);

    let mut world = patched(
        "flux",
        &json!([{"target": {"kind": "Deployment"}, "patch": {"spec": {"template": {"spec": {
            "containers": [{"name": "manager", "args": ["--x"]}]}}}}}]),
    );
    let manifests = json!({"items": [{
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "helm-controller", "namespace": "flux-system"},
        "spec": {"template": {"spec": {"containers": [{"name": "manager", "image": "i"}]}}},
    }]});
    world.store("ConfigMap", "flux", "flux.json", &manifests.to_string());
    let config = json!({"role": "Flux", "fluxManifests": {"configMap": "flux"}});
    let found = objects(&world.try_run("flux", &config).unwrap());
    let containers =
        found["Deployment flux-system/helm-controller"].pointer("/spec/template/spec/containers");
    let expected = json!([{"name": "manager", "image": "i", "args": ["--x"]}]);
    assert_eq!(containers, Some(&expected));
}

#[test]
fn bad_patches_change_nothing_and_name_their_place() {
    let world = patched(
        "istio",
        &json!([
            {"target": {"kind": "HelmRelease"}, "patch": {}},
            {"target": {"name": "("}, "patch": {}},
            {"target": {"kind": "X"}},
        ]),
    );
    assert_eq!(
        world.failure("istio").to_string(),
        "pack istio and its configuration cannot be used, and what it said before stays: \
         /spec/patches/1/target/name: `(` is no pattern that can be used: a `(` has no `)`; \
         /spec/patches/2/patch: expected an object, a list of operations, or one of these as JSON text"
    );
    let world = patched(
        "istio",
        &json!([{"target": {"name": "istiod", "kind": "HelmRelease"},
                 "patch": [{"op": "remove", "path": "/spec/none"}]}]),
    );
    let failure = world.failure("istio").to_string();
    assert!(failure.contains("/spec/patches/0/patch/0: "), "{failure}");
    assert!(
        failure.contains("HelmRelease istio-system/istiod"),
        "{failure}"
    );
    // What is meant by nobody is told, and stands in no way.
    let world = patched(
        "istio",
        &json!([{"target": {"kind": "HelmChart"}, "patch": {}}]),
    );
    let outcome = world.run("istio");
    let [condition] = outcome.conditions() else {
        panic!("{:?}", outcome.conditions());
    };
    assert!(
        format!("{condition:?}").contains("/spec/patches/0: no object of the pack is meant by it")
    );
}

#[test]
fn the_desired_state_may_have_patches() {
    let mut world = world();
    let patches =
        json!([{"target": {"kind": "Namespace"}, "patch": {"metadata": {"labels": {"a": "b"}}}}]);
    let state = json!({"version": "0.1", "packs": [{"name": "flux", "patches": patches}]});
    world.store(
        "Secret",
        "desired-state",
        "desired-state.json",
        &state.to_string(),
    );
    let outcome = world
        .try_run("sgp", &json!({"role": "DesiredState"}))
        .unwrap();
    assert_eq!(objects(&outcome)["Pack flux"]["spec"]["patches"], patches);
}
