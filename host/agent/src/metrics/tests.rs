//! What is written down, and what goes with a plugin.

use super::*;
use reeve_core::GroupVersionKind;

fn plugin(name: &str) -> Arc<str> {
    name.into()
}

/// Lines of samples, without those of histograms' buckets.
fn samples(metrics: &Metrics) -> Vec<String> {
    let text = metrics.encode().unwrap();
    assert!(text.ends_with("# EOF\n"), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut lines: Vec<String> = lines
        .filter(|line| !line.contains("_bucket{"))
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

/// Counts one of everything. A source is looked at until what is returned is dropped.
fn count_all(metrics: &Metrics, name: &str) -> SourceMeter {
    let plugin = plugin(name);
    metrics.queued(&plugin);
    metrics.depth(&plugin, 3);
    for result in [
        RunResult::Success,
        RunResult::RequeueAfter,
        RunResult::Error,
    ] {
        let run = metrics.run_started(&plugin, Duration::from_millis(1));
        metrics.run_ended(&run, Some(result));
    }
    metrics.panicked(&plugin);
    metrics.backed_off(&plugin);
    metrics.called(&plugin, &Usage::default(), Some("memoryBytes"));
    metrics.remembered(&plugin);
    for verb in Verb::ALL {
        for result in WriteResult::ALL {
            metrics.wrote(&plugin, verb, result, Duration::from_millis(1));
        }
    }
    metrics.unchanged(&plugin, 7);
    let counts = UnitCounts {
        total: 10,
        ready: 1,
        failing: 2,
        waiting: 4,
    };
    metrics.units(&plugin, Some(&counts));
    let meter = metrics.source(&plugin, "notes");
    for result in [
        LookResult::Changed,
        LookResult::Unchanged,
        LookResult::Failed,
        LookResult::Forbidden,
    ] {
        meter.looked(result, Duration::from_millis(1));
    }
    meter.confirmed(Some(Instant::now()));
    for verb in [
        outcome::Verb::Apply,
        outcome::Verb::Verify,
        outcome::Verb::Retire,
    ] {
        for result in [
            EffectResult::Success,
            EffectResult::Gone,
            EffectResult::Error,
        ] {
            metrics.actuated(&plugin, "store", verb, result, Duration::from_millis(1));
        }
    }
    meter
}

#[tokio::test(start_paused = true)]
async fn a_source_has_an_age_as_long_as_somebody_looks_at_it() {
    let metrics = Metrics::default();
    let plugin = plugin("a");
    metrics.installed(&plugin, 16, None);
    let age = || {
        let samples = samples(&metrics);
        let ages = samples.into_iter();
        ages.filter(|sample| sample.starts_with("reeve_source_age_seconds"))
            .collect::<Vec<_>>()
    };
    let first = metrics.source(&plugin, "notes");
    first.confirmed(None);
    assert_eq!(age(), [""; 0], "there is no document yet");
    first.confirmed(Some(Instant::now()));
    tokio::time::sleep(Duration::from_secs(7)).await;
    let seven = r#"reeve_source_age_seconds{plugin="a",source="notes"} 7.0"#;
    assert_eq!(age(), [seven]);
    // Another version of the plugin takes over what the first one fetched.
    let second = metrics.source(&plugin, "notes");
    second.confirmed(Some(Instant::now() - Duration::from_secs(7)));
    first.confirmed(Some(Instant::now()));
    drop(first);
    assert_eq!(age(), [seven]);
    drop(second);
    assert_eq!(age(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_leaves_nothing_behind() {
    let metrics = Metrics::default();
    let empty = samples(&metrics);
    assert_eq!(empty, ["reeve_leader 0"]);
    metrics.installed(
        &plugin("a"),
        16,
        Some(&("sha256:1".to_owned(), "1.0".to_owned())),
    );
    let _meter = count_all(&metrics, "a");
    assert!(samples(&metrics).len() > 30, "{:?}", samples(&metrics));
    metrics.removed("a");
    assert_eq!(samples(&metrics), empty);
    // A run that ends later.
    let _meter = count_all(&metrics, "a");
    assert_eq!(samples(&metrics), empty);
}

#[tokio::test(start_paused = true)]
async fn names_and_labels_are_those_that_dashboards_know() {
    let metrics = Metrics::default();
    metrics.leads(true);
    metrics.installed(&plugin("a"), 16, None);
    metrics.installed(
        &plugin("a"),
        16,
        Some(&("sha256:1".to_owned(), "1.0".to_owned())),
    );
    let _meter = count_all(&metrics, "a");
    let running = metrics.run_started(&plugin("a"), Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(5)).await;
    metrics.request(&Method::PATCH, Some(200));
    metrics.request(&Method::GET, None);
    let config_maps = Resource {
        kind: GroupVersionKind::new("", "v1", "ConfigMap"),
        plural: "configmaps".into(),
        namespaced: true,
    };
    metrics.watch_restarted(&config_maps);
    let samples = samples(&metrics);
    for expected in [
        r#"controller_runtime_reconcile_total{controller="a",result="success"} 1"#,
        r#"controller_runtime_reconcile_total{controller="a",result="requeue_after"} 1"#,
        r#"controller_runtime_reconcile_errors_total{controller="a"} 1"#,
        r#"controller_runtime_reconcile_panics_total{controller="a"} 1"#,
        r#"controller_runtime_reconcile_time_seconds_count{controller="a"} 3"#,
        r#"controller_runtime_active_workers{controller="a"} 1"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="a"} 16"#,
        r#"workqueue_depth{name="a",controller="a"} 3"#,
        r#"workqueue_adds_total{name="a",controller="a"} 1"#,
        r#"workqueue_queue_duration_seconds_count{name="a",controller="a"} 4"#,
        r#"workqueue_work_duration_seconds_count{name="a",controller="a"} 3"#,
        r#"workqueue_longest_running_processor_seconds{name="a",controller="a"} 5.0"#,
        r#"workqueue_retries_total{name="a",controller="a"} 1"#,
        r#"rest_client_requests_total{code="200",method="PATCH"} 1"#,
        r#"rest_client_requests_total{code="<error>",method="GET"} 1"#,
        r#"reeve_plugin_info{plugin="a",digest="sha256:1",version="1.0"} 1"#,
        r#"reeve_units{plugin="a",state="ready"} 1"#,
        r#"reeve_units{plugin="a",state="failing"} 2"#,
        r#"reeve_units{plugin="a",state="waiting"} 4"#,
        r#"reeve_units{plugin="a",state="unknown"} 3"#,
        r#"reeve_writes_total{plugin="a",verb="delete",result="not_leader"} 1"#,
        r#"reeve_noops_total{plugin="a"} 7"#,
        r#"reeve_call_seconds_count{plugin="a"} 1"#,
        r#"reeve_apply_seconds_count{plugin="a"} 7"#,
        r#"reeve_backoffs_total{plugin="a"} 1"#,
        r#"reeve_watch_restarts_total{resource="configmaps"} 1"#,
        r#"reeve_source_looks_total{plugin="a",source="notes",result="failed"} 1"#,
        r#"reeve_source_look_seconds_count{plugin="a"} 4"#,
        r#"reeve_source_age_seconds{plugin="a",source="notes"} 5.0"#,
        r#"reeve_action_calls_total{plugin="a",action="store",verb="verify",result="gone"} 1"#,
        r#"reeve_action_seconds_count{plugin="a",verb="apply"} 3"#,
        "reeve_leader 1",
    ] {
        assert!(
            samples.iter().any(|sample| sample == expected),
            "no {expected} in {samples:#?}"
        );
    }
    let infos = samples
        .iter()
        .filter(|s| s.starts_with("reeve_plugin_info"));
    assert_eq!(infos.count(), 1, "an earlier version is not told any more");

    // Nobody hears of a run that another replica does again.
    metrics.run_ended(&running, None);
    metrics.units(&plugin("a"), None);
    let samples = super::tests::samples(&metrics);
    let ended = r#"controller_runtime_reconcile_time_seconds_count{controller="a"} 3"#;
    assert!(samples.iter().any(|sample| sample == ended), "{samples:#?}");
    assert!(
        !samples.iter().any(|s| s.starts_with("reeve_units")),
        "{samples:#?}"
    );
}
