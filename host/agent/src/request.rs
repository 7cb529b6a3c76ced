//! What a person asks of a plugin's units with the annotations
//! `reeve.dev/reconcile-at`, `reeve.dev/retry-at` and `reeve.dev/sync-at` of its `Plugin`.

use crate::plugin::{Health, PluginState};
use reeve_api::PluginStatus;
use reeve_core::{ObjectReference, UnitKey};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// To run units at once.
    Reconcile,
    /// To try anew what is in trouble.
    Retry,
    /// To begin syncs anew.
    Sync,
}

/// How a unit is to go on with its sync. Who asks for more asks for all before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Attempt {
    /// As it is.
    #[default]
    Same,
    /// As it is, but with nothing taken for granted that nobody watches: Secrets, and what
    /// was made outside.
    Look,
    /// With what has failed forgotten.
    Retry,
    /// From its beginning, hooks included.
    Anew,
}

/// What was asked of single units, and when each of it was last.
pub(crate) type Overheard = BTreeMap<ObjectReference, BTreeMap<Attempt, Instant>>;

/// What was asked with one of the annotations, and how far that is.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    /// The last request.
    requested: Option<String>,
    /// Units that have yet to run for it.
    asked: BTreeSet<ObjectReference>,
    /// The last request for which all of them have.
    pub(crate) handled: Option<String>,
}

impl Asking {
    /// Notes whether all that was asked for is done.
    fn handle(&mut self) {
        if self.asked.is_empty() {
            self.handled.clone_from(&self.requested);
        }
    }
}

/// The unit of a request, by its id: any text, usually the time, which may be followed
/// by that. None for all units.
fn unit_of(text: &str) -> Option<&str> {
    // The first word makes each request a new one.
    let (_, unit) = text.trim().split_once(' ')?;
    Some(unit.trim()).filter(|unit| !unit.is_empty())
}

/// What follows from a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Units to run at once.
    pub(crate) units: Vec<UnitKey>,
    /// Whether the plugin is to be loaded again if it does not run.
    pub(crate) load: bool,
    /// Whether anything was asked that was not before.
    pub(crate) new: bool,
}

impl PluginState {
    fn asking(&mut self, ask: Ask) -> &mut Asking {
        match ask {
            Ask::Reconcile => &mut self.reconcile,
            Ask::Retry => &mut self.retry,
            Ask::Sync => &mut self.resync,
        }
    }

    /// Takes in what is asked now. An agent that has just started runs every unit
    /// anyway, so what it finds asked is taken for done.
    pub(crate) fn request(&mut self, ask: Ask, text: Option<String>, first_look: bool) -> Asked {
        let asking = self.asking(ask);
        if asking.requested == text {
            return Asked::default();
        }
        asking.requested.clone_from(&text);
        asking.asked.clear();
        let mut asked = Asked {
            new: true,
            ..Asked::default()
        };
        let Some(text) = text.filter(|_| !first_look) else {
            asking.handle();
            return asked;
        };
        if ask == Ask::Retry && self.problem.is_some() {
            asked.load = true;
            self.load_failures = 0;
        }
        let wanted = unit_of(&text);
        // Whoever has just pushed does not want to wait for the next look at the tag.
        asked.load |= ask == Ask::Reconcile && wanted.is_none() && self.artifact().is_some();
        let primaries: Vec<_> = self.units.keys().cloned().collect();
        for primary in primaries {
            let unit = self.unit(&primary);
            if wanted.is_some_and(|wanted| wanted != unit.id()) {
                continue;
            }
            let Some(state) = self.units.get_mut(&primary) else {
                continue;
            };
            if ask == Ask::Retry {
                if state.health() == Health::Ready {
                    continue;
                }
                state.try_anew(Attempt::Retry);
            }
            match ask {
                Ask::Reconcile => state.try_anew(Attempt::Look),
                Ask::Retry => {}
                Ask::Sync => state.try_anew(Attempt::Anew),
            }
            self.asking(ask).asked.insert((*primary).clone());
            asked.units.push(unit);
        }
        self.asking(ask).handle();
        asked
    }

    /// Whether one of the last requests was for this unit alone: who asked looks for what came
    /// of it.
    pub(crate) fn is_named(&self, unit: &UnitKey) -> bool {
        let requests = [&self.reconcile, &self.retry, &self.resync].into_iter();
        let mut named = requests.filter_map(|asking| unit_of(asking.requested.as_deref()?));
        named.any(|named| named == unit.id())
    }

    /// Leaves to the leader what was asked, which has done so much of it.
    pub(crate) fn leave_requests(&mut self, status: &PluginStatus) {
        for (asking, handled) in [
            (&mut self.reconcile, &status.last_handled_reconcile_at),
            (&mut self.retry, &status.last_handled_retry_at),
            (&mut self.resync, &status.last_handled_sync_at),
        ] {
            if handled.is_some() && *handled == asking.requested {
                asking.asked.clear();
                asking.handle();
            }
        }
    }

    /// Notes what was asked of a single unit while another replica led, or none.
    pub(crate) fn overhear(&mut self, primary: &ObjectReference, attempt: Attempt) {
        let heard = self.overheard.entry(primary.clone()).or_default();
        heard.insert(attempt, Instant::now());
    }

    /// Takes up what was asked and has not been done by who led before, and nothing that was.
    /// Of what was asked of single units nobody says that it was done: what was asked since
    /// then is done once more, but no sync is begun anew for that.
    pub(crate) fn take_up_requests(&mut self, since: Instant) {
        for unit in self.units.values_mut() {
            unit.attempt = Attempt::Same;
        }
        for (primary, heard) in std::mem::take(&mut self.overheard) {
            let recent = heard.into_iter().filter(|(_, when)| *when >= since);
            let most = recent.map(|(attempt, _)| attempt).max();
            if let (Some(unit), Some(attempt)) = (self.units.get_mut(&primary), most) {
                unit.try_anew(attempt.min(Attempt::Retry));
            }
        }
        for (asking, attempt) in [
            (&self.reconcile, Attempt::Look),
            (&self.retry, Attempt::Retry),
            (&self.resync, Attempt::Anew),
        ] {
            for primary in &asking.asked {
                if let Some(unit) = self.units.get_mut(primary) {
                    unit.try_anew(attempt);
                }
            }
        }
    }

    /// Notes that a unit has run. What was asked meanwhile, or what the run did not come to, is
    /// done by another.
    pub(crate) fn has_run(&mut self, unit: &UnitKey) {
        let state = self.units.get(&*unit.primary);
        if state.is_some_and(|state| state.attempt != Attempt::Same) {
            return;
        }
        for asking in [&mut self.reconcile, &mut self.retry, &mut self.resync] {
            if asking.asked.remove(&*unit.primary) {
                asking.handle();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::GroupVersionKind;
    use std::time::Duration;

    /// As a run that begins now and comes to its end.
    fn has_run(plugin: &mut PluginState, unit: &UnitKey) {
        if let Some(state) = plugin.units.get_mut(&*unit.primary) {
            state.attempt = Attempt::Same;
        }
        plugin.has_run(unit);
    }

    #[test]
    fn a_request_may_name_a_unit() {
        for (text, unit) in [
            ("2026-01-01T00:00:00Z", None),
            ("1 Profile.kubeflow.org//a", Some("Profile.kubeflow.org//a")),
            (
                " 1  Profile.kubeflow.org//a ",
                Some("Profile.kubeflow.org//a"),
            ),
            ("1 ", None),
            ("", None),
        ] {
            assert_eq!(unit_of(text), unit, "{text}");
        }
    }

    #[test]
    fn a_request_is_done_when_its_units_have_run() {
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        let mut plugin = PluginState::new("p");
        let unit = |name: &str| {
            let primary = ObjectReference::new(kind.clone(), None, name);
            UnitKey::new("p", primary)
        };
        for (name, health) in [("a", Health::Ready), ("b", Health::Failing)] {
            let state = plugin.ensure_unit(&unit(name));
            state.set_health(health);
            state.failures = 7;
        }
        let text = |text: &str| Some(text.to_owned());
        let nothing = Asked {
            new: true,
            ..Asked::default()
        };
        use Ask::{Reconcile, Retry, Sync};
        assert_eq!(plugin.request(Reconcile, text("1"), true), nothing);
        assert_eq!(plugin.reconcile.handled, text("1"), "before the start");

        assert_eq!(plugin.request(Reconcile, text("2"), false).units.len(), 2);
        assert_eq!(plugin.reconcile.handled, text("1"));
        // It was asked while they were running already.
        plugin.has_run(&unit("a"));
        plugin.has_run(&unit("b"));
        assert_eq!(plugin.reconcile.handled, text("1"));
        has_run(&mut plugin, &unit("a"));
        has_run(&mut plugin, &unit("a"));
        assert_eq!(plugin.reconcile.handled, text("1"));
        has_run(&mut plugin, &unit("b"));
        assert_eq!(plugin.reconcile.handled, text("2"));
        let again = plugin.request(Reconcile, text("2"), false);
        assert_eq!(again, Asked::default(), "nothing new");

        assert_eq!(plugin.request(Retry, text("3"), false).units, [unit("b")]);
        assert_eq!(plugin.units[&*unit("b").primary].failures, 0);
        assert_eq!(plugin.units[&*unit("b").primary].attempt, Attempt::Retry);
        assert_eq!(plugin.units[&*unit("a").primary].failures, 7);
        assert_eq!(plugin.retry.handled, None);
        has_run(&mut plugin, &unit("b"));
        assert_eq!(plugin.retry.handled, text("3"));

        let anew = "9 Profile.kubeflow.org//a";
        assert_eq!(plugin.request(Sync, text(anew), false).units, [unit("a")]);
        assert_eq!(plugin.units[&*unit("a").primary].attempt, Attempt::Anew);
        has_run(&mut plugin, &unit("a"));
        assert_eq!(plugin.resync.handled, text(anew));

        // Whoever follows does not do again what the leader has done, and does the rest when
        // it leads.
        plugin.request(Sync, text("10"), false);
        plugin.request(Reconcile, text("11 Profile.kubeflow.org//b"), false);
        let (long_ago, now) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        let done = PluginStatus {
            last_handled_sync_at: text("10"),
            last_handled_reconcile_at: text("2"),
            ..PluginStatus::default()
        };
        plugin.leave_requests(&done);
        let overheard = [("a", long_ago), ("b", now)].map(|(name, when)| {
            let primary = (*unit(name).primary).clone();
            (primary, BTreeMap::from([(Attempt::Anew, when)]))
        });
        for (primary, _) in &overheard {
            plugin
                .units
                .get_mut(primary)
                .unwrap()
                .try_anew(Attempt::Anew);
        }
        let mut attempts = |overheard: &[_]| {
            plugin.overheard = overheard.iter().cloned().collect();
            plugin.take_up_requests(now);
            assert!(plugin.overheard.is_empty());
            ["a", "b"].map(|name| plugin.units[&*unit(name).primary].attempt)
        };
        assert_eq!(attempts(&[]), [Attempt::Same, Attempt::Look]);
        assert_eq!(attempts(&overheard), [Attempt::Same, Attempt::Retry]);
        // Who asks for less after that takes nothing back, and asks for nothing more either.
        let a = (*unit("a").primary).clone();
        let heard = |retry, look| {
            let heard = BTreeMap::from([(Attempt::Retry, retry), (Attempt::Look, look)]);
            [(a.clone(), heard)]
        };
        assert_eq!(attempts(&heard(now, now))[0], Attempt::Retry);
        assert_eq!(attempts(&heard(long_ago, now))[0], Attempt::Look);
        assert_eq!(attempts(&heard(long_ago, long_ago))[0], Attempt::Same);
        plugin.overhear(&a, Attempt::Retry);
        plugin.overhear(&a, Attempt::Look);
        assert_eq!(plugin.overheard[&a].len(), 2);
        plugin.overheard.clear();
        assert_eq!(plugin.resync.handled, text("10"));
        has_run(&mut plugin, &unit("b"));
        assert_eq!(plugin.reconcile.handled, text("11 Profile.kubeflow.org//b"));

        let one = plugin.request(Reconcile, text("4 Profile.kubeflow.org//a"), false);
        assert_eq!(one.units, [unit("a")]);
        let none = plugin.request(Reconcile, text("5 Profile.kubeflow.org//c"), false);
        assert_eq!(none, nothing);
        assert_eq!(plugin.reconcile.handled, text("5 Profile.kubeflow.org//c"));
        // Who goes has nothing more to do.
        plugin.request(Reconcile, text("12 Profile.kubeflow.org//a"), false);
        plugin.forget_unit(&unit("a"));
        assert_eq!(plugin.reconcile.handled, text("12 Profile.kubeflow.org//a"));
    }
}
