//! Custom resources of which nothing tells whether their controller has come to
//! what was applied.
//!
//! kstatus takes an object without a status for one that is as it should be. Right
//! after an apply that is nearly always wrong, and a wave behind it would begin at
//! once; but there are kinds that never get a status, and none can be waited for
//! for ever. So such objects are given a moment, as Argo CD gives every wave.

use super::Gate;
use super::kinds::{has_rule, is_static};
use super::object::Object;
use crate::kind::GroupVersionKind;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::time::Duration;

/// A controller that reports at all has reported something after this time.
pub const SILENCE: Duration = Duration::from_secs(10);

/// A status that does not say which generation it is of is taken for that of the
/// newest after this time: what Argo CD waits between waves
/// (`ARGOCD_SYNC_WAVE_DELAY`).
pub const SETTLING: Duration = Duration::from_secs(2);

/// What is said of an object whose controller is silent.
const SILENT: &str = "its controller has not reported anything yet";
/// What is said of one whose status may be of before.
const UNSEEN: &str = "its controller may not have seen the change yet";

/// Whether a wait for this reason is one of [`settle`]: a moment's grace, which
/// matters where something waits behind it, and is no news elsewhere.
pub fn is_settling(reason: &str) -> bool {
    [SILENT, UNSEEN].contains(&reason)
}

/// Whether an object that passes its gate is to be given a moment all the same.
///
/// `applied_at` is when we last applied it, by the API server's clock; its creation
/// where that is not known. A time that lies far ahead is of a clock that is wrong,
/// and delays nothing.
pub fn settle(
    object: &Value,
    applied_at: impl FnOnce() -> Option<Timestamp>,
    now: Timestamp,
) -> Option<Gate> {
    let live = Object(object);
    let api_version = live.text("/apiVersion").unwrap_or_default();
    let kind = live.text("/kind").unwrap_or_default();
    let kind = GroupVersionKind::from_fields(api_version, kind)?;
    let custom = kind.group.contains('.') && !kind.group.ends_with(".k8s.io");
    if !custom || has_rule(&kind) || is_static(&kind) {
        return None;
    }
    if live.int("/status/observedGeneration").is_some() {
        return None;
    }
    let silent = object
        .get("status")
        .and_then(Value::as_object)
        .is_none_or(serde_json::Map::is_empty);
    let created = || live.text("/metadata/creationTimestamp")?.parse().ok();
    let since: Timestamp = applied_at().or_else(created)?;
    let (patience, reason) = if silent {
        (SILENCE, SILENT)
    } else {
        (SETTLING, UNSEEN)
    };
    let elapsed = now.duration_since(since);
    let slack = SignedDuration::try_from(patience).ok()?;
    if elapsed >= slack || elapsed <= -slack {
        return None;
    }
    let left = slack - elapsed.max(SignedDuration::ZERO);
    Some(Gate::Wait {
        status: super::HealthStatus::Progressing,
        reason: reason.to_owned(),
        recheck_after: Duration::try_from(left).ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(kind: (&str, &str), status: &Value, age: i64, expected: Option<u64>) {
        let object = json!({"apiVersion": kind.0, "kind": kind.1, "status": status,
            "metadata": {"creationTimestamp": "2026-11-21T12:00:00Z"}});
        let created: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let now = created + SignedDuration::from_secs(age);
        let left = match settle(&object, || None, now) {
            Some(Gate::Wait { recheck_after, .. }) => recheck_after.map(|left| left.as_secs()),
            None => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(left, expected, "{object} after {age} s");
    }

    #[test]
    fn silence_means_nothing_for_a_while() {
        let widget = ("example.com/v1", "Widget");
        let (none, empty) = (json!(null), json!({}));
        let speaks = json!({"phase": "Ready"});
        let counts = json!({"observedGeneration": 1});
        for (status, age, expected) in [
            (&none, 0, Some(10)),
            (&empty, 9, Some(1)),
            (&none, 10, None),
            (&speaks, 0, Some(2)),
            (&speaks, 1, Some(1)),
            (&speaks, 2, None),
            (&counts, 0, None),
            // Clocks differ a little, or are wrong.
            (&none, -3, Some(10)),
            (&none, -3600, None),
        ] {
            check(widget, status, age, expected);
        }
        for kind in [
            ("v1", "ConfigMap"),
            ("apps/v1", "Deployment"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
            ("argoproj.io/v1alpha1", "Application"),
            ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
        ] {
            check(kind, &none, 0, None);
        }
    }

    #[test]
    fn the_last_apply_counts() {
        let object = json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"creationTimestamp": "2026-11-21T12:00:00Z"}});
        let now: Timestamp = "2026-11-21T13:00:00Z".parse().unwrap();
        assert_eq!(settle(&object, || None, now), None);
        assert!(settle(&object, || Some(now), now).is_some());
        assert_eq!(settle(&json!({}), || Some(now), now), None);
    }
}
