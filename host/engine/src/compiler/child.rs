//! The compiler's side: confine, read, compile, answer, end.

use super::{confine, wire};
use crate::compile;
use crate::config::CompileLimits;
use crate::settings;
use std::io::{self, Read, Write};
use std::process::ExitCode;

/// Compiles one component, from standard input to standard output, as
/// [`super::CompilerProgram`] asks for it. The whole of a program's `main`, or of
/// its subcommand; it must be called before anything starts a thread.
///
/// The argument is what the other side appended to the command line. Before the
/// first byte of input is read, the process gives up files, network, processes
/// and most memory, for good: see [`super::Confinement`].
#[must_use]
pub fn serve(argument: &str) -> ExitCode {
    let Some(limits) = CompileLimits::from_argument(argument) else {
        return fail("this is started by reeve itself, to compile a component");
    };
    confine::close_inherited();
    // All that wasmtime needs of the system, and nothing of the component yet.
    let engine = match wasmtime::Engine::new(&settings::compiling()) {
        Ok(engine) => engine,
        Err(error) => return fail(&format!("cannot set up wasmtime: {error:#}")),
    };
    let confinement = match confine::confine(&limits) {
        Ok(confinement) => confinement,
        Err(error) => return fail(&format!("cannot confine the compiler: {error}")),
    };
    let answered = answer(&engine, &limits, confinement);
    match answered {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("cannot talk to reeve: {error}")),
    }
}

fn answer(
    engine: &wasmtime::Engine,
    limits: &CompileLimits,
    confinement: confine::Confinement,
) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(&wire::report(confinement))?;
    output.flush()?;
    let mut bytes = Vec::new();
    let most = limits.component_bytes.saturating_add(1);
    io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    let answer = compile::compile(engine, &bytes, limits);
    drop(bytes);
    let (head, body) = wire::answer(&answer);
    output.write_all(&head)?;
    output.write_all(body)?;
    output.flush()
}

fn fail(why: &str) -> ExitCode {
    // Where nobody reads it, the exit code has to do.
    let _ = writeln!(io::stderr(), "{why}");
    ExitCode::from(2)
}
