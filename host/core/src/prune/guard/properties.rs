//! What holds of a guard through whatever happens: requests of all kinds, approvals,
//! time and restarts.

use super::*;
use crate::kind::{GroupVersionKind, ObjectReference};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

const MINUTE: u64 = 60;

const POLICY: Policy = Policy {
    budget: 6,
    window: Duration::from_secs(60 * MINUTE),
    floor: 3,
    plugin_share_percent: 50,
    unit_share_percent: 80,
    approval_lifetime: Duration::from_secs(30 * MINUTE),
};

/// What happens.
#[derive(Clone, Debug)]
enum Happens {
    /// A unit wants to delete these of its objects.
    Asks {
        unit: usize,
        objects: BTreeSet<usize>,
        ends: bool,
        empty: bool,
    },
    /// Somebody approves what is held: of a unit, or of the plugin.
    Approved(Option<usize>),
    /// Minutes pass.
    Passes(u64),
    /// Another replica takes over.
    Restarts,
}

fn happens() -> impl Strategy<Value = Happens> {
    let objects = proptest::collection::btree_set(0..12_usize, 0..7);
    let asks = (0..4_usize, objects, any::<bool>(), 0..8_u8);
    prop_oneof![
        8 => asks.prop_map(|(unit, objects, ends, empty)| Happens::Asks {
            unit, objects, ends: ends && unit == 3, empty: empty == 0,
        }),
        2 => proptest::option::of(0..4_usize).prop_map(Happens::Approved),
        2 => (1..50_u64).prop_map(Happens::Passes),
        1 => Just(Happens::Restarts),
    ]
}

fn unit(index: usize) -> UnitKey {
    let kind = GroupVersionKind::new("example.com", "v1", "Bundle");
    UnitKey::new("p", ObjectReference::new(kind, None, format!("u{index}")))
}

/// Objects of one number are of one kind: a few are precious, ask, or stay.
fn candidate(unit: usize, object: usize) -> Candidate {
    let (kind, removal) = match object {
        0 => ("PersistentVolumeClaim", Removal::Unsaid),
        1 => ("ConfigMap", Removal::Confirm),
        2 => ("ConfigMap", Removal::Never),
        3 => ("PersistentVolumeClaim", Removal::Permitted),
        _ => ("ConfigMap", Removal::Unsaid),
    };
    Candidate {
        reference: ObjectReference::new(
            GroupVersionKind::new("", "v1", kind),
            Some("a".to_owned()),
            format!("{unit}-{object}"),
        ),
        uid: format!("uid-{unit}-{object}"),
        removal,
    }
}

/// A guard, and what is known of it from outside.
struct World {
    guard: Guard,
    now: u64,
    /// The last holds of each unit, and what they hold.
    holds: BTreeMap<usize, Vec<(Token, Vec<String>)>>,
    /// Tokens that a person has given, and until when they are good.
    approvals: Vec<(Token, u64)>,
    /// Until when a person lets these go.
    approved: BTreeMap<String, u64>,
    /// What was withdrawn without a word: when, and what.
    withdrawn: Vec<(u64, String)>,
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::try_from(seconds).unwrap()).unwrap()
}

impl World {
    fn new() -> Self {
        Self {
            guard: Guard::new("p", POLICY),
            now: 0,
            holds: BTreeMap::new(),
            approvals: Vec::new(),
            approved: BTreeMap::new(),
            withdrawn: Vec::new(),
        }
    }

    fn asks(
        &mut self,
        index: usize,
        objects: &BTreeSet<usize>,
        ends: bool,
        empty: bool,
    ) -> Result<(), TestCaseError> {
        let unit = unit(index);
        let candidates: Vec<Candidate> = objects.iter().map(|one| candidate(index, *one)).collect();
        let verdict = self.guard.review(
            Request {
                unit: &unit,
                cause: if ends { Cause::Ended } else { Cause::Withdrawn },
                candidates: candidates.clone(),
                unit_owns: 12,
                plugin_owns: 10,
                empty_not_meant: empty,
            },
            &self.tokens(),
            at(self.now),
        );
        let uids = |all: &[Candidate]| -> BTreeSet<String> {
            all.iter().map(|one| one.uid.clone()).collect()
        };
        let held: usize = verdict.holds.iter().map(|hold| hold.count).sum();
        let (deleted, kept) = (uids(&verdict.delete), uids(&verdict.kept));
        // Each of them is deleted, kept or held.
        prop_assert_eq!(deleted.len() + kept.len() + held, candidates.len());
        prop_assert!(deleted.is_disjoint(&kept));
        for one in &verdict.delete {
            prop_assert!(candidates.contains(one), "nobody asked for {:?}", one);
            let approved = self.approved.get(&one.uid);
            let approved = approved.is_some_and(|until| self.now < *until);
            prop_assert_ne!(one.removal, Removal::Never);
            if approved {
                continue;
            }
            prop_assert_ne!(one.removal, Removal::Confirm);
            if ends {
                continue;
            }
            prop_assert!(!empty, "an empty set that is not meant");
            let precious = is_precious(&one.reference.kind);
            prop_assert!(!precious || one.removal == Removal::Permitted);
            self.withdrawn.push((self.now, one.uid.clone()));
        }
        let waits: Vec<String> = candidates
            .iter()
            .map(|one| one.uid.clone())
            .filter(|uid| !deleted.contains(uid) && !kept.contains(uid))
            .collect();
        let tokens = verdict.holds.into_iter().map(|hold| hold.token);
        // Which of them a token stands for is known where there is one.
        let mut tokens: Vec<Token> = tokens.collect();
        self.holds.remove(&index);
        if tokens.len() == 1
            && let Some(token) = tokens.pop()
        {
            self.holds.insert(index, vec![(token, waits)]);
        }
        self.within_budget()
    }

    fn tokens(&self) -> Vec<Token> {
        let good = self.approvals.iter().filter(|(_, until)| self.now < *until);
        good.map(|(token, _)| token.clone()).collect()
    }

    /// Within no window more objects are withdrawn than the budget has, trying again
    /// aside.
    fn within_budget(&self) -> Result<(), TestCaseError> {
        let window = POLICY.window.as_secs();
        let recent = self
            .withdrawn
            .iter()
            .filter(|(when, _)| when + window > self.now);
        let distinct: BTreeSet<&String> = recent.map(|(_, uid)| uid).collect();
        let before = |uid: &String| {
            let mut earlier = self.withdrawn.iter();
            earlier.any(|(when, other)| other == uid && when + window <= self.now)
        };
        let fresh = distinct.iter().filter(|uid| !before(uid)).count();
        prop_assert!(fresh <= POLICY.budget, "{} within a window", fresh);
        prop_assert!(self.guard.spent().count() <= POLICY.budget);
        Ok(())
    }

    /// Approves as a person does who has seen a hold, and asks once more.
    fn approve(&mut self, index: usize) -> Result<(), TestCaseError> {
        let Some(holds) = self.holds.get(&index).cloned() else {
            return Ok(());
        };
        for (token, uids) in holds {
            let until = self.now + POLICY.approval_lifetime.as_secs();
            self.approvals.push((token, until));
            let objects: BTreeSet<usize> = uids
                .iter()
                .filter_map(|uid| uid.rsplit('-').next()?.parse().ok())
                .collect();
            for uid in uids {
                self.approved.insert(uid, until);
            }
            // What it stands for goes, all of it.
            let unit = unit(index);
            let candidates: Vec<Candidate> =
                objects.iter().map(|one| candidate(index, *one)).collect();
            let verdict = self.guard.review(
                Request {
                    unit: &unit,
                    cause: Cause::Withdrawn,
                    candidates: candidates.clone(),
                    unit_owns: 12,
                    plugin_owns: 10,
                    empty_not_meant: false,
                },
                &self.tokens(),
                at(self.now),
            );
            // Of what was held together some may go without a word when asked for anew.
            let spent: BTreeSet<&str> = self.guard.spent().map(|(uid, _)| uid).collect();
            let passed = verdict
                .delete
                .iter()
                .filter(|one| spent.contains(&*one.uid));
            let passed = passed.map(|one| (self.now, one.uid.clone()));
            self.withdrawn.extend(passed);
            let free = |one: &&Candidate| {
                one.removal != Removal::Confirm && !is_precious(&one.reference.kind)
            };
            let expected = candidates.iter().filter(free).count();
            if expected == candidates.len() {
                prop_assert_eq!(verdict.delete.len(), expected);
            }
        }
        self.holds.remove(&index);
        Ok(())
    }

    fn step(&mut self, happens: &Happens) -> Result<(), TestCaseError> {
        match happens {
            Happens::Asks {
                unit,
                objects,
                ends,
                empty,
            } => self.asks(*unit, objects, *ends, *empty)?,
            Happens::Approved(Some(unit)) => self.approve(*unit)?,
            Happens::Approved(None) => {
                let Some(hold) = self.guard.hold() else {
                    let none = Token::of("p", []);
                    prop_assert!(self.guard.approve(&none, at(self.now)).is_err());
                    return Ok(());
                };
                let other = Token::of("q", []);
                prop_assert!(self.guard.approve(&other, at(self.now)).is_err());
                let all: Vec<String> = self
                    .guard
                    .held
                    .values()
                    .flatten()
                    .map(|one| one.uid.clone())
                    .collect();
                let count = self.guard.approve(&hold.token, at(self.now));
                prop_assert_eq!(count, Ok(hold.count));
                prop_assert_eq!(self.guard.hold(), None);
                let until = self.now + POLICY.approval_lifetime.as_secs();
                self.approved
                    .extend(all.into_iter().map(|uid| (uid, until)));
            }
            Happens::Passes(minutes) => self.now += minutes * MINUTE,
            Happens::Restarts => {
                let spent: Vec<(String, Timestamp)> = self
                    .guard
                    .spent()
                    .map(|(uid, at)| (uid.to_owned(), at))
                    .collect();
                let holding = self.guard.hold().is_some();
                self.guard = Guard::new("p", POLICY).resumed(spent, holding);
                self.holds.clear();
                self.approvals.clear();
                // What was approved is asked for again, and counts then.
                self.approved.clear();
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn nothing_goes_that_should_not(history in proptest::collection::vec(happens(), 1..60)) {
        let mut world = World::new();
        for happens in &history {
            world.step(happens)?;
        }
    }

    /// While something is held, nothing more goes that nobody approved, however long
    /// that lasts. Nor does what was held when nobody else waits any more.
    #[test]
    fn what_is_held_holds_the_rest(
        objects in proptest::collection::btree_set(4..12_usize, 4..8),
        later in proptest::collection::vec((0..3_usize, 4..12_usize, 0..200_u64), 1..20),
    ) {
        let mut world = World::new();
        // With these it is too much, and an hour later it would not be.
        world.asks(3, &(4..7).collect(), false, false)?;
        let before = world.withdrawn.clone();
        prop_assert_eq!(before.len(), 3);
        world.asks(0, &objects, false, false)?;
        prop_assert!(world.guard.hold().is_some());
        for (unit, object, minutes) in later {
            world.now += minutes * MINUTE;
            let wanted = match unit {
                0 => objects.clone(),
                _ => BTreeSet::from([object]),
            };
            world.asks(unit, &wanted, false, false)?;
        }
        for unit in 1..3 {
            world.asks(unit, &BTreeSet::new(), false, false)?;
        }
        world.now += 2 * POLICY.window.as_secs();
        world.asks(0, &objects, false, false)?;
        prop_assert_eq!(world.withdrawn, before);
    }
}
