//! Counting what is used of quotas, as the controller of a real cluster does.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use super::{Status, TABLE, in_namespace, scope, usage, write_status};
use crate::amounts::{self, Amounts};
use crate::quantity::Quantity;
use crate::resource::Resource;
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::{Change, Object};

/// Who owns what the controller writes.
const MANAGER: &str = "kube-controller-manager";

/// Whether a change can change what is used of quotas, apart from new objects, which are
/// charged. A quota concerns itself where something else of it changed than what is used:
/// the charges do that.
pub(crate) fn concerns(table: &str, change: &Change, now: SystemTime) -> bool {
    if change.removed {
        return true;
    }
    let Some(before) = &change.before else {
        return table == TABLE;
    };
    if table == TABLE {
        let after = change.after.fields(&["spec", "status"]);
        return is_behind(&after) || before.fields(&["spec"]).get("spec") != after.get("spec");
    }
    if !usage::can_change(table) {
        return false;
    }
    let ends = table == usage::PODS && change.after.is_terminating();
    let (before, after) = (before.value(), change.after.value());
    // Scopes look at the spec, and of claims at the status.
    let in_other_scope = before.get("spec") != after.get("spec")
        || (table == usage::CLAIMS && before.get("status") != after.get("status"));
    ends || in_other_scope || usage::of(table, &before, now) != usage::of(table, &after, now)
}

/// Whether a quota was written since it was counted.
pub(super) fn is_behind(quota: &Value) -> bool {
    let [spec, status] = ["/spec/hard", "/status/hard"].map(|hard| quota.pointer(hard));
    // Most often each amount is written as it is in the other.
    let is_counted = spec == status || hard(quota) == Status::of(quota).hard;
    !is_counted || quota.pointer("/status/used").is_none()
}

/// Writes down what is used of the quotas of a namespace.
///
/// # Errors
///
/// The last of what could not be written.
pub(crate) fn count(shared: &Arc<Shared>, namespace: &str) -> Result<(), ApiError> {
    let Some(resource) = shared.registry.find_table(TABLE) else {
        return Ok(());
    };
    let _counting = shared.counting.lock();
    let mut counted = Ok(());
    for quota in in_namespace(shared, namespace) {
        counted = refresh(shared, &resource, &quota).and(counted);
    }
    counted
}

/// Counts those quotas that were written since they were counted last. Nobody else counts
/// or charges meanwhile.
pub(super) fn bring_up_to_date(
    shared: &Arc<Shared>,
    resource: &Resource,
    quotas: &[Arc<Object>],
) -> Result<(), ApiError> {
    if shared.keeps_up_namespaces {
        let behind = quotas
            .iter()
            .filter(|quota| is_behind(&quota.fields(&["spec", "status"])));
        for quota in behind {
            refresh(shared, resource, quota)?;
        }
    }
    Ok(())
}

fn refresh(shared: &Arc<Shared>, resource: &Resource, quota: &Object) -> Result<(), ApiError> {
    // Most often nothing has changed, and the way of a write is long.
    let read = quota.fields(&["metadata", "spec", "status"]);
    let mut due = counted(shared, &read);
    if due.is_none() {
        return Ok(());
    }
    let is_same = |live: &Value| {
        let parts = ["spec", "status"];
        parts.iter().all(|part| live.get(part) == read.get(part))
    };
    write_status(shared, resource, MANAGER, quota.key(), |live| {
        let counted_now = || counted(shared, live);
        Ok(due.take().filter(|_| is_same(live)).or_else(counted_now))
    })
}

/// The status of a quota; none where it has just that.
pub(super) fn counted(shared: &Shared, quota: &Value) -> Option<Status> {
    let before = Status::of(quota);
    let hard = hard(quota);
    let mut used = used(shared, quota, &hard);
    // What nobody can count any more stays as it was counted last.
    for (name, amount) in &before.used {
        if hard.contains_key(name) && !used.contains_key(name) {
            used.insert(name.clone(), amount.clone());
        }
    }
    let uncounted = quota.pointer("/status/used").is_none();
    let same = before.hard == hard && before.used == used && !uncounted;
    (!same).then_some(Status { hard, used })
}

/// What the author of a quota bounds.
fn hard(quota: &Value) -> Amounts {
    amounts::read(quota.get("spec").unwrap_or(&Value::Null), "hard")
}

/// What is used of each amount that somebody counts.
fn used(shared: &Shared, quota: &Value, hard: &Amounts) -> Amounts {
    let namespace = crate::rest::meta::text(quota, "namespace");
    let tables: BTreeSet<&str> = hard.keys().flat_map(|name| usage::tables(name)).collect();
    let mut used = Amounts::new();
    let now = shared.clock.now();
    for table in tables {
        let resource = shared.registry.find_table(table);
        if !resource.is_some_and(|resource| usage::is_counted(&resource)) {
            continue;
        }
        let names = || hard.keys().filter(|name| usage::is_used_by(table, name));
        for name in names() {
            used.entry(name.clone())
                .or_insert_with(|| Quantity::from_integer(0));
        }
        for object in shared.store.in_namespace(table, namespace) {
            let value = object.value();
            if !scope::includes(quota, table, &value) {
                continue;
            }
            let mut own = usage::of(table, &value, now);
            own.retain(|name, _| names().any(|wanted| wanted == name));
            amounts::add(&mut used, &own);
        }
    }
    used
}
