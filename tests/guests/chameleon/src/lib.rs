//! A guest for tests that behaves, and misbehaves, as it is told.
//!
//! It is a controller written against the bare contract, without the SDK, so that
//! it can do what the SDK prevents. Its configuration says what it declares and
//! what it does:
//!
//! ```json
//! {
//!   "primary": "Profile.v1.kubeflow.org",
//!   "writes": "ConfigMap.v1" | ["ConfigMap.v1", "Pod.v1"],
//!   "scope": "primary-namespace" | "namespace-named-like-primary" | "cluster" | ["a", "b"],
//!   "reads": ["Secret.v1"]
//!     | [{"kind": "Secret.v1", "scope": ["a"], "names": ["b"], "selector": "c=d"}],
//!   "describe": "declare",
//!   "reconcile": {"do": "echo"}
//! }
//! ```
//!
//! Everything may be left out; the values above are the defaults, but for the
//! primary, which is `ConfigMap.v1`, and for `reads`, which is empty. A read that
//! is just a kind is declared for the whole cluster.
//!
//! | `describe` | What it does |
//! |---|---|
//! | `declare` | returns the manifest that the fields above give |
//! | `refuse` | returns a config error at `/describe` |
//! | `trap`, `panic`, `loop` | what they say |
//! | `panic-long` | panics with a long message |
//! | `invalid-kind` | declares to write the kind `not a kind` |
//! | `ask-time` | calls `clock.now`, which is not allowed here |
//! | `ask-cluster` | reads the cluster, and returns the error as a config error |
//!
//! `reconcile` is an object whose `do` is one of the variants of [`Deed`], in
//! kebab-case, with its fields beside it: `{"do": "objects", "count": 3}`. A single
//! primary may be given its own in the annotation `chameleon.reeve.dev/do`, as
//! JSON text.
//!
//! A deed that returns objects returns ConfigMaps named `chameleon-<primary>`, or
//! `chameleon-<primary>-<n>` for several, in the primary's namespace, or in the
//! one named like it if that is the scope, or in the first of the listed ones.

// The contract's export names are no symbols that a native linker takes.
#![cfg(target_arch = "wasm32")]

mod answers;
mod chance;
mod config;
mod floods;
mod memory;
mod reads;
mod traps;

mod contract {
    #![expect(unsafe_code, reason = "generated: the canonical ABI is raw memory")]

    wit_bindgen::generate!({
        path: "../../../wit/v0.1",
        world: "controller",
    });

    export!(Chameleon with_types_in self);

    pub(crate) use super::Chameleon;
    pub(crate) use exports::reeve::plugin::controller_api::Guest;
    pub(crate) use reeve::plugin::*;
}

use config::{Config, Deed, Describe, Primary};
use contract::types::{ConfigError, Failure, Manifest, Outcome, PluginMetadata, Request};
use contract::{Guest, clock, log};
use std::panic;

pub(crate) struct Chameleon;

impl Guest for Chameleon {
    fn metadata() -> PluginMetadata {
        PluginMetadata {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config_schema: br#"{"type":"object","properties":{"describe":{"type":"string"}}}"#
                .to_vec(),
        }
    }

    fn describe(config: Vec<u8>) -> Result<Manifest, ConfigError> {
        report_panics();
        let config = Config::parse(&config).map_err(|message| refuse("", message))?;
        match config.describe {
            Describe::Declare => Ok(config.manifest()),
            Describe::Refuse => Err(refuse("/describe", "refused, as told".to_owned())),
            Describe::Trap => traps::trap(),
            Describe::Panic => traps::panic("panicked, as told"),
            Describe::PanicLong => {
                traps::panic(&format!("panicked, at length{}", ", and on".repeat(1000)))
            }
            Describe::Loop => traps::endless_loop(),
            Describe::InvalidKind => {
                let mut manifest = config.manifest();
                manifest.writes[0].kind.kind = "not a kind".to_owned();
                Ok(manifest)
            }
            Describe::AskTime => Err(refuse("", clock::now().to_string())),
            Describe::AskCluster => {
                let answer = reads::get("ConfigMap.v1", None, "any", &[]);
                Err(refuse("", format!("{answer:?}")))
            }
        }
    }

    fn reconcile(request: Request) -> Result<Outcome, Failure> {
        report_panics();
        let config = Config::parse(&request.config).map_err(Failure::Terminal)?;
        let primary = Primary::parse(&request.primary).map_err(Failure::Terminal)?;
        let deed = primary.deed().map_err(Failure::Terminal)?;
        let deed = deed.unwrap_or(config.reconcile.clone());
        carry_out(deed, &primary, &config, &request)
    }
}

fn carry_out(
    deed: Deed,
    primary: &Primary,
    config: &Config,
    request: &Request,
) -> Result<Outcome, Failure> {
    let place = config.place(primary);
    match deed {
        Deed::Echo => Ok(answers::echo(&place, request)),
        Deed::Objects { count, bytes } => Ok(answers::objects(&place, count, bytes)),
        Deed::Nothing { meant } => Ok(answers::nothing(meant)),
        Deed::Raw { text, byte } => Ok(answers::raw(&text, byte)),
        Deed::NoName => Ok(answers::without_name(&place)),
        Deed::Duplicate => Ok(answers::duplicate(&place)),
        Deed::UndeclaredKind => Ok(answers::undeclared_kind(&place)),
        Deed::ForeignNamespace { namespace } => Ok(answers::foreign(&place, namespace)),
        Deed::Nested { depth } => Ok(answers::nested(&place, depth)),
        Deed::Remark { text } => Ok(answers::remark(&place, text)),
        Deed::After { millis } => Ok(answers::after(&place, millis)),
        Deed::Absent {
            kind,
            namespace,
            name,
            uid,
            owned_by,
            phases,
        } => {
            let object = reads::reference(&kind, namespace, name);
            Ok(answers::absent(&place, object, uid, owned_by, phases))
        }
        Deed::Fail { how, text } => Err(answers::failure(how, text)),

        Deed::Trap => traps::trap(),
        Deed::Panic { text } => traps::panic(&text),
        Deed::Loop => traps::endless_loop(),
        Deed::Spin { rounds } => Ok(answers::number(&place, traps::spin(rounds))),
        Deed::Recurse => Ok(answers::number(&place, traps::recurse(0))),

        Deed::Hoard => memory::hoard(),
        Deed::Grab { bytes } => Ok(answers::number(&place, memory::grab(bytes))),
        Deed::LongLine { bytes } => {
            log::write(log::Level::Info, &"x".repeat(bytes));
            Ok(answers::echo(&place, request))
        }

        Deed::LogFlood { lines } => {
            floods::log(lines);
            Ok(answers::echo(&place, request))
        }
        Deed::CallFlood { calls } => Ok(answers::number(&place, floods::calls(calls))),
        Deed::ReadFlood { kind } => Ok(answers::number(&place, floods::reads(&kind))),

        Deed::ReadClock => Ok(answers::number(&place, clock::now())),
        Deed::Get {
            kind,
            namespace,
            name,
            projection,
        } => reads::get(&kind, namespace, &name, &projection)
            .map(|found| answers::texts(&place, found.into_iter().collect())),
        Deed::Grow { most, apply } => {
            let there = reads::get("ConfigMap.v1", place.namespace.clone(), &place.name, &[])?;
            let number = there.and_then(|text| answers::number_in(&text));
            let number = most.min(number.unwrap_or_default() + 1);
            Ok(answers::applied(&place, number, &apply))
        }
        Deed::List {
            kind,
            namespace,
            selector,
        } => reads::list(&kind, namespace, selector).map(|found| answers::texts(&place, found)),
        Deed::ListKeys {
            kind,
            namespace,
            selector,
        } => reads::keys(&kind, namespace, selector).map(|found| answers::texts(&place, found)),
        Deed::ReadSource { name } => {
            reads::source(&name).map(|found| answers::texts(&place, vec![found]))
        }
        Deed::Catch { first, instead } => carry_out(*first, primary, config, request)
            .or_else(|_| carry_out(*instead, primary, config, request)),
        Deed::HashSeed => Ok(answers::texts(&place, vec![reads::hash_order()])),
        Deed::NanBits => Ok(answers::texts(&place, chance::nan_bits())),
        Deed::CountCalls => Ok(answers::number(&place, chance::count())),
    }
}

fn refuse(path: &str, message: String) -> ConfigError {
    ConfigError {
        path: path.to_owned(),
        message,
    }
}

fn report_panics() {
    panic::set_hook(Box::new(|info| log::fault(&info.to_string())));
}
