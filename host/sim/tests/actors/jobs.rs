//! Jobs.

use serde_json::{Value, json};

use crate::world::{World, addressed, after, conditions, has, path, template};

fn job(annotations: &[(&str, &str)], spec: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "task", "annotations": addressed(annotations)},
        "spec": {"template": template("task", "Never", &[])},
    });
    for (key, value) in spec.as_object().unwrap() {
        job["spec"][key] = value.clone();
    }
    job
}

/// Creates a Job; for each time, in seconds, the parts of its status and all of its
/// conditions.
async fn check(
    annotations: &[(&str, &str)],
    spec: Value,
    moments: &[(f64, Value, &[&str])],
) -> World {
    let world = World::new();
    world.create(job(annotations, spec)).await;
    let mut passed = 0.0;
    for (at, expected, expected_conditions) in moments {
        after(at - passed).await;
        passed = *at;
        let found = world.get("Job", "task").await;
        has(&found["status"], expected.clone());
        assert_eq!(conditions(&found), *expected_conditions, "at {at} s");
    }
    world
}

const COMPLETE: &[&str] = &[
    "SuccessCriteriaMet=True CompletionsReached",
    "Complete=True CompletionsReached",
];
const FAILED: &[&str] = &[
    "FailureTarget=True BackoffLimitExceeded",
    "Failed=True BackoffLimitExceeded",
];

/// A Job that began later than it ends, by the clock.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_makes_no_pods() {
    let world = World::new();
    world.server.jump_clock(3_600_000);
    world.create(job(&[], json!({}))).await;
    after(0.5).await;
    world.server.jump_clock(-3_600_000);
    // Which was to end in an hour.
    let names = world.names("Pod").await;
    world.delete("Pod", &names[0]).await;
    after(30.0).await;
    let found = world.get("Job", "task").await;
    assert_eq!(conditions(&found), COMPLETE);
    has(
        &found["status"],
        json!({"succeeded": 1, "completionTime": "2026-01-01T01:00:00Z"}),
    );
    assert_eq!(world.list("Pod").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn jobs_complete() {
    check(&[], json!({}), &[
        (0.5, json!({"active": 1, "ready": 1, "startTime": "2026-01-01T00:00:00Z", "succeeded": null}), &[]),
        (1.5, json!({"active": null, "ready": 0, "succeeded": 1, "completionTime": "2026-01-01T00:00:01Z",
            "uncountedTerminatedPods": {}, "terminating": 0}), COMPLETE),
    ])
    .await;
    check(
        &[("complete-after", "10s")],
        json!({"completions": 5, "parallelism": 2}),
        &[
            (5.0, json!({"active": 2, "succeeded": null}), &[]),
            (15.0, json!({"active": 2, "succeeded": 2}), &[]),
            (25.0, json!({"active": 1, "succeeded": 4}), &[]),
            (35.0, json!({"active": null, "succeeded": 5}), COMPLETE),
        ],
    )
    .await;
    check(
        &[],
        json!({"completions": 3, "parallelism": 2, "completionMode": "Indexed"}),
        &[
            (1.5, json!({"succeeded": 2, "completedIndexes": "0,1"}), &[]),
            (
                2.5,
                json!({"succeeded": 3, "completedIndexes": "0-2"}),
                COMPLETE,
            ),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn jobs_fail_when_their_pods_do() {
    check(
        &[("fail", "exit")],
        json!({"backoffLimit": 0}),
        &[(
            1.5,
            json!({"failed": 1, "active": null, "completionTime": null}),
            FAILED,
        )],
    )
    .await;
    // Two fail, ten and twenty seconds apart; the third succeeds.
    check(
        &[("fail", "exit"), ("fail-times", "2")],
        json!({"backoffLimit": 2}),
        &[
            (5.0, json!({"failed": 1, "active": null}), &[]),
            (12.5, json!({"failed": 2, "active": null}), &[]),
            (40.0, json!({"failed": 2, "succeeded": 1}), COMPLETE),
        ],
    )
    .await;
    check(
        &[("stall", "true")],
        json!({"activeDeadlineSeconds": 30}),
        &[
            (29.0, json!({"active": 1}), &[]),
            (
                31.0,
                json!({"active": null}),
                &[
                    "FailureTarget=True DeadlineExceeded",
                    "Failed=True DeadlineExceeded",
                ],
            ),
        ],
    )
    .await;
    let mut restarting = template("task", "OnFailure", &[]);
    restarting["spec"]["restartPolicy"] = json!("OnFailure");
    check(
        &[("fail", "exit")],
        json!({"backoffLimit": 2, "template": restarting}),
        &[
            (5.0, json!({"active": 1, "failed": null}), &[]),
            (60.0, json!({"active": null}), FAILED),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_says_what_failures_mean() {
    let rules = |rules: Value| json!({"backoffLimit": 1, "podFailurePolicy": {"rules": rules}});
    let ignoring = json!([{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]);
    // Two evictions count for nothing, and make the pauses longer all the same.
    check(
        &[("fail", "evict"), ("fail-times", "2")],
        rules(ignoring.clone()),
        &[
            (5.0, json!({"failed": null, "active": null}), &[]),
            (11.5, json!({"failed": null, "active": 1}), &[]),
            (31.0, json!({"failed": null, "active": null}), &[]),
            (35.0, json!({"failed": null, "succeeded": 1}), COMPLETE),
        ],
    )
    .await;
    // Without it, they are failures.
    check(
        &[("fail", "evict")],
        json!({"backoffLimit": 1}),
        &[(60.0, json!({"failed": 2}), FAILED)],
    )
    .await;
    let world = check(
        &[("fail", "exit"), ("exit-code", "65")],
        rules(json!([
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [65]}},
        ])),
        &[(
            5.0,
            json!({"failed": 1, "active": null}),
            &[
                "FailureTarget=True PodFailurePolicy",
                "Failed=True PodFailurePolicy",
            ],
        )],
    )
    .await;
    let found = world.get("Job", "task").await;
    let pod = world.names("Pod").await.remove(0);
    assert_eq!(
        found["status"]["conditions"][1]["message"],
        format!(
            "Container main for pod default/{pod} failed with exit code 65 matching FailJob rule at index 0"
        )
    );
    // A pod that is drained goes with a condition.
    let world = World::new();
    let spec = rules(ignoring);
    world.create(job(&[("complete-after", "1h")], spec)).await;
    world.settle().await;
    let pod = world.names("Pod").await.remove(0);
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
    let path = format!("{}/{pod}/eviction", path("Pod"));
    let (code, answer) = world
        .send("POST", &path, "application/json", eviction)
        .await;
    assert_eq!(code, 201, "{answer}");
    after(20.0).await;
    has(
        &world.get("Job", "task").await["status"],
        json!({"failed": null, "active": 1}),
    );
}

#[tokio::test(start_paused = true)]
async fn jobs_are_suspended_and_resumed() {
    let world = check(
        &[],
        json!({"suspend": true}),
        &[(
            5.0,
            json!({"active": null, "startTime": null}),
            &["Suspended=True JobSuspended"],
        )],
    )
    .await;
    assert_eq!(world.names("Pod").await, [""; 0]);
    world
        .patch("Job", "task", json!({"spec": {"suspend": false}}))
        .await;
    after(2.0).await;
    let found = world.get("Job", "task").await;
    has(
        &found["status"],
        json!({"succeeded": 1, "startTime": "2026-01-01T00:00:05Z"}),
    );
    assert_eq!(
        conditions(&found),
        [&["Suspended=False JobResumed"], COMPLETE].concat()
    );
}

#[tokio::test(start_paused = true)]
async fn jobs_go_when_their_time_is_over() {
    let world = check(
        &[],
        json!({"ttlSecondsAfterFinished": 60}),
        &[(50.0, json!({"succeeded": 1}), COMPLETE)],
    )
    .await;
    after(20.0).await;
    assert_eq!(world.get("Job", "task").await, Value::Null);
    assert_eq!(world.names("Pod").await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn pods_are_held_until_they_are_counted_and_go_with_their_job() {
    let world = World::new();
    world
        .create(job(&[("complete-after", "1h")], json!({})))
        .await;
    world.settle().await;
    let pod = world.list("Pod").await.remove(0);
    assert_eq!(
        pod["metadata"]["finalizers"],
        json!(["batch.kubernetes.io/job-tracking"])
    );
    // A pod that somebody deletes has failed, and is replaced after a pause.
    world
        .delete("Pod", pod["metadata"]["name"].as_str().unwrap())
        .await;
    world.settle().await;
    has(
        &world.get("Job", "task").await["status"],
        json!({"failed": 1}),
    );
    after(20.0).await;
    assert_eq!(world.names("Pod").await.len(), 1);
    world.delete("Job", "task").await;
    world.settle().await;
    assert_eq!(world.names("Pod").await, [""; 0]);
}
