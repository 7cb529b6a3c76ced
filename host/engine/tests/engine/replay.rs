//! Calls that are taken down, and made again with nothing but the recording.

use crate::guests::{World, bytes, chameleon, data, deed, engine, limits, request};
use reeve_core::recording::{
    About, Answer, Body, CalledComponent, Difference, Input, Named, Question, RecordedFact,
    Recording, Told, compare,
};
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use reeve_engine::{
    Component, Fact, Limits, Obstacle, ReadError, Recorder, Replay, Request, View, answer_of,
};
use serde_json::{Value, json};
use std::sync::Arc;

const PLUGIN: &str = "chameleon";

fn primary() -> ObjectReference {
    let kind = GroupVersionKind::new("", "v1", "ConfigMap");
    ObjectReference::new(kind, Some("default".to_owned()), "alice")
}

/// Calls the chameleon, and takes the call down.
async fn record(request: Request, view: Arc<dyn View>, limits: &Limits) -> Recording {
    let request = Request {
        unit: Some(UnitKey::new(PLUGIN, primary())),
        ..request
    };
    let component = chameleon().await;
    let recorder = Arc::new(Recorder::new(view));
    let called = component.reconcile(request.clone(), recorder.clone(), limits);
    let answer = answer_of(called.await).unwrap();
    let facts = request.facts.iter().map(|fact| RecordedFact {
        key: fact.key.clone(),
        value: Body::new(&*fact.value),
    });
    let recording = Recording {
        metadata: About {
            plugin: PLUGIN.to_owned(),
            primary: Named::from(&primary()),
            recorded_at: "2026-01-01T00:00:00Z".to_owned(),
            reeve: "0.1.0".to_owned(),
        },
        component: CalledComponent {
            digest: component.digest(),
            bytes: component.size() as u64,
            name: "chameleon".to_owned(),
            version: "0.1.0".to_owned(),
        },
        contract: component.generation().to_string(),
        input: Input {
            primary: Body::new(&*request.primary),
            projection: vec![],
            config: Body::new(&*request.config),
            facts: facts.collect(),
            reads: recorder.reads().unwrap(),
            kinds: vec![],
            config_map_sources: vec![],
        },
        limits: limits.into(),
        redacted: vec![],
        answer,
    };
    // Through the file, as whoever replays it gets it.
    let text = recording.to_text().unwrap();
    let read = Recording::read(text.as_bytes()).unwrap();
    assert_eq!(read.recording, recording);
    assert!(!read.edited);
    read.recording
}

fn world() -> Arc<World> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA=="}});
    Arc::new(World::default().with("one", secret).with("two", json!(7)))
}

/// The same of another kind: a manifest cannot ask for all Secrets.
fn world_of(kind: &str) -> Arc<World> {
    let objects = world().objects.clone().into_iter();
    let objects = objects.map(|(object, value)| {
        let kind = GroupVersionKind::new("", "v1", kind);
        (ObjectReference { kind, ..object }, value)
    });
    Arc::new(World {
        objects: objects.collect(),
        ..World::default()
    })
}

/// The request for a deed, with everything that a request can have.
fn full(what: &Value) -> Request {
    let mut request = deed(what);
    request.facts.push(Fact {
        key: "main".to_owned(),
        value: "{\"a\": [1, 2]}".into(),
    });
    request
}

/// A component that is the same but for its bytes: a custom section of no meaning.
async fn other_chameleon() -> Component {
    let mut bytes = bytes("chameleon").to_vec();
    bytes.extend([0, 3, 1, b'x', 0]);
    engine().load(bytes.into()).await.unwrap()
}

/// What a call answers is answered again, whatever it is: from an outcome of any shape
/// to what ends a guest.
#[tokio::test]
async fn every_deed_is_repeated_in_each_byte() {
    let get = |name: &str, projection: &[&str]| {
        json!({
            "do": "get", "kind": "Secret.v1", "namespace": "default", "name": name,
            "projection": projection,
        })
    };
    for (what, reads) in [
        (json!({"do": "echo"}), 0),
        (json!({"do": "objects", "count": 3, "bytes": 100}), 0),
        (json!({"do": "nothing", "meant": true}), 0),
        (json!({"do": "raw", "text": "{"}), 0),
        (json!({"do": "raw", "text": " {\"a\" : 1}\n"}), 0),
        (json!({"do": "raw", "text": "ä", "byte": 255}), 0),
        (json!({"do": "no-name"}), 0),
        (json!({"do": "duplicate"}), 0),
        (json!({"do": "remark", "text": "\u{0}\"\\"}), 0),
        (json!({"do": "after", "millis": 1500}), 0),
        (
            json!({
                "do": "absent", "kind": "Pod.v1", "name": "a", "uid": "1", "owned_by": "2",
                "phases": ["Failed"],
            }),
            0,
        ),
        (json!({"do": "fail", "how": "retry", "text": "later"}), 0),
        (json!({"do": "fail", "how": "terminal", "text": "no"}), 0),
        (json!({"do": "fail", "how": "not-ready", "text": ""}), 0),
        (json!({"do": "trap"}), 0),
        (json!({"do": "panic", "text": "panicked"}), 0),
        (json!({"do": "loop"}), 0),
        (json!({"do": "recurse"}), 0),
        (json!({"do": "hoard"}), 0),
        (json!({"do": "call-flood", "calls": 200_000}), 0),
        (json!({"do": "log-flood", "lines": 5000}), 0),
        (json!({"do": "objects", "count": 1001}), 0),
        (json!({"do": "hash-seed"}), 0),
        (json!({"do": "read-clock"}), 1),
        (get("one", &[]), 1),
        (get("one", &["/data", "/metadata"]), 1),
        (get("absent", &[]), 1),
        (
            json!({"do": "list", "kind": "Secret.v1", "selector": "a = b"}),
            1,
        ),
        (
            json!({"do": "list-keys", "kind": "Secret.v1", "namespace": "default"}),
            1,
        ),
        (json!({"do": "read-source", "name": "prices"}), 1),
        (json!({"do": "read-source", "name": "unknown"}), 1),
    ] {
        // Only what never ends is to be ended by time.
        let limits = match what["do"].as_str() {
            Some("loop") => limits(),
            _ => Limits::default(),
        };
        let recording = record(full(&what), world(), &limits).await;
        assert_eq!(recording.input.reads.len(), reads, "{what}");
        let replay = Replay::new(recording.clone());
        for _ in 0..2 {
            let replayed = replay.with(&chameleon().await).await.unwrap();
            assert_eq!(replayed.answer.as_ref(), Some(&recording.answer), "{what}");
            assert_eq!(replayed.obstacles, []);
            assert_eq!(replayed.unasked, []);
        }
    }
}

/// Whatever the answer to a read is, it is the answer in a replay.
#[tokio::test]
async fn errors_of_reads_are_repeated() {
    let errors = [
        ReadError::Forbidden("f".to_owned()),
        ReadError::Undeclared("u".to_owned()),
        ReadError::NotSynced("n".to_owned()),
        ReadError::Invalid("i".to_owned()),
    ];
    for error in errors {
        for what in ["get", "list", "list-keys"] {
            let view = Arc::new(World::failing(error.clone()));
            let mut what = json!({"do": what, "kind": "Secret.v1"});
            if what["do"] == "get" {
                what["name"] = json!("a");
            }
            let recording = record(deed(&what), view, &limits()).await;
            let told = &recording.input.reads[0].told;
            assert!(matches!(told, Told::Failed(_)), "{told:?}");
            let Answer::Failure(failure) = &recording.answer else {
                panic!("{:?}", recording.answer);
            };
            assert_eq!(failure.to_string(), error.to_string());
            let replayed = Replay::new(recording.clone())
                .with(&chameleon().await)
                .await;
            assert_eq!(replayed.unwrap().answer, Some(recording.answer));
        }
    }
}

/// Limits are part of what an answer follows from.
#[tokio::test]
async fn limits_are_those_of_the_recording() {
    for (what, limits) in [
        (
            json!({"do": "objects", "count": 3}),
            Limits {
                output_objects: 2,
                ..Limits::default()
            },
        ),
        (
            json!({"do": "grab", "bytes": 4 << 20}),
            Limits {
                memory_bytes: 2 << 20,
                ..Limits::default()
            },
        ),
        (
            json!({"do": "call-flood", "calls": 100}),
            Limits {
                host_calls: 50,
                ..Limits::default()
            },
        ),
    ] {
        let recording = record(deed(&what), world(), &limits).await;
        assert!(matches!(recording.answer, Answer::Fault(_)), "{what}");
        let replayed = Replay::new(recording.clone())
            .with(&chameleon().await)
            .await;
        assert_eq!(replayed.unwrap().answer, Some(recording.answer), "{what}");
    }
}

/// A component that would answer something else says so.
#[tokio::test]
async fn another_configuration_in_the_file_is_another_answer() {
    let mut recording = record(deed(&json!({"do": "echo"})), world(), &limits()).await;
    let config = json!({"reconcile": {"do": "spin", "rounds": 1}}).to_string();
    recording.input.config = Body::new(config);
    let replayed = Replay::new(recording.clone())
        .with(&chameleon().await)
        .await;
    let differences = compare(&recording.answer, &replayed.unwrap().answer.unwrap());
    assert!(
        matches!(&differences[..], [Difference::Object { object, .. }]
        if object == "ConfigMap default/chameleon-alice")
    );
}

/// Another version is asked what it would answer to the same.
#[tokio::test]
async fn another_version_is_given_the_same() {
    let config = |reads: Value, what: Value| request(&json!({"reads": reads, "reconcile": what}));
    let get = json!({"do": "get", "kind": "Service.v1", "namespace": "default", "name": "one"});
    let recording = record(
        config(json!(["Service.v1"]), get.clone()),
        world_of("Service"),
        &limits(),
    )
    .await;
    let other = other_chameleon().await;
    assert_ne!(other.digest(), recording.component.digest);
    let replayed = Replay::new(recording.clone()).with(&other).await.unwrap();
    assert_eq!(replayed.answer, Some(recording.answer.clone()));
    assert_eq!(replayed.obstacles, []);

    // What the file does not have is told, and not made up.
    let mut asks = recording.clone();
    asks.input.reads.clear();
    let replayed = Replay::new(asks).with(&other).await.unwrap();
    let question = recording.input.reads[0].question.clone();
    assert_eq!(replayed.obstacles, [Obstacle::Unanswered(question)]);
    assert_eq!(
        replayed.obstacles[0].to_string(),
        "it reads Service default/one, which was not recorded"
    );
    assert!(
        matches!(&replayed.answer, Some(Answer::Failure(failure))
            if failure.to_string().contains("not recorded")),
        "{:?}",
        replayed.answer
    );

    // Nor is it told what its own manifest does not declare.
    let mut undeclared = recording.clone();
    undeclared.input.config = Body::new(json!({"reconcile": get}).to_string());
    let replayed = Replay::new(undeclared).with(&other).await.unwrap();
    assert_eq!(replayed.obstacles, []);
    assert!(
        matches!(&replayed.answer, Some(Answer::Failure(failure))
            if failure.to_string().starts_with("undeclared: ")),
        "{:?}",
        replayed.answer
    );

    // What it no longer asks is told too.
    let mut more = recording.clone();
    more.input.config = Body::new(json!({"reads": ["Service.v1"]}).to_string());
    let replayed = Replay::new(more).with(&other).await.unwrap();
    assert_eq!(
        replayed.unasked,
        [recording.input.reads[0].question.clone()]
    );
}

/// Who was shown more was shown less, too; and nothing is made up.
#[tokio::test]
async fn another_version_is_told_what_follows_from_what_was_recorded() {
    let get = |name: &str, projection: &[&str]| {
        json!({
            "do": "get", "kind": "ConfigMap.v1", "namespace": "default", "name": name,
            "projection": projection,
        })
    };
    let list = |selector: &str| json!({"do": "list", "kind": "ConfigMap.v1", "selector": selector});
    let config = |what: &Value| json!({"reads": ["ConfigMap.v1"], "reconcile": what});
    let other = other_chameleon().await;
    for (recorded, asked, expected) in [
        (
            get("one", &[]),
            get("one", &["/data"]),
            Some("{\"a\":\"eA==\"}"),
        ),
        (
            get("one", &["/data"]),
            get("one", &["/data/a"]),
            Some("{\"a\":\"eA==\"}"),
        ),
        (get("absent", &["/data"]), get("absent", &[]), Some("")),
        (get("one", &["/data"]), get("one", &[]), None),
        (get("one", &["/data"]), get("one", &["/type"]), None),
        (get("one", &[]), get("one", &["/status"]), None),
        (get("one", &[]), get("two", &["/data"]), None),
        (list("a=b"), list("a=c"), None),
        (list("a=b"), get("one", &[]), None),
    ] {
        let mut recording = record(
            request(&config(&recorded)),
            world_of("ConfigMap"),
            &limits(),
        )
        .await;
        recording.input.config = Body::new(config(&asked).to_string());
        let replayed = Replay::new(recording).with(&other).await.unwrap();
        let case = format!("{recorded} {asked}");
        let Some(expected) = expected else {
            assert!(
                matches!(&replayed.obstacles[..], [Obstacle::Unanswered(_)]),
                "{case}"
            );
            continue;
        };
        assert_eq!(replayed.obstacles, [], "{case}");
        assert_eq!(replayed.unasked, [], "{case}");
        let Some(Answer::Outcome(outcome)) = replayed.answer else {
            panic!("{case}");
        };
        let told = data(&outcome).to_string().replace('\\', "");
        assert!(told.contains(expected), "{case}: {told}");
    }
}

/// That one version had not declared a read says nothing about the next.
#[tokio::test]
async fn an_undeclared_read_is_no_answer_for_a_version_that_declares_it() {
    let view = Arc::new(World::failing(ReadError::Undeclared("no".to_owned())));
    let what = json!({"do": "list", "kind": "Service.v1"});
    let recording = record(deed(&what), view, &limits()).await;
    let other = other_chameleon().await;
    let replayed = Replay::new(recording.clone()).with(&other).await.unwrap();
    assert_eq!(replayed.obstacles, [], "it does not declare it either");
    assert_eq!(replayed.answer, Some(recording.answer.clone()));

    let mut declared = recording.clone();
    let config = json!({"reads": ["Service.v1"], "reconcile": what});
    declared.input.config = Body::new(config.to_string());
    let replayed = Replay::new(declared).with(&other).await.unwrap();
    let list = Question::list(&GroupVersionKind::new("", "v1", "Service"), None, "", &[]);
    assert_eq!(replayed.obstacles, [Obstacle::Unanswered(list)]);
    assert_eq!(replayed.unasked, [], "it was asked, if in vain");
}

/// What keeps another version from being called at all is told.
#[tokio::test]
async fn a_version_that_is_shown_something_else_is_not_called() {
    let recording = record(deed(&json!({"do": "echo"})), world(), &limits()).await;
    let other = other_chameleon().await;
    for (config, projection, expected) in [
        (
            json!({"describe": "refuse"}),
            vec![],
            "it refuses the recorded configuration: /describe: refused, as told",
        ),
        (
            json!({"describe": "invalid-kind"}),
            vec![],
            "it does not describe itself: writes[0].kind.kind: `not a kind` is not a kind in \
             CamelCase such as `ConfigMap`",
        ),
        (
            json!({"describe": "panic"}),
            vec![],
            "it does not describe itself: describe: the plugin gave up: ",
        ),
        (
            json!({"primary": "Profile.v1.kubeflow.org"}),
            vec![],
            "it runs for Profile.v1.kubeflow.org, and the call was recorded for ConfigMap.v1",
        ),
        (
            json!({}),
            vec!["/data".to_owned()],
            "it is shown all but the status of its primary, of which /data was recorded",
        ),
    ] {
        let mut recording = recording.clone();
        recording.input.config = Body::new(config.to_string());
        recording.input.projection = projection;
        let replayed = Replay::new(recording).with(&other).await.unwrap();
        assert_eq!(replayed.answer, None);
        let text = replayed.obstacles[0].to_string();
        assert!(text.starts_with(expected), "{text}");
    }
}
