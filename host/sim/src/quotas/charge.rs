//! Holding new objects to the quotas of their namespace, in the words of the real
//! server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::MutexGuard;
use serde_json::Value;

use super::{Status, TABLE, count, in_namespace, scope, usage, write_status};
use crate::amounts::{self, Amounts};
use crate::kinds::edit::{items, text};
use crate::quantity::Quantity;
use crate::resource::Resource;
use crate::rest::meta;
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::Object;

/// Who owns what admission writes.
const MANAGER: &str = "kube-apiserver";

/// What is about to be written.
pub(crate) struct Charged<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) object: &'a Value,
    /// What it replaces.
    pub(crate) old: Option<&'a Value>,
    pub(crate) dry_run: bool,
}

/// Whether an object that is there is charged for a change of it, or of this part of it.
pub(crate) fn is_charged_again(resource: &Resource, subresource: Option<&str>) -> bool {
    match subresource {
        None => matches!(&*resource.table, usage::SERVICES | usage::CLAIMS),
        Some("resize") => *resource.table == *usage::PODS,
        Some(_) => false,
    }
}

/// Charges what is about to be written to the quotas of its namespace. Nothing is
/// written where it is only tried. Until the answer is dropped nobody else is charged, and
/// nothing is counted: what was charged has to be stored by then, or is counted away.
///
/// # Errors
///
/// 403 when a quota has no room for it, does not know how much it has, or wants to know
/// more of the object.
pub(crate) fn charge<'a>(
    shared: &'a Arc<Shared>,
    charged: &Charged<'_>,
) -> Result<Option<Charge<'a>>, ApiError> {
    let Charged {
        resource, object, ..
    } = *charged;
    if !usage::is_counted(resource) {
        return Ok(None);
    }
    let namespace = meta::text(object, "namespace");
    if !super::bounds_any(shared, namespace) {
        return Ok(None);
    }
    let counting = shared.counting.lock();
    let quotas = in_namespace(shared, namespace);
    let forbidden = |why: String| {
        let name = meta::text(object, "name");
        ApiError::forbidden(resource.about(name), &why)
    };
    let Some(quota_resource) = shared.registry.find_table(TABLE) else {
        return Ok(None);
    };
    // The controller may not have had its turn since a quota was written, by which
    // nobody should get more.
    if !charged.dry_run {
        count::bring_up_to_date(shared, &quota_resource, &quotas)?;
    }
    let quotas = in_namespace(shared, namespace);
    let mut charges = Vec::new();
    for quota in &quotas {
        let bill = bill(shared, charged, quota).map_err(forbidden)?;
        charges.extend(
            bill.filter(|bill| !bill.is_empty())
                .map(|bill| (quota, bill)),
        );
    }
    for (quota, bill) in &charges {
        let value = quota.value();
        let status = status(shared, charged, &value);
        add(&value, status, bill).map_err(forbidden)?;
    }
    if charged.dry_run || charges.is_empty() {
        return Ok(None);
    }
    let charge = Charge {
        shared,
        namespace: namespace.into(),
        is_kept: false,
        _counting: counting,
    };
    for (quota, bill) in charges {
        write_status(shared, &quota_resource, MANAGER, quota.key(), |live| {
            add(live, Status::of(live), &bill)
                .map(Some)
                .map_err(forbidden)
        })?;
    }
    Ok(Some(charge))
}

/// What was charged for an object that is about to be stored.
#[must_use = "it ends when this is dropped"]
pub(crate) struct Charge<'a> {
    shared: &'a Shared,
    namespace: Box<str>,
    is_kept: bool,
    _counting: MutexGuard<'a, ()>,
}

impl Charge<'_> {
    /// Says that the object is stored.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.shared.controllers.count_again(&self.namespace);
            self.shared.store.nudge();
        }
    }
}

/// What is to be added to the usage of a quota; none where that does not look at the
/// object.
fn bill(shared: &Shared, charged: &Charged<'_>, quota: &Object) -> Result<Option<Amounts>, String> {
    let Charged {
        resource,
        object,
        old,
        ..
    } = *charged;
    let table = &*resource.table;
    let value = quota.value();
    let status = status(shared, charged, &value);
    let bounded = status.hard.keys().map(String::as_str);
    let bounded: BTreeSet<&str> = bounded
        .filter(|name| usage::is_used_by(table, name))
        .collect();
    if bounded.is_empty() || !scope::includes(&value, table, object) {
        return Ok(None);
    }
    let name = quota.name();
    if table == usage::PODS {
        demand(object, &bounded).map_err(|why| format!("failed quota: {name}: {why}"))?;
    }
    if !bounded.iter().all(|name| status.used.contains_key(*name)) {
        let names = Vec::from_iter(bounded).join(",");
        return Err(format!(
            "status unknown for quota: {name}, resources: {names}"
        ));
    }
    let now = shared.clock.now();
    let mut bill = usage::of(table, object, now);
    let negative = bill.iter().filter(|(_, amount)| amount.is_negative());
    let negative: Vec<&str> = negative.map(|(name, _)| name.as_str()).collect();
    if !negative.is_empty() {
        let names = negative.join(",");
        return Err(format!("quota usage is negative for resource(s): {names}"));
    }
    if let Some(old) = old.filter(|old| scope::includes(&value, table, old)) {
        let before = usage::of(table, old, now);
        for (name, amount) in &mut bill {
            if let Some(before) = before.get(name) {
                *amount = amount.minus(before);
            }
        }
        // What is given back is counted once it is.
        bill.retain(|_, amount| !amount.is_negative());
    }
    bill.retain(|name, amount| !amount.is_zero() && status.hard.contains_key(name));
    Ok(Some(bill))
}

/// The status that a quota is held to. Who only tries writes none, and is held to what
/// would be counted.
fn status(shared: &Shared, charged: &Charged<'_>, quota: &Value) -> Status {
    let behind = charged.dry_run && shared.keeps_up_namespaces && count::is_behind(quota);
    let counted = behind.then(|| count::counted(shared, quota)).flatten();
    counted.unwrap_or_else(|| Status::of(quota))
}

/// The status of a quota with more used of it.
fn add(quota: &Value, mut status: Status, bill: &Amounts) -> Result<Status, String> {
    let before = status.used.clone();
    amounts::add(&mut status.used, bill);
    let exceeded = bill.keys().filter(|name| {
        let both = status.used.get(*name).zip(status.hard.get(*name));
        both.is_some_and(|(used, hard)| used > hard)
    });
    let exceeded: Vec<&String> = exceeded.collect();
    if exceeded.is_empty() {
        return Ok(status);
    }
    let shown = |amounts: &Amounts| {
        let amount = |name: &&String| amounts.get(*name).map(|amount| format!("{name}={amount}"));
        let amounts: Vec<String> = exceeded.iter().filter_map(amount).collect();
        amounts.join(",")
    };
    Err(format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        meta::text(quota, "name"),
        shown(bill),
        shown(&before),
        shown(&status.hard)
    ))
}

/// Refuses a pod with a container that leaves out what a quota bounds.
fn demand(pod: &Value, bounded: &BTreeSet<&str>) -> Result<(), String> {
    let demanded = usage::DEMANDED.into_iter();
    let demanded: Vec<&str> = demanded.filter(|name| bounded.contains(name)).collect();
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in items(spec, "containers").chain(items(spec, "initContainers")) {
        let asked = |field| amounts::asked(container, field);
        let named: BTreeMap<String, Quantity> =
            usage::computed(&asked("requests"), &asked("limits"));
        for name in demanded.iter().filter(|name| !named.contains_key(**name)) {
            missing
                .entry(name)
                .or_default()
                .insert(text(container, "name"));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.into_iter().map(|(name, containers)| {
        let containers = Vec::from_iter(containers).join(",");
        format!("{name} for: {containers}")
    });
    let missing: Vec<String> = missing.collect();
    Err(format!("must specify {}", missing.join("; ")))
}
