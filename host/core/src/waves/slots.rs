//! Where each object stands before dependencies are looked at: phases and waves,
//! and the steps that are made of them.

use super::graph::Edge;
use super::hook::Phase;
use super::options::{Options, Role};
use super::rank::rank;
use super::timeout::wave_timeout;
use crate::annotations::{Annotations, Warning};
use crate::kind::ObjectReference;
use crate::manifest::is_definition;
use serde_json::Value;
use std::cmp::Reverse;
use std::time::Duration;

/// An object as far as its place matters.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The object.
    pub reference: ObjectReference,
    /// What its annotations say.
    pub options: Options,
    /// How long its wave may take, if it says so.
    pub timeout: Option<Duration>,
    /// Group and kind that it brings, if it is a CustomResourceDefinition.
    pub defines: Option<(String, String)>,
}

impl Member {
    /// An object's, and what in its annotations is not understood.
    pub fn of(reference: ObjectReference, body: &Value) -> (Self, Vec<Warning>) {
        let (options, mut warnings) = Options::of(body);
        let (timeout, untimely) = wave_timeout(&Annotations::of(body));
        warnings.extend(untimely);
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        let defines = is_definition(&reference.kind)
            .then(|| {
                Some((
                    text("/spec/group")?.into(),
                    text("/spec/names/kind")?.into(),
                ))
            })
            .flatten();
        let member = Self {
            reference,
            options,
            timeout,
            defines,
        };
        (member, warnings)
    }

    fn is_namespace(&self) -> bool {
        self.reference.kind.group.is_empty() && self.reference.kind.kind == "Namespace"
    }

    /// Whether `other` cannot be made before this: this is its namespace, or
    /// defines its kind. If so, how many steps are between them.
    ///
    /// A namespace serves at once; a definition has to be established first.
    fn enables(&self, other: &Self) -> Option<usize> {
        if self.is_namespace() && other.reference.namespace.as_ref() == Some(&self.reference.name) {
            return Some(0);
        }
        let (group, kind) = self.defines.as_ref()?;
        let of_kind = other.reference.kind.group == *group && other.reference.kind.kind == *kind;
        of_kind.then_some(1)
    }
}

/// The order of members in one level: kinds, then names.
pub(super) fn sort_key(
    reference: &ObjectReference,
) -> (usize, &str, &str, &str, Option<&str>, &str) {
    (
        rank(&reference.kind),
        &reference.kind.kind,
        &reference.kind.group,
        &reference.name,
        reference.namespace.as_deref(),
        &reference.kind.version,
    )
}

/// A member in one phase; a hook of several phases has as many of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occurrence {
    /// Index among the members.
    pub(super) member: usize,
    pub(super) phase: Phase,
    pub(super) wave: i64,
}

impl Occurrence {
    pub(super) fn slot(&self) -> (Phase, i64) {
        (self.phase, self.wave)
    }
}

/// All that is to be applied at some time, each in its phase and wave.
pub(super) fn occurrences(members: &[&Member]) -> Vec<Occurrence> {
    let mut all = Vec::with_capacity(members.len());
    for (member, of) in members.iter().enumerate() {
        let wave = of.options.wave;
        let mut add = |phase| {
            all.push(Occurrence {
                member,
                phase,
                wave,
            });
        };
        match &of.options.role {
            Role::Resource => add(Phase::Sync),
            Role::Hook(hook) => hook.phases.iter().copied().for_each(add),
            Role::Skipped => {}
        }
    }
    all
}

/// The first occurrence of each member in the phases that every sync goes
/// through.
pub(super) fn firsts(count: usize, occurrences: &[Occurrence]) -> Vec<Option<usize>> {
    let mut firsts: Vec<Option<usize>> = vec![None; count];
    for (index, occurrence) in occurrences.iter().enumerate() {
        let earlier = |other: usize| occurrences[other].slot() <= occurrence.slot();
        if occurrence.phase.in_sync() && !firsts[occurrence.member].is_some_and(earlier) {
            firsts[occurrence.member] = Some(index);
        }
    }
    firsts
}

/// What comes of what members enable: edges between occurrences.
pub(super) fn enabling(members: &[&Member], occurrences: &[Occurrence]) -> Vec<Edge> {
    let firsts = firsts(members.len(), occurrences);
    let mut edges = Vec::new();
    for (enabler, before) in members.iter().zip(firsts) {
        let Some(before) = before else { continue };
        if !enabler.is_namespace() && enabler.defines.is_none() {
            continue;
        }
        for (after, occurrence) in occurrences.iter().enumerate() {
            let other = members[occurrence.member];
            if let Some(steps) = enabler
                .enables(other)
                .filter(|_| occurrence.phase.in_sync())
            {
                edges.push(Edge {
                    before,
                    after,
                    steps,
                });
            }
        }
    }
    edges
}

/// Moves namespaces and definitions ahead: each takes over phase and wave of the
/// first object that needs it (Argo CD). Returns which were moved, with where
/// they were.
pub(super) fn pull_forward(
    occurrences: &mut [Occurrence],
    enabling: &[Edge],
) -> Vec<(usize, (Phase, i64))> {
    let mut moved: Vec<(usize, (Phase, i64))> = Vec::new();
    for edge in enabling {
        let wanted = occurrences[edge.after].slot();
        let own = occurrences[edge.before].slot();
        if wanted < own {
            if !moved.iter().any(|(index, _)| *index == edge.before) {
                moved.push((edge.before, own));
            }
            let occurrence = &mut occurrences[edge.before];
            (occurrence.phase, occurrence.wave) = wanted;
        }
    }
    moved
}

/// Objects that go together. A step begins when the one before it is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its phase.
    pub phase: Phase,
    /// Its wave; none where waves are not looked at.
    pub wave: Option<i64>,
    /// Which part of the wave it is; 0 unless dependencies divide the wave.
    pub level: usize,
    /// What is applied or deleted, in groups one after another. What is in one
    /// group may go at the same time; between groups nothing is waited for.
    pub groups: Vec<Vec<ObjectReference>>,
}

impl Step {
    /// All objects of it, in order.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectReference> {
        self.groups.iter().flatten()
    }
}

/// Makes steps of occurrences that have a level each, in order or in reverse.
pub(super) fn steps(
    members: &[&Member],
    placed: impl IntoIterator<Item = (Occurrence, Option<i64>, usize)>,
    reverse: bool,
) -> Vec<Step> {
    let mut placed: Vec<_> = placed.into_iter().collect();
    // The members are sorted already, so their index is their order.
    let place = |(occurrence, wave, level): &(Occurrence, Option<i64>, usize)| {
        (
            occurrence.phase,
            *wave,
            *level,
            rank(&members[occurrence.member].reference.kind),
        )
    };
    if reverse {
        placed.sort_by_key(|entry| (Reverse(place(entry)), Reverse(entry.0.member)));
    } else {
        placed.sort_by_key(|entry| (place(entry), entry.0.member));
    }
    let mut steps: Vec<Step> = Vec::new();
    for (occurrence, wave, level) in placed {
        let reference = members[occurrence.member].reference.clone();
        let fits = |step: &&mut Step| {
            step.phase == occurrence.phase && step.wave == wave && step.level == level
        };
        let Some(step) = steps.last_mut().filter(fits) else {
            steps.push(Step {
                phase: occurrence.phase,
                wave,
                level,
                groups: vec![vec![reference]],
            });
            continue;
        };
        let same_kind = |group: &&mut Vec<ObjectReference>| {
            group
                .first()
                .is_some_and(|first| first.kind.same_kind(&reference.kind))
        };
        match step.groups.last_mut().filter(same_kind) {
            Some(group) => group.push(reference),
            None => step.groups.push(vec![reference]),
        }
    }
    steps
}
