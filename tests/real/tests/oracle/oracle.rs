//! The Go program that knows the answers.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use reeve_real::parts::SSA;
use serde_json::{Map, Value};

use crate::kinds::Kind;

/// A running program; it ends when it is dropped.
pub(crate) struct Oracle {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    folder: Option<PathBuf>,
    definitions: Value,
}

impl Oracle {
    pub(crate) fn start(kinds: &[Kind], folder: Option<&Path>) -> Result<Self> {
        let definitions: Map<String, Value> = kinds
            .iter()
            .filter(|_| folder.is_none())
            .map(|kind| (kind.name.clone(), kind.definition()))
            .collect();
        Self::start_with(definitions.into(), folder.map(Path::to_owned))
    }

    fn start_with(definitions: Value, folder: Option<PathBuf>) -> Result<Self> {
        let mut child = Command::new(SSA.get()?.join("oracle"))
            .args(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It complains of each update that does not fit its type.
            .stderr(Stdio::null())
            .spawn()?;
        let mut oracle = Self {
            requests: child.stdin.take().context("no input")?,
            answers: BufReader::new(child.stdout.take().context("no output")?),
            child,
            folder,
            definitions,
        };
        writeln!(oracle.requests, "{}", oracle.definitions)?;
        Ok(oracle)
    }

    /// The answer to one request.
    pub(crate) fn ask(&mut self, request: &Value) -> Result<Value> {
        writeln!(self.requests, "{request}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the oracle has no answer to {request}");
        Ok(serde_json::from_str(&line)?)
    }

    /// Another one in the place of one that ended.
    pub(crate) fn restart(&mut self) -> Result<()> {
        let next = Self::start_with(self.definitions.clone(), self.folder.clone())?;
        drop(std::mem::replace(self, next));
        Ok(())
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It may have ended itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
