//! What holds of any recording.

use super::sample;
use crate::failure::Failure;
use crate::kind::{GroupVersionKind, ObjectReference};
use crate::outcome::{
    Absence, Action, Condition, ConditionStatus, Event, Next, Outcome, Precondition,
};
use crate::recording::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..12),
        ".{0,12}".prop_map(String::into_bytes),
        Just(b"null".to_vec()),
        Just(b" {}".to_vec()),
        Just(br#"{"a":{"b":[1.0,1e400,"\ud800"]}, "a":1}"#.to_vec()),
        Just(b"{\n \"a\":\t1\n}".to_vec()),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    bytes().prop_map(Body::new)
}

fn named() -> impl Strategy<Value = ObjectReference> {
    ("[a-z]{0,3}", proptest::option::of("[a-z]{1,3}"), ".{1,4}").prop_map(
        |(group, namespace, name)| {
            ObjectReference::new(GroupVersionKind::new(group, "v1", "Kind"), namespace, name)
        },
    )
}

fn told_to_all() -> impl Strategy<Value = Told> {
    let reason = prop_oneof![
        Just(ReadFailureKind::Forbidden),
        Just(ReadFailureKind::Undeclared),
        Just(ReadFailureKind::NotSynced),
        Just(ReadFailureKind::Invalid),
    ];
    (reason, ".{0,8}").prop_map(|(reason, message)| Told::Failed(ReadFailure { reason, message }))
}

fn read() -> impl Strategy<Value = Read> {
    let one_of = |told: BoxedStrategy<Told>| prop_oneof![told, told_to_all()];
    let read = |(question, told)| Read { question, told };
    let fields = || vec("[a-z/]{0,4}", 0..3);
    let object =
        (named(), fields()).prop_map(|(object, fields)| Question::object(&object, &fields));
    let list = (named(), ".{0,6}", fields()).prop_map(|(object, selector, fields)| {
        Question::list(
            &object.kind,
            object.namespace.as_deref(),
            &selector,
            &fields,
        )
    });
    let keys = (named(), ".{0,6}").prop_map(|(object, selector)| {
        Question::keys(&object.kind, object.namespace.as_deref(), &selector)
    });
    let document =
        (".{0,4}", body()).prop_map(|(media_type, body)| Told::Document { media_type, body });
    prop_oneof![
        (
            object,
            one_of(proptest::option::of(body()).prop_map(Told::Object).boxed())
        )
            .prop_map(read),
        (
            list,
            one_of(vec(body(), 0..3).prop_map(Told::Objects).boxed())
        )
            .prop_map(read),
        (
            keys,
            one_of(vec(named(), 0..3).prop_map(Told::Keys).boxed())
        )
            .prop_map(read),
        (
            ".{0,4}".prop_map(Question::Source),
            one_of(document.boxed())
        )
            .prop_map(read),
        (
            ".{0,4}".prop_map(Question::SourceAge),
            one_of(any::<u64>().prop_map(Told::Seconds).boxed())
        )
            .prop_map(read),
        (
            Just(Question::Time),
            any::<u64>().prop_map(Told::Milliseconds)
        )
            .prop_map(read),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let absence = (named(), 0..4u8, ".{0,4}").prop_map(|(object, which, text)| Absence {
        object,
        preconditions: match which {
            0 => vec![],
            1 => vec![Precondition::Uid(text)],
            2 => vec![Precondition::OwnedBy(text)],
            _ => vec![Precondition::Phase(vec![text.clone(), text])],
        },
    });
    let status = prop_oneof![
        Just(ConditionStatus::True),
        Just(ConditionStatus::False),
        Just(ConditionStatus::Unknown),
    ];
    let condition = (status, ".{0,4}").prop_map(|(status, text)| Condition {
        kind: text.clone(),
        status,
        reason: text.clone(),
        message: text,
    });
    let event = (any::<bool>(), ".{0,4}").prop_map(|(warning, text)| Event {
        warning,
        reason: text.clone(),
        message: text,
    });
    let action = (".{0,4}", any::<bool>(), proptest::option::of(any::<u32>())).prop_map(
        |(text, retire, verify)| Action {
            key: text.clone(),
            name: text.clone(),
            input: text,
            secrets: vec![],
            verify: verify.map(|seconds| Duration::from_secs(seconds.into())),
            retire,
        },
    );
    let next = proptest::option::of(any::<u64>()).prop_map(|after| {
        after.map_or(Next::OnChange, |ms| Next::After(Duration::from_millis(ms)))
    });
    (
        vec(bytes(), 0..3),
        vec(absence, 0..3),
        (vec(condition, 0..3), vec(event, 0..3)),
        proptest::option::of(bytes()),
        vec(action, 0..3),
        next,
        any::<bool>(),
    )
        .prop_map(
            |(objects, absent, (conditions, events), status, actions, next, empty_is_meant)| {
                Outcome {
                    objects,
                    absent,
                    conditions,
                    events,
                    status,
                    actions,
                    next,
                    empty_is_meant,
                }
            },
        )
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        outcome().prop_map(Answer::Outcome),
        ".{0,8}".prop_map(|text| Answer::Failure(Failure::Retry(text))),
        ".{0,8}".prop_map(|text| Answer::Failure(Failure::Terminal(text))),
        ".{0,8}".prop_map(|text| Answer::Failure(Failure::NotReady(text))),
        (".{0,8}", ".{0,8}")
            .prop_map(|(reason, message)| Answer::Fault(FaultRecord { reason, message })),
    ]
}

proptest! {
    /// Whatever is asked, told and answered, not a byte of it is lost in the file.
    #[test]
    fn any_recording_reads_back_as_it_was(
        primary in body(),
        config in body(),
        facts in vec((".{0,4}", body()), 0..3),
        reads in vec(read(), 0..6),
        answer in answer(),
    ) {
        let mut recording = sample();
        recording.input.primary = primary;
        recording.input.config = config;
        recording.input.facts = facts
            .into_iter()
            .map(|(key, value)| RecordedFact { key, value })
            .collect();
        let mut asked = std::collections::BTreeSet::new();
        recording.input.reads = reads
            .into_iter()
            .filter(|read| asked.insert(read.question.clone()))
            .collect();
        recording.answer = answer;
        let text = recording.to_text().unwrap();
        let read = Recording::read(text.as_bytes()).unwrap();
        prop_assert_eq!(&read.recording, &recording);
        prop_assert!(!read.edited);
        prop_assert!(compare(&recording.answer, &read.recording.answer).is_empty());
    }

    /// Nothing differs just where all bytes are equal, and whoever compares the other
    /// way round finds the same.
    #[test]
    fn answers_differ_unless_they_are_equal(one in answer(), other in answer()) {
        prop_assert_eq!(compare(&one, &other).is_empty(), one == other);
        prop_assert_eq!(compare(&other, &one).is_empty(), one == other);
    }

    /// Damage is an error or an edit, never a panic, and never passes unseen.
    #[test]
    fn a_changed_byte_never_passes_unseen(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let text = sample().to_text().unwrap();
        let mut bytes = text.clone().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(read) = Recording::read(&bytes) {
            // Blanks around what is read mean nothing.
            prop_assert!(read.edited || read.recording == sample());
        }
    }
}
