//! Asking a plugin what should be, or remembering what it would say.

use super::{Ran, Rehearsal, Runner, texts};
use crate::active::Active;
use crate::memo::{self, Remembered};
use crate::problem::Problem;
use crate::view::CallView;
use bytes::Bytes;
use reeve_api::Reason;
use reeve_cluster::{Object, Snapshot};
use reeve_core::printable::printable;
use reeve_core::{Desired, Digest, Failure, UnitKey};
use reeve_engine::{Called, Fact, Fault, FaultKind, Level, LogLine, Request, Usage};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;

impl Runner {
    /// Asks the plugin, or remembers what it would say.
    pub(super) async fn ask(
        &self,
        unit: &UnitKey,
        active: &Arc<Active>,
        snapshot: Snapshot,
        primary: &Object,
        facts: Vec<Fact>,
        ran: &mut Ran,
    ) -> Result<Desired, Problem> {
        self.check_lent(unit, active)?;
        let seen = shown(active, primary);
        let view = Arc::new(CallView::new(
            snapshot,
            active.clone(),
            unit,
            self.clock.now(),
        ));
        let given = memo::given(&active.key, &seen, &facts);
        let recalled = self.recall_answer(unit, active, &given, &view).await;
        let recalled = recalled.and_then(|answer| Some((self.memo.desired(&answer)?, answer)));
        if let Some((desired, answer)) = recalled {
            self.metrics.remembered(&unit.plugin);
            ran.reads = Some(answer.reads.keys().cloned().collect());
            ran.unanswered.clone_from(&answer.unanswered);
            return Ok(desired);
        }
        let request = Request {
            primary: seen,
            config: active.config.clone(),
            facts,
            unit: Some(unit.clone()),
        };
        let call = {
            let (active, view, primary) = (active.clone(), view.clone(), unit.primary.clone());
            Box::pin(async move {
                let component = &active.component;
                let called = component.reconcile(request, view, &active.limits).await?;
                // Here and not where it is waited for: to look at a large answer takes as long
                // as to make it, which the plugin's own threads are for.
                Ok(called.map(|answer| answer.map(|outcome| active.check(outcome, &primary))))
            })
        };
        // One that waits for something is asked again when that is there, and not before.
        let called = active.threads.run_judged(call, |answer| match answer {
            Ok(outcome) => outcome.is_err(),
            Err(failure) => !matches!(failure, Failure::NotReady(_)),
        });
        let called = called.await;
        self.count(unit, &called);
        // What it read before is what wakes it, where this cannot be kept.
        let reads = view.reads();
        let reads = reads.and_then(|reads| {
            let kept = self.kept.check(unit, reads.keys());
            kept.map(|()| reads)
        });
        if let Ok(reads) = &reads {
            ran.reads = Some(reads.keys().cloned().collect());
        }
        let outcome = match called {
            Ok(called) => {
                self.log(unit, &called.logs, called.logs_dropped);
                called.value
            }
            Err(fault) => {
                self.log(unit, &fault.logs, fault.logs_dropped);
                return Err(fault_problem(&fault));
            }
        };
        let reads = reads?;
        let outcome = outcome.map_err(failure_problem)?;
        let mut desired = outcome.map_err(|error| {
            Problem::lasting(Reason::OutcomeRefused, printable(error.to_string()))
        })?;
        self.check_places(&desired)?;
        texts::cut_remarks(&mut desired);
        ran.unanswered = view.unanswered();
        let unanswered = ran.unanswered.clone();
        self.memo.remember(unit, given, reads, &desired, unanswered);
        Ok(desired)
    }

    /// What the plugin would say, if that is known. To find out can be as much work as the
    /// call was, and is done where calls are made, in the time that a call may take.
    async fn recall_answer(
        &self,
        unit: &UnitKey,
        active: &Active,
        given: &Digest,
        view: &Arc<CallView>,
    ) -> Option<Arc<Remembered>> {
        let remembered = self.memo.recall(unit, given)?;
        if remembered.is_short(|read| view.bytes(read)) {
            let holds = remembered.holds(|read| view.told(read));
            return holds.then_some(remembered);
        }
        let look = {
            let (remembered, view) = (remembered.clone(), view.clone());
            let most = active.limits.wall_time;
            async move {
                let started = Instant::now();
                let mut holds = true;
                for (read, told) in &remembered.reads {
                    holds = view.told(read) == *told && started.elapsed() < most;
                    if !holds {
                        break;
                    }
                    // So that it ends when nobody waits for it any more.
                    tokio::task::yield_now().await;
                }
                Ok(Called {
                    value: holds,
                    logs: Vec::new(),
                    logs_dropped: false,
                    usage: Usage::default(),
                })
            }
        };
        let looked = active.threads.run(look).await;
        looked
            .is_ok_and(|looked| looked.value)
            .then_some(remembered)
    }

    /// Passes on what a plugin says. What one says that only might run is nobody's
    /// concern, and would be taken for words of the one that does.
    fn log(&self, unit: &UnitKey, lines: &[LogLine], dropped: bool) {
        let shadow = self.rehearsal.as_deref().is_some_and(Rehearsal::is_whole);
        if !shadow {
            log_lines(unit, lines, dropped);
        }
    }

    /// Counts a call, and what it used.
    pub(super) fn count<T>(&self, unit: &UnitKey, called: &Result<Called<T>, Fault>) {
        match called {
            Ok(called) => self.metrics.called(&unit.plugin, &called.usage, None),
            Err(fault) => self
                .metrics
                .called(&unit.plugin, &fault.usage, fault.kind.limit()),
        }
    }

    /// Whoever may make a primary does not thereby choose among all namespaces.
    fn check_lent(&self, unit: &UnitKey, active: &Active) -> Result<(), Problem> {
        match self.lent(unit, active) {
            None => Ok(()),
            Some(words) => Err(Problem::lasting(
                Reason::NamespaceReserved,
                format!("{}: {words}", unit.primary),
            )),
        }
    }

    /// Why a plugin is not asked about a primary, if that stands for a namespace which is not
    /// its maker's.
    pub(crate) fn lent(&self, unit: &UnitKey, active: &Active) -> Option<String> {
        let namespace = active.manifest.lent(&unit.primary, &self.namespace)?;
        let whose = match namespace == &*self.namespace {
            true => "the agent's",
            false => "Kubernetes'",
        };
        let is_namespace =
            unit.primary.kind.group.is_empty() && unit.primary.kind.kind == "Namespace";
        let remedy = match is_namespace {
            true => "it is left alone",
            false => "what there is of the unit is left alone; make one of another name",
        };
        Some(format!(
            "the plugin would read or write in namespace {namespace} because of it, which is \
             {whose} own; no object lends a plugin's rights there: {remedy}"
        ))
    }

    /// Nothing of a plugin's is in the agent's namespace, whatever its manifest
    /// says: what stands there decides what the agent runs, and as whom.
    fn check_places(&self, desired: &Desired) -> Result<(), Problem> {
        let objects = desired.objects.iter().map(|object| &object.reference);
        let absent = desired.absent.iter().map(|absence| &absence.object);
        let secrets = desired.actions.iter().flat_map(|action| &action.secrets);
        let mut secrets = secrets.filter(|secret| secret.namespace == *self.namespace);
        if let Some(secret) = secrets.next() {
            return Err(Problem::lasting(
                Reason::OutcomeRefused,
                format!(
                    "Secret {}/{}: namespace {} is the agent's own, which no plugin may change; use another",
                    secret.namespace, secret.secret, self.namespace
                ),
            ));
        }
        let here = objects.chain(absent).find(|object| {
            let is_it = object.kind.group.is_empty() && object.kind.kind == "Namespace";
            object.namespace.as_deref() == Some(&*self.namespace)
                || (is_it && object.name == *self.namespace)
        });
        match here {
            None => Ok(()),
            Some(object) => Err(Problem::lasting(
                Reason::OutcomeRefused,
                format!(
                    "{object}: namespace {} is the agent's own, which no plugin may change; use another",
                    self.namespace
                ),
            )),
        }
    }
}

/// A primary as a plugin is shown it, as the bytes that cross.
pub(super) fn shown(active: &Active, primary: &Object) -> Bytes {
    let projection = &active.manifest.primary().projection;
    // Of one that is going, more has to be left out.
    let cut = (!primary.is_deleting()).then(|| projection.show(primary.json()).ok());
    Bytes::from(
        cut.flatten()
            .unwrap_or_else(|| seen(active, primary).to_string()),
    )
}

/// A primary as a plugin is shown it.
pub(crate) fn seen(active: &Active, primary: &Object) -> Value {
    let mut whole = primary.value();
    // One that is going is asked about as what it was: what the plugin wanted of it
    // says how it ends.
    if let Some(metadata) = whole.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("deletionTimestamp");
        metadata.remove("deletionGracePeriodSeconds");
    }
    active.manifest.primary().projection.apply(&whole)
}

pub(super) fn log_lines(unit: &UnitKey, lines: &[LogLine], dropped: bool) {
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

pub(super) fn fault_problem(fault: &Fault) -> Problem {
    let reason = match *fault.kind {
        FaultKind::Trap { .. } | FaultKind::Exit { .. } | FaultKind::MalformedResult { .. } => {
            Reason::Trapped
        }
        FaultKind::Refused { .. } | FaultKind::NoActions => Reason::OutcomeRefused,
        FaultKind::Host { .. } => Reason::Retrying,
        _ => Reason::LimitExceeded,
    };
    Problem {
        reason,
        message: texts::of_fault(fault),
        retries: fault.retries(),
    }
}

fn failure_problem(failure: Failure) -> Problem {
    match texts::cut_failure(failure) {
        Failure::Retry(message) => Problem::passing(Reason::Retrying, message),
        Failure::Terminal(message) => Problem::lasting(Reason::Terminal, message),
        Failure::NotReady(message) => Problem::lasting(Reason::NotReady, message),
    }
}
