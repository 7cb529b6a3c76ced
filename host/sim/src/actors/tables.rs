//! The tables of the kinds that are acted for.

pub(super) const CLAIMS: &str = "persistentvolumeclaims";
pub(super) const CRON_JOBS: &str = "cronjobs.batch";
pub(super) const DAEMON_SETS: &str = "daemonsets.apps";
pub(super) const DEPLOYMENTS: &str = "deployments.apps";
pub(super) const DISRUPTION_BUDGETS: &str = "poddisruptionbudgets.policy";
pub(super) const ENDPOINTS: &str = "endpoints";
pub(super) const EVENTS: &str = "events";
pub(super) const JOBS: &str = "jobs.batch";
pub(super) const LEASES: &str = "leases.coordination.k8s.io";
pub(super) const NODES: &str = "nodes";
pub(super) const PODS: &str = "pods";
pub(super) const QUOTAS: &str = crate::quotas::TABLE;
pub(super) const REPLICA_SETS: &str = "replicasets.apps";
pub(super) const REVISIONS: &str = "controllerrevisions.apps";
pub(super) const SERVICES: &str = "services";
pub(super) const SERVICE_ACCOUNTS: &str = "serviceaccounts";
pub(super) const SLICES: &str = "endpointslices.discovery.k8s.io";
pub(super) const STATEFUL_SETS: &str = "statefulsets.apps";
pub(super) const STORAGE_CLASSES: &str = "storageclasses.storage.k8s.io";
pub(super) const VOLUMES: &str = "persistentvolumes";

/// The table of the kinds that control others, as owner references name them.
pub(super) fn of_controller(api_version: &str, kind: &str) -> Option<&'static str> {
    Some(match (api_version, kind) {
        ("apps/v1", "Deployment") => DEPLOYMENTS,
        ("apps/v1", "ReplicaSet") => REPLICA_SETS,
        ("apps/v1", "StatefulSet") => STATEFUL_SETS,
        ("apps/v1", "DaemonSet") => DAEMON_SETS,
        ("batch/v1", "Job") => JOBS,
        ("batch/v1", "CronJob") => CRON_JOBS,
        ("v1", "Service") => SERVICES,
        _ => return None,
    })
}
