//! The end of a unit whose primary waits for it.
//!
//! Where objects have an order, hooks, or are where garbage collection does not
//! follow, a finalizer keeps the primary until all of that is done. Only a plugin whose
//! account may patch its primaries has one; for others, what is left is swept up when
//! the primary is gone.

use super::effects::unapproved;
use super::observe::Answers;
use super::sync::refusal_problem;
use super::{Approved, Ran, Run, Runner, Sync};
use crate::active::Active;
use crate::execute::{Mark, Work, write_problem};
use crate::problem::{Problem, chain};
use crate::request::Attempt;
use reeve_api::{RELEASE_ANNOTATION, Reason, SyncMode};
use reeve_cluster::{Object, SetFinalizers, Snapshot};
use reeve_core::Digest;
use reeve_core::outcome::Next;
use reeve_core::ownership::{Owner, finalizer, finalizers, hook_finalizer};
use reeve_core::plan::{EndNeeds, Preview, Progress, Wanted, prepare};
use reeve_core::waves::{Member, Mode, Sequence, order};
use std::collections::BTreeSet;

/// Field manager of finalizers. It is not the plugin's: what that owns is the plugin's
/// object.
pub(crate) const FINALIZER_MANAGER: &str = "reeve-finalizer";

/// Rounds within one run, each of which has something to write.
const MAX_ROUNDS: usize = 1000;

/// Whether a primary waits for a unit of this plugin.
pub(crate) fn is_held(primary: &Object, plugin: &str) -> bool {
    let ours = finalizers(plugin);
    // Most primaries have none, and need not be parsed for that.
    ours.iter()
        .any(|name| primary.json().contains(name.as_str()))
        && primary.finalizers().iter().any(|name| ours.contains(name))
}

/// The desired state with which a unit ends.
struct Last {
    wanted: Vec<Wanted>,
    sequence: Sequence,
    revision: Option<Digest>,
}

impl Runner {
    /// Sees to it that a primary waits for its unit's end, or no longer does. Returns
    /// whether it is as it should be.
    ///
    /// It waits before the first object is made that needs it, and until the last one
    /// is gone that does.
    pub(super) async fn hold(
        &self,
        run: &Run,
        primary: &Object,
        needs: EndNeeds,
        complete: bool,
    ) -> Result<(), Problem> {
        let plugin = &run.unit.plugin;
        let there = primary.finalizers();
        let waits = needs.any() && run.may_hold;
        if there.is_empty() && !waits {
            return Ok(());
        }
        let mut wanted = there.clone();
        if waits {
            let [name, other] = match needs.hooks {
                true => [hook_finalizer(plugin), finalizer(plugin)],
                false => [finalizer(plugin), hook_finalizer(plugin)],
            };
            if !wanted.contains(&name) {
                wanted.push(name);
            }
            if complete {
                wanted.retain(|one| *one != other);
            }
        } else if complete {
            let ours = finalizers(plugin);
            wanted.retain(|one| !ours.contains(one));
        }
        if wanted == there || self.rehearsal.is_some() {
            return Ok(());
        }
        self.set_finalizers(&run.active, primary, &wanted).await
    }

    async fn set_finalizers(
        &self,
        active: &Active,
        primary: &Object,
        finalizers: &[String],
    ) -> Result<(), Problem> {
        let reference = primary.reference();
        let request = SetFinalizers {
            live: primary,
            finalizers,
            manager: FINALIZER_MANAGER,
            identity: Some(&active.identity),
        };
        let written = self.executor.cluster.set_finalizers(request).await;
        let written = written.map_err(|error| {
            let mark = Mark::written(Some(primary));
            self.executor.lost.note(primary.resource(), &error, mark);
            write_problem(&reference, &error)
        })?;
        tracing::info!(object = %reference, ?finalizers, "finalizers set");
        // One that was the last to go has ended the object.
        if finalizers.is_empty() && primary.is_deleting() {
            self.store.observe_deleted(&reference, primary.uid());
        } else {
            self.store.observe(written);
        }
        Ok(())
    }

    /// Lets a primary go that waited for its unit.
    pub(super) async fn let_go(&self, run: &Run, primary: &Object) -> Result<(), Problem> {
        let ours = finalizers(&run.unit.plugin);
        let mut left = primary.finalizers();
        left.retain(|one| !ours.contains(one));
        let released = self.set_finalizers(&run.active, primary, &left).await;
        released.map_err(|problem| {
            let (plugin, message) = (&run.unit.plugin, &problem.message);
            let message = format!(
                "{message}. Until then its deletion waits for plugin {plugin}; `reeve release \
                 {plugin}` lets it go with your own rights"
            );
            Problem { message, ..problem }
        })
    }

    /// Brings a unit to its end whose primary is being deleted and waits for that.
    pub(super) async fn end(&self, run: &Run, snapshot: &Snapshot, primary: &Object) -> Ran {
        let mut ran = Ran {
            primary_uid: Some(primary.uid().to_owned()),
            ..Ran::empty()
        };
        let released = primary.annotation(RELEASE_ANNOTATION).as_deref() == Some("true");
        let ended = match released {
            true => Ok(true),
            false => self.bring_to_end(run, snapshot, primary, &mut ran).await,
        };
        let done = match ended {
            Ok(true) if run.mode == SyncMode::PlanOnly && !released => Err(Problem::lasting(
                Reason::PlanOnly,
                format!(
                    "{} is being deleted and could go, but nothing is written, since spec.mode of \
                     the Plugin is PlanOnly; the annotation {RELEASE_ANNOTATION}: \"true\" on it \
                     lets it go",
                    primary.reference()
                ),
            )),
            Ok(true) if self.rehearsal.is_none() => self.let_go(run, primary).await,
            Ok(_) => Ok(()),
            Err(problem) => Err(problem),
        };
        if let Err(problem) = done {
            ran.problems.insert(0, problem);
        }
        ran
    }

    /// What the unit wanted last, as far as its end has to do with it.
    async fn last(
        &self,
        run: &Run,
        snapshot: &Snapshot,
        primary: &Object,
        owner: &Owner,
        ran: &mut Ran,
    ) -> Result<Last, Problem> {
        let Run { unit, active, .. } = run;
        let hooks = primary.finalizers().contains(&hook_finalizer(&unit.plugin));
        // Nobody is asked about hooks for such a one, and nobody waits for an answer.
        let hooks = hooks && self.lent(unit, active).is_none();
        let (wanted, revision) = if hooks {
            let facts = run.effects.facts();
            let asked = self.ask(unit, active, snapshot.clone(), primary, facts, ran);
            let desired = asked.await?;
            let manager = &active.field_manager;
            let prepared = prepare(owner, manager, desired.objects, &active.policy, &|_| None);
            let prepared = prepared
                .map_err(|error| Problem::lasting(Reason::OutcomeRefused, chain(&error)))?;
            (prepared.wanted, Some(prepared.revision))
        } else {
            (Vec::new(), None)
        };
        let members: Vec<Member> = wanted.iter().map(|one| one.member.clone()).collect();
        let sequence = order(&members, Mode::default())
            .map_err(|error| Problem::lasting(Reason::OutcomeRefused, error.to_string()))?;
        Ok(Last {
            wanted,
            sequence,
            revision,
        })
    }

    /// Takes the next steps to the end. Returns whether it is reached.
    async fn bring_to_end(
        &self,
        run: &Run,
        snapshot: &Snapshot,
        primary: &Object,
        ran: &mut Ran,
    ) -> Result<bool, Problem> {
        let Run { unit, active, .. } = run;
        let cluster = &self.executor.cluster;
        active.unserved.check_nothing_is_hidden(cluster).await?;
        let owner = Owner {
            unit: unit.clone(),
            uid: primary.uid().to_owned(),
        };
        let mut last = self.last(run, snapshot, primary, &owner, ran).await?;
        let mut sync = run.sync.clone();
        if last.revision.is_some() && sync.revision != last.revision {
            sync = Sync {
                revision: last.revision,
                used_approval: sync.used_approval,
                ..Sync::default()
            };
        }
        sync.settled = false;
        if run.attempt > Attempt::Look {
            sync = sync.retried();
        }
        let mut candidates: BTreeSet<_> = run.owned.iter().cloned().collect();
        candidates.extend(run.contributed.iter().cloned());
        let hooks = last.wanted.iter();
        candidates.extend(hooks.map(|one| one.stamped.reference.clone()));
        for _ in 0..MAX_ROUNDS {
            let looked = self
                .look(active, unit, &candidates, &Answers::default())
                .await?;
            let (wanted, sequence) = (&last.wanted, &last.sequence);
            let end = reeve_core::plan::end;
            let mut plan = looked.with_situation(&owner, wanted, sequence, &sync, end);
            let given_up = looked.contributions(&[]).releases(|_| false);
            if !given_up.is_empty() {
                plan.stages.push(given_up);
                plan.progress = plan.progress.min(Progress::Applying);
            }
            sync.hooks.clone_from(&plan.hooks);
            sync.progress = plan.progress;
            sync.blocked.clone_from(&plan.blocked);
            let preview = |sync: &Sync| {
                looked.with_situation(&owner, wanted, sequence, sync, |situation| {
                    Preview::of_end(situation, &plan).with_effects(unapproved(run, &[]))
                })
            };
            let about = Some(Approved::End);
            if !plan.is_empty() && !self.may_write(run, about, preview, &mut sync, ran) {
                ran.sync = Some(sync);
                return Ok(false);
            }
            let unguarded = plan.clone();
            let (plan, held) = self.guarded(run, plan, None).await?;
            ran.problems = plan.refusals.iter().map(refusal_problem).collect();
            let holds = !held.is_empty();
            ran.problems.extend(held);
            if let Some(after) = plan.recheck_after {
                ran.next = ran.next.at_the_latest(after.max(Next::SHORTEST));
            }
            if let Some(rehearsal) = &self.rehearsal {
                rehearsal.take_down_end(&unguarded, plan);
                return Ok(false);
            }
            if plan.is_empty() {
                let done = sync.progress == Progress::Complete && !holds;
                ran.problems.extend(still_ending(&sync, primary));
                ran.sync = Some(sync);
                return Ok(done);
            }
            let uid = primary.uid();
            self.remember_secrets(run, uid, wanted, &plan).await?;
            let work = Work {
                active,
                owner: &owner,
                recreations: None,
            };
            let executed = self.executor.execute(work, wanted, plan).await;
            let gone = |problem: &Problem| problem.reason == Reason::NamespaceAbsent;
            if !executed.problems.is_empty() && executed.problems.iter().all(gone) {
                // No hook can run in a namespace that is going, and the namespace
                // cannot go before the primary in it does.
                tracing::warn!(%unit, "hooks are left out, their namespace is going");
                last = Last {
                    wanted: Vec::new(),
                    sequence: order(&[], Mode::default()).map_err(|error| {
                        Problem::lasting(Reason::OutcomeRefused, error.to_string())
                    })?,
                    revision: None,
                };
                continue;
            }
            if !executed.problems.is_empty() {
                ran.problems.splice(0..0, executed.problems);
                ran.sync = Some(sync);
                return Ok(false);
            }
        }
        let message = format!("{MAX_ROUNDS} rounds have not brought {unit} to its end");
        Err(Problem::passing(Reason::ApplyFailed, message))
    }
}

/// What a primary waits for that is being deleted.
fn still_ending(sync: &Sync, primary: &Object) -> Option<Problem> {
    let reference = primary.reference();
    let way_out = format!(
        "the annotation {RELEASE_ANNOTATION}: \"true\" on {reference} lets it go without that"
    );
    match (&sync.blocked, sync.progress) {
        (_, Progress::Complete) => None,
        (Some(blocked), progress) => {
            let reason = match progress {
                Progress::Failed => Reason::HookFailed,
                _ => Reason::Waiting,
            };
            Some(Problem::lasting(
                reason,
                format!(
                    "{reference} is being deleted and waits: {} {} is {}: {}; {way_out}",
                    blocked.phase, blocked.object, blocked.status, blocked.reason
                ),
            ))
        }
        (None, _) => Some(Problem::lasting(
            Reason::Waiting,
            format!("{reference} is being deleted and waits for its objects to be gone; {way_out}"),
        )),
    }
}
