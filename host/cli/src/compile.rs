//! `reeve compile-component`: what `reeve` starts itself as, to compile.

use clap::Args;
use reeve_engine::{Compiler, CompilerProgram, Engine, EngineConfig, compiler};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// The subcommand, which nobody but `reeve` has a use for.
pub(crate) const NAME: &str = "compile-component";

/// Compile one component from standard input, confined
#[derive(Args)]
pub(crate) struct CompileArgs {
    /// Limits, in a form of the engine's
    limits: String,
}

pub(crate) fn run(args: &CompileArgs) -> ExitCode {
    compiler::serve(&args.limits)
}

/// This program as the compiler of components.
pub(crate) fn program() -> io::Result<CompilerProgram> {
    CompilerProgram::this_one(NAME)
}

/// As [`program`], for an engine.
pub(crate) fn compiler() -> io::Result<Compiler> {
    program().map(Compiler::Process)
}

/// Where compiled components are kept from one command to the next.
#[derive(Args, Clone, Debug)]
pub(crate) struct CacheArgs {
    /// Folder for compiled components; without it they are compiled each time. It must be
    /// writable by nobody else
    #[arg(long, env = "REEVE_CACHE", value_name = "FOLDER")]
    pub(crate) cache: Option<PathBuf>,
}

impl CacheArgs {
    /// An engine with the usual limits.
    pub(crate) fn engine(&self) -> anyhow::Result<Engine> {
        Ok(Engine::new(EngineConfig {
            cache: self.cache.clone(),
            ..EngineConfig::new(compiler()?)
        })?)
    }
}
