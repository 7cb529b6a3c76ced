//! The agent's side: start a compiler, feed it, listen to it, end it.

use super::CompilerProgram;
use super::confine::Confinement;
use super::wire::{self, Answer};
use crate::config::CompileLimits;
use crate::load::LoadError;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// How often somebody looks whether anybody still wants the result.
const LOOK: Duration = Duration::from_millis(50);

/// What is kept of the last words of a compiler that failed.
const LAST_WORDS: u64 = 4 << 10;

/// How much of them goes into a message, which is one line.
const SHOWN: usize = 300;

/// What a compiler said and how it ended.
struct Ended {
    heard: io::Result<(Confinement, Answer)>,
    /// None when it was ended because it had said everything.
    status: Option<ExitStatus>,
    last_words: String,
}

/// Starts a compiler on nothing, to see whether it can be started at all, and what
/// confines it.
///
/// # Errors
///
/// When it cannot be started or does not answer, with what it said instead.
pub(crate) fn probe(program: &CompilerProgram, limits: &CompileLimits) -> io::Result<Confinement> {
    /// It has nothing to do, but the machine may be busy.
    const PATIENCE: Duration = Duration::from_secs(30);
    let limits = CompileLimits {
        time: PATIENCE,
        ..limits.clone()
    };
    match run(program, &[], &limits, &|| false)? {
        None => Err(ErrorKind::TimedOut.into()),
        Some(ended) => ended
            .heard
            .map(|(confinement, _)| confinement)
            .map_err(|_| io::Error::other(how_it_ended(ended.status, &ended.last_words))),
    }
}

/// Compiles a component in a process of its own.
///
/// # Errors
///
/// When the component cannot be compiled within the limits, or the compiler fails
/// for whatever reason, or `unwanted` says that nobody waits any more.
pub(crate) fn compile(
    program: &CompilerProgram,
    bytes: &[u8],
    limits: &CompileLimits,
    unwanted: &(dyn Fn() -> bool + Sync),
) -> Answer {
    let ended = run(program, bytes, limits, unwanted).map_err(|error| LoadError::Interrupted {
        reason: format!("cannot start the compiler: {error}"),
    })?;
    let Some(ended) = ended else {
        return Err(if unwanted() {
            LoadError::Interrupted {
                reason: "nobody waits for it any more".to_owned(),
            }
        } else {
            LoadError::CompileTimeout { limit: limits.time }
        });
    };
    match ended.heard {
        Ok((_, answer)) => answer,
        Err(_) => Err(failure(ended.status, &ended.last_words, limits)),
    }
}

/// Runs a compiler to its answer or its end. None when it took too long, or longer
/// than anybody wanted it.
fn run(
    program: &CompilerProgram,
    bytes: &[u8],
    limits: &CompileLimits,
    unwanted: &(dyn Fn() -> bool + Sync),
) -> io::Result<Option<Ended>> {
    let mut child = Command::new(&program.path)
        .args(&program.arguments)
        .arg(limits.to_argument())
        .env_clear()
        .current_dir("/")
        // What a person types at the terminal is not meant for it.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        end(&mut child)?;
        return Err(ErrorKind::BrokenPipe.into());
    };
    thread::scope(|scope| {
        let (said, hears) = mpsc::channel();
        let threads = || -> io::Result<ScopedJoinHandle<'_, String>> {
            let name = |what: &str| thread::Builder::new().name(format!("reeve-{what}"));
            name("compile-in").spawn_scoped(scope, move || feed(stdin, bytes))?;
            name("compile-out").spawn_scoped(scope, move || {
                // The other end is gone when nobody waits any more.
                let _ = said.send(listen(stdout));
            })?;
            name("compile-err").spawn_scoped(scope, move || last_words(stderr))
        };
        let words = match threads() {
            Ok(words) => words,
            Err(error) => {
                // The threads that did start end with the pipes.
                end(&mut child)?;
                return Err(error);
            }
        };
        let deadline = Instant::now().checked_add(limits.time);
        let heard = loop {
            let left = deadline.map_or(LOOK, |at| at.saturating_duration_since(Instant::now()));
            match hears.recv_timeout(left.min(LOOK)) {
                Ok(heard) => break heard,
                Err(RecvTimeoutError::Disconnected) => break Err(ErrorKind::BrokenPipe.into()),
                Err(RecvTimeoutError::Timeout) => {
                    if unwanted() || deadline.is_some_and(|at| Instant::now() >= at) {
                        end(&mut child)?;
                        return Ok(None);
                    }
                }
            }
        };
        // Silence means that it ended or is about to; it has no other way to close
        // its end, and if it found one, it is ended all the same.
        let status = match &heard {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Some(wait(&mut child)?),
            _ => {
                end(&mut child)?;
                None
            }
        };
        let last_words = words.join().unwrap_or_default();
        Ok(Some(Ended {
            heard,
            status,
            last_words,
        }))
    })
}

/// Errors mean that it did not want to hear more, which it explains itself.
fn feed(mut stdin: ChildStdin, bytes: &[u8]) {
    let _ = stdin.write_all(bytes);
}

fn listen(mut stdout: ChildStdout) -> io::Result<(Confinement, Answer)> {
    let confinement = wire::read_report(&mut stdout)?;
    let answer = wire::read_answer(&mut stdout)?;
    Ok((confinement, answer))
}

fn last_words(mut stderr: ChildStderr) -> String {
    let mut words = Vec::new();
    let _ = (&mut stderr).take(LAST_WORDS).read_to_end(&mut words);
    // Whatever else it says must not fill the pipe and hold it up.
    let _ = io::copy(&mut stderr, &mut io::sink());
    String::from_utf8_lossy(&words).into_owned()
}

/// Ends a compiler, with whatever it may have started, and forgets it. No zombie
/// stays behind.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    // It may have ended by itself; its number is its own until it is waited for.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait()
}

/// Waits a moment for a compiler that is about to end.
fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let deadline = Instant::now() + 20 * LOOK;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            return end(child);
        }
        thread::sleep(LOOK / 50);
    }
}

/// What it means that a compiler ended without an answer.
fn failure(status: Option<ExitStatus>, last_words: &str, limits: &CompileLimits) -> LoadError {
    let signal = status.and_then(|status| status.signal());
    match signal {
        // How Rust ends a process that gets no memory.
        Some(libc::SIGABRT) if last_words.contains("memory allocation of ") => {
            LoadError::CompileMemory {
                limit: limits.memory_bytes,
            }
        }
        Some(libc::SIGXCPU) => LoadError::CompileTimeout { limit: limits.time },
        // Nobody here did that: the kernel was out of memory.
        Some(libc::SIGKILL) => LoadError::Interrupted {
            reason: "the compiler was killed, most likely because this machine, or the pod, has no memory left; give the pod more".to_owned(),
        },
        _ => LoadError::CompilerCrashed {
            how: how_it_ended(status, last_words),
        },
    }
}

/// `it ended with signal 11 (SIGSEGV): words`.
fn how_it_ended(status: Option<ExitStatus>, last_words: &str) -> String {
    let how = match status {
        None => "it said something that reeve does not understand".to_owned(),
        Some(status) => match (status.signal(), status.code()) {
            (Some(libc::SIGSYS), _) => {
                "it asked the system for something that compiling does not need".to_owned()
            }
            (Some(signal), _) => format!("it was ended by signal {signal}{}", name(signal)),
            (_, Some(code)) => format!("it ended with code {code}"),
            _ => "it ended".to_owned(),
        },
    };
    match one_line(last_words) {
        words if words.is_empty() => how,
        words => format!("{how}: {words}"),
    }
}

fn name(signal: i32) -> &'static str {
    match signal {
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGILL => " (SIGILL)",
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGTRAP => " (SIGTRAP)",
        _ => "",
    }
}

/// The start of what a compiler said, fit for a condition.
fn one_line(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut line: String = words
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(SHOWN + 1)
        .collect();
    if line.chars().count() > SHOWN {
        line.pop();
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> CompileLimits {
        CompileLimits {
            time: Duration::from_secs(5),
            ..CompileLimits::default()
        }
    }

    /// What becomes of a component when this shell script compiles it.
    fn compiled_by(script: &str, limits: &CompileLimits) -> Answer {
        let program = CompilerProgram::new("/bin/sh", ["-c", script]);
        // More than a pipe holds, so that a compiler that does not listen is met.
        compile(&program, &[0; 1 << 20], limits, &|| false)
    }

    #[test]
    fn a_compiler_that_fails_is_described() {
        const HELLO: &str = r"printf 'R\0\0';";
        for (script, expected) in [
            (
                "exit 3",
                "the compiler crashed on the component: it ended with code 3; it may have been built to do that, otherwise this is a bug of wasmtime",
            ),
            (
                "cat >/dev/null; echo one  two >&2; kill -SEGV $$",
                "the compiler crashed on the component: it was ended by signal 11 (SIGSEGV): one two; it may have been built to do that, otherwise this is a bug of wasmtime",
            ),
            (
                "kill -SYS $$",
                "the compiler crashed on the component: it asked the system for something that compiling does not need; it may have been built to do that, otherwise this is a bug of wasmtime",
            ),
            (
                "echo memory allocation of 16 bytes failed >&2; kill -ABRT $$",
                "compiling the component takes more than 512 MiB of memory; make it smaller, or raise the limit",
            ),
            (
                "kill -XCPU $$",
                "compiling the component takes longer than 5 s; make it smaller, or raise the limit",
            ),
            (
                "kill -KILL $$",
                "loading the component was interrupted: the compiler was killed, most likely because this machine, or the pod, has no memory left; give the pod more",
            ),
            (
                "cat >/dev/null; echo nonsense; sleep 100",
                "the compiler crashed on the component: it said something that reeve does not understand; it may have been built to do that, otherwise this is a bug of wasmtime",
            ),
            // It ends although it has half of an answer.
            (
                r"printf 'R\0\0A\4\0\0\0\0\0\0\0cod'; exit 0",
                "the compiler crashed on the component: it ended with code 0; it may have been built to do that, otherwise this is a bug of wasmtime",
            ),
        ] {
            let error = compiled_by(script, &limits()).unwrap_err();
            assert_eq!(error.to_string(), expected, "{script}");
        }
        let answer = compiled_by(
            &format!(r"{HELLO} printf 'A\4\0\0\0\0\0\0\0code'; sleep 100"),
            &limits(),
        );
        assert_eq!(answer.unwrap(), b"code");
    }

    /// No environment of ours, and no folder.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_compiler_is_given_nothing() {
        assert!(std::env::vars_os().count() > 0);
        let script = "cat >/dev/null; echo \"[$(cat /proc/$$/environ)] in $(pwd -P)\" >&2; exit 3";
        let error = compiled_by(script, &limits()).unwrap_err().to_string();
        assert!(error.contains("it ended with code 3: [] in /;"), "{error}");
    }

    #[test]
    fn a_compiler_that_does_not_end_is_ended() {
        let short = CompileLimits {
            time: Duration::from_millis(100),
            ..CompileLimits::default()
        };
        for script in [
            "sleep 1000",
            // It closes its end and goes on.
            "exec >&-; sleep 1000",
            // It talks for ever.
            "while :; do echo; done >&2",
        ] {
            let before = Instant::now();
            assert!(compiled_by(script, &short).is_err(), "{script}");
            assert!(before.elapsed() < Duration::from_secs(20), "{script}");
        }
    }

    #[test]
    fn a_compiler_that_nobody_waits_for_is_ended() {
        let program = CompilerProgram::new("/bin/sh", ["-c", "sleep 1000"]);
        let error = compile(&program, &[], &limits(), &|| true).unwrap_err();
        assert!(error.retries());
        assert_eq!(
            error.to_string(),
            "loading the component was interrupted: nobody waits for it any more"
        );
    }

    #[test]
    fn a_compiler_that_is_not_there_is_an_error_of_the_system() {
        let program = CompilerProgram::new("/nowhere/compiler", [""; 0]);
        let error = compile(&program, &[], &limits(), &|| false).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("loading the component was interrupted: cannot start the compiler: "),
            "{text}"
        );
        assert!(error.retries());
        assert!(probe(&program, &limits()).is_err());
    }
}
