//! Which unit runs next.
//!
//! A unit is queued at most once, runs at most once at a time, and runs once more
//! when it is added while it runs. Plugins take turns, and none may hold all of
//! the room, so that one with many or slow units cannot starve another. What a
//! person asked for goes first.
//!
//! Within a plugin there are two lanes. What concerns one unit, such as a drift, goes
//! in front; a pass over all of its units, such as after an upgrade, waits in the bulk
//! lane, so that nothing is repaired the later for it. Where both have units, they take
//! turns: a change waits for one unit of the pass, however many there are, and the pass
//! has half of the plugin's room, whatever else goes on.

use crate::metrics::Metrics;
use foldhash::HashMap;
use reeve_cluster::Object;
use reeve_core::{ObjectReference, UnitKey};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A queue of units, each there once.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Ready units by plugin.
    ready: HashMap<Arc<str>, Lanes>,
    /// Plugins with ready units, in the order of their turns.
    turns: VecDeque<Arc<str>>,
    /// Units that are ready.
    queued: HashMap<UnitKey, Queued>,
    /// Units that run, and how long they had been ready.
    running: HashMap<UnitKey, Duration>,
    /// How many run, by plugin.
    busy: HashMap<Arc<str>, usize>,
    /// Units that were added while they ran, and how.
    again: HashMap<UnitKey, Urgency>,
    /// What units that run own and their watches have told of meanwhile, and in which version.
    told: HashMap<UnitKey, HashMap<ObjectReference, String>>,
    /// Units that are due later, soonest first.
    delayed: BTreeSet<(Instant, UnitKey)>,
    due: HashMap<UnitKey, Instant>,
    /// Plugins of which nothing runs before a time.
    resting: HashMap<Arc<str>, Instant>,
    /// How many were added to bulk lanes so far.
    bulk: u64,
    metrics: Metrics,
}

/// Why a unit is to run: the later, the more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// All units of the plugin are to.
    Bulk,
    /// Something has happened to it.
    Event,
    /// A person waits for it.
    Person,
}

/// Ready units of one plugin.
#[derive(Debug, Default)]
struct Lanes {
    front: VecDeque<UnitKey>,
    /// In the order in which they were added, from which one can be taken out.
    bulk: BTreeMap<u64, UnitKey>,
    /// Whether the bulk lane has the next turn, should both have units.
    bulk_is_next: bool,
}

/// A unit that is ready.
#[derive(Debug)]
struct Queued {
    since: Instant,
    /// Its place in the bulk lane, if it is there.
    bulk: Option<u64>,
}

impl Lanes {
    fn len(&self) -> usize {
        self.front.len() + self.bulk.len()
    }

    fn is_empty(&self) -> bool {
        self.front.is_empty() && self.bulk.is_empty()
    }

    fn pop(&mut self) -> Option<UnitKey> {
        if self.front.is_empty() || (self.bulk_is_next && !self.bulk.is_empty()) {
            self.bulk_is_next = false;
            return self.bulk.pop_first().map(|(_, unit)| unit);
        }
        self.bulk_is_next = !self.bulk.is_empty();
        self.front.pop_front()
    }

    fn remove(&mut self, unit: &UnitKey, bulk: Option<u64>) {
        match bulk {
            Some(place) => {
                self.bulk.remove(&place);
            }
            None => self.front.retain(|queued| queued != unit),
        }
    }
}

impl Queue {
    /// An empty queue that is counted.
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self {
            metrics,
            ..Self::default()
        }
    }

    /// Lets a unit run as soon as it can. A delay that it had is forgotten.
    pub(crate) fn add(&mut self, unit: UnitKey) {
        self.enqueue(unit, Urgency::Event);
    }

    /// As [`Queue::add`], where all units of a plugin are added, or many: those to which
    /// something happens meanwhile go before them.
    pub(crate) fn add_bulk(&mut self, unit: UnitKey) {
        self.enqueue(unit, Urgency::Bulk);
    }

    /// Lets a unit run before all others: a person waits for it.
    pub(crate) fn add_first(&mut self, unit: UnitKey) {
        self.enqueue(unit, Urgency::Person);
    }

    fn enqueue(&mut self, unit: UnitKey, urgency: Urgency) {
        self.forget_delay(&unit);
        if self.running.contains_key(&unit) {
            let again = self.again.entry(unit).or_insert(urgency);
            *again = urgency.max(*again);
            return;
        }
        let plugin = unit.plugin.clone();
        let lanes = self.ready.entry(plugin.clone()).or_default();
        let had_none = lanes.is_empty();
        let known = self.queued.get(&unit).map(|queued| queued.bulk);
        let moves = match known {
            None => true,
            Some(bulk) => {
                urgency == Urgency::Person || (urgency == Urgency::Event && bulk.is_some())
            }
        };
        if !moves {
            return;
        }
        if let Some(bulk) = known {
            lanes.remove(&unit, bulk);
        }
        let mut bulk = None;
        match urgency {
            Urgency::Bulk => {
                self.bulk += 1;
                lanes.bulk.insert(self.bulk, unit.clone());
                bulk = Some(self.bulk);
            }
            Urgency::Event => lanes.front.push_back(unit.clone()),
            Urgency::Person => {
                lanes.front.push_front(unit.clone());
                lanes.bulk_is_next = false;
                self.turns.retain(|turn| *turn != plugin);
                self.turns.push_front(plugin.clone());
            }
        }
        if had_none && urgency != Urgency::Person {
            self.turns.push_back(plugin.clone());
        }
        self.metrics.depth(&plugin, lanes.len());
        if known.is_none() {
            self.metrics.queued(&plugin);
        }
        let queued = self.queued.entry(unit).or_insert_with(|| Queued {
            since: Instant::now(),
            bulk,
        });
        queued.bulk = bulk;
    }

    /// Lets a unit run at `at` at the latest. An earlier time that it has stays.
    pub(crate) fn add_at(&mut self, unit: UnitKey, at: Instant) {
        if self.queued.contains_key(&unit) || self.due.get(&unit).is_some_and(|due| *due <= at) {
            return;
        }
        self.forget_delay(&unit);
        self.due.insert(unit.clone(), at);
        self.delayed.insert((at, unit));
    }

    /// When the next delayed unit is due, or a plugin with ready units has rested.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let resting = self.resting.iter();
        let ready = resting.filter(|(plugin, _)| self.ready.contains_key(*plugin));
        let rested = ready.map(|(_, until)| *until);
        rested.chain(self.next_delayed()).min()
    }

    fn next_delayed(&self) -> Option<Instant> {
        self.delayed.first().map(|(at, _)| *at)
    }

    /// Lets nothing of a plugin run before a time. A later time that it has stays.
    pub(crate) fn rest(&mut self, plugin: &Arc<str>, until: Instant) {
        let known = self.resting.entry(plugin.clone()).or_insert(until);
        *known = until.max(*known);
    }

    /// Takes the next unit, which then counts as running, of a plugin of which
    /// fewer than `share` run.
    pub(crate) fn take(&mut self, now: Instant, share: usize) -> Option<UnitKey> {
        self.resting.retain(|_, until| *until > now);
        while self.next_delayed().is_some_and(|at| at <= now) {
            if let Some((_, unit)) = self.delayed.pop_first() {
                self.due.remove(&unit);
                self.add(unit);
            }
        }
        let may_run = |plugin: &Arc<str>| {
            let busy = self.busy.get(plugin).copied().unwrap_or_default();
            busy < share && !self.resting.contains_key(plugin)
        };
        let turn = self.turns.iter().position(may_run)?;
        let plugin = self.turns.remove(turn)?;
        let lanes = self.ready.get_mut(&plugin)?;
        let unit = lanes.pop()?;
        self.metrics.depth(&plugin, lanes.len());
        if lanes.is_empty() {
            self.ready.remove(&plugin);
        } else {
            self.turns.push_back(plugin.clone());
        }
        let ready = self.queued.remove(&unit).map(|queued| queued.since);
        let waited = now.saturating_duration_since(ready.unwrap_or(now));
        *self.busy.entry(plugin).or_default() += 1;
        self.running.insert(unit.clone(), waited);
        Some(unit)
    }

    /// How long a unit that runs had been ready before.
    pub(crate) fn waited(&self, unit: &UnitKey) -> Duration {
        self.running.get(unit).copied().unwrap_or_default()
    }

    /// Lets a unit run for an object of its own that is another. A watch is often faster than
    /// the answer to the write that it tells of: while the unit runs it is not known yet
    /// whether this is what it has written itself.
    pub(crate) fn add_for(&mut self, unit: UnitKey, object: &Object) {
        if !self.running.contains_key(&unit) {
            return self.add(unit);
        }
        let version = object.resource_version().to_owned();
        let told = self.told.entry(unit).or_default();
        told.insert(object.reference(), version);
    }

    /// Ends a run that has written these objects. Returns as [`Queue::done`].
    pub(crate) fn done_writing(&mut self, unit: &UnitKey, written: &[Arc<Object>]) -> bool {
        if let Some(told) = self.told.get_mut(unit) {
            for object in written {
                let reference = object.reference();
                if told.get(&reference).map(String::as_str) == Some(object.resource_version()) {
                    told.remove(&reference);
                }
            }
        }
        self.done(unit)
    }

    /// Ends a run. Returns whether the unit was added in the meantime, in which
    /// case it is queued again.
    pub(crate) fn done(&mut self, unit: &UnitKey) -> bool {
        if self.running.remove(unit).is_some()
            && let Some(busy) = self.busy.get_mut(&unit.plugin)
        {
            *busy -= 1;
            if *busy == 0 {
                self.busy.remove(&unit.plugin);
            }
        }
        let told = self.told.remove(unit).is_some_and(|told| !told.is_empty());
        let again = self.again.remove(unit).or(told.then_some(Urgency::Event));
        if let Some(urgency) = again {
            self.enqueue(unit.clone(), urgency);
        }
        again.is_some()
    }

    /// Forgets a unit. If it runs, it is not run again.
    pub(crate) fn remove(&mut self, unit: &UnitKey) {
        self.forget_delay(unit);
        self.again.remove(unit);
        self.told.remove(unit);
        if let Some(queued) = self.queued.remove(unit)
            && let Some(lanes) = self.ready.get_mut(&unit.plugin)
        {
            lanes.remove(unit, queued.bulk);
            self.metrics.depth(&unit.plugin, lanes.len());
            if lanes.is_empty() {
                self.ready.remove(&unit.plugin);
                self.turns.retain(|plugin| *plugin != unit.plugin);
            }
        }
    }

    /// Whether nothing runs and nothing is ready. Delayed units do not count.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.queued.is_empty()
    }

    /// How many units are ready to run.
    pub(crate) fn depth(&self) -> usize {
        self.queued.len()
    }

    /// How many units are in it in any way.
    pub(crate) fn len(&self) -> usize {
        let ready: usize = self.ready.values().map(Lanes::len).sum();
        let known = self.queued.len() + self.running.len() + self.again.len() + self.due.len();
        let known = known + self.told.len();
        ready + known + self.delayed.len() + self.turns.len() + self.busy.len() + self.resting.len()
    }

    fn forget_delay(&mut self, unit: &UnitKey) {
        if let Some(at) = self.due.remove(unit) {
            self.delayed.remove(&(at, unit.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_cluster::Resource;
    use reeve_core::GroupVersionKind;
    fn unit(plugin: &str, name: &str) -> UnitKey {
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        UnitKey::new(plugin, ObjectReference::new(kind, None, name))
    }

    fn take(queue: &mut Queue, now: Instant) -> Option<UnitKey> {
        queue.take(now, usize::MAX)
    }

    #[test]
    fn a_unit_is_queued_once_and_runs_once() {
        let mut queue = Queue::default();
        let now = Instant::now();
        queue.add(unit("p", "a"));
        queue.add(unit("p", "a"));
        assert_eq!(take(&mut queue, now), Some(unit("p", "a")));
        assert_eq!(take(&mut queue, now), None);
        queue.add(unit("p", "a"));
        assert_eq!(take(&mut queue, now), None, "it runs already");
        assert!(queue.done(&unit("p", "a")));
        assert_eq!(take(&mut queue, now), Some(unit("p", "a")));
        assert!(!queue.done(&unit("p", "a")));
        assert!(queue.is_idle());
    }

    fn object(name: &str, version: &str) -> Arc<Object> {
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"{name}","namespace":"n","uid":"u-{name}","resourceVersion":"{version}"}}}}"#
        );
        let resource = Resource {
            kind: GroupVersionKind::new("", "v1", "Secret"),
            plural: "secrets".into(),
            namespaced: true,
        };
        Arc::new(Object::parse(&resource, body.as_bytes()).unwrap())
    }

    #[test]
    fn a_unit_runs_again_for_what_it_has_not_written_itself() {
        let mut queue = Queue::default();
        let now = Instant::now();
        let a = || unit("p", "a");
        // At rest, whoever has written it.
        queue.add_for(a(), &object("x", "1"));
        assert_eq!(take(&mut queue, now), Some(a()));
        let (mine, other) = (object("x", "2"), object("y", "3"));
        queue.add_for(a(), &mine);
        queue.add_for(a(), &other);
        assert!(!queue.done_writing(&a(), &[mine.clone(), other]));
        // Somebody has written after it.
        queue.add(a());
        take(&mut queue, now);
        queue.add_for(a(), &mine);
        queue.add_for(a(), &object("x", "4"));
        assert!(queue.done_writing(&a(), std::slice::from_ref(&mine)));
        // It wrote something else.
        assert_eq!(take(&mut queue, now), Some(a()));
        queue.add_for(a(), &object("y", "5"));
        assert!(queue.done_writing(&a(), std::slice::from_ref(&mine)));
        // Something else has happened, too.
        assert_eq!(take(&mut queue, now), Some(a()));
        queue.add_for(a(), &mine);
        queue.add(a());
        assert!(queue.done_writing(&a(), std::slice::from_ref(&mine)));
        // Nobody can tell what it has written.
        assert_eq!(take(&mut queue, now), Some(a()));
        queue.add_for(a(), &mine);
        assert!(queue.done(&a()));
        assert_eq!(take(&mut queue, now), Some(a()));
        queue.add_for(a(), &mine);
        queue.remove(&a());
        assert!(!queue.done(&a()));
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn plugins_take_turns() {
        let mut queue = Queue::default();
        for name in ["1", "2", "3"] {
            queue.add(unit("many", name));
        }
        queue.add(unit("one", "1"));
        let order: Vec<_> = std::iter::from_fn(|| take(&mut queue, Instant::now()))
            .map(|unit| format!("{}{}", unit.plugin, unit.primary.name))
            .collect();
        assert_eq!(order, ["many1", "one1", "many2", "many3"]);
    }

    #[test]
    fn a_person_goes_first() {
        let mut queue = Queue::default();
        let now = Instant::now();
        for name in ["1", "2"] {
            queue.add(unit("many", name));
            queue.add(unit("other", name));
        }
        queue.add_first(unit("other", "2"));
        queue.add_first(unit("third", "1"));
        let order: Vec<_> = std::iter::from_fn(|| take(&mut queue, now))
            .map(|unit| format!("{}{}", unit.plugin, unit.primary.name))
            .collect();
        assert_eq!(order, ["third1", "other2", "many1", "other1", "many2"]);
        assert!(queue.ready.is_empty() && queue.queued.is_empty());
    }

    #[test]
    fn a_person_who_asks_for_what_runs_goes_first_after_it() {
        let mut queue = Queue::default();
        let now = Instant::now();
        for name in ["1", "2", "3"] {
            queue.add(unit("many", name));
        }
        assert_eq!(take(&mut queue, now), Some(unit("many", "1")));
        queue.add_first(unit("many", "1"));
        queue.add(unit("many", "1"));
        assert!(queue.done(&unit("many", "1")));
        assert_eq!(take(&mut queue, now), Some(unit("many", "1")));
        assert_eq!(take(&mut queue, now), Some(unit("many", "2")));
    }

    fn names(queue: &mut Queue, now: Instant) -> Vec<String> {
        let units = std::iter::from_fn(|| take(queue, now));
        units.map(|unit| unit.primary.name.clone()).collect()
    }

    #[test]
    fn a_pass_over_all_units_delays_nobody_and_is_not_starved() {
        let mut queue = Queue::default();
        let now = Instant::now();
        for name in 0..10 {
            queue.add_bulk(unit("p", &name.to_string()));
        }
        let first = [take(&mut queue, now), take(&mut queue, now)];
        assert_eq!(first, [Some(unit("p", "0")), Some(unit("p", "1"))]);
        // One that has run, one that runs, one that waits in the pass, and one of its own.
        queue.done(&unit("p", "0"));
        for name in ["0", "1", "8", "x"] {
            queue.add(unit("p", name));
        }
        queue.add_bulk(unit("p", "0"));
        queue.add_bulk(unit("p", "8"));
        assert!(queue.done(&unit("p", "1")));
        assert_eq!(queue.depth(), 11);
        let order = names(&mut queue, now);
        let expected = ["0", "2", "8", "3", "x", "4", "1", "5", "6", "7", "9"];
        assert_eq!(order, expected);
        for name in order {
            assert!(!queue.done(&unit("p", &name)));
        }
        assert!(queue.is_idle());
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn a_pass_takes_turns_with_other_plugins_and_yields_to_a_person() {
        let mut queue = Queue::default();
        let now = Instant::now();
        for name in ["1", "2", "3"] {
            queue.add_bulk(unit("many", name));
        }
        queue.add_bulk(unit("other", "a"));
        queue.add(unit("other", "b"));
        queue.add_first(unit("many", "3"));
        queue.remove(&unit("many", "2"));
        assert_eq!(names(&mut queue, now), ["3", "b", "1", "a"]);
        assert!(queue.ready.is_empty() && queue.turns.is_empty());
        // What is added in bulk while it runs waits in bulk, unless something happens.
        queue.add_bulk(unit("many", "3"));
        queue.add_bulk(unit("many", "1"));
        queue.add(unit("many", "1"));
        queue.add_bulk(unit("many", "4"));
        for name in ["3", "1"] {
            assert!(queue.done(&unit("many", name)));
        }
        assert_eq!(names(&mut queue, now), ["1", "4", "3"]);
        // A delay is over when a pass comes.
        queue.add_at(unit("many", "9"), now + Duration::from_secs(5));
        queue.add_bulk(unit("many", "9"));
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn no_plugin_holds_all_of_the_room() {
        let mut queue = Queue::default();
        let now = Instant::now();
        for name in ["1", "2", "3"] {
            queue.add(unit("slow", name));
        }
        let next = |queue: &mut Queue| queue.take(now, 2);
        assert_eq!(next(&mut queue), Some(unit("slow", "1")));
        assert_eq!(next(&mut queue), Some(unit("slow", "2")));
        assert_eq!(next(&mut queue), None, "two of it run");
        queue.add(unit("quick", "1"));
        assert_eq!(next(&mut queue), Some(unit("quick", "1")));
        queue.done(&unit("slow", "1"));
        assert_eq!(next(&mut queue), Some(unit("slow", "3")));
        for name in ["2", "3"] {
            queue.done(&unit("slow", name));
        }
        queue.done(&unit("quick", "1"));
        assert!(queue.busy.is_empty());
    }

    #[test]
    fn a_plugin_that_rests_runs_nothing_and_holds_up_nobody() {
        let mut queue = Queue::default();
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        queue.add(unit("told", "1"));
        queue.rest(&"told".into(), later(5));
        queue.rest(&"told".into(), later(3));
        queue.rest(&"idle".into(), later(2));
        queue.add(unit("other", "1"));
        queue.add_first(unit("told", "2"));
        assert_eq!(take(&mut queue, now), Some(unit("other", "1")));
        assert_eq!(take(&mut queue, later(4)), None);
        assert_eq!(queue.next_due(), Some(later(5)));
        assert_eq!(take(&mut queue, later(5)), Some(unit("told", "2")));
        assert_eq!(take(&mut queue, later(5)), Some(unit("told", "1")));
        assert_eq!((queue.next_due(), queue.resting.len()), (None, 0));
    }

    #[test]
    fn delays_keep_the_earliest_and_yield_to_now() {
        let mut queue = Queue::default();
        let now = Instant::now();
        let later = |seconds| now + Duration::from_secs(seconds);
        queue.add_at(unit("p", "a"), later(5));
        queue.add_at(unit("p", "a"), later(9));
        assert_eq!(queue.next_due(), Some(later(5)));
        queue.add_at(unit("p", "a"), later(2));
        assert_eq!(queue.next_due(), Some(later(2)));
        assert_eq!(take(&mut queue, now), None);
        assert_eq!(take(&mut queue, later(2)), Some(unit("p", "a")));
        queue.done(&unit("p", "a"));
        queue.add_at(unit("p", "a"), later(9));
        queue.add(unit("p", "a"));
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn a_removed_unit_does_not_return() {
        let mut queue = Queue::default();
        let now = Instant::now();
        queue.add(unit("p", "a"));
        queue.remove(&unit("p", "a"));
        assert_eq!(take(&mut queue, now), None);
        queue.add(unit("p", "b"));
        take(&mut queue, now);
        queue.add(unit("p", "b"));
        queue.remove(&unit("p", "b"));
        assert!(!queue.done(&unit("p", "b")));
        queue.add(unit("p", "c"));
        assert_eq!(take(&mut queue, now), Some(unit("p", "c")));
    }
}
