//! One run of one unit: ask the plugin, check the answer, plan, carry it out.

mod absent;
mod approval;
mod ask;
mod classes;
mod conform;
mod effects;
mod end;
mod guarded;
mod observe;
mod owned;
mod recreations;
mod rehearsal;
mod secrets;
mod sync;
mod texts;
mod unseen;

pub(crate) use absent::absences_of;
pub(crate) use approval::Approved;
pub(crate) use ask::seen;
pub(crate) use end::{FINALIZER_MANAGER, is_held};
pub(crate) use guarded::approve_command;
pub(crate) use recreations::{Recreations, recreations_of};
pub(crate) use rehearsal::{Place, Rehearsal, Rehearsed};
pub(crate) use sync::Sync;
pub(crate) use texts::of_fault;

use crate::active::Active;
use crate::clock::Clock;
use crate::effects::{EffectFeed, Effects};
use crate::execute::{Contested, Executor, Work};
use crate::load::grant_command;
use crate::memo::Memo;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::reads::{Kept, Read};
use crate::reporter::Reports;
use crate::request::Attempt;
use crate::unanswered::Unanswered;
use effects::{forgotten_event, unapproved};
use foldhash::HashSet;
use guarded::Doubt;
use observe::Answers;
use parking_lot::Mutex;
use reeve_api::{PlanStatus, Reason, SUSPEND_ANNOTATION, SyncMode};
use reeve_cluster::{Answer, Object, Snapshot, Store};
use reeve_core::outcome::{Condition, Event, Next};
use reeve_core::ownership::Owner;
use reeve_core::plan::{Ending, Preview, PreviewEffect, Progress};
use reeve_core::prune::{Guard, Token};
use reeve_core::{ObjectReference, UnitKey};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Makes runs.
#[derive(Clone)]
pub(crate) struct Runner {
    pub(crate) executor: Executor,
    pub(crate) memo: Arc<Memo>,
    /// Takes down what would be done; then nothing is.
    pub(crate) rehearsal: Option<Arc<Rehearsal>>,
    pub(crate) means: Arc<Means>,
}

/// What runs need of the agent.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) store: Store,
    pub(crate) metrics: Metrics,
    pub(crate) clock: Arc<dyn Clock>,
    /// Namespace of the agent.
    pub(crate) namespace: Arc<str>,
    /// Who makes outside effects.
    pub(crate) effects: EffectFeed,
    /// Who writes down which Secrets units have.
    pub(crate) reports: Reports,
    /// How much of what units read is kept.
    pub(crate) kept: Kept,
}

impl Deref for Runner {
    type Target = Means;

    fn deref(&self) -> &Means {
        &self.means
    }
}

/// One run that is to be made.
pub(crate) struct Run {
    pub(crate) unit: UnitKey,
    pub(crate) active: Arc<Active>,
    /// Objects that carry the unit's labels, as far as they are known.
    pub(crate) owned: Vec<ObjectReference>,
    /// Objects of others that have fields of the unit.
    pub(crate) contributed: Vec<ObjectReference>,
    /// How far its last revision has come.
    pub(crate) sync: Sync,
    /// What keeps the plugin from deleting a cluster.
    pub(crate) guard: Arc<Mutex<Guard>>,
    /// Deletions that a person has approved.
    pub(crate) approvals: Arc<[Token]>,
    /// How many objects all units of the plugin own.
    pub(crate) plugin_owns: usize,
    /// Whether primaries can be made to wait for the end of their units.
    pub(crate) may_hold: bool,
    /// Whether the primary waited for that when it was seen last.
    pub(crate) held: bool,
    /// What a person has asked for.
    pub(crate) attempt: Attempt,
    /// When what is wanted is written.
    pub(crate) mode: SyncMode,
    /// The plan that a person has approved.
    pub(crate) approved_plan: Option<String>,
    /// Outside effects that a person lets the agent forget, by their tokens.
    pub(crate) forgotten: BTreeSet<String>,
    /// Filled once the guard knows what was withdrawn before.
    pub(crate) recalled: Arc<OnceCell<()>>,
    /// Whether deletions of the plugin were held before this agent led.
    pub(crate) was_holding: bool,
    /// Outside effects of the unit, as they were left.
    pub(crate) effects: Effects,
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What was read; none when the plugin was not called.
    pub(crate) reads: Option<HashSet<Read>>,
    /// When to run again although nothing has changed.
    pub(crate) next: Next,
    /// What the plugin reports.
    pub(crate) conditions: Vec<Condition>,
    /// What it wants recorded.
    pub(crate) events: Vec<Event>,
    /// What the call asked for and could not be shown.
    pub(crate) unanswered: Option<Unanswered>,
    /// Objects that are desired; none when there is no answer.
    pub(crate) desired: Option<Vec<ObjectReference>>,
    /// Version of the store that the run saw.
    pub(crate) version: u64,
    /// Version of the outside documents that it saw.
    pub(crate) sources: u64,
    /// Outside effects; none when nothing was done about them.
    pub(crate) effects: Option<Effects>,
    /// Whether the primary was found not to exist, and nothing is left of the unit.
    pub(crate) absent: bool,
    /// Whether there is more to do at once.
    pub(crate) again: bool,
    /// What a person has asked for, where that is left for the next run.
    pub(crate) attempt: Attempt,
    /// How far the revision is; none when there is no answer.
    pub(crate) sync: Option<Sync>,
    /// Objects of others to which the unit wants to contribute; none when there is no
    /// answer.
    pub(crate) contributing: Option<Vec<ObjectReference>>,
    /// Kinds to which nothing was contributed so far.
    pub(crate) contributes: BTreeSet<String>,
    /// Objects that were applied, as they were then.
    pub(crate) written: Vec<Arc<Object>>,
    /// Fields of ours that were taken back.
    pub(crate) contested: Vec<Contested>,
    /// What would be written, where that waits for a person.
    pub(crate) plan: Option<PlanStatus>,
    /// Outside effects that a person has approved, as this run found.
    pub(crate) approved: Vec<PreviewEffect>,
    /// Uid of the primary, when it was there.
    pub(crate) primary_uid: Option<String>,
    /// What did not work, the worst first.
    pub(crate) problems: Vec<Problem>,
}

impl Ran {
    fn empty() -> Self {
        Self {
            reads: None,
            next: Next::OnChange,
            conditions: Vec::new(),
            events: Vec::new(),
            unanswered: None,
            desired: None,
            version: 0,
            sources: 0,
            effects: None,
            absent: false,
            again: false,
            attempt: Attempt::Same,
            sync: None,
            contributing: None,
            contributes: BTreeSet::new(),
            written: Vec::new(),
            contested: Vec::new(),
            plan: None,
            approved: Vec::new(),
            primary_uid: None,
            problems: Vec::new(),
        }
    }

    /// A run that ended before there was an answer.
    pub(crate) fn failed(problem: Problem) -> Self {
        Self {
            problems: vec![problem],
            ..Self::empty()
        }
    }
}

impl Runner {
    /// Makes a run.
    pub(crate) async fn run(&self, mut run: Run) -> Ran {
        let forgotten = run.effects.forget(&run.forgotten);
        match self.executor.settle(&run.active).await {
            Ok(written) => run.owned.extend(written),
            Err(unsettled) => {
                return Ran {
                    attempt: run.attempt,
                    next: Next::After(unsettled.after.max(Next::SHORTEST)),
                    ..Ran::failed(unsettled.problem)
                };
            }
        }
        let Run { unit, active, .. } = &run;
        if run.attempt != Attempt::Same {
            self.look_at_secrets(active, unit).await;
        }
        let snapshot = self.store.snapshot();
        let version = snapshot.version();
        let sources = active.sources.version();
        let reference = &unit.primary;
        let watch = active.watches.primary.spec();
        let namespace = reference.namespace.as_deref();
        let mut ran = match snapshot.get_in(watch, namespace, &reference.name) {
            // Its dependents are going with it; making new ones would only delay
            // that.
            Answer::Found(primary) if primary.is_deleting() && !is_held(&primary, &unit.plugin) => {
                self.rehearse_last_effects(&run);
                Ran::empty()
            }
            Answer::Found(primary) if is_suspended(&primary) => Ran::failed(suspended(reference)),
            Answer::Found(primary) if primary.is_deleting() => {
                self.rehearse_last_effects(&run);
                self.end(&run, &snapshot, &primary).await
            }
            Answer::Found(primary) => self.reconcile(&run, snapshot, &primary).await,
            Answer::Absent => {
                let mut ran = self.sweep(&run).await;
                self.end_effects(&run, &mut ran).await;
                ran
            }
            // Not to be seen is not to be gone.
            Answer::NotSynced(state) => Ran::failed(Problem::passing(
                Reason::Syncing,
                format!("{reference} cannot be seen: {state}"),
            )),
            Answer::NotWatched => Ran::failed(Problem::passing(
                Reason::Syncing,
                format!("{reference} is not watched"),
            )),
        };
        // A word for the end of a unit is one for its effects, which end last.
        if ran.effects.is_none() && !ran.approved.is_empty() {
            let mut effects = run.effects.clone();
            effects.approve(&ran.approved);
            ran.effects = Some(effects);
        }
        if !forgotten.is_empty() {
            ran.effects.get_or_insert_with(|| run.effects.clone());
            ran.events.extend(forgotten.iter().map(forgotten_event));
        }
        ran.version = version;
        ran.sources = sources;
        let refused = ran.problems.iter_mut();
        for problem in refused.filter(|problem| problem.reason == Reason::Forbidden) {
            let command = self.grant_command(&unit.plugin);
            problem.message.push_str("; see ");
            problem.message.push_str(&command);
        }
        ran
    }

    /// What grants a plugin everything that it asks for.
    pub(crate) fn grant_command(&self, plugin: &str) -> String {
        grant_command(&self.executor.cluster, &self.namespace, plugin)
    }

    /// The snapshot is what the plugin is shown. It is let go of when the plugin has answered:
    /// as long as it is held, what changes in the store is copied.
    async fn reconcile(&self, run: &Run, snapshot: Snapshot, primary: &Object) -> Ran {
        let Run { unit, active, .. } = run;
        let mut ran = Ran {
            primary_uid: Some(primary.uid().to_owned()),
            ..Ran::empty()
        };
        let facts = run.effects.facts();
        let asked = self.ask(unit, active, snapshot, primary, facts, &mut ran);
        let mut desired = match asked.await {
            Ok(desired) => desired,
            Err(problem) => {
                ran.problems.push(problem);
                return ran;
            }
        };
        let unanswered = ran.unanswered.clone();
        let mut kept = Vec::new();
        if unanswered.is_some() {
            kept = run.effects.wanted_beyond(&desired.actions);
            desired.actions.extend(kept.iter().cloned());
        }
        ran.next = desired.next;
        ran.conditions.clone_from(&desired.conditions);
        ran.events.clone_from(&desired.events);
        let objects = desired.objects.iter();
        ran.desired = Some(objects.map(|object| object.reference.clone()).collect());
        let absent = desired.absent.clone();
        let actions = desired.actions.clone();
        self.bring_about(run, primary, desired, &mut ran).await;
        if let Some(unanswered) = unanswered.filter(|_| !kept.is_empty()) {
            let kept = kept
                .iter()
                .map(|one| format!("action {} ({})", one.name, one.key));
            let kept: Vec<String> = kept.collect();
            let problem = unanswered.keeps(&self.grant_command(&unit.plugin), &kept);
            ran.problems.push(problem);
        }
        // What replaces the unwanted may be what failed.
        if ran.problems.is_empty() {
            self.bring_to_an_end(run, &absent, &mut ran).await;
        }
        // An empty answer that may be a mistake takes no effects away either, for as long
        // as the objects are held that it would delete.
        let nothing = actions.is_empty() && ran.desired.as_ref().is_some_and(Vec::is_empty);
        let held = |problem: &Problem| problem.reason == Reason::DeletionHeld;
        if !(nothing && ran.problems.iter().any(held)) {
            self.bring_about_effects(run, primary.uid(), &actions, &mut ran)
                .await;
        }
        // Nobody watches what should not be there.
        if !absent.is_empty() {
            ran.next = ran.next.at_the_latest(UNWATCHED_RECHECK);
        }
        ran
    }

    /// Deletes what a primary left behind where garbage collection does not
    /// reach: objects of ours without an ownerReference. The others are going
    /// with their owner. A primary that exists but is no longer selected leaves
    /// all of its objects behind.
    async fn sweep(&self, run: &Run) -> Ran {
        let Run { unit, active, .. } = run;
        let mut ran = Ran::empty();
        let cluster = &self.executor.cluster;
        if let Err(problem) = active.unserved.check_nothing_is_hidden(cluster).await {
            return Ran::failed(problem);
        }
        let candidates = run.owned.iter().chain(&run.contributed).cloned().collect();
        let mut looked = match self
            .look(active, unit, &candidates, &Answers::default())
            .await
        {
            Ok(looked) => looked,
            Err(problem) => return Ran::failed(problem),
        };
        let given_up = looked.contributions(&[]).releases(|_| false);
        if looked.observed.is_empty() && given_up.is_empty() && !run.held {
            ran.absent = true;
            return ran;
        }
        let primary = match self.executor.live(active, &unit.primary).await {
            Ok(primary) => primary,
            Err(problem) => {
                ran.problems.push(problem);
                return ran;
            }
        };
        let lives = primary
            .as_ref()
            .is_some_and(|primary| !primary.is_deleting());
        if lives && active.manifest.primary().selector.is_empty() {
            ran.problems.push(Problem::passing(
                Reason::Syncing,
                format!(
                    "{} exists, but the watch has not told of it yet",
                    unit.primary
                ),
            ));
            return ran;
        }
        ran.absent = true;
        looked
            .observed
            .retain(|object| lives || object.owners.is_empty());
        let owner = Owner {
            unit: unit.clone(),
            uid: String::new(),
        };
        let (ending, doubt) = match lives {
            true => (Ending::Deselected, Some(Doubt::Deselected)),
            false => (Ending::Deleted, None),
        };
        let mut plan = reeve_core::plan::removal(&owner, &looked.observed, ending);
        if !given_up.is_empty() {
            plan.stages.push(given_up);
        }
        let mut sync = run.sync.clone();
        let preview = |_: &Sync| Preview::of_removal(&plan).with_effects(unapproved(run, &[]));
        let may_end = plan.is_empty()
            || self.may_write(run, Some(Approved::End), preview, &mut sync, &mut ran);
        ran.sync = Some(sync);
        if !may_end {
            ran.absent = false;
            return ran;
        }
        let unguarded = plan.clone();
        let (plan, held) = match self.guarded(run, plan, doubt).await {
            Ok(guarded) => guarded,
            Err(problem) => {
                ran.absent = false;
                ran.problems.push(problem);
                return ran;
            }
        };
        ran.problems
            .extend(plan.refusals.iter().map(sync::refusal_problem));
        // What is still going is told of by its watch, and the rest goes then. What is
        // held keeps the unit, and with it the finalizer and the outside effects.
        ran.absent = held.is_empty() && plan.is_empty() && plan.progress == Progress::Complete;
        ran.problems.extend(held);
        if let Some(rehearsal) = &self.rehearsal {
            rehearsal.take_down_end(&unguarded, plan);
            return ran;
        }
        // It is no longer selected, and waits for nothing more.
        if ran.absent
            && run.mode != SyncMode::PlanOnly
            && let Some(primary) = primary.filter(|primary| is_held(primary, &unit.plugin))
            && let Err(problem) = self.let_go(run, &primary).await
        {
            ran.absent = false;
            ran.problems.push(problem);
        }
        let acts = !plan.is_empty();
        let work = Work {
            active,
            owner: &owner,
            recreations: None,
        };
        let executed = self.executor.execute(work, &[], plan).await;
        ran.problems.extend(executed.problems);
        ran.again = acts && ran.problems.is_empty();
        ran
    }
}

impl Runner {
    /// Whether something may be written; see [`approval::may_write`]. A rehearsal
    /// writes nothing, and takes down what would approve it.
    fn may_write(
        &self,
        run: &Run,
        about: Option<Approved>,
        preview: impl FnOnce(&Sync) -> Preview,
        sync: &mut Sync,
        ran: &mut Ran,
    ) -> bool {
        let Some(rehearsal) = &self.rehearsal else {
            return approval::may_write(run, about, preview, sync, ran);
        };
        if run.mode == SyncMode::OnRequest && (about.is_none() || sync.approved != about) {
            rehearsal.take_down_approval(preview(sync).id(sync.used_approval.as_deref()));
        }
        true
    }
}

fn is_suspended(primary: &Object) -> bool {
    primary.annotation(SUSPEND_ANNOTATION).as_deref() == Some("true")
}

fn suspended(primary: &ObjectReference) -> Problem {
    Problem::lasting(
        Reason::Suspended,
        format!(
            "{primary} is annotated {SUSPEND_ANNOTATION}: \"true\"; nothing is written for it until the annotation is gone"
        ),
    )
}

/// An object of which no watch tells is looked for this often: one that must not exist,
/// and one that is left alone as it is.
const UNWATCHED_RECHECK: Duration = Duration::from_secs(60);
