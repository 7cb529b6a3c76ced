//! What a supervisor is told in the course of a life.

use std::time::{Duration, UNIX_EPOCH};

use reeve_sdk::prelude::*;

use super::world::World;
use super::{changed, config, digest, find, run, spec};

const URL: &str = "https://app.datarobot.com/api/v2/remoteEvents/";

fn reporting() -> Value {
    changed(config(), &json!({"supervisor": {"report": {"url": URL}}}))
}

/// What was told since there were so many reports, in the words of the configuration.
fn told(world: &World, since: usize) -> Vec<&str> {
    let reports = world.reports[since..].iter();
    reports
        .map(|one| one["happened"].as_str().unwrap())
        .collect()
}

#[test]
fn each_thing_that_happens_is_told_once() {
    let mut world = World::new(reporting());
    world.wants("churn", spec("m1", '1'));
    let job = world.active_job();
    world.waits(&job, "ImagePullBackOff");
    world.completes("churn", 'a');
    assert_eq!(told(&world, 0), ["launchStarted", "launchSucceeded"]);
    let last = world.reports.last().unwrap();
    assert_eq!(
        last["event"],
        "model_deployments.deployment_launch_succeeded"
    );
    assert_eq!(
        (&last["modelId"], &last["currentModelId"]),
        (&json!("m1"), &json!("m1"))
    );
    assert_eq!(last["environmentId"], "env-1");

    // Servers that start anew, and a URL that has changed, are no news.
    world.wants(
        "churn",
        changed(spec("m1", '1'), &json!({"relaunch": "now"})),
    );
    world.rolls_out("churn");
    world.config["ingress"]["outfacingURLPrefix"] = json!("http://elsewhere.com/");
    world.settle();
    assert_eq!(told(&world, 2), [""; 0]);

    world.loses_a_server("churn");
    world.rolls_out("churn");
    assert_eq!(told(&world, 2), ["healthDegraded", "healthRestored"]);

    world.wants("churn", spec("m2", '2'));
    let job = world.active_job();
    world.fails(&job, "build", 1, "no space");
    assert_eq!(told(&world, 4), ["replacementStarted", "replacementFailed"]);
    world.wants(
        "churn",
        changed(spec("m2", '2'), &json!({"retry": "again"})),
    );
    world.completes("churn", 'b');
    assert_eq!(
        told(&world, 6),
        ["replacementStarted", "replacementSucceeded"]
    );
    assert_eq!(world.reports[7]["currentModelId"], "m2");

    world.wants("churn", changed(spec("m2", '2'), &json!({"stopped": true})));
    for set in world.names("ReplicaSet") {
        world.delete("ReplicaSet", &set);
    }
    world.settle();
    assert_eq!(told(&world, 8), ["shutdownStarted", "shutdownSucceeded"]);
    let before = world.reports.len();
    world.wants("churn", spec("m2", '2'));
    world.rolls_out("churn");
    assert_eq!(told(&world, before), ["launchStarted", "launchSucceeded"]);
}

#[test]
fn what_is_not_told_yet_stays_the_same_as_time_goes_by() {
    let config = reporting();
    let at = |seconds: u64, cx: Context| {
        let now = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let cx = cx
            .at(now)
            .with_object(super::secret("mlops-api-key", "Opaque"));
        run("churn", &spec("m1", '1'), &config, cx).unwrap()
    };
    let first = at(1_790_000_000, Context::test());
    let record = first.objects_json().into_iter();
    let record = record
        .clone()
        .find(|one| one["kind"] == "ConfigMap")
        .unwrap();
    let later = at(1_790_000_500, Context::test().with_object(record));
    assert_eq!(first.actions(), later.actions());
    let report: Json = Actuation::new(&first.actions()[0], Verb::Apply)
        .input()
        .unwrap();
    assert_eq!(report["since"], "2026-09-21T14:13:20Z");
}

#[test]
fn another_supervisor_is_told_where_things_are() {
    let mut world = World::new(reporting());
    world.wants("churn", spec("m1", '1'));
    world.completes("churn", 'a');
    world.config["supervisor"]["report"]["url"] = json!("https://other.example.com/events/");
    world.settle();
    assert_eq!(told(&world, 2), ["launchSucceeded"]);
}

#[test]
fn nobody_is_told_of_what_was_made_by_hand_or_has_the_id_of_another() {
    let manifest = super::describe(&reporting()).unwrap();
    for metadata in [
        json!({}),
        json!({"labels": {"models.reeve.dev/prediction-environment": "env-1"}}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "PredictionEnvironment", "name": "x", "uid": "u", "controller": true}]}),
    ] {
        let mut primary = json!({
            "metadata": {"name": "churn", "namespace": "models", "uid": "churn"},
            "spec": spec("m1", '1'),
        });
        super::merge(&mut primary["metadata"], &metadata);
        let outcome = <crate::ReevePlugin as reeve_sdk::Plugin>::reconcile(
            primary.to_string().as_bytes(),
            reporting().to_string().as_bytes(),
            &super::operated().declaring(manifest.clone()),
        );
        assert_eq!(outcome.unwrap().actions(), [], "{metadata}");
    }
    let mut world = World::new(reporting());
    world.wants("churn", spec("m1", '1'));
    let before = world.reports.len();
    let taken = changed(spec("m2", '2'), &json!({"deploymentId": "64f0"}));
    world.specs_as_they_are("fraud", taken);
    assert_eq!(told(&world, before), [""; 0]);
    assert_eq!(world.told("fraud").0, "Errored");
}

#[test]
fn what_was_told_counts_although_no_record_says_so() {
    let mut world = World::new(reporting());
    world.wants("churn", spec("m1", '1'));
    let told = world.reports.last().unwrap();
    let later = UNIX_EPOCH + Duration::from_secs(2_000_000_000);
    let cx = world.shown_without("churn-builds").at(later);
    let cx = cx.with_fact("report", told);
    let outcome = run("churn", &spec("m1", '1'), &reporting(), cx).unwrap();
    let objects = outcome.objects_json();
    let record = find(&objects, "ConfigMap", "churn-builds").unwrap();
    assert_eq!(record["data"]["report"], told.to_string());
    let [action] = outcome.actions() else {
        panic!("{outcome:?}");
    };
    let again: Json = Actuation::new(action, Verb::Apply).input().unwrap();
    assert_eq!(again.0, *told);
}

#[test]
fn a_build_that_another_needed_longer_is_no_news_of_who_was_stopped() {
    let mut world = World::new(reporting());
    let model = |id: &str, more: Value| {
        let mut spec = changed(spec("m1", '1'), &more);
        spec["deploymentId"] = json!(id);
        spec
    };
    world.specs_as_they_are("first", model("f1", json!({})));
    world.specs_as_they_are("second", model("s2", json!({})));
    world.specs_as_they_are("first", model("f1", json!({"stopped": true})));
    let of_first = |world: &World| -> Vec<String> {
        let reports = world.reports.iter();
        let of_first = reports.filter(|report| report.to_string().contains("\"f1\""));
        let happened = of_first.map(|report| report["happened"].as_str().unwrap().to_owned());
        happened.collect::<Vec<String>>()
    };
    assert_eq!(of_first(&world), ["launchStarted", "shutdownSucceeded"]);
    let jobs = world.names("Job");
    assert_eq!(jobs.len(), 1, "the other needs it");
    world.ends("second");
    assert_eq!(world.names("Job"), [""; 0]);
    assert_eq!(of_first(&world), ["launchStarted", "shutdownSucceeded"]);
}

/// Whatever servers answer meanwhile.
#[test]
fn servers_that_come_and_go_are_told_once() {
    let scaled = |id: &str, digit| changed(spec(id, digit), &json!({"replicas": 2}));
    let mut world = World::new(reporting());
    world.wants("churn", scaled("m1", '1'));
    let job = world.active_job();
    world.succeeds(&job, &digest('a'));
    world.is_rolling("churn", 1, 0);
    assert_eq!(world.status("churn")["currentModelId"], "m1");
    world.rolls_out_with("churn", 2);
    assert_eq!(told(&world, 0), ["launchStarted", "launchSucceeded"]);
    world.has_servers("churn", 2, 1);
    world.has_servers("churn", 2, 0);
    assert_eq!(told(&world, 2), ["healthDegraded"]);
    world.rolls_out_with("churn", 2);
    assert_eq!(told(&world, 3), ["healthRestored"]);
    world.wants("churn", scaled("m2", '2'));
    let job = world.active_job();
    world.succeeds(&job, &digest('b'));
    world.is_rolling("churn", 1, 1);
    assert_eq!(world.told("churn").0, "Replacing");
    assert_eq!(told(&world, 4), ["replacementStarted"]);
    world.rolls_out_with("churn", 2);
    assert_eq!(told(&world, 5), ["replacementSucceeded"]);
    world.wants(
        "churn",
        changed(scaled("m2", '2'), &json!({"stopped": true})),
    );
    for set in world.names("ReplicaSet") {
        // No server answers any more, and then there is none.
        world.edit("ReplicaSet", &set)["status"] = json!({"availableReplicas": 0});
    }
    world.settle();
    assert_eq!(told(&world, 6), ["shutdownStarted"]);
    for set in world.names("ReplicaSet") {
        world.delete("ReplicaSet", &set);
    }
    world.settle();
    assert_eq!(told(&world, 7), ["shutdownSucceeded"]);
}

#[test]
fn what_is_not_told_has_happened_all_the_same() {
    let silent =
        json!({"supervisor": {"report": {"events": {"launchStarted": "", "launchSucceeded": ""}}}});
    let mut world = World::new(changed(reporting(), &silent));
    let stopped = changed(spec("m1", '1'), &json!({"stopped": true}));
    let stop = |world: &mut World| {
        world.wants("churn", stopped.clone());
        for set in world.names("ReplicaSet") {
            world.delete("ReplicaSet", &set);
        }
        world.settle();
    };
    world.wants("churn", spec("m1", '1'));
    world.completes("churn", 'a');
    assert_eq!(told(&world, 0), [""; 0]);
    stop(&mut world);
    assert_eq!(told(&world, 0), ["shutdownStarted", "shutdownSucceeded"]);
    world.wants("churn", spec("m1", '1'));
    world.rolls_out("churn");
    assert_eq!(told(&world, 2), [""; 0]);
    stop(&mut world);
    assert_eq!(told(&world, 2), ["shutdownStarted", "shutdownSucceeded"]);
    // Health that is not told to be restored may be lost again.
    let silent = json!({"supervisor": {"report": {"events": {"healthRestored": ""}}}});
    let mut world = World::new(changed(reporting(), &silent));
    world.wants("churn", spec("m1", '1'));
    world.completes("churn", 'a');
    for _ in 0..2 {
        world.loses_a_server("churn");
        world.rolls_out("churn");
    }
    assert_eq!(told(&world, 2), ["healthDegraded"; 2]);
}
