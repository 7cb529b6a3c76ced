//! The same requests to both sides.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use reeve_ssa::{Apply, ApplyError, FieldSet, Update, Version, apply, predict, update};
use serde_json::{Map, Value, json};

use crate::kinds::{Kind, components};
use crate::oracle::Oracle;
use crate::random::Random;
use crate::reduce::reduce;

/// One request in so many is to be taken at least, and one to be a conflict.
const WRITTEN: usize = 4;
const CONFLICTS: usize = 50;
/// How many requests an object lives through.
const LIFE: usize = 12;

/// Sends that many requests to both; fails at the first difference.
pub(crate) fn compare(
    kinds: &[Kind],
    folder: Option<&Path>,
    requests: usize,
    seed: u64,
) -> Result<()> {
    let started = Instant::now();
    println!("{requests} requests, REEVE_ORACLE_SEED={seed}");
    let mut oracle = Oracle::start(kinds, folder)?;
    let components = match folder {
        None => Map::new(),
        Some(folder) => components(folder)?,
    };
    let mut random = Random::new(seed, components);
    let (mut written, mut refused, mut conflicts) = (0, 0, 0);
    while written + refused + conflicts < requests {
        let kind = random.pick(kinds);
        let mut live: Option<Value> = None;
        for _ in 0..LIFE {
            let request = random.request(kind, live.as_ref());
            let (mut theirs, mut same) = both(kind, &mut oracle, &request)?;
            if !same {
                // The second can turn between two entries of one answer.
                (theirs, same) = both(kind, &mut oracle, &request)?;
            }
            if !same {
                return different(kind, &mut oracle, &request);
            }
            match (&theirs["error"], &theirs["causes"]) {
                (Value::Null, _) => written += 1,
                (_, Value::Null) => refused += 1,
                _ => conflicts += 1,
            }
            live = [&theirs["object"], &request["live"]]
                .into_iter()
                .find(|object| !object.is_null())
                .cloned();
            if let Some(live) = &mut live {
                live["metadata"]["uid"] = "1".into();
            }
        }
    }
    // The last object may live a little beyond what was asked for.
    let sent = written + refused + conflicts;
    for (what, count, part) in [
        ("written", written, WRITTEN),
        ("conflicts", conflicts, CONFLICTS),
    ] {
        ensure!(
            count * part >= sent,
            "of {sent} requests {count} were {what}: those that are made say little"
        );
    }
    println!(
        "{written} written, {conflicts} conflicts, {refused} refused, all the same, in {} s",
        started.elapsed().as_secs()
    );
    Ok(())
}

/// The other side's answer, and whether ours is the same.
fn both(kind: &Kind, oracle: &mut Oracle, request: &Value) -> Result<(Value, bool)> {
    let mut theirs = oracle.ask(request)?;
    kind.store(&mut theirs["object"]);
    let (ours, known) = (answer(kind, request, &theirs), comparable(&theirs));
    let same = ours == known || differs_in_time(request, &ours, &known);
    Ok((theirs, same))
}

/// Whether an apply left what was there, and the other side dates it all the same: lists
/// that are applied empty are a change to the library, and none any more once the object is
/// a struct. Of a write that changes times alone the server stores nothing.
fn differs_in_time(request: &Value, ours: &Value, theirs: &Value) -> bool {
    let live = &request["live"];
    let undated = |answer: &Value| {
        let mut answer = answer.clone();
        let owners = answer.pointer_mut("/object/metadata/managedFields");
        let owners = owners.and_then(Value::as_array_mut).into_iter().flatten();
        owners
            .filter_map(Value::as_object_mut)
            .for_each(|owner| drop(owner.remove("time")));
        answer
    };
    request["op"] == "apply" && ours["object"] == *live && undated(ours) == undated(theirs)
}

/// Says what is different, by a smaller request if there is one.
fn different(kind: &Kind, oracle: &mut Oracle, request: &Value) -> Result<()> {
    let smallest = reduce(request, |candidate| {
        let Ok((_, same)) = both(kind, oracle, candidate) else {
            // The program ends itself over requests that are none.
            oracle.restart()?;
            return Ok(false);
        };
        Ok(!same)
    })?;
    let mut theirs = oracle.ask(&smallest)?;
    kind.store(&mut theirs["object"]);
    let ours = answer(kind, &smallest, &theirs);
    let theirs = comparable(&theirs);
    bail!(
        "of {}\nrequest {smallest}\nours    {ours}\ntheirs  {theirs}",
        kind.kind
    )
}

/// What we make of a request, in the form of the other side's answers.
fn answer(kind: &Kind, request: &Value, theirs: &Value) -> Value {
    let object = &request["object"];
    let text = |field: &str| request[field].as_str().unwrap_or_default();
    let own = kind.version(object["apiVersion"].as_str().unwrap_or_default());
    let versions: Vec<Version<'_>> = kind.others(own);
    let reset: FieldSet = request["reset"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|field| reeve_ssa::Path::fields(field.split('.')))
        .collect();
    let live = Some(&request["live"]).filter(|live| !live.is_null());
    let now = newest(theirs);
    if request["op"] == "update" {
        return written(update(Update {
            schema: &own.schema,
            versions: &versions,
            live,
            object: object.clone(),
            manager: text("manager"),
            subresource: text("subresource"),
            now: &now,
            reset: &reset,
        }));
    }
    let request = Apply {
        schema: &own.schema,
        versions: &versions,
        live,
        config: object,
        manager: text("manager"),
        force: request["force"] == true,
        subresource: text("subresource"),
        now: &now,
        reset: &reset,
    };
    let applied = apply(request);
    let predicted = predict(request);
    match applied {
        Ok(applied) => {
            // One that changes nothing must have been foreseen, and no other. What
            // the server decides and the notation of quantities is left out of the
            // prediction, but not of what the library writes.
            let exact = kind.is_custom() && reset.is_empty();
            let foreseen = predicted.is_ok_and(|prediction| {
                prediction.is_no_change() != applied.changed || (applied.changed && !exact)
            });
            let mut answer = written(applied.object);
            if !foreseen {
                answer["prediction"] = "wrong".into();
            }
            answer
        }
        Err(error) => refused(&error),
    }
}

fn written(object: Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array();
    let fields: Vec<String> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| FieldSet::from_fields_v1(&entry["fieldsV1"]).ok())
        .map(|set| set.to_fields_v1_json())
        .collect();
    json!({"object": integers(object), "fields": fields})
}

fn refused(error: &ApplyError) -> Value {
    let causes = match error {
        ApplyError::Conflict(conflicts) => conflicts.causes(),
        _ => Value::Null,
    };
    json!({"error": error_text(&error.to_string()), "causes": sorted(&causes)})
}

/// The time that the other side took for now.
fn newest(theirs: &Value) -> String {
    let entries = theirs["object"]["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["time"].as_str())
        .max()
        .unwrap_or("2026-01-01T00:00:00Z")
        .to_owned()
}

/// Go writes a float without fraction as an integer.
fn integers(value: Value) -> Value {
    match value {
        Value::Number(n) => match n.as_f64() {
            Some(f) if f.fract() == 0.0 => Value::from(f as i64),
            _ => Value::Number(n),
        },
        Value::Array(items) => items.into_iter().map(integers).collect(),
        Value::Object(map) => map.into_iter().map(|(k, v)| (k, integers(v))).collect(),
        other => other,
    }
}

fn comparable(theirs: &Value) -> Value {
    match theirs["error"].as_str() {
        Some(error) => json!({"error": error_text(error), "causes": sorted(&theirs["causes"])}),
        None => {
            let fields = theirs["fields"].as_array().cloned().unwrap_or_default();
            json!({"object": theirs["object"], "fields": fields})
        }
    }
}

/// Causes of several managers come in the order of a Go map, which is any.
fn sorted(causes: &Value) -> Value {
    let mut causes: Vec<Value> = causes.as_array().cloned().unwrap_or_default();
    causes.sort_by_key(Value::to_string);
    causes.into()
}

/// The text as far as it is the same each time: of several places that do not
/// fit, Go's maps give any one first, and it stops at undeclared fields.
fn error_text(text: &str) -> &str {
    let varies = text.contains("errors:\n") || text.contains("not declared in schema");
    match text.split_once("Kind=") {
        Some((first, _)) if varies => first,
        _ => text,
    }
}
