//! The state of one plugin, installed or loading or refused.

use crate::active::Active;
use crate::controller::contributions::Contributions;
use crate::controller::{Removing, parse_kind};
use crate::event_limit::EventLimit;
use crate::execute::Contested;
use crate::kept::LastGood;
use crate::left::{self, Place};
use crate::load::Standing;
use crate::problem::Problem;
use crate::request::Asking;
use crate::rights::Rights;
use crate::run::{Sync, absences_of, approve_command, recreations_of};
use crate::strangers::Strangers;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use reeve_api::{
    ConditionType, PlanStatus, PluginSource, PluginSpec, PluginStatus, Reason, SyncMode,
    UnitCounts, condition, remove_condition, set_condition,
};
use reeve_cluster::Object;
use reeve_core::ObjectReference;
use reeve_core::backoff::Backoff;
use reeve_core::outcome::Event;
use reeve_core::ownership::unit_label;
use reeve_core::prune::{Guard, Policy, Token};
use reeve_core::{Digest, GroupVersionKind, UnitKey};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// One plugin.
#[derive(Debug)]
pub(crate) struct PluginState {
    pub(crate) name: Arc<str>,
    /// The ConfigMap as it is now; none when it is gone.
    pub(crate) config_map: Option<Arc<Object>>,
    /// The plugin whose component it runs, when that is not its own.
    pub(crate) component_of: Option<Arc<str>>,
    /// What the last version that ran asked for; none when none ever did.
    pub(crate) asks: Option<Vec<String>>,
    /// The token by which a person approved of what a version asks for.
    pub(crate) approved_asks: Option<String>,
    /// The `Plugin` object's spec and generation; none while it does not exist.
    pub(crate) policy: Option<(PluginSpec, Option<i64>)>,
    pub(crate) loading: Option<AbortHandle>,
    /// When to load again although nothing has changed.
    pub(crate) retry_at: Option<Instant>,
    /// Whether a load was asked for while not everything was known.
    pub(crate) wants_load: bool,
    /// What is known of the rights of what runs.
    pub(crate) rights: Option<Rights>,
    /// How what runs stands in the cluster.
    pub(crate) standing: Standing,
    /// Where there may be objects of the plugin, those of earlier versions included.
    pub(crate) places: BTreeSet<Place>,
    /// The last version that passed every gate, here or before a restart.
    pub(crate) last_good: Option<LastGood>,
    /// Whether the cluster serves a kind no longer as it did when what runs was
    /// loaded: then it is loaded again although nothing of its own has changed.
    pub(crate) outdated: bool,
    pub(crate) load_failures: u32,
    /// What runs.
    pub(crate) active: Option<Arc<Active>>,
    /// For which objects it runs, or ran last.
    pub(crate) primary_kind: Option<GroupVersionKind>,
    /// The removal of what it has, once it was removed itself.
    pub(crate) removing: Option<Removing>,
    /// Digest of the newest component, running or not.
    pub(crate) newest: Option<Digest>,
    /// Why the newest version does not run.
    pub(crate) problem: Option<Problem>,
    pub(crate) units: HashMap<ObjectReference, UnitState>,
    /// Unit labels and the primaries that they stand for.
    pub(crate) labels: HashMap<String, ObjectReference>,
    /// Objects by the unit label that they carry.
    pub(crate) owned: HashMap<String, BTreeSet<ObjectReference>>,
    /// How many those are: asked for at each run, so not counted anew.
    pub(crate) owned_count: usize,
    /// Where its units contribute to objects of others.
    pub(crate) contributions: Contributions,
    /// Objects of no unit, since their primaries are of another kind.
    pub(crate) strangers: Strangers,
    /// What keeps it from deleting a cluster.
    pub(crate) guard: Arc<Mutex<Guard>>,
    /// Held deletions that a person has approved.
    pub(crate) approvals: Arc<[Token]>,
    /// What a person asked of its units: to run at once, and to be tried anew.
    pub(crate) reconcile: Asking,
    pub(crate) retry: Asking,
    /// Whether deletions were held before this agent led, and not all units have
    /// run since.
    pub(crate) was_holding: bool,
    /// Whether the guard knows what was withdrawn before this agent led.
    pub(crate) recalled: Arc<OnceCell<()>>,
    /// Conditions as last reported, for their times of transition.
    pub(crate) conditions: Vec<Condition>,
    /// The status as last reported.
    pub(crate) reported: Option<PluginStatus>,
}

/// One primary of a plugin.
#[derive(Debug, Default)]
pub(crate) struct UnitState {
    /// Whether the primary exists, as far as is known.
    pub(crate) present: bool,
    pub(crate) health: Health,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// What the plugin wants for it.
    pub(crate) desired: Vec<ObjectReference>,
    /// Objects of others to which it wants to contribute.
    pub(crate) contributing: Vec<ObjectReference>,
    /// Conditions as last reported.
    pub(crate) conditions: Vec<Condition>,
    /// Whether there is a `Unit` object.
    pub(crate) reported: bool,
    /// Repairs of drift that followed closely on one another, and when the last
    /// one was.
    pub(crate) drifts: u32,
    pub(crate) drifted_at: Option<Instant>,
    /// What was taken from the unit again and again, while that goes on.
    pub(crate) fight: Option<String>,
    /// Events of the last answer.
    pub(crate) events: Vec<Event>,
    /// How many more may be recorded.
    pub(crate) event_limit: EventLimit,
    /// What keeps it from being ready.
    pub(crate) problem: Option<Problem>,
    /// How far its last revision is.
    pub(crate) sync: Sync,
    /// Since when the object that the sync waits for is waited for.
    pub(crate) blocked_since: Option<(String, Timestamp)>,
    /// Whether the primary waits for the unit's end when it is deleted.
    pub(crate) held: bool,
    /// The plan that a person has approved.
    pub(crate) approved_plan: Option<String>,
    /// What would be written, where that waits for a person.
    pub(crate) plan: Option<PlanStatus>,
    /// Whether a person has asked for a new attempt since the last run.
    pub(crate) retry: bool,
    /// Whether it has run since the guard was made.
    pub(crate) heard: bool,
}

/// How a unit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Health {
    /// It has not run yet.
    #[default]
    Unknown,
    /// Its desired state is in place.
    Ready,
    /// Something has to happen first.
    Waiting,
    /// It is in trouble.
    Failing,
}

/// Repairs of drift within this time belong to one fight.
const DRIFT_WINDOW: Duration = Duration::from_secs(60);
/// So many repairs are made at once; whoever then still changes the field has a
/// reason, and is answered with growing delays.
const DRIFTS_AT_ONCE: u32 = 3;

impl UnitState {
    /// Notes a repair of drift.
    fn repaired(&mut self, now: Instant) {
        let closely = self
            .drifted_at
            .is_some_and(|last| now - last < DRIFT_WINDOW.max(self.pause()));
        self.drifts = if closely {
            self.drifts.saturating_add(1)
        } else {
            1
        };
        self.drifted_at = Some(now);
    }

    /// Notes what was taken back, if anything, and says for how long the unit is in a
    /// fight with somebody, if it is.
    pub(crate) fn fought(&mut self, contested: &[Contested], now: Instant) -> Option<Instant> {
        if !contested.is_empty() {
            self.repaired(now);
            if self.drifts >= DRIFTS_AT_ONCE {
                self.fight = Some(crate::execute::fight(contested));
            }
        }
        let over = self.drifted_at? + DRIFT_WINDOW.max(self.pause());
        if self.fight.is_some() && now >= over {
            self.fight = None;
        }
        self.fight.is_some().then_some(over)
    }

    /// Begins a new attempt, since a person asked for it.
    pub(crate) fn try_anew(&mut self) {
        self.retry = true;
        self.failures = 0;
        self.drifts = 0;
    }

    /// When drift is to be repaired, if not at once.
    pub(crate) fn drift_delay(&self) -> Option<Instant> {
        let last = self.drifted_at.filter(|_| self.drifts >= DRIFTS_AT_ONCE)?;
        Some(last + self.pause())
    }

    fn pause(&self) -> Duration {
        Backoff::UNIT.delay(self.drifts.saturating_sub(DRIFTS_AT_ONCE - 1), 1.0)
    }
}

impl PluginState {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            config_map: None,
            component_of: None,
            asks: None,
            approved_asks: None,
            policy: None,
            loading: None,
            retry_at: None,
            wants_load: false,
            rights: None,
            standing: Standing::default(),
            places: BTreeSet::new(),
            last_good: None,
            outdated: false,
            load_failures: 0,
            active: None,
            primary_kind: None,
            removing: None,
            newest: None,
            problem: None,
            units: HashMap::new(),
            labels: HashMap::new(),
            owned: HashMap::new(),
            strangers: Strangers::default(),
            owned_count: 0,
            contributions: Contributions::default(),
            guard: Arc::new(Mutex::new(Guard::new(name, Policy::default()))),
            approvals: Arc::default(),
            reconcile: Asking::default(),
            retry: Asking::default(),
            recalled: Arc::default(),
            was_holding: false,
            conditions: Vec::new(),
            reported: None,
        }
    }

    /// Takes up what an earlier life of the agent left in the status. Times of
    /// transition survive a restart by that.
    pub(crate) fn restore(&mut self, status: PluginStatus) {
        self.conditions.clone_from(&status.conditions);
        self.asks.clone_from(&status.asks);
        let places = status.writes.iter().filter_map(Place::from_status);
        self.places.extend(places);
        self.contributions
            .record(status.contributes_to.iter().cloned().collect());
        if self.primary_kind.is_none() {
            self.primary_kind = status.primary_kind.as_deref().and_then(parse_kind);
        }
        if self.last_good.is_none() {
            self.last_good = status.last_good.as_ref().and_then(LastGood::from_status);
        }
        self.reported = Some(status);
    }

    /// Takes in how what runs stands in the cluster.
    pub(crate) fn stand(&mut self, active: &Active, standing: Standing) {
        self.places = Place::of(&active.manifest);
        let left = standing.left.iter().map(|left| left.place.clone());
        self.places.extend(left);
        self.standing = standing;
    }

    pub(crate) fn unit(&self, primary: &ObjectReference) -> UnitKey {
        UnitKey::new(self.name.clone(), primary.clone())
    }

    /// The state of a unit, made if it is new.
    pub(crate) fn ensure_unit(&mut self, unit: &UnitKey) -> &mut UnitState {
        let reference = &*unit.primary;
        if !self.units.contains_key(reference) {
            self.labels.insert(unit_label(unit), reference.clone());
        }
        self.units.entry(reference.clone()).or_default()
    }

    /// Forgets a unit.
    pub(crate) fn forget_unit(&mut self, unit: &UnitKey) -> Option<UnitState> {
        // Another version of the primary's kind has the same label.
        let label = unit_label(unit);
        if self.labels.get(&label) == Some(&*unit.primary) {
            self.labels.remove(&label);
        }
        let mut guard = self.guard.lock();
        guard.forget(unit);
        guard.forget(&absences_of(unit));
        guard.forget(&recreations_of(unit));
        drop(guard);
        self.has_run(unit);
        let state = self.units.remove(&*unit.primary)?;
        self.contributions
            .want(&unit.primary, &state.contributing, &[]);
        Some(state)
    }

    /// Makes the guard anew: what was withdrawn, and whether something was held, is
    /// known from the cluster, where another replica may have put it.
    pub(crate) fn renew_guard(&mut self) {
        self.guard = Arc::new(Mutex::new(Guard::new(&*self.name, Policy::default())));
        self.recalled = Arc::default();
        let held = ConditionType::DeletionsHeld.as_str();
        let mut conditions = self.conditions.iter();
        self.was_holding = conditions.any(|one| one.type_ == held && one.status == "True");
        for unit in self.units.values_mut() {
            unit.heard = false;
        }
    }

    /// Lets go what is held and was approved before it was: a restart forgets what
    /// is held, and not what was approved. Returns whether that is anything.
    pub(crate) fn approve_held(&mut self, now: Timestamp) -> bool {
        let mut guard = self.guard.lock();
        let mut approvals = self.approvals.iter();
        approvals.any(|token| guard.approve(token, now).is_ok())
    }

    /// Notes that a unit has run. Once all have, what was held before is held again
    /// or is no longer asked for.
    pub(crate) fn heard(&mut self) {
        if self.was_holding && self.units.values().all(|unit| unit.heard || !unit.present) {
            self.was_holding = false;
            self.guard.lock().caught_up();
        }
    }

    /// Objects that carry a unit's label.
    pub(crate) fn owned_by(&self, unit: &UnitKey) -> Vec<ObjectReference> {
        let owned = self.owned.get(&unit_label(unit));
        owned
            .map(|set| set.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Digest and version of what runs.
    pub(crate) fn running(&self) -> Option<(String, String)> {
        let active = self.active.as_ref()?;
        let digest = active.component.digest().to_string();
        Some((digest, active.metadata.version.clone()))
    }

    pub(crate) fn counts(&self) -> UnitCounts {
        let mut counts = UnitCounts::default();
        for unit in self.units.values().filter(|unit| unit.present) {
            counts.total += 1;
            match unit.health {
                Health::Ready => counts.ready += 1,
                Health::Failing => counts.failing += 1,
                Health::Waiting => counts.waiting += 1,
                Health::Unknown => {}
            }
        }
        counts
    }

    /// The status to report.
    pub(crate) fn status(&mut self, now: Timestamp) -> PluginStatus {
        let counts = self.counts();
        // Whoever deletes a plugin does not want it back when the next one is bad.
        if self.config_map.is_none() {
            self.last_good = None;
        }
        let generation = self.policy.as_ref().and_then(|(_, generation)| *generation);
        let mut conditions = std::mem::take(&mut self.conditions);
        let mut set = |kind: ConditionType, status: &str, reason: Reason, message: String| {
            let new = condition(
                kind.as_str(),
                status,
                reason.to_string(),
                message,
                generation,
                now,
            );
            set_condition(&mut conditions, new);
        };
        let (loaded, granted) = (ConditionType::Loaded, ConditionType::Granted);
        let blind = self.active.as_ref().and_then(|active| active.blind());
        match (&self.active, &self.problem) {
            (Some(active), None) => {
                let digest = active.component.digest();
                set(loaded, "True", Reason::Running, format!("running {digest}"));
                set(
                    ConditionType::Ready,
                    "True",
                    Reason::Running,
                    ready_message(&counts),
                );
            }
            (Some(active), Some(problem)) => {
                let digest = active.component.digest();
                set(loaded, "False", problem.reason, problem.message.clone());
                let message = format!(
                    "{}; still running {digest}, the newest version is not: {}",
                    ready_message(&counts),
                    problem.message
                );
                set(ConditionType::Ready, "True", Reason::Running, message);
            }
            (None, Some(problem)) => {
                set(loaded, "False", problem.reason, problem.message.clone());
                set(
                    ConditionType::Ready,
                    "False",
                    problem.reason,
                    problem.message.clone(),
                );
            }
            (None, None) => {
                let message = "the component is being loaded".to_owned();
                set(loaded, "Unknown", Reason::Loading, message.clone());
                set(ConditionType::Ready, "False", Reason::Loading, message);
            }
        }
        // A version that cannot see what it works on is not ready, whatever it did.
        if let Some(problem) = blind {
            set(
                ConditionType::Ready,
                "False",
                problem.reason,
                problem.message,
            );
        }
        if self.is_suspended() {
            let message = format!(
                "{}; suspended by spec.suspend, nothing is written until it is false",
                ready_message(&counts)
            );
            set(ConditionType::Ready, "False", Reason::Suspended, message);
        }
        let blocked = self.problem.as_ref().filter(|problem| {
            matches!(
                problem.reason,
                Reason::Forbidden | Reason::ServiceAccountUnusable
            )
        });
        match (blocked, &self.active) {
            (Some(problem), _) => set(granted, "False", problem.reason, problem.message.clone()),
            (None, Some(_)) if self.standing.ungranted.is_empty() => {
                set(
                    granted,
                    "True",
                    Reason::AllGranted,
                    "everything that the manifest asks for is granted".to_owned(),
                );
            }
            (None, Some(_)) => set(
                granted,
                "Unknown",
                Reason::Forbidden,
                format!(
                    "not granted cluster-wide: {}; units whose namespace does not grant it either say so",
                    self.standing.ungranted.join("; ")
                ),
            ),
            (None, None) => set(
                granted,
                "Unknown",
                Reason::Loading,
                "not known before the manifest is".to_owned(),
            ),
        }
        let (status, reason, message) = if let Some(active) = &self.active {
            let strangers = self.strangers.describe(active);
            left::condition(&self.name, &self.standing.left, strangers)
        } else {
            let message = "not known while no version runs".to_owned();
            ("Unknown", Reason::Loading, message)
        };
        set(ConditionType::Pruned, status, reason, message);
        self.set_progress(&mut conditions, &counts, now);
        self.conditions.clone_from(&conditions);
        let active = self.active.as_ref();
        PluginStatus {
            observed_generation: generation,
            digest: active.map(|a| a.component.digest().to_string()),
            component: active.map(|a| a.metadata.name.clone()),
            version: active.map(|a| a.metadata.version.clone()),
            primary_kind: self.primary_kind.as_ref().map(ToString::to_string),
            source: self.config_map.as_ref().map(|map| PluginSource {
                config_map: map.name().to_owned(),
                digest: self.newest.map(|digest| digest.to_string()),
            }),
            last_good: self.last_good.map(LastGood::to_status),
            writes: self.places.iter().map(Place::to_status).collect(),
            contributes_to: self.contributions.kinds.iter().cloned().collect(),
            asks: self.asks.clone(),
            units: active.map(|_| counts),
            last_handled_reconcile_at: self.reconcile.handled.clone(),
            last_handled_retry_at: self.retry.handled.clone(),
            conditions,
        }
    }
}

impl PluginState {
    /// Whether the policy pauses it.
    pub(crate) fn is_suspended(&self) -> bool {
        self.policy.as_ref().is_some_and(|(spec, _)| spec.suspend)
    }

    /// When what it wants is written.
    pub(crate) fn mode(&self) -> SyncMode {
        let mode = self.policy.as_ref().and_then(|(spec, _)| spec.mode);
        mode.unwrap_or_default()
    }

    /// What of all units waits for a person's word.
    fn set_held(&self, conditions: &mut Vec<Condition>, now: Timestamp) {
        let Some(hold) = self.guard.lock().hold() else {
            // Not known yet whether it still is so.
            if !self.was_holding {
                remove_condition(conditions, ConditionType::DeletionsHeld);
            }
            return;
        };
        let command = approve_command(&self.name, &hold.token);
        let new = condition(
            ConditionType::DeletionsHeld.as_str(),
            "True",
            Reason::DeletionHeld.to_string(),
            format!("{hold}: {command}"),
            self.policy.as_ref().and_then(|(_, generation)| *generation),
            now,
        );
        set_condition(conditions, new);
    }

    /// The two conditions that stand only while they are true.
    fn set_progress(&self, conditions: &mut Vec<Condition>, counts: &UnitCounts, now: Timestamp) {
        let generation = self.policy.as_ref().and_then(|(_, generation)| *generation);
        let waiting = counts.total - counts.ready;
        let progress = match &self.problem {
            _ if self.is_suspended() => None,
            Some(problem) if problem.retries || self.loading.is_some() => Some((
                ConditionType::Reconciling,
                problem.reason,
                problem.message.clone(),
            )),
            Some(problem) => Some((
                ConditionType::Stalled,
                problem.reason,
                problem.message.clone(),
            )),
            None if self.active.is_none() || self.loading.is_some() => Some((
                ConditionType::Reconciling,
                Reason::Loading,
                "the component is being loaded".to_owned(),
            )),
            None if waiting > 0 => Some((
                ConditionType::Reconciling,
                Reason::UnitsNotReady,
                ready_message(counts),
            )),
            None => None,
        };
        self.set_held(conditions, now);
        for kind in [ConditionType::Reconciling, ConditionType::Stalled] {
            match &progress {
                Some((holds, reason, message)) if *holds == kind => {
                    let new = condition(
                        kind.as_str(),
                        "True",
                        reason.to_string(),
                        message.clone(),
                        generation,
                        now,
                    );
                    set_condition(conditions, new);
                }
                _ => {
                    remove_condition(conditions, kind);
                }
            }
        }
    }
}

fn ready_message(counts: &UnitCounts) -> String {
    let UnitCounts {
        total,
        ready,
        failing,
        waiting,
    } = counts;
    let mut text = format!("{ready} of {total} units ready");
    for (count, how) in [(waiting, "waiting"), (failing, "failing")] {
        if *count > 0 {
            text.push_str(&format!(", {count} {how}"));
        }
    }
    if *waiting > 0 || *failing > 0 {
        text.push_str(": see `kubectl get units`");
    }
    text
}
