//! Where things are, and how cargo is called.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process;

/// The checkout that these commands work on.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Self {
        // Cargo says where it runs this from, which is the truth also when the
        // checkout has moved since it was compiled.
        let here = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = here.ancestors().nth(2).unwrap_or(&here);
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

    /// Cargo, in the root folder, as from a shell.
    ///
    /// What the cargo that runs these commands told them about their own package is
    /// not handed on: build scripts that look at such variables (that of ring does)
    /// would run again, with all that depends on them, whenever a person's `cargo
    /// build` and these commands take turns.
    pub(crate) fn cargo<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(arguments).current_dir(&self.root);
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(tells_of_a_package) {
                cargo.env_remove(name);
            }
        }
        cargo
    }

    /// A program in the root folder, wherever the command was given.
    pub(crate) fn program(&self, path: &Path) -> Command {
        let mut program = Command::new(path);
        program.current_dir(&self.root);
        program
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

    /// Builds the `reeve` binary and returns its path.
    pub(crate) fn build_reeve(&self) -> Result<PathBuf> {
        let messages = process::messages(&mut self.program_build("reeve"))?;
        executable_named(&messages, "reeve")
    }

    /// The build of one program.
    ///
    /// It names the whole workspace, of which it then builds this program alone: for
    /// a single package cargo would choose other features of what is below it, and
    /// compile wasmtime and much else once for that package and once for the tests.
    pub(crate) fn program_build(&self, name: &str) -> Command {
        self.cargo(["build", "--workspace", "--bin", name])
    }

    /// Fails when what the tests were built from would be built anew for `reeve`.
    pub(crate) fn check_built_once(&self) -> Result<()> {
        let messages = process::messages(&mut self.program_build("reeve"))?;
        let again: Vec<&str> = messages
            .iter()
            .filter(|message| message["fresh"] == false)
            .filter_map(|message| message["target"]["name"].as_str())
            .collect();
        if !again.is_empty() {
            bail!(
                "cargo built {} crates anew for reeve after it had built the tests: {}; \
                 compare their features in both builds with `cargo tree --edges features`",
                again.len(),
                again.join(", ")
            );
        }
        Ok(())
    }
}

/// Whether cargo sets this variable for what it runs to tell of one package. The names
/// are those in cargo's reference, "Environment variables Cargo sets for crates".
fn tells_of_a_package(variable: &str) -> bool {
    const PREFIXES: [&str; 3] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];
    const NAMES: [&str; 3] = ["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"];
    NAMES.contains(&variable) || PREFIXES.iter().any(|prefix| variable.starts_with(prefix))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_run_in_the_root_folder() {
        let workspace = Workspace::find();
        let root = Some(workspace.root());
        assert!(workspace.root().join("Cargo.lock").is_file());
        assert_eq!(workspace.cargo(["fmt"]).get_current_dir(), root);
        assert_eq!(workspace.program(Path::new("a")).get_current_dir(), root);
    }

    #[test]
    fn cargo_is_not_told_of_this_package() {
        for (variable, tells) in [
            ("CARGO_PKG_VERSION_PRE", true),
            ("CARGO_MANIFEST_DIR", true),
            ("OUT_DIR", true),
            ("CARGO", false),
            ("CARGO_HOME", false),
            ("CARGO_TARGET_DIR", false),
        ] {
            assert_eq!(tells_of_a_package(variable), tells, "{variable}");
        }
        // What runs this test has set at least this one.
        let cargo = Workspace::find().cargo(["fmt"]);
        let removed: Vec<_> = cargo
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .collect();
        assert!(
            removed
                .iter()
                .any(|(name, _)| *name == "CARGO_MANIFEST_DIR")
        );
    }
}
