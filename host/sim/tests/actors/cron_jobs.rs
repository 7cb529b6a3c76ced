//! CronJobs.

use serde_json::{Value, json};

use crate::world::{World, addressed, after, has, path, template};

fn cron(annotations: &[(&str, &str)], spec: Value) -> Value {
    let mut cron = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "annotations": addressed(annotations)},
        "spec": {
            "schedule": "*/10 * * * *",
            "jobTemplate": {"spec": {"template": template("nightly", "Never", &[])}},
        },
    });
    for (key, value) in spec.as_object().unwrap() {
        cron["spec"][key] = value.clone();
    }
    cron
}

/// Creates a CronJob; after some minutes the Jobs that are there, by the minute that
/// they were for, and parts of its status.
async fn check(
    annotations: &[(&str, &str)],
    spec: Value,
    minutes: f64,
    jobs: &[i64],
    status: Value,
) {
    const START: i64 = 1_767_225_600 / 60;
    let world = World::new();
    world.create(cron(annotations, spec)).await;
    after(minutes * 60.0).await;
    let wanted: Vec<String> = jobs
        .iter()
        .map(|minute| format!("nightly-{}", START + minute))
        .collect();
    assert_eq!(world.names("Job").await, wanted);
    has(&world.get("CronJob", "nightly").await["status"], status);
}

#[tokio::test(start_paused = true)]
async fn jobs_are_made_on_schedule() {
    check(&[], json!({}), 9.9, &[], json!({"lastScheduleTime": null})).await;
    check(
        &[],
        json!({}),
        10.5,
        &[10],
        json!({"lastScheduleTime": "2026-01-01T00:10:00Z",
        "lastSuccessfulTime": "2026-01-01T00:10:01Z", "active": null}),
    )
    .await;
    // Three of those that succeeded are kept, and one of those that failed.
    check(
        &[],
        json!({}),
        65.0,
        &[40, 50, 60],
        json!({"lastScheduleTime": "2026-01-01T01:00:00Z"}),
    )
    .await;
    check(
        &[("fail", "exit")],
        json!({"jobTemplate": {"spec": {"backoffLimit": 0,
        "template": template("nightly", "Never", &[])}}}),
        65.0,
        &[60],
        json!({"lastSuccessfulTime": null}),
    )
    .await;
    check(&[], json!({"suspend": true}), 65.0, &[], json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn schedules_go_by_the_clocks_of_their_zone() {
    // Midnight in UTC is half past five in the morning there.
    let spec = |zone: &str| json!({"schedule": "0 6 * * *", "timeZone": zone});
    check(&[], spec("Asia/Kolkata"), 31.0, &[30], json!({})).await;
    check(&[], spec("Etc/UTC"), 31.0, &[], json!({})).await;
    let world = World::new();
    for unknown in ["Mars/Olympus", "asia/kolkata"] {
        let cron = cron(&[], spec(unknown));
        let (code, refused) = world
            .send("POST", &path("CronJob"), "application/json", cron)
            .await;
        assert_eq!(code, 422, "{refused}");
        let why = refused["message"].as_str().unwrap();
        assert!(
            why.ends_with(&format!("unknown time zone {unknown}")),
            "{why}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn jobs_that_last_meet_the_next_ones() {
    let long = &[("complete-after", "25m")];
    check(
        long,
        json!({}),
        31.0,
        &[10, 20, 30],
        json!({"active": [{"name": "nightly-29453770"},
        {"name": "nightly-29453780"}, {"name": "nightly-29453790"}]}),
    )
    .await;
    check(
        long,
        json!({"concurrencyPolicy": "Forbid"}),
        31.0,
        &[10],
        json!({"active": [{}]}),
    )
    .await;
    check(
        long,
        json!({"concurrencyPolicy": "Replace"}),
        31.0,
        &[30],
        json!({"active": [{}]}),
    )
    .await;
}
