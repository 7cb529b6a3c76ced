//! Whether the next wave may begin, as far as one object is concerned.

use super::{Applied, Context, Health, HealthStatus, Observation, health, observation};
use serde_json::Value;
use std::time::Duration;

/// How long a wave may take before it counts as stalled: what Helm and Flux give
/// a release by default. Overridable; a stalled wave is still waited for.
pub const DEFAULT_WAVE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// What one object means for the waves after its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It holds nothing up.
    Pass,
    /// It is to be waited for.
    Wait {
        /// What it is at; `Suspended` means a person is waited for.
        status: HealthStatus,
        /// Why, for people.
        reason: String,
        /// When to look again although the object does not change.
        recheck_after: Option<Duration>,
    },
    /// It failed: waiting alone does not help.
    Fail {
        /// Why, for people.
        reason: String,
    },
}

/// Whether an object lets the next wave begin: it has observed what was applied,
/// and it is healthy.
///
/// A failure from before our apply is waited for, not reported: the apply may be
/// what mends it. `object` is none when it does not exist.
pub fn gate(object: Option<&Value>, applied: Option<Applied<'_>>, context: &Context<'_>) -> Gate {
    let Some(object) = object else {
        return wait(Health::missing());
    };
    let context = Context {
        applied: applied
            .map(|applied| applied.body.value())
            .or(context.applied),
        ..*context
    };
    let verdict = health(object, &context);
    if verdict.status == HealthStatus::Terminating {
        return wait(verdict);
    }
    let not_observed = match observation(object, applied) {
        _ if context.overrides.ignore || !verdict.gates => None,
        Observation::Observed => None,
        Observation::Older => Some("what was applied is not seen yet".to_owned()),
        Observation::Behind {
            generation,
            observed,
        } => {
            let observed = observed.map_or_else(|| "none".to_owned(), |seen| seen.to_string());
            Some(format!(
                "its controller has to observe generation {generation}, and has observed {observed}"
            ))
        }
        Observation::NotCompared => {
            Some("it is not yet compared with the source that it was given".to_owned())
        }
    };
    if let Some(reason) = not_observed {
        // A suspended object may never observe anything: the person is the blocker.
        if verdict.status == HealthStatus::Suspended {
            return wait(verdict);
        }
        return Gate::Wait {
            status: HealthStatus::Progressing,
            reason,
            recheck_after: verdict.recheck_after,
        };
    }
    match verdict.status {
        _ if !verdict.gates => Gate::Pass,
        HealthStatus::Healthy => Gate::Pass,
        HealthStatus::Degraded => Gate::Fail {
            reason: verdict.message,
        },
        _ => wait(verdict),
    }
}

fn wait(verdict: Health) -> Gate {
    Gate::Wait {
        status: verdict.status,
        reason: verdict.message,
        recheck_after: verdict.recheck_after,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{context, with};
    use super::*;
    use crate::ownership::APPLIED_ANNOTATION;
    use crate::text::Written;
    use serde_json::json;

    fn waits(gate: &Gate) -> (HealthStatus, &str) {
        match gate {
            Gate::Wait { status, reason, .. } => (*status, reason),
            other => panic!("{other:?}"),
        }
    }

    fn deployment(generation: i64, observed: i64, digest: &str) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"generation": generation, "annotations": {APPLIED_ANNOTATION: digest}},
            "spec": {"replicas": 1},
            "status": {
                "observedGeneration": observed, "replicas": 1, "updatedReplicas": 1,
                "readyReplicas": 1, "availableReplicas": 1,
                "conditions": [{"type": "Available", "status": "True"}],
            },
        })
    }

    #[test]
    fn health_from_before_the_apply_does_not_count() {
        let body = Written::from(json!({}));
        let applied = Applied {
            generation: Some(2),
            digest: "new",
            body: &body,
        };
        for (object, expected) in [
            (deployment(1, 1, "old"), "what was applied is not seen yet"),
            (deployment(1, 1, "new"), "what was applied is not seen yet"),
            (
                deployment(2, 1, "new"),
                "its controller has to observe generation 2, and has observed 1",
            ),
        ] {
            let found = gate(Some(&object), Some(applied), &context());
            assert_eq!(waits(&found), (HealthStatus::Progressing, expected));
        }
        let done = deployment(2, 2, "new");
        assert_eq!(gate(Some(&done), Some(applied), &context()), Gate::Pass);
        // Somebody else changed it since, and its controller has seen that too.
        let later = deployment(3, 3, "new");
        assert_eq!(gate(Some(&later), Some(applied), &context()), Gate::Pass);
    }

    #[test]
    fn a_failure_counts_once_it_is_of_what_was_applied() {
        let body = Written::from(json!({}));
        let late = json!([{"type": "Progressing", "status": "False",
            "reason": "ProgressDeadlineExceeded"}]);
        let applied = Applied {
            generation: Some(2),
            digest: "new",
            body: &body,
        };
        let failed = |observed| {
            with(
                &deployment(2, observed, "new"),
                &[("/status/conditions", late.clone())],
            )
        };
        let found = gate(Some(&failed(1)), Some(applied), &context());
        assert_eq!(waits(&found).0, HealthStatus::Progressing);
        let reason = "Progressing: ProgressDeadlineExceeded".to_owned();
        let found = gate(Some(&failed(2)), Some(applied), &context());
        assert_eq!(found, Gate::Fail { reason });
    }

    #[test]
    fn each_status_has_its_consequence() {
        let missing = gate(None, None, &context());
        assert_eq!(
            waits(&missing),
            (HealthStatus::Missing, "it does not exist")
        );
        let paused = with(&deployment(1, 1, "new"), &[("/spec/paused", json!(true))]);
        let found = gate(Some(&paused), None, &context());
        let expected = (HealthStatus::Suspended, "its rollout is paused");
        assert_eq!(waits(&found), expected);
        let going = with(
            &deployment(1, 1, "new"),
            &[("/metadata/deletionTimestamp", json!("2026-11-21T11:00:00Z"))],
        );
        let mut ignoring = context();
        ignoring.overrides.ignore = true;
        for context in [context(), ignoring] {
            let found = gate(Some(&going), None, &context);
            assert_eq!(waits(&found).0, HealthStatus::Terminating);
        }
        let behind = deployment(2, 1, "new");
        assert_eq!(gate(Some(&behind), None, &ignoring), Gate::Pass);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "lastTransitionTime": super::super::testing::NOW}]}});
        let Gate::Wait { recheck_after, .. } = gate(Some(&pod), None, &context()) else {
            panic!("a Pod that is pending holds up");
        };
        assert_eq!(recheck_after, Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_stall_counts_before_flux_moves_its_generation_on() {
        let release = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"generation": 2},
            "status": {"observedGeneration": 1, "conditions": [
                {"type": "Stalled", "status": "True", "reason": "RetriesExceeded",
                 "observedGeneration": 2}]},
        });
        let reason = "Stalled: RetriesExceeded".to_owned();
        assert_eq!(
            gate(Some(&release), None, &context()),
            Gate::Fail { reason }
        );
    }

    #[test]
    fn an_application_passes_only_with_the_source_that_was_applied() {
        let source = |revision: &str| json!({"repoURL": "r", "targetRevision": revision});
        let application = |spec: &str, compared: &str| {
            json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {"annotations": {APPLIED_ANNOTATION: "new"}},
                "spec": {"source": source(spec)},
                "status": {"sync": {"status": "Synced",
                    "comparedTo": {"source": source(compared)}},
                    "health": {"status": "Healthy"}},
            })
        };
        let body = Written::from(json!({"spec": {"source": source("v2")}}));
        let applied = Applied {
            generation: None,
            digest: "new",
            body: &body,
        };
        for (live, passes) in [
            (application("v2", "v2"), true),
            (application("v2", "v1"), false),
            (application("v1", "v1"), false),
        ] {
            let found = gate(Some(&live), Some(applied), &context());
            assert_eq!(found == Gate::Pass, passes, "{live:#}");
        }
    }
}
