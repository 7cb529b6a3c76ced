//! Runs the real kubectl.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::server::without_collecting;

/// Runs `kubectl` with `input` on its standard input and returns what it printed.
pub(crate) fn run(
    program: &Path,
    kubeconfig: &Path,
    arguments: &[impl AsRef<OsStr>],
    input: &str,
) -> Result<String> {
    let mut command = Command::new(program);
    let mut child = without_collecting(&mut command)
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        // What it has found out about a server goes with the server, and is not left at home.
        .env("KUBECACHEDIR", kubeconfig.with_extension("cache"))
        // Which are not yet for everybody.
        .env("KUBECTL_APPLYSET", "true")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    // Written aside: kubectl may print before it has read everything.
    let writer = child.stdin.take().map(|mut stdin| {
        let input = input.to_owned();
        // A kubectl that refuses its arguments never reads; its message tells.
        thread::spawn(move || drop(stdin.write_all(input.as_bytes())))
    });
    let output = child.wait_with_output()?;
    if let Some(writer) = writer {
        let _ = writer.join();
    }
    if !output.status.success() {
        let line: Vec<_> = arguments
            .iter()
            .map(|argument| argument.as_ref().to_string_lossy())
            .collect();
        bail!(
            "`kubectl {}` failed: {}",
            line.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    String::from_utf8(output.stdout).context("kubectl printed something that is no text")
}
