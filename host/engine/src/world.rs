//! Is this a component of our world? Told before anything is compiled.

use crate::config::CompileLimits;
use crate::fault::shown;
use crate::generation::Generation;
use crate::load::{Counted, LoadError};
use std::fmt;
use wasmparser::{CustomSectionReader, KnownCustom, Name, NameMap, Parser, Payload};

/// What bytes are that are no component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No bytes at all.
    Empty,
    /// A core WebAssembly module.
    CoreModule,
    /// WebAssembly in text form.
    Wat,
    /// Machine code that wasmtime has compiled before.
    Precompiled,
    /// A gzip stream.
    Gzip,
    /// A zstd stream.
    Zstd,
    /// Text of some sort.
    Text,
    /// Something else.
    Unknown,
}

/// What it is, and how to make a component of it.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "it is empty; name the built `.wasm` file",
            Self::CoreModule => {
                "it is a core WebAssembly module; encode it with `wasm-tools component new`"
            }
            Self::Wat => "it is WebAssembly in text form; encode it with `wasm-tools parse`",
            Self::Precompiled => {
                "it is machine code compiled by wasmtime, which is never accepted; \
                 deliver the component itself"
            }
            Self::Gzip => "it is a gzip stream; deliver it under the key `plugin.wasm.gz`",
            Self::Zstd => "it is a zstd stream; deliver it under the key `plugin.wasm.zst`",
            Self::Text => "it is text; name the built `.wasm` file",
            Self::Unknown => "it does not start as WebAssembly does; name the built `.wasm` file",
        })
    }
}

/// Where a component and the world do not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorldProblem {
    /// It does not export what makes a plugin.
    #[error("it does not export `{name}`; build it for the world `controller` of `reeve:plugin`")]
    MissingExport {
        /// The interface.
        name: &'static str,
    },
    /// It speaks a generation of the contract that this host does not.
    #[error(
        "it exports `{found}`, but this version of reeve speaks {}; build it with a matching SDK",
        generations()
    )]
    OtherGeneration {
        /// The interface that it exports.
        found: String,
    },
    /// It imports something that the host does not have.
    #[error("it imports `{name}`, which a plugin cannot have{}", hint(name))]
    UnknownImport {
        /// The interface or function.
        name: String,
    },
    /// An import or export has the right name and the wrong type.
    #[error("{detail}; build it with a matching SDK")]
    WrongType {
        /// Which, and how it differs.
        detail: String,
    },
}

/// Packages of WASI 0.2 of which the host has every interface.
const WASI: [&str; 6] = [
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:filesystem/",
    "wasi:io/",
    "wasi:random/",
    "wasi:sockets/",
];

/// Interfaces of `wasi:http` 0.2 that a plugin may import: it asks, and serves nobody.
const HTTP: [&str; 2] = ["wasi:http/outgoing-handler", "wasi:http/types"];

/// Interfaces of ours that a plugin may import, without their version.
const OURS: [&str; 6] = [
    "reeve:plugin/types",
    "reeve:plugin/cluster",
    "reeve:plugin/sources",
    "reeve:plugin/sql",
    "reeve:plugin/clock",
    "reeve:plugin/log",
];

/// Bytes of the name of a function. A trap names where it happened, and has copies made of
/// these names; the longest that compilers of Rust and C++ write have a few thousand.
const NAME_BYTES: u64 = 64 << 10;

/// Tells what bytes are that are no component, from how they start.
pub(crate) fn identify(bytes: &[u8]) -> Result<(), Found> {
    if Parser::is_component(bytes) {
        return Ok(());
    }
    let start = bytes.trim_ascii_start();
    Err(match bytes {
        [] => Found::Empty,
        _ if Parser::is_core_wasm(bytes) => Found::CoreModule,
        _ if wasmtime::Engine::detect_precompiled(bytes).is_some() => Found::Precompiled,
        [0x1f, 0x8b, ..] => Found::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Found::Zstd,
        _ if start.starts_with(b"(component") || start.starts_with(b"(module") => Found::Wat,
        _ if is_text(bytes) => Found::Text,
        _ => Found::Unknown,
    })
}

fn is_text(bytes: &[u8]) -> bool {
    let printable = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
    bytes.iter().all(printable) && std::str::from_utf8(bytes).is_ok()
}

/// Compares the names of a component's imports and exports with the world's, and
/// counts what it defines.
///
/// Types are compared by wasmtime after compiling; see [`WorldProblem::WrongType`].
///
/// # Errors
///
/// When the bytes are damaged, there is too much in them, or they are of another
/// world.
pub(crate) fn check(bytes: &[u8], limits: &CompileLimits) -> Result<(), LoadError> {
    let invalid = |error: wasmparser::BinaryReaderError| LoadError::Invalid {
        reason: error.to_string(),
    };
    let mut problems = Vec::new();
    let mut exports = Vec::new();
    let mut imports = 0;
    let mut definitions = 0;
    let mut depth = 0u32;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(invalid)?;
        definitions += count(&payload);
        at_most(definitions, limits.definitions, Counted::Definitions)?;
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                imports += u64::from(section.count());
                at_most(imports, limits.imports, Counted::Imports)?;
                for import in section {
                    let name = import.map_err(invalid)?.name.name;
                    if !is_known_import(name) {
                        problems.push(WorldProblem::UnknownImport { name: shown(name) });
                    }
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                let total = exports.len() as u64 + u64::from(section.count());
                at_most(total, limits.exports, Counted::Exports)?;
                for export in section {
                    exports.push(export.map_err(invalid)?.name.name.to_owned());
                }
            }
            Payload::CustomSection(section) => {
                at_most(longest_name(&section), NAME_BYTES, Counted::NameBytes)?
            }
            _ => {}
        }
    }
    problems.extend(export_problem(exports));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(LoadError::WrongWorld { problems })
    }
}

fn at_most(number: u64, limit: u64, what: Counted) -> Result<(), LoadError> {
    if number > limit {
        return Err(LoadError::TooMany { what, limit });
    }
    Ok(())
}

/// The longest name of a function that a section for debugging has; none where it is
/// another, or damaged, which hurts nobody.
fn longest_name(section: &CustomSectionReader<'_>) -> u64 {
    let longest = |names: NameMap<'_>| {
        let names = names.into_iter().map_while(Result::ok);
        names.map(|name| name.name.len()).max()
    };
    let longest = match section.as_known() {
        KnownCustom::Name(parts) => parts
            .into_iter()
            .map_while(Result::ok)
            .filter_map(|part| match part {
                Name::Function(names) => longest(names),
                _ => None,
            })
            .max(),
        _ => None,
    };
    longest.unwrap_or(0) as u64
}

/// How much a part of a component defines. Sections say how many entries they have
/// before they have them; what is not there is found when it is read.
fn count(payload: &Payload<'_>) -> u64 {
    let entries = match payload {
        Payload::TypeSection(section) => section.count(),
        Payload::ImportSection(section) => section.count(),
        Payload::FunctionSection(section) => section.count(),
        Payload::TableSection(section) => section.count(),
        Payload::MemorySection(section) => section.count(),
        Payload::TagSection(section) => section.count(),
        Payload::GlobalSection(section) => section.count(),
        Payload::ExportSection(section) => section.count(),
        Payload::ElementSection(section) => section.count(),
        Payload::DataSection(section) => section.count(),
        Payload::InstanceSection(section) => section.count(),
        Payload::CoreTypeSection(section) => section.count(),
        Payload::ComponentInstanceSection(section) => section.count(),
        Payload::ComponentAliasSection(section) => section.count(),
        Payload::ComponentTypeSection(section) => section.count(),
        Payload::ComponentCanonicalSection(section) => section.count(),
        Payload::ComponentImportSection(section) => section.count(),
        Payload::ComponentExportSection(section) => section.count(),
        Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => 1,
        _ => 0,
    };
    entries.into()
}

/// The generation of a component that [`check`] has let through.
pub(crate) fn generation<'a>(exports: impl Iterator<Item = &'a str>) -> Option<Generation> {
    let exports: Vec<&str> = exports.collect();
    Generation::ALL.into_iter().find(|generation| {
        exports
            .iter()
            .any(|name| compatible(name, generation.export()))
    })
}

/// What a plugin of the newest generation exports.
pub(crate) fn expected_export() -> &'static str {
    Generation::ALL[0].export()
}

/// What is wrong with the exports, if anything is.
fn export_problem(exports: Vec<String>) -> Option<WorldProblem> {
    if generation(exports.iter().map(String::as_str)).is_some() {
        return None;
    }
    let found = exports
        .into_iter()
        .find(|name| is(name, "reeve:plugin/controller-api"));
    Some(match found {
        Some(found) => WorldProblem::OtherGeneration {
            found: shown(&found),
        },
        None => WorldProblem::MissingExport {
            name: expected_export(),
        },
    })
}

fn is_known_import(name: &str) -> bool {
    let (interface, version) = split(name);
    let wasi = WASI.iter().any(|package| name.starts_with(package));
    if wasi || HTTP.contains(&interface) {
        return version.starts_with("0.2.");
    }
    OURS.contains(&interface)
        && Generation::ALL
            .iter()
            .any(|generation| same_line(split(name).1, split(generation.export()).1))
}

fn is(name: &str, interface: &str) -> bool {
    split(name).0 == interface
}

/// Whether one interface can stand for the other: only the patch level differs.
fn compatible(name: &str, other: &str) -> bool {
    split(name).0 == split(other).0 && same_line(split(name).1, split(other).1)
}

fn same_line(version: &str, other: &str) -> bool {
    let line = |version: &str| version.rsplit_once('.').map(|(line, _)| line.to_owned());
    line(version).is_some() && line(version) == line(other)
}

fn split(name: &str) -> (&str, &str) {
    name.split_once('@').unwrap_or((name, ""))
}

fn generations() -> String {
    Generation::ALL
        .map(|generation| generation.to_string())
        .join(", ")
}

fn hint(name: &str) -> &'static str {
    if name.starts_with("wasi:http/") {
        "; of `wasi:http` 0.2 it may import `outgoing-handler` and `types`"
    } else if name.starts_with("wasi:") {
        "; WASI 0.2 is there, other versions are not"
    } else if name.starts_with("reeve:plugin/") {
        "; it belongs to a version of the contract that this reeve does not speak"
    } else {
        "; plugins import interfaces of `reeve:plugin` and WASI 0.2 only"
    }
}
