//! Which unit runs next.
//!
//! A unit is queued at most once, runs at most once at a time, and runs once more
//! when it is added while it runs. Plugins take turns, so that one with many
//! units cannot starve another.

use crate::metrics::Metrics;
use reeve_core::UnitKey;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A queue of units, each there once.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Ready units by plugin.
    ready: HashMap<Arc<str>, VecDeque<UnitKey>>,
    /// Plugins with ready units, in the order of their turns.
    turns: VecDeque<Arc<str>>,
    /// Since when units are ready.
    queued: HashMap<UnitKey, Instant>,
    /// Units that run, and how long they had been ready.
    running: HashMap<UnitKey, Duration>,
    /// Units that were added while they ran.
    again: HashSet<UnitKey>,
    /// Units that are due later, soonest first.
    delayed: BTreeSet<(Instant, UnitKey)>,
    due: HashMap<UnitKey, Instant>,
    metrics: Metrics,
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
        self.forget_delay(&unit);
        if self.running.contains_key(&unit) {
            self.again.insert(unit);
        } else if !self.queued.contains_key(&unit) {
            self.queued.insert(unit.clone(), Instant::now());
            let plugin = unit.plugin.clone();
            self.metrics.queued(&plugin);
            let units = self.ready.entry(plugin.clone()).or_default();
            if units.is_empty() {
                self.turns.push_back(plugin.clone());
            }
            units.push_back(unit);
            self.metrics.depth(&plugin, units.len());
        }
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

    /// When the next delayed unit is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.delayed.first().map(|(at, _)| *at)
    }

    /// Takes the next unit, which then counts as running.
    pub(crate) fn take(&mut self, now: Instant) -> Option<UnitKey> {
        while self.next_due().is_some_and(|at| at <= now) {
            if let Some((_, unit)) = self.delayed.pop_first() {
                self.due.remove(&unit);
                self.add(unit);
            }
        }
        let plugin = self.turns.pop_front()?;
        let units = self.ready.get_mut(&plugin)?;
        let unit = units.pop_front()?;
        self.metrics.depth(&plugin, units.len());
        if units.is_empty() {
            self.ready.remove(&plugin);
        } else {
            self.turns.push_back(plugin);
        }
        let ready = self.queued.remove(&unit).unwrap_or(now);
        let waited = now.saturating_duration_since(ready);
        self.running.insert(unit.clone(), waited);
        Some(unit)
    }

    /// How long a unit that runs had been ready before.
    pub(crate) fn waited(&self, unit: &UnitKey) -> Duration {
        self.running.get(unit).copied().unwrap_or_default()
    }

    /// Ends a run. Returns whether the unit was added in the meantime, in which
    /// case it is queued again.
    pub(crate) fn done(&mut self, unit: &UnitKey) -> bool {
        self.running.remove(unit);
        let again = self.again.remove(unit);
        if again {
            self.add(unit.clone());
        }
        again
    }

    /// Forgets a unit. If it runs, it is not run again.
    pub(crate) fn remove(&mut self, unit: &UnitKey) {
        self.forget_delay(unit);
        self.again.remove(unit);
        if self.queued.remove(unit).is_some()
            && let Some(units) = self.ready.get_mut(&unit.plugin)
        {
            units.retain(|queued| queued != unit);
            self.metrics.depth(&unit.plugin, units.len());
            if units.is_empty() {
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

    fn forget_delay(&mut self, unit: &UnitKey) {
        if let Some(at) = self.due.remove(unit) {
            self.delayed.remove(&(at, unit.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::{GroupVersionKind, ObjectReference};
    use std::time::Duration;

    fn unit(plugin: &str, name: &str) -> UnitKey {
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        UnitKey::new(plugin, ObjectReference::new(kind, None, name))
    }

    #[test]
    fn a_unit_is_queued_once_and_runs_once() {
        let mut queue = Queue::default();
        let now = Instant::now();
        queue.add(unit("p", "a"));
        queue.add(unit("p", "a"));
        assert_eq!(queue.take(now), Some(unit("p", "a")));
        assert_eq!(queue.take(now), None);
        queue.add(unit("p", "a"));
        assert_eq!(queue.take(now), None, "it runs already");
        assert!(queue.done(&unit("p", "a")));
        assert_eq!(queue.take(now), Some(unit("p", "a")));
        assert!(!queue.done(&unit("p", "a")));
        assert!(queue.is_idle());
    }

    #[test]
    fn plugins_take_turns() {
        let mut queue = Queue::default();
        for name in ["1", "2", "3"] {
            queue.add(unit("many", name));
        }
        queue.add(unit("one", "1"));
        let order: Vec<_> = std::iter::from_fn(|| queue.take(Instant::now()))
            .map(|unit| format!("{}{}", unit.plugin, unit.primary.name))
            .collect();
        assert_eq!(order, ["many1", "one1", "many2", "many3"]);
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
        assert_eq!(queue.take(now), None);
        assert_eq!(queue.take(later(2)), Some(unit("p", "a")));
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
        assert_eq!(queue.take(now), None);
        queue.add(unit("p", "b"));
        queue.take(now);
        queue.add(unit("p", "b"));
        queue.remove(&unit("p", "b"));
        assert!(!queue.done(&unit("p", "b")));
        queue.add(unit("p", "c"));
        assert_eq!(queue.take(now), Some(unit("p", "c")));
    }
}
