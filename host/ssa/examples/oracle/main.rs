//! Compares the library with the Go library that a server uses, on generated
//! sequences of requests.
//!
//! Usage: `cargo run --release -p reeve-ssa --example oracle ORACLE REQUESTS SEED [FOLDER]`
//! where ORACLE is the program built from `examples/go/oracle`. Results,
//! owners and error texts must be equal; the first differences are printed and
//! the exit code is 1. The seed makes a run repeatable. With a folder of a
//! server's OpenAPI v3 documents, objects are of all built-in kinds instead of
//! custom ones.

mod kinds;
mod random;

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use reeve_ssa::{Apply, FieldSet, Schema, Update, apply, update};
use serde_json::{Map, Value, json};

use self::kinds::{Kind, built_in_kinds, components, custom_kinds};
use self::random::Random;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How many requests an object lives through.
const LIFE: usize = 12;
/// How many differences are shown.
const SHOWN: usize = 5;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: oracle ORACLE REQUESTS SEED [FOLDER]";
    let program = arguments.next().ok_or(usage)?;
    let requests: usize = arguments.next().ok_or(usage)?.parse()?;
    let seed: u64 = arguments.next().ok_or(usage)?.parse()?;
    let folder = arguments.next();
    println!("{requests} requests, seed {seed}");

    let kinds = match &folder {
        None => custom_kinds()?,
        Some(folder) => built_in_kinds(folder)?,
    };
    let mut oracle = Oracle::start(&program, &kinds, folder.as_deref())?;
    let mut random = Random {
        state: seed,
        components: match &folder {
            None => Map::new(),
            Some(folder) => components(folder)?,
        },
    };
    let mut differences = 0;
    let mut done = 0;
    let (mut refused, mut applied) = (0, 0);
    while done < requests {
        let kind = random.pick(&kinds);
        let schema = &kind.schema;
        let mut live: Option<Value> = None;
        for _ in 0..LIFE {
            let request = random.request(kind, live.as_ref());
            let mut theirs = oracle.ask(&request)?;
            store(schema, &mut theirs["object"]);
            let ours = answer(schema, &request, &theirs);
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
    fn start(program: &str, kinds: &[Kind], folder: Option<&str>) -> Result<Self> {
        let mut child = Command::new(program)
            .args(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It complains of each update that does not fit its type.
            .stderr(Stdio::null())
            .spawn()?;
        let mut oracle = Oracle {
            requests: child.stdin.take().ok_or("no input")?,
            answers: BufReader::new(child.stdout.take().ok_or("no output")?),
        };
        let schemas: Map<String, Value> = kinds
            .iter()
            .filter(|_| folder.is_none())
            .map(|kind| (kind.name.to_owned(), kind.json.clone()))
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
    match text.split_once("Kind=") {
        Some((first, _)) if varies => first,
        _ => text,
    }
}
