//! A guest for tests that looks at its machine through WASI.
//!
//! A controller of ConfigMaps. What it does is the configuration's `look`:
//!
//! | `look` | What it does |
//! |---|---|
//! | absent | returns a ConfigMap `sights` with all that it has seen |
//! | `exit` | calls `exit` |
//! | `sleep` | waits for an hour, then returns a ConfigMap |
//! | `print` | writes lines to standard output and error |
//! | `litter` | opens handles and never closes them |
//! | `gamble` | asks for a megabyte of random bytes at once |
//! | `hoard` | puts as much as it may into a request that it never sends |
//! | `stuff` | adds `fields` header fields of a KiB to a handle |
//! | `stall` | writes to the body of a request that it never sends, until there is room |
//! | `sql` | runs a statement, which answers in `actuate` only |

// The contract's export names are no symbols that a native linker takes.
#![cfg(target_arch = "wasm32")]

mod contract {
    #![expect(unsafe_code, reason = "generated: the canonical ABI is raw memory")]

    wit_bindgen::generate!({
        path: ["../../../wit/v0.1", "wit"],
        world: "reeve:guests/tourist",
        generate_all,
    });

    export!(Tourist with_types_in self);

    pub(crate) use super::Tourist;
    pub(crate) use exports::reeve::plugin::controller_api::Guest;
    pub(crate) use reeve::plugin::{sql, types};
    pub(crate) use wasi::{cli, clocks, filesystem, http, random, sockets};
}

use contract::types::{
    ConfigError, Failure, GroupVersionKind, Manifest, Next, Outcome, PluginMetadata, PrimaryRule,
    Request, Role, Scope, WriteRule,
};
use contract::{Guest, cli, clocks, filesystem, http, random, sockets, sql};
use serde_json::{Value, json};

pub(crate) struct Tourist;

impl Guest for Tourist {
    fn metadata() -> PluginMetadata {
        PluginMetadata {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config_schema: br#"{"type":"object"}"#.to_vec(),
        }
    }

    fn describe(_config: Vec<u8>) -> Result<Manifest, ConfigError> {
        Ok(Manifest {
            role: Role::Controller(PrimaryRule {
                kind: config_map(),
                selector: String::new(),
                projection: Vec::new(),
            }),
            reads: Vec::new(),
            writes: vec![WriteRule {
                kind: config_map(),
                scope: Scope::PrimaryNamespace,
            }],
            sources: Vec::new(),
            actions: Vec::new(),
        })
    }

    fn reconcile(request: Request) -> Result<Outcome, Failure> {
        let config: Value = serde_json::from_slice(&request.config)
            .map_err(|error| Failure::Terminal(error.to_string()))?;
        match config["look"].as_str() {
            None => Ok(outcome(&sights())),
            Some("exit") => {
                cli::exit::exit(Err(()));
                Ok(outcome(&json!({ "after": "exit" })))
            }
            Some("sleep") => {
                clocks::monotonic_clock::subscribe_duration(3_600_000_000_000).block();
                Ok(outcome(&json!({ "after": "sleep" })))
            }
            Some("print") => {
                print();
                Ok(outcome(&json!({})))
            }
            Some("litter") => loop {
                std::mem::forget(cli::stdout::get_stdout());
            },
            Some("gamble") => {
                let bytes = random::random::get_random_bytes(1 << 20).len();
                Ok(outcome(&json!({ "bytes": bytes.to_string() })))
            }
            Some("hoard") => {
                let mut taken = Vec::new();
                for length in [8 << 10, (8 << 10) + 1, 1 << 20] {
                    taken.push(format!("{length}: {}", takes(length)));
                }
                let request = request_of_none();
                let body = request.body().map_err(|()| failed("no body"))?;
                let stream = body.write().map_err(|()| failed("no stream"))?;
                let piece = stream.check_write().unwrap_or(0);
                Ok(outcome(&json!({
                    "taken": taken.join(", "),
                    "piece": piece.to_string(),
                })))
            }
            Some("stuff") => {
                let fields = config["fields"].as_u64().unwrap_or(0);
                let request = http::types::Fields::new();
                for _ in 0..fields {
                    let added = request.append("a", &[b'a'; 1 << 10]);
                    added.map_err(|error| failed(&format!("{error:?}")))?;
                }
                Ok(outcome(&json!({ "fields": fields.to_string() })))
            }
            Some("stall") => {
                let request = request_of_none();
                let body = request.body().map_err(|()| failed("no body"))?;
                let stream = body.write().map_err(|()| failed("no stream"))?;
                loop {
                    let written = stream.blocking_write_and_flush(&[0; 4096]);
                    written.map_err(|error| failed(&error.to_string()))?;
                }
            }
            Some("sql") => {
                let statement = sql::Statement {
                    parts: vec![sql::Part::Text("SELECT 1".to_owned())],
                    parameters: Vec::new(),
                };
                let answer = sql::query("main", &statement).map(|_| ());
                Ok(outcome(&json!({ "sql": format!("{answer:?}") })))
            }
            Some(other) => Err(Failure::Terminal(format!("cannot look at {other}"))),
        }
    }
}

fn request_of_none() -> http::types::OutgoingRequest {
    http::types::OutgoingRequest::new(http::types::Fields::new())
}

/// Of the four texts of a request, how many may be so long.
fn takes(length: usize) -> usize {
    let request = request_of_none();
    let text = "a".repeat(length);
    let path = format!("/{}", &text[1..]);
    let taken = [
        request.set_method(&http::types::Method::Other(text.clone())),
        request.set_authority(Some(&text)),
        request.set_path_with_query(Some(&path)),
        request.set_scheme(Some(&http::types::Scheme::Other(text.clone()))),
    ];
    taken.iter().filter(|taken| taken.is_ok()).count()
}

fn failed(text: &str) -> Failure {
    Failure::Terminal(text.to_owned())
}

fn sights() -> Value {
    let now = clocks::wall_clock::now();
    let network = sockets::instance_network::instance_network();
    let lookup = sockets::ip_name_lookup::resolve_addresses(&network, "localhost");
    let socket =
        sockets::tcp_create_socket::create_tcp_socket(sockets::network::IpAddressFamily::Ipv4);
    json!({
        "environment": format!("{:?}", cli::environment::get_environment()),
        "arguments": format!("{:?}", cli::environment::get_arguments()),
        "folder": format!("{:?}", cli::environment::initial_cwd()),
        "stdin": format!("{:?}", cli::stdin::get_stdin().blocking_read(1).is_err()),
        "preopens": filesystem::preopens::get_directories().len().to_string(),
        "monotonic": clocks::monotonic_clock::now().to_string(),
        "wall": format!("{}.{}", now.seconds, now.nanoseconds),
        "random": format!("{:?}", random::random::get_random_bytes(64)),
        "insecure": random::insecure::get_insecure_random_u64().to_string(),
        "seed": format!("{:?}", random::insecure_seed::insecure_seed()),
        "lookup": lookup.err().map(|error| error.name()),
        "socket": socket.err().map(|error| error.name()),
    })
}

/// Failures to print are not interesting: the test looks at what arrived.
fn print() {
    let _ = cli::stdout::get_stdout().blocking_write_and_flush(b"one\ntwo, ");
    let _ = cli::stderr::get_stderr().blocking_write_and_flush(b"careful\n");
    let _ = cli::stdout::get_stdout().blocking_write_and_flush(b"three");
}

fn outcome(data: &Value) -> Outcome {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "sights" },
        "data": data,
    });
    Outcome {
        objects: vec![object.to_string().into_bytes()],
        absent: Vec::new(),
        conditions: Vec::new(),
        events: Vec::new(),
        status: None,
        actions: Vec::new(),
        next: Next::OnChange,
        empty_is_meant: false,
    }
}

fn config_map() -> GroupVersionKind {
    GroupVersionKind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
    }
}
