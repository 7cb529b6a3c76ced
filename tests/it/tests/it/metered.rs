//! What a call used is counted, under the names that the documentation has.

use crate::endpoints::metrics;
use crate::told::plugin_object;
use reeve_it::{World, core_reference, guest, profile_reference};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const PLUGIN: &str = "chameleon";

/// What is counted of calls, and between which values it rises with each: there is one, it
/// takes some time and memory and returns one object. Processor time is measured in steps.
const USUAL: [(&str, f64, f64); 9] = [
    ("reeve_call_seconds_count", 1.0, 1.0),
    ("reeve_call_seconds_sum", f64::MIN_POSITIVE, f64::INFINITY),
    ("reeve_call_run_seconds_sum", 0.0, f64::INFINITY),
    ("reeve_call_memory_bytes_sum", 1.0, 8e6),
    ("reeve_call_output_bytes_total", 50.0, 1_000.0),
    ("reeve_call_output_objects_total", 1.0, 1.0),
    ("reeve_call_host_calls_total", 0.0, 0.0),
    ("reeve_call_host_bytes_total", 0.0, 0.0),
    ("reeve_call_log_bytes_total", 0.0, 0.0),
];

/// A sample, or zero where there is none yet.
pub(crate) fn value(metrics: &str, sample: &str) -> f64 {
    let mut lines = metrics.lines();
    let found = lines.find_map(|line| line.strip_prefix(sample));
    found.map_or(0.0, |value| value.trim().parse().unwrap())
}

/// A plugin that is told what to do about one tenant, under these limits.
async fn world(limits: &Value) -> World {
    let mut world = World::new().await;
    let policy = plugin_object(PLUGIN, &json!({"limits": limits}));
    world.apply(&policy).await;
    world.start();
    world.tenant("alice", &[]).await;
    let mut note = core_reference("ConfigMap", "alice", "note");
    note["data"] = json!({"content": "x".repeat(5_000)});
    world.apply(&note).await;
    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "scope": "namespace-named-like-primary",
        "reads": ["ConfigMap.v1"],
        "reconcile": {"do": "nothing", "meant": true},
    });
    let component = [("plugin.wasm", guest("chameleon"))];
    world.install(PLUGIN, &component, Some(config)).await;
    world.settle().await;
    world
}

async fn tell(world: &World, deed: &Value) {
    let patch = json!({"metadata": {"annotations": {"chameleon.reeve.dev/do": deed.to_string()}}});
    world.edit(&profile_reference("alice"), patch).await;
    world.settle().await;
}

/// The metrics in the table of the documentation.
fn documented() -> BTreeSet<&'static str> {
    let text = include_str!("../../../../docs/operations.md");
    let (_, table) = text.split_once("| Metric | Labels |").unwrap();
    let rows = table.lines().skip(1).take_while(|row| row.starts_with('|'));
    let names = rows.filter_map(|row| row.split('|').nth(1));
    // What stands between backquotes.
    let names = names.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.collect()
}

/// The metrics of which there are samples.
fn exported(metrics: &str) -> BTreeSet<String> {
    let types = metrics.lines().filter_map(|line| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        let suffix = if kind == "counter" { "_total" } else { "" };
        Some(format!("{name}{suffix}"))
    });
    types.collect()
}

/// Checks that what is counted of calls is what the documentation says but for some of it,
/// and that nothing at all is counted that it does not say.
fn as_documented(metrics: &str, left_out: &[&str]) {
    let (documented, exported) = (documented(), exported(metrics));
    let exported: BTreeSet<&str> = exported.iter().map(String::as_str).collect();
    let more: Vec<_> = exported.difference(&documented).collect();
    assert!(more.is_empty(), "not in docs/operations.md: {more:?}");
    let less = documented.difference(&exported);
    let less: Vec<_> = less.filter(|name| name.starts_with("reeve_call")).collect();
    assert_eq!(less, left_out.iter().collect::<Vec<_>>(), "not exported");
}

#[tokio::test(start_paused = true)]
async fn what_a_call_uses_is_counted() {
    let world = world(&json!({})).await;
    let sample =
        |metrics: &str, name: &str| value(metrics, &format!("{name}{{plugin=\"{PLUGIN}\"}}"));
    let read = json!({"do": "get", "kind": "ConfigMap.v1", "namespace": "alice", "name": "note"});
    // What each uses beyond what every call does.
    for (deed, more) in [
        (
            json!({"do": "objects", "count": 3, "bytes": 1_000}),
            &[
                ("output_bytes_total", 3e3, 4e3),
                ("output_objects_total", 3.0, 3.0),
            ][..],
        ),
        (
            read,
            &[
                ("output_bytes_total", 5e3, 8e3),
                ("host_calls_total", 1.0, 1.0),
                ("host_bytes_total", 5e3, 6e3),
            ],
        ),
        (
            json!({"do": "log-flood", "lines": 3}),
            &[
                ("output_bytes_total", 50.0, 4e3),
                ("host_calls_total", 3.0, 3.0),
                ("log_bytes_total", 300.0, 300.0),
            ],
        ),
        (
            json!({"do": "call-flood", "calls": 70}),
            &[("host_calls_total", 70.0, 70.0)],
        ),
        (
            json!({"do": "grab", "bytes": 20_000_000}),
            &[("memory_bytes_sum", 2e7, 3e7)],
        ),
        (
            json!({"do": "spin", "rounds": 50_000_000}),
            &[
                ("seconds_sum", 0.005, f64::INFINITY),
                ("run_seconds_sum", 0.005, f64::INFINITY),
            ],
        ),
    ] {
        let before = metrics(&world).await;
        tell(&world, &deed).await;
        let after = metrics(&world).await;
        for (name, from, to) in USUAL {
            let mut more = more.iter().copied();
            let more = more.find(|(end, ..)| name == format!("reeve_call_{end}"));
            let (from, to) = more.map_or((from, to), |(_, from, to)| (from, to));
            let used = sample(&after, name) - sample(&before, name);
            assert!(
                (from..=to).contains(&used),
                "{name} rises by {used}, not by {from} to {to}: {deed}"
            );
        }
    }
    as_documented(&metrics(&world).await, &["reeve_calls_over_limit_total"]);
}

/// Calls that each limit has ended, by its name; those of which there are some.
fn over_limit(metrics: &str) -> Vec<(String, f64)> {
    let sample = format!("reeve_calls_over_limit_total{{plugin=\"{PLUGIN}\",limit=\"");
    let samples = metrics.lines().filter_map(|line| {
        let (limit, value) = line.strip_prefix(&sample)?.split_once("\"} ")?;
        Some((limit.to_owned(), value.parse().unwrap()))
    });
    samples.collect()
}

/// Has a plugin do something for which this limit, and no other, ends the call.
async fn goes_beyond(world: &World, deed: &Value, limit: &str) {
    let before = over_limit(&metrics(world).await);
    tell(world, deed).await;
    world.wait(Duration::from_secs(1)).await;
    let after = over_limit(&metrics(world).await);
    let risen = after.iter().filter(|count| !before.contains(count));
    let risen: Vec<&str> = risen.map(|(limit, _)| limit.as_str()).collect();
    assert_eq!(risen, [limit], "{deed}: {before:?}, then {after:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_that_a_limit_ends_are_counted_under_its_name() {
    let limits = json!({
        "runMilliseconds": 200, "memoryBytes": 4 << 20, "stackBytes": 256 << 10,
        "outputBytes": 100_000, "outputObjects": 5, "hostCalls": 100, "hostCallBytes": 20_000,
    });
    let usual = world(&limits).await;
    assert_eq!(over_limit(&metrics(&usual).await), []);
    for (deed, limit) in [
        (json!({"do": "hoard"}), "memoryBytes"),
        (json!({"do": "recurse"}), "stackBytes"),
        (
            json!({"do": "objects", "count": 1, "bytes": 200_000}),
            "outputBytes",
        ),
        (json!({"do": "long-line", "bytes": 200_000}), "outputBytes"),
        (json!({"do": "objects", "count": 6}), "outputObjects"),
        (json!({"do": "call-flood", "calls": 101}), "hostCalls"),
        (
            json!({"do": "read-flood", "kind": "ConfigMap.v1"}),
            "hostCallBytes",
        ),
        // The last one: what ran out of time is called again.
        (json!({"do": "loop"}), "runMilliseconds"),
    ] {
        goes_beyond(&usual, &deed, limit).await;
    }
    let metrics = metrics(&usual).await;
    as_documented(&metrics, &[]);
    let names: BTreeSet<String> = limits.as_object().unwrap().keys().cloned().collect();
    let counted = over_limit(&metrics).into_iter().map(|(limit, _)| limit);
    assert_eq!(counted.collect::<BTreeSet<_>>(), names);
    // What loops comes to the one first or to the other.
    let hasty = world(&json!({"wallMilliseconds": 200})).await;
    goes_beyond(&hasty, &json!({"do": "loop"}), "wallMilliseconds").await;
}
