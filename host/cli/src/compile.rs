//! `reeve compile-component`: what `reeve` starts itself as, to compile.

use clap::Args;
use reeve_engine::{Compiler, CompilerProgram, compiler};
use std::io;
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
