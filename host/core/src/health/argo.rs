//! Applications of Argo CD.
//!
//! Argo CD itself has had no rule for them since 1.8 (issue 3781), which is why
//! waves of Applications do not wait for each other there. An Application has no
//! `observedGeneration`; what its status speaks of is in `status.sync.comparedTo`.
//! Only when that is what we applied does its health count: a Healthy left over
//! from the revision before must not let the next wave pass.

use super::object::{Object, readable};
use super::{Context, Health, HealthStatus};
use serde_json::{Map, Value};

pub(super) fn application(object: Object<'_>, context: &Context<'_>) -> Health {
    let applied = Object(context.applied.unwrap_or(object.0));
    if !compares(applied, object) {
        return Health::progressing("it is not yet compared with the source that it was given");
    }
    if object.at("/operation").is_some() {
        return Health::progressing("a sync is requested");
    }
    let phase = object.text("/status/operationState/phase");
    if let Some(phase @ ("Running" | "Terminating")) = phase {
        let message = object.text("/status/operationState/message").unwrap_or("");
        return Health::progressing(readable(&format!("sync {phase}: {message}")));
    }
    if let Some(phase @ ("Failed" | "Error")) = phase
        && of_this_source(applied, object)
    {
        let message = object.text("/status/operationState/message").unwrap_or("");
        return Health::degraded(readable(&format!("sync {phase}: {message}")));
    }
    match object.text("/status/sync/status") {
        Some("Synced") => {}
        Some(status) => return Health::progressing(readable(&format!("it is {status}"))),
        None => return Health::progressing("it is not yet compared"),
    }
    let message = readable(object.text("/status/health/message").unwrap_or(""));
    let status = match object.text("/status/health/status") {
        Some("Healthy") => HealthStatus::Healthy,
        Some("Suspended") => HealthStatus::Suspended,
        Some("Degraded") => HealthStatus::Degraded,
        Some("Missing") => HealthStatus::Missing,
        Some("Unknown") => HealthStatus::Unknown,
        _ => HealthStatus::Progressing,
    };
    Health::new(status, message)
}

/// Whether the comparison was with the source or sources, and the destination,
/// that were applied.
pub(super) fn compares(applied: Object<'_>, live: Object<'_>) -> bool {
    let Some(compared) = live.at("/status/sync/comparedTo") else {
        return false;
    };
    let compared = Object(compared);
    // With several sources the single one is not looked at, nor written.
    let source = if applied.items("/spec/sources").next().is_some() {
        "sources"
    } else {
        "source"
    };
    [source, "destination"].iter().all(|field| {
        same(
            applied.at(&format!("/spec/{field}")),
            compared.at(&format!("/{field}")),
        )
    })
}

/// Whether the last operation was one on the source that was applied. One that
/// does not say counts as such.
fn of_this_source(applied: Object<'_>, live: Object<'_>) -> bool {
    let single = live.at("/status/operationState/syncResult/source");
    let several = live
        .at("/status/operationState/syncResult/sources")
        .filter(|sources| sources.as_array().is_some_and(|list| !list.is_empty()));
    match (several, single.and_then(meaningful)) {
        (Some(_), _) => same(applied.at("/spec/sources"), several),
        (None, Some(_)) => same(applied.at("/spec/source"), single),
        (None, None) => true,
    }
}

/// Equality but for what Go leaves out when it writes: null, false, zero and
/// whatever is empty.
fn same(one: Option<&Value>, other: Option<&Value>) -> bool {
    one.and_then(meaningful) == other.and_then(meaningful)
}

fn meaningful(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Number(number) if number.as_f64() == Some(0.0) => None,
        Value::Object(fields) => {
            let fields: Map<_, _> = fields
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), meaningful(value)?)))
                .collect();
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
        // Items keep their places, whatever they hold.
        Value::Array(items) => (!items.is_empty()).then(|| {
            items
                .iter()
                .map(|item| meaningful(item).unwrap_or(Value::Null))
                .collect()
        }),
        _ => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::HealthStatus::*;
    use super::super::testing::{check, check_in, context, with};
    use serde_json::{Value, json};

    fn synced() -> Value {
        let source = json!({"repoURL": "https://git.example.com/saif", "path": "apps/otel",
            "targetRevision": "v2"});
        let destination = json!({"server": "https://kubernetes.default.svc", "namespace": "otel"});
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "splunk-otel", "namespace": "argocd", "generation": 40},
            "spec": {"project": "default", "source": source, "destination": destination},
            "status": {
                "sync": {"status": "Synced", "revision": "abc",
                    "comparedTo": {"source": source, "destination": destination}},
                "health": {"status": "Healthy"},
                "operationState": {"phase": "Succeeded", "message": "successfully synced",
                    "syncResult": {"revision": "abc", "source": source}},
            },
        })
    }

    #[test]
    fn an_application_counts_once_it_is_compared_with_what_was_applied() {
        let stale = "it is not yet compared with the source that it was given";
        let phase = |phase: &str| ("/status/operationState/phase", json!(phase));
        let old = json!({"repoURL": "https://git.example.com/saif", "path": "apps/otel",
            "targetRevision": "v1"});
        for (changes, status, message) in [
            (vec![], Healthy, ""),
            (vec![("/status", json!({}))], Progressing, stale),
            (
                vec![("/status/sync/comparedTo/source", old.clone())],
                Progressing,
                stale,
            ),
            (
                vec![(
                    "/status/sync/comparedTo/destination",
                    json!({"name": "other"}),
                )],
                Progressing,
                stale,
            ),
            (
                vec![("/operation", json!({"sync": {}}))],
                Progressing,
                "a sync is requested",
            ),
            (
                vec![phase("Running")],
                Progressing,
                "sync Running: successfully synced",
            ),
            (
                vec![phase("Terminating")],
                Progressing,
                "sync Terminating: successfully synced",
            ),
            (
                vec![phase("Failed")],
                Degraded,
                "sync Failed: successfully synced",
            ),
            (
                vec![phase("Error")],
                Degraded,
                "sync Error: successfully synced",
            ),
            // The failure of an earlier revision is not one of this.
            (
                vec![
                    phase("Failed"),
                    ("/status/operationState/syncResult/source", old),
                    ("/status/sync/status", json!("OutOfSync")),
                ],
                Progressing,
                "it is OutOfSync",
            ),
            (
                vec![
                    phase("Error"),
                    ("/status/operationState/syncResult", Value::Null),
                ],
                Degraded,
                "sync Error: successfully synced",
            ),
            (
                vec![("/status/sync/status", Value::Null)],
                Progressing,
                "it is not yet compared",
            ),
            (
                vec![(
                    "/status/health",
                    json!({"status": "Degraded", "message": "no nodes"}),
                )],
                Degraded,
                "no nodes",
            ),
            (
                vec![("/status/health/status", json!("Progressing"))],
                Progressing,
                "",
            ),
            (
                vec![("/status/health/status", json!("Suspended"))],
                Suspended,
                "",
            ),
            (
                vec![("/status/health/status", json!("Missing"))],
                Missing,
                "",
            ),
            (
                vec![("/status/health/status", json!("Unknown"))],
                Unknown,
                "",
            ),
            (vec![("/status/health", Value::Null)], Progressing, ""),
        ] {
            check(&with(&synced(), &changes), status, message);
        }
    }

    #[test]
    fn what_go_leaves_out_makes_no_difference() {
        let spelled_out = with(
            &synced(),
            &[
                ("/spec/source/chart", json!("")),
                (
                    "/spec/source/directory",
                    json!({"recurse": false, "include": ""}),
                ),
                ("/spec/sources", json!([])),
            ],
        );
        check(&spelled_out, Healthy, "");
    }

    #[test]
    fn several_sources_are_compared_in_their_order() {
        let (a, b) = (json!({"repoURL": "a"}), json!({"repoURL": "b"}));
        let several = |compared: &[&Value]| {
            with(
                &synced(),
                &[
                    ("/spec/sources", json!([a, b])),
                    ("/spec/source", Value::Null),
                    ("/status/sync/comparedTo/source", Value::Null),
                    ("/status/sync/comparedTo/sources", json!(compared)),
                    ("/status/operationState", Value::Null),
                ],
            )
        };
        check(&several(&[&a, &b]), Healthy, "");
        let stale = "it is not yet compared with the source that it was given";
        check(&several(&[&b, &a]), Progressing, stale);
        check(&several(&[&a]), Progressing, stale);
    }

    #[test]
    fn what_was_applied_is_what_counts() {
        let applied = with(&synced(), &[("/spec/source/targetRevision", json!("v3"))]);
        let mut context = context();
        context.applied = Some(&applied);
        // The object as it was before our apply: all of it agrees with itself.
        let stale = "it is not yet compared with the source that it was given";
        check_in(&synced(), &context, Progressing, stale);
    }
}
