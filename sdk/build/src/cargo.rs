//! Runs cargo and reads what it reports.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde::Deserialize;

use crate::{BuildError, PluginCrate, Profile, TARGET};

/// The profiles of this workspace, for crates elsewhere which do not have them:
/// a plugin builds the same wherever it lives. Kept equal to the root Cargo.toml
/// by a test below.
const PROFILES: &[(&str, &[&str])] = &[
    (
        "plugin",
        &[
            "inherits = \"release\"",
            "opt-level = \"s\"",
            "lto = \"fat\"",
            "codegen-units = 1",
            "panic = \"abort\"",
            "debug = false",
            "strip = true",
        ],
    ),
    (
        "plugin-dev",
        &[
            "inherits = \"plugin\"",
            "lto = \"off\"",
            "codegen-units = 16",
            "incremental = true",
            "strip = \"none\"",
        ],
    ),
];

/// Bytes for the heap of a module that are there from the start: as much as controllers of
/// ordinary objects use in a call. Until they are written they cost nothing. They are left
/// unused where the very first thing that is allocated is larger.
const INITIAL_HEAP: u32 = 128 * 1024;

/// The cargo that runs us, when one does, so that both use one toolchain.
pub(crate) fn command() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

pub(crate) fn output(command: &mut Command) -> Result<Output, BuildError> {
    command
        .output()
        .map_err(|source| not_started(command, source))
}

/// Compiles the libraries of `plugins`, which share a workspace, and returns the
/// paths of their core modules in the same order.
pub(crate) fn compile(
    plugins: &[&PluginCrate],
    profile: Profile,
    quiet: bool,
) -> Result<Vec<PathBuf>, BuildError> {
    let Some(plugin) = plugins.first() else {
        return Ok(Vec::new());
    };
    let mut build = command();
    build
        .args(["build", "--lib", "--target", TARGET])
        .args(
            plugins
                .iter()
                .flat_map(|plugin| ["--package", plugin.name()]),
        )
        .args(["--profile", profile_name(profile)])
        .args(["--message-format", "json"])
        .arg("--manifest-path")
        .arg(plugin.manifest())
        .arg("--target-dir")
        .arg(plugin.wasm_target_folder())
        .args(missing_profiles(plugin))
        .args(["--config", &initial_heap()])
        .current_dir(plugin.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(if quiet {
            Stdio::piped()
        } else {
            Stdio::inherit()
        });

    let mut child = build
        .spawn()
        .map_err(|source| not_started(&build, source))?;
    // Cargo writes its progress and its own errors to stderr; when it is
    // captured, it is drained aside so that neither pipe can fill up.
    let stderr = child.stderr.take().map(|stderr| {
        std::thread::spawn(move || std::io::read_to_string(stderr).unwrap_or_default())
    });
    let mut report = Report::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.map_err(|source| not_started(&build, source))?;
            report.read(&line, plugins);
        }
    }
    let status = child.wait().map_err(|source| not_started(&build, source))?;
    let stderr = stderr.and_then(|thread| thread.join().ok());

    if !status.success() {
        // Without diagnostics it was cargo that failed, not the compiler.
        let diagnostics = match (report.diagnostics.is_empty(), stderr) {
            (false, _) => report.diagnostics,
            (true, Some(stderr)) => stderr,
            (true, None) => "cargo failed; its message is above".to_owned(),
        };
        let names: Vec<_> = plugins.iter().map(|plugin| plugin.name()).collect();
        return Err(BuildError::Compile {
            name: names.join(", "),
            diagnostics: diagnostics.trim().to_owned(),
        });
    }
    if !quiet {
        // Only warnings are left. They come last, where they are seen; those of a
        // build that failed are in its error.
        eprint!("{}", report.diagnostics);
    }
    plugins
        .iter()
        .map(|plugin| {
            let module = report.modules.remove(&plugin.manifest());
            module.ok_or_else(|| BuildError::NotCdylib {
                name: plugin.name().to_owned(),
            })
        })
        .collect()
}

/// What cargo's messages add up to.
#[derive(Default)]
struct Report {
    diagnostics: String,
    /// By the manifest of the package.
    modules: HashMap<PathBuf, PathBuf>,
}

impl Report {
    /// Takes in one line. Lines that are no messages are what build scripts and
    /// macros printed; cargo passes them on, and nobody needs them here.
    fn read(&mut self, line: &str, plugins: &[&PluginCrate]) {
        let Ok(message) = serde_json::from_str::<Message>(line) else {
            return;
        };
        match message {
            Message::Diagnosed { message } => {
                if let Some(rendered) = message.rendered {
                    self.diagnostics.push_str(&rendered);
                }
            }
            Message::Built {
                manifest_path,
                target,
                filenames,
            } => {
                let ours = plugins
                    .iter()
                    .any(|plugin| manifest_path == plugin.manifest());
                let module = filenames
                    .into_iter()
                    .find(|file| file.extension().is_some_and(|ending| ending == "wasm"));
                if let Some(module) = module
                    && ours
                    && target.crate_types.iter().any(|kind| kind == "cdylib")
                {
                    self.modules.insert(manifest_path, module);
                }
            }
            Message::Other => {}
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "reason")]
enum Message {
    #[serde(rename = "compiler-message")]
    Diagnosed { message: Diagnostic },
    #[serde(rename = "compiler-artifact")]
    Built {
        manifest_path: PathBuf,
        target: ArtifactTarget,
        filenames: Vec<PathBuf>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Diagnostic {
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct ArtifactTarget {
    crate_types: Vec<String>,
}

fn profile_name(profile: Profile) -> &'static str {
    match profile {
        Profile::Release => "plugin",
        Profile::Dev => "plugin-dev",
    }
}

/// The `--config` value that gives a module memory for its heap from the start. An instance
/// lives for one call, and what grows the memory of each costs the host.
///
/// It joins what the author's configuration has under `build.rustflags`. Where that has flags
/// for the target, or `RUSTFLAGS` are set, cargo leaves this out, and memory grows.
fn initial_heap() -> String {
    format!("build.rustflags = [\"-Clink-arg=--initial-heap={INITIAL_HEAP}\"]")
}

/// The `--config` flags that define the profiles the crate's workspace lacks.
fn missing_profiles(plugin: &PluginCrate) -> Vec<String> {
    // An unreadable manifest has been reported by `cargo metadata` before.
    let manifest = fs::read_to_string(plugin.workspace_manifest()).unwrap_or_default();
    let mut flags = Vec::new();
    for (name, settings) in PROFILES {
        if manifest.lines().any(|line| line.trim() == header(name)) {
            continue;
        }
        for setting in *settings {
            flags.push("--config".to_owned());
            flags.push(format!("profile.{name}.{setting}"));
        }
    }
    flags
}

fn header(profile: &str) -> String {
    format!("[profile.{profile}]")
}

fn not_started(command: &Command, source: std::io::Error) -> BuildError {
    BuildError::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_equal_those_of_the_workspace() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
        let manifest = fs::read_to_string(root).unwrap();
        for (name, settings) in PROFILES {
            let section: Vec<&str> = manifest
                .lines()
                .skip_while(|line| *line != header(name))
                .skip(1)
                .take_while(|line| !line.starts_with('['))
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
                .collect();
            assert_eq!(&section, settings, "profile {name}");
        }
    }
}
