//! A replay for programs.

use super::Compared;
use crate::looking::{field_in_json, reference};
use reeve_core::fields::FieldChange;
use reeve_core::recording::{Answer, Difference, Extent};
use serde_json::{Value, json};

/// A replay in the form that docs/testing.md describes.
pub(super) fn of(compared: &Compared) -> Value {
    let Compared {
        file,
        recording,
        edited,
        digest,
        version,
        replayed,
        differences,
    } = compared;
    let about = &recording.metadata;
    let texts = |texts: &mut dyn Iterator<Item = String>| texts.collect::<Vec<String>>();
    let redacted = recording.redacted.iter();
    let mut redacted = redacted.map(|one| one.object.reference().to_string());
    let mut obstacles = replayed.obstacles.iter().map(ToString::to_string);
    let mut unasked = replayed.unasked.iter().map(ToString::to_string);
    let logs = replayed.logs.iter();
    let logs = logs.map(|line| json!({"level": line.level.to_string(), "message": line.message}));
    json!({
        "file": file,
        "recording": {
            "plugin": about.plugin,
            "primary": reference(&about.primary.reference()),
            "recordedAt": about.recorded_at,
            "component": recording.component,
            "contract": recording.contract,
            "answer": sort(&recording.answer),
            "redacted": texts(&mut redacted),
            "edited": edited,
        },
        "component": {
            "digest": digest,
            "version": version,
            "recorded": compared.is_same_component(),
        },
        "equal": compared.is_equal(),
        "answer": replayed.answer.as_ref().map(sort),
        "obstacles": texts(&mut obstacles),
        "differences": differences.iter().map(difference).collect::<Vec<_>>(),
        "unasked": texts(&mut unasked),
        "logs": logs.collect::<Vec<_>>(),
    })
}

fn sort(answer: &Answer) -> &'static str {
    match answer {
        Answer::Outcome(_) => "outcome",
        Answer::Failure(_) => "failure",
        Answer::Fault(_) => "fault",
    }
}

fn difference(difference: &Difference) -> Value {
    let fields = |fields: &[FieldChange]| fields.iter().map(field_in_json).collect::<Vec<_>>();
    match difference {
        Difference::Answer { recorded, now } => {
            json!({"answer": {"recorded": recorded, "now": now}})
        }
        Difference::Object { object, extent } => {
            let (change, fields) = match extent {
                Extent::Added(changes) => ("added", fields(changes)),
                Extent::Gone => ("gone", Vec::new()),
                Extent::Changed(changes) => ("changed", fields(changes)),
                Extent::Bytes => ("bytes", Vec::new()),
                Extent::Place => ("place", Vec::new()),
            };
            json!({"object": object, "change": change, "fields": fields})
        }
        Difference::Rest(changes) => json!({"rest": fields(changes)}),
    }
}
