//! The compiler of the engines in these tests that compile in a process.

use std::process::ExitCode;

fn main() -> ExitCode {
    let argument = std::env::args().next_back().unwrap_or_default();
    reeve_engine::compiler::serve(&argument)
}
