//! Outside effects of one unit: what is asked for, what was carried out, what is due.
//!
//! An effect is carried out once for what stands in the request, generated values
//! included, and again when that changes or it is reported gone. The request is written
//! in the `Unit` object before it is begun, so that whatever came of it can be taken away;
//! that it was carried out, when it has been: a crash in between repeats it. What is in
//! here decides and does nothing; `run/effects.rs` acts.

mod door;
mod line;
mod room;
mod secret;
mod status;

pub(crate) use door::Door;
pub(crate) use room::{CALLS_AT_ONCE, NoRoom, OUTSIDE_AT_ONCE, PluginRoom, Room};
pub(crate) use secret::{Keeper, Kept};
pub(crate) use status::word;

use k8s_openapi::jiff::Timestamp;
use reeve_core::Digest;
use reeve_core::backoff::Backoff;
use reeve_core::desired::LEAST_VERIFY;
use reeve_core::outcome::{Action, Verb};
use reeve_core::plan::PreviewEffect;
use reeve_engine::Fact;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Who makes outside effects.
#[derive(Clone, Debug, Default)]
pub enum EffectFeed {
    /// The plugins, as far as it is granted.
    #[default]
    Outside,
    /// Nobody: what comes of them is given by whoever runs the agent, as in a
    /// scenario.
    Given(watch::Receiver<GivenEffects>),
}

/// What comes of effects, by the names of actions.
pub type GivenEffects = Arc<BTreeMap<String, GivenEffect>>;

/// What comes of one kind of effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenEffect {
    /// It is made, and reports this fact, one JSON text.
    Fact(String),
    /// It fails, for this reason.
    Failing(String),
}

/// Whether an effect is in place is asked this often, unless the plugin says.
const VERIFY: Duration = Duration::from_secs(600);

/// Effects of one unit that are kept: those that may be asked for at a time, and as
/// many that are yet to be taken away. Each of these is tried in every run.
const MAX_KEPT: usize = 64;

/// Bytes of them as a `Unit` object holds them when they are asked for. A store takes
/// 1.5 MiB of an object; what is reported of them later has the rest.
const MAX_WRITTEN: usize = 1 << 20;

/// Outside effects of one unit, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Effects(BTreeMap<String, Effect>);

/// One outside effect.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Effect {
    /// As it was asked for last.
    pub(crate) action: Action,
    /// Whether it is asked for. If not, it is to be taken away.
    pub(crate) wanted: bool,
    /// What was carried out last.
    pub(crate) done: Option<Carried>,
    /// Whether anything may have been carried out: an attempt that failed may have
    /// left something behind.
    pub(crate) begun: bool,
    /// Whether the request is known to stand in the `Unit` object.
    pub(crate) recorded: bool,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// What went wrong last.
    pub(crate) message: Option<String>,
    /// Whether that is no failure, but something to wait for.
    pub(crate) waits: bool,
    /// No attempt is made before this time.
    pub(crate) not_before: Option<Timestamp>,
    /// Whether that is since there was no room outside.
    pub(crate) awaits_room: bool,
    /// Whether it is looked at anew, however lately it was.
    pub(crate) doubted: bool,
    /// What a person has approved that has not come about yet, where nothing is done
    /// without that.
    pub(crate) approved: Option<Verb>,
}

/// What was carried out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Carried {
    /// Of the request and the generated values.
    pub(crate) fingerprint: String,
    /// What was reported, one JSON text.
    pub(crate) fact: String,
    pub(crate) at: Timestamp,
    /// When it was last found to be in place.
    pub(crate) verified: Timestamp,
}

/// What is to be done about an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing before this time.
    At(Timestamp),
    /// It is to be put in place, or looked at.
    Now,
}

impl Effects {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is asked for now, and not by these.
    pub(crate) fn wanted_beyond(&self, actions: &[Action]) -> Vec<Action> {
        let asked: BTreeSet<&String> = actions.iter().map(|action| &action.key).collect();
        let wanted = self.0.iter().filter(|(_, effect)| effect.wanted);
        let beyond = wanted.filter(|(key, _)| !asked.contains(key));
        beyond.map(|(_, effect)| effect.action.clone()).collect()
    }

    /// Takes in what is asked for now. Returns what is asked for no more and stays.
    ///
    /// What there is no room for is left out, see [`Effects::refused`]: more than can be
    /// written down must not be begun.
    pub(crate) fn want(&mut self, actions: &[Action]) -> Vec<Effect> {
        let asked: BTreeSet<&String> = actions.iter().map(|action| &action.key).collect();
        for (key, effect) in &mut self.0 {
            effect.wanted = asked.contains(key);
        }
        let gone = self.drop_unneeded();
        let mut written: Option<usize> = None;
        for action in actions {
            let known = self.0.get(&action.key);
            if known.is_some_and(|effect| effect.action == *action) {
                continue;
            }
            let before = known.map_or(0, Effect::bytes);
            let all = *written.get_or_insert_with(|| self.0.values().map(Effect::bytes).sum());
            let after = all - before + Effect::new(action.clone()).bytes();
            if after > MAX_WRITTEN || (known.is_none() && self.0.len() >= MAX_KEPT) {
                continue;
            }
            written = Some(after);
            let effect = self.0.entry(action.key.clone());
            let effect = effect.or_insert_with(|| Effect::new(action.clone()));
            if effect.action != *action {
                effect.action = action.clone();
                effect.recorded = false;
                // What failed before is another request now, which may be in place.
                effect.failures = 0;
                effect.message = None;
                effect.waits = false;
                effect.not_before = None;
                effect.awaits_room = false;
                effect.approved = None;
            }
        }
        for effect in self.0.values_mut() {
            // A word for the one is none for the other.
            effect.approved = effect
                .approved
                .filter(|verb| Some(*verb) == effect.pending());
        }
        gone
    }

    /// Forgets those that are asked for no more and not to be taken away. Returns what of
    /// them was begun.
    fn drop_unneeded(&mut self) -> Vec<Effect> {
        let stays = |effect: &Effect| !(effect.wanted || (effect.action.retire && effect.begun));
        let keys: Vec<String> = self
            .0
            .iter()
            .filter(|(_, effect)| stays(effect))
            .map(|(key, _)| key.clone())
            .collect();
        let gone = keys.iter().filter_map(|key| self.0.remove(key));
        gone.filter(|effect| effect.begun).collect()
    }

    /// What is asked for and was not taken in, for want of room.
    pub(crate) fn refused<'a>(&'a self, actions: &'a [Action]) -> impl Iterator<Item = &'a Action> {
        let known = |action: &Action| self.0.get(&action.key).map(|effect| &effect.action);
        actions
            .iter()
            .filter(move |action| known(action) != Some(*action))
    }

    /// Why there is no room, and what makes some.
    pub(crate) fn no_room(&self, unit_object: &str) -> String {
        let leaving = self.0.values().filter(|effect| !effect.wanted).count();
        let bytes: usize = self.0.values().map(Effect::bytes).sum();
        format!(
            "there is no room for it: {} effects of this unit are kept already, with {bytes} bytes, \
             and at most {MAX_KEPT} with {MAX_WRITTEN} bytes can be; {leaving} of them are asked for \
             no more and could not be taken away yet, and status.actions of Unit {unit_object} says \
             why. Mend that, or have the plugin ask for less",
            self.0.len()
        )
    }

    /// Their keys, in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Effect> {
        self.0.get_mut(key)
    }

    /// Forgets those that are asked for no more and that a person has taken away, by their
    /// tokens. Returns what they were.
    pub(crate) fn forget(&mut self, tokens: &BTreeSet<String>) -> Vec<Action> {
        let named = |effect: &Effect| !effect.wanted && tokens.contains(&effect.token());
        let keys = self.0.iter().filter(|(_, effect)| named(effect));
        let keys: Vec<String> = keys.map(|(key, _)| key.clone()).collect();
        let gone = keys.iter().filter_map(|key| self.0.remove(key));
        gone.map(|effect| effect.action).collect()
    }

    /// Notes that all of them stand in the `Unit` object as they are.
    pub(crate) fn recorded(&mut self) {
        for effect in self.0.values_mut() {
            effect.recorded = true;
        }
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// What later calls are told.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let done = self.0.iter();
        done.filter_map(|(key, effect)| {
            let fact = &effect.done.as_ref()?.fact;
            Some(Fact {
                key: key.clone(),
                value: fact.clone().into(),
            })
        })
        .collect()
    }

    /// When the next of them is due. With `approval`, nothing is due that would change
    /// something without a person's word.
    pub(crate) fn next(&self, approval: bool) -> Option<Timestamp> {
        let effects = self.0.values();
        let due = effects.filter(|effect| !approval || effect.may_go_on());
        due.filter_map(Effect::next).min()
    }

    /// What would be made or taken away, and has not been approved.
    pub(crate) fn unapproved(&self) -> Vec<PreviewEffect> {
        let effects = self.0.iter();
        let waiting = effects.filter(|(_, effect)| !effect.may_go_on());
        waiting
            .filter_map(|(key, effect)| {
                Some(PreviewEffect {
                    verb: effect.pending()?,
                    name: effect.action.name.clone(),
                    key: key.clone(),
                    request: effect.request(),
                })
            })
            .collect()
    }

    /// Forgets what was approved, where a word counts for nothing.
    pub(crate) fn disapprove(&mut self) {
        for effect in self.0.values_mut() {
            effect.approved = None;
        }
    }

    /// Notes that a person has approved these.
    pub(crate) fn approve(&mut self, approved: &[PreviewEffect]) {
        for one in approved {
            let effect = self.0.get_mut(&one.key);
            if let Some(effect) = effect.filter(|effect| effect.request() == one.request) {
                effect.approved = Some(one.verb);
            }
        }
    }

    /// What would be made or taken away, in order.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (Verb, &Effect)> {
        let effects = self.0.values();
        effects.filter_map(|effect| Some((effect.pending()?, effect)))
    }

    /// Whether any of them waits for room outside.
    pub(crate) fn await_room(&self) -> bool {
        self.0.values().any(|effect| effect.awaits_room)
    }

    /// Has a look taken at what is in place, since a person asked for it; but not at what was
    /// looked at just before: as often as a plugin may ask for it, so may whoever asks.
    pub(crate) fn look_again(&mut self, now: Timestamp) {
        for effect in self.0.values_mut() {
            let verified = effect.done.as_ref().map(|done| done.verified);
            let rests = verified.and_then(|verified| later(verified, LEAST_VERIFY));
            effect.doubted |= rests.is_some_and(|until| until <= now);
        }
    }

    /// Forgets delays, since a person asked for a new attempt.
    pub(crate) fn try_anew(&mut self) {
        for effect in self.0.values_mut() {
            effect.failures = 0;
            effect.not_before = None;
            effect.awaits_room = false;
        }
    }
}

impl Effect {
    fn new(action: Action) -> Self {
        Self {
            action,
            wanted: true,
            done: None,
            begun: false,
            recorded: false,
            failures: 0,
            message: None,
            waits: false,
            not_before: None,
            awaits_room: false,
            doubted: false,
            approved: None,
        }
    }

    /// What is to be done about it that would change something outside.
    pub(crate) fn pending(&self) -> Option<Verb> {
        if !self.wanted {
            return Some(Verb::Retire);
        }
        match &self.done {
            Some(done) if done.fingerprint.starts_with(&self.request()) => None,
            _ => Some(Verb::Apply),
        }
    }

    /// Whether something is about to be made that is written nowhere.
    pub(crate) fn is_unrecorded(&self) -> bool {
        !self.recorded && self.pending() == Some(Verb::Apply)
    }

    /// Whether nothing about it needs a person's word that was not given.
    pub(crate) fn may_go_on(&self) -> bool {
        let pending = self.pending();
        pending.is_none() || pending == self.approved
    }

    /// Whether anything is to be done about it. Whether it was carried out for what is
    /// asked now, generated values aside, is told by the request alone.
    pub(crate) fn due(&self, now: Timestamp) -> Due {
        match self.next() {
            Some(at) if at > now => Due::At(at),
            _ => Due::Now,
        }
    }

    fn next(&self) -> Option<Timestamp> {
        if let Some(at) = self.not_before {
            return Some(at);
        }
        match (self.pending(), &self.done) {
            (None, Some(done)) if !self.doubted => {
                later(done.verified, self.action.verify.unwrap_or(VERIFY))
            }
            _ => Some(Timestamp::UNIX_EPOCH),
        }
    }

    /// Bytes of it in a `Unit` object.
    fn bytes(&self) -> usize {
        // Serialising our own type cannot fail.
        serde_json::to_vec(&status::write(self)).map_or(0, |text| text.len())
    }

    /// Digest of what is asked for: the first half of a fingerprint.
    fn request(&self) -> String {
        // Serialising our own type cannot fail; an empty text would only mean that the
        // effect is carried out once more.
        let text = serde_json::to_vec(&self.action).unwrap_or_default();
        Digest::of(&text).hex()[..32].to_owned()
    }

    /// What names it where a person has it forgotten: what is made later under the same
    /// key has another.
    fn token(&self) -> String {
        let request = serde_json::to_string(&self.action).unwrap_or_default();
        let applied_at = self.done.as_ref().map(|done| done.at.to_string());
        forget_token(&request, applied_at.as_deref())
    }

    /// Of what is asked for, with these generated values. They are 256 bits of chance,
    /// which no digest gives away.
    pub(crate) fn fingerprint(&self, values: &BTreeMap<String, Kept>) -> String {
        let parts = values
            .iter()
            .flat_map(|(name, kept)| [name.as_bytes(), kept.value.expose().as_bytes()]);
        let values = Digest::of_parts(parts);
        format!("{}{}", self.request(), &values.hex()[..32])
    }

    /// Notes that it has been carried out.
    pub(crate) fn carried_out(&mut self, fingerprint: String, fact: String, now: Timestamp) {
        self.done = Some(Carried {
            fingerprint,
            fact,
            at: now,
            verified: now,
        });
        // It was good once: what is gone later is made again on another word.
        self.approved = None;
        self.settled();
    }

    /// Notes that it is not there any more. What it reported stays, until it is made again
    /// and reports something else: what waits for it is not to go meanwhile.
    pub(crate) fn gone(&mut self) {
        if let Some(done) = &mut self.done {
            done.fingerprint.clear();
        }
    }

    /// Notes that it is in place.
    pub(crate) fn verified(&mut self, now: Timestamp) {
        if let Some(done) = &mut self.done {
            done.verified = now;
        }
        self.settled();
    }

    fn settled(&mut self) {
        self.failures = 0;
        self.message = None;
        self.waits = false;
        self.not_before = None;
        self.awaits_room = false;
        self.doubted = false;
    }

    /// Notes that an attempt failed, and when the next one is.
    pub(crate) fn failed(&mut self, message: String, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        self.message = Some(message);
        self.not_before = later(now, Backoff::UNIT.delay(self.failures, 1.0));
        self.awaits_room = false;
        self.doubted = false;
    }

    /// Notes that no attempt can be made just now.
    pub(crate) fn postponed(&mut self, time: Duration, now: Timestamp) {
        self.not_before = later(now, time);
        self.awaits_room = false;
    }

    /// Notes that there was no room outside. `jitter`, from 0 to 1, keeps many that were
    /// turned away at once from asking again at once.
    pub(crate) fn turned_away(&mut self, no: NoRoom, jitter: f64, now: Timestamp) {
        self.postponed(no.again.mul_f64(1.0 + jitter), now);
        self.awaits_room = true;
    }

    /// Notes that its unit stands in line for room no more: it may try.
    pub(crate) fn asked_in(&mut self) {
        if std::mem::take(&mut self.awaits_room) {
            self.not_before = None;
        }
    }
}

/// What names an effect in the annotation `reeve.dev/forget-effects` of its `Unit`: the
/// first digits of the digest of `request` and `appliedAt` of its entry in `status.actions`,
/// so that one that is made later is another.
pub fn forget_token(request: &str, applied_at: Option<&str>) -> String {
    let parts = [request, applied_at.unwrap_or_default()];
    Digest::of_parts(parts.map(str::as_bytes)).hex()[..16].to_owned()
}

/// The tokens that stand in that annotation, separated by commas or spaces.
pub fn forget_tokens(text: &str) -> BTreeSet<String> {
    let tokens = text.split([',', ' ']).filter(|token| !token.is_empty());
    tokens.map(str::to_owned).collect()
}

fn later(time: Timestamp, by: Duration) -> Option<Timestamp> {
    // Beyond what the calendar can express is never.
    time.checked_add(by).ok()
}

#[cfg(test)]
mod tests;
