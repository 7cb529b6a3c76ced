//! What leads to the platform from outside.

use reeve_sdk::prelude::*;

use super::world::{World, example, objects};
use crate::cloud::Cloud;

fn run(world: &World, pack: &str, binding: bool) -> Outcome {
    let config = json!({"role": "FrontDoor", "targetGroupBinding": binding});
    world.try_run(pack, &config).unwrap()
}

#[test]
fn it_comes_after_the_releases_of_its_pack() {
    let world = World::new(&example(Cloud::Gcp, false)).with_flux();
    let config = json!({"role": "FrontDoor"});
    assert_eq!(
        world.try_run("istio", &config).unwrap_err(),
        Failure::not_ready(
            "its releases come first: HelmRelease istio-system/istio-base does not exist yet"
        )
    );
}

#[test]
fn the_target_group_is_bound_on_aws_where_it_can_be() {
    for (cloud, binding, bound, told) in [
        (Cloud::Aws, true, true, 0),
        (Cloud::Aws, false, false, 1),
        (Cloud::Gcp, true, false, 0),
        (Cloud::Azure, false, false, 0),
    ] {
        let mut world = World::new(&example(cloud, false)).with_flux();
        world.install_all();
        let outcome = run(&world, "istio", binding);
        let found = objects(&outcome);
        let name = "TargetGroupBinding istio-ingress/front-door";
        assert_eq!(found.contains_key(name), bound);
        assert_eq!(outcome.conditions().len(), told);
        let gateway = &found["Gateway istio-ingress/front-door"]["spec"]["servers"];
        assert_eq!(gateway[0]["hosts"], json!(["ws.example.com"]));
        assert_eq!(gateway[0]["tls"]["credentialName"], "front-door-tls");
    }
}

#[test]
fn what_the_configuration_lacks_is_told_here_too() {
    let mut world = World::new(&example(Cloud::Aws, false)).with_flux();
    world.install_all();
    let mut configuration = example(Cloud::Aws, false);
    configuration["aws"]
        .as_object_mut()
        .unwrap()
        .remove("targetGroupArn");
    world.configure(&configuration.to_string());
    let config = json!({"role": "FrontDoor"});
    let failure = world.try_run("istio", &config).unwrap_err().to_string();
    assert!(
        failure.ends_with(": /aws/targetGroupArn: pack istio needs it; set it"),
        "{failure}"
    );
}
