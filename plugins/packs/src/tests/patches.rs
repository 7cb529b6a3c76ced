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

/// What Flux is to wait for before it installs a release.
fn awaited(world: &World, pack: &str, release: &str) -> Vec<String> {
    let found = objects(&world.run(pack));
    let awaited = found[&format!("HelmRelease {release}")]["spec"]["dependsOn"].as_array();
    let names = awaited.into_iter().flatten();
    names
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn flux_waits_for_no_release_that_is_taken_out() {
    let out = |names: &str| json!({"target": {"name": names}, "patch": {"$patch": "delete"}});
    let identity = "identity-service/identity-service";
    let all = ["istio-base", "istiod", "istio-gateway", "spicedb"];
    assert_eq!(awaited(&world(), "identity-service", identity), all);
    let mut world = patched("istio", &json!([out("istio-gateway")]));
    world.install("istio");
    let rest = ["istio-base", "istiod", "spicedb"];
    assert_eq!(awaited(&world, "identity-service", identity), rest);

    let mut world = patched("istio", &json!([out("istiod")]));
    world.install("istio");
    let gateway = "istio-ingress/istio-gateway";
    assert_eq!(awaited(&world, "istio", gateway), ["istio-base"]);

    // Whoever is the first one left waits for what the pack needs.
    let mut world = patched("istio", &json!([out("istio-base")]));
    let base = json!({"dependsOn": ["spicedb"], "patches": [
        out("istio-base"),
        {"target": {"kind": "HelmRelease"}, "patch": [
            {"op": "replace", "path": "/spec/interval", "value": "1m"},
            {"op": "add", "path": "/spec/values/none", "value": 1},
        ]},
    ]});
    world.say("istio", &base);
    assert_eq!(awaited(&world, "istio", "istio-system/istiod"), ["spicedb"]);
}

#[test]
fn patches_of_namespaces_are_applied_whole_or_not_at_all() {
    for (patch, place) in [
        (
            json!([
                {"op": "add", "path": "/metadata/labels/a", "value": "x"},
                {"op": "test", "path": "/metadata/labels/b", "value": "y"},
            ]),
            "/spec/patches/0/patch/1: ",
        ),
        (
            json!([{"op": "replace", "path": "/metadata/name", "value": "temporalf-prod"}]),
            "/spec/patches/0/patch: ",
        ),
    ] {
        let patches = json!([{"target": {"kind": "Namespace"}, "patch": patch}]);
        let failure = patched("temporalf", &patches).failure("temporalf");
        assert!(
            matches!(&failure, Failure::Terminal(text) if text.contains(place)),
            "{failure}"
        );
    }
}

#[test]
fn a_patch_that_leaves_no_object_is_an_error_for_everybody() {
    let replaced = json!([{"op": "replace", "path": "", "value": "x"}]);
    for (patches, place) in [
        (
            json!([{"target": {"kind": "HelmRelease"}, "type": "Merge",
                "patch": {"metadata": {"annotations": "x"}}}]),
            "/spec/patches/0/patch: leaves no object at /metadata/annotations of ",
        ),
        (
            json!([{"target": {}, "patch": replaced}, {"target": {}, "type": "Merge", "patch": {}}]),
            "/spec/patches/0/patch: ",
        ),
    ] {
        let mut world = patched("istio", &patches);
        let failure = world.failure("istio").to_string();
        assert!(failure.contains(place), "{failure}");
        let door = world.try_run("istio", &json!({"role": "FrontDoor"}));
        let failure = door.unwrap_err().to_string();
        assert!(failure.contains(place), "{failure}");
        world.say("identity-service", &json!({"version": "2"}));
        let failure = world.failure("identity-service").to_string();
        assert!(failure.contains("pack istio: "), "{failure}");
    }
}

/// What is told of patches that mean no object.
fn unmatched(outcome: &Outcome) -> Vec<String> {
    let conditions = outcome.conditions().iter();
    let told = conditions.filter(|condition| condition.kind == "PatchesMatch");
    told.map(|condition| condition.message.clone()).collect()
}

#[test]
fn a_patch_that_means_no_object_is_told_wherever_it_is_for() {
    // That a text names what is elsewhere tells nothing.
    let delete = |target: Value| json!({"target": target, "patch": {"$patch": "delete"}});
    let label = json!({"metadata": {"labels": {"of": "Gateway"}}});
    let patches = json!([
        {"target": {"kind": "HelmRelease", "name": "istio-gatway"}, "patch": label},
        delete(json!({"kind": "Gateway", "name": "front-dor"})),
        delete(json!({"kind": "VirtualService"})),
        delete(json!({"kind": "Gateway"})),
    ]);
    let [told] = &unmatched(&patched("istio", &patches).run("istio"))[..] else {
        panic!("not told");
    };
    for (index, is_told) in [true, true, true, false].into_iter().enumerate() {
        let place = format!("/spec/patches/{index}: ");
        assert_eq!(told.contains(&place), is_told, "{told}");
    }

    let mut world = patched("flux", &json!([delete(json!({"name": "helm-controler"}))]));
    let config = json!({"role": "Flux", "fluxManifests": {"configMap": "flux"}});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "cluster-reconciler-flux-system", "labels": {}}, "subjects": [],
    });
    let manifests = json!({"items": [binding]}).to_string();
    world.store("ConfigMap", "flux", "flux.json", &manifests);
    let outcome = world.try_run("flux", &config).unwrap();
    assert_eq!(unmatched(&outcome).len(), 1);
    // Whoever writes Packs gives nobody rights by it.
    let subject = json!([{"op": "add", "path": "/subjects/-", "value": {"kind": "User"}}]);
    let patches = json!([{"target": {"kind": "ClusterRoleBinding"}, "patch": subject}]);
    world.say("flux", &json!({"patches": patches}));
    let outcome = world.try_run("flux", &config).unwrap();
    let found = &objects(&outcome)["ClusterRoleBinding cluster-reconciler-flux-system"];
    assert_eq!(found["subjects"], json!([]));
    assert_eq!(unmatched(&outcome).len(), 1);
}

#[test]
fn what_is_taken_out_of_the_front_door_is_meant_to_go() {
    let patches = json!([{"target": {"kind": "VirtualService"}, "patch": {"$patch": "delete"}}]);
    let world = patched("identity-service", &patches);
    let door = json!({"role": "FrontDoor"});
    let outcome = world.try_run("identity-service", &door).unwrap();
    assert_eq!(outcome, Outcome::nothing());
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
