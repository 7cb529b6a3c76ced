//! What is recorded as an Event of a `Plugin`: that a version took over, or did not.
//!
//! A `Plugin` that does not exist yet is made by the first report; what is to be told
//! of it waits for that.

use super::Controller;
use crate::problem::Problem;
use crate::reporter::{About, EventReport, Report};
use reeve_api::{Reason, ShadowStatus, truncate};
use reeve_core::outcome::Event;
use std::sync::Arc;
use tokio::time::Instant;

/// Reason of the event that a version has taken over from another.
const UPGRADED: &str = "Upgraded";

impl Controller {
    /// Records what became of an upgrade, once each time that it is another thing:
    /// `known` is what was said before.
    pub(super) fn tell_of_upgrade(
        &mut self,
        plugin: &Arc<str>,
        known: Option<&Problem>,
        problem: Option<&Problem>,
        shadow: Option<&ShadowStatus>,
    ) {
        let event = match (problem, shadow) {
            (Some(problem), _) if !passes(problem.reason) && known != Some(problem) => Event {
                warning: problem.reason != Reason::RolledBack,
                reason: problem.reason.to_string(),
                message: problem.message.clone(),
            },
            (None, Some(shadow)) => Event {
                warning: false,
                reason: UPGRADED.to_owned(),
                message: format!(
                    "{} takes over: {} objects to create, {} to change, {} to delete, and {} of \
                     {} units newly failing",
                    shadow.digest,
                    shadow.created,
                    shadow.changed,
                    shadow.deleted,
                    shadow.failing,
                    shadow.units
                ),
            },
            _ => return,
        };
        self.record(plugin, event);
    }

    /// Records what could not be recorded before the `Plugin` was made.
    pub(super) fn tell_at_last(&mut self, plugin: &Arc<str>) {
        let state = self.state.plugins.get_mut(plugin);
        if let Some(event) = state.and_then(|state| state.untold.take()) {
            self.record(plugin, event);
        }
    }

    /// Records where a version is that some units run first.
    pub(super) fn tell_of_canary(&mut self, plugin: &Arc<str>, reason: &str, message: String) {
        let event = Event {
            warning: false,
            reason: reason.to_owned(),
            message,
        };
        self.record(plugin, event);
    }

    fn record(&mut self, plugin: &Arc<str>, mut event: Event) {
        let leads = self.leads();
        let snapshot = self.runner.store.snapshot();
        let namespace = Some(&*self.loader.namespace);
        let found = snapshot.get_in(self.own.plugins.spec(), namespace, plugin);
        let Some(state) = self.state.plugins.get_mut(plugin) else {
            return;
        };
        truncate(&mut event.message);
        let Some(object) = found.found() else {
            state.untold = Some(event);
            return;
        };
        // Whoever leads tells it, and what nobody hears takes no room.
        if !leads {
            return;
        }
        if !state.event_limit.admit(Instant::now()) {
            tracing::warn!(%plugin, reason = event.reason, message = event.message, "event not recorded, there were too many");
            return;
        }
        let about = format!("Plugin {plugin}/{}/{}", event.reason, event.message);
        let report = EventReport {
            primary: object.reference(),
            uid: object.uid().to_owned(),
            event,
            at: self.clock.now(),
        };
        self.reports
            .put(About::Event(about), Report::Event(Box::new(report)));
    }
}

/// Whether a problem says nothing of the version that is to run, and passes by itself.
fn passes(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Loading | Reason::Suspended | Reason::Syncing | Reason::Unreachable
    )
}
