//! The order in which a unit is applied.

use super::dependency::DependencyError;
use super::graph::{Edge, levels};
use super::hook::Phase;
use super::slots::{Member, Occurrence, Step};
use super::slots::{enabling, firsts, occurrences, pull_forward, sort_key, steps};
use crate::kind::ObjectReference;
use std::collections::{BTreeMap, BTreeSet};

/// What decides about the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Waves, and dependencies within them.
    #[default]
    Waves,
    /// Waves alone, as in Argo CD; dependencies are only reported on.
    WavesOnly,
    /// Phases and dependencies alone: as few steps as they allow.
    Dependencies,
}

/// The order in which objects are applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// `PreSync`, `Sync` and `PostSync`.
    pub steps: Vec<Step>,
    /// `SyncFail`, for when one of these fails.
    pub on_failure: Vec<Step>,
    /// `PreDelete`, for when the unit ends.
    pub before_deletion: Vec<Step>,
    /// `PostDelete`, likewise.
    pub after_deletion: Vec<Step>,
    /// What is never applied.
    pub skipped: Vec<ObjectReference>,
    /// What its author should know.
    pub notices: Vec<Notice>,
    mode: Mode,
    /// By object, what it waits for; in the phases of a sync.
    waits: BTreeMap<ObjectReference, BTreeSet<ObjectReference>>,
}

/// Something that may be started or waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open<'a> {
    /// Its phase.
    pub phase: Phase,
    /// Its wave; none where waves do not order.
    pub wave: Option<i64>,
    /// The object.
    pub object: &'a ObjectReference,
}

/// Something about the order that is not as it looks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Notice {
    /// Both are in one wave, so waves alone do not order them.
    #[error("{object} depends on {dependency}, and both are in {phase} wave {wave}: {}",
        if *refined { "the wave is divided" } else { "waves do not order them, so they go together" })]
    InsideWave {
        /// What depends.
        object: ObjectReference,
        /// On what.
        dependency: ObjectReference,
        /// Their phase.
        phase: Phase,
        /// Their wave.
        wave: i64,
        /// Whether the order was refined for it.
        refined: bool,
    },
    /// The dependency is applied later; said under [`Mode::WavesOnly`], which
    /// goes by the waves.
    #[error("{object} depends on {dependency}, whose wave is later: it is applied before it")]
    Contradiction {
        /// What depends.
        object: ObjectReference,
        /// On what.
        dependency: ObjectReference,
    },
    /// The two never meet: one of them is a hook for failures or deletion.
    #[error("{object} depends on {dependency}, which is of another phase: it does not wait for it")]
    OtherPhase {
        /// What depends.
        object: ObjectReference,
        /// On what.
        dependency: ObjectReference,
    },
    /// A namespace or definition is applied earlier than it says.
    #[error(
        "{object} is applied in {phase} wave {wave} instead of {own_phase} wave {own_wave}, \
         where it is needed first"
    )]
    PulledForward {
        /// The namespace or definition.
        object: ObjectReference,
        /// Where it goes.
        phase: Phase,
        /// Where it goes.
        wave: i64,
        /// Where it says it goes.
        own_phase: Phase,
        /// Where it says it goes.
        own_wave: i64,
    },
}

/// Why there is no order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// A dependency cannot be read.
    #[error("{object}: annotation reeve.dev/depends-on: {error}")]
    Unreadable {
        /// Whose dependency.
        object: Box<ObjectReference>,
        /// Why.
        error: DependencyError,
    },
    /// A dependency is on nothing that the unit applies.
    #[error(
        "{object} depends on {dependency}, which this unit does not apply; name one of its \
         objects, or remove the dependency"
    )]
    Unknown {
        /// What depends.
        object: Box<ObjectReference>,
        /// On what, as it is written.
        dependency: String,
    },
    /// Objects wait for each other.
    #[error("objects wait for each other: {}; remove one of these dependencies", chain(.0))]
    Cycle(Vec<ObjectReference>),
    /// Waves say the opposite of a dependency.
    #[error(
        "{object} ({phase} wave {wave}) depends on {dependency} ({dependency_phase} wave \
         {dependency_wave}), which is applied later; move one of them, or remove the dependency"
    )]
    Contradiction {
        /// What depends.
        object: Box<ObjectReference>,
        /// Where it is applied.
        phase: Phase,
        /// Where it is applied.
        wave: i64,
        /// On what.
        dependency: Box<ObjectReference>,
        /// Where that is applied.
        dependency_phase: Phase,
        /// Where that is applied.
        dependency_wave: i64,
    },
}

/// `a waits for b waits for a`.
fn chain(cycle: &[ObjectReference]) -> String {
    let names = cycle.iter().chain(cycle.first()).map(ToString::to_string);
    names.collect::<Vec<_>>().join(" waits for ")
}

/// Orders the objects of a unit.
///
/// The result does not depend on the order in which they are given. Waves
/// ascend, and every dependency is respected, or there is an error; under
/// [`Mode::WavesOnly`] there is a notice.
///
/// # Errors
///
/// Whatever makes it impossible to respect what the objects say.
pub fn order(members: &[Member], mode: Mode) -> Result<Sequence, OrderError> {
    let members = sorted(members);
    let wanted = dependencies(&members)?;
    let mut all = occurrences(&members);
    let enabling = enabling(&members, &all);
    no_cycle(&members, &all, &wanted, &enabling)?;
    let mut notices = Vec::new();
    for (index, (own_phase, own_wave)) in pull_forward(&mut all, &enabling) {
        notices.push(Notice::PulledForward {
            object: members[all[index].member].reference.clone(),
            phase: all[index].phase,
            wave: all[index].wave,
            own_phase,
            own_wave,
        });
    }
    let wanted = between(&members, &all, &wanted, &mut notices);
    let mut edges = enabling;
    for edge in wanted {
        if respected(&members, &all, edge, mode, &mut notices)? {
            edges.push(edge);
        }
    }
    // Edges across slots hold by the order of slots.
    let slot = |occurrence: &Occurrence| match mode {
        Mode::Dependencies => (occurrence.phase, None),
        Mode::Waves | Mode::WavesOnly => (occurrence.phase, Some(occurrence.wave)),
    };
    let inside: Vec<Edge> = edges
        .iter()
        .copied()
        .filter(|edge| slot(&all[edge.before]) == slot(&all[edge.after]))
        .collect();
    let levels = levels(all.len(), &inside).map_err(|cycle| {
        let reference = |index: &usize| members[all[*index].member].reference.clone();
        OrderError::Cycle(cycle.iter().map(reference).collect())
    })?;
    let of_phase = |wanted: &dyn Fn(Phase) -> bool| {
        let placed = all.iter().zip(&levels).filter(|(one, _)| wanted(one.phase));
        steps(
            &members,
            placed.map(|(one, level)| (*one, slot(one).1, *level)),
            false,
        )
    };
    let mut waits: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for edge in edges.iter().filter(|edge| all[edge.after].phase.in_sync()) {
        let [before, after] =
            [edge.before, edge.after].map(|index| members[all[index].member].reference.clone());
        waits.entry(after).or_default().insert(before);
    }
    let applied: BTreeSet<usize> = all.iter().map(|one| one.member).collect();
    let skipped = (0..members.len()).filter(|member| !applied.contains(member));
    Ok(Sequence {
        steps: of_phase(&Phase::in_sync),
        on_failure: of_phase(&|phase| phase == Phase::SyncFail),
        before_deletion: of_phase(&|phase| phase == Phase::PreDelete),
        after_deletion: of_phase(&|phase| phase == Phase::PostDelete),
        skipped: skipped
            .map(|member| members[member].reference.clone())
            .collect(),
        notices,
        mode,
        waits,
    })
}

impl Sequence {
    /// What may be started or waited for now, given what is done: applied,
    /// observed and healthy, in the phase that is asked about.
    ///
    /// By waves that is what is left of the first step that is not done; by
    /// dependencies, whatever of the first such phase waits for nothing.
    pub fn startable(&self, done: impl Fn(Phase, &ObjectReference) -> bool) -> Vec<Open<'_>> {
        let is_open = |step: &&Step| step.objects().any(|object| !done(step.phase, object));
        let Some(first) = self.steps.iter().find(is_open) else {
            return Vec::new();
        };
        let phase = first.phase;
        let waits_for_nothing = |object: &ObjectReference| {
            let waits = self.waits.get(object);
            waits.is_none_or(|waits| waits.iter().all(|on| done(phase, on)))
        };
        let steps: &[Step] = match self.mode {
            Mode::Waves | Mode::WavesOnly => std::slice::from_ref(first),
            Mode::Dependencies => &self.steps,
        };
        let steps = steps.iter().filter(|step| step.phase == phase);
        steps
            .flat_map(|step| step.objects().map(move |object| (step.wave, object)))
            .filter(|(_, object)| !done(phase, object))
            .filter(|(_, object)| self.mode != Mode::Dependencies || waits_for_nothing(object))
            .map(|(wave, object)| Open {
                phase,
                wave,
                object,
            })
            .collect()
    }

    /// What does not start as long as `object` is not healthy, in order.
    ///
    /// By waves that is every step after its own; by dependencies, what waits for
    /// it, directly or not, and later phases.
    pub fn held_by(&self, object: &ObjectReference) -> Vec<&ObjectReference> {
        let contains = |step: &Step| step.objects().any(|one| one == object);
        let Some(own) = self.steps.iter().position(contains) else {
            return Vec::new();
        };
        let phase = self.steps[own].phase;
        let mut held: BTreeSet<&ObjectReference> = BTreeSet::from([object]);
        let later = self.steps[own + 1..].iter();
        later
            .flat_map(|step| step.objects().map(move |one| (step, one)))
            .filter(|(step, one)| match self.mode {
                Mode::Waves | Mode::WavesOnly => true,
                Mode::Dependencies => {
                    let waits = self.waits.get(one);
                    step.phase != phase
                        || waits.is_some_and(|waits| waits.iter().any(|on| held.contains(&on)))
                            && held.insert(*one)
                }
            })
            .map(|(_, one)| one)
            .collect()
    }
}

pub(super) fn sorted(members: &[Member]) -> Vec<&Member> {
    let mut sorted: Vec<&Member> = members.iter().collect();
    sorted.sort_by(|a, b| sort_key(&a.reference).cmp(&sort_key(&b.reference)));
    sorted
}

/// Who depends on whom: pairs of what depends, and on what.
fn dependencies(members: &[&Member]) -> Result<Vec<(usize, usize)>, OrderError> {
    let mut pairs = Vec::new();
    for (index, member) in members.iter().enumerate() {
        if let Some(error) = member.options.unreadable_dependencies.first() {
            return Err(OrderError::Unreadable {
                object: Box::new(member.reference.clone()),
                error: error.clone(),
            });
        }
        for dependency in &member.options.depends_on {
            let before = pairs.len();
            pairs.extend(named(members, index, dependency).map(|on| (index, on)));
            if pairs.len() == before {
                return Err(OrderError::Unknown {
                    object: Box::new(member.reference.clone()),
                    dependency: dependency.to_string(),
                });
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    Ok(pairs)
}

/// The members that a dependency of one of them names. What is skipped is not
/// applied, so nothing can wait for it.
pub(super) fn named<'a>(
    members: &'a [&Member],
    by: usize,
    dependency: &'a super::Dependency,
) -> impl Iterator<Item = usize> {
    members
        .iter()
        .enumerate()
        .filter(move |(_, member)| {
            member.options.role != super::Role::Skipped
                && dependency.names(&member.reference, &members[by].reference)
        })
        .map(|(index, _)| index)
}

/// Looks for cycles before anything else: a cycle over waves would otherwise be
/// told as a contradiction of one of its edges.
fn no_cycle(
    members: &[&Member],
    all: &[Occurrence],
    wanted: &[(usize, usize)],
    enabling: &[Edge],
) -> Result<(), OrderError> {
    let wanted = wanted.iter().map(|&(after, before)| (before, after));
    let enabled = enabling
        .iter()
        .map(|e| (all[e.before].member, all[e.after].member));
    let edges: Vec<Edge> = wanted
        .chain(enabled)
        .map(|(before, after)| Edge {
            before,
            after,
            steps: 1,
        })
        .collect();
    match levels(members.len(), &edges) {
        Ok(_) => Ok(()),
        Err(cycle) => Err(OrderError::Cycle(
            cycle
                .iter()
                .map(|index| members[*index].reference.clone())
                .collect(),
        )),
    }
}

/// Dependencies as edges between occurrences: each occurrence of what depends
/// comes after the first of what it depends on, in the phases that belong
/// together.
fn between(
    members: &[&Member],
    all: &[Occurrence],
    wanted: &[(usize, usize)],
    notices: &mut Vec<Notice>,
) -> Vec<Edge> {
    let firsts = firsts(members.len(), all);
    let mut edges = Vec::new();
    for &(object, dependency) in wanted {
        let own = all
            .iter()
            .enumerate()
            .filter(|(_, one)| one.member == object);
        for (after, occurrence) in own {
            let before = if occurrence.phase.in_sync() {
                firsts[dependency]
            } else {
                let same =
                    |one: &Occurrence| one.member == dependency && one.phase == occurrence.phase;
                all.iter().position(same)
            };
            match before {
                Some(before) => edges.push(Edge {
                    before,
                    after,
                    steps: 1,
                }),
                None => notices.push(Notice::OtherPhase {
                    object: members[object].reference.clone(),
                    dependency: members[dependency].reference.clone(),
                }),
            }
        }
    }
    edges
}

/// Whether an edge is to be respected under a mode, and what there is to say.
fn respected(
    members: &[&Member],
    all: &[Occurrence],
    edge: Edge,
    mode: Mode,
    notices: &mut Vec<Notice>,
) -> Result<bool, OrderError> {
    let (before, after) = (all[edge.before], all[edge.after]);
    let object = || members[after.member].reference.clone();
    let dependency = || members[before.member].reference.clone();
    let later = match mode {
        Mode::Dependencies => before.phase > after.phase,
        Mode::Waves | Mode::WavesOnly => before.slot() > after.slot(),
    };
    if later && mode == Mode::WavesOnly {
        notices.push(Notice::Contradiction {
            object: object(),
            dependency: dependency(),
        });
        return Ok(false);
    }
    if later {
        return Err(OrderError::Contradiction {
            object: Box::new(object()),
            phase: after.phase,
            wave: after.wave,
            dependency: Box::new(dependency()),
            dependency_phase: before.phase,
            dependency_wave: before.wave,
        });
    }
    if mode != Mode::Dependencies && before.slot() == after.slot() {
        notices.push(Notice::InsideWave {
            object: object(),
            dependency: dependency(),
            phase: after.phase,
            wave: after.wave,
            refined: mode == Mode::Waves,
        });
    }
    Ok(mode != Mode::WavesOnly)
}

#[cfg(test)]
mod tests;
