//! How often an action of Helm is tried, and what is done when it fails.

use std::time::Duration;

use serde_json::Value;

use super::super::scene::Scene;
use super::{Action, RETRY};
use crate::duration;
use crate::kinds::edit::{flag, integer, text};

/// How an action is tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tries {
    pub(super) failures: i64,
    /// Negative where there is no limit.
    pub(super) retries: i64,
    /// When it is tried again without being taken back.
    pub(super) retry: Option<Duration>,
    /// Whether what failed for the last time is taken back, too.
    pub(super) remedies_last: bool,
    /// Whether it is taken back by uninstalling it, and not by a rollback.
    pub(super) uninstalls: bool,
    /// Whether tests that fail are a failure of it.
    pub(super) minds_tests: bool,
}

impl Tries {
    /// Whether it is not tried again.
    pub(super) fn exhausted(&self) -> bool {
        self.retry.is_none() && self.retries >= 0 && self.failures > self.retries
    }
}

/// How an action is tried, and how often it failed by now.
pub(super) fn tries(scene: &Scene<'_, '_>, action: Action) -> Tries {
    let at = |pointer: &str| {
        let pointer = format!("/spec/{}/{pointer}", action.name());
        scene.before.pointer(&pointer).cloned().unwrap_or_default()
    };
    let strategy = at("strategy");
    let retry = (text(&strategy, "name") == "RetryOnFailure")
        .then(|| duration::wait(text(&strategy, "retryInterval")).unwrap_or(RETRY));
    let remediation = at("remediation");
    let retries = integer(&remediation, "retries").unwrap_or(0);
    let upgrades = action == Action::Upgrade;
    let last = remediation.get("remediateLastFailure");
    let ignores = remediation.get("ignoreTestFailures");
    let ignores = ignores.and_then(Value::as_bool);
    let test = scene.before.pointer("/spec/test");
    let ignored = test.is_some_and(|test| flag(test, "ignoreFailures"));
    Tries {
        failures: integer(scene.stands(), action.counter()).unwrap_or(0),
        retries,
        retry,
        remedies_last: last
            .and_then(Value::as_bool)
            .unwrap_or(upgrades && retries > 0),
        minds_tests: !ignores.unwrap_or(ignored),
        uninstalls: !upgrades || text(&remediation, "strategy") == "uninstall",
    }
}
