//! Which rule is whose.

use super::object::Object;
use super::{Context, Health, argo, batch, claim, daemon_set, deployment, disruption, extension};
use super::{flux, generic, network, olm, pod, replica_set, scaling, sealed, stateful_set};
use crate::kind::GroupVersionKind;

/// A rule: what an object's own fields say.
type Check = fn(Object<'_>, &Context<'_>) -> Health;

/// What comes before a rule.
#[derive(Clone, Copy)]
enum Before {
    /// The steps of kstatus.
    Generic,
    /// The same, and a status must be there at all: the controllers of these
    /// kinds always report the generation they have seen.
    Observed,
    /// Nothing: the rule orders these steps itself.
    Nothing,
}

use Before::{Generic, Nothing, Observed};

/// One rule: kind, what comes before, and the rule itself.
type Row = (&'static str, Before, Check);

/// The rules by group and kind. Any version of a kind has the same rule.
const RULES: &[(&str, &[Row])] = &[
    (
        "",
        &[
            ("PersistentVolumeClaim", Generic, claim::claim),
            ("Pod", Generic, pod::pod),
            ("Service", Generic, network::service),
        ],
    ),
    (
        "apiextensions.k8s.io",
        &[("CustomResourceDefinition", Generic, extension::definition)],
    ),
    (
        "apiregistration.k8s.io",
        &[("APIService", Generic, extension::api_service)],
    ),
    (
        "apps",
        &[
            ("DaemonSet", Observed, daemon_set::daemon_set),
            ("Deployment", Observed, deployment::deployment),
            ("ReplicaSet", Observed, replica_set::replica_set),
            ("StatefulSet", Observed, stateful_set::stateful_set),
        ],
    ),
    (
        "argoproj.io",
        &[("Application", Nothing, argo::application)],
    ),
    (
        "autoscaling",
        &[("HorizontalPodAutoscaler", Generic, scaling::autoscaler)],
    ),
    (
        "batch",
        &[
            ("CronJob", Generic, batch::cron_job),
            ("Job", Generic, batch::job),
        ],
    ),
    (
        "bitnami.com",
        &[("SealedSecret", Generic, sealed::sealed_secret)],
    ),
    ("extensions", &[("Ingress", Generic, network::ingress)]),
    (
        "helm.toolkit.fluxcd.io",
        &[("HelmRelease", Nothing, flux::helm_release)],
    ),
    (
        "networking.k8s.io",
        &[("Ingress", Generic, network::ingress)],
    ),
    (
        "operators.coreos.com",
        &[
            ("CatalogSource", Generic, olm::catalog_source),
            ("Subscription", Generic, olm::subscription),
        ],
    ),
    (
        "policy",
        &[("PodDisruptionBudget", Observed, disruption::budget)],
    ),
    (
        "source.toolkit.fluxcd.io",
        &[("HelmRepository", Nothing, flux::helm_repository)],
    ),
];

fn rules() -> impl Iterator<Item = (&'static str, &'static Row)> {
    RULES
        .iter()
        .flat_map(|(group, rows)| rows.iter().map(move |row| (*group, row)))
}

/// What the rule of an object's kind says, or the generic one.
pub(super) fn health(object: Object<'_>, context: &Context<'_>) -> Health {
    let api_version = object.text("/apiVersion").unwrap_or("");
    let kind = object.text("/kind").unwrap_or("");
    let known = GroupVersionKind::from_fields(api_version, kind).and_then(|kind| {
        rules().find(|(group, (name, ..))| *group == kind.group && *name == kind.kind)
    });
    let Some((_, (_, before, check))) = known else {
        return generic::before(object).unwrap_or_else(|| generic::after(object));
    };
    let ended = match before {
        Generic => generic::before(object),
        Observed => generic::before_observed(object),
        Nothing => None,
    };
    ended.unwrap_or_else(|| check(object, context))
}

/// Whether a kind has a rule of its own.
pub(super) fn has_rule(kind: &GroupVersionKind) -> bool {
    rules().any(|(group, (name, ..))| *group == kind.group && *name == kind.kind)
}

/// Whether the controllers of a kind always report the generation they have seen.
pub(super) fn reports_generation(group: &str, kind: &str) -> bool {
    group == "helm.toolkit.fluxcd.io" && kind == "HelmRelease"
        || rules().any(|(known_group, (known, before, _))| {
            known_group == group && *known == kind && matches!(before, Observed)
        })
}

/// Kinds that nothing works on: they are healthy as soon as they exist, and their
/// status, where they have one, says nothing about that.
const STATIC: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "ResourceQuota",
            "Secret",
            "ServiceAccount",
        ],
    ),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("coordination.k8s.io", &["Lease"]),
    ("networking.k8s.io", &["IngressClass", "NetworkPolicy"]),
    (
        "rbac.authorization.k8s.io",
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    ),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("storage.k8s.io", &["StorageClass"]),
];

/// Whether an object of this kind is healthy by existing, so that nobody needs to
/// look into it.
pub fn is_static(kind: &GroupVersionKind) -> bool {
    let mut groups = STATIC.iter();
    groups.any(|(group, kinds)| *group == kind.group && kinds.contains(&kind.kind.as_str()))
}

/// Group and kind of everything that has a rule.
#[cfg(test)]
pub(super) fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    rules().map(|(group, (kind, ..))| (group, *kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_rule_in_order() {
        let mut sorted: Vec<_> = known().collect();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted, known().collect::<Vec<_>>());
    }

    #[test]
    fn what_nothing_works_on_has_no_rule_and_is_healthy() {
        for (group, kinds) in STATIC {
            for kind in *kinds {
                assert!(!known().any(|rule| rule == (*group, *kind)), "{kind}");
                let version = if group.is_empty() { "v1" } else { "x/v1" };
                let object = serde_json::json!({"apiVersion": version.replace('x', group),
                    "kind": kind, "metadata": {"name": "a"}});
                let context = Context::at(jiff::Timestamp::UNIX_EPOCH);
                let verdict = health(Object(&object), &context);
                assert_eq!(
                    verdict.status,
                    super::super::HealthStatus::Healthy,
                    "{kind}"
                );
                let kind = GroupVersionKind::new(*group, "v1", *kind);
                assert!(is_static(&kind));
            }
        }
        assert!(!is_static(&GroupVersionKind::new(
            "apps",
            "v1",
            "Deployment"
        )));
    }
}
