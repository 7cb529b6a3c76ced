//! What `reconcile` returns, right and wrong.

use crate::config::{FailKind, Place};
use crate::contract::types::{
    Absence, Condition, ConditionStatus, Event, Failure, Next, ObjectReference, Outcome,
    Precondition, Request, Severity,
};
use serde_json::{Value, json};

pub(crate) fn echo(place: &Place, request: &Request) -> Outcome {
    let facts: Vec<Value> = request
        .facts
        .iter()
        .map(|fact| json!({ "key": fact.key, "value": lossy(&fact.value) }))
        .collect();
    outcome([config_map(
        place,
        &json!({
            "primary": lossy(&request.primary),
            "config": lossy(&request.config),
            "facts": Value::from(facts).to_string(),
        }),
    )])
}

pub(crate) fn objects(place: &Place, count: usize, bytes: usize) -> Outcome {
    let data = json!({ "x": "x".repeat(bytes) });
    outcome((0..count).map(|number| config_map(&numbered(place, number), &data)))
}

pub(crate) fn nothing(meant: bool) -> Outcome {
    Outcome {
        empty_is_meant: meant,
        ..outcome([])
    }
}

pub(crate) fn raw(text: &str, byte: Option<u8>) -> Outcome {
    let mut object = text.as_bytes().to_vec();
    object.extend(byte);
    Outcome {
        objects: vec![object],
        ..outcome([])
    }
}

pub(crate) fn without_name(place: &Place) -> Outcome {
    let mut object = config_map(place, &json!({}));
    object["metadata"] = json!({ "namespace": place.namespace });
    outcome([object])
}

pub(crate) fn duplicate(place: &Place) -> Outcome {
    outcome([
        config_map(place, &json!({ "is": "first" })),
        config_map(place, &json!({ "is": "second" })),
    ])
}

pub(crate) fn undeclared_kind(place: &Place) -> Outcome {
    let mut object = config_map(place, &json!({}));
    object["kind"] = json!("Service");
    outcome([object])
}

pub(crate) fn foreign(place: &Place, namespace: String) -> Outcome {
    let place = Place {
        name: place.name.clone(),
        namespace: Some(namespace),
    };
    outcome([config_map(&place, &json!({}))])
}

pub(crate) fn nested(place: &Place, depth: usize) -> Outcome {
    // Written by hand: no serializer goes as deep.
    let object = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},"data":{}{}}}"#,
        place.name,
        "[".repeat(depth),
        "]".repeat(depth),
    );
    raw(&object, None)
}

pub(crate) fn remark(place: &Place, text: String) -> Outcome {
    Outcome {
        conditions: vec![Condition {
            type_: "Remarkable".to_owned(),
            status: ConditionStatus::True,
            reason: "AsTold".to_owned(),
            message: text.clone(),
        }],
        events: vec![Event {
            severity: Severity::Warning,
            reason: "AsTold".to_owned(),
            message: text,
        }],
        ..outcome([config_map(place, &json!({}))])
    }
}

pub(crate) fn after(place: &Place, millis: u64) -> Outcome {
    Outcome {
        next: Next::After(millis),
        ..outcome([config_map(place, &json!({}))])
    }
}

pub(crate) fn absent(
    place: &Place,
    object: ObjectReference,
    uid: Option<String>,
    owned_by: Option<String>,
    phases: Option<Vec<String>>,
) -> Outcome {
    let uid = uid.map(Precondition::Uid);
    let owned_by = owned_by.map(Precondition::OwnedBy);
    let phase = phases.map(Precondition::Phase);
    Outcome {
        absent: vec![Absence {
            object,
            preconditions: [uid, owned_by, phase].into_iter().flatten().collect(),
        }],
        ..outcome([config_map(place, &json!({}))])
    }
}

pub(crate) fn failure(how: FailKind, text: String) -> Failure {
    match how {
        FailKind::Retry => Failure::Retry(text),
        FailKind::Terminal => Failure::Terminal(text),
        FailKind::NotReady => Failure::NotReady(text),
    }
}

pub(crate) fn number(place: &Place, number: u64) -> Outcome {
    texts(place, vec![number.to_string()])
}

/// One object with a number, applied in this mode.
pub(crate) fn applied(place: &Place, number: u64, mode: &str) -> Outcome {
    let mut object = config_map(place, &json!({ "0": number.to_string() }));
    object["metadata"]["annotations"] = json!({ "reeve.dev/apply": mode });
    outcome([object])
}

/// The number in an object of [`applied`].
pub(crate) fn number_in(object: &str) -> Option<u64> {
    let object: Value = serde_json::from_str(object).ok()?;
    object["data"]["0"].as_str()?.parse().ok()
}

/// One object with an entry `0`, `1`, … for each text.
pub(crate) fn texts(place: &Place, texts: Vec<String>) -> Outcome {
    let data: serde_json::Map<String, Value> = texts
        .into_iter()
        .enumerate()
        .map(|(number, text)| (number.to_string(), text.into()))
        .collect();
    outcome([config_map(place, &Value::from(data))])
}

fn outcome(objects: impl IntoIterator<Item = Value>) -> Outcome {
    Outcome {
        objects: objects
            .into_iter()
            .map(|object| object.to_string().into_bytes())
            .collect(),
        absent: Vec::new(),
        conditions: Vec::new(),
        events: Vec::new(),
        status: None,
        actions: Vec::new(),
        next: Next::OnChange,
        empty_is_meant: false,
    }
}

fn config_map(place: &Place, data: &Value) -> Value {
    let mut metadata = json!({ "name": place.name });
    if let Some(namespace) = &place.namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
}

fn numbered(place: &Place, number: usize) -> Place {
    Place {
        name: format!("{}-{number}", place.name),
        namespace: place.namespace.clone(),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
