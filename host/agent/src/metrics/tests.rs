//! What is written down, and what goes with a plugin.

use super::*;
use reeve_core::GroupVersionKind;
use std::collections::{BTreeMap, BTreeSet};

fn plugin(name: &str) -> Arc<str> {
    name.into()
}

fn config_maps() -> Resource {
    Resource {
        kind: GroupVersionKind::new("", "v1", "ConfigMap"),
        plural: "configmaps".into(),
        namespaced: true,
    }
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
    let usage = Usage {
        wall: Duration::from_secs(1),
        run_time: Duration::from_secs(2),
        processor: Duration::from_secs(3),
        memory_bytes: 3,
        output_bytes: 4,
        output_objects: 5,
        host_calls: 6,
        host_call_bytes: 7,
        log_bytes: 8,
    };
    metrics.called(&plugin, &usage, Some("memoryBytes"));
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
        untold: 0,
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
    metrics.watch_restarted(&config_maps());
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
        r#"reeve_call_seconds_sum{plugin="a"} 1.0"#,
        r#"reeve_call_run_seconds_sum{plugin="a"} 2.0"#,
        r#"reeve_call_processor_seconds_total{plugin="a"} 3.0"#,
        r#"reeve_call_memory_bytes_sum{plugin="a"} 3.0"#,
        r#"reeve_call_output_bytes_total{plugin="a"} 4"#,
        r#"reeve_call_output_objects_total{plugin="a"} 5"#,
        r#"reeve_call_host_calls_total{plugin="a"} 6"#,
        r#"reeve_call_host_bytes_total{plugin="a"} 7"#,
        r#"reeve_call_log_bytes_total{plugin="a"} 8"#,
        r#"reeve_calls_over_limit_total{plugin="a",limit="memoryBytes"} 1"#,
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

/// Metrics, each with its labels and their values.
type Told = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// What the table of the documentation says. Labels of which it lists no values have none.
fn documented() -> Told {
    let text = include_str!("../../../../docs/operations.md");
    let (_, table) = text.split_once("| Metric | Labels |").unwrap();
    let quoted = |text: &str| -> BTreeSet<String> {
        let names = text.split('`').skip(1).step_by(2);
        // What has a full stop says where a list is.
        let names = names.filter(|name| !name.contains('.'));
        names.map(str::to_owned).collect()
    };
    let mut told = Told::new();
    for row in table.lines().skip(2).take_while(|row| row.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').collect();
        let mut labels = BTreeMap::new();
        for clause in cells[2].split(';') {
            let (names, values) = clause.split_once(':').unwrap_or((clause, ""));
            let names: Vec<&str> = names.split(',').map(str::trim).collect();
            labels.extend(
                names
                    .iter()
                    .map(|name| ((*name).to_owned(), BTreeSet::new())),
            );
            labels.insert((*names.last().unwrap()).to_owned(), quoted(values));
        }
        labels.remove("");
        let names = quoted(cells[1]).into_iter();
        told.extend(names.map(|name| (name, labels.clone())));
    }
    told
}

/// What is written down, as far as the documentation lists it.
fn exported(metrics: &Metrics, documented: &Told) -> Told {
    let text = metrics.encode().unwrap();
    let mut told = Told::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (family, kind) = kind.split_once(' ').unwrap();
            let suffix = if kind == "counter" { "_total" } else { "" };
            name = format!("{family}{suffix}");
            told.insert(name.clone(), BTreeMap::new());
        }
        let Some((_, labels)) = line.split_once('{').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        let (labels, _) = labels.split_once("\"} ").unwrap();
        for (label, value) in labels
            .split("\",")
            .map(|label| label.split_once("=\"").unwrap())
        {
            // The bound of a bucket.
            if label == "le" {
                continue;
            }
            let values = told.get_mut(&name).unwrap().entry(label.to_owned());
            let values = values.or_default();
            let listed = documented.get(&name).and_then(|labels| labels.get(label));
            if listed.is_some_and(|listed| !listed.is_empty()) {
                values.insert(value.to_owned());
            }
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn all_that_is_exported_is_documented_and_nothing_else_is() {
    let metrics = Metrics::default();
    metrics.leads(true);
    metrics.installed(&plugin("a"), 16, None);
    let _meter = count_all(&metrics, "a");
    metrics.request(&Method::PATCH, Some(200));
    metrics.watch_restarted(&config_maps());
    let documented = documented();
    assert_eq!(exported(&metrics, &documented), documented);
}
