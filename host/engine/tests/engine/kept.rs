//! A component that was built long ago, as it was built then. Whatever becomes of the
//! contract and the host, it loads and answers what it answered.

use crate::guests::{World, engine};
use bytes::Bytes;
use reeve_core::manifest::Scope;
use reeve_core::recording::{Answer, Body, Recording};
use reeve_core::{Digest, GroupVersionKind, ObjectReference};
use reeve_engine::{
    Component, Generation, Limits, LoadError, Recorder, Replay, Request, answer_of,
};
use serde_json::json;
use std::sync::Arc;

const COMPONENT: &[u8] = include_bytes!("kept/chameleon-0.1.0.wasm.zst");
/// Of the component itself.
const DIGEST: &str = "sha256:b3c3146f129c18b1f794f27720ecc9504a08163f7f56529a776e2a501cf5ac7f";

/// Calls of it that were taken down when it was kept.
const RECORDINGS: [(&str, &[u8]); 5] = [
    ("objects", include_bytes!("kept/objects.json")),
    ("get", include_bytes!("kept/get.json")),
    ("list", include_bytes!("kept/list.json")),
    ("clock", include_bytes!("kept/clock.json")),
    ("fail", include_bytes!("kept/fail.json")),
];

fn bytes() -> Vec<u8> {
    zstd::decode_all(COMPONENT).unwrap()
}

async fn load(bytes: Vec<u8>) -> Component {
    engine().load(bytes.into()).await.unwrap()
}

/// The same component, of another version of the contract.
fn of_version(version: &str) -> Vec<u8> {
    let ours = b"reeve:plugin/";
    let mut bytes = bytes();
    let places = bytes.windows(ours.len()).enumerate();
    let places = places.filter(|(_, window)| window == ours);
    let places: Vec<usize> = places.map(|(place, _)| place).collect();
    let mut changed = 0;
    for place in places {
        let name = &mut bytes[place + ours.len()..];
        let end = name
            .iter()
            .position(|byte| !(byte.is_ascii_lowercase() || *byte == b'-'))
            .unwrap();
        if name[end..].starts_with(b"@0.1.0") {
            name[end + 1..end + 6].copy_from_slice(version.as_bytes());
            changed += 1;
        }
    }
    assert!(changed > 5, "{changed}");
    bytes
}

fn world() -> Arc<World> {
    let kind = GroupVersionKind::new("", "v1", "ConfigMap");
    let namespace = Some("default".to_owned());
    let one = ObjectReference::new(kind, namespace, "one");
    let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "x"}});
    Arc::new(World {
        objects: vec![(one, value)],
        ..World::default()
    })
}

/// Makes a recorded call once more, with a world like the one from then.
async fn answer(component: &Component, recording: &Recording) -> Answer {
    let text = |body: &Body| Bytes::copy_from_slice(body.bytes());
    let request = Request {
        primary: text(&recording.input.primary),
        config: text(&recording.input.config),
        facts: Vec::new(),
        unit: None,
    };
    let recorder = Arc::new(Recorder::new(world()));
    let limits = Limits::default();
    let called = component.reconcile(request, recorder, &limits);
    answer_of(called.await).unwrap()
}

async fn answers_as_it_did(component: &Component) {
    for (name, file) in RECORDINGS {
        let read = Recording::read(file).unwrap();
        assert!(!read.edited, "{name}");
        let recording = read.recording;
        let found = answer(component, &recording).await;
        assert_eq!(found, recording.answer, "{name}");
        // The files are of then, too.
        let replayed = Replay::new(recording.clone()).with(component).await;
        let replayed = replayed.unwrap();
        assert_eq!(replayed.answer, Some(recording.answer), "{name}");
        assert_eq!((replayed.obstacles.len(), replayed.unasked.len()), (0, 0));
    }
}

#[tokio::test]
async fn an_old_component_loads_and_answers_as_it_did() {
    let component = load(bytes()).await;
    assert_eq!(component.digest().to_string(), DIGEST);
    assert_eq!(component.digest(), Digest::of(&bytes()));
    assert_eq!(component.generation(), Generation::V0_1);
    let limits = Limits::default();
    let metadata = component.metadata(&limits).await.unwrap().value;
    assert_eq!(
        (&*metadata.name, &*metadata.version),
        ("chameleon", "0.1.0")
    );

    let config = json!({
        "primary": "Profile.v1.kubeflow.org",
        "writes": ["ConfigMap.v1", "Pod.v1"],
        "scope": ["a", "b"],
        "reads": [{"kind": "Secret.v1", "scope": ["a"], "names": ["b"], "selector": "c=d"}],
    });
    let described = component.describe(config.to_string().into(), &limits).await;
    let manifest = described.unwrap().value.unwrap();
    let primary = manifest.primary.unwrap();
    let profile = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
    assert_eq!(primary.kind, profile);
    let namespaces = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned());
        Scope::Namespaces(names.collect())
    };
    let writes = manifest.writes.iter();
    let writes: Vec<(&str, &Scope)> = writes.map(|one| (&*one.kind.kind, &one.scope)).collect();
    let both = namespaces(&["a", "b"]);
    assert_eq!(writes, [("ConfigMap", &both), ("Pod", &both)]);
    let read = &manifest.reads[0];
    assert_eq!(
        (&*read.kind.kind, &read.scope),
        ("Secret", &namespaces(&["a"]))
    );
    assert_eq!(read.names, ["b"]);
    assert_eq!((manifest.sources.len(), manifest.actions.len()), (0, 0));

    answers_as_it_did(&component).await;
}

/// A patch of the contract is no other generation, whichever side has it.
#[tokio::test]
async fn a_component_of_the_same_line_is_one_of_ours() {
    let component = load(of_version("0.1.1")).await;
    assert_eq!(component.generation(), Generation::V0_1);
    answers_as_it_did(&component).await;

    for version in ["0.2.0", "1.1.0"] {
        let refused = engine().load(of_version(version).into()).await;
        let error = refused.unwrap_err();
        assert!(matches!(error, LoadError::WrongWorld { .. }), "{error}");
        let export = format!(
            "it exports `reeve:plugin/controller-api@{version}`, but this version of reeve speaks \
             reeve:plugin@0.1"
        );
        let import = format!("it imports `reeve:plugin/cluster@{version}`");
        let text = error.to_string();
        assert!(text.contains(&export), "{text}");
        assert!(text.contains(&import), "{text}");
    }
}
