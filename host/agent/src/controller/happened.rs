//! What is recorded as an Event of a `Plugin`: that a version took over, or did not.

use super::Controller;
use crate::problem::Problem;
use crate::reporter::{About, EventReport, Report};
use reeve_api::{Reason, ShadowStatus, truncate};
use reeve_core::outcome::Event;
use std::sync::Arc;

/// Reason of the event that a version has taken over from another.
const UPGRADED: &str = "Upgraded";

impl Controller {
    /// Records what became of an upgrade, once each time that it is another thing:
    /// `known` is what was said before.
    pub(super) fn tell_of_upgrade(
        &self,
        plugin: &Arc<str>,
        known: Option<&Problem>,
        problem: Option<&Problem>,
        shadow: Option<&ShadowStatus>,
    ) {
        let event = match (problem, shadow) {
            (Some(problem), _) if is_word(problem.reason) && known != Some(problem) => Event {
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

    /// Records where a version is that some units run first.
    pub(super) fn tell_of_canary(&self, plugin: &Arc<str>, reason: &str, message: String) {
        let event = Event {
            warning: false,
            reason: reason.to_owned(),
            message,
        };
        self.record(plugin, event);
    }

    fn record(&self, plugin: &Arc<str>, mut event: Event) {
        let snapshot = self.runner.store.snapshot();
        let namespace = Some(&*self.loader.namespace);
        let found = snapshot.get_in(self.own.plugins.spec(), namespace, plugin);
        // The first report makes it.
        let Some(object) = found.found() else {
            return;
        };
        truncate(&mut event.message);
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

/// Whether a problem is the outcome of an upgrade, rather than of what was delivered.
fn is_word(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::ApprovalRequired
            | Reason::UpgradeHeld
            | Reason::UpgradeBroken
            | Reason::CanaryReturned
            | Reason::NotDeterministic
            | Reason::RolledBack
            | Reason::RollbackFailed
    )
}
