//! Running other programs.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use serde_json::Value;

/// How often a step that prints nothing itself shows that it is at work.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

/// How often to look whether a program has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a program that shows its own progress; fails when it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", name(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", name(command));
    }
    Ok(())
}

/// Runs cargo with its messages as JSON and returns those that are. Progress and
/// what the compiler says go to stderr.
pub(crate) fn messages(cargo: &mut Command) -> Result<Vec<Value>> {
    messages_with(cargo, &[])
}

/// The same for `cargo rustc`, with what it tells the compiler besides.
pub(crate) fn messages_with(cargo: &mut Command, compiler: &[&str]) -> Result<Vec<Value>> {
    cargo
        .args(["--message-format", "json-render-diagnostics"])
        .stdout(Stdio::piped());
    if !compiler.is_empty() {
        cargo.arg("--").args(compiler);
    }
    let mut child = cargo.spawn().context("cannot start cargo")?;
    let mut messages = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            messages.extend(serde_json::from_str(&line?));
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("the build failed ({status})");
    }
    Ok(messages)
}

/// How a captured program ended.
pub(crate) struct Captured {
    /// Everything it printed, both streams as they came.
    pub(crate) output: String,
    /// Why it did not end well.
    pub(crate) failure: Option<String>,
}

/// Runs a program with its output in the file `log`, and kills it after `limit`:
/// one test that hangs must not hide what the others found.
pub(crate) fn capture(
    command: &mut Command,
    what: &str,
    log: &Path,
    limit: Duration,
) -> Result<Captured> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("cannot start {}", name(command)))?;
    let started = Instant::now();
    let mut next_sign = SIGN_OF_LIFE;
    let failure = loop {
        if let Some(status) = child.try_wait()? {
            break (!status.success()).then(|| status.to_string());
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break Some(format!("killed after {} minutes", limit.as_secs() / 60));
        }
        if started.elapsed() >= next_sign {
            eprintln!("  {what} is still running after {} s", next_sign.as_secs());
            next_sign += SIGN_OF_LIFE;
        }
        thread::sleep(LOOK);
    };
    let output = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    Ok(Captured { output, failure })
}

/// Replaces this process by that of a command; returns only to say why that failed.
pub(crate) fn become_program(command: &mut Command) -> Error {
    let error = command.exec();
    Error::new(error).context(format!("cannot start {}", name(command)))
}

/// Whether `program` can be started at all.
pub(crate) fn is_there(program: impl AsRef<OsStr>, argument: &str) -> bool {
    is_there_with(program, &[argument])
}

/// Whether `program` can be started with these arguments and ends well.
pub(crate) fn is_there_with(program: impl AsRef<OsStr>, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn name(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    // Enough to recognise it: `cargo clippy`, not twelve flags.
    words.extend(command.get_args().take(1).map(OsStr::to_string_lossy));
    if let Some(program) = words.first_mut()
        && let Some(base) = Path::new(program.as_ref()).file_name()
    {
        *program = base.to_string_lossy().into_owned().into();
    }
    words.join(" ")
}
