//! Packs from the desired state.

use reeve_sdk::Plugin;
use reeve_sdk::prelude::*;

use super::world::{World, example};
use crate::cloud::Cloud;
use crate::{ReevePlugin, applyset, catalog};

const STATE: &str = r#"{"version": "0.1", "packs": [
    {"name": "flux"}, {"name": "sgp-helm-repository", "version": "2", "wave": 7}]}"#;

fn world(configuration: &Value, stored: Option<&str>) -> World {
    let mut world = World::new(configuration);
    world.objects.retain(|name, _| !name.starts_with("Pack "));
    if let Some(text) = stored {
        world.store("Secret", "desired-state", "desired-state.json", text);
    }
    world
}

fn try_run(world: &World, spec: &Value) -> Result<Outcome, Failure> {
    let config = json!({"role": "DesiredState"}).to_string();
    let manifest = ReevePlugin::describe(config.as_bytes()).unwrap();
    let cx = world
        .objects
        .values()
        .fold(Context::test().declaring(manifest), |cx, object| {
            cx.with_object(object)
        });
    let primary = json!({"metadata": {"name": "sgp"}, "spec": spec}).to_string();
    ReevePlugin::reconcile(primary.as_bytes(), config.as_bytes(), &cx)
}

fn pack(name: &str, origin: &str, wave: &str, spec: &Value) -> Value {
    let mut pack = json!({
        "apiVersion": "packs.reeve.dev/v1alpha1",
        "kind": "Pack",
        "metadata": {
            "name": name,
            "annotations": {"packs.reeve.dev/origin": origin, "reeve.dev/wave": wave},
        },
        "spec": spec,
    });
    applyset::mark_parent(&mut pack, catalog::find(name).unwrap());
    pack
}

#[test]
fn each_pack_of_the_document_becomes_one() {
    let world = world(&example(Cloud::Aws, true), Some(STATE));
    let outcome = try_run(&world, &json!({})).unwrap();
    assert_eq!(
        outcome.objects_json(),
        [
            pack("flux", "stored", "-100", &json!({})),
            pack(
                "sgp-helm-repository",
                "stored",
                "7",
                &json!({"version": "2", "wave": 7})
            ),
        ]
    );
    assert!(outcome.conditions().is_empty());
}

#[test]
fn the_initial_state_holds_as_long_as_none_was_stored() {
    for state in [
        json!({"version": "0.1", "packs": [{"name": "flux"}]}),
        json!(r#"{"version": "0.1", "packs": [{"name": "flux"}]}"#),
    ] {
        let mut configuration = example(Cloud::Gcp, true);
        configuration["initialDesiredState"] = state;
        let mut world = world(&configuration, None);
        let first = pack("flux", "initial", "-100", &json!({}));
        let outcome = try_run(&world, &json!({})).unwrap();
        assert_eq!(outcome.objects_json(), std::slice::from_ref(&first));
        world.put(first);
        assert_eq!(try_run(&world, &json!({})).unwrap(), outcome);

        world.store("Secret", "desired-state", "desired-state.json", STATE);
        for pack in try_run(&world, &json!({})).unwrap().objects_json() {
            world.put(pack);
        }
        world
            .objects
            .remove("Secret sgp-system-manager/desired-state");
        assert_eq!(
            try_run(&world, &json!({})).unwrap_err(),
            Failure::not_ready(
                "desired-state.json (Secret sgp-system-manager/desired-state, entry \
                 desired-state.json) is gone, and the packs stay as they are; store it again"
            )
        );
    }
}

#[test]
fn the_initial_state_begins_and_changes_nothing_of_what_it_has_begun() {
    let mut configuration = example(Cloud::Gcp, true);
    let mut begin = |packs: Value, there: &[Value]| {
        configuration["initialDesiredState"] = json!({"version": "0.1", "packs": packs});
        let mut world = world(&configuration, None);
        there.iter().for_each(|pack| world.put(pack.clone()));
        try_run(&world, &json!({})).unwrap().objects_json()
    };
    let mut repository = pack(
        "sgp-helm-repository",
        "initial",
        "-90",
        &json!({"version": "2"}),
    );
    let flux = pack("flux", "initial", "-100", &json!({}));
    let both = json!([{"name": "flux"}, {"name": "sgp-helm-repository", "version": "2"}]);
    assert_eq!(begin(both.clone(), &[]), [flux.clone(), repository.clone()]);
    // What was begun halfway goes on.
    let half = std::slice::from_ref(&flux);
    assert_eq!(begin(both, half), [flux.clone(), repository.clone()]);
    // What is taken out stays, and so does what is changed.
    let there = [flux.clone(), repository.clone()];
    assert_eq!(begin(json!([{"name": "flux", "wave": 3}]), &there), there);
    // What somebody deletes goes, and what somebody else has made is nobody's here.
    repository["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mine = pack("istio", "", "-80", &json!({}));
    let there = [flux.clone(), repository, mine];
    assert_eq!(begin(json!([{"name": "flux"}]), &there), [flux]);
}

#[test]
fn packs_are_in_the_order_of_their_needs() {
    let waves = |packs: Value| {
        let state = json!({"version": "0.1", "packs": packs}).to_string();
        let world = world(&example(Cloud::Gcp, true), Some(&state));
        let objects = try_run(&world, &json!({})).unwrap().objects_json();
        let wave = |pack: &Value| pack["metadata"]["annotations"]["reeve.dev/wave"].clone();
        objects.iter().map(wave).collect::<Vec<_>>()
    };
    let base = [
        json!({"name": "flux"}),
        json!({"name": "sgp-helm-repository"}),
    ];
    let with = |more: &[Value]| waves(Value::from([&base[..], more].concat()));
    assert_eq!(
        with(&[
            json!({"name": "spicedb", "dependsOn": ["sgp-helm-repository", "temporalf"]}),
            json!({"name": "temporalf"}),
        ]),
        ["-100", "-90", "-40", "-40"]
    );
    assert_eq!(
        with(&[
            json!({"name": "identity-service"}),
            json!({"name": "istio", "wave": 5}),
            json!({"name": "spicedb", "wave": -95}),
        ]),
        ["-100", "-90", "5", "5", "-90"]
    );
}

#[test]
fn without_any_state_there_is_something_to_do() {
    let world = world(&example(Cloud::Gcp, false), None);
    assert_eq!(
        try_run(&world, &json!({})).unwrap_err(),
        Failure::not_ready(
            "desired-state.json (Secret sgp-system-manager/desired-state, entry \
             desired-state.json) is not there yet, and the configuration has no \
             initialDesiredState; store it"
        )
    );
}

#[test]
fn a_bad_document_changes_nothing_and_an_empty_one_only_where_it_is_meant() {
    let configuration = example(Cloud::Gcp, false);
    let mut world = world(&configuration, Some("{}"));
    assert!(matches!(
        try_run(&world, &json!({})).unwrap_err(),
        Failure::Terminal(text) if text.contains("/version: ") && text.contains("/packs: ")
    ));
    let empty = r#"{"version": "0.1", "packs": []}"#;
    world.store("Secret", "desired-state", "desired-state.json", empty);
    assert!(try_run(&world, &json!({})).is_err());
    let outcome = try_run(&world, &json!({"allowEmpty": true})).unwrap();
    assert!(outcome.objects_json().is_empty());
}

#[test]
fn warnings_about_both_documents_are_told() {
    let mut configuration = example(Cloud::Gcp, true);
    configuration["newer"] = json!(1);
    let state = r#"{"version": "0.1", "newer": 1, "packs": [{"name": "flux"}]}"#;
    let mut world = world(&configuration, Some(state));
    let told = |world: &World| -> Vec<String> {
        let outcome = try_run(world, &json!({})).unwrap();
        let kinds = outcome.conditions().iter();
        kinds.map(|condition| condition.kind.clone()).collect()
    };
    assert_eq!(told(&world), ["DesiredStateClear", "ConfigurationClear"]);
    // What is wrong with the configuration is not the desired state's concern.
    world.configure("{");
    assert_eq!(told(&world), ["DesiredStateClear"]);
}
