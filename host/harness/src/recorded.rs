//! A scenario from a recorded call.
//!
//! What the plugin was shown is given, what it answered is expected. A recording has what
//! the plugin saw and no more, so that a cluster which is made of it is one in which it
//! sees the same; what cannot be told of a cluster from that is said in comments.

mod given;

use crate::yaml;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use given::Given;
use reeve_core::recording::{Answer, Question, Recording, Told};
use reeve_core::{Failure, ObjectReference, Outcome};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Characters of a message that are expected: enough to know it by.
const MESSAGE: usize = 80;

/// The text of a scenario in which the plugin is shown what it was, and in which what it
/// answered is expected.
pub fn scenario(recording: &Recording) -> String {
    let given = Given::of(recording);
    let expect = expect(recording, &given.uids);
    let about = &recording.metadata;
    let mut text = String::new();
    for comment in comments(recording) {
        // What a plugin asked for may have line breaks in it.
        let comment = comment.replace(char::is_control, " ");
        text.push_str(&format!("# {comment}\n"));
    }
    let name = format!(
        "{} for {}, as recorded at {}",
        about.plugin,
        about.primary.reference(),
        about.recorded_at
    );
    text.push_str(&format!("name: {}\ngiven:\n", yaml::flow(&json!(name))));
    text.push_str(&indented(&given.value(recording)));
    text.push_str("expect:\n");
    text.push_str(&indented(&expect));
    text
}

/// The sections of a map, two blanks further in.
fn indented(value: &Value) -> String {
    let block = yaml::block(value);
    let lines = block.lines().map(|line| match line {
        "" => "\n".to_owned(),
        line => format!("  {line}\n"),
    });
    lines.collect()
}

/// What the scenario does not show as it was.
fn comments(recording: &Recording) -> Vec<String> {
    let component = &recording.component;
    let mut comments = vec![format!(
        "Made of a call of {} {}, {}.",
        component.name, component.version, component.digest
    )];
    if !recording.redacted.is_empty() {
        comments.push("Values of Secrets are not those of the cluster.".to_owned());
    }
    for read in &recording.input.reads {
        let question = &read.question;
        match (question, &read.told) {
            (Question::Time, _) => comments.push(
                "It read the time, which is another here: a scenario begins on 2026-01-01."
                    .to_owned(),
            ),
            (Question::SourceAge(_), Told::Seconds(age)) if *age > 0 => comments.push(format!(
                "It was told that {question} is {age} s; here it is 0."
            )),
            (Question::Source(_) | Question::SourceAge(_), Told::Failed(_)) => {}
            (_, Told::Failed(failure)) => comments.push(format!(
                "It had no answer to {question}, and may have one here: {}",
                first_line(&failure.message)
            )),
            (Question::Object { fields, .. } | Question::List { fields, .. }, _)
                if !fields.is_empty() =>
            {
                comments.push(format!(
                    "It saw a part of {question}; add what the kind demands besides."
                ));
            }
            (Question::Source(_), Told::Document { body, .. })
                if std::str::from_utf8(body.bytes()).is_err() =>
            {
                comments.push(format!("{question} is no text, and cannot be given."));
            }
            _ => {}
        }
    }
    comments
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(MESSAGE).collect()
}

/// The objects that were returned, as far as they are any.
fn returned(recording: &Recording) -> Vec<Value> {
    let Answer::Outcome(outcome) = &recording.answer else {
        return Vec::new();
    };
    let objects = outcome.objects.iter();
    let objects = objects.filter_map(|bytes| serde_json::from_slice(bytes).ok());
    objects.collect()
}

fn expect(recording: &Recording, uids: &BTreeSet<String>) -> Value {
    let not_ready = |reason: &str, message: &str| {
        let mut condition = json!({
            "of": in_words(&recording.metadata.primary.reference()),
            "type": "Ready",
            "status": "False",
            "reason": reason,
        });
        let message = first_line(message);
        if !message.is_empty() {
            condition["message"] = json!(message.trim());
        }
        json!({"conditions": [condition]})
    };
    match &recording.answer {
        Answer::Outcome(outcome) if outcome.objects.len() > returned(recording).len() => {
            not_ready("OutcomeRefused", "")
        }
        Answer::Outcome(outcome) => expect_outcome(recording, outcome, uids),
        Answer::Failure(Failure::Retry(text)) => not_ready("Retrying", text),
        Answer::Failure(Failure::Terminal(text)) => not_ready("Terminal", text),
        Answer::Failure(Failure::NotReady(text)) => not_ready("NotReady", text),
        Answer::Fault(fault) => {
            let reason = match fault.reason.as_str() {
                "trap" | "exit" | "malformedResult" => "Trapped",
                "refused" => "OutcomeRefused",
                _ => "LimitExceeded",
            };
            not_ready(reason, &fault.message)
        }
    }
}

fn expect_outcome(recording: &Recording, outcome: &Outcome, uids: &BTreeSet<String>) -> Value {
    let mut expect = Map::new();
    let objects = returned(recording).into_iter().filter_map(|mut object| {
        to_data(&mut object);
        without(&object, uids)
    });
    expect.insert("objects".to_owned(), objects.collect());
    let absent = outcome.absent.iter();
    let absent = absent.filter(|absence| absence.preconditions.is_empty());
    let absent: Vec<Value> = absent
        .map(|absence| json!(in_words(&absence.object)))
        .collect();
    if !absent.is_empty() {
        expect.insert("absent".to_owned(), Value::Array(absent));
    }
    Value::Object(expect)
}

/// `Profile.v1.kubeflow.org alice`: no other kind of that name can be meant.
fn in_words(object: &ObjectReference) -> String {
    let place = match &object.namespace {
        Some(namespace) => format!("{namespace}/{}", object.name),
        None => object.name.clone(),
    };
    format!("{} {place}", object.kind)
}

/// A Secret as the API server keeps it.
fn to_data(object: &mut Value) {
    if !reeve_core::fields::is_secret(object) {
        return;
    }
    let Some(Value::Object(texts)) = object
        .as_object_mut()
        .and_then(|fields| fields.remove("stringData"))
    else {
        return;
    };
    for (key, text) in texts {
        if let Value::String(text) = text {
            object["data"][key] = json!(STANDARD.encode(text));
        }
    }
}

/// A value without the fields that name objects by their uids, which are others in each
/// cluster.
fn without(value: &Value, uids: &BTreeSet<String>) -> Option<Value> {
    match value {
        Value::String(text) if uids.iter().any(|uid| text.contains(uid.as_str())) => None,
        Value::Array(items) => {
            let items = items.iter().map(|item| without(item, uids));
            items.collect::<Option<Vec<_>>>().map(Value::Array)
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields =
                fields.filter_map(|(name, value)| Some((name.clone(), without(value, uids)?)));
            Some(Value::Object(fields.collect()))
        }
        other => Some(other.clone()),
    }
}
