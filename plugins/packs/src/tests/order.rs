//! Packs wait for what they need, and say so.

use reeve_sdk::prelude::*;

use super::world::{World, example};
use crate::cloud::Cloud;

fn world() -> World {
    World::new(&example(Cloud::Aws, false)).with_flux()
}

#[test]
fn packs_come_in_the_order_of_their_needs() {
    assert_eq!(
        world().install_all(),
        [
            vec!["sgp-helm-repository"],
            vec!["istio", "spicedb", "temporalf"],
            vec!["identity-service"],
            vec!["sgp-apps"],
        ]
    );
}

/// What a pack says when one that it needs is in this state.
fn check(change: impl Fn(&mut World), pack: &str, text: &str) {
    let mut world = world();
    world.install_all();
    // What is wanted of it is new.
    let release = match pack {
        "sgp-apps" => "sgp",
        other => other,
    };
    world.say(pack, &json!({"values": {release: {"a": 1}}}));
    change(&mut world);
    match world.failure(pack) {
        Failure::NotReady(said) => assert_eq!(said, text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_waits_says_for_what() {
    let status = |path: &'static str, change: fn(&mut Value)| {
        move |world: &mut World| change(world.release(path))
    };
    check(
        |world| drop(world.objects.remove("HelmRelease spicedb/spicedb")),
        "identity-service",
        "blocked by pack spicedb: HelmRelease spicedb/spicedb does not exist yet",
    );
    check(
        status("istio-system/istiod", |release| {
            release["status"]["conditions"] = json!([
                {"type": "Stalled", "status": "True", "reason": "RetriesExceeded",
                 "message": "no such chart", "observedGeneration": 1},
            ]);
        }),
        "identity-service",
        "blocked by pack istio: HelmRelease istio-system/istiod is not ready: it has failed for \
         good: RetriesExceeded: no such chart",
    );
    check(
        status("istio-system/istiod", |release| {
            release["metadata"]["generation"] = json!(2);
        }),
        "identity-service",
        "blocked by pack istio: HelmRelease istio-system/istiod is not ready: Flux is at work \
         on it",
    );
    check(
        status("spicedb/spicedb", |release| release["status"] = json!({})),
        "identity-service",
        "blocked by pack spicedb: HelmRelease spicedb/spicedb is not ready: Flux is at work on \
         it",
    );
    check(
        status("spicedb/spicedb", |release| {
            release["status"]["conditions"][0]["status"] = json!("False");
            release["status"]["conditions"][0]["reason"] = json!("InstallFailed");
        }),
        "identity-service",
        "blocked by pack spicedb: HelmRelease spicedb/spicedb is not ready: InstallFailed: \
         installed",
    );
    check(
        status("spicedb/spicedb", |release| {
            release["status"]["conditions"][0]["status"] = json!("False");
            let working = json!({"type": "Reconciling", "status": "True",
                "reason": "ProgressingWithRetry", "observedGeneration": 1});
            release["status"]["conditions"]
                .as_array_mut()
                .unwrap()
                .push(working);
        }),
        "identity-service",
        "blocked by pack spicedb: HelmRelease spicedb/spicedb is not ready: \
         ProgressingWithRetry; last error: InstallSucceeded: installed",
    );
    check(
        status("spicedb/spicedb", |release| {
            release["spec"]["suspend"] = json!(true);
        }),
        "identity-service",
        "blocked by pack spicedb: HelmRelease spicedb/spicedb is not ready: it is suspended; \
         resume it",
    );
    // Conditions of the generation before are history.
    check(
        status("spicedb/spicedb", |release| {
            release["metadata"]["generation"] = json!(2);
            release["status"]["observedGeneration"] = json!(2);
        }),
        "identity-service",
        "blocked by pack spicedb: HelmRelease spicedb/spicedb is not ready: Flux has not come \
         to it yet",
    );
    check(
        |world| world.say("spicedb", &json!({"version": "1.2.3"})),
        "identity-service",
        "blocked by pack spicedb: HelmRelease spicedb/spicedb is not yet as it is wanted",
    );
    check(
        |world| {
            world.say("spicedb", &json!({"enabled": false}));
            drop(world.objects.remove("Pack istio"));
        },
        "identity-service",
        "blocked by pack istio: there is none; add it, or change dependsOn; pack spicedb: it is \
         not enabled",
    );
    check(
        |world| {
            let controller = "Deployment flux-system/helm-controller";
            world.objects.get_mut(controller).unwrap()["status"]["availableReplicas"] = json!(0);
            world.say("spicedb", &json!({"dependsOn": ["flux"], "version": "2"}));
        },
        "spicedb",
        "blocked by pack flux: Deployment flux-system/helm-controller is not available yet",
    );
    check(
        |world| {
            drop(
                world
                    .objects
                    .remove("Deployment flux-system/source-controller"),
            );
            world.say("spicedb", &json!({"dependsOn": ["flux"], "version": "2"}));
        },
        "spicedb",
        "blocked by pack flux: Deployment flux-system/source-controller does not exist yet",
    );
}

#[test]
fn what_was_let_through_is_kept_up() {
    let mut world = world();
    world.install_all();
    let before = world.run("sgp-apps");
    drop(world.objects.remove("HelmRelease spicedb/spicedb"));
    world.release("identity-service/identity-service")["status"] = json!({});
    assert_eq!(world.run("sgp-apps"), before);
    assert_eq!(world.run("identity-service").objects_json().len(), 4);
}

#[test]
fn a_wave_waits_for_lower_ones() {
    let mut world = world();
    world.say("spicedb", &json!({"wave": 2}));
    world.say("temporalf", &json!({"wave": 1}));
    let rounds = world.install_all();
    // Those that say none have the usual one.
    assert_eq!(
        rounds[1..],
        [
            ["istio"],
            ["temporalf"],
            ["spicedb"],
            ["identity-service"],
            ["sgp-apps"]
        ]
    );
    // Who needs one of these comes after it in any case, and is not waited for.
    world.say("istio", &json!({"wave": 5}));
    world.objects.retain(|name, _| !name.starts_with("Helm"));
    assert_eq!(
        world.install_all()[1..],
        [
            ["temporalf"],
            ["spicedb"],
            ["istio"],
            ["identity-service"],
            ["sgp-apps"]
        ]
    );
    world.say(
        "istio",
        &json!({"wave": 5, "dependsOn": ["identity-service"]}),
    );
    assert!(matches!(world.failure("istio"), Failure::Terminal(_)));
}

#[test]
fn who_waits_by_a_wave_waits_for_no_name_that_is_no_packs() {
    let mut world = world();
    world.say("temporalf", &json!({"wave": 5}));
    world.say("sgp-app", &json!({}));
    world.install_all();
    world.say("temporalf", &json!({"wave": 5, "version": "2"}));
    assert!(world.try_run("temporalf", &json!({})).is_ok());
}

#[test]
fn depends_on_takes_the_place_of_what_a_pack_needs() {
    let mut world = world();
    world.say("sgp-apps", &json!({"dependsOn": ["spicedb"]}));
    let rounds = world.install_all();
    assert_eq!(rounds[2], ["identity-service", "sgp-apps"]);
    let release = world.release("sgp/sgp");
    assert_eq!(
        release["spec"]["dependsOn"],
        json!([{"name": "spicedb", "namespace": "spicedb"}])
    );
}

#[test]
fn a_circle_is_told_by_each_pack_that_leads_into_it() {
    let mut world = world();
    world.say("istio", &json!({"dependsOn": ["spicedb"]}));
    world.say("spicedb", &json!({"dependsOn": ["temporalf"]}));
    world.say("temporalf", &json!({"dependsOn": ["istio"]}));
    let remedy = "; take one of these out of dependsOn";
    for (pack, circle) in [
        ("istio", "istio -> spicedb -> temporalf -> istio"),
        ("temporalf", "temporalf -> istio -> spicedb -> temporalf"),
        ("sgp-apps", "istio -> spicedb -> temporalf -> istio"),
    ] {
        assert_eq!(
            world.failure(pack),
            Failure::terminal(format!(
                "packs wait for one another in a circle: {circle}{remedy}"
            ))
        );
    }
    assert!(world.try_run("sgp-helm-repository", &json!({})).is_ok());
    world.say("flux", &json!({"wave": 3, "dependsOn": ["flux"]}));
    assert_eq!(
        world.failure("sgp-helm-repository"),
        Failure::terminal(format!(
            "packs wait for one another in a circle: flux -> flux{remedy}"
        ))
    );
}

#[test]
fn a_suspended_pack_stays_as_it_is() {
    let mut world = world();
    world.say("sgp-helm-repository", &json!({"suspend": true}));
    assert_eq!(
        world.failure("sgp-helm-repository"),
        Failure::not_ready("suspended by spec.suspend: what was applied stays as it is")
    );
}

#[test]
fn values_and_versions_reach_their_release() {
    let mut world = world();
    world.install_all();
    let said = json!({
        "version": "~1.2",
        "values": {"istiod": {"pilot": {"replicas": 2}, "global": {"sgp": {"workspaceId": null}}}},
    });
    world.say("istio", &said);
    let objects = super::world::objects(&world.run("istio"));
    let values = &objects["HelmRelease istio-system/istiod"]["spec"]["values"];
    assert_eq!(values["pilot"], json!({"replicas": 2}));
    // Helm takes away what has null, from the chart's own values, too.
    assert_eq!(
        values["global"]["sgp"].get("workspaceId"),
        Some(&Value::Null)
    );
    assert_eq!(
        values["global"]["sgp"]["baseDomain"],
        "basedomain.example.com"
    );
    let chart = &objects["OCIRepository flux-system/istio-gateway"]["spec"];
    assert_eq!(chart["ref"], json!({"semver": "~1.2"}));

    world.say("istio", &json!({"values": {"istio": {}, "istiod": 1}}));
    world.say("sgp-helm-repository", &json!({"values": {"a": {}}}));
    for (pack, text) in [
        (
            "istio",
            "/spec/values/istio: pack istio has no such release; there are istio-base, istiod, \
             istio-gateway; /spec/values/istiod: expected an object with values of the release",
        ),
        (
            "sgp-helm-repository",
            "/spec/values/a: pack sgp-helm-repository has no releases; remove it",
        ),
    ] {
        assert!(world.failure(pack).to_string().ends_with(text), "{pack}");
    }
}

#[test]
fn a_namespace_that_is_there_is_used_as_it_is() {
    let mut world = world();
    world.install_all();
    let count = |world: &World| {
        let objects = world.run("istio").objects_json();
        objects
            .iter()
            .filter(|one| one["kind"] == "Namespace")
            .count()
    };
    let namespace = |labels: Value| {
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "istio-system", "labels": labels}})
    };
    world
        .objects
        .retain(|name, _| !name.starts_with("Namespace"));
    assert_eq!(count(&world), 2);
    world.put(namespace(json!({"reeve.dev/plugin": "packs"})));
    assert_eq!(count(&world), 2);
    world.put(namespace(json!({"team": "a"})));
    assert_eq!(count(&world), 1);
}

#[test]
fn a_name_that_is_no_packs_is_told() {
    let mut world = world();
    world.say("sgp-app", &json!({}));
    assert_eq!(
        world.failure("sgp-app").to_string(),
        "there is no such pack; there are flux, sgp-helm-repository, istio, spicedb, \
         identity-service, temporalf, sgp-apps"
    );
}
