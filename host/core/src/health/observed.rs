//! Whether a status speaks of what we applied.
//!
//! A Healthy that was there before us says nothing about us. Argo CD lets such
//! ones pass the gate of a wave on every update (issues 4577, 6708, 8778).

use super::argo;
use super::kinds::reports_generation;
use super::object::Object;
use crate::kind::GroupVersionKind;
use crate::ownership::APPLIED_ANNOTATION;
use crate::text::Written;
use serde_json::Value;

/// What is known of an apply of ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Applied<'a> {
    /// `metadata.generation` in the answer to it; none when the kind has none.
    pub generation: Option<i64>,
    /// Value of its annotation `reeve.dev/applied`.
    pub digest: &'a str,
    /// Its body.
    pub body: &'a Written,
}

/// Whether a status speaks of what was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// It does, or the kind has no status that could be of another time.
    Observed,
    /// This is an object from before our apply: what we look at is older.
    Older,
    /// Its controller has not come to this generation.
    Behind {
        /// The generation that we applied, or the object's own.
        generation: i64,
        /// The one that its controller reports.
        observed: Option<i64>,
    },
    /// Argo CD has not compared the Application with the source that we applied.
    NotCompared,
}

/// Whether the status of `object` speaks of what was applied; without `applied`,
/// of the object's own generation.
///
/// Where a kind reports `status.observedGeneration` it has to be at least the
/// generation that our apply made. Kinds that always report one are behind as
/// long as they report none; of others there is nothing to tell.
pub fn observation(object: &Value, applied: Option<Applied<'_>>) -> Observation {
    let live = Object(object);
    let generation = live.generation();
    if let Some(applied) = applied {
        let digest = live.text(&pointer(APPLIED_ANNOTATION));
        if digest != Some(applied.digest)
            || matches!((generation, applied.generation), (Some(live), Some(ours)) if live < ours)
        {
            return Observation::Older;
        }
    }
    let api_version = live.text("/apiVersion").unwrap_or("");
    let kind = live.text("/kind").unwrap_or("");
    let kind = GroupVersionKind::from_fields(api_version, kind);
    let is = |group: &str, name: &str| {
        kind.as_ref()
            .is_some_and(|kind| kind.group == group && kind.kind == name)
    };
    if is("argoproj.io", "Application") {
        let applied = applied.map_or(object, |applied| applied.body.value());
        return if argo::compares(Object(applied), live) {
            Observation::Observed
        } else {
            Observation::NotCompared
        };
    }
    // Never gets a status; the one that it is made with is behind for ever.
    if is("source.toolkit.fluxcd.io", "HelmRepository") && live.text("/spec/type") == Some("oci") {
        return Observation::Observed;
    }
    let Some(generation) = applied
        .and_then(|applied| applied.generation)
        .or(generation)
    else {
        return Observation::Observed;
    };
    // Flux may report a stall before it moves the generation of the status on.
    let stalled = live
        .conditions()
        .any(|c| c.kind == "Stalled" && c.is_true() && c.observed >= Some(generation));
    if is("helm.toolkit.fluxcd.io", "HelmRelease") && stalled {
        return Observation::Observed;
    }
    let observed = live.int("/status/observedGeneration");
    let reports = kind.is_some_and(|kind| reports_generation(&kind.group, &kind.kind));
    match observed {
        Some(observed) if observed >= generation => Observation::Observed,
        None if !reports => Observation::Observed,
        _ => Observation::Behind {
            generation,
            observed,
        },
    }
}

fn pointer(annotation: &str) -> String {
    format!("/metadata/annotations/{}", annotation.replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::with;
    use super::*;
    use serde_json::json;

    fn object(api_version: &str, kind: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"generation": 5, "annotations": {APPLIED_ANNOTATION: "sha256:b"}},
            "spec": {}, "status": {}})
    }

    #[test]
    fn a_generation_has_to_be_reached() {
        let behind = |generation, observed| Observation::Behind {
            generation,
            observed,
        };
        let deployment = object("apps/v1", "Deployment");
        let widget = object("example.com/v1", "Widget");
        let observing = |object: &Value, generation: i64| {
            with(object, &[("/status/observedGeneration", json!(generation))])
        };
        for (object, expected) in [
            (observing(&deployment, 5), Observation::Observed),
            (observing(&deployment, 6), Observation::Observed),
            (observing(&deployment, 4), behind(5, Some(4))),
            (deployment.clone(), behind(5, None)),
            (observing(&widget, 4), behind(5, Some(4))),
            (observing(&widget, 5), Observation::Observed),
            (widget, Observation::Observed),
            (
                object("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
                behind(5, None),
            ),
            (object("v1", "ConfigMap"), Observation::Observed),
            (json!({}), Observation::Observed),
            (json!(null), Observation::Observed),
        ] {
            assert_eq!(observation(&object, None), expected, "{object}");
        }
    }

    #[test]
    fn an_object_from_before_the_apply_is_not_looked_at() {
        let body = Written::from(json!({}));
        let live = with(
            &object("apps/v1", "Deployment"),
            &[("/status/observedGeneration", json!(5))],
        );
        for (generation, digest, expected) in [
            (Some(5), "sha256:b", Observation::Observed),
            (Some(6), "sha256:b", Observation::Older),
            (Some(5), "sha256:c", Observation::Older),
            (None, "sha256:b", Observation::Observed),
            // Somebody changed it since: what is observed includes our apply.
            (Some(4), "sha256:b", Observation::Observed),
        ] {
            let applied = Applied {
                generation,
                digest,
                body: &body,
            };
            let found = observation(&live, Some(applied));
            assert_eq!(found, expected, "{generation:?} {digest}");
        }
    }

    #[test]
    fn an_oci_repository_has_nothing_to_observe() {
        let repository = with(
            &object("source.toolkit.fluxcd.io/v1", "HelmRepository"),
            &[
                ("/spec/type", json!("oci")),
                ("/status/observedGeneration", json!(-1)),
            ],
        );
        assert_eq!(observation(&repository, None), Observation::Observed);
    }
}
