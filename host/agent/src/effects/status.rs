//! How effects are written in a `Unit` object, and read back after a restart.

use super::{Carried, Effect, Effects};
use reeve_api::{ActionStatus, KeptSecret};
use reeve_core::outcome::Verb;

impl Effects {
    /// For a `Unit` object.
    pub(crate) fn write(&self) -> Vec<ActionStatus> {
        self.0.values().map(write).collect()
    }

    /// From a `Unit` object. What cannot be read is as good as absent: it is carried
    /// out once more.
    pub(crate) fn read(statuses: &[ActionStatus]) -> Self {
        let read = statuses.iter().filter_map(read);
        Self(
            read.map(|effect| (effect.action.key.clone(), effect))
                .collect(),
        )
    }
}

const PENDING: &str = "Pending";
const IN_PLACE: &str = "InPlace";
const FAILING: &str = "Failing";
const RETIRING: &str = "Retiring";

pub(super) fn write(effect: &Effect) -> ActionStatus {
    let state = match effect.pending() {
        Some(Verb::Retire) => RETIRING,
        _ if effect.failures > 0 => FAILING,
        // What is in place is another request.
        Some(_) => PENDING,
        None => IN_PLACE,
    };
    let done = effect.done.as_ref();
    let secrets = effect.action.secrets.iter();
    ActionStatus {
        key: effect.action.key.clone(),
        name: effect.action.name.clone(),
        state: state.to_owned(),
        // Serialising our own type cannot fail.
        request: serde_json::to_string(&effect.action).unwrap_or_default(),
        fingerprint: done.map(|done| done.fingerprint.clone()),
        fact: done.map(|done| done.fact.clone()),
        applied_at: done.map(|done| done.at.to_string()),
        verified_at: done.map(|done| done.verified.to_string()),
        approved: effect.approved.map(|verb| word(verb).to_owned()),
        failures: effect.failures,
        message: effect.message.clone(),
        secrets: secrets
            .map(|secret| KeptSecret {
                namespace: secret.namespace.clone(),
                name: secret.secret.clone(),
            })
            .collect(),
    }
}

fn read(status: &ActionStatus) -> Option<Effect> {
    let carried = || {
        Some(Carried {
            fingerprint: status.fingerprint.clone()?,
            fact: status.fact.clone()?,
            at: status.applied_at.as_ref()?.parse().ok()?,
            verified: status.verified_at.as_ref()?.parse().ok()?,
        })
    };
    Some(Effect {
        action: serde_json::from_str(&status.request).ok()?,
        wanted: status.state != RETIRING,
        done: carried(),
        // Something may have been carried out that was not written down.
        begun: true,
        recorded: true,
        failures: status.failures,
        message: status.message.clone(),
        waits: false,
        not_before: None,
        awaits_room: false,
        doubted: false,
        approved: status.approved.as_deref().and_then(verb),
    })
}

/// A verb as statuses write it.
pub(crate) fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Apply => "Apply",
        Verb::Verify => "Verify",
        Verb::Retire => "Retire",
    }
}

fn verb(text: &str) -> Option<Verb> {
    let verbs = [Verb::Apply, Verb::Verify, Verb::Retire];
    verbs.into_iter().find(|verb| word(*verb) == text)
}
