//! The order of kinds: what others need comes first.
//!
//! It is Argo CD's, which places kinds that it does not know last. Two things
//! differ. Webhook configurations come after all else: one that is there before
//! the workload that answers for it refuses every object in between (Flux has
//! them last, too). And a kind is known by its group, so that a Service of
//! Knative is not taken for one of the core.

use crate::kind::GroupVersionKind;

const ORDER: [(&str, &[&str]); 32] = [
    ("Namespace", CORE),
    ("NetworkPolicy", &["networking.k8s.io", "extensions"]),
    ("ResourceQuota", CORE),
    ("LimitRange", CORE),
    ("PodSecurityPolicy", &["policy", "extensions"]),
    ("PodDisruptionBudget", &["policy"]),
    ("ServiceAccount", CORE),
    ("Secret", CORE),
    ("ConfigMap", CORE),
    ("StorageClass", &["storage.k8s.io"]),
    ("PersistentVolume", CORE),
    ("PersistentVolumeClaim", CORE),
    ("CustomResourceDefinition", &["apiextensions.k8s.io"]),
    ("ClusterRole", RBAC),
    ("ClusterRoleBinding", RBAC),
    ("Role", RBAC),
    ("RoleBinding", RBAC),
    ("Service", CORE),
    ("DaemonSet", APPS),
    ("Pod", CORE),
    ("ReplicationController", CORE),
    ("ReplicaSet", APPS),
    ("Deployment", APPS),
    ("HorizontalPodAutoscaler", &["autoscaling"]),
    ("StatefulSet", APPS),
    ("Job", BATCH),
    ("CronJob", BATCH),
    ("IngressClass", &["networking.k8s.io"]),
    ("Ingress", &["networking.k8s.io", "extensions"]),
    ("APIService", &["apiregistration.k8s.io"]),
    ("MutatingWebhookConfiguration", ADMISSION),
    ("ValidatingWebhookConfiguration", ADMISSION),
];

const CORE: &[&str] = &[""];
const RBAC: &[&str] = &["rbac.authorization.k8s.io"];
const APPS: &[&str] = &["apps", "extensions"];
const BATCH: &[&str] = &["batch"];
const ADMISSION: &[&str] = &["admissionregistration.k8s.io"];

/// Where the webhook configurations begin; kinds that are not listed go before.
const WEBHOOKS: usize = ORDER.len() - 2;

/// The place of a kind: lower is applied earlier.
pub(super) fn rank(kind: &GroupVersionKind) -> usize {
    let listed = ORDER
        .iter()
        .position(|(name, groups)| *name == kind.kind && groups.contains(&kind.group.as_str()));
    match listed {
        Some(place) if place >= WEBHOOKS => place + 1,
        Some(place) => place,
        None => WEBHOOKS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_need_comes_first() {
        let expected = [
            ("", "Namespace"),
            ("networking.k8s.io", "NetworkPolicy"),
            ("", "ServiceAccount"),
            ("", "Secret"),
            ("", "ConfigMap"),
            ("", "PersistentVolumeClaim"),
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("rbac.authorization.k8s.io", "ClusterRole"),
            ("rbac.authorization.k8s.io", "RoleBinding"),
            ("", "Service"),
            ("apps", "DaemonSet"),
            ("", "Pod"),
            ("apps", "Deployment"),
            ("apps", "StatefulSet"),
            ("batch", "Job"),
            ("networking.k8s.io", "Ingress"),
            ("apiregistration.k8s.io", "APIService"),
            ("serving.knative.dev", "Service"),
            (
                "admissionregistration.k8s.io",
                "MutatingWebhookConfiguration",
            ),
            (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
            ),
        ];
        let ranks: Vec<_> = expected
            .iter()
            .map(|(group, kind)| rank(&GroupVersionKind::new(*group, "v1", *kind)))
            .collect();
        assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]), "{ranks:?}");
    }

    #[test]
    fn unknown_kinds_share_a_place() {
        let of = |group, kind| rank(&GroupVersionKind::new(group, "v1", kind));
        assert_eq!(
            of("example.com", "Widget"),
            of("argoproj.io", "Application")
        );
    }
}
