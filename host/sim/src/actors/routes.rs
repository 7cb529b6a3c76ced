//! Which actor looks at which object, and what a change of one means to others.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::context::{self, Context};
use super::index::{Controller, Target};
use super::script::is_ignored;
use super::tables::{
    CLAIMS, CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, DISRUPTION_BUDGETS, ENDPOINTS, JOBS, LEASES,
    NODES, PODS, QUOTAS, REPLICA_SETS, REVISIONS, SERVICE_ACCOUNTS, SERVICES, SLICES,
    STATEFUL_SETS, STORAGE_CLASSES, VOLUMES,
};
use super::{
    budget, claim, cron_job, custom, daemon_set, delivery, deployment, endpoints, job, lease,
    load_balancer, pod, replica_set, stateful_set, volume,
};
use crate::kinds::edit::{items, text, text_at};
use crate::rest::meta;
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::Change;

/// The tables whose changes somebody acts upon.
const TABLES: &[&str] = &[
    CLAIMS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    ENDPOINTS,
    JOBS,
    LEASES,
    NODES,
    PODS,
    QUOTAS,
    REPLICA_SETS,
    REVISIONS,
    SERVICE_ACCOUNTS,
    SERVICES,
    SLICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUMES,
];

/// Whether anybody acts upon changes of a table.
pub(super) fn concerns(shared: &Shared, table: &str) -> bool {
    TABLES.contains(&table)
        || shared
            .registry
            .find_table(table)
            .is_some_and(|resource| resource.is_custom())
}

/// Looks at one object and does what it needs.
pub(super) fn reconcile(context: &mut Context<'_>, target: &Target) -> Result<(), ApiError> {
    let Some(object) = context.get(&target.table, &target.key) else {
        return match &*target.table {
            SERVICES => endpoints::gone(context, &target.key),
            _ => Ok(()),
        };
    };
    if is_ignored(&object) {
        return Ok(());
    }
    match &*target.table {
        CLAIMS => claim::reconcile(context, &object),
        CRON_JOBS => cron_job::reconcile(context, &object),
        DAEMON_SETS => daemon_set::reconcile(context, &object),
        DEPLOYMENTS => deployment::reconcile(context, &object),
        DISRUPTION_BUDGETS => budget::reconcile(context, &object),
        JOBS => job::reconcile(context, &object),
        NODES => lease::reconcile(context, &object),
        PODS => pod::reconcile(context, &object),
        REPLICA_SETS => replica_set::reconcile(context, &object),
        SERVICES => {
            load_balancer::reconcile(context, &object)?;
            endpoints::reconcile(context, &object)
        }
        STATEFUL_SETS => stateful_set::reconcile(context, &object),
        VOLUMES => volume::reconcile(context, &object),
        // Read by others.
        ENDPOINTS | LEASES | QUOTAS | REVISIONS | SERVICE_ACCOUNTS | SLICES | STORAGE_CLASSES => {
            Ok(())
        }
        table => custom::reconcile(context, table, &object),
    }
}

/// Adds those to `dirty` who have to be looked at because of a change.
pub(super) fn touched(
    shared: &Arc<Shared>,
    target: &Target,
    change: &Change,
    after: &Value,
    controller: Option<&Controller>,
    dirty: &mut BTreeSet<Target>,
) {
    let namespace = change.after.namespace();
    let before = change.before.as_ref().map(|before| before.value());
    let former = before.as_ref().and_then(super::index::controller);
    for controller in controller.into_iter().chain(former.as_ref()) {
        dirty.extend(controller.target.clone());
    }
    let mut all = |table: &str, wanted: &dyn Fn(&Value) -> bool| {
        for object in context::list(shared, table, namespace) {
            if wanted(&object) {
                dirty.insert(Target::new(table, &context::key(&object)));
            }
        }
    };
    match &*target.table {
        PODS => {
            let selects = |object: &Value| {
                let versions = [Some(after), before.as_ref()];
                let mut versions = versions.into_iter().flatten();
                versions.any(|pod| selects(object, pod))
            };
            all(SERVICES, &selects);
            all(DISRUPTION_BUDGETS, &selects);
            if controller.is_none() && former.is_none() {
                for table in [REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS] {
                    all(table, &selects);
                }
            }
            for claim in claims_of(after) {
                dirty.insert(Target::new(CLAIMS, &format!("{namespace}/{claim}")));
            }
        }
        REPLICA_SETS if controller.is_none() => all(DEPLOYMENTS, &|d| selects(d, after)),
        CLAIMS => {
            let name = meta::text(after, "name");
            all(PODS, &|pod| claims_of(pod).any(|claim| claim == name));
            let volume = text_at(after, "/spec/volumeName");
            if !volume.is_empty() {
                dirty.insert(Target::new(VOLUMES, volume));
            }
        }
        VOLUMES => {
            let claim = |field: &str| text_at(after, &format!("/spec/claimRef/{field}"));
            if claim("name").is_empty() {
                pending_claims(shared, dirty);
            } else {
                let key = format!("{}/{}", claim("namespace"), claim("name"));
                dirty.insert(Target::new(CLAIMS, &key));
            }
        }
        SERVICES if change.removed => drop(dirty.insert(target.clone())),
        // Without it, they could make no pods.
        SERVICE_ACCOUNTS if change.before.is_none() => {
            let name = meta::text(after, "name");
            for table in [REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS] {
                all(table, &|workload| {
                    text_at(workload, "/spec/template/spec/serviceAccountName") == name
                });
            }
        }
        // There may be room now for pods that were refused.
        QUOTAS if change.removed || crate::quotas::gives_room(before.as_ref(), after) => {
            for table in [DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS] {
                all(table, &|_| true);
            }
        }
        STORAGE_CLASSES => pending_claims(shared, dirty),
        // A kubelet that lives makes another one.
        LEASES if change.removed && namespace == lease::NAMESPACE => {
            dirty.insert(Target::new(NODES, meta::text(after, "name")));
        }
        NODES => {
            for table in [DAEMON_SETS, PODS] {
                for object in context::list(shared, table, "") {
                    dirty.insert(Target::new(table, &context::key(&object)));
                }
            }
        }
        _ => delivery::touched(shared, target, after, dirty),
    }
}

/// Whether a Service, budget or workload selects a pod.
fn selects(object: &Value, pod: &Value) -> bool {
    super::template::selector(object)
        .is_some_and(|selector| selector.matches(super::template::labels(pod)))
}

fn pending_claims(shared: &Arc<Shared>, dirty: &mut BTreeSet<Target>) {
    for claim in context::list(shared, CLAIMS, "") {
        if text_at(&claim, "/status/phase") == "Pending" {
            dirty.insert(Target::new(CLAIMS, &context::key(&claim)));
        }
    }
}

/// The names of the claims that a pod mounts.
pub(super) fn claims_of(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod
        .get("spec")
        .into_iter()
        .flat_map(|spec| items(spec, "volumes"));
    volumes
        .filter_map(|volume| volume.get("persistentVolumeClaim"))
        .map(|claim| text(claim, "claimName"))
}
