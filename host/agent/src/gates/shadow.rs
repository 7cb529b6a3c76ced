//! A shadow run: a new version is asked about every unit, and what it would do is
//! counted. Nothing of it is done.
//!
//! Each unit is a rehearsal of the agent's own run, so that what is counted is what
//! would be done. Where something would be, the running version is rehearsed on the same
//! unit: what that would do too (an object that somebody has just deleted, say) says
//! nothing about the new one.

use super::{Fleet, Gates};
use crate::active::Active;
use crate::problem::Problem;
use crate::run::{Ran, Rehearsal, Rehearsed, Runner};
use crate::version::VersionId;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use reeve_api::{Reason, ShadowStatus};
use reeve_core::outcome::Verb;
use reeve_core::plan::Act;
use reeve_core::upgrade::Tally;
use reeve_core::{ObjectReference, UnitKey};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Units that are looked at at once: enough for one to be planned while the plugin
/// answers about another. The units that run have the rest of the machine.
const AT_ONCE: usize = 2;

/// Examples that the status names, and that are kept of each sort.
const EXAMPLES: usize = 10;

/// A message of an example ends here; how many there are stands beside.
const EXAMPLE_BYTES: usize = 300;

/// What a shadow run found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) tally: Tally,
    /// Examples of units that would fail.
    pub(super) failures: Vec<String>,
    deletions: Vec<String>,
    others: Vec<String>,
    /// Whether a unit failed in a way that may pass.
    pub(super) passing: bool,
}

/// What a version would do for one unit.
enum Looked {
    /// This.
    Deeds(Deeds),
    /// It has no answer.
    Fails(Problem),
    /// Nothing before something else happens.
    Waits,
    /// What it works on is not seen.
    Unseen(Problem),
}

/// What would be done for a unit, each thing once.
#[derive(Debug, Default)]
struct Deeds {
    objects: BTreeMap<ObjectReference, Deed>,
    /// Effects, by what would be done about them, name and key.
    effects: Vec<(Verb, String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Create,
    Change,
    Delete,
}

impl Deeds {
    fn of(taken: Rehearsed) -> Self {
        let mut objects = BTreeMap::new();
        for step in taken.whole.into_iter().flat_map(|whole| whole.steps) {
            let deed = match step.act {
                Act::Create | Act::Run => Deed::Create,
                Act::Change | Act::Contribute | Act::Release => Deed::Change,
                Act::Delete => Deed::Delete,
                // Drift is no doing of a version.
                Act::Repair => continue,
            };
            objects.insert(step.object, deed);
        }
        let absences = taken.absences.into_iter();
        objects.extend(absences.map(|object| (object, Deed::Delete)));
        let effects = taken.effects.into_iter().filter_map(|(verb, effect)| {
            let verb = verb.filter(|verb| matches!(verb, Verb::Apply | Verb::Retire))?;
            Some((verb, effect.action.name, effect.action.key))
        });
        Self {
            effects: effects.collect(),
            objects,
        }
    }

    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.effects.is_empty()
    }

    /// Takes out what the other would do too.
    fn beyond(&mut self, other: &Self) {
        self.objects
            .retain(|object, deed| other.objects.get(object) != Some(deed));
        self.effects
            .retain(|effect| !other.effects.contains(effect));
    }
}

/// Two versions, and the units about which they are asked.
struct Comparison {
    fleet: Arc<Fleet>,
    new: Arc<Active>,
    running: Option<Arc<Active>>,
    /// Asks the new version.
    bystander: Runner,
    /// Asks the running one. That answers as it does when it runs, and need not be asked
    /// for what it has said.
    insider: Runner,
}

/// What was found of one unit.
struct Compared {
    index: usize,
    looked: Looked,
    /// What the new version would leave outside, and the running one would not.
    left: Option<Undeclared>,
    /// Whether the running version fails, too.
    fails_too: bool,
}

impl Compared {
    fn nothing(index: usize) -> Self {
        Self {
            index,
            looked: Looked::Waits,
            left: None,
            fails_too: false,
        }
    }
}

/// Asks a new version about all units. `running` is what it is compared with.
///
/// # Errors
///
/// When a unit cannot be seen: then nothing can be said of the whole.
pub(super) async fn run(
    gates: &Gates,
    fleet: &Arc<Fleet>,
    new: &Arc<Active>,
    running: Option<&Arc<Active>>,
) -> Result<Found, Problem> {
    let began = tokio::time::Instant::now();
    let bystander = gates.bystander();
    let comparison = Arc::new(Comparison {
        fleet: fleet.clone(),
        new: new.clone(),
        running: running.cloned(),
        insider: Runner {
            memo: gates.runner.memo.clone(),
            ..bystander.clone()
        },
        bystander,
    });
    let mut found = Found::default();
    found.tally.owned = fleet.state.owned_count;
    let units = futures::stream::iter(0..fleet.units.len());
    let mut units = units
        .map(|index| comparison.clone().look(index).boxed())
        .buffered(AT_ONCE);
    while let Some(compared) = units.next().await {
        if let Some((unit, _)) = fleet.units.get(compared.index) {
            found.count(unit, compared)?;
        }
    }
    tracing::info!(
        plugin = %new.plugin,
        digest = %new.key.component,
        units = found.tally.units,
        milliseconds = began.elapsed().as_millis(),
        "shadow run"
    );
    Ok(found)
}

impl Comparison {
    /// What the new version would do for a unit beyond what the running one would.
    async fn look(self: Arc<Self>, index: usize) -> Compared {
        let Some((unit, _)) = self.fleet.units.get(index) else {
            return Compared::nothing(index);
        };
        let (mut looked, mut left) = look(&self.bystander, &self.fleet, unit, &self.new).await;
        let mut fails_too = false;
        if let Some(running) = &self.running {
            // What the running version could not take away either is none of this one's.
            left = left.filter(|left| running.manifest.action(&left.action).is_some());
            match &mut looked {
                Looked::Deeds(deeds) if !deeds.is_empty() => {
                    let (same, _) = look(&self.insider, &self.fleet, unit, running).await;
                    if let Looked::Deeds(same) = same {
                        deeds.beyond(&same);
                    }
                }
                Looked::Fails(_) => {
                    let (now, _) = look(&self.insider, &self.fleet, unit, running).await;
                    fails_too = matches!(now, Looked::Fails(_));
                }
                _ => {}
            }
        }
        Compared {
            index,
            looked,
            left,
            fails_too,
        }
    }
}

/// Rehearses all that a version would do for a unit, and says what it would leave outside.
async fn look(
    runner: &Runner,
    fleet: &Fleet,
    unit: &UnitKey,
    version: &Arc<Active>,
) -> (Looked, Option<Undeclared>) {
    let rehearsal = Arc::new(Rehearsal::of_whole());
    let runner = Runner {
        rehearsal: Some(rehearsal.clone()),
        ..runner.clone()
    };
    let ran = runner.run(fleet.state.run(unit, version)).await;
    let taken = rehearsal.taken_down();
    let left = undeclared(&taken, version);
    (judge(ran, taken), left)
}

/// An effect that a version asks for no more and could not take away.
struct Undeclared {
    action: String,
    key: String,
}

impl Undeclared {
    fn problem(&self) -> Problem {
        let Self { action, key } = self;
        Problem::lasting(
            Reason::ActionFailed,
            format!(
                "action {action} ({key}) would be asked for no more, and could not be taken away: \
                 this version declares no such action; have it declare the action for as long as \
                 there are effects of it"
            ),
        )
    }
}

fn undeclared(taken: &Rehearsed, version: &Active) -> Option<Undeclared> {
    let mut effects = taken.effects.iter();
    let (_, effect) = effects.find(|(verb, effect)| {
        *verb == Some(Verb::Retire) && version.manifest.action(&effect.action.name).is_none()
    })?;
    Some(Undeclared {
        action: effect.action.name.clone(),
        key: effect.action.key.clone(),
    })
}

fn judge(ran: Ran, taken: Rehearsed) -> Looked {
    if taken.planned {
        let steps = taken.whole.iter().flat_map(|whole| &whole.steps);
        let withdrawn = steps.filter(|step| matches!(step.act, Act::Delete | Act::Release));
        // None of them would go before a person has said so, unit by unit.
        return match withdrawn.count() {
            count if taken.empty_not_meant && count > 0 => Looked::Fails(nothing_wanted(count)),
            _ => Looked::Deeds(Deeds::of(taken)),
        };
    }
    let Some(problem) = ran.problems.into_iter().next() else {
        // It went while it was looked at.
        return Looked::Waits;
    };
    match problem.reason {
        _ if problem.waits() => Looked::Waits,
        Reason::Syncing | Reason::Unreachable | Reason::KindNotServed | Reason::Forbidden => {
            Looked::Unseen(problem)
        }
        _ => Looked::Fails(problem),
    }
}

fn nothing_wanted(deletions: usize) -> Problem {
    Problem::lasting(
        Reason::DeletionHeld,
        format!(
            "it wants no objects and does not say that an empty set is meant, so all deletions of \
             the unit ({deletions}) would be held; say in the outcome that it is meant, or return \
             a failure where the answer is not known"
        ),
    )
}

impl Found {
    fn count(&mut self, unit: &UnitKey, compared: Compared) -> Result<(), Problem> {
        let primary = &unit.primary;
        let Compared {
            looked,
            left,
            fails_too,
            ..
        } = compared;
        let tally = &mut self.tally;
        tally.units += 1;
        match looked {
            Looked::Unseen(problem) => {
                let message = format!(
                    "what the new version would do cannot be told: {}",
                    problem.message
                );
                return Err(Problem::passing(problem.reason, message));
            }
            Looked::Waits => tally.waiting += 1,
            Looked::Fails(_) if fails_too => tally.failing_alike += 1,
            Looked::Fails(problem) => {
                tally.failing += 1;
                let trapped = matches!(problem.reason, Reason::Trapped | Reason::LimitExceeded);
                tally.trapped += usize::from(trapped);
                self.passing |= problem.retries && !trapped;
                example(&mut self.failures, || format!("fail {primary}: {problem}"));
            }
            Looked::Deeds(deeds) => {
                if let Some(left) = left {
                    tally.failing += 1;
                    let failures = &mut self.failures;
                    example(failures, || format!("fail {primary}: {}", left.problem()));
                }
                tally.unchanged += usize::from(deeds.is_empty());
                tally.effects += deeds.effects.len();
                for (object, deed) in &deeds.objects {
                    let (count, verb, list) = match deed {
                        Deed::Create => (&mut tally.created, "create", &mut self.others),
                        Deed::Change => (&mut tally.changed, "change", &mut self.others),
                        Deed::Delete => (&mut tally.deleted, "delete", &mut self.deletions),
                    };
                    *count += 1;
                    example(list, || format!("{verb} {object}, of {primary}"));
                }
            }
        }
        Ok(())
    }

    /// The worst of what was found.
    pub(super) fn example(&self) -> Option<&str> {
        let mut all = self
            .failures
            .iter()
            .chain(&self.deletions)
            .chain(&self.others);
        all.next().map(String::as_str)
    }

    /// The counts in a sentence.
    pub(super) fn in_words(&self) -> String {
        let Tally {
            units,
            unchanged,
            failing,
            created,
            changed,
            deleted,
            effects,
            ..
        } = self.tally;
        let mut text = format!(
            "{created} objects would be created, {changed} changed and {deleted} deleted, \
             {failing} of {units} units would newly fail, and {unchanged} stay as they are"
        );
        if effects > 0 {
            text.push_str(&format!(
                ", with {effects} outside effects made or taken away"
            ));
        }
        text
    }

    /// As the status of the Plugin has it.
    pub(super) fn to_status(
        &self,
        version: VersionId,
        verdict: &str,
        now: Timestamp,
    ) -> ShadowStatus {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let Tally {
            units,
            unchanged,
            failing,
            trapped,
            failing_alike,
            waiting,
            created,
            changed,
            deleted,
            effects,
            owned,
        } = self.tally;
        let named = version.to_status();
        let examples = self.deletions.iter().chain(&self.failures);
        ShadowStatus {
            digest: named.digest,
            config_digest: named.config_digest,
            verdict: verdict.to_owned(),
            units: count(units),
            unchanged: count(unchanged),
            failing: count(failing),
            trapped: count(trapped),
            failing_alike: count(failing_alike),
            waiting: count(waiting),
            created: count(created),
            changed: count(changed),
            deleted: count(deleted),
            effects: count(effects),
            owned: count(owned),
            examples: examples
                .chain(&self.others)
                .take(EXAMPLES)
                .cloned()
                .collect(),
            finished_at: Some(Time(now)),
        }
    }
}

fn example(list: &mut Vec<String>, text: impl FnOnce() -> String) {
    if list.len() >= EXAMPLES {
        return;
    }
    let mut text = text();
    if text.len() > EXAMPLE_BYTES {
        text.truncate(text.floor_char_boundary(EXAMPLE_BYTES));
        text.push('…');
    }
    list.push(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::GroupVersionKind;

    fn unit(name: &str) -> UnitKey {
        let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
        UnitKey::new("p", ObjectReference::new(kind, None, name))
    }

    fn object(name: &str) -> ObjectReference {
        let kind = GroupVersionKind::new("", "v1", "ConfigMap");
        ObjectReference::new(kind, Some("a".to_owned()), name)
    }

    fn deeds(deeds: &[(&str, Deed)]) -> Deeds {
        let deeds = deeds.iter().map(|(name, deed)| (object(name), *deed));
        Deeds {
            objects: deeds.collect(),
            effects: Vec::new(),
        }
    }

    fn compared(looked: Looked, fails_too: bool) -> Compared {
        Compared {
            looked,
            fails_too,
            ..Compared::nothing(0)
        }
    }

    /// What else the version would do to such a unit is counted all the same.
    #[test]
    fn a_unit_whose_effect_would_be_left_fails() {
        let mut found = Found::default();
        let left = || Undeclared {
            action: "database".to_owned(),
            key: "db".to_owned(),
        };
        let of = |looked: Looked| Compared {
            left: Some(left()),
            ..compared(looked, false)
        };
        let looked = Looked::Deeds(deeds(&[("a", Deed::Delete)]));
        found.count(&unit("a"), of(looked)).unwrap();
        let problem = Problem::passing(Reason::Trapped, "no");
        found.count(&unit("b"), of(Looked::Fails(problem))).unwrap();
        let tally = &found.tally;
        assert_eq!((tally.failing, tally.trapped, tally.deleted), (2, 1, 1));
        let example = found.example().unwrap();
        assert!(
            example.starts_with("fail Profile a: ActionFailed: action database (db)"),
            "{example}"
        );
    }

    #[test]
    fn what_the_running_version_would_do_too_is_not_counted() {
        let mut new = deeds(&[
            ("gone", Deed::Create),
            ("new", Deed::Create),
            ("other", Deed::Change),
        ]);
        new.beyond(&deeds(&[("gone", Deed::Create), ("other", Deed::Delete)]));
        let left: Vec<_> = new.objects.into_iter().collect();
        assert_eq!(
            left,
            [
                (object("new"), Deed::Create),
                (object("other"), Deed::Change)
            ]
        );
    }

    #[test]
    fn a_thousand_deletions_are_ten_examples() {
        let mut found = Found::default();
        for number in 0..1000 {
            let name = format!("u{number}");
            let problem = Problem::passing(Reason::Trapped, "x".repeat(10_000));
            let looked = match number % 2 {
                0 => Looked::Deeds(deeds(&[("a", Deed::Change), ("b", Deed::Delete)])),
                _ => Looked::Fails(problem),
            };
            found
                .count(&unit(&name), compared(looked, number == 1))
                .unwrap();
        }
        let version = VersionId {
            component: reeve_core::Digest::of(b"1"),
            config: reeve_core::Digest::of(b"2"),
        };
        let status = found.to_status(version, "Held", Timestamp::UNIX_EPOCH);
        assert_eq!((status.changed, status.deleted), (500, 500));
        assert_eq!(
            (status.failing, status.trapped, status.failing_alike),
            (499, 499, 1)
        );
        assert_eq!(status.examples.len(), EXAMPLES);
        assert_eq!(status.examples[0], "delete ConfigMap a/b, of Profile u0");
        let size = serde_json::to_string(&status).unwrap().len();
        assert!(size < 8 << 10, "{size} bytes");
        assert!(!found.passing, "a trap does not pass");
    }

    #[test]
    fn what_is_not_seen_is_not_counted_as_nothing() {
        let mut found = Found::default();
        let unseen = Problem::passing(Reason::Syncing, "ConfigMap a/b cannot be seen");
        let error = found
            .count(&unit("a"), compared(Looked::Unseen(unseen), false))
            .unwrap_err();
        assert_eq!(
            (error.reason, error.message.as_str()),
            (
                Reason::Syncing,
                "what the new version would do cannot be told: ConfigMap a/b cannot be seen"
            )
        );
    }
}
