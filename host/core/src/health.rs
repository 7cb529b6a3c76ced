//! How an object is doing, from the object alone.
//!
//! A verdict is a pure function of the object, of a few facts about its
//! surroundings and of the time. The rules follow kstatus (the library behind
//! `kubectl wait`-like tools and Flux) and the checks built into Argo CD; where
//! the two disagree, the module of the kind says whose rule it has and why.
//!
//! | Step | What decides |
//! |---|---|
//! | 1 | a deletion timestamp: [`HealthStatus::Terminating`] |
//! | 2 | a waiver: `ignore-healthcheck` |
//! | 3 | a [`Rule`] for this object |
//! | 4 | the rule of its kind, most of them after the first steps of kstatus |
//! | 5 | its conditions `Reconciling`, `Stalled` and `Ready`, as kstatus reads them |
//! | 6 | nothing to go by: it exists, and that is all one asked for |

mod argo;
mod batch;
mod claim;
mod daemon_set;
mod deployment;
mod disruption;
mod extension;
mod flux;
mod gate;
mod generic;
mod kinds;
mod network;
mod object;
mod observed;
mod olm;
mod options;
mod pod;
mod replica_set;
mod rule;
mod scaling;
mod sealed;
mod settle;
mod stateful_set;

pub use gate::{DEFAULT_WAVE_TIMEOUT, Gate, gate};
pub use kinds::is_static;
pub use observed::{Applied, Observation, observation};
pub use options::{HEALTH_ANNOTATION, Overrides};
pub use rule::{Rule, RuleError, RuleText};
pub use settle::{SETTLING, SILENCE, is_settling, settle};

use jiff::Timestamp;
use object::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// How an object is doing. In this order, the last is the worst: a group of
/// objects is as well as the worst of it (Argo CD's order, with `Terminating`
/// beside `Progressing`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HealthStatus {
    /// It does what it is for.
    Healthy,
    /// Somebody told it to stop; it waits for a person.
    Suspended,
    /// It is on its way.
    Progressing,
    /// It is being deleted.
    Terminating,
    /// It does not exist.
    Missing,
    /// It failed, and will not recover by waiting alone.
    Degraded,
    /// It cannot be told.
    Unknown,
}

/// As the Kubernetes API writes such words.
impl fmt::Display for HealthStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A verdict on one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// How it is doing.
    pub status: HealthStatus,
    /// Why, for people; empty where there is nothing to add.
    pub message: String,
    /// When the verdict may change although the object does not. None means only
    /// a change of the object changes it.
    pub recheck_after: Option<Duration>,
    /// Whether later waves wait for it. False for kinds whose health is worth
    /// showing but is not known in time, such as autoscalers without metrics.
    pub gates: bool,
}

impl Health {
    fn new(status: HealthStatus, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            recheck_after: None,
            gates: true,
        }
    }

    /// The verdict on an object that does not exist.
    pub fn missing() -> Self {
        Self::new(HealthStatus::Missing, "it does not exist")
    }

    fn healthy() -> Self {
        Self::new(HealthStatus::Healthy, "")
    }

    fn progressing(message: impl Into<String>) -> Self {
        Self::new(HealthStatus::Progressing, message)
    }

    fn degraded(message: impl Into<String>) -> Self {
        Self::new(HealthStatus::Degraded, message)
    }

    fn suspended(message: impl Into<String>) -> Self {
        Self::new(HealthStatus::Suspended, message)
    }

    fn unknown(message: impl Into<String>) -> Self {
        Self::new(HealthStatus::Unknown, message)
    }
}

/// When a storage class binds claims to volumes (`volumeBindingMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VolumeBinding {
    /// As soon as the claim exists.
    Immediate,
    /// Once a Pod uses the claim.
    WaitForFirstConsumer,
}

impl VolumeBinding {
    /// That of a StorageClass; none where it says something that is not known. To say
    /// nothing is to bind at once.
    pub fn of_class(class: &Value) -> Option<Self> {
        match class["volumeBindingMode"].as_str() {
            None | Some("Immediate") => Some(Self::Immediate),
            Some("WaitForFirstConsumer") => Some(Self::WaitForFirstConsumer),
            Some(_) => None,
        }
    }
}

/// What a verdict needs besides the object.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The present.
    pub now: Timestamp,
    /// What we applied, for kinds whose status repeats what it speaks of. None
    /// stands for the object's own `spec`.
    pub applied: Option<&'a Value>,
    /// Binding mode of the storage class that a claim names; none when unknown.
    pub volume_binding: Option<VolumeBinding>,
    /// What annotations waive or ask for.
    pub overrides: Overrides,
    /// A rule for this object, in place of that of its kind.
    pub rule: Option<&'a Rule>,
}

impl Context<'_> {
    /// A context that knows nothing but the time.
    pub fn at(now: Timestamp) -> Self {
        Self {
            now,
            applied: None,
            volume_binding: None,
            overrides: Overrides::default(),
            rule: None,
        }
    }
}

/// How a live object is doing.
///
/// Never panics and always answers, whatever the object looks like: a field of
/// an unexpected type counts as absent. `Degraded` is said only where waiting
/// does not help by the object's own account.
pub fn health(object: &Value, context: &Context<'_>) -> Health {
    if Object(object).deleting() {
        return Health::new(HealthStatus::Terminating, "it is being deleted");
    }
    outcome(object, context)
}

/// As [`health()`], also of an object that is being deleted: how it was doing.
pub(crate) fn outcome(object: &Value, context: &Context<'_>) -> Health {
    let object = Object(object);
    if context.overrides.ignore {
        return Health::new(HealthStatus::Healthy, "its health is ignored, as annotated");
    }
    if let Some(rule) = context.rule {
        return generic::behind(object).unwrap_or_else(|| rule.evaluate(object.0));
    }
    kinds::health(object, context)
}

/// The health of a group: that of its worst member, of which the first speaks.
/// An empty group is healthy.
pub fn worst<'a>(group: impl IntoIterator<Item = &'a Health>) -> Option<&'a Health> {
    group.into_iter().reduce(|worst, next| {
        if next.status > worst.status {
            next
        } else {
            worst
        }
    })
}

#[cfg(test)]
mod testing {
    //! One check for the tables of all kinds.

    use super::{Context, HealthStatus, health};
    use serde_json::Value;

    /// What the tests take for the present.
    pub(super) const NOW: &str = "2026-11-21T12:00:00Z";

    pub(super) fn context<'a>() -> Context<'a> {
        Context::at(NOW.parse().unwrap())
    }

    /// Checks status and message of an object.
    pub(super) fn check(object: &Value, status: HealthStatus, message: &str) {
        check_in(object, &context(), status, message);
    }

    pub(super) fn check_in(
        object: &Value,
        context: &Context<'_>,
        status: HealthStatus,
        message: &str,
    ) {
        let found = health(object, context);
        assert_eq!(
            (found.status, found.message.as_str()),
            (status, message),
            "{object:#}"
        );
    }

    /// An object with some of its parts replaced, by JSON Pointer. Null removes.
    pub(super) fn with(object: &Value, changes: &[(&str, Value)]) -> Value {
        let mut object = object.clone();
        for (pointer, value) in changes {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            let parent = object
                .pointer_mut(parent)
                .and_then(Value::as_object_mut)
                .unwrap_or_else(|| panic!("{pointer} has no parent"));
            if value.is_null() {
                parent.remove(field);
            } else {
                parent.insert(field.to_owned(), value.clone());
            }
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{check, check_in, context};
    use super::*;
    use HealthStatus::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn deletion_comes_before_everything() {
        let mut context = context();
        context.overrides.ignore = true;
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"deletionTimestamp": "2026-11-21T11:00:00Z"}});
        check_in(&object, &context, Terminating, "it is being deleted");
    }

    #[test]
    fn a_waiver_comes_before_the_kind() {
        let mut context = context();
        let object = json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Failed"}});
        check_in(&object, &context, Degraded, "it failed");
        context.overrides.ignore = true;
        let message = "its health is ignored, as annotated";
        check_in(&object, &context, Healthy, message);
    }

    #[test]
    fn existence_is_enough_where_there_is_nothing_to_go_by() {
        for (api_version, kind) in [
            ("v1", "ConfigMap"),
            ("v1", "Secret"),
            ("v1", "ServiceAccount"),
            ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
            ("example.com/v1", "Widget"),
        ] {
            check(
                &json!({"apiVersion": api_version, "kind": kind}),
                Healthy,
                "",
            );
        }
    }

    #[test]
    fn a_group_is_as_well_as_its_worst() {
        let of = |statuses: &[HealthStatus]| {
            let group: Vec<_> = statuses.iter().map(|s| Health::new(*s, "")).collect();
            worst(&group).map(|health| health.status)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[Healthy, Suspended]), Some(Suspended));
        assert_eq!(of(&[Progressing, Suspended]), Some(Progressing));
        assert_eq!(of(&[Missing, Progressing]), Some(Missing));
        assert_eq!(of(&[Missing, Degraded, Healthy]), Some(Degraded));
        assert_eq!(of(&[Degraded, Unknown]), Some(Unknown));
    }

    /// JSON of any shape, with fields that rules look at in many places.
    fn anything() -> impl Strategy<Value = Value> {
        let words = prop::sample::select(vec![
            "True",
            "False",
            "Unknown",
            "Ready",
            "Progressing",
            "Running",
            "Pending",
            "OnDelete",
            "LoadBalancer",
            "Failed",
            "",
            NOW_TEXT,
            "Complete",
            "CrashLoopBackOff",
            "oci",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-3_i64..4).prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            words.prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        let names = prop::sample::select(vec![
            "metadata",
            "spec",
            "status",
            "conditions",
            "type",
            "reason",
            "message",
            "phase",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "generation",
            "observedGeneration",
            "lastTransitionTime",
            "containerStatuses",
            "state",
            "waiting",
            "updateStrategy",
            "rollingUpdate",
            "partition",
            "loadBalancer",
            "ingress",
            "sync",
            "comparedTo",
            "source",
            "operationState",
            "suspend",
            "history",
            "connectionState",
            "desiredNumberScheduled",
            "progressDeadlineSeconds",
            "health",
            "paused",
            "name",
            "creationTimestamp",
            "restartPolicy",
            "lastState",
            "terminated",
            "annotations",
        ]);
        leaf.prop_recursive(6, 96, 8, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    const NOW_TEXT: &str = super::testing::NOW;

    proptest! {
        #[test]
        fn every_kind_answers_whatever_the_object_looks_like(
            parts in (anything(), anything(), anything()),
            kind in 0..kinds::known().count(),
            binding in prop::option::of(Just(VolumeBinding::WaitForFirstConsumer)),
            now in -100_000_000_000_i64..100_000_000_000,
        ) {
            let (group, kind) = kinds::known().nth(kind).unwrap();
            let api_version = if group.is_empty() { "v1".into() } else { format!("{group}/v1") };
            let (metadata, spec, status) = parts;
            let object = json!({"apiVersion": api_version, "kind": kind,
                "metadata": metadata, "spec": spec, "status": status});
            let mut context = Context::at(Timestamp::from_second(now).unwrap());
            context.volume_binding = binding;
            context.applied = Some(&spec);
            let first = health(&object, &context);
            prop_assert_eq!(&first, &health(&object, &context));
            let _ = observation(&object, None);
        }
    }
}
