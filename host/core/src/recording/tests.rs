//! The file: what is written reads back, and what is damaged says so.

mod properties;

use super::*;
use crate::failure::Failure;
use crate::fields::{FieldChange, Shown};
use crate::outcome::Outcome;
use serde_json::{Value, json};

fn reference(name: &str) -> ObjectReference {
    let kind = GroupVersionKind::new("", "v1", "ConfigMap");
    ObjectReference::new(kind, Some("alice".to_owned()), name)
}

fn sample() -> Recording {
    let read = |question, told| Read { question, told };
    Recording {
        metadata: About {
            plugin: "quotas".to_owned(),
            primary: (&reference("bob")).into(),
            recorded_at: "2026-01-01T00:00:00Z".to_owned(),
            reeve: "0.1.0".to_owned(),
        },
        component: CalledComponent {
            digest: Digest::of(b"component"),
            bytes: 9,
            name: "quotas".to_owned(),
            version: "0.1.0".to_owned(),
        },
        contract: "reeve:plugin@0.1".to_owned(),
        input: Input {
            primary: Body::new(r#"{"kind": "ConfigMap"}"#),
            projection: vec!["/data".to_owned()],
            config: Body::new("{}"),
            facts: vec![RecordedFact {
                key: "main".to_owned(),
                value: Body::new("null"),
            }],
            reads: vec![
                read(
                    Question::object(&reference("a"), &["/data".to_owned()]),
                    Told::Object(Some(Body::new(r#"{"b":1,"a":2}"#))),
                ),
                read(Question::object(&reference("b"), &[]), Told::Object(None)),
                read(
                    Question::keys(&reference("a").kind, None, "a in (b,c)"),
                    Told::Failed(ReadFailure {
                        reason: ReadFailureKind::Forbidden,
                        message: "no".to_owned(),
                    }),
                ),
                read(Question::Time, Told::Milliseconds(7)),
            ],
            kinds: vec![ServedKind {
                group: String::new(),
                version: "v1".to_owned(),
                kind: "ConfigMap".to_owned(),
                plural: "configmaps".to_owned(),
                namespaced: true,
            }],
            config_map_sources: vec![ConfigMapSource {
                name: "prices".to_owned(),
                namespace: "alice".to_owned(),
                config_map: "prices".to_owned(),
                key: "json".to_owned(),
            }],
        },
        limits: CallLimits {
            run_milliseconds: 1,
            wall_milliseconds: 2,
            memory_bytes: 3,
            stack_bytes: 4,
            output_bytes: 5,
            output_objects: 6,
            host_calls: 7,
            host_call_bytes: 8,
            log_bytes: 9,
        },
        redacted: vec![Redaction {
            object: (&reference("a")).into(),
            fields: vec!["/data/a".to_owned()],
        }],
        answer: Answer::Outcome(Outcome {
            objects: vec![br#"{"a": 1}"#.to_vec(), b"{".to_vec(), vec![0xff]],
            ..Outcome::default()
        }),
    }
}

/// The sample as JSON, to be damaged.
fn value() -> Value {
    serde_json::from_str(&sample().to_text().unwrap()).unwrap()
}

fn error_of(file: &str) -> String {
    Recording::read(file.as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_file_is_for_people_too() {
    let text = sample().to_text().unwrap();
    for part in [
        "\"apiVersion\": \"reeve.dev/v1alpha1\",\n  \"kind\": \"Recording\",\n  \"digest\": \"sha256:",
        // As it was, blanks and order included.
        r#""json": {"kind": "ConfigMap"}"#,
        r#""json": {"b":1,"a":2}"#,
        r#""json": null"#,
        r#""absent": true"#,
        r#""reason": "forbidden""#,
        r#""text": "{""#,
        r#""base64": "/w==""#,
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(text.ends_with("}\n"));
}

#[test]
fn what_is_written_reads_back_and_is_known_as_unchanged() {
    let recording = sample();
    let text = recording.to_text().unwrap();
    let read = Recording::read(text.as_bytes()).unwrap();
    assert_eq!(read.recording, recording);
    assert!(!read.edited);
    // How the file itself is laid out does not matter, what a plugin sees does.
    let compact = text.replace("\n  ", "\n");
    assert!(!Recording::read(compact.as_bytes()).unwrap().edited);
    for (from, to) in [
        (r#"{"b":1,"a":2}"#, r#"{"b":1, "a":2}"#),
        (r#""milliseconds": 7"#, r#""milliseconds": 8"#),
        (r#""memoryBytes": 3"#, r#""memoryBytes": 4"#),
    ] {
        let edited = text.replace(from, to);
        assert_ne!(edited, text);
        assert!(Recording::read(edited.as_bytes()).unwrap().edited, "{to}");
    }
}

#[test]
fn every_cut_is_told_from_a_whole_file() {
    let text = sample().to_text().unwrap();
    for end in 0..text.trim_end().len() {
        let error = Recording::read(&text.as_bytes()[..end]).unwrap_err();
        let expected = match end {
            0 => RecordingError::Empty,
            _ => RecordingError::Truncated {
                line: text[..end].lines().count().max(1),
            },
        };
        match (&error, &expected) {
            // A line that has just begun is one more or not.
            (RecordingError::Truncated { .. }, RecordingError::Truncated { .. }) => {}
            _ => assert_eq!(error, expected),
        }
    }
}

#[test]
fn what_is_no_recording_says_what_it_is() {
    for (file, expected) in [
        ("", "the file is empty; record the call again"),
        (" \n", "the file is empty; record the call again"),
        (
            "name: a",
            "it is no JSON: expected ident at line 1 column 2; a recording is a file",
        ),
        ("7", "it is no recording: it is JSON, and no map"),
        ("127.0.0.1 localhost\n", "it is no JSON"),
        (
            "{}",
            "it is no recording: it has neither `apiVersion` nor `kind`",
        ),
        (
            r#"{"apiVersion": "v1", "kind": "Secret"}"#,
            "it is no recording: it is a `Secret` of `v1`, where `apiVersion: reeve.dev/v1alpha1` \
             and `kind: Recording` should stand; name a file that `reeve record` wrote",
        ),
        (
            r#"{"apiVersion": "example.com/v1", "kind": "Recording"}"#,
            "it is no recording: it is a `Recording` of `example.com/v1`",
        ),
        (
            r#"{"apiVersion": "reeve.dev/v2", "kind": "Recording", "metadata": {"reeve": "3.1.0"}}"#,
            "its form is `reeve.dev/v2`, and this reeve reads `reeve.dev/v1alpha1`; use the reeve \
             that wrote it, version 3.1.0",
        ),
        (
            r#"{"apiVersion": "reeve.dev/v1alpha1", "kind": "Recording"}"#,
            "the recording: missing field `digest`; the file is damaged",
        ),
    ] {
        let error = error_of(file);
        assert!(error.starts_with(expected), "{error}");
    }
    let error = Recording::read(b"{\"apiVersion\": \"\xff\"}").unwrap_err();
    assert!(matches!(error, RecordingError::NotJson { .. }), "{error}");
}

#[test]
fn damage_is_told_by_the_field() {
    let read = |read: Value| ("/input/reads/0", read);
    let get = json!({"version": "v1", "kind": "ConfigMap", "name": "a"});
    for ((pointer, damage), expected) in [
        (
            ("/digest", json!("sha256:")),
            "the recording: `sha256:` is no digest",
        ),
        (
            ("/contract", json!(1)),
            "the recording: invalid type: integer `1`",
        ),
        (
            ("/metadata/plugin", json!(null)),
            "metadata: invalid type: null",
        ),
        (
            ("/metadata/extra", json!(1)),
            "metadata: unknown field `extra`",
        ),
        (
            ("/component/bytes", json!(-1)),
            "component: invalid value: integer `-1`",
        ),
        (
            ("/limits/hostCalls", json!("a")),
            "limits: invalid type: string \"a\"",
        ),
        (("/input/extra", json!(1)), "input: unknown field `extra`"),
        (
            ("/input/primary", json!({})),
            "input.primary: expected exactly one of `json`",
        ),
        (
            ("/input/config", json!({"base64": "?"})),
            "input.config: `base64` is damaged",
        ),
        (
            ("/input/facts/0/key", json!(1)),
            "input.facts[0]: invalid type",
        ),
        (
            ("/redacted/0/object/name", json!(1)),
            "redacted[0]: invalid type",
        ),
        (
            ("/answer", json!({})),
            "answer: expected exactly one of `outcome`",
        ),
        (
            ("/answer", json!({"outcome": {"objects": [], "next": 1}})),
            "answer: outcome: unknown field `next`",
        ),
        (
            read(json!({"get": get})),
            "input.reads[0]: expected exactly one answer",
        ),
        (
            read(json!({"absent": true})),
            "input.reads[0]: expected exactly one of `get`",
        ),
        (
            read(json!({"get": get, "keys": []})),
            "input.reads[0]: the answer is none to this question",
        ),
        (
            read(json!({"get": {"version": "v1", "kind": "A"}, "absent": true})),
            "input.reads[0]: get: missing field `name`",
        ),
        (
            read(json!({"list": get, "objects": []})),
            "input.reads[0]: list: unknown field `name`",
        ),
        (
            read(json!({"time": true, "error": {"reason": "forbidden", "message": ""}})),
            "input.reads[0]: the answer is none to this question",
        ),
        (
            read(json!({"source": "a", "error": {"reason": "away", "message": ""}})),
            "input.reads[0]: unknown variant `away`",
        ),
        (
            read(json!({"time": true, "milliseconds": 1})),
            "input.reads[3]: the time is asked for twice",
        ),
    ] {
        let mut value = value();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        match value.pointer_mut(parent).unwrap() {
            Value::Array(items) => items[field.parse::<usize>().unwrap()] = damage,
            parent => parent[field] = damage,
        }
        let error = error_of(&value.to_string());
        assert!(error.starts_with(expected), "{error}");
        assert!(error.ends_with("record the call again"), "{error}");
    }
}

#[test]
fn a_question_is_the_same_however_it_is_written() {
    let fields = |fields: &[&str]| {
        fields
            .iter()
            .map(|one| (*one).to_owned())
            .collect::<Vec<_>>()
    };
    let kind = reference("a").kind;
    assert_eq!(
        Question::object(&reference("a"), &fields(&["/b", "/a", "/b"])),
        Question::object(&reference("a"), &fields(&["/a", "/b"])),
    );
    assert_eq!(
        Question::list(&kind, None, "a = b,c", &[]),
        Question::list(&kind, None, "a=b,c", &[]),
    );
    assert_ne!(
        Question::list(&kind, None, "", &[]),
        Question::list(&kind, Some("a"), "", &[]),
    );
    // What makes no sense stays as it was.
    let odd = Question::list(&kind, Some("a"), "a in", &fields(&["a"]));
    assert_eq!(
        odd.to_string(),
        "all ConfigMap.v1 in namespace a with a in (a)"
    );
}

#[test]
fn differences_say_what_they_mean() {
    let object = |name: &str, text: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"n"}},{text}}}"#
        )
        .into_bytes()
    };
    let outcome = |objects: Vec<Vec<u8>>| {
        Answer::Outcome(Outcome {
            objects,
            ..Outcome::default()
        })
    };
    let named = |name: &str, extent| Difference::Object {
        object: format!("ConfigMap n/{name}"),
        extent,
    };
    let change = |path: &str, old: Option<Value>, new: Option<Value>| FieldChange {
        path: path.to_owned(),
        old: old.map_or(Shown::Absent, Shown::Value),
        new: new.map_or(Shown::Absent, Shown::Value),
    };
    let one = || object("a", r#""data":{"x":"1"}"#);
    let two = || object("b", r#""data":{}"#);
    let failure = |text: &str| Answer::Failure(Failure::NotReady(text.to_owned()));
    let fault = |reason: &str| {
        Answer::Fault(FaultRecord {
            reason: reason.to_owned(),
            message: "same".to_owned(),
        })
    };
    let with_status = |status: &str| {
        Answer::Outcome(Outcome {
            status: Some(status.as_bytes().to_vec()),
            ..Outcome::default()
        })
    };
    for (recorded, now, expected, meaning) in [
        (outcome(vec![one()]), outcome(vec![one()]), vec![], false),
        (
            outcome(vec![one()]),
            outcome(vec![object("a", r#""data":{"x":"2"}"#)]),
            vec![named(
                "a",
                Extent::Changed(vec![change("data.x", Some(json!("1")), Some(json!("2")))]),
            )],
            true,
        ),
        (
            outcome(vec![one()]),
            outcome(vec![object("a", r#""data": {"x":"1"}"#)]),
            vec![named("a", Extent::Bytes)],
            false,
        ),
        (
            outcome(vec![one()]),
            outcome(vec![object("a", r#""data":{"x":"1"},"status":{}"#)]),
            vec![named("a", Extent::Changed(vec![]))],
            true,
        ),
        (
            outcome(vec![one(), two()]),
            outcome(vec![two(), one()]),
            vec![named("a", Extent::Place), named("b", Extent::Place)],
            false,
        ),
        (
            outcome(vec![one()]),
            outcome(vec![two()]),
            vec![
                named("a", Extent::Gone),
                named(
                    "b",
                    Extent::Added(vec![change("data", None, Some(json!({})))]),
                ),
            ],
            true,
        ),
        (
            outcome(vec![b"{".to_vec()]),
            outcome(vec![b"[".to_vec()]),
            vec![Difference::Object {
                object: "objects[0]".to_owned(),
                extent: Extent::Changed(vec![]),
            }],
            true,
        ),
        (
            with_status("{}"),
            with_status("{ }"),
            vec![Difference::Rest(vec![])],
            false,
        ),
        (
            with_status(r#"{"phase":"a"}"#),
            outcome(vec![]),
            vec![Difference::Rest(vec![change(
                "primary.status",
                Some(json!({"phase": "a"})),
                Some(json!(null)),
            )])],
            true,
        ),
        (
            failure("a"),
            failure("b"),
            vec![Difference::Answer {
                recorded: "the failure `not-ready`: a".to_owned(),
                now: "the failure `not-ready`: b".to_owned(),
            }],
            true,
        ),
        (
            fault("trap"),
            outcome(vec![]),
            vec![Difference::Answer {
                recorded: "no answer: same".to_owned(),
                now: "0 objects".to_owned(),
            }],
            true,
        ),
    ] {
        let found = compare(&recorded, &now);
        assert_eq!(found, expected);
        assert_eq!(found.iter().any(Difference::has_meaning), meaning);
        assert_eq!(compare(&now, &recorded).is_empty(), found.is_empty());
    }
    assert!(!compare(&fault("trap"), &fault("exit")).is_empty());
}

#[test]
fn secrets_that_are_in_a_file_are_named() {
    let secret = |name: &str, value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": "alice"}, "data": {"a": value},
        })
    };
    let mut recording = sample();
    assert_eq!(secrets(&recording), Vec::<String>::new());
    let mut hidden = secret("hidden", "eA==");
    redact(&mut hidden);
    recording.input.reads.push(Read {
        question: Question::list(&reference("a").kind, None, "", &[]),
        told: Told::Objects(vec![
            Body::new(secret("read", "eA==").to_string()),
            Body::new(hidden.to_string()),
        ]),
    });
    recording.answer = Answer::Outcome(Outcome {
        objects: vec![secret("returned", "eA==").to_string().into_bytes()],
        ..Outcome::default()
    });
    assert_eq!(secrets(&recording), ["alice/read", "alice/returned"]);
}
