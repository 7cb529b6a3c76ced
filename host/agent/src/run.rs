//! One run of one unit: ask the plugin, check the answer, plan, carry it out.

use crate::active::Active;
use crate::clock::Clock;
use crate::execute::Executor;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::reads::Read;
use crate::view::CallView;
use bytes::Bytes;
use reeve_api::Reason;
use reeve_cluster::{Answer, Object, Snapshot, Store};
use reeve_core::outcome::{Condition, Event, Next};
use reeve_core::ownership::Owner;
use reeve_core::plan::{Observed, Refusal, plan};
use reeve_core::{Desired, Failure, ObjectReference, UnitKey};
use reeve_engine::{Fault, FaultKind, Level, LogLine, Request};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What runs need of the agent.
#[derive(Clone)]
pub(crate) struct Runner {
    pub(crate) store: Store,
    pub(crate) executor: Executor,
    pub(crate) metrics: Metrics,
    pub(crate) clock: Arc<dyn Clock>,
}

/// One run that is to be made.
pub(crate) struct Run {
    pub(crate) unit: UnitKey,
    pub(crate) active: Arc<Active>,
    /// Objects that carry the unit's labels, as far as they are known.
    pub(crate) owned: Vec<ObjectReference>,
    /// Objects that were wanted for it before, by this agent.
    pub(crate) known: Vec<ObjectReference>,
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
    /// Objects that are desired; none when there is no answer.
    pub(crate) desired: Option<Vec<ObjectReference>>,
    /// Version of the store that the run saw.
    pub(crate) version: u64,
    /// Whether the primary was found not to exist.
    pub(crate) absent: bool,
    /// Whether a field of ours was taken back.
    pub(crate) drifted: bool,
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
            desired: None,
            version: 0,
            absent: false,
            drifted: false,
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
    pub(crate) async fn run(&self, run: Run) -> Ran {
        let Run {
            unit,
            active,
            owned,
            known,
        } = run;
        let snapshot = self.store.snapshot();
        let reference = &unit.primary;
        let watch = active.watches.primary.spec();
        let namespace = reference.namespace.as_deref();
        let mut ran = match snapshot.get_in(watch, namespace, &reference.name) {
            // Its dependents are going with it; making new ones would only delay
            // that.
            Answer::Found(primary) if primary.is_deleting() => Ran::empty(),
            Answer::Found(primary) => {
                self.reconcile(&unit, &active, &snapshot, &primary, &owned, &known)
                    .await
            }
            Answer::Absent => self.sweep(&unit, &active, &snapshot, &owned).await,
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
        ran.version = snapshot.version();
        ran
    }

    async fn reconcile(
        &self,
        unit: &UnitKey,
        active: &Arc<Active>,
        snapshot: &Snapshot,
        primary: &Object,
        owned: &[ObjectReference],
        known: &[ObjectReference],
    ) -> Ran {
        let seen = active.manifest.primary().projection.apply(&primary.value());
        let request = Request {
            primary: Bytes::from(seen.to_string()),
            config: active.config.clone(),
            facts: Vec::new(),
        };
        let view = Arc::new(CallView::new(
            snapshot.clone(),
            active.clone(),
            unit,
            self.clock.now(),
        ));
        let began = Instant::now();
        let called = active
            .component
            .reconcile(request, view.clone(), &active.limits)
            .await;
        self.metrics.called(&unit.plugin, began.elapsed());
        let mut ran = Ran {
            reads: Some(view.reads()),
            primary_uid: Some(primary.uid().to_owned()),
            ..Ran::empty()
        };
        let outcome = match called {
            Ok(called) => {
                log_lines(unit, &called.logs, called.logs_dropped);
                called.value
            }
            Err(fault) => {
                log_lines(unit, &fault.logs, fault.logs_dropped);
                ran.problems.push(fault_problem(&fault));
                return ran;
            }
        };
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(failure) => {
                ran.problems.push(failure_problem(failure));
                return ran;
            }
        };
        let namespaced = |kind: &_| active.resource(kind).is_some_and(|r| r.namespaced);
        let desired = match Desired::check(outcome, &active.manifest, &unit.primary, namespaced) {
            Ok(desired) => desired,
            Err(error) => {
                let problem = Problem::lasting(Reason::OutcomeRefused, error.to_string());
                ran.problems.push(problem);
                return ran;
            }
        };
        ran.next = desired.next;
        ran.conditions = desired.conditions;
        ran.events = desired.events;
        let owner = Owner {
            unit: unit.clone(),
            uid: primary.uid().to_owned(),
        };
        let references = desired
            .objects
            .iter()
            .map(|o| o.reference.clone())
            .collect();
        ran.desired = Some(references);
        let stamped = desired
            .objects
            .into_iter()
            .map(|object| owner.stamp(object.reference, object.body))
            .collect();
        let observed = observe(active, snapshot, owned);
        let plan = plan(&owner, stamped, &observed, desired.empty_is_meant);
        ran.problems
            .extend(plan.refusals.iter().map(refusal_problem));
        let unchanged = u64::try_from(plan.unchanged).unwrap_or(u64::MAX);
        self.metrics.unchanged(&unit.plugin, unchanged);
        let executed = self.executor.execute(active, unit, known, plan).await;
        ran.drifted = executed.drifted;
        ran.problems.extend(executed.problems);
        // What replaces the unwanted may be what failed.
        if ran.problems.is_empty() {
            for absence in &desired.absent {
                if let Err(problem) = self.executor.remove(active, absence).await {
                    ran.problems.push(problem);
                }
            }
        }
        // Nobody watches what should not be there.
        if !desired.absent.is_empty() {
            ran.next = ran.next.at_the_latest(ABSENCE_RECHECK);
        }
        ran
    }

    /// Deletes what a primary left behind where garbage collection does not
    /// reach: objects of ours without an ownerReference. The others are going
    /// with their owner. A primary that exists but is no longer selected leaves
    /// all of its objects behind.
    async fn sweep(
        &self,
        unit: &UnitKey,
        active: &Active,
        snapshot: &Snapshot,
        owned: &[ObjectReference],
    ) -> Ran {
        let mut ran = Ran::empty();
        let observed = observe(active, snapshot, owned);
        if observed.is_empty() {
            ran.absent = true;
            return ran;
        }
        let lives = match self.executor.live(active, &unit.primary).await {
            Ok(live) => live.is_some_and(|primary| !primary.is_deleting()),
            Err(problem) => {
                ran.problems.push(problem);
                return ran;
            }
        };
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
        let orphans: Vec<Observed> = observed
            .into_iter()
            .filter(|object| lives || object.owners.is_empty())
            .collect();
        let owner = Owner {
            unit: unit.clone(),
            uid: String::new(),
        };
        let plan = plan(&owner, Vec::new(), &orphans, true);
        ran.problems
            .extend(plan.refusals.iter().map(refusal_problem));
        let executed = self.executor.execute(active, unit, &[], plan).await;
        ran.problems.extend(executed.problems);
        ran
    }
}

/// What is known of the objects that carry a unit's labels.
fn observe(active: &Active, snapshot: &Snapshot, owned: &[ObjectReference]) -> Vec<Observed> {
    owned
        .iter()
        .filter_map(|reference| {
            active.watches.owned.iter().find_map(|watch| {
                let namespace = reference.namespace.as_deref();
                let fits = watch.spec().resource.kind == reference.kind;
                fits.then(|| {
                    snapshot
                        .get_in(watch.spec(), namespace, &reference.name)
                        .found()
                })?
            })
        })
        .map(|object| Observed {
            reference: object.reference(),
            uid: object.uid().to_owned(),
            annotations: object
                .annotations()
                .into_iter()
                .filter(|(key, _)| key.starts_with(OUR_DOMAIN))
                .collect(),
            owned_fields: object.manager_fields(&active.field_manager),
            deleting: object.is_deleting(),
            owners: object.owners().map(str::to_owned).collect(),
        })
        .collect()
}

/// An object that must not exist is looked for this often.
const ABSENCE_RECHECK: Duration = Duration::from_secs(60);

/// Annotations that are ours or steer us share this start.
const OUR_DOMAIN: &str = "reeve.dev/";

fn log_lines(unit: &UnitKey, lines: &[LogLine], dropped: bool) {
    for line in lines {
        let (plugin, primary) = (&unit.plugin, &unit.primary);
        let text = &line.message;
        match line.level {
            Level::Debug => {
                tracing::debug!(target: "reeve::plugin", %plugin, %primary, text, "plugin says")
            }
            Level::Info => {
                tracing::info!(target: "reeve::plugin", %plugin, %primary, text, "plugin says")
            }
            Level::Warn => {
                tracing::warn!(target: "reeve::plugin", %plugin, %primary, text, "plugin says")
            }
            Level::Error => {
                tracing::error!(target: "reeve::plugin", %plugin, %primary, text, "plugin says")
            }
        }
    }
    if dropped {
        tracing::warn!(plugin = %unit.plugin, primary = %unit.primary, "log lines dropped, the plugin's limit is reached");
    }
}

fn fault_problem(fault: &Fault) -> Problem {
    let reason = match *fault.kind {
        FaultKind::Trap { .. } | FaultKind::Exit { .. } | FaultKind::MalformedResult { .. } => {
            Reason::Trapped
        }
        FaultKind::Refused { .. } => Reason::OutcomeRefused,
        FaultKind::Host { .. } => Reason::Retrying,
        _ => Reason::LimitExceeded,
    };
    Problem {
        reason,
        message: fault.to_string(),
        retries: fault.retries(),
    }
}

fn failure_problem(failure: Failure) -> Problem {
    match failure {
        Failure::Retry(message) => Problem::passing(Reason::Retrying, message),
        Failure::Terminal(message) => Problem::lasting(Reason::Terminal, message),
        Failure::NotReady(message) => Problem::lasting(Reason::NotReady, message),
    }
}

fn refusal_problem(refusal: &Refusal) -> Problem {
    let reason = match refusal {
        Refusal::OtherUnit { .. } => Reason::Conflict,
        Refusal::EmptyNotMeant(_) | Refusal::NeedsConfirmation(_) => Reason::DeletionHeld,
    };
    Problem::lasting(reason, refusal.to_string())
}
