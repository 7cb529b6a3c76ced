//! Packs go in the reverse of the order in which they come.

use reeve_sdk::prelude::*;

use super::world::{World, example, objects};
use crate::catalog::PACKS;
use crate::cloud::Cloud;

fn world() -> World {
    let mut world = World::new(&example(Cloud::Azure, true)).with_flux();
    world.install_all();
    world
}

fn delete(world: &mut World, pack: &str) {
    world.pack(pack)["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
}

#[test]
fn a_pack_goes_after_those_that_need_it() {
    let mut world = world();
    for pack in &PACKS {
        delete(&mut world, pack.name);
    }
    let mut left: Vec<&str> = PACKS.iter().map(|pack| pack.name).collect();
    let mut rounds = Vec::new();
    while !left.is_empty() {
        let config = |name: &str| match name {
            "flux" => json!({"role": "Flux"}),
            _ => json!({}),
        };
        let gone: Vec<&str> = left
            .iter()
            .filter(|name| world.try_run(name, &config(name)).is_ok())
            .copied()
            .collect();
        assert!(!gone.is_empty(), "{left:?}");
        left.retain(|name| !gone.contains(name));
        for name in &gone {
            let outcome = world.try_run(name, &config(name)).unwrap();
            let hook = outcome.objects_json();
            assert_eq!(hook.len(), 1);
            let annotations = &hook[0]["metadata"]["annotations"];
            assert_eq!(annotations["reeve.dev/hook"], "PreDelete");
            world.objects.retain(|key, object| {
                *key != format!("Pack {name}")
                    && object["metadata"]["labels"]["packs.reeve.dev/pack"] != *name
            });
        }
        rounds.push(gone);
    }
    assert_eq!(
        rounds,
        [
            vec!["sgp-apps"],
            vec!["identity-service", "temporalf"],
            vec!["istio", "spicedb"],
            vec!["sgp-helm-repository"],
            vec!["flux"],
        ]
    );
}

#[test]
fn who_is_needed_says_by_whom() {
    let mut world = world();
    delete(&mut world, "istio");
    assert_eq!(
        world.failure("istio"),
        Failure::not_ready(
            "it goes after the packs that need it: identity-service; remove them, or change \
             their dependsOn"
        )
    );
    // Who is disabled and has nothing left needs nothing.
    world.say("identity-service", &json!({"enabled": false}));
    assert!(world.try_run("istio", &json!({})).is_err());
    world
        .objects
        .remove("HelmRelease identity-service/identity-service");
    assert_eq!(world.run("istio").objects_json().len(), 1);
}

#[test]
fn a_pack_that_is_disabled_has_nothing() {
    let mut world = world();
    world.say("sgp-apps", &json!({"enabled": false}));
    assert_eq!(world.run("sgp-apps"), Outcome::nothing());
    world.say("istio", &json!({"enabled": false}));
    assert!(matches!(world.failure("istio"), Failure::NotReady(_)));
    // Its front door stays as long as it does.
    let front_door = json!({"role": "FrontDoor"});
    let failure = world.try_run("istio", &front_door).unwrap_err();
    assert!(
        failure.to_string().contains(": identity-service;"),
        "{failure}"
    );
    world.say("identity-service", &json!({"enabled": false}));
    world
        .objects
        .remove("HelmRelease identity-service/identity-service");
    assert_eq!(world.run("istio"), Outcome::nothing());
    let outcome = world.try_run("istio", &front_door).unwrap();
    assert_eq!(outcome, Outcome::nothing());
}

#[test]
fn of_packs_that_go_the_later_waves_go_first() {
    let off = json!({"wave": 1, "enabled": false});
    let mut world = world();
    world.say("spicedb", &json!({"wave": 1, "dependsOn": []}));
    world.say("identity-service", &json!({"dependsOn": []}));
    world.say("sgp-apps", &json!({"dependsOn": []}));
    world.say("temporalf", &json!({"wave": 2}));
    // One that stays needs none of a lower wave.
    for spec in [&off, &json!({"wave": 1})] {
        world.say("spicedb", spec);
        if spec.get("enabled").is_none() {
            delete(&mut world, "spicedb");
        }
        assert!(world.try_run("spicedb", &json!({})).is_ok(), "{spec}");
    }
    world.say("spicedb", &off);
    world.say("temporalf", &json!({"wave": 2, "enabled": false}));
    let failure = world.failure("spicedb").to_string();
    assert!(failure.contains(": temporalf;"), "{failure}");
    assert_eq!(world.run("temporalf"), Outcome::nothing());
    world.objects.remove("HelmRelease temporalf/temporalf");
    assert_eq!(world.run("spicedb"), Outcome::nothing());
}

#[test]
fn flux_goes_when_all_that_are_disabled_have_gone() {
    let mut world = world();
    for pack in &PACKS {
        world.say(pack.name, &json!({"enabled": false}));
    }
    let flux = json!({"role": "Flux"});
    // As an agent has a Pack wait of which there is something.
    let holds = json!(["example.com/mine", "hooks.reeve.dev/packs"]);
    world.pack("sgp-helm-repository")["metadata"]["finalizers"] = holds;
    let failure = world.try_run("flux", &flux).unwrap_err().to_string();
    assert!(failure.contains(": sgp-helm-repository;"), "{failure}");
    let rest = json!(["example.com/mine"]);
    world.pack("sgp-helm-repository")["metadata"]["finalizers"] = rest;
    assert_eq!(world.try_run("flux", &flux).unwrap(), Outcome::nothing());
}

#[test]
fn a_pack_ends_without_a_configuration_and_in_a_circle() {
    let mut world = world();
    world.configure("{");
    delete(&mut world, "sgp-apps");
    let names: Vec<String> = objects(&world.run("sgp-apps")).into_keys().collect();
    assert_eq!(names, ["ConfigMap sgp/pack-sgp-apps-ends"]);

    world.say("istio", &json!({"dependsOn": ["spicedb"]}));
    world.say("spicedb", &json!({"dependsOn": ["istio"]}));
    delete(&mut world, "istio");
    assert_eq!(world.run("istio").objects_json().len(), 1);
}
