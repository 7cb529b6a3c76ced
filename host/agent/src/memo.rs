//! Answers that need not be asked for again.
//!
//! A call is a pure function of what it was given and what it read. Where both
//! are as they were, so is the answer, and the guest is not called. Only answers
//! are remembered, not failures: they are rare, and a retry is meant to ask.

mod bodies;

use crate::active::LoadKey;
use crate::asked;
use crate::reads::Read;
use crate::unanswered::Unanswered;
use bodies::{Bodies, Packer};
use parking_lot::Mutex;
use reeve_core::desired::DesiredObject;
use reeve_core::outcome::Precondition;
use reeve_core::{Desired, Digest, ObjectReference, UnitKey};
use reeve_engine::Fact;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Bytes of remembered answers, as they are in memory. A call costs from tens of microseconds to
/// one or two milliseconds, so that forgetting one is cheap, while memory is what an agent is
/// judged by.
const MEMO_BYTES: usize = 8 * 1024 * 1024;

/// What an entry takes besides its objects: its key, its digests, its place.
const ENTRY_BYTES: usize = 512;

/// Answers by unit, the least recently used forgotten first.
pub(crate) struct Memo {
    answers: Mutex<Answered>,
    packer: Packer,
    capacity: usize,
}

#[derive(Default)]
struct Answered {
    by_unit: HashMap<UnitKey, (u64, Arc<Remembered>)>,
    /// Units by the number of their last use.
    by_use: BTreeMap<u64, UnitKey>,
    uses: u64,
    bytes: usize,
}

/// One answer, and what it is the answer to.
pub(crate) struct Remembered {
    /// What the guest was given.
    given: Digest,
    /// What it read, and what it was told.
    pub(crate) reads: Answers,
    /// What it answered, checked, without the bodies of its objects.
    rest: Desired,
    bodies: Bodies,
    /// What of that could not be shown.
    pub(crate) unanswered: Option<Unanswered>,
    bytes: usize,
}

/// Everything that a call has read, with the digest of what it was told.
pub(crate) type Answers = HashMap<Read, Digest>;

impl Remembered {
    /// Reads, and bytes of what they are told, that are looked up again in less time than it
    /// takes to wake a thread for it.
    const FEW: usize = 32;
    const SMALL: usize = 64 * 1024;

    /// Whether everything that was read is as it was. `answer` says what a read would be told
    /// now. It takes as long as it took the guest to be told: lists are made again.
    pub(crate) fn holds(&self, mut answer: impl FnMut(&Read) -> Digest) -> bool {
        self.reads.iter().all(|(read, told)| answer(read) == *told)
    }

    /// Whether that takes no time. `bytes` says how large what a read is about is.
    pub(crate) fn is_short(&self, bytes: impl FnMut(&Read) -> usize) -> bool {
        let is_list = |read: &Read| matches!(read, Read::List { .. });
        self.reads.len() <= Self::FEW
            && !self.reads.keys().any(is_list)
            && self.reads.keys().map(bytes).sum::<usize>() <= Self::SMALL
    }
}

impl Answered {
    fn get(&mut self, unit: &UnitKey) -> Option<Arc<Remembered>> {
        let (used, remembered) = self.by_unit.get_mut(unit)?;
        self.by_use.remove(used);
        self.uses += 1;
        *used = self.uses;
        self.by_use.insert(self.uses, unit.clone());
        Some(remembered.clone())
    }

    fn insert(&mut self, unit: UnitKey, remembered: Arc<Remembered>) {
        self.remove(&unit);
        self.uses += 1;
        self.bytes += remembered.bytes;
        self.by_use.insert(self.uses, unit.clone());
        self.by_unit.insert(unit, (self.uses, remembered));
    }

    fn remove(&mut self, unit: &UnitKey) {
        if let Some((used, remembered)) = self.by_unit.remove(unit) {
            self.by_use.remove(&used);
            self.bytes -= remembered.bytes;
        }
    }

    fn shrink(&mut self, capacity: usize) {
        while self.bytes > capacity
            && let Some((_, unit)) = self.by_use.pop_first()
        {
            self.remove(&unit);
        }
    }
}

/// Digest of all that a guest is given besides what it asks for: which component
/// under which configuration and policy, the primary, and what outside effects have
/// reported. The generation of the
/// contract is part of the component.
pub(crate) fn given(key: &LoadKey, primary: &[u8], facts: &[Fact]) -> Digest {
    let (component, settings) = (key.component.hex(), key.settings.hex());
    let parts = [component.as_bytes(), settings.as_bytes(), primary];
    let facts = facts
        .iter()
        .flat_map(|fact| [fact.key.as_bytes(), &*fact.value]);
    Digest::of_parts(parts.into_iter().chain(facts))
}

impl Memo {
    pub(crate) fn new() -> Self {
        Self::with_capacity(MEMO_BYTES)
    }

    /// One that remembers nothing, for who asks only once.
    pub(crate) fn none() -> Self {
        Self::with_capacity(0)
    }

    fn with_capacity(capacity: usize) -> Self {
        Self {
            answers: Mutex::default(),
            packer: Packer::default(),
            capacity,
        }
    }

    /// What was answered when the guest was given the same. It is the answer now, too, where
    /// it [holds](Remembered::holds).
    pub(crate) fn recall(&self, unit: &UnitKey, given: &Digest) -> Option<Arc<Remembered>> {
        let remembered = self.answers.lock().get(unit)?;
        (remembered.given == *given).then_some(remembered)
    }

    /// What was answered. None where it cannot be told, and is to be asked for.
    pub(crate) fn desired(&self, remembered: &Remembered) -> Option<Desired> {
        let bodies = self.packer.unpack(&remembered.bodies)?;
        let mut desired = remembered.rest.clone();
        if bodies.len() != desired.objects.len() {
            return None;
        }
        for (object, body) in desired.objects.iter_mut().zip(bodies) {
            object.body = body;
        }
        Some(desired)
    }

    /// Remembers the answer of a unit, in the place of an earlier one. An answer
    /// that depends on the time is not remembered: no two instants are equal.
    pub(crate) fn remember(
        &self,
        unit: &UnitKey,
        given: Digest,
        reads: Answers,
        desired: &Desired,
        unanswered: Option<Unanswered>,
    ) {
        if reads.contains_key(&Read::Clock) || self.capacity == 0 {
            self.answers.lock().remove(unit);
            return;
        }
        let asked = reads
            .keys()
            .map(|read| ENTRY_BYTES / 4 + asked::weight(read));
        let told = unanswered.as_ref().map_or(0, Unanswered::bytes);
        let rest = without_bodies(desired);
        let bodies = self.packer.pack(&desired.objects);
        let bytes = ENTRY_BYTES + weight(&rest) + bodies.bytes() + told + asked.sum::<usize>();
        let remembered = Arc::new(Remembered {
            given,
            reads,
            rest,
            bodies,
            unanswered,
            bytes,
        });
        let mut answers = self.answers.lock();
        answers.insert(unit.clone(), remembered);
        answers.shrink(self.capacity);
    }

    /// Forgets the answer of a unit that is no more.
    pub(crate) fn forget(&self, unit: &UnitKey) {
        self.answers.lock().remove(unit);
    }

    /// How many answers are remembered.
    pub(crate) fn len(&self) -> usize {
        self.answers.lock().by_unit.len()
    }

    /// Forgets the answers of a plugin.
    pub(crate) fn forget_plugin(&self, plugin: &str) {
        let mut answers = self.answers.lock();
        let units = answers.by_unit.keys();
        let gone: Vec<UnitKey> = units
            .filter(|unit| *unit.plugin == *plugin)
            .cloned()
            .collect();
        for unit in gone {
            answers.remove(&unit);
        }
    }
}

/// An answer without the bodies of its objects.
fn without_bodies(desired: &Desired) -> Desired {
    let bare = desired.objects.iter().map(|object| DesiredObject {
        reference: object.reference.clone(),
        body: Value::Null,
        text: None,
    });
    Desired {
        objects: bare.collect(),
        absent: desired.absent.clone(),
        conditions: desired.conditions.clone(),
        events: desired.events.clone(),
        actions: desired.actions.clone(),
        next: desired.next,
        empty_is_meant: desired.empty_is_meant,
    }
}

/// Bytes that an answer without bodies takes in memory, roughly: what of it a plugin decides
/// about, and a place for each entry.
fn weight(desired: &Desired) -> usize {
    const ENTRY: usize = 128;
    let name = |object: &ObjectReference| {
        let namespace = object.namespace.as_ref().map_or(0, String::len);
        ENTRY + namespace + object.name.len()
    };
    let objects = desired.objects.iter();
    let objects = objects.map(|object| name(&object.reference));
    let absent = desired.absent.iter().map(|absence| {
        let preconditions = absence.preconditions.iter().map(|one| match one {
            Precondition::Uid(text) | Precondition::OwnedBy(text) => ENTRY + text.len(),
            Precondition::Phase(phases) => {
                let phases = phases.iter().map(|phase| size_of::<String>() + phase.len());
                ENTRY + phases.sum::<usize>()
            }
        });
        name(&absence.object) + preconditions.sum::<usize>()
    });
    let conditions = desired.conditions.iter();
    let conditions =
        conditions.map(|one| ENTRY + one.kind.len() + one.reason.len() + one.message.len());
    let events = desired.events.iter();
    let events = events.map(|one| ENTRY + one.reason.len() + one.message.len());
    let actions = desired.actions.iter();
    let actions = actions.map(|one| ENTRY + one.key.len() + one.name.len() + one.bytes());
    let said = conditions.chain(events).chain(actions);
    objects.chain(absent).chain(said).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::GroupVersionKind;
    use reeve_core::outcome::{Absence, Condition, ConditionStatus, Event, Next};
    use reeve_core::projection::Projection;
    use serde_json::json;

    fn reference(name: &str) -> ObjectReference {
        ObjectReference::new(GroupVersionKind::new("", "v1", "ConfigMap"), None, name)
    }

    fn unit(plugin: &str, name: &str) -> UnitKey {
        UnitKey::new(plugin, reference(name))
    }

    fn desired(data: &str) -> Desired {
        Desired {
            objects: vec![DesiredObject {
                reference: reference("a"),
                body: json!({"data": {"a": data}}),
                text: None,
            }],
            absent: vec![],
            conditions: vec![],
            events: vec![],
            actions: vec![],
            next: Next::OnChange,
            empty_is_meant: false,
        }
    }

    fn read(name: &str) -> Read {
        Read::Object(reference(name), Projection::default())
    }

    #[test]
    fn equal_inputs_are_recognised_and_others_are_not() {
        let memo = Memo::new();
        let (primary, other) = (Digest::of(b"1"), Digest::of(b"2"));
        let told = Digest::of(b"told");
        let reads: Answers = [(read("x"), told)].into();
        memo.remember(&unit("p", "a"), primary, reads, &desired("1"), None);
        let recall = |unit: &UnitKey, given, told| {
            let remembered = memo.recall(unit, &given);
            remembered.is_some_and(|remembered| remembered.holds(|_| told))
        };
        assert!(recall(&unit("p", "a"), primary, told));
        assert!(!recall(&unit("p", "a"), other, told), "another primary");
        assert!(!recall(&unit("p", "a"), primary, other), "another answer");
        assert!(!recall(&unit("p", "b"), primary, told), "another unit");
    }

    #[test]
    fn the_time_is_never_the_same() {
        let memo = Memo::new();
        let given = Digest::of(b"1");
        memo.remember(&unit("p", "a"), given, Answers::new(), &desired("1"), None);
        let reads: Answers = [(Read::Clock, Digest::of(b""))].into();
        memo.remember(&unit("p", "a"), given, reads, &desired("2"), None);
        let recalled = memo.recall(&unit("p", "a"), &given);
        assert!(recalled.is_none());
    }

    #[test]
    fn what_was_answered_is_recalled_as_it_was() {
        let memo = Memo::new();
        let given = Digest::of(b"1");
        let mut answer = desired("1");
        answer.objects[0].body["data"]["n"] = json!(1.5e300);
        answer.objects.push(DesiredObject {
            reference: reference("b"),
            body: json!({"z": [1, null, "é\n"], "a": {}}),
            text: None,
        });
        answer.empty_is_meant = true;
        let mut written = answer.clone();
        let text = format!(" {:#}\n", written.objects[1].body);
        written.objects[1].text = Some(text.into_bytes());
        for said in [&answer, &written] {
            memo.remember(&unit("p", "a"), given, Answers::new(), said, None);
            let recalled = memo.recall(&unit("p", "a"), &given).unwrap();
            assert_eq!(memo.desired(&recalled).as_ref(), Some(&answer));
        }
    }

    #[test]
    fn memory_is_bounded() {
        let memo = Memo::with_capacity(64 * 1024);
        let given = Digest::of(b"1");
        for number in 0..1000 {
            let unit = unit("p", &number.to_string());
            memo.remember(
                &unit,
                given,
                Answers::new(),
                &desired(&"x".repeat(1024)),
                None,
            );
        }
        let answers = memo.answers.lock();
        assert!(answers.bytes <= 64 * 1024);
        let kept: usize = answers.by_unit.values().map(|(_, one)| one.bytes).sum();
        assert_eq!(answers.bytes, kept);
        assert_eq!(answers.by_unit.len(), answers.by_use.len());
        assert!(
            answers.by_unit.contains_key(&unit("p", "999")),
            "the newest stays"
        );
    }

    #[test]
    fn whatever_is_kept_has_weight() {
        // Packing leaves half of digits.
        let digits = |count: u32| -> String {
            let digests = (0..count).map(|n| Digest::of(&n.to_le_bytes()).hex());
            digests.collect()
        };
        let text = || digits(1_600);
        let event = Event {
            warning: false,
            reason: "A".to_owned(),
            message: text(),
        };
        let condition = Condition {
            kind: "A".to_owned(),
            status: ConditionStatus::True,
            reason: "A".to_owned(),
            message: text(),
        };
        let absence = |precondition| Absence {
            object: reference("a"),
            preconditions: vec![precondition],
        };
        let with = |change: &dyn Fn(&mut Desired)| {
            let mut desired = desired("1");
            change(&mut desired);
            (Answers::new(), desired)
        };
        for (reads, desired) in [
            with(&|desired| desired.objects[0].body = json!(digits(3_200))),
            with(&|desired| desired.objects[0].reference = reference(&text())),
            with(&|desired| desired.events.push(event.clone())),
            with(&|desired| desired.conditions.push(condition.clone())),
            with(&|desired| desired.absent.push(absence(Precondition::Uid(text())))),
            with(&|desired| {
                let phases = Precondition::Phase(vec!["x".to_owned(); 5_000]);
                desired.absent.push(absence(phases));
            }),
            (
                Answers::from([(read(&text()), Digest::of(b"told"))]),
                desired("1"),
            ),
        ] {
            // There is room for one of two.
            let memo = Memo::with_capacity(150_000);
            let given = Digest::of(b"1");
            for name in ["a", "b"] {
                memo.remember(&unit("p", name), given, reads.clone(), &desired, None);
            }
            let there = |name| memo.answers.lock().by_unit.contains_key(&unit("p", name));
            assert_eq!((there("a"), there("b")), (false, true));
        }
    }

    #[test]
    fn a_plugin_is_forgotten_alone() {
        let memo = Memo::new();
        let given = Digest::of(b"1");
        for plugin in ["p", "q"] {
            memo.remember(
                &unit(plugin, "a"),
                given,
                Answers::new(),
                &desired("1"),
                None,
            );
        }
        memo.forget_plugin("p");
        let there = |plugin| memo.recall(&unit(plugin, "a"), &given).is_some();
        assert_eq!((there("p"), there("q")), (false, true));
    }
}
