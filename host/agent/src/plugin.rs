//! The state of one plugin, installed or loading or refused.

mod status;
pub(crate) mod steps;
mod tally;
pub(crate) mod told;
mod unit;

pub(crate) use tally::Health;
use told::Told;
pub(crate) use unit::UnitState;

use crate::active::Active;
use crate::controller::contributions::Contributions;
use crate::controller::load_job::{Previous, Words};
use crate::controller::{Canary, Removing, Tag, parse_kind};
use crate::event_limit::EventLimit;
use crate::left::Place;
use crate::load::Standing;
use crate::problem::Problem;
use crate::request::{Asking, Attempt, Overheard};
use crate::rights::Rights;
use crate::run::{absences_of, recreations_of};
use crate::strangers::Strangers;
use crate::version::{Artifact, VersionId};
use foldhash::{HashMap, HashMapExt as _, HashSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use reeve_api::{
    CanaryStatus, ConditionType, PluginSpec, PluginStatus, Reason, ShadowStatus, SyncMode,
};
use reeve_cluster::{Object, ObjectChange};
use reeve_core::ObjectReference;
use reeve_core::manifest::is_definition;
use reeve_core::outcome::Event;
use reeve_core::ownership::unit_label;
use reeve_core::prune::{Guard, Policy, Token};
use reeve_core::{Digest, GroupVersionKind, UnitKey};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tally::Tally;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// For so long at most. Tens of thousands of units run in less, and whoever looks at
/// the status of a plugin that takes longer wants to see that.
const QUIET: Duration = Duration::from_secs(30);

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
    /// What a person has said of versions.
    pub(crate) words: Words,
    /// The `Plugin` object's spec and generation; none while it does not exist.
    pub(crate) policy: Option<(PluginSpec, Option<i64>)>,
    /// Why the `Plugin` object cannot be read, while that is so. Nothing is loaded then.
    pub(crate) unreadable: Option<Problem>,
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
    pub(crate) last_good: Option<VersionId>,
    /// The one that ran before that.
    pub(crate) previous: Previous,
    /// The one that a person went back from, until the newest runs, if only for some units.
    pub(crate) left: Previous,
    /// The artifact that it is, if it is one.
    pub(crate) tag: Tag,
    /// What the last shadow run found.
    pub(crate) shadow: Option<ShadowStatus>,
    /// A version that some units run, and what all others do meanwhile.
    pub(crate) canary: Option<Canary>,
    /// What was said last of one.
    pub(crate) canary_status: Option<CanaryStatus>,
    /// Whether the cluster serves a kind no longer as it did when what runs was
    /// loaded: then it is loaded again although nothing of its own has changed.
    pub(crate) outdated: bool,
    pub(crate) load_failures: u32,
    /// Whether what was found of the newest version was found before all units had run under
    /// the one that runs: then it is not what the newest would do beyond that.
    pub(crate) judged_early: bool,
    /// An event that waits for the `Plugin` to be made.
    pub(crate) untold: Option<Event>,
    /// How many more may be recorded of it.
    pub(crate) event_limit: EventLimit,
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
    /// Boxed: a table has up to twice as many places as entries.
    pub(crate) units: HashMap<Arc<ObjectReference>, Box<UnitState>>,
    /// What was asked of single units while another replica led.
    pub(crate) overheard: Overheard,
    /// Which of them have `Unit` objects that only tell.
    pub(crate) told: Told,
    /// How many of those are how.
    pub(crate) tally: Arc<Tally>,
    /// Unit labels and the primaries that they stand for.
    pub(crate) labels: HashMap<String, Arc<ObjectReference>>,
    /// Objects by the unit label that they carry.
    pub(crate) owned: HashMap<String, HashSet<ObjectReference>>,
    /// How many those are: asked for at each run, so not counted anew.
    pub(crate) owned_count: usize,
    /// Where its units contribute to objects of others.
    pub(crate) contributions: Contributions,
    /// Objects of no unit, since their primaries are of another kind.
    pub(crate) strangers: Strangers,
    /// What the API server says of a `Unit` object of it that it refuses.
    pub(crate) unwritten: Option<String>,
    /// How many units had outside effects when it stopped.
    pub(crate) effects_left: usize,
    /// What keeps it from deleting a cluster.
    pub(crate) guard: Arc<Mutex<Guard>>,
    /// Held deletions that a person has approved.
    pub(crate) approvals: Arc<[Token]>,
    /// What a person asked of its units: to run at once, and to be tried anew.
    pub(crate) reconcile: Asking,
    pub(crate) retry: Asking,
    /// What was asked with `reeve.dev/sync-at`.
    pub(crate) resync: Asking,
    /// Whether deletions were held before this agent led, and not all units have
    /// run since.
    pub(crate) was_holding: bool,
    /// Whether the guard knows what was withdrawn before this agent led.
    pub(crate) recalled: Arc<OnceCell<()>>,
    /// Why nobody tells what is granted, if nobody does.
    pub(crate) rights_unknown: Option<Problem>,
    /// Conditions as last reported, for their times of transition.
    pub(crate) conditions: Vec<Condition>,
    /// The status as last reported.
    pub(crate) reported: Option<PluginStatus>,
    /// Until when what an earlier life reported stands, while its units are run once
    /// to see that it still holds.
    pub(crate) quiet_until: Option<Instant>,
}

impl PluginState {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            config_map: None,
            component_of: None,
            asks: None,
            approved_asks: None,
            words: Words::default(),
            policy: None,
            unreadable: None,
            loading: None,
            retry_at: None,
            wants_load: false,
            rights: None,
            standing: Standing::default(),
            places: BTreeSet::new(),
            last_good: None,
            previous: Previous::default(),
            left: Previous::default(),
            tag: Tag::default(),
            canary: None,
            canary_status: None,
            shadow: None,
            outdated: false,
            load_failures: 0,
            judged_early: false,
            untold: None,
            event_limit: EventLimit::default(),
            active: None,
            primary_kind: None,
            removing: None,
            newest: None,
            problem: None,
            units: HashMap::new(),
            told: Told::default(),
            overheard: Overheard::new(),
            tally: Arc::default(),
            labels: HashMap::new(),
            owned: HashMap::new(),
            strangers: Strangers::default(),
            owned_count: 0,
            unwritten: None,
            effects_left: 0,
            contributions: Contributions::default(),
            guard: Arc::new(Mutex::new(Guard::new(name, Policy::default()))),
            approvals: Arc::default(),
            reconcile: Asking::default(),
            retry: Asking::default(),
            resync: Asking::default(),
            recalled: Arc::default(),
            rights_unknown: None,
            was_holding: false,
            conditions: Vec::new(),
            reported: None,
            quiet_until: None,
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
            self.last_good = status.last_good.as_ref().and_then(VersionId::from_status);
        }
        if self.previous.version.is_none() {
            let previous = status.previous.as_ref();
            self.previous.version = previous.and_then(VersionId::from_status);
        }
        // Who follows forgets it with the leader, too.
        let left = status.rolled_back_from.as_ref();
        let left = left.and_then(VersionId::from_status);
        if self.left.version != left {
            self.left = Previous {
                version: left,
                compiled: None,
            };
        }
        if self.shadow.is_none() {
            self.shadow.clone_from(&status.shadow);
        }
        if self.canary.is_none() {
            self.canary_status.clone_from(&status.canary);
        }
        if self.tag.pulled.is_none() {
            let source = status.source.as_ref();
            self.tag.pulled = source.and_then(|source| source.artifact.clone());
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

    /// Notes that a definition of the plugin's has changed: a kind that it waits for may
    /// be served within moments.
    pub(crate) fn look_for_kinds(&mut self, change: &ObjectChange, now: Instant) {
        let waits = |active: &Arc<Active>| !active.unserved.is_empty();
        let defines = is_definition(&change.reference.kind);
        if defines
            && self.active.as_ref().is_some_and(waits)
            && let Some(rights) = &mut self.rights
        {
            rights.hurry(now);
        }
    }

    /// Notes that a version takes over, and what ran before it. There a person may go
    /// back to, unless it is what was gone back from: with `back`, just now.
    pub(crate) fn take_over(&mut self, version: VersionId, back: bool, cached: bool) {
        let before = self.last_good.replace(version);
        if before == Some(version) {
            return;
        }
        let Some(before) = before else {
            self.left = Previous::default();
            return;
        };
        let active = self.active.as_ref().filter(|_| !cached);
        let ran = active.filter(|active| VersionId::running(active) == before);
        let before_this = Previous {
            version: Some(before),
            compiled: ran.map(|active| Artifact::of(active)),
        };
        let unwanted = self.words.is_rolled_back(before);
        (self.previous, self.left) = match (unwanted, back) {
            (true, true) => (Previous::default(), before_this),
            (true, false) => Default::default(),
            (false, _) => (before_this, Previous::default()),
        };
    }

    /// Whether a person went back from a version and wants it again.
    pub(crate) fn wants_left(&self) -> bool {
        let left = self.left.version;
        left.is_some_and(|left| !self.words.is_rolled_back(left) && self.last_good != Some(left))
    }

    /// The state of a unit, made if it is new.
    pub(crate) fn ensure_unit(&mut self, unit: &UnitKey) -> &mut UnitState {
        let primary = &unit.primary;
        if !self.units.contains_key(&**primary) {
            self.labels
                .insert(unit_label(unit).to_owned(), primary.clone());
        }
        let new = || Box::new(UnitState::new(self.tally.clone()));
        self.units.entry(primary.clone()).or_insert_with(new)
    }

    /// Forgets a unit. Who has waited for its room to be told of is told of with the next that
    /// makes room: where one goes alone, its run has released it.
    pub(crate) fn forget_unit(&mut self, unit: &UnitKey) -> Option<Box<UnitState>> {
        // Another version of the primary's kind has the same label.
        let label = unit_label(unit);
        if self.labels.get(label) == Some(&unit.primary) {
            self.labels.remove(label);
        }
        let mut guard = self.guard.lock();
        guard.forget(unit);
        guard.forget(&absences_of(unit));
        guard.forget(&recreations_of(unit));
        drop(guard);
        let state = self.units.remove(&*unit.primary);
        self.overheard.remove(&*unit.primary);
        self.told.release(&unit.primary);
        // Whatever else was asked of it.
        self.has_run(unit);
        let state = state?;
        self.contributions
            .want(&unit.primary, &state.contributing, &[]);
        Some(state)
    }

    /// Makes the guard anew: what was withdrawn, and whether something was held, is
    /// known from the cluster, where another replica may have put it.
    pub(crate) fn renew_guard(&mut self) {
        let policy = self.active.as_ref().map(|active| active.withdrawals);
        let guard = Guard::new(&*self.name, policy.unwrap_or_default());
        self.guard = Arc::new(Mutex::new(guard));
        self.recalled = Arc::default();
        let held = ConditionType::DeletionsHeld.as_str();
        let mut conditions = self.conditions.iter();
        self.was_holding = conditions.any(|one| one.type_ == held && one.status == "True");
        for unit in self.units.values_mut() {
            unit.set_heard(false);
        }
    }

    /// Lets what was reported before stand until it is known how the units are now: a
    /// restart that changes nothing writes nothing.
    pub(crate) fn be_quiet(&mut self) {
        let quiet = self.reported.is_some();
        self.quiet_until = quiet.then(|| Instant::now() + QUIET);
    }

    /// Whether nothing is to be reported yet. Once it is false, it stays so.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let known = match &self.active {
            Some(_) => self.tally.all_heard(),
            None => false,
        };
        let lasts = self.quiet_until.is_some_and(|until| Instant::now() < until);
        let quiet = lasts && !known && self.problem.is_none();
        if !quiet {
            self.quiet_until = None;
        }
        quiet
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
        if self.was_holding && self.tally.all_heard() {
            self.was_holding = false;
            self.guard.lock().caught_up();
        }
    }

    /// Whether all units have run under the version that runs.
    pub(crate) fn is_settled(&self) -> bool {
        let counts = self.counts();
        let known = counts.ready + counts.waiting + counts.failing >= counts.total;
        known && self.tally.all_caught_up()
    }

    /// Whether the newest version is held for what it would do, which can be told better once
    /// all units have run.
    pub(crate) fn is_held_early(&self) -> bool {
        let held = |problem: &Problem| problem.reason == Reason::UpgradeHeld;
        self.judged_early && self.problem.as_ref().is_some_and(held)
    }

    /// Whether that is to be told anew now.
    pub(crate) fn is_to_be_judged_again(&self) -> bool {
        self.is_held_early() && self.is_settled()
    }

    /// Objects that carry a unit's label, in their order.
    pub(crate) fn owned_by(&self, unit: &UnitKey) -> Vec<ObjectReference> {
        let owned = self.owned.get(unit_label(unit)).into_iter().flatten();
        let mut owned: Vec<ObjectReference> = owned.cloned().collect();
        owned.sort_unstable();
        owned
    }

    /// Digest and version of what runs, for most units at least.
    pub(crate) fn running(&self) -> Option<(String, String)> {
        let active = self.stable()?;
        let digest = active.component.digest().to_string();
        Some((digest, active.metadata.version.clone()))
    }

    /// Whether the policy pauses it.
    pub(crate) fn is_suspended(&self) -> bool {
        self.policy.as_ref().is_some_and(|(spec, _)| spec.suspend)
    }

    /// Takes the policy of its object, or none where there is no object. Returns whether its
    /// units are to run for that, of which no load tells: they have been suspended, or what
    /// they want is written at another time.
    pub(crate) fn set_policy(&mut self, policy: Option<(PluginSpec, Option<i64>)>) -> bool {
        let (was_suspended, mode) = (self.is_suspended(), self.mode());
        self.policy = policy;
        let other_mode = mode != self.mode();
        if other_mode {
            // What was held under the other mode is asked for anew, or not at all.
            self.renew_guard();
        }
        let resumed = was_suspended && !self.is_suspended();
        if resumed {
            // What nobody watches may have become otherwise.
            for unit in self.units.values_mut() {
                unit.try_anew(Attempt::Look);
            }
        }
        other_mode || resumed
    }

    /// When what it wants is written.
    pub(crate) fn mode(&self) -> SyncMode {
        let mode = self.policy.as_ref().and_then(|(spec, _)| spec.mode);
        mode.unwrap_or_default()
    }
}
