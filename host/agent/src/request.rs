//! What a person asks of a plugin's units with the annotation
//! `reeve.dev/reconcile-at`.

use crate::plugin::{Health, PluginState};
use reeve_core::UnitKey;

/// A request to run units at once: any text, usually the time, which may be followed
/// by the word `retry` and by a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request<'a> {
    /// Only what is in trouble, and as if it had not failed before.
    retry: bool,
    /// Only this unit, by its id; none for all.
    unit: Option<&'a str>,
}

impl<'a> Request<'a> {
    fn parse(text: &'a str) -> Self {
        // The first word makes each request a new one.
        let (_, rest) = text.trim().split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        let (retry, unit) = match rest.strip_prefix("retry") {
            Some("") => (true, ""),
            Some(unit) if unit.starts_with(' ') => (true, unit.trim()),
            _ => (false, rest),
        };
        Self {
            retry,
            unit: Some(unit).filter(|unit| !unit.is_empty()),
        }
    }
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
    /// Takes in what is asked now. An agent that has just started runs every unit
    /// anyway, so what it finds asked is taken for done.
    pub(crate) fn request(&mut self, text: Option<String>, first_look: bool) -> Asked {
        if self.requested == text {
            return Asked::default();
        }
        self.requested.clone_from(&text);
        self.asked.clear();
        let Some(text) = text.filter(|_| !first_look) else {
            self.handled.clone_from(&self.requested);
            return Asked {
                new: true,
                ..Asked::default()
            };
        };
        let request = Request::parse(&text);
        let mut asked = Asked {
            units: Vec::new(),
            load: request.retry && self.problem.is_some(),
            new: true,
        };
        if asked.load {
            self.load_failures = 0;
        }
        let primaries: Vec<_> = self.units.keys().cloned().collect();
        for primary in primaries {
            let unit = self.unit(&primary);
            if request.unit.is_some_and(|wanted| wanted != unit.id()) {
                continue;
            }
            let Some(state) = self.units.get_mut(&primary) else {
                continue;
            };
            if request.retry {
                if state.health == Health::Ready {
                    continue;
                }
                state.failures = 0;
                state.drifts = 0;
            }
            self.asked.insert(primary);
            asked.units.push(unit);
        }
        self.handle_request();
        asked
    }

    /// Notes that a unit has run. Returns whether that was the last one asked for.
    pub(crate) fn has_run(&mut self, unit: &UnitKey) -> bool {
        self.asked.remove(&*unit.primary) && self.handle_request()
    }

    /// Notes whether all that was asked for is done.
    pub(crate) fn handle_request(&mut self) -> bool {
        if self.asked.is_empty() {
            self.handled.clone_from(&self.requested);
        }
        self.asked.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::{GroupVersionKind, ObjectReference};

    #[test]
    fn the_words_of_a_request() {
        for (text, retry, unit) in [
            ("2026-01-01T00:00:00Z", false, None),
            ("1 retry", true, None),
            (
                "1 retry Profile.kubeflow.org//a",
                true,
                Some("Profile.kubeflow.org//a"),
            ),
            (
                "1 Profile.kubeflow.org//a",
                false,
                Some("Profile.kubeflow.org//a"),
            ),
            (" 1  retry ", true, None),
            ("retry", false, None),
            ("", false, None),
        ] {
            assert_eq!(Request::parse(text), Request { retry, unit }, "{text}");
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
            state.health = health;
            state.failures = 7;
        }
        let text = |text: &str| Some(text.to_owned());
        let nothing = Asked {
            new: true,
            ..Asked::default()
        };
        assert_eq!(plugin.request(text("1"), true), nothing);
        assert_eq!(plugin.handled, text("1"), "before the start");

        assert_eq!(plugin.request(text("2"), false).units.len(), 2);
        assert_eq!(plugin.handled, text("1"));
        assert!(!plugin.has_run(&unit("a")));
        assert!(!plugin.has_run(&unit("a")));
        assert!(plugin.has_run(&unit("b")));
        assert_eq!(plugin.handled, text("2"));
        assert_eq!(
            plugin.request(text("2"), false),
            Asked::default(),
            "nothing new"
        );

        assert_eq!(plugin.request(text("3 retry"), false).units, [unit("b")]);
        assert_eq!(plugin.units[&*unit("b").primary].failures, 0);
        assert_eq!(plugin.units[&*unit("a").primary].failures, 7);

        let one = plugin.request(text("4 Profile.kubeflow.org//a"), false);
        assert_eq!(one.units, [unit("a")]);
        let none = plugin.request(text("5 Profile.kubeflow.org//c"), false);
        assert_eq!(none, nothing);
        assert_eq!(plugin.handled, text("5 Profile.kubeflow.org//c"));
    }
}
