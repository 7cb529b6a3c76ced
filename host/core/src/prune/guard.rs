//! The guard over the deletions of one plugin.

use super::{Candidate, Hold, Policy, Reason, Token};
use crate::plan::is_precious;
use crate::unit::UnitKey;
use crate::waves::Removal;
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Why objects are to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The plugin no longer wants them, while their unit goes on. This is what
    /// is guarded.
    Withdrawn,
    /// Their unit ends although its primary lives, which is no longer selected. All of
    /// a unit goes then, and otherwise this is guarded as what is withdrawn.
    Deselected,
    /// Their unit ends because its primary was deleted: somebody asked for it,
    /// and only what annotations say stands against it.
    Ended,
}

/// What a unit wants to delete.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<'a> {
    /// The unit.
    pub unit: &'a UnitKey,
    /// Why.
    pub cause: Cause,
    /// All of what it wants to delete; none when it wants to delete nothing,
    /// which the guard has to know as well.
    pub candidates: Vec<Candidate>,
    /// How many objects the unit owns, these among them.
    pub unit_owns: usize,
    /// How many objects the plugin owns over all units, these among them.
    pub plugin_owns: usize,
    /// Whether the plugin returned nothing and did not say that it meant it.
    pub empty_not_meant: bool,
}

/// What becomes of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Delete these now.
    pub delete: Vec<Candidate>,
    /// These stay for good, as annotated.
    pub kept: Vec<Candidate>,
    /// These wait. A hold of the whole plugin, in [`Guard::hold`], is told here
    /// with the part of this unit; approvals of either are understood.
    pub holds: Vec<Hold>,
}

/// Why an approval changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// There is nothing to approve.
    #[error("no deletions of the plugin are held")]
    NothingHeld,
    /// What would be deleted is not what was looked at.
    #[error(
        "{given} approves other deletions than the {count} that are held now; look at them, and \
         approve them with {held}"
    )]
    Changed {
        /// What was approved.
        given: Token,
        /// What is held.
        held: Token,
        /// How many that are.
        count: usize,
    },
}

/// Watches over what one plugin deletes, over all its units.
///
/// It lets withdrawals pass until they exceed its [`Policy`]. From then on it
/// holds every withdrawal of the plugin, also when the window has moved on: a
/// mistake does not become right by being made slowly. It opens again when
/// nothing is held any more, because units no longer want to delete what was held
/// or because it was approved.
///
/// Within any window, at most the budget of objects is withdrawn for the first
/// time without an approval that names them.
#[derive(Clone, Debug)]
pub struct Guard {
    plugin: String,
    policy: Policy,
    /// What was let pass and when, by uid: trying again costs nothing. No larger
    /// than the budget.
    spent: HashMap<String, Timestamp>,
    /// What is held for the plugin as a whole, by unit.
    held: BTreeMap<UnitKey, Vec<Candidate>>,
    /// Units of which something is held for more than that something of others is.
    exceeding: BTreeMap<UnitKey, Reason>,
    reason: Option<Reason>,
    /// Until when what was approved may be deleted, by uid.
    approved: HashMap<(UnitKey, String), Timestamp>,
    /// When the last of these has ended.
    approvals_end: Timestamp,
    /// Something was held before a restart, and not all units have been heard.
    catching_up: bool,
    /// All units have been heard since then.
    is_caught_up: bool,
}

impl Guard {
    /// A guard that has seen nothing yet.
    pub fn new(plugin: impl Into<String>, policy: Policy) -> Self {
        Self {
            plugin: plugin.into(),
            policy,
            spent: HashMap::new(),
            held: BTreeMap::new(),
            exceeding: BTreeMap::new(),
            reason: None,
            approved: HashMap::new(),
            approvals_end: Timestamp::MIN,
            catching_up: false,
            is_caught_up: false,
        }
    }

    /// Goes on under other limits. Where one of them is wider, what is held is asked for
    /// anew, and held again if it exceeds that. Narrower ones release nothing.
    pub fn set_policy(&mut self, policy: Policy) {
        let wider = policy.budget > self.policy.budget
            || policy.plugin_share_percent > self.policy.plugin_share_percent;
        self.policy = policy;
        if wider {
            self.held.clear();
            self.exceeding.clear();
            self.reason = None;
        }
    }

    /// Takes up after a restart: what was let pass, by uid, and whether something
    /// was held. If so, all withdrawals are held until [`Guard::caught_up`].
    #[must_use]
    pub fn resumed(
        mut self,
        spent: impl IntoIterator<Item = (String, Timestamp)>,
        was_holding: bool,
    ) -> Self {
        self.resume(spent, was_holding);
        self
    }

    /// As [`Guard::resumed`], of a guard that is in use.
    pub fn resume(
        &mut self,
        spent: impl IntoIterator<Item = (String, Timestamp)>,
        was_holding: bool,
    ) {
        self.spent.extend(spent);
        self.catching_up = was_holding && !self.is_caught_up;
    }

    /// What to keep over a restart; for [`Guard::resumed`].
    pub fn spent(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        self.spent.iter().map(|(uid, at)| (uid.as_str(), *at))
    }

    /// How many objects it remembers in any way.
    pub fn remembered(&self) -> usize {
        let held: usize = self.held.values().map(Vec::len).sum();
        self.spent.len() + held + self.approved.len()
    }

    /// Says that every unit has made a request since the restart.
    pub fn caught_up(&mut self) {
        self.catching_up = false;
        self.is_caught_up = true;
    }

    /// Decides about a request.
    ///
    /// `approvals` are those on the unit. Call it for every successful outcome,
    /// also one that deletes nothing: that is how holds end.
    pub fn review(&mut self, request: Request<'_>, approvals: &[Token], now: Timestamp) -> Verdict {
        self.forget_old(now);
        let unit = request.unit;
        let mut verdict = Verdict::default();
        let mut groups: BTreeMap<usize, (Reason, Vec<Candidate>)> = BTreeMap::new();
        let mut free = Vec::new();
        for candidate in request.candidates {
            if candidate.removal == Removal::Never {
                verdict.kept.push(candidate);
                continue;
            }
            // Approved with others of which some have gone since.
            if self.is_approved(unit, &candidate, now) {
                verdict.delete.push(candidate);
                continue;
            }
            match Self::own_reason(&candidate, request.cause, request.empty_not_meant) {
                Some((order, reason)) => {
                    let group = groups.entry(order).or_insert_with(|| (reason, Vec::new()));
                    group.1.push(candidate);
                }
                None => free.push(candidate),
            }
        }
        if request.cause == Cause::Ended {
            verdict.delete.append(&mut free);
        } else if request.cause == Cause::Withdrawn {
            let percent = self.policy.unit_share_percent;
            let owned = request.unit_owns;
            if self.policy.exceeds(free.len(), owned, percent) {
                let reason = Reason::UnitShare { percent, owned };
                groups.insert(usize::MAX, (reason, std::mem::take(&mut free)));
            }
        }
        for (reason, group) in groups.into_values() {
            let token = Token::of(&self.plugin, group.iter().map(|one| (unit, one)));
            if approvals.contains(&token) {
                self.note_approved(unit, &group, now);
                verdict.delete.extend(group);
            } else {
                verdict.holds.push(Hold::new(reason, token, &group));
            }
        }
        self.review_free(
            unit,
            free,
            request.plugin_owns,
            approvals,
            now,
            &mut verdict,
        );
        verdict
    }

    /// What holds a candidate by itself, with the order in which holds are told.
    fn own_reason(
        candidate: &Candidate,
        cause: Cause,
        empty_not_meant: bool,
    ) -> Option<(usize, Reason)> {
        let withdrawn = cause != Cause::Ended;
        if withdrawn && empty_not_meant {
            return Some((0, Reason::Empty));
        }
        match candidate.removal {
            Removal::Confirm => Some((2, Reason::Confirm)),
            Removal::Unsaid if withdrawn && is_precious(&candidate.reference.kind) => {
                Some((1, Reason::Precious))
            }
            _ => None,
        }
    }

    /// Withdrawals that nothing about themselves holds: they count against the
    /// limits of the plugin.
    fn review_free(
        &mut self,
        unit: &UnitKey,
        free: Vec<Candidate>,
        plugin_owns: usize,
        approvals: &[Token],
        now: Timestamp,
        verdict: &mut Verdict,
    ) {
        // All of it once more stays held, however long ago it was asked for; only some of
        // it is another request.
        let before = self.held.remove(unit).unwrap_or_default();
        let exceeded = self.exceeding.remove(unit);
        // Most units have no approvals, and digests are not free.
        let as_one = !approvals.is_empty()
            && approvals.contains(&Token::of(&self.plugin, free.iter().map(|one| (unit, one))));
        let (approved, open): (Vec<_>, Vec<_>) = free
            .into_iter()
            .partition(|one| as_one || self.is_approved(unit, one, now));
        if as_one {
            self.note_approved(unit, &approved, now);
        }
        verdict.delete.extend(approved);
        // All of it once more.
        let exceeded = exceeded.filter(|_| contains(&open, &before));
        let reason = match &exceeded {
            // What waited only for others is asked for anew when they wait no more.
            Some(reason) if self.held.is_empty() => Some(reason.clone()),
            _ => self.over_limit(&open, plugin_owns),
        };
        match reason {
            _ if open.is_empty() => {}
            None => {
                for candidate in &open {
                    self.spent.entry(candidate.uid.clone()).or_insert(now);
                }
                verdict.delete.extend(open);
            }
            Some(reason) => {
                let token = Token::of(&self.plugin, open.iter().map(|one| (unit, one)));
                if self.reason.is_none() || reason != Reason::Latched {
                    self.reason = Some(reason.clone());
                }
                // That others are held as well does not make it less.
                let own = (reason != Reason::Latched).then(|| reason.clone());
                if let Some(reason) = own.or(exceeded) {
                    self.exceeding.insert(unit.clone(), reason);
                }
                verdict.holds.push(Hold::new(reason, token, &open));
                self.held.insert(unit.clone(), open);
            }
        }
        if self.held.is_empty() {
            self.reason = None;
        }
    }

    fn over_limit(&self, open: &[Candidate], plugin_owns: usize) -> Option<Reason> {
        if self.catching_up || !self.held.is_empty() {
            return Some(Reason::Latched);
        }
        let new = open
            .iter()
            .filter(|one| !self.spent.contains_key(&one.uid))
            .count();
        let withdrawn = self.spent.len() + new;
        let minutes = self.policy.window.as_secs() / 60;
        // Trying again what was let pass costs nothing.
        if new == 0 {
            return None;
        }
        let budget = self.policy.budget;
        if withdrawn > budget {
            return Some(Reason::Budget { budget, minutes });
        }
        // What was withdrawn before is no longer among what it owns.
        let percent = self.policy.plugin_share_percent;
        let owned = plugin_owns.saturating_add(self.spent.len());
        self.policy
            .exceeds(withdrawn, owned, percent)
            .then_some(Reason::PluginShare {
                percent,
                owned,
                minutes,
            })
    }

    /// What is held for the plugin as a whole, if anything.
    pub fn hold(&self) -> Option<Hold> {
        let reason = self.reason.clone()?;
        let held = self.held.values().flatten();
        Some(Hold::new(reason, self.held_token(), held))
    }

    /// Approves what is held for the plugin as a whole, if it is what `token`
    /// stands for. Returns how many objects may go now; units make their requests
    /// again to delete them.
    ///
    /// # Errors
    ///
    /// When something else is held, or nothing.
    pub fn approve(&mut self, token: &Token, now: Timestamp) -> Result<usize, ApprovalError> {
        let held = self.held_token();
        let count = self.held.values().map(Vec::len).sum();
        if count == 0 {
            return Err(ApprovalError::NothingHeld);
        }
        if held != *token {
            return Err(ApprovalError::Changed {
                given: token.clone(),
                held,
                count,
            });
        }
        for (unit, candidates) in std::mem::take(&mut self.held) {
            self.note_approved(&unit, &candidates, now);
        }
        self.exceeding.clear();
        self.reason = None;
        Ok(count)
    }

    /// Lets what is held of a unit go, if one of `approvals` stands for all of it: for
    /// units that ask about their objects one after another.
    pub fn approve_held_of(&mut self, unit: &UnitKey, approvals: &[Token], now: Timestamp) {
        let Some(held) = self.held.get(unit).filter(|_| !approvals.is_empty()) else {
            return;
        };
        let token = Token::of(&self.plugin, held.iter().map(|one| (unit, one)));
        if approvals.contains(&token)
            && let Some(held) = self.held.remove(unit)
        {
            self.note_approved(unit, &held, now);
            self.exceeding.remove(unit);
            if self.held.is_empty() {
                self.reason = None;
            }
        }
    }

    /// Remembers that these may go: they go step by step, and an approval stands
    /// for all of them at once.
    fn note_approved(&mut self, unit: &UnitKey, candidates: &[Candidate], now: Timestamp) {
        let until = now
            .checked_add(self.policy.approval_lifetime)
            .unwrap_or(Timestamp::MAX);
        for candidate in candidates {
            let key = (unit.clone(), candidate.uid.clone());
            self.approved.insert(key, until);
        }
        self.approvals_end = self.approvals_end.max(until);
    }

    /// Forgets a unit that has ended.
    pub fn forget(&mut self, unit: &UnitKey) {
        if self.knows_nothing() {
            return;
        }
        self.held.remove(unit);
        self.exceeding.remove(unit);
        self.approved.retain(|(of, _), _| of != unit);
        if self.held.is_empty() {
            self.reason = None;
        }
    }

    /// Whether nothing is known of any unit that could be forgotten.
    pub fn knows_nothing(&self) -> bool {
        self.held.is_empty() && self.exceeding.is_empty() && self.approved.is_empty()
    }

    fn held_token(&self) -> Token {
        let members = self.held.iter();
        Token::of(
            &self.plugin,
            members.flat_map(|(unit, held)| held.iter().map(move |one| (unit, one))),
        )
    }

    fn is_approved(&self, unit: &UnitKey, candidate: &Candidate, now: Timestamp) -> bool {
        !self.approved.is_empty()
            && self
                .approved
                .get(&(unit.clone(), candidate.uid.clone()))
                .is_some_and(|until| now < *until)
    }

    fn forget_old(&mut self, now: Timestamp) {
        let window = self.policy.window;
        // A time that lies ahead, from another clock, is kept until it has passed.
        let recent = |at: &Timestamp| at.checked_add(window).is_ok_and(|end| now < end);
        self.spent.retain(|_, at| recent(at));
        // Looking through all of them at each request would be quadratic.
        if self.approvals_end <= now {
            self.approved.clear();
        }
    }
}

/// Whether something was held, and all of it is asked for.
fn contains(open: &[Candidate], held: &[Candidate]) -> bool {
    let open: HashSet<&str> = open.iter().map(|one| one.uid.as_str()).collect();
    !held.is_empty() && held.iter().all(|one| open.contains(one.uid.as_str()))
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
