//! Where things are, and how cargo is called.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// The checkout that these commands work on.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().nth(2).unwrap_or(here);
        Self {
            root: root.to_owned(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where built components are left. Always in the checkout, wherever cargo
    /// keeps its own files, so that tests and people find them.
    pub(crate) fn output(&self, folder: &str) -> PathBuf {
        self.root.join("target").join(folder)
    }

    /// Cargo, in the root folder.
    pub(crate) fn cargo<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(arguments).current_dir(&self.root);
        cargo
    }

    /// The folders directly in `folder`, by name.
    pub(crate) fn folders_in(&self, folder: &str) -> Result<Vec<PathBuf>> {
        let mut found = self.entries_in(folder)?;
        found.retain(|path| path.is_dir());
        Ok(found)
    }

    /// Everything directly in `folder`, by name; nothing when it does not exist.
    pub(crate) fn entries_in(&self, folder: &str) -> Result<Vec<PathBuf>> {
        let folder = self.root.join(folder);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| format!("cannot read {}", folder.display()))?,
        };
        let mut found = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()?;
        found.sort();
        Ok(found)
    }

    /// Builds the `reeve` binary as users of `cargo build` would, and returns its
    /// path.
    pub(crate) fn build_reeve(&self) -> Result<PathBuf> {
        let mut build = self.cargo(["build", "--package", "reeve-cli", "--bin", "reeve"]);
        let messages = process::messages(&mut build)?;
        executable_named(&messages, "reeve")
    }
}

/// The path of the program `name` among the messages of a build.
pub(crate) fn executable_named(messages: &[Value], name: &str) -> Result<PathBuf> {
    messages
        .iter()
        .filter(|message| message["target"]["name"] == name)
        .filter(|message| message["target"]["kind"][0] == "bin")
        .filter(|message| message["profile"]["test"] == false)
        .find_map(|message| message["executable"].as_str())
        .map(PathBuf::from)
        .with_context(|| format!("cargo built no program {name}"))
}
