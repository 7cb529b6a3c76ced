//! Carries out a plan: the only place from which the cluster is changed for a
//! plugin's units.

mod apply;
mod beforehand;
mod claim;
mod claims;
mod contribute;
mod foresee;
mod lost;
mod overwrite;
mod recreate;
mod resume;

pub(crate) use claims::Claims;
pub(crate) use contribute::contributed;
pub(crate) use foresee::Foreseen;
pub(crate) use lost::{Lost, Mark};
pub(crate) use overwrite::Recent;
pub(crate) use resume::resumed;

use crate::active::Active;
use crate::journal::{ABSENT, DESELECTED, Deed, Journal, WITHDRAWN};
use crate::metrics::{Metrics, Verb};
use crate::problem::{Problem, chain};
use crate::run::Recreations;
use futures::{FutureExt as _, StreamExt as _};
use reeve_api::{Operation, Reason};
use reeve_cluster::{Cluster, Delete, Deletion, Object, Store, WriteError};
use reeve_core::outcome::{Absence, Precondition};
use reeve_core::ownership::{
    Owner, PLUGIN_LABEL, UNIT_LABEL, contributor, is_contributor, is_field_manager, plugin_label,
    unit_label,
};
use reeve_core::plan::{Plan, Step, Taken, Wanted, Withdrawal};
use reeve_core::waves::Propagation;
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Writes of one unit that are under way at once.
const WRITES_AT_ONCE: usize = 4;

/// What came of a plan.
#[derive(Debug, Default)]
pub(crate) struct Executed {
    /// Fields that were taken back.
    pub(crate) contested: Vec<Contested>,
    /// What was answered to applies.
    pub(crate) answers: Vec<Answer>,
    /// What did not work. The other steps were carried out all the same.
    pub(crate) problems: Vec<Problem>,
}

/// What the API server has answered to an apply.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The object, as it was then.
    pub(crate) object: Arc<Object>,
    /// Digest of what was sent, where the API server takes all of it or refuses it, and nobody
    /// had taken a field of it before.
    pub(crate) took: Option<String>,
}

/// What came of a step.
#[derive(Debug, Default)]
struct Done {
    /// Fields that were taken back.
    contested: Option<Contested>,
    /// What was answered to its apply.
    answer: Option<Answer>,
}

/// Fields of one of our objects that others had taken, and that were taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contested {
    pub(crate) object: ObjectReference,
    /// The fields, as far as somebody has them now; what was removed has nobody.
    pub(crate) fields: Vec<Taken>,
}

/// What fields are fought over, and with whom, in words.
pub(crate) fn fight(contested: &[Contested]) -> String {
    let fields = contested.iter().map(|one| {
        let fields: Vec<String> = one.fields.iter().map(ToString::to_string).collect();
        match fields.as_slice() {
            [] => format!("{}: fields are removed", one.object),
            fields => format!("{}: {}", one.object, fields.join(", ")),
        }
    });
    format!(
        "changed again and again and put back with growing delays: {}. Leave such fields to \
         others with the annotation {} on the object, or with spec.ignore of the Plugin",
        fields.collect::<Vec<_>>().join("; "),
        reeve_core::ignore::ANNOTATION,
    )
}

/// On whose behalf a plan is carried out.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) active: &'a Active,
    /// The unit.
    pub(crate) owner: &'a Owner,
    /// Who is asked before an object is deleted to be made anew; none where nothing is
    /// applied.
    pub(crate) recreations: Option<&'a Recreations<'a>>,
}

/// Carries out plans on behalf of plugins.
#[derive(Clone)]
pub(crate) struct Executor {
    shared: Arc<Shared>,
    /// Of the unit that is run.
    pub(crate) lost: Lost,
}

/// What the executors of one agent share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) cluster: Cluster,
    pub(crate) store: Store,
    pub(crate) journal: Journal,
    pub(crate) metrics: Metrics,
    pub(crate) claims: Claims,
    pub(crate) recent: Recent,
    /// For plans that are carried out at once.
    pub(crate) room: Arc<Semaphore>,
}

impl Deref for Executor {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Executor {
    /// An executor for units of which no write is lost.
    pub(crate) fn new(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            lost: Lost::default(),
        }
    }

    /// The same for another unit.
    pub(crate) fn of_unit(&self, lost: Lost) -> Self {
        Self {
            shared: self.shared.clone(),
            lost,
        }
    }

    /// One that is counted by itself, for units of which no write is lost.
    pub(crate) fn counted_by(&self, metrics: Metrics) -> Self {
        Self::new(Shared {
            metrics,
            ..Shared::clone(&self.shared)
        })
    }

    /// Carries out a plan stage by stage. A step that fails does not keep the
    /// others from being tried, except that nothing is deleted after a failure:
    /// what replaces the deleted may be what failed.
    pub(crate) async fn execute(&self, work: Work<'_>, wanted: &[Wanted], plan: Plan) -> Executed {
        let mut executed = Executed::default();
        if plan.stages.is_empty() {
            return executed;
        }
        // Never closed: without a place is only who outlives the agent.
        let _place = self.room.acquire().await;
        for stage in plan.stages {
            let failed = !executed.problems.is_empty();
            let mut steps = Vec::with_capacity(stage.len());
            for step in &stage {
                if !failed || matches!(step, Step::Apply { .. } | Step::Contribute { .. }) {
                    steps.push(self.carry_out_in_time(&work, wanted, step).boxed());
                }
            }
            let results: Vec<Result<Done, Problem>> = futures::stream::iter(steps)
                .buffered(WRITES_AT_ONCE)
                .collect()
                .await;
            for result in results {
                match result {
                    Ok(done) => {
                        executed.contested.extend(done.contested);
                        executed.answers.extend(done.answer);
                    }
                    Err(problem) => executed.problems.push(problem),
                }
            }
        }
        executed
    }

    /// Carries out one step, unless the API server wants to hear no more of the plugin's
    /// account for now: the rest of a large unit would be what it has asked to be spared.
    async fn carry_out_in_time(
        &self,
        work: &Work<'_>,
        wanted: &[Wanted],
        step: &Step,
    ) -> Result<Done, Problem> {
        let identity = &work.active.identity;
        if self.cluster.told_to_wait(Some(identity)).is_some() {
            return Err(Problem::passing(
                Reason::Unreachable,
                format!(
                    "the API server has told {} to come back later; what is left of the unit is \
                     written then",
                    identity.user
                ),
            ));
        }
        self.carry_out(work, wanted, step).await
    }

    /// Carries out one step.
    async fn carry_out(
        &self,
        work: &Work<'_>,
        wanted: &[Wanted],
        step: &Step,
    ) -> Result<Done, Problem> {
        match step {
            Step::Apply {
                wanted: index,
                reason,
                uid,
            } => match wanted.get(*index) {
                Some(one) => self.apply(work, one, uid.as_deref(), *reason).await,
                None => Ok(Done::default()),
            },
            Step::Contribute {
                wanted: index,
                uid,
                again,
            } => match wanted.get(*index) {
                Some(one) => Ok(Done {
                    contested: self.contribute(work, one, uid, *again).await?,
                    answer: None,
                }),
                None => Ok(Done::default()),
            },
            Step::Release { object, uid } => {
                let manager = contributor(&work.owner.unit);
                self.withdraw(work.active, object, Some(uid), &manager)
                    .await?;
                Ok(Done::default())
            }
            Step::Delete {
                object,
                uid,
                reason,
                ..
            } => {
                let unit = &work.owner.unit;
                self.delete(work.active, unit, object, uid, *reason).await?;
                Ok(Done::default())
            }
        }
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
            && live.label(UNIT_LABEL) == Some(unit_label(unit))
            && live.manager_fields(&active.field_manager).is_some();
        if !ours || live.is_deleting() {
            self.take_note(reference, uid, live);
            return Ok(());
        }
        let deed = Deed {
            operation: Operation::Delete,
            unit,
            object: &live,
            reason: match reason {
                Withdrawal::Unwanted => WITHDRAWN,
                Withdrawal::UnitEnded => "its primary is gone",
                Withdrawal::Deselected => DESELECTED,
                Withdrawal::EarlierHook => "the hook of this sync takes its place",
                Withdrawal::HookEnded => "the hook has ended, and its policy says so",
            },
        };
        let propagation = match reason {
            Withdrawal::Unwanted | Withdrawal::UnitEnded | Withdrawal::Deselected => {
                Propagation::of(&live.value())
            }
            // The next one of its name is waited for.
            Withdrawal::EarlierHook | Withdrawal::HookEnded => Propagation::Background,
        };
        self.delete_live(active, &deed, propagation).await
    }

    /// Takes in an object as it was just read, where nothing is to be done about it: the
    /// next plan must not be made from what the watches have yet to tell.
    pub(crate) fn take_note(&self, reference: &ObjectReference, uid: &str, live: Object) {
        if live.uid() != uid {
            self.store.observe_deleted(reference, uid);
        }
        self.store.observe_read(live);
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
        let (namespace, reader) = (
            reference.namespace.as_deref(),
            active.reader(&reference.kind),
        );
        self.cluster
            .get_as(resource, namespace, &reference.name, reader)
            .await
            .map_err(|error| {
                Problem::passing(
                    Reason::ApplyFailed,
                    format!("{reference} cannot be read: {}", chain(&error)),
                )
            })
    }

    /// Deletes an object as it was just read, and no later version of it.
    async fn delete_live(
        &self,
        active: &Active,
        deed: &Deed<'_>,
        propagation: Propagation,
    ) -> Result<(), Problem> {
        let reference = &deed.object.reference();
        self.journal.write(deed).await?;
        let live = deed.object;
        let request = Delete {
            resource: live.resource(),
            namespace: reference.namespace.as_deref(),
            name: &reference.name,
            uid: Some(live.uid()),
            resource_version: Some(live.resource_version()),
            propagation,
            dry_run: false,
            identity: Some(&active.identity),
        };
        let request = self.resumed(active, deed, request).await?;
        let began = Instant::now();
        let deletion = self.cluster.delete(request).await;
        self.count(active, Verb::Delete, began, deletion.as_ref().err());
        if let Err(error) = &deletion {
            let uid = live.uid().to_owned();
            self.lost
                .note(live.resource(), error, Mark::Deleted { uid });
        }
        let deletion = deletion.map_err(|error| write_problem(reference, &error))?;
        // The next run must not see what this one has deleted, nor see it unmarked.
        match deletion {
            Deletion::Gone | Deletion::Absent => {
                self.store.observe_deleted(reference, live.uid());
            }
            // Whoever may not know that looks again, after a while.
            Deletion::Pending => match self.live(active, reference).await? {
                Some(marked) => self.store.observe(marked),
                None => self.store.observe_deleted(reference, live.uid()),
            },
        }
        tracing::info!(object = %reference, reason = deed.reason, "deleted");
        Ok(())
    }

    /// The object that must not exist, if there is one and its preconditions hold.
    pub(crate) async fn unwanted(
        &self,
        active: &Active,
        absence: &Absence,
    ) -> Result<Option<Object>, Problem> {
        let Some(live) = self.live(active, &absence.object).await? else {
            return Ok(None);
        };
        if live.is_deleting() || !absence.preconditions.iter().all(|p| holds(p, &live)) {
            return Ok(None);
        }
        if let Some(holder) = plugin_of(&live) {
            return Err(Problem::passing(
                Reason::Conflict,
                format!(
                    "{} should be absent, but plugin {holder} of reeve made it; it is left alone. What a plugin made goes when it returns it no more",
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
        Ok(Some(live))
    }

    /// Deletes an object that must not exist, as it was just read.
    pub(crate) async fn end(
        &self,
        active: &Active,
        unit: &UnitKey,
        live: &Object,
    ) -> Result<(), Problem> {
        let deed = Deed {
            operation: Operation::Delete,
            unit,
            object: live,
            reason: ABSENT,
        };
        // What it says of itself was not for us.
        self.delete_live(active, &deed, Propagation::Background)
            .await
    }
}

/// The plugin that made an object, by its label or, should somebody have edited
/// that away, by its field manager.
fn plugin_of(live: &Object) -> Option<String> {
    let managers = live.managers().into_iter().map(|entry| entry.manager);
    live.label(PLUGIN_LABEL).map(str::to_owned).or_else(|| {
        let made = |name: &String| is_field_manager(name) && !is_contributor(name);
        managers.into_iter().find(made)
    })
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
