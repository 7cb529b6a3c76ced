//! Scenarios that are made of recordings.

use reeve_core::outcome::{Absence, Action, Outcome};
use reeve_core::recording::{
    About, Answer, Body, CallLimits, CalledComponent, ConfigMapSource, Input, Named, Question,
    Read, ReadFailure, ReadFailureKind, RecordedFact, Recording, ServedKind, Told,
};
use reeve_core::{Digest, GroupVersionKind, ObjectReference};
use reeve_harness::scenario;
use serde_json::{Value, json};

fn reference(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectReference {
    let kind = GroupVersionKind::new(group, "v1", kind);
    ObjectReference::new(kind, namespace.map(str::to_owned), name)
}

fn body(value: &Value) -> Body {
    Body::new(value.to_string())
}

/// A recording of a call for `Profile alice` that read this and answered that.
fn recording(reads: Vec<Read>, answer: Answer) -> Recording {
    let primary = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "Profile",
        "metadata": {
            "name": "alice", "uid": "11111111-2222", "generation": 3,
            "finalizers": ["reeve.dev/quotas"], "labels": {"reeve.dev/plugin": "x", "a": "b"},
        },
    });
    Recording {
        metadata: About {
            plugin: "quotas".to_owned(),
            primary: Named::from(&reference("kubeflow.org", "Profile", None, "alice")),
            recorded_at: "2026-01-01T00:00:00Z".to_owned(),
            reeve: "0.1.0".to_owned(),
        },
        component: CalledComponent {
            digest: Digest::of(b""),
            bytes: 0,
            name: "quotas".to_owned(),
            version: "0.1.0".to_owned(),
        },
        contract: "reeve:plugin@0.1".to_owned(),
        input: Input {
            primary: body(&primary),
            projection: vec![],
            config: body(&json!({"a": 1})),
            facts: vec![RecordedFact {
                key: "main".to_owned(),
                value: body(&json!({"role": "alice"})),
            }],
            reads,
            kinds: vec![
                ServedKind {
                    group: "kubeflow.org".to_owned(),
                    version: "v1".to_owned(),
                    kind: "Profile".to_owned(),
                    plural: "profiles".to_owned(),
                    namespaced: false,
                },
                ServedKind {
                    group: String::new(),
                    version: "v1".to_owned(),
                    kind: "ConfigMap".to_owned(),
                    plural: "configmaps".to_owned(),
                    namespaced: true,
                },
            ],
            config_map_sources: vec![ConfigMapSource {
                name: "prices".to_owned(),
                namespace: "shop".to_owned(),
                config_map: "prices".to_owned(),
                key: "today".to_owned(),
            }],
        },
        limits: CallLimits {
            run_milliseconds: 1,
            wall_milliseconds: 1,
            memory_bytes: 1,
            stack_bytes: 1,
            output_bytes: 1,
            output_objects: 1,
            host_calls: 1,
            host_call_bytes: 1,
            log_bytes: 1,
        },
        redacted: vec![],
        answer,
    }
}

fn config_map(name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "alice"}, "data": data,
    })
}

#[test]
fn what_was_shown_is_given_and_what_was_answered_is_expected() {
    let get = |name: &str, fields: &[&str]| {
        let fields: Vec<String> = fields.iter().map(|one| (*one).to_owned()).collect();
        let object = reference("", "ConfigMap", Some("alice"), name);
        Question::object(&object, &fields)
    };
    let read = |question, told| Read { question, told };
    let text = |text: &str| Told::Document {
        media_type: "text/plain".to_owned(),
        body: Body::new(text),
    };
    let object = |value: &Value| Told::Object(Some(body(value)));
    let reads = vec![
        // Two parts of one object are one object.
        read(
            get("parts", &["/data/a"]),
            object(&config_map("parts", &json!({"a": "1"}))),
        ),
        read(
            get("parts", &["/data/b"]),
            object(&config_map("parts", &json!({"b": "2"}))),
        ),
        // What the plugin made itself it makes again.
        read(
            get("made", &[]),
            object(&config_map("made", &json!({"old": "1"}))),
        ),
        read(get("none", &[]), Told::Object(None)),
        read(
            get("closed", &[]),
            Told::Failed(ReadFailure {
                reason: ReadFailureKind::Forbidden,
                message: "not\nyours".to_owned(),
            }),
        ),
        read(Question::Source("prices".to_owned()), text("1.25")),
        read(Question::Source("news".to_owned()), text("none")),
        read(
            Question::Source("away".to_owned()),
            Told::Failed(ReadFailure {
                reason: ReadFailureKind::NotSynced,
                message: "it has not been fetched yet".to_owned(),
            }),
        ),
        read(Question::Time, Told::Milliseconds(1)),
    ];
    let made = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "made", "namespace": "alice",
            "labels": {"of": "11111111-2222", "for": "alice"},
        },
    });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "key", "namespace": "other"}, "stringData": {"a": "x"},
    });
    let outcome = Outcome {
        objects: vec![
            made.to_string().into_bytes(),
            secret.to_string().into_bytes(),
        ],
        absent: vec![Absence {
            object: reference("", "ConfigMap", Some("alice"), "old"),
            preconditions: vec![],
        }],
        actions: vec![Action {
            key: "main".to_owned(),
            name: "database".to_owned(),
            input: "{}".to_owned(),
            secrets: vec![],
            verify: None,
            retire: false,
        }],
        ..Outcome::default()
    };
    let made_of = recording(reads, Answer::Outcome(outcome));
    let text = scenario(&made_of);
    let found: Value = serde_saphyr::from_str(&text).unwrap();
    let given = &found["given"];
    assert_eq!(given["config"], json!({"a": 1}));
    assert_eq!(
        given["sources"],
        json!({
            "news": {"text": "none", "mediaType": "text/plain"},
            "away": {"failing": "it has not been fetched yet"},
        })
    );
    assert_eq!(
        given["actions"],
        json!({"database": {"fact": {"role": "alice"}}})
    );
    let objects = given["objects"].as_array().unwrap();
    let named = |kind: &str, name: &str| {
        let is_it = |one: &&Value| one["kind"] == kind && one["metadata"]["name"] == name;
        objects.iter().find(is_it)
    };
    assert_eq!(
        named("ConfigMap", "parts").unwrap()["data"],
        json!({"a": "1", "b": "2"})
    );
    assert_eq!(named("ConfigMap", "made"), None);
    assert_eq!(
        named("ConfigMap", "prices").unwrap()["data"],
        json!({"today": "1.25"})
    );
    assert_eq!(
        named("Profile", "alice").unwrap()["metadata"],
        json!({"name": "alice", "labels": {"a": "b"}})
    );
    let definition = named("CustomResourceDefinition", "profiles.kubeflow.org").unwrap();
    assert_eq!(definition["spec"]["scope"], "Cluster");
    for namespace in ["alice", "other", "shop"] {
        assert!(named("Namespace", namespace).is_some(), "{namespace}");
    }
    assert_eq!(objects.len(), 7, "{text}");
    assert_eq!(
        found["expect"],
        json!({
            "objects": [
                {
                    "apiVersion": "v1", "kind": "ConfigMap",
                    // The uid is another in each cluster.
                    "metadata": {"name": "made", "namespace": "alice", "labels": {"for": "alice"}},
                },
                {
                    "apiVersion": "v1", "kind": "Secret",
                    "metadata": {"name": "key", "namespace": "other"}, "data": {"a": "eA=="},
                },
            ],
            "absent": ["ConfigMap.v1 alice/old"],
        })
    );
    for comment in [
        "# It saw a part of ConfigMap alice/parts (/data/a); add what the kind demands besides.\n",
        "# It had no answer to ConfigMap alice/closed, and may have one here: not\n",
        "# It read the time, which is another here: a scenario begins on 2026-01-01.\n",
    ] {
        assert!(text.contains(comment), "{comment}\n{text}");
    }
}
