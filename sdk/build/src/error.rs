//! Why a plugin could not be built.

use std::io;
use std::path::PathBuf;

use crate::TARGET;

/// A step of the build that failed. The text of the compiler, where there is
/// one, is part of the message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no crate in the folder.
    #[error("no Cargo.toml in {}", folder.display())]
    NoCrate {
        /// The folder that was named.
        folder: PathBuf,
    },
    /// The manifest is that of a workspace, and of no crate.
    #[error(
        "{} is the manifest of a workspace and has no [package]; name the folder of one of \
         its members",
        manifest.display()
    )]
    NoPackage {
        /// The manifest.
        manifest: PathBuf,
    },
    /// A tool of the Rust toolchain could not be started.
    #[error("failed to start `{program}`; is the Rust toolchain on the PATH?")]
    Start {
        /// What was to be run.
        program: String,
        /// Why it did not start.
        #[source]
        source: io::Error,
    },
    /// `cargo metadata` rejected the crate or its workspace.
    #[error("cargo cannot read {}:\n{output}", manifest.display())]
    Metadata {
        /// The manifest that was asked about.
        manifest: PathBuf,
        /// What cargo said.
        output: String,
    },
    /// Cargo printed something that is not in its documented form.
    #[error("cargo gave an answer in an unknown form")]
    UnknownAnswer(#[source] serde_json::Error),
    /// The compiler lacks the wasm target, and there is no rustup to add it.
    #[error(
        "the Rust compiler has no target {TARGET} and rustup is not installed; \
         install rustup, or add the standard library for {TARGET} the way your \
         distribution provides it"
    )]
    NoRustup,
    /// rustup is there but could not add the wasm target.
    #[error("failed to run `rustup target add {TARGET}`:\n{output}")]
    AddTarget {
        /// What rustup said.
        output: String,
    },
    /// The crate does not compile.
    #[error("failed to compile {name}:\n{diagnostics}")]
    Compile {
        /// The package.
        name: String,
        /// Errors and warnings as the compiler renders them, without colours.
        diagnostics: String,
    },
    /// Everything compiled, but no wasm module came out.
    #[error(
        "{name} is not a cdylib; add `[lib]` with `crate-type = [\"cdylib\", \"rlib\"]` \
         to its Cargo.toml"
    )]
    NotCdylib {
        /// The package.
        name: String,
    },
    /// The module that cargo reported could not be read.
    #[error("failed to read {}", path.display())]
    ReadModule {
        /// The module.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// What came out is not a wasm module.
    #[error("the module of {name} is malformed")]
    Malformed {
        /// The package.
        name: String,
        /// Where and why.
        #[source]
        source: wasmparser::BinaryReaderError,
    },
    /// The module does not implement the world it carries.
    #[error("failed to make a component of {name}: {reason}")]
    Encode {
        /// The package.
        name: String,
        /// The chain of reasons, outermost first.
        reason: String,
    },
    /// The component could not be written.
    #[error("failed to write {}", path.display())]
    Write {
        /// Where it was to go.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}
