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
