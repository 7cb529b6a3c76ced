//! What goes wrong in the life of a deployment, and what becomes of it.

use reeve_sdk::prelude::*;

use super::world::World;
use super::{changed, config, digest, mounted, spec};

const REPOSITORY: &str = "r.example.com/mlops/frozen-models";

fn image_of(world: &World, name: &str) -> String {
    let deployment = world.get("Deployment", name).unwrap();
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    image.as_str().unwrap().to_owned()
}

fn by_digest(digit: char) -> String {
    format!("{REPOSITORY}@{}", digest(digit))
}

fn record(world: &World, key: &str) -> String {
    let record = match key {
        "orphaned" => world.get("ConfigMap", "churn-images"),
        _ => world.get("ConfigMap", "churn-builds"),
    };
    let text = record.map(|record| record["data"][key].as_str().unwrap_or_default());
    text.unwrap_or_default().to_owned()
}

/// A deployment that serves its first model, with an image of `a`.
fn serving() -> World {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    world.completes("churn", 'a');
    assert_eq!(world.told("churn"), ("Ready", "passing", "Serving"));
    world
}

#[test]
fn a_model_is_built_once_and_served_by_digest() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    assert_eq!(world.told("churn"), ("Building", "unknown", "Building"));
    assert!(world.get("Deployment", "churn").is_none());
    let job = world.active_job();
    world.succeeds(&job, &format!("{}\n", digest('a')));
    assert_eq!(world.told("churn"), ("Deploying", "unknown", "Deploying"));
    assert_eq!(image_of(&world, "churn"), by_digest('a'));
    // Only now that the digest is recorded may the Job go.
    let spec = &world.get("Job", &job).unwrap()["spec"];
    assert_eq!(spec["ttlSecondsAfterFinished"], 3600);
    world.rolls_out("churn");
    assert_eq!(world.told("churn"), ("Ready", "passing", "Serving"));
    let status = world.status("churn");
    assert_eq!(status["currentModelId"], "m1");
    assert_eq!(status["state"], "ready");
    assert_eq!(status["statusCode"], 0);
    assert_eq!(status["oldModelInUse"], false);
    assert_eq!(
        status["predictionUrl"],
        "http://your-company.com/deployments/64f0/predictions"
    );
    world.delete("Job", &job);
    world.settle();
    assert!(world.names("Job").is_empty());
    assert_eq!(world.told("churn").0, "Ready");
}

#[test]
fn a_job_does_not_go_by_itself_before_its_digest_is_recorded() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    let job = world.active_job();
    let made = world.get("Job", &job).unwrap();
    assert!(made["spec"].get("ttlSecondsAfterFinished").is_none());
    world.fails(&job, "build", 1, "disk full");
    let failed = world.get("Job", &job).unwrap();
    assert!(failed["spec"].get("ttlSecondsAfterFinished").is_none());
}

#[test]
fn a_failed_build_is_kept_and_told_and_the_old_model_serves() {
    let mut world = serving();
    world.wants("churn", spec("m2", '2'));
    assert_eq!(world.told("churn"), ("Replacing", "passing", "Building"));
    assert_eq!(world.status("churn")["oldModelInUse"], true);
    assert_eq!(world.status("churn")["state"], "replacingModel");
    let job = world.active_job();
    world.fails(
        &job,
        "build",
        1,
        "denied: your authorization token has expired",
    );
    assert_eq!(world.told("churn"), ("Ready", "warning", "BuildFailed"));
    let status = world.status("churn");
    assert_eq!(status["currentModelId"], "m1");
    assert_eq!(status["oldModelInUse"], true);
    assert_eq!(status["statusCode"], 2);
    let message = status["message"].as_str().unwrap();
    assert_eq!(
        message,
        "the earlier model goes on serving: the build failed: BackoffLimitExceeded: over; \
         container build ended with 1 and said: denied: your authorization token has expired. \
         Mend the cause, then set spec.retry to another value"
    );
    assert!(world.events.contains(&format!("BuildFailed: {message}")));
    assert!(world.names("Job").contains(&job));
    assert_eq!(image_of(&world, "churn"), by_digest('a'));
    // Tried again, under another name: the log of the first stays.
    let again = changed(spec("m2", '2'), &json!({"retry": "1"}));
    world.wants("churn", again);
    assert_eq!(world.told("churn"), ("Replacing", "passing", "Building"));
    assert!(world.names("Job").contains(&job));
    assert_ne!(world.active_job(), job);
    world.completes("churn", 'b');
    assert_eq!(world.told("churn"), ("Ready", "passing", "Serving"));
    assert_eq!(world.status("churn")["currentModelId"], "m2");
    assert_eq!(image_of(&world, "churn"), by_digest('b'));
}

#[test]
fn what_is_no_digest_is_a_failure() {
    for said in [
        "",
        "done",
        "sha256:12",
        &format!("{} and more", digest('a')),
    ] {
        let mut world = World::new(config());
        world.wants("churn", spec("m1", '1'));
        let job = world.active_job();
        world.succeeds(&job, said);
        assert_eq!(
            world.told("churn"),
            ("Errored", "failing", "DigestInvalid"),
            "{said}"
        );
        assert!(world.get("Deployment", "churn").is_none());
        assert!(world.names("Job").contains(&job));
    }
}

#[test]
fn another_package_than_the_one_that_is_wanted_is_told_so() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    let job = world.active_job();
    world.fails(&job, "fetch", 65, "whatever");
    assert_eq!(
        world.status("churn")["message"],
        "the build failed: the package has another SHA-256 than spec.model.package.sha256; mend \
         one of them. Mend the cause, then set spec.retry to another value"
    );
}

#[test]
fn a_job_that_goes_before_it_is_read_is_made_once_more() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    let job = world.active_job();
    world.delete("Job", &job);
    world.settle();
    assert_eq!(world.active_job(), job);
    assert_eq!(world.told("churn"), ("Building", "unknown", "Building"));
    world.delete("Job", &job);
    world.settle();
    assert_eq!(world.told("churn"), ("Errored", "failing", "BuildLost"));
    assert!(world.names("Job").is_empty());
    // Another name, another two.
    world.wants("churn", changed(spec("m1", '1'), &json!({"retry": "x"})));
    world.completes("churn", 'a');
    assert_eq!(world.told("churn").0, "Ready");
}

#[test]
fn a_pod_that_goes_before_it_is_read_is_made_once_more() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    let job = world.active_job();
    let first = world.get("Job", &job).unwrap()["metadata"]["uid"].clone();
    world.loses_its_pod(&job);
    assert_eq!(world.active_job(), job);
    assert_ne!(world.get("Job", &job).unwrap()["metadata"]["uid"], first);
    world.loses_its_pod(&job);
    assert_eq!(world.told("churn"), ("Errored", "failing", "BuildLost"));
}

#[test]
fn an_eviction_is_no_failure_of_the_build() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    let job = world.active_job();
    let rules = &world.get("Job", &job).unwrap()["spec"]["podFailurePolicy"]["rules"];
    assert_eq!(rules[0]["action"], "Ignore");
    world.is_evicted(&job);
    // Its pods are gone with it.
    for pod in world.names("Pod") {
        world.delete("Pod", &pod);
    }
    world.settle();
    assert_eq!(world.told("churn"), ("Building", "unknown", "Building"));
    let job = world.active_job();
    world.is_evicted(&job);
    assert_eq!(world.told("churn"), ("Errored", "failing", "BuildEvicted"));
}

#[test]
fn a_pod_that_cannot_start_is_told() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    let job = world.active_job();
    world.waits(&job, "CreateContainerConfigError");
    assert_eq!(world.told("churn"), ("Building", "unknown", "BuildWaiting"));
    assert_eq!(
        world.status("churn")["message"],
        "the build has not started: container build: CreateContainerConfigError: so it is"
    );
}

#[test]
fn the_same_model_with_new_bytes_is_another_image() {
    let mut world = serving();
    let before = world.status("churn")["buildKey"].clone();
    world.wants("churn", spec("m1", '2'));
    assert_ne!(world.status("churn")["buildKey"], before);
    assert_eq!(world.told("churn").0, "Replacing");
    world.completes("churn", 'b');
    assert_eq!(image_of(&world, "churn"), by_digest('b'));
}

#[test]
fn another_model_with_the_same_bytes_is_the_same_image() {
    let mut world = serving();
    world.wants("churn", spec("m2", '1'));
    assert_eq!(image_of(&world, "churn"), by_digest('a'));
    assert!(
        world
            .names("Job")
            .iter()
            .all(|job| { !world.get("Job", job).unwrap()["status"]["conditions"].is_null() })
    );
    world.rolls_out("churn");
    assert_eq!(world.status("churn")["currentModelId"], "m2");
}

#[test]
fn another_prediction_server_rebuilds_only_where_that_is_wanted() {
    let newer = json!({"imageBuilder": {"ppsImage": "r.example.com/pps:7.1"}});
    let mut world = serving();
    world.config = changed(config(), &newer);
    world.settle();
    assert_eq!(world.told("churn"), ("Ready", "passing", "Serving"));
    // A new model gets the new server.
    world.wants("churn", spec("m2", '2'));
    let job = world.active_job();
    let base =
        &world.get("Job", &job).unwrap()["metadata"]["annotations"]["models.reeve.dev/base-image"];
    assert_eq!(base, "r.example.com/pps:7.1");

    let mut world = serving();
    world.config = changed(
        changed(config(), &newer),
        &json!({"imageBuilder": {"rebuildOnPpsImageChange": true}}),
    );
    world.settle();
    assert_eq!(world.told("churn"), ("Replacing", "passing", "Building"));
}

#[test]
fn deployments_of_one_model_share_its_build() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    world.wants(
        "copy",
        changed(spec("m1", '1'), &json!({"deploymentId": "other"})),
    );
    let job = world.active_job();
    for name in ["churn", "copy"] {
        assert_eq!(
            world.told(name),
            ("Building", "unknown", "Building"),
            "{name}"
        );
        assert_eq!(world.status(name)["job"], *job);
    }
    // Who had it made wants another model now; the other one still needs it.
    world.wants("churn", spec("m2", '2'));
    assert_eq!(world.names("Job").len(), 2);
    world.succeeds(&job, &digest('a'));
    assert_eq!(image_of(&world, "copy"), by_digest('a'));
    assert!(world.get("Deployment", "churn").is_none());
}

#[test]
fn a_stop_leaves_a_build_that_another_deployment_needs() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    world.wants("copy", spec("m1", '1'));
    let job = world.active_job();
    world.wants("churn", changed(spec("m1", '1'), &json!({"stopped": true})));
    assert_eq!(world.active_job(), job);
    assert_eq!(world.told("churn"), ("Stopped", "unknown", "Stopped"));
    world.succeeds(&job, &digest('a'));
    assert_eq!(image_of(&world, "copy"), by_digest('a'));
    assert!(world.get("Deployment", "churn").is_none());
}

#[test]
fn a_build_that_nobody_needs_any_more_goes() {
    let mut world = World::new(config());
    for name in ["churn", "copy"] {
        world.wants(name, spec("m1", '1'));
    }
    let job = world.active_job();
    for name in ["churn", "copy"] {
        world.wants(name, changed(spec("m1", '1'), &json!({"stopped": true})));
    }
    assert_eq!(world.get("Job", &job), None);
}

#[test]
fn a_shared_build_that_goes_with_its_deployment_is_made_by_the_other() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    world.wants("copy", spec("m1", '1'));
    let job = world.active_job();
    world.ends("churn");
    assert_eq!(world.active_job(), job);
    let labels = &world.get("Job", &job).unwrap()["metadata"]["labels"];
    assert_eq!(labels["models.reeve.dev/deployment"], "copy");
    assert_eq!(world.told("copy"), ("Building", "unknown", "Building"));
}

#[test]
fn another_model_cancels_the_build_of_the_one_before() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    let stale = world.active_job();
    world.wants("churn", spec("m2", '2'));
    assert_ne!(world.active_job(), stale);
    // Back again: what was cancelled was not lost.
    for digit in ['1', '2', '1', '2', '1'] {
        world.wants("churn", spec("m", digit));
        assert_eq!(world.told("churn"), ("Building", "unknown", "Building"));
    }
    world.completes("churn", 'a');
    assert_eq!(world.told("churn").0, "Ready");
}

#[test]
fn a_stop_ends_the_build_then_the_servers_and_a_start_needs_no_build() {
    let mut world = World::new(config());
    let stopped = |spec: Value| changed(spec, &json!({"stopped": true}));
    world.wants("churn", spec("m1", '1'));
    world.wants("churn", stopped(spec("m1", '1')));
    assert!(world.names("Job").is_empty());
    assert_eq!(world.told("churn"), ("Stopped", "unknown", "Stopped"));
    world.wants("churn", spec("m1", '1'));
    assert_eq!(world.told("churn").2, "Building");
    world.completes("churn", 'a');
    world.wants("churn", stopped(spec("m1", '1')));
    for kind in ["Deployment", "Service", "Ingress"] {
        assert!(world.names(kind).is_empty(), "{kind}");
    }
    // Its ReplicaSets are not gone yet.
    assert_eq!(world.told("churn"), ("Stopping", "unknown", "Stopping"));
    assert_eq!(world.status("churn")["state"], "shuttingDown");
    for set in world.names("ReplicaSet") {
        world.delete("ReplicaSet", &set);
    }
    world.settle();
    assert_eq!(world.told("churn"), ("Stopped", "unknown", "Stopped"));
    assert_eq!(record(&world, "orphaned"), "");
    world.wants("churn", spec("m1", '1'));
    assert_eq!(world.told("churn"), ("Deploying", "unknown", "Deploying"));
    assert_eq!(image_of(&world, "churn"), by_digest('a'));
}

#[test]
fn a_relaunch_starts_the_same_image_anew() {
    let mut world = serving();
    let jobs = world.names("Job");
    world.wants("churn", changed(spec("m1", '1'), &json!({"relaunch": "1"})));
    assert_eq!(image_of(&world, "churn"), by_digest('a'));
    assert_eq!(world.told("churn").0, "Deploying");
    assert_eq!(world.names("Job"), jobs);
    let template = &world.get("Deployment", "churn").unwrap()["spec"]["template"];
    let annotations = &template["metadata"]["annotations"];
    assert_eq!(annotations["models.reeve.dev/relaunch"], "1");
    world.rolls_out("churn");
    assert_eq!(world.told("churn").0, "Ready");
}

#[test]
fn a_rollout_that_fails_is_told_and_the_old_servers_stay() {
    let mut world = serving();
    world.wants("churn", spec("m2", '2'));
    let job = world.active_job();
    world.succeeds(&job, &digest('b'));
    world.is_stuck("churn");
    assert_eq!(world.told("churn"), ("Ready", "warning", "RolloutFailed"));
    assert_eq!(world.status("churn")["currentModelId"], "m1");
    assert_eq!(world.status("churn")["oldModelInUse"], true);
    // Back to the old one, without a build.
    world.wants("churn", spec("m1", '1'));
    assert_eq!(image_of(&world, "churn"), by_digest('a'));
    world.rolls_out("churn");
    assert_eq!(world.told("churn"), ("Ready", "passing", "Serving"));
}

#[test]
fn a_server_that_is_missing_degrades() {
    let mut world = serving();
    world.loses_a_server("churn");
    assert_eq!(
        world.told("churn"),
        ("Degraded", "warning", "ServersMissing")
    );
    assert_eq!(world.status("churn")["state"], "errored");
    world.rolls_out("churn");
    assert_eq!(world.told("churn"), ("Ready", "passing", "Serving"));
}

#[test]
fn servers_that_are_added_have_their_time_and_those_that_go_do_not() {
    let mut world = serving();
    let scaled = |replicas: i64| changed(spec("m1", '1'), &json!({"replicas": replicas}));
    world.wants("churn", scaled(3));
    world.has_servers("churn", 3, 1);
    let starting = ("Deploying", "passing", "Deploying");
    assert_eq!(world.told("churn"), starting);
    assert_eq!(world.status("churn")["state"], "launching");
    world.advance(1499);
    assert_eq!(world.told("churn"), starting);
    let missing = ("Degraded", "warning", "ServersMissing");
    world.advance(1);
    assert_eq!(world.told("churn"), missing);
    // Two have answered at once by now.
    world.wants("churn", scaled(2));
    world.rolls_out_with("churn", 2);
    assert_eq!(world.told("churn"), ("Ready", "passing", "Serving"));
    world.wants("churn", scaled(4));
    world.has_servers("churn", 4, 3);
    assert_eq!(world.told("churn"), starting);
    world.has_servers("churn", 4, 1);
    assert_eq!(world.told("churn"), missing);
    // From none.
    world.wants("churn", scaled(0));
    world.rolls_out_with("churn", 0);
    assert_eq!(world.told("churn"), ("Ready", "unknown", "NoServers"));
    world.wants("churn", scaled(2));
    world.has_servers("churn", 2, 0);
    assert_eq!(world.told("churn"), ("Deploying", "unknown", "Deploying"));
    world.has_servers("churn", 2, 1);
    assert_eq!(world.told("churn"), starting);
}

#[test]
fn what_is_missing_is_named_and_waited_for() {
    let mut world = World::new(config());
    world.delete("Secret", "mlops-api-key");
    world.wants("churn", spec("m1", '1'));
    assert_eq!(
        world.told("churn"),
        ("Errored", "failing", "PrerequisiteMissing")
    );
    assert_eq!(
        world.status("churn")["message"],
        "Secret models/mlops-api-key does not exist; make it as the documentation of models says"
    );
    assert!(world.names("Job").is_empty());
    world.put(super::secret("mlops-api-key", "Opaque"));
    world.settle();
    assert_eq!(world.told("churn").0, "Building");
}

#[test]
fn images_that_nothing_uses_are_listed_and_those_in_use_are_not() {
    let mut world = serving();
    for (index, digit) in [('2', 'b'), ('3', 'c'), ('4', 'd')].into_iter().enumerate() {
        let (package, image) = digit;
        world.wants("churn", spec(&format!("m{}", index + 2), package));
        world.completes("churn", image);
        if index < 2 {
            // A ReplicaSet is there to go back to.
            assert_eq!(record(&world, "orphaned"), "", "{index}");
        }
    }
    let key = |digit: char| {
        let images = record(&world, "images");
        let line = images.lines().find(|line| line.contains(&by_digest(digit)));
        line.map(|line| line.split(' ').next().unwrap().to_owned())
    };
    assert_eq!(key('a'), None);
    for digit in ['b', 'c', 'd'] {
        assert!(key(digit).is_some(), "{digit}");
    }
    let orphaned = record(&world, "orphaned");
    assert_eq!(orphaned, by_digest('a'));
    assert!(
        world
            .events
            .iter()
            .any(|event| { event.starts_with("ImageOrphaned: ") && event.contains(&orphaned) })
    );
    // Wanted once more, it may have been deleted meanwhile: it is built.
    world.wants("churn", spec("m1", '1'));
    world.completes("churn", 'a');
    assert!(!record(&world, "orphaned").contains(&digest('a')));
}

#[test]
fn an_image_that_another_deployment_serves_is_no_orphan() {
    let mut world = serving();
    // What churn has had built is there for both.
    world.wants("copy", spec("m1", '1'));
    world.rolls_out("copy");
    assert_eq!(world.told("copy"), ("Ready", "passing", "Serving"));
    for (package, image) in [('2', 'b'), ('3', 'c'), ('4', 'd'), ('5', 'e')] {
        world.wants("churn", spec("m2", package));
        world.completes("churn", image);
    }
    let orphaned = record(&world, "orphaned");
    assert!(orphaned.contains(&digest('b')), "{orphaned}");
    assert!(!orphaned.contains(&digest('a')), "{orphaned}");
    world.ends("copy");
    for set in world.names("ReplicaSet") {
        if set.starts_with("copy") {
            world.delete("ReplicaSet", &set);
        }
    }
    world.settle();
    assert!(record(&world, "orphaned").contains(&digest('a')));
}

#[test]
fn three_builds_that_are_over_are_kept() {
    let mut world = World::new(config());
    let mut jobs = Vec::new();
    for digit in ['1', '2', '3', '4', '5'] {
        world.wants("churn", spec("m", digit));
        let job = world.active_job();
        world.fails(&job, "build", 1, "no");
        jobs.push(job);
    }
    let mut kept = jobs.split_off(2);
    kept.sort();
    assert_eq!(world.names("Job"), kept);
    // Kept for their logs, they concern nobody's health; the last one does.
    world.wants("churn", spec("m", '1'));
    let oldest = world.get("Job", &kept[0]).unwrap();
    let annotation = &oldest["metadata"]["annotations"]["reeve.dev/ignore-healthcheck"];
    assert_eq!(annotation, "true");
}

#[test]
fn a_job_that_exists_is_left_as_it_is_when_the_configuration_changes() {
    let mut world = World::new(config());
    world.wants("churn", spec("m1", '1'));
    let job = world.active_job();
    let before = world.get("Job", &job).unwrap()["spec"].clone();
    // What is no part of the key, and of the pod all the same.
    world.config = changed(
        config(),
        &json!({"imageBuilder": {"image": "r.example.com/kaniko:9"}}),
    );
    world.settle();
    assert_eq!(world.get("Job", &job).unwrap()["spec"], before);
    world.completes("churn", 'a');
    assert_eq!(world.told("churn").0, "Ready");
}

#[test]
fn a_record_that_is_deleted_is_made_anew() {
    let mut world = serving();
    let before = record(&world, "images");
    world.delete("ConfigMap", "churn-builds");
    world.settle();
    assert_eq!(record(&world, "images"), before);
    assert_eq!(world.told("churn").0, "Ready");
}

#[test]
fn a_spec_that_makes_no_sense_costs_nothing_that_serves() {
    let mut world = serving();
    let bad = changed(
        spec("m2", '2'),
        &json!({"model": {"format": "onnx", "id": "a/b"}}),
    );
    world.wants("churn", bad);
    assert_eq!(world.told("churn"), ("Ready", "warning", "Invalid"));
    assert_eq!(image_of(&world, "churn"), by_digest('a'));
    let path =
        &world.get("Ingress", "churn").unwrap()["spec"]["rules"][0]["http"]["paths"][0]["path"];
    assert_eq!(path, "/deployments/64f0(/|$)(.*)");
    assert!(
        world
            .names("Job")
            .iter()
            .all(|job| { !world.get("Job", job).unwrap()["status"]["conditions"].is_null() })
    );
}

#[test]
fn a_model_that_is_mounted_needs_no_build() {
    let base = format!("r.example.com/pps@{}", digest('f'));
    let mut world = World::new(changed(
        config(),
        &json!({"imageBuilder": {"builder": "mount", "ppsImage": base}}),
    ));
    world.wants("churn", mounted("m1", '1'));
    assert!(world.names("Job").is_empty());
    assert_eq!(image_of(&world, "churn"), base);
    let pod = world.get("Deployment", "churn").unwrap()["spec"]["template"]["spec"].clone();
    assert_eq!(
        pod["volumes"],
        json!([{"name": "model", "image": {
            "reference": format!("r.example.com/artifacts/churn@{}", digest('1')),
            "pullPolicy": "IfNotPresent",
        }}])
    );
    assert_eq!(
        pod["containers"][0]["volumeMounts"],
        json!([{"name": "model", "mountPath": "/opt/ml/model", "readOnly": true}])
    );
    world.rolls_out("churn");
    assert_eq!(world.told("churn"), ("Ready", "passing", "Serving"));
    // The new model may fail, and the old one serves.
    world.wants("churn", mounted("m2", '2'));
    world.is_stuck("churn");
    assert_eq!(world.told("churn"), ("Ready", "warning", "RolloutFailed"));
    assert_eq!(world.status("churn")["currentModelId"], "m1");
    assert_eq!(record(&world, "orphaned"), "");
}
