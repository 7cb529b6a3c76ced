//! Compares the library with the Go library that a server uses, on generated
//! sequences of requests.
//!
//! Usage: `cargo run --release -p reeve-ssa --example oracle ORACLE [REQUESTS [SEED]]`
//! where ORACLE is the program built from `examples/go/oracle`. Results,
//! owners and error texts must be equal; the first differences are printed and
//! the exit code is 1. The seed makes a run repeatable.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use reeve_ssa::{Apply, FieldSet, Schema, Update, apply, update};
use serde_json::{Map, Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How many requests an object lives through.
const LIFE: usize = 12;
/// How many differences are shown.
const SHOWN: usize = 5;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments
        .next()
        .ok_or("usage: oracle ORACLE [REQUESTS [SEED]]")?;
    let requests: usize = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    println!("{requests} requests, seed {seed}");

    let schemas = schemas();
    let mut oracle = Oracle::start(&program, &schemas)?;
    let mut random = Random(seed);
    let mut differences = 0;
    let mut done = 0;
    let (mut refused, mut applied) = (0, 0);
    while done < requests {
        let (name, json) = random.pick(&schemas);
        let schema = match json {
            Value::Null => Schema::untyped(),
            json => Schema::from_crd(json)?,
        };
        let mut live: Option<Value> = None;
        for _ in 0..LIFE {
            let request = random.request(name, json, live.as_ref());
            let mut theirs = oracle.ask(&request)?;
            store(&schema, &mut theirs["object"]);
            let ours = answer(&schema, &request, &theirs);
            done += 1;
            if theirs["error"].is_string() {
                refused += 1;
            } else {
                applied += 1;
            }
            if ours != comparable(&theirs) {
                differences += 1;
                if differences <= SHOWN {
                    println!(
                        "request {request}\nours    {ours}\ntheirs  {}\n",
                        comparable(&theirs)
                    );
                }
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
    println!("{differences} differences in {done} requests ({applied} done, {refused} refused)");
    if differences > 0 {
        std::process::exit(1);
    }
    Ok(())
}

/// What a server does to an object that its library leaves alone: metadata
/// loses empty fields on the way to the store.
fn store(schema: &Schema, object: &mut Value) {
    if object.is_object() {
        schema.normalize(object);
    }
}

struct Oracle {
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    fn start(program: &str, schemas: &[(&str, Value)]) -> Result<Self> {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It complains of each update that does not fit its type.
            .stderr(Stdio::null())
            .spawn()?;
        let mut oracle = Oracle {
            requests: child.stdin.take().ok_or("no input")?,
            answers: BufReader::new(child.stdout.take().ok_or("no output")?),
        };
        let schemas: Map<String, Value> = schemas
            .iter()
            .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
            .collect();
        writeln!(oracle.requests, "{}", Value::from(schemas))?;
        Ok(oracle)
    }

    fn ask(&mut self, request: &Value) -> Result<Value> {
        writeln!(self.requests, "{request}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

fn answer(schema: &Schema, request: &Value, theirs: &Value) -> Value {
    let live = Some(&request["live"]).filter(|live| !live.is_null());
    let object = &request["object"];
    let manager = request["manager"].as_str().unwrap_or_default();
    let reset: FieldSet = request["reset"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|field| reeve_ssa::Path::fields([field]))
        .collect();
    let now = newest(theirs);
    if request["op"] == "update" {
        let object = update(Update {
            schema,
            versions: &[],
            live,
            object,
            manager,
            subresource: "",
            now: &now,
            reset: &reset,
        });
        return json!({"object": integers(object)});
    }
    let applied = apply(Apply {
        schema,
        versions: &[],
        live,
        config: object,
        manager,
        force: request["force"] == true,
        subresource: "",
        now: &now,
        reset: &reset,
    });
    match applied {
        Ok(applied) => json!({"object": integers(applied.object)}),
        Err(error) => json!({"error": error_text(&error.to_string())}),
    }
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
        Some(error) => json!({"error": error_text(error)}),
        None => json!({"object": theirs["object"]}),
    }
}

/// The text as far as it is the same each time: of several places that do not
/// fit, Go's maps give any one first, and it stops at undeclared fields.
fn error_text(text: &str) -> &str {
    let varies = text.contains("errors:\n") || text.contains("not declared in schema");
    match text.split_once("Kind=Thing)") {
        Some((first, _)) if varies => first,
        _ => text,
    }
}

fn schemas() -> Vec<(&'static str, Value)> {
    let text = json!({"type": "string"});
    let leaf = json!({"type": "object", "properties": {"a": text, "b": {"type": "integer"}}});
    let item = json!({"type": "object", "properties": {
        "id": {"type": "integer"},
        "kind": {"type": "string", "default": "x"},
        "value": text,
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "more": leaf,
        "map": {"type": "object", "additionalProperties": leaf},
    }});
    let fields = json!({
        "text": text,
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "either": {"x-kubernetes-int-or-string": true},
        "map": {"type": "object", "additionalProperties": text},
        "structs": {"type": "object", "additionalProperties": leaf},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "struct": leaf,
        "list": {"type": "array", "items": leaf},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
        "items": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id", "kind"], "items": item},
        "names": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": text, "value": text}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "half": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": leaf}},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
    });
    vec![
        (
            "typed",
            json!({"type": "object", "properties": {
                "spec": {"type": "object", "properties": fields},
                "status": {"type": "object", "properties": {"phase": text}},
            }}),
        ),
        ("flat", json!({"type": "object", "properties": fields})),
        (
            "open",
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"spec": {"type": "object", "properties": {"set": fields["set"], "text": text}}}}),
        ),
        ("untyped", Value::Null),
    ]
}

/// A generator of 64 random bits at a time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % (n.max(1) as u64)).unwrap_or(0)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn request(&mut self, schema: &str, json: &Value, live: Option<&Value>) -> Value {
        let op = if self.chance(60) { "apply" } else { "update" };
        let mut object = match json {
            Value::Null => self.anything(3),
            json => self.value(json, 0),
        };
        if !object.is_object() {
            object = json!({});
        }
        if op == "update"
            && let Some(live) = live
        {
            if self.chance(50) {
                // An edit of what is there, rather than something new.
                let mut edited = live.clone();
                self.edit(&mut edited, &object);
                object = edited;
            }
            object["metadata"] = live["metadata"].clone();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
        }
        object["apiVersion"] = "test/v1".into();
        object["kind"] = "Thing".into();
        object["metadata"]["name"] = "x".into();
        if self.chance(30) {
            object["metadata"]["labels"] = json!({"l": self.text(), "m": self.text()});
        }
        if self.chance(20) {
            object["metadata"]["finalizers"] = json!([self.text()]);
        }
        json!({
            "schema": schema,
            "op": op,
            "manager": self.pick(&["a", "b", "c"]),
            "force": self.chance(50),
            "reset": if self.chance(20) { vec!["status"] } else { vec![] },
            "live": live,
            "object": object,
        })
    }

    /// Takes some of the fields from another object, and drops some.
    fn edit(&mut self, object: &mut Value, other: &Value) {
        let (Some(object), Some(other)) = (object.as_object_mut(), other.as_object()) else {
            return;
        };
        for (name, value) in other {
            match object.get_mut(name) {
                Some(own) if own.is_object() && self.chance(60) => self.edit(own, value),
                _ if self.chance(50) => {
                    object.insert(name.clone(), value.clone());
                }
                _ => {}
            }
        }
        let names: Vec<String> = object.keys().cloned().collect();
        for name in names {
            if name != "metadata" && self.chance(10) {
                object.remove(&name);
            }
        }
    }

    fn text(&mut self) -> Value {
        (*self.pick(&["a", "b", "c", "d<&\"", ""])).into()
    }

    /// A value of a type, now and then of another, empty or null.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        match self.below(200) {
            0 => return Value::Null,
            1 => return self.anything(1),
            _ => {}
        }
        match schema["type"].as_str() {
            Some("string") => self.text(),
            Some("integer") => self.below(4).into(),
            Some("number") => self
                .pick(&[json!(1), json!(1.5), json!(2.0), json!(100_000_000.0)])
                .clone(),
            Some("boolean") => self.chance(50).into(),
            Some("object") => self.object(schema, depth),
            Some("array") => {
                let keyed = schema["x-kubernetes-list-type"].is_string();
                let mut items: Vec<Value> = Vec::new();
                for _ in 0..self.below(5) {
                    let mut item = self.value(&schema["items"], depth + 1);
                    if let Some(keys) = schema["x-kubernetes-list-map-keys"].as_array()
                        && let Some(item) = item.as_object_mut()
                    {
                        for key in keys.iter().filter_map(Value::as_str) {
                            let value = match key {
                                "id" => self.below(4).into(),
                                _ => self.text(),
                            };
                            // A key that is a map is refused, but the text of
                            // the refusal varies with the order of the map.
                            let missing = key != "kind" && !item.contains_key(key);
                            if missing || item.get(key).is_some_and(Value::is_object) {
                                item.insert(key.to_owned(), value);
                            }
                        }
                    }
                    // Twice the same is an error in an apply, and rare.
                    if !keyed || self.chance(2) || !items.iter().any(|other| alike(other, &item)) {
                        items.push(item);
                    }
                }
                items.into()
            }
            _ => self.anything(2),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut out = Map::new();
        if let Some(properties) = schema["properties"].as_object() {
            for (name, property) in properties {
                if self.chance(if depth == 0 { 80 } else { 35 }) {
                    out.insert(name.clone(), self.value(property, depth + 1));
                }
            }
        }
        match &schema["additionalProperties"] {
            Value::Null => {}
            additional => {
                for _ in 0..self.below(3) {
                    let name = *self.pick(&["k", "l", "m.n/o"]);
                    out.insert(name.to_owned(), self.value(additional, depth + 1));
                }
            }
        }
        if schema["x-kubernetes-preserve-unknown-fields"] == true {
            for _ in 0..self.below(3) {
                let name = *self.pick(&["x", "y"]);
                out.insert(name.to_owned(), self.anything(2));
            }
        }
        if self.chance(1) {
            out.insert("undeclared".to_owned(), 1.into());
        }
        out.into()
    }

    fn anything(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 => self.text(),
            1 => self.below(3).into(),
            2 => self.chance(50).into(),
            3 if self.chance(30) => Value::Null,
            3 => json!(0.5),
            4 => (0..self.below(3))
                .map(|_| self.anything(depth - 1))
                .collect(),
            _ => {
                let mut out = Map::new();
                for _ in 0..self.below(4) {
                    let name = *self.pick(&["x", "y", "z"]);
                    out.insert(name.to_owned(), self.anything(depth - 1));
                }
                out.into()
            }
        }
    }
}

/// Whether two items may have the same name in their list.
fn alike(a: &Value, b: &Value) -> bool {
    match (a.as_object(), b.as_object()) {
        (Some(a), Some(b)) => {
            let kind = |map: &Map<String, Value>| map.get("kind").cloned().unwrap_or("x".into());
            a.get("id") == b.get("id") && a.get("name") == b.get("name") && kind(a) == kind(b)
        }
        _ => a == b,
    }
}
