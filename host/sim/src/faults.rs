//! Failures on request: what a client sees when the server is not well.
//!
//! An [`Outage`] concerns everybody at once. A [`Fault`] is narrower: it strikes
//! those requests that it describes, some of them or all, for a while or until it
//! is taken back.

pub(crate) mod admin;
mod fault;
mod matching;
mod strike;
mod watching;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use self::fault::Effect;
pub use self::fault::{Fault, FaultError};
pub(crate) use self::matching::Asked;
pub(crate) use self::strike::{Outcome, Strike, reset};
pub(crate) use self::watching::{Watcher, silence, truncate};
use crate::random::Random;

/// How the server fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outage {
    /// Not at all.
    #[default]
    None,
    /// Every request is answered 503.
    Unavailable,
    /// Nobody listens: in-process clients see a refused connection. Over a
    /// socket, where the listener is still there, the answer is 503.
    Refused,
}

/// The switches of one server; clones share them.
#[derive(Debug, Clone)]
pub struct Faults(Arc<State>);

#[derive(Debug)]
struct State {
    outage: Mutex<Outage>,
    watches: watch::Sender<u64>,
    /// Whether there are any rules, to be asked without a lock.
    any: AtomicBool,
    rules: Mutex<Vec<Rule>>,
    /// Moves each time the rules change.
    generation: watch::Sender<u64>,
    spared: Mutex<Option<String>>,
    chance: Random,
}

/// A fault that is on.
#[derive(Debug)]
struct Rule {
    fault: Fault,
    ends: Option<Instant>,
    struck: u64,
    felt: Felt,
}

/// Whether a fault has made a difference to anybody.
#[derive(Debug, Clone, Default)]
pub(crate) struct Felt(Arc<AtomicBool>);

impl Felt {
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Faults {
    /// No faults. What strikes only some requests strikes the same ones in each run
    /// with the same seed.
    pub(crate) fn new(chance: Random) -> Self {
        Faults(Arc::new(State {
            outage: Mutex::default(),
            watches: watch::Sender::new(0),
            any: AtomicBool::new(false),
            rules: Mutex::default(),
            generation: watch::Sender::new(0),
            spared: Mutex::default(),
            chance,
        }))
    }

    /// Starts or ends an outage. Its start breaks every open watch.
    pub fn set_outage(&self, outage: Outage) {
        *self.0.outage.lock() = outage;
        if outage != Outage::None {
            self.drop_watches();
        }
    }

    /// The present outage.
    pub fn outage(&self) -> Outage {
        *self.0.outage.lock()
    }

    /// Breaks every open watch in the middle, as a lost connection does.
    pub fn drop_watches(&self) {
        self.0.watches.send_modify(|generation| *generation += 1);
    }

    /// Strikes no requests of this user, unless a fault names it.
    pub fn spare(&self, user: &str) {
        *self.0.spared.lock() = Some(user.to_owned());
    }

    /// The faults that are on.
    pub fn active(&self) -> Vec<Fault> {
        let now = Instant::now();
        let rules = self.0.rules.lock();
        let on = rules.iter().filter(|rule| rule.is_on(now));
        on.map(|rule| rule.fault.clone()).collect()
    }

    /// The faults of those set last that have made no difference to anybody so far: no
    /// request was one that they strike, or no watch has lived long enough to be broken.
    pub fn unfelt(&self) -> Vec<Fault> {
        let rules = self.0.rules.lock();
        let unfelt = rules.iter().filter(|rule| !rule.felt.get());
        unfelt.map(|rule| rule.fault.clone()).collect()
    }

    /// Puts these faults in place of those that are on.
    pub(crate) fn set(&self, faults: Vec<Fault>) {
        let now = Instant::now();
        let rules = faults.into_iter().map(|fault| Rule {
            ends: fault.lasts.and_then(|lasts| now.checked_add(lasts)),
            fault,
            struck: 0,
            felt: Felt::default(),
        });
        let rules: Vec<Rule> = rules.collect();
        self.0.any.store(!rules.is_empty(), Ordering::Release);
        *self.0.rules.lock() = rules;
        self.0.generation.send_modify(|generation| *generation += 1);
    }

    /// Moves each time the watches are dropped.
    pub(crate) fn watches(&self) -> watch::Receiver<u64> {
        self.0.watches.subscribe()
    }

    /// Moves each time the faults change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.generation.subscribe()
    }

    /// Whether no fault is on, in any case.
    pub(crate) fn none(&self) -> bool {
        !self.0.any.load(Ordering::Acquire)
    }

    /// What happens to a request: all delays that concern it, and the first outcome.
    pub(crate) fn strike(&self, asked: &Asked<'_>) -> Strike {
        let mut strike = Strike::default();
        if self.none() {
            return strike;
        }
        let now = Instant::now();
        let spared = self.0.spared.lock().clone();
        let mut rules = self.0.rules.lock();
        for rule in rules.iter_mut().filter(|rule| rule.is_on(now)) {
            let names = rule.fault.matcher.names_user();
            if !names && spared.as_deref() == Some(asked.user) {
                continue;
            }
            let fault = &rule.fault;
            if !fault.concerns(asked) || (strike.outcome.is_some() && !fault.effect.is_delay()) {
                continue;
            }
            if fault.probability < 1.0 && self.0.chance.share() >= fault.probability {
                continue;
            }
            rule.struck += 1;
            match fault.effect {
                // Nobody feels it before the watch breaks, or a write loses its answer.
                Effect::TruncatedWatch { .. } | Effect::LostAnswer { .. } => {
                    strike.felt = Some(rule.felt.clone())
                }
                _ => rule.felt.note(),
            }
            match fault.effect {
                Effect::Latency { delay, jitter } | Effect::SlowAdmission { delay, jitter } => {
                    strike.delay += delay + jitter.mul_f64(self.0.chance.share());
                }
                effect => strike.outcome = Outcome::of(effect),
            }
        }
        strike
    }

    /// Whether a fault silences an open watch.
    pub(crate) fn silences(&self, asked: &Asked<'_>) -> bool {
        if self.none() {
            return false;
        }
        let now = Instant::now();
        let spared = self.0.spared.lock().clone();
        let mut rules = self.0.rules.lock();
        let mut on = rules.iter_mut().filter(|rule| {
            rule.fault.effect == Effect::SilentWatch
                && rule.is_on(now)
                && (rule.fault.matcher.names_user() || spared.as_deref() != Some(asked.user))
                && rule.fault.concerns(asked)
        });
        let silenced = on.find(|rule| {
            rule.fault.probability >= 1.0 || self.0.chance.share() < rule.fault.probability
        });
        if let Some(rule) = silenced {
            rule.struck += 1;
            rule.felt.note();
            return true;
        }
        false
    }
}

impl Rule {
    fn is_on(&self, now: Instant) -> bool {
        self.ends.is_none_or(|ends| now < ends)
            && self.fault.count.is_none_or(|count| self.struck < count)
    }
}

/// A pause that a fault asks for.
pub(crate) async fn pause(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}
