//! Carries out a plan: the only place from which the cluster is changed for a
//! plugin.

use crate::active::Active;
use crate::journal::{Deed, Journal};
use crate::metrics::{Metrics, Verb, WriteResult};
use crate::problem::{Problem, chain};
use futures::{FutureExt as _, StreamExt as _};
use reeve_api::{Operation, Reason};
use reeve_cluster::{Apply, Cluster, Delete, Deletion, Object, Resource, Store, WriteError};
use reeve_core::outcome::{Absence, Precondition};
use reeve_core::ownership::{
    PLUGIN_LABEL, PRIMARY_ANNOTATION, Stamped, UNIT_LABEL, plugin_label, unit_label,
};
use reeve_core::plan::{ApplyReason, Plan, Step, Wanted, Withdrawal};
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use serde_json::{Value, json};
use std::borrow::Cow;
use tokio::time::Instant;

/// Writes of one unit that are under way at once.
const WRITES_AT_ONCE: usize = 4;

/// What came of a plan.
#[derive(Debug, Default)]
pub(crate) struct Executed {
    /// Whether a field of ours was taken back.
    pub(crate) drifted: bool,
    /// What did not work. The other steps were carried out all the same.
    pub(crate) problems: Vec<Problem>,
}

/// Carries out plans on behalf of plugins.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) cluster: Cluster,
    pub(crate) store: Store,
    pub(crate) journal: Journal,
    pub(crate) metrics: Metrics,
}

impl Executor {
    /// Carries out a plan stage by stage. A step that fails does not keep the
    /// others from being tried, except that nothing is deleted after a failure:
    /// what replaces the deleted may be what failed. `known` are the objects that
    /// this agent has wanted for the unit before.
    pub(crate) async fn execute(
        &self,
        active: &Active,
        unit: &UnitKey,
        known: &[ObjectReference],
        wanted: &[Wanted],
        plan: Plan,
    ) -> Executed {
        let mut executed = Executed::default();
        for stage in plan.stages {
            let failed = !executed.problems.is_empty();
            let mut steps = Vec::with_capacity(stage.len());
            for step in &stage {
                if !failed || matches!(step, Step::Apply { .. }) {
                    let work = self.carry_out(active, unit, known, wanted, step);
                    steps.push(work.boxed());
                }
            }
            let results: Vec<Result<bool, Problem>> = futures::stream::iter(steps)
                .buffered(WRITES_AT_ONCE)
                .collect()
                .await;
            for result in results {
                match result {
                    Ok(drifted) => executed.drifted |= drifted,
                    Err(problem) => executed.problems.push(problem),
                }
            }
        }
        executed
    }

    /// Carries out one step. Returns whether a field of ours was taken back.
    async fn carry_out(
        &self,
        active: &Active,
        unit: &UnitKey,
        known: &[ObjectReference],
        wanted: &[Wanted],
        step: &Step,
    ) -> Result<bool, Problem> {
        match step {
            Step::Apply {
                wanted: index,
                reason,
                uid,
            } => {
                let Some(one) = wanted.get(*index) else {
                    return Ok(false);
                };
                let known = known.contains(&one.stamped.reference);
                self.apply(active, &one.stamped, uid.clone(), *reason, known)
                    .await?;
                Ok(*reason == ApplyReason::Drifted)
            }
            Step::Delete {
                object,
                uid,
                reason,
                ..
            } => {
                self.delete(active, unit, object, uid, *reason).await?;
                Ok(false)
            }
        }
    }

    async fn apply(
        &self,
        active: &Active,
        stamped: &Stamped,
        uid: Option<String>,
        reason: ApplyReason,
        known: bool,
    ) -> Result<(), Problem> {
        let Some(resource) = active.resource(&stamped.reference.kind) else {
            return Err(undeclared(&stamped.reference));
        };
        let applied = match reason {
            ApplyReason::Absent => self.claim(active, resource, stamped, known).await?,
            ApplyReason::Changed | ApplyReason::Drifted => self
                .send(active, resource, stamped, uid.as_deref(), true)
                .await
                .map_err(|error| write_problem(&stamped.reference, &error))?,
        };
        tracing::info!(object = %stamped.reference, ?reason, "applied");
        self.store.observe(applied);
        Ok(())
    }

    /// Applies an object where nothing carries our labels. What is there all the
    /// same is ours if our manager applied it for this unit, and else somebody's.
    ///
    /// An object that this agent has never applied is tried without asking first,
    /// since it is nearly always absent; if it turns out to be somebody's, it is
    /// given back at once.
    async fn claim(
        &self,
        active: &Active,
        resource: &Resource,
        stamped: &Stamped,
        known: bool,
    ) -> Result<Object, Problem> {
        if let Some(holder) = self.held_by_another_unit(active, stamped) {
            return Err(Problem::passing(
                Reason::Conflict,
                format!(
                    "{} belongs to {holder}, for which this plugin returns it too; it is left alone. Return another name for each primary",
                    stamped.reference
                ),
            ));
        }
        if !known {
            match self.send(active, resource, stamped, None, false).await {
                Ok(applied) if others(&applied, &active.field_manager).is_none() => {
                    return Ok(applied);
                }
                Ok(applied) => {
                    self.release(active, resource, stamped, &applied).await?;
                    return Err(foreign_problem(active, stamped, &applied));
                }
                // Perhaps ours, with our labels edited away.
                Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(write_problem(&stamped.reference, &error)),
            }
        }
        let (uid, force) = match self.live(active, &stamped.reference).await? {
            None => (None, false),
            Some(live) if is_ours(active, stamped, &live) => (Some(live.uid().to_owned()), true),
            Some(live) => return Err(foreign_problem(active, stamped, &live)),
        };
        self.send(active, resource, stamped, uid.as_deref(), force)
            .await
            .map_err(|error| write_problem(&stamped.reference, &error))
    }

    /// The primary of another unit of the same plugin that has this object. Both
    /// have one field manager, so the API server would not see a conflict.
    fn held_by_another_unit(&self, active: &Active, stamped: &Stamped) -> Option<String> {
        let reference = &stamped.reference;
        let unit = unit_of(&stamped.body);
        let snapshot = self.store.snapshot();
        let watches = active.watches.owned.iter();
        watches
            .filter(|watch| watch.spec().resource.kind == reference.kind)
            .filter_map(|watch| {
                let namespace = reference.namespace.as_deref();
                snapshot
                    .get_in(watch.spec(), namespace, &reference.name)
                    .found()
            })
            .filter(|held| held.manager_fields(&active.field_manager).is_some())
            .filter_map(|held| held.annotation(PRIMARY_ANNOTATION))
            .find(|holder| Some(holder.as_str()) != unit)
    }

    /// Sends an apply. The uid is a precondition: an object of that name made by
    /// somebody else since we looked is not ours to force.
    async fn send(
        &self,
        active: &Active,
        resource: &Resource,
        stamped: &Stamped,
        uid: Option<&str>,
        force: bool,
    ) -> Result<Object, WriteError> {
        let mut body = Cow::Borrowed(&stamped.body);
        if let Some(uid) = uid
            && let Some(metadata) = body.to_mut()["metadata"].as_object_mut()
        {
            metadata.insert("uid".to_owned(), json!(uid));
        }
        self.send_body(active, resource, &stamped.reference, &body, force)
            .await
    }

    async fn send_body(
        &self,
        active: &Active,
        resource: &Resource,
        reference: &ObjectReference,
        body: &Value,
        force: bool,
    ) -> Result<Object, WriteError> {
        let request = Apply {
            resource,
            namespace: reference.namespace.as_deref(),
            name: &reference.name,
            body,
            manager: &active.field_manager,
            force,
            dry_run: false,
            identity: Some(&active.identity),
        };
        let began = Instant::now();
        let applied = self.cluster.apply(request).await;
        self.count(active, Verb::Apply, began, applied.as_ref().err());
        applied
    }

    fn count(&self, active: &Active, verb: Verb, began: Instant, error: Option<&WriteError>) {
        let result = error.map_or(WriteResult::Success, WriteResult::of);
        self.metrics
            .wrote(&active.plugin, verb, result, began.elapsed());
    }

    /// Gives up the fields of an object that turned out to be somebody else's.
    /// Applying nothing removes what only we own.
    async fn release(
        &self,
        active: &Active,
        resource: &Resource,
        stamped: &Stamped,
        applied: &Object,
    ) -> Result<(), Problem> {
        let mut metadata = json!({"name": stamped.reference.name, "uid": applied.uid()});
        if let Some(namespace) = &stamped.reference.namespace {
            metadata["namespace"] = json!(namespace);
        }
        let nothing = json!({
            "apiVersion": stamped.reference.kind.api_version(),
            "kind": stamped.reference.kind.kind,
            "metadata": metadata,
        });
        let released = self.send_body(active, resource, &stamped.reference, &nothing, false);
        let released = released.await;
        released
            .map(|_| ())
            .map_err(|error| write_problem(&stamped.reference, &error))
    }

    /// Deletes an object that is still the one that was planned for, and still
    /// this unit's.
    async fn delete(
        &self,
        active: &Active,
        unit: &UnitKey,
        reference: &ObjectReference,
        uid: &str,
        reason: Withdrawal,
    ) -> Result<(), Problem> {
        let Some(live) = self.live(active, reference).await? else {
            // It went on its own, and the watch has not said so yet.
            self.store.observe_deleted(reference, uid);
            return Ok(());
        };
        let ours = live.uid() == uid
            && live.label(PLUGIN_LABEL) == Some(plugin_label(&unit.plugin).as_str())
            && live.label(UNIT_LABEL) == Some(unit_label(unit).as_str())
            && live.manager_fields(&active.field_manager).is_some();
        if ours && !live.is_deleting() {
            let deed = Deed {
                operation: Operation::Delete,
                unit,
                object: &live,
                reason: match reason {
                    Withdrawal::Unwanted => "the plugin no longer returns it",
                    Withdrawal::UnitEnded => "its primary is gone, or no longer selected",
                    Withdrawal::EarlierHook => "the hook of this sync takes its place",
                    Withdrawal::HookEnded => "the hook has ended, and its policy says so",
                },
            };
            self.delete_live(active, &deed).await?;
        }
        Ok(())
    }

    /// An object of a kind of the manifest as the API server has it now.
    pub(crate) async fn live(
        &self,
        active: &Active,
        reference: &ObjectReference,
    ) -> Result<Option<Object>, Problem> {
        let Some(resource) = active.resource(&reference.kind) else {
            return Err(undeclared(reference));
        };
        self.cluster
            .get(resource, reference.namespace.as_deref(), &reference.name)
            .await
            .map_err(|error| {
                Problem::passing(
                    Reason::ApplyFailed,
                    format!("{reference} cannot be read: {}", chain(&error)),
                )
            })
    }

    /// Deletes an object as it was just read, and no later version of it.
    async fn delete_live(&self, active: &Active, deed: &Deed<'_>) -> Result<(), Problem> {
        let live = deed.object;
        let reference = &live.reference();
        self.journal.write(deed).await?;
        let began = Instant::now();
        let deletion = self
            .cluster
            .delete(Delete {
                resource: live.resource(),
                namespace: reference.namespace.as_deref(),
                name: &reference.name,
                uid: Some(live.uid()),
                resource_version: Some(live.resource_version()),
                dry_run: false,
                identity: Some(&active.identity),
            })
            .await;
        self.count(active, Verb::Delete, began, deletion.as_ref().err());
        let deletion = deletion.map_err(|error| write_problem(reference, &error))?;
        // The next run must not see what this one has deleted.
        if deletion != Deletion::Pending {
            self.store.observe_deleted(reference, live.uid());
        }
        tracing::info!(object = %reference, reason = deed.reason, "deleted");
        Ok(())
    }

    /// Sees to it that an object does not exist, if its preconditions hold.
    /// Returns whether it was deleted.
    pub(crate) async fn remove(
        &self,
        active: &Active,
        unit: &UnitKey,
        absence: &Absence,
    ) -> Result<bool, Problem> {
        let Some(live) = self.live(active, &absence.object).await? else {
            return Ok(false);
        };
        if live.is_deleting() || !absence.preconditions.iter().all(|p| holds(p, &live)) {
            return Ok(false);
        }
        if live.label(PLUGIN_LABEL).is_some() {
            return Err(Problem::passing(
                Reason::Conflict,
                format!(
                    "{} should be absent, but a plugin of this agent owns it; it is left alone",
                    absence.object
                ),
            ));
        }
        if reeve_core::plan::is_precious(&absence.object.kind) {
            return Err(Problem::passing(
                Reason::DeletionHeld,
                format!(
                    "{} should be absent, but deleting a {} loses data; delete it yourself",
                    absence.object, absence.object.kind.kind
                ),
            ));
        }
        let deed = Deed {
            operation: Operation::Delete,
            unit,
            object: &live,
            reason: "the plugin says that it must not exist",
        };
        self.delete_live(active, &deed).await?;
        Ok(true)
    }
}

fn holds(precondition: &Precondition, live: &Object) -> bool {
    match precondition {
        Precondition::Uid(uid) => live.uid() == uid,
        Precondition::OwnedBy(uid) => live.owners().any(|owner| owner == uid),
        Precondition::Phase(phases) => live
            .value()
            .pointer("/status/phase")
            .and_then(|phase| phase.as_str())
            .is_some_and(|phase| phases.iter().any(|p| p == phase)),
    }
}

/// Whether an object that lacks our labels is this unit's all the same: they can
/// be edited away, the fields that our manager applied cannot.
fn is_ours(active: &Active, stamped: &Stamped, live: &Object) -> bool {
    live.manager_fields(&active.field_manager).is_some()
        && live.annotation(PRIMARY_ANNOTATION).as_deref() == unit_of(&stamped.body)
}

/// The unit that a stamped body names.
fn unit_of(body: &Value) -> Option<&str> {
    let annotations = body.pointer("/metadata/annotations")?;
    annotations.get(PRIMARY_ANNOTATION)?.as_str()
}

fn foreign_problem(active: &Active, stamped: &Stamped, live: &Object) -> Problem {
    let owner = others(live, &active.field_manager).unwrap_or_else(|| "nobody known".to_owned());
    Problem::passing(
        Reason::Conflict,
        format!(
            "{} exists already and belongs to {owner}; it is left alone. Delete it, or return another name",
            stamped.reference
        ),
    )
}

/// Who else owns fields of an object, if anybody. Its status does not count.
fn others(object: &Object, own_manager: &str) -> Option<String> {
    let mut names: Vec<String> = object
        .managers()
        .into_iter()
        .filter(|entry| entry.manager != own_manager && entry.subresource.is_empty())
        .map(|entry| format!("{:?}", entry.manager))
        .collect();
    names.sort();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}

fn undeclared(reference: &ObjectReference) -> Problem {
    let kind: &GroupVersionKind = &reference.kind;
    Problem::lasting(
        Reason::OutcomeRefused,
        format!("{reference}: {kind} is not in the manifest"),
    )
}

/// A write error as a problem of the unit.
pub(crate) fn write_problem(reference: &ObjectReference, error: &WriteError) -> Problem {
    let reason = match error {
        WriteError::Forbidden { .. } | WriteError::MayNotImpersonate { .. } => Reason::Forbidden,
        WriteError::Conflict { .. } => Reason::Conflict,
        WriteError::NamespaceAbsent { .. } | WriteError::NamespaceTerminating { .. } => {
            Reason::NamespaceAbsent
        }
        WriteError::NotServed { .. } => Reason::KindNotServed,
        WriteError::Unreachable { .. } | WriteError::Throttled { .. } => Reason::Unreachable,
        _ => Reason::ApplyFailed,
    };
    Problem {
        reason,
        message: format!("{reference}: {}", chain(error)),
        // Grants, namespaces and foreign objects change where we do not watch.
        retries: true,
    }
}
