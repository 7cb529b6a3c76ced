//! Two deployments that say the same id.

use reeve_sdk::prelude::*;

use super::world::World;
use super::{changed, config, spec};

fn claiming(id: &str, digit: char) -> Value {
    changed(spec("m1", digit), &json!({"deploymentId": id}))
}

fn path_of(world: &World, name: &str) -> String {
    let ingress = world.get("Ingress", name).unwrap();
    ingress["spec"]["rules"][0]["http"]["paths"][0]["path"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn who_has_an_id_keeps_it() {
    let mut world = World::new(config());
    world.wants("churn", claiming("x", '1'));
    world.completes("churn", 'a');
    assert_eq!(world.told("churn").0, "Ready");
    let path = path_of(&world, "churn");
    assert!(path.contains('x'), "{path}");

    world.wants("other", claiming("x", '2'));
    assert_eq!(world.told("other").0, "Errored");
    let message = world.status("other")["message"]
        .as_str()
        .unwrap()
        .to_owned();
    let expected = "spec.deploymentId: `x` is the id of ModelDeployment models/churn already";
    assert!(message.contains(expected), "{message}");
    assert_eq!(world.told("churn").0, "Ready");
    assert_eq!(world.get("Ingress", "other"), None);

    // One that serves under another id goes on there.
    world.wants("other", claiming("y", '2'));
    world.completes("other", 'b');
    let before = path_of(&world, "other");
    world.wants("other", claiming("x", '2'));
    assert_eq!(path_of(&world, "other"), before);
    assert_eq!(world.told("other").1, "warning");
    assert_eq!(path_of(&world, "churn"), path);

    // It is free when the first goes.
    world.ends("churn");
    world.rolls_out("other");
    assert_eq!(
        (world.told("other").0, world.told("other").1),
        ("Ready", "passing")
    );
    assert_eq!(path_of(&world, "other"), path);
}

#[test]
fn what_serves_stays_where_it_was_while_its_spec_makes_no_sense() {
    let nonsense = json!({"model": {"format": "onnx"}});
    let mut world = World::new(config());
    world.wants("first", claiming("a", '1'));
    world.completes("first", 'a');
    world.wants("second", claiming("x", '2'));
    world.completes("second", 'b');
    let paths = |world: &World| ["first", "second"].map(|name| path_of(world, name));
    let templates = |world: &World| {
        ["first", "second"].map(|name| {
            let deployment = world.get("Deployment", name).unwrap();
            deployment["spec"]["template"].clone()
        })
    };
    let (before, served) = (paths(&world), templates(&world));
    for (spec, phase) in [
        // The id of another.
        (changed(claiming("x", '1'), &nonsense), "Ready"),
        (claiming("x", '1'), "Ready"),
        // None that can be part of a path.
        (claiming("a.b", '1'), "Ready"),
        (changed(claiming("c", '1'), &nonsense), "Ready"),
    ] {
        world.wants("first", spec);
        assert_eq!(world.told("first"), (phase, "warning", "Invalid"));
        assert_eq!(world.told("second"), ("Ready", "passing", "Serving"));
        assert_eq!(
            (paths(&world), templates(&world)),
            (before.clone(), served.clone())
        );
    }
    // One that was refused claims nothing when the configuration says less, either.
    world.wants("first", claiming("x", '1'));
    world.config["datarobot"]["apiSecretName"] = json!("");
    world.settle();
    assert_eq!((paths(&world), templates(&world)), (before.clone(), served));
    world.config["datarobot"]["apiSecretName"] = json!("mlops-api-key");
    world.wants("first", claiming("c", '1'));
    world.rolls_out("first");
    assert_eq!(world.told("first"), ("Ready", "passing", "Serving"));
    assert_ne!(paths(&world), before);
}

/// A proxy that takes paths for expressions makes no difference.
#[test]
fn capitals_make_no_other_id() {
    let mut world = World::new(config());
    world.wants("churn", claiming("Xy", '1'));
    world.completes("churn", 'a');
    assert!(path_of(&world, "churn").contains("/Xy("));
    world.wants("other", claiming("xY", '2'));
    assert_eq!(world.told("other").2, "Invalid");
    assert_eq!(world.told("churn"), ("Ready", "passing", "Serving"));
    // Its own, in other letters, and back as it was when that makes no sense.
    world.wants("churn", claiming("XY", '1'));
    world.rolls_out("churn");
    assert!(path_of(&world, "churn").contains("/XY("));
    world.wants("churn", claiming("XY!", '1'));
    assert!(path_of(&world, "churn").contains("/XY("));
}

#[test]
fn of_two_at_once_the_older_one_has_it() {
    let mut world = World::new(config());
    world.wants("a", claiming("x", '1'));
    world.wants("b", claiming("y", '2'));
    // As if neither had seen the other.
    for (name, created) in [("a", "2026-01-02T00:00:00Z"), ("b", "2026-01-01T00:00:00Z")] {
        let record = world.edit("ConfigMap", &format!("{name}-builds"));
        record["metadata"]["labels"]["models.reeve.dev/deployment-id"] = json!("x");
        record["metadata"]["creationTimestamp"] = json!(created);
    }
    world.wants("b", claiming("x", '2'));
    assert_eq!(world.told("a").0, "Errored");
    assert_ne!(world.told("b").0, "Errored");
}
