//! HorizontalPodAutoscalers of v1 as those of v2, and back.
//!
//! v1 knows one metric, the share of CPU that is in use. The others, what was measured,
//! conditions and behavior are in annotations there, and nowhere else: in v2 there are
//! none of these.

use serde_json::{Map, Value, json};

use super::CPU_PERCENT;
use super::annotated::{Behavior, Condition, Measured, Metric, write};
use crate::kinds::edit::{ensure_object, integer, items, object, present, remove, set, text};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const MEASURED: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// All that one version says in fields and the other in annotations; the last two were
/// meant to.
const ANNOTATIONS: [&str; 6] = [
    METRICS,
    MEASURED,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// An autoscaler of v2 as v1 serves it.
pub(super) fn to_v1(autoscaler: &Value) -> Value {
    let mut v1 = autoscaler.clone();
    set(&mut v1, "apiVersion", "autoscaling/v1");
    drop_annotations(&mut v1);
    let mut said = Map::new();
    let mut say = |name: &str, what: Value| {
        said.insert(name.to_owned(), what);
    };
    if let Some(spec) = v1.get_mut("spec").filter(|spec| spec.is_object()) {
        let metrics = remove(spec, "metrics").unwrap_or_default();
        let metrics = metrics.as_array().map(Vec::as_slice).unwrap_or_default();
        let (cpu, others): (Vec<_>, Vec<_>) = metrics.iter().partition(|m| wanted(m).is_some());
        if let Some(percent) = cpu.first().and_then(|metric| wanted(metric)) {
            set(spec, "targetCPUUtilizationPercentage", percent);
        }
        if !others.is_empty() {
            let others: Vec<Metric> = others.into_iter().map(Metric::of).collect();
            say(METRICS, write(&others));
        }
        if let Some(behavior) = remove(spec, "behavior").filter(Value::is_object) {
            say(BEHAVIOR, write(&Behavior::of(&behavior)));
        }
    }
    if let Some(status) = v1.get_mut("status").filter(|status| status.is_object()) {
        let measured = remove(status, "currentMetrics").unwrap_or_default();
        let measured = measured.as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(percent) = measured.iter().filter_map(found).next_back() {
            set(status, "currentCPUUtilizationPercentage", percent);
        }
        if !measured.is_empty() {
            let measured: Vec<Measured> = measured.iter().map(Measured::of).collect();
            say(MEASURED, write(&measured));
        }
        let conditions: Vec<Condition> = items(status, "conditions").map(Condition::of).collect();
        if !conditions.is_empty() {
            say(CONDITIONS, write(&conditions));
        }
        remove(status, "conditions");
        for count in ["currentReplicas", "desiredReplicas"] {
            let number = integer(status, count).unwrap_or(0);
            set(status, count, number);
        }
    }
    if !said.is_empty()
        && let Some(metadata) = ensure_object(&mut v1, "metadata")
        && let Some(Value::Object(annotations)) = ensure_object(metadata, "annotations")
    {
        annotations.append(&mut said);
    }
    v1
}

/// An autoscaler of v1 as v2 serves it. Without any metric it goes by its CPU.
pub(super) fn to_v2(autoscaler: &Value) -> Value {
    let mut v2 = autoscaler.clone();
    set(&mut v2, "apiVersion", "autoscaling/v2");
    let annotations = autoscaler.pointer("/metadata/annotations");
    let said = |name: &str| annotations.and_then(|all| all.get(name)?.as_str());
    if let Some(spec) = v2.get_mut("spec").filter(|spec| spec.is_object()) {
        let percent = remove(spec, "targetCPUUtilizationPercentage");
        let mut metrics = said(METRICS).and_then(Metric::read).unwrap_or_default();
        metrics.extend(
            percent
                .filter(Value::is_number)
                .map(|percent| cpu(&percent)),
        );
        if metrics.is_empty() {
            metrics.push(cpu(&json!(CPU_PERCENT)));
        }
        set(spec, "metrics", metrics);
        if let Some(behavior) = said(BEHAVIOR).and_then(Behavior::read) {
            set(spec, "behavior", behavior);
        }
    }
    let measured = said(MEASURED).and_then(Measured::read);
    let conditions = said(CONDITIONS).and_then(Condition::read);
    let has_status = object(&v2, "status").is_some() || measured.is_some() || conditions.is_some();
    if has_status && let Some(status) = ensure_object(&mut v2, "status") {
        let percent = remove(status, "currentCPUUtilizationPercentage").filter(Value::is_number);
        let measured = measured.or_else(|| {
            let current = json!({"averageUtilization": percent?});
            let cpu = json!({"name": "cpu", "current": current});
            Some(vec![json!({"type": "Resource", "resource": cpu})])
        });
        let measured = measured.filter(|measured| !measured.is_empty());
        set(status, "currentMetrics", json!(measured));
        if let Some(conditions) = conditions.filter(|conditions| !conditions.is_empty()) {
            set(status, "conditions", conditions);
        }
        if integer(status, "currentReplicas") == Some(0) {
            remove(status, "currentReplicas");
        }
        let wanted = integer(status, "desiredReplicas").unwrap_or(0);
        set(status, "desiredReplicas", wanted);
    }
    drop_annotations(&mut v2);
    v2
}

/// Takes away what only v1 says in annotations: whoever writes it into an object of v2
/// writes nothing.
pub(super) fn drop_annotations(autoscaler: &mut Value) {
    let Some(metadata) = autoscaler.get_mut("metadata") else {
        return;
    };
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else {
        return;
    };
    annotations.retain(|name, _| !ANNOTATIONS.contains(&name.as_str()));
    if annotations.is_empty() {
        remove(metadata, "annotations");
    }
}

/// The metric that v1 has a field for.
fn cpu(percent: &Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

/// The share of CPU that a metric is about.
fn wanted(metric: &Value) -> Option<i64> {
    share(metric, "target")
}

/// The share of CPU that was measured.
fn found(metric: &Value) -> Option<i64> {
    share(metric, "current")
}

fn share(metric: &Value, field: &str) -> Option<i64> {
    let resource = present(metric, "resource")
        .filter(|resource| text(metric, "type") == "Resource" && text(resource, "name") == "cpu")?;
    integer(resource.get(field)?, "averageUtilization")
}

#[cfg(test)]
mod tests;
