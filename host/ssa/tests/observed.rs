//! What a real server answered, against what the library says.
//!
//! `observed/server-1.36.json` holds sequences of requests to kube-apiserver
//! 1.36.3 with its answers. Uids and resource versions are made alike, times
//! are made small; everything else is as the server sent it. Each step is
//! predicted from the answer before it.

#![expect(clippy::unwrap_used, reason = "tests panic where they fail")]

use reeve_ssa::{
    Applied, Apply, ApplyError, FieldSet, Schema, Update, Version, apply, builtin, reset, update,
};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sequence {
    name: String,
    api_version: String,
    kind: String,
    /// The schema of a custom resource.
    schema: Option<Value>,
    /// Schemas of all its versions, if it has several.
    #[serde(default)]
    versions: Map<String, Value>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Step {
    /// The object as it is in another version.
    Read { answer: Value },
    Apply {
        #[serde(flatten)]
        request: Request,
        #[serde(flatten)]
        outcome: Outcome,
    },
    Update {
        manager: String,
        subresource: String,
        object: Value,
        #[serde(flatten)]
        outcome: Outcome,
    },
}

#[derive(Deserialize)]
struct Request {
    manager: String,
    force: bool,
    subresource: String,
    config: Value,
}

#[derive(Deserialize)]
struct Outcome {
    answer: Option<Value>,
    changed: Option<bool>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    code: u16,
    message: String,
    causes: Vec<Value>,
}

/// Kinds for which the server sets nothing that the request left out.
const WITHOUT_DEFAULTS: [&str; 6] = [
    "ConfigMap",
    "Role",
    "ServiceAccount",
    "Widget",
    "Multi",
    "Free",
];

/// Applies that change nothing in the end because the server rewrites what was
/// sent: quantities in another notation, defaults inside of an atomic list, a
/// field that is turned into another. The library sees a change.
const UNFORESEEN: [(&str, usize); 3] = [
    ("quota in other notations", 1),
    ("secret data and stringData", 1),
    ("stateful set claims are atomic", 1),
];

#[test]
fn the_server_answered_the_same() {
    let sequences: Vec<Sequence> =
        serde_json::from_str(include_str!("observed/server-1.36.json")).unwrap();
    let mut wrong = Vec::new();
    let mut steps = 0;
    for sequence in &sequences {
        steps += sequence.steps.len();
        let mut replay = Replay {
            sequence,
            live: None,
            differences: Vec::new(),
        };
        for (index, step) in sequence.steps.iter().enumerate() {
            replay.step(index, step);
        }
        wrong.append(&mut replay.differences);
    }
    assert!(steps > 350, "only {steps} steps");
    assert!(
        wrong.is_empty(),
        "{} differences in {steps} steps:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

struct Replay<'a> {
    sequence: &'a Sequence,
    live: Option<Value>,
    differences: Vec<String>,
}

impl Replay<'_> {
    fn step(&mut self, index: usize, step: &Step) {
        match step {
            Step::Read { answer } => self.live = Some(answer.clone()),
            Step::Apply { request, outcome } => {
                let ours = self.apply(request, outcome);
                self.judge(index, &ours, request, outcome);
                self.live = outcome.answer.clone().or(self.live.take());
            }
            Step::Update {
                manager,
                subresource,
                object,
                outcome,
            } => {
                let ours = self.update(manager, subresource, object, outcome);
                if let Some(theirs) = &outcome.answer {
                    self.expect(index, "owners", &owners(&ours), &owners(theirs));
                }
                self.live = outcome.answer.clone().or(self.live.take());
            }
        }
    }

    fn apply(&self, request: &Request, outcome: &Outcome) -> Result<Applied, ApplyError> {
        let schemas = self.versions();
        apply(Apply {
            schema: &self.schema(&request.config),
            versions: &versions(&schemas),
            live: self.live.as_ref(),
            config: &request.config,
            manager: &decode(&request.manager),
            force: request.force,
            subresource: &request.subresource,
            now: &now(outcome),
            reset: &self.reset(&request.subresource),
        })
    }

    fn update(&self, manager: &str, subresource: &str, object: &Value, outcome: &Outcome) -> Value {
        let mut object = object.clone();
        self.set_defaults(&mut object);
        let schemas = self.versions();
        let schema = self.schema(&object);
        update(Update {
            schema: &schema,
            versions: &versions(&schemas),
            live: self.live.as_ref(),
            object,
            manager: &decode(manager),
            subresource,
            now: &now(outcome),
            reset: &self.reset(subresource),
        })
    }

    fn judge(
        &mut self,
        index: usize,
        ours: &Result<Applied, ApplyError>,
        request: &Request,
        outcome: &Outcome,
    ) {
        match (ours, &outcome.answer, &outcome.error) {
            (Ok(ours), Some(theirs), _) => {
                self.expect(index, "owners", &owners(&ours.object), &owners(theirs));
                if WITHOUT_DEFAULTS.contains(&self.sequence.kind.as_str()) {
                    let mut object = own_fields(&ours.object);
                    self.set_defaults(&mut object);
                    let mut theirs = own_fields(theirs);
                    // The server puts these back afterwards.
                    for field in self.reset(&request.subresource).iter() {
                        let field = field.to_string().split_off(1);
                        for object in [&mut object, &mut theirs] {
                            object.as_object_mut().unwrap().remove(&field);
                        }
                    }
                    self.expect(index, "object", &integers(object), &integers(theirs));
                }
                let unforeseen = UNFORESEEN.contains(&(self.sequence.name.as_str(), index));
                let changed = outcome.changed == Some(true) || unforeseen;
                self.expect(index, "changed", &ours.changed.into(), &changed.into());
            }
            (Err(ours), None, Some(theirs)) => {
                let message = Value::from(ours.to_string());
                self.expect(index, "message", &message, &theirs.message.as_str().into());
                let causes = match ours {
                    ApplyError::Conflict(conflicts) => conflicts.causes(),
                    _ => Value::Array(Vec::new()),
                };
                let theirs = Value::Array(theirs.causes.clone());
                self.expect(index, "causes", &sorted(&causes), &sorted(&theirs));
            }
            // Refused by validation, which is not ours to do.
            (Ok(_), None, Some(theirs)) if theirs.code == 422 => {}
            (ours, _, theirs) => {
                let ours = Value::from(format!("{ours:?}"));
                let theirs = theirs.as_ref().map_or("applied", |error| &error.message);
                self.expect(index, "outcome", &ours, &theirs.into());
            }
        }
    }

    fn expect(&mut self, index: usize, what: &str, ours: &Value, theirs: &Value) {
        if ours != theirs {
            self.differences.push(format!(
                "{} [{index}] {what}\n  ours   {ours}\n  server {theirs}",
                self.sequence.name
            ));
        }
    }

    fn group(&self) -> &str {
        let version = &self.sequence.api_version;
        version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    fn schema(&self, object: &Value) -> Schema {
        let api_version = object["apiVersion"].as_str().unwrap();
        match self.crd_schema(api_version) {
            Some(schema) => Schema::from_crd(schema).unwrap(),
            None => {
                let version = api_version.rsplit('/').next().unwrap();
                let schema = builtin::schema(self.group(), version, &self.sequence.kind);
                schema.unwrap().clone()
            }
        }
    }

    fn crd_schema(&self, api_version: &str) -> Option<&Value> {
        let versions = &self.sequence.versions;
        versions.get(api_version).or(self.sequence.schema.as_ref())
    }

    fn versions(&self) -> Vec<(String, Schema)> {
        let versions = self.sequence.versions.iter();
        versions
            .map(|(version, schema)| (version.clone(), Schema::from_crd(schema).unwrap()))
            .collect()
    }

    fn reset(&self, subresource: &str) -> FieldSet {
        let kind = self.sequence.kind.as_str();
        match &self.sequence.schema {
            Some(_) => reset::custom(kind == "Widget", subresource),
            None => reset::built_in(self.group(), kind, subresource),
        }
    }

    /// Fills in what the server fills in while decoding.
    fn set_defaults(&self, object: &mut Value) {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        if let Some(schema) = self.crd_schema(api_version) {
            set_schema_defaults(schema, object);
        }
        match self.sequence.kind.as_str() {
            "Namespace" => {
                let name = object["metadata"]["name"].clone();
                object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            }
            "Node" if object["status"]["capacity"].is_object() => {
                object["status"]["allocatable"] = object["status"]["capacity"].clone();
            }
            _ => {}
        }
    }
}

fn versions(schemas: &[(String, Schema)]) -> Vec<Version<'_>> {
    let versions = schemas.iter().map(|(api_version, schema)| Version {
        api_version,
        schema,
        conversion: None,
    });
    versions.collect()
}

/// The value as it is stored, where a float without fraction is an integer.
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

/// The time of a request is that of the newest entry in the answer.
fn now(outcome: &Outcome) -> String {
    let entries = outcome.answer.as_ref().map(owners).unwrap_or_default();
    entries
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["time"].as_str())
        .max()
        .unwrap_or("2026-01-01T00:00:59Z")
        .to_owned()
}

fn decode(manager: &str) -> String {
    manager.replace("%20", " ")
}

fn owners(object: &Value) -> Value {
    object["metadata"]["managedFields"].clone()
}

/// The object without what other parts of the server write.
fn own_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "managedFields",
        ] {
            metadata.remove(field);
        }
    }
    object
}

fn set_schema_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(default) = schema.get("default") {
                    map.entry(name).or_insert_with(|| default.clone());
                }
                if let Some(item) = map.get_mut(name) {
                    set_schema_defaults(schema, item);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                set_schema_defaults(&schema["items"], item);
            }
        }
        _ => {}
    }
}

fn sorted(causes: &Value) -> Value {
    let mut texts: Vec<_> = causes
        .as_array()
        .into_iter()
        .flatten()
        .map(Value::to_string)
        .collect();
    texts.sort();
    texts.into()
}
