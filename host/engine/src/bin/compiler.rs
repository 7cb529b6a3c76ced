//! The compiler as a program of its own, for programs that embed the engine and
//! cannot be started again as one, such as tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    let argument = std::env::args().next_back().unwrap_or_default();
    reeve_engine::compiler::serve(&argument)
}
