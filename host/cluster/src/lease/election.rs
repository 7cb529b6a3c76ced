//! Who may hold the Lease, and for how long that may be believed: decided from
//! what was read and answered, and from one clock. No I/O, no waiting.

use super::clock::Moment;
use super::record::{Record, Stored};
use super::timing::LeaseTiming;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// One candidate's part in an election.
///
/// What it believes errs to one side: its own lease runs from when the request
/// that renewed it was *sent*, another's from when its change was *seen*.
#[derive(Debug)]
pub(super) struct Election {
    identity: String,
    timing: LeaseTiming,
    seen: Seen,
    /// Whether the Lease may be another than was seen: a request failed, or its
    /// answer was lost.
    doubtful: bool,
    term: Option<Term>,
    /// Terms that were begun.
    terms: u64,
    /// The uid of the Lease that this candidate has claimed after all earlier
    /// claims to it had run out.
    entitled: Option<String>,
}

/// A time during which the lease was held without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    /// Counts from 1 in each process.
    pub(super) number: u64,
    /// When the request was sent that last renewed it.
    pub(super) renewed: Moment,
}

#[derive(Debug)]
enum Seen {
    Nothing,
    /// There was no Lease.
    Absent,
    /// It was like this, from then on.
    Lease {
        stored: Stored,
        since: Moment,
    },
}

/// A write of the Lease that would make or keep this candidate its holder.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Claim {
    Create(Record),
    Update(Stored, Record),
}

/// What came of a request about the Lease.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// It is like this, and if it was written, then with success.
    Lease(Stored),
    /// There is none.
    Absent,
    /// It was not written, or nobody knows.
    Failed,
}

impl Election {
    pub(super) fn new(identity: String, timing: LeaseTiming) -> Self {
        Self {
            identity,
            timing,
            seen: Seen::Nothing,
            doubtful: true,
            term: None,
            terms: 0,
            entitled: None,
        }
    }

    /// The term that lasts at this moment. One that has lapsed is over for good,
    /// even if nobody else took the Lease.
    pub(super) fn term(&mut self, now: Moment) -> Option<Term> {
        let deadline = self.timing.renew_deadline();
        self.term = self.term.filter(|term| now < term.renewed.after(deadline));
        self.term
    }

    /// Who else holds the Lease, as far as was seen.
    pub(super) fn holder(&self) -> Option<&str> {
        match &self.seen {
            Seen::Lease { stored, .. } => Some(stored.record.holder.as_str()),
            _ => None,
        }
        .filter(|holder| !holder.is_empty() && *holder != self.identity)
    }

    /// Whether the Lease has to be read before anything can be decided. Who holds
    /// it and has no doubts renews it unread: an update proves what it changes.
    pub(super) fn must_read(&mut self, now: Moment) -> bool {
        self.doubtful || self.term(now).is_none()
    }

    /// Takes in what was read.
    pub(super) fn saw(&mut self, answer: Answer, now: Moment) {
        match answer {
            Answer::Lease(stored) => {
                self.doubtful = false;
                if stored.record.holder != self.identity {
                    self.term = None;
                }
                self.see(stored, now);
            }
            Answer::Absent => self.saw_absence(),
            Answer::Failed => self.doubtful = true,
        }
    }

    /// The write to make now, if there is one to make. `wall` is what people see.
    pub(super) fn claim(&mut self, now: Moment, wall: Timestamp) -> Option<Claim> {
        if self.doubtful {
            return None;
        }
        let (stored, since) = match &self.seen {
            Seen::Nothing => return None,
            Seen::Absent => return Some(Claim::Create(self.record(None, wall))),
            Seen::Lease { stored, since } => (stored, *since),
        };
        if !self.is_free(stored) && now < self.end(stored, since) {
            return None;
        }
        let claim = Claim::Update(stored.clone(), self.record(Some(&stored.record), wall));
        self.entitled = Some(stored.uid.clone());
        Some(claim)
    }

    /// When the Lease runs out, if it stays as it was seen.
    pub(super) fn chance(&self) -> Option<Moment> {
        match &self.seen {
            Seen::Lease { stored, since } => Some(self.end(stored, *since)),
            _ => None,
        }
    }

    /// Whether a Lease may be claimed before it has run out.
    fn is_free(&self, stored: &Stored) -> bool {
        let record = &stored.record;
        if record.holder == self.identity {
            // Whoever held a Lease that was deleted may not know yet: one that we
            // have made anew is ours only when that has run out.
            self.entitled.as_ref() == Some(&stored.uid)
        } else {
            // It was given back, unless it was never held: then it may have been
            // put in the place of one that was.
            record.holder.is_empty() && record.renewed.is_some()
        }
    }

    /// When a Lease runs out that has not changed since.
    fn end(&self, stored: &Stored, since: Moment) -> Moment {
        // Its holder goes by what it wrote there, and one that was given back says
        // less than the one before it.
        let told = Duration::from_secs(stored.record.duration.into());
        since.after(told.max(self.timing.duration()))
    }

    /// Takes in what came of a claim that was sent at `sent`.
    pub(super) fn claimed(&mut self, claim: &Claim, answer: Answer, sent: Moment, now: Moment) {
        let stored = match answer {
            Answer::Lease(stored) => stored,
            Answer::Absent => return self.saw_absence(),
            Answer::Failed => {
                self.doubtful = true;
                return;
            }
        };
        let Claim::Update(before, _) = claim else {
            return self.see(stored, now);
        };
        // An update that changed nothing is seen by nobody.
        self.doubtful = before.version == stored.version;
        self.see(stored, now);
        let late = now >= sent.after(self.timing.renew_deadline());
        if self.doubtful || late {
            return;
        }
        let number = match self.term(now) {
            Some(term) => term.number,
            None => {
                self.terms += 1;
                self.terms
            }
        };
        let renewed = sent;
        self.term = Some(Term { number, renewed });
    }

    /// The write that gives the Lease back, if it is held.
    pub(super) fn release(&mut self, wall: Timestamp) -> Option<Claim> {
        self.term = None;
        let Seen::Lease { stored, .. } = &self.seen else {
            return None;
        };
        // Only what was ours to hold is ours to give: after a Lease that was deleted
        // somebody else may still go by that one.
        if stored.record.holder != self.identity || !self.is_free(stored) {
            return None;
        }
        let record = Record {
            holder: String::new(),
            renewed: Some(wall),
            ..stored.record.clone()
        };
        Some(Claim::Update(stored.clone(), record))
    }

    fn see(&mut self, stored: Stored, now: Moment) {
        let known =
            matches!(&self.seen, Seen::Lease { stored: old, .. } if old.version == stored.version);
        if !known {
            self.seen = Seen::Lease { stored, since: now };
        }
    }

    fn saw_absence(&mut self) {
        self.doubtful = false;
        self.term = None;
        self.seen = Seen::Absent;
    }

    /// The record that names this candidate, after `old`.
    fn record(&self, old: Option<&Record>, wall: Timestamp) -> Record {
        // Each renewal has to be a change, whatever the wall clock does: others
        // know a holder that lives by the changes.
        let least = old
            .and_then(|old| old.renewed)
            .and_then(|renewed| renewed.checked_add(SignedDuration::from_micros(1)).ok());
        let renewed = least.map_or(wall, |least| least.max(wall));
        let kept = old.filter(|old| old.holder == self.identity);
        Record {
            holder: self.identity.clone(),
            duration: u32::try_from(self.timing.duration().as_secs()).unwrap_or(u32::MAX),
            acquired: kept.map_or(Some(wall), |old| old.acquired),
            renewed: Some(renewed),
            transitions: match (old, kept) {
                (_, Some(kept)) => kept.transitions,
                (Some(old), None) => old.transitions.saturating_add(1),
                (None, None) => 0,
            },
        }
    }
}

#[cfg(test)]
mod tests;
