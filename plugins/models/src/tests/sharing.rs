//! Deployments of one model, which share its build and its image.

use reeve_sdk::prelude::*;

use super::world::World;
use super::{changed, config, digest, spec};

fn image_of(world: &World, name: &str) -> Option<String> {
    let deployment = world.get("Deployment", name)?;
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    image.as_str().map(str::to_owned)
}

fn by_digest(digit: char) -> Option<String> {
    Some(format!(
        "r.example.com/mlops/frozen-models@{}",
        digest(digit)
    ))
}

/// Two that want one model, whose build is under way.
fn sharing() -> World {
    let mut world = World::new(config());
    for name in ["churn", "copy"] {
        world.wants(name, spec("m1", '1'));
    }
    world
}

fn owner(world: &World, job: &str) -> String {
    let job = world.get("Job", job).unwrap();
    let labels = &job["metadata"]["labels"];
    let owner = labels["models.reeve.dev/deployment"].as_str();
    owner.unwrap().to_owned()
}

#[test]
fn who_shares_a_build_that_is_lost_twice_makes_it_or_says_so() {
    for is_evicted in [false, true] {
        let lose = |world: &mut World| {
            let job = world.active_job();
            match is_evicted {
                true => world.is_evicted(&job),
                false => world.loses_its_pod(&job),
            }
        };
        let mut world = sharing();
        lose(&mut world);
        lose(&mut world);
        for name in ["churn", "copy"] {
            assert_eq!(world.told(name).0, "Errored", "{name}");
        }

        // One that comes later tries once itself, and another time.
        let mut world = World::new(config());
        world.wants("churn", spec("m1", '1'));
        lose(&mut world);
        lose(&mut world);
        assert_eq!(world.told("churn").0, "Errored");
        world.wants("copy", spec("m1", '1'));
        let job = world.active_job();
        assert_eq!(owner(&world, &job), "copy");
        assert_eq!(world.told("copy").0, "Building");
        world.completes("copy", 'a');
        world.rolls_out("churn");
        for name in ["churn", "copy"] {
            assert_eq!(image_of(&world, name), by_digest('a'), "{name}");
            assert_eq!(world.told(name).0, "Ready", "{name}");
        }
    }
}

#[test]
fn a_build_whose_maker_has_left_it_is_made_anew_when_its_pod_is_lost() {
    let mut world = sharing();
    let job = world.active_job();
    world.wants("churn", spec("m2", '2'));
    world.loses_its_pod(&job);
    assert_eq!(owner(&world, &job), "copy");
    assert_eq!(world.told("copy"), ("Building", "unknown", "Building"));
    world.succeeds(&job, &digest('a'));
    assert_eq!(image_of(&world, "copy"), by_digest('a'));
}

/// Until then it had to build it, for the Job goes an hour after its digest was recorded.
#[test]
fn an_image_that_another_deployment_has_is_not_built_again() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    world.completes("churn", 'a');
    for job in world.names("Job") {
        world.delete("Job", &job);
    }
    world.settle();
    // Whether it serves there, is stopped, or is what a ReplicaSet can go back to.
    world.wants("copy", spec("m1", '1'));
    assert_eq!(image_of(&world, "copy"), by_digest('a'));
    world.ends("copy");
    world.wants("churn", changed(spec("m1", '1'), &json!({"stopped": true})));
    for set in world.names("ReplicaSet") {
        world.delete("ReplicaSet", &set);
    }
    world.wants("copy", spec("m1", '1'));
    assert_eq!(image_of(&world, "copy"), by_digest('a'));
    world.ends("copy");
    world.wants("churn", spec("m1", '1'));
    world.rolls_out("churn");
    world.wants("churn", spec("m2", '2'));
    world.completes("churn", 'b');
    world.wants("copy", spec("m1", '1'));
    assert_eq!(image_of(&world, "copy"), by_digest('a'));
    assert!(
        world
            .names("Job")
            .iter()
            .all(|job| owner(&world, job) == "churn")
    );
    // What nothing uses any more may have been deleted.
    world.ends("copy");
    for digit in ['3', '4', '5'] {
        world.wants("churn", spec("m3", digit));
        world.completes("churn", 'c');
    }
    world.wants("copy", spec("m1", '1'));
    assert_eq!(owner(&world, &world.active_job()), "copy");
}
