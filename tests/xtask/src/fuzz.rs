//! `cargo xtask fuzz`: looks for inputs that break what must hold of all.
//!
//! The targets and their checked-in inputs are in `tests/fuzz`; `cargo xtask test`
//! replays those inputs without any of this.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{process, tools};

/// libFuzzer is linked by flags that only this toolchain is tried with.
const TOOLCHAIN: &str = "nightly";

/// An input that keeps a target busy for longer is a finding.
const SLOWEST: Duration = Duration::from_secs(10);

/// Longer inputs find little that shorter ones do not, slowly.
const LONGEST: usize = 4096;

/// What a component has around its code is more than that: types, imports and exports of
/// one that is built with the SDK take 6 KiB. Ten times as much leaves room for several
/// in each other, and for some code; whole plugins are larger, and far too slow.
const LONGEST_COMPONENT: usize = 64 << 10;

/// Bytes of the inputs of one target that are checked in, which `tests/fuzz/tests/replay.rs`
/// holds them to: some hundred small files each, which a checkout still bears.
const CHECKED_IN: u64 = 16 << 10;

/// How the names of inputs begin that were found. Those that somebody wrote, or that once
/// failed, are called otherwise, and stay.
const FOUND: &str = "found-";

/// Fuzzes one target, or each in turn, for so many seconds each.
///
/// # Errors
///
/// When an input fails; what is printed above names the file that holds it.
pub(crate) fn look(workspace: &Workspace, target: Option<&str>, seconds: u64) -> Result<()> {
    each(workspace, target, |fuzzer| fuzzer.look(seconds))
}

/// Checks in what was found for one target, or for each: beside the inputs that have
/// names, the smallest of those that reach more of the code.
///
/// # Errors
///
/// When a program fails, or files cannot be read or written.
pub(crate) fn keep(workspace: &Workspace, target: Option<&str>) -> Result<()> {
    each(workspace, target, |fuzzer| fuzzer.keep())
}

fn each(
    workspace: &Workspace,
    target: Option<&str>,
    work: impl Fn(&Fuzzer<'_>) -> Result<()>,
) -> Result<()> {
    let all = targets(workspace)?;
    let chosen: Vec<&str> = match target {
        None => all.iter().map(String::as_str).collect(),
        Some(name) if all.iter().any(|target| target == name) => vec![name],
        Some(name) => bail!("there is no target {name}; there are {}", all.join(", ")),
    };
    if !process::is_there_with("rustup", &["run", TOOLCHAIN, "rustc", "--version"]) {
        bail!(
            "fuzzing needs a nightly toolchain beside the pinned one; install it with \
             `rustup toolchain install {TOOLCHAIN} --profile minimal`"
        );
    }
    let cargo_fuzz = tools::cargo_fuzz(workspace)?;
    for target in chosen {
        work(&Fuzzer {
            workspace,
            cargo_fuzz: &cargo_fuzz,
            target,
        })?;
    }
    Ok(())
}

/// What there is to fuzz one target with.
struct Fuzzer<'a> {
    workspace: &'a Workspace,
    cargo_fuzz: &'a Path,
    target: &'a str,
}

impl Fuzzer<'_> {
    fn look(&self, seconds: u64) -> Result<()> {
        let target = self.target;
        eprintln!("fuzzing {target} for {seconds} s");
        // What is found goes to the first folder, the others are only read.
        let folders = [self.found()?, self.checked_in()];
        let time = format!("-max_total_time={seconds}");
        process::run(&mut self.command(&folders, &time)?).with_context(|| {
            format!(
                "{target} fails on an input, now in {}; add it to tests/fuzz/corpus/{target}, \
                 where `cargo test --package reeve-fuzz` runs it, and mend what is wrong",
                self.folder("failed").display()
            )
        })
    }

    fn keep(&self) -> Result<()> {
        let target = self.target;
        let merged = self.folder("merged");
        if merged.exists() {
            fs::remove_dir_all(&merged)?;
        }
        fs::create_dir_all(&merged)?;
        let (old, named): (Vec<_>, Vec<_>) = self
            .inputs(&self.checked_in())?
            .into_iter()
            .partition(|input| input.name().starts_with(FOUND));
        for input in &named {
            fs::copy(&input.path, merged.join(input.name()))?;
        }
        // What is in the first folder stays, and of the others only that is added which
        // reaches more.
        let folders = [merged.clone(), self.found()?, self.checked_in()];
        process::run(&mut self.command(&folders, "-merge=1")?)
            .with_context(|| format!("what was found for {target} cannot be merged"))?;
        let mut new = self.inputs(&merged)?;
        new.retain(|input| named.iter().all(|named| named.name() != input.name()));
        let (reaching, taken) = (new.len(), named.iter().map(|named| named.bytes).sum());
        let kept = smallest(new, CHECKED_IN.saturating_sub(taken));
        for input in old {
            fs::remove_file(&input.path)?;
        }
        for (input, digest) in kept.iter().zip(digests(&kept)?) {
            let name = format!("{FOUND}{}", digest.get(..12).unwrap_or(&digest));
            fs::copy(&input.path, self.checked_in().join(name))?;
        }
        eprintln!(
            "{target}: beside {} inputs that have names, {reaching} reach more; {} are kept",
            named.len(),
            kept.len()
        );
        Ok(())
    }

    /// libFuzzer with these folders of inputs, which is told what to do with them.
    fn command(&self, folders: &[PathBuf], what: &str) -> Result<Command> {
        let failed = made(self.folder("failed"))?;
        let longest = match self.target {
            "components" => LONGEST_COMPONENT,
            _ => LONGEST,
        };
        let mut fuzz = Command::new(self.cargo_fuzz);
        fuzz.current_dir(self.workspace.root())
            .env("RUSTUP_TOOLCHAIN", TOOLCHAIN)
            .args(["fuzz", "run", "--fuzz-dir", "tests/fuzz"])
            .args(["--features", "libfuzzer"])
            // They look into unsafe code, of which there is none; without, more inputs
            // are tried.
            .args(["--sanitizer", "none"])
            .arg("--target-dir")
            .arg(self.workspace.output("fuzz").join("target"))
            .arg(self.target)
            .args(folders)
            .args(["--", what])
            .arg(format!("-timeout={}", SLOWEST.as_secs()))
            .arg(format!("-max_len={longest}"))
            .arg(format!("-artifact_prefix={}/", failed.display()));
        Ok(fuzz)
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.workspace.output("fuzz").join(name).join(self.target)
    }

    fn found(&self) -> Result<PathBuf> {
        made(self.folder("corpus"))
    }

    fn checked_in(&self) -> PathBuf {
        let corpus = self.workspace.root().join("tests/fuzz/corpus");
        corpus.join(self.target)
    }

    fn inputs(&self, folder: &Path) -> Result<Vec<Input>> {
        let entries = self.workspace.entries_in(&folder.to_string_lossy())?;
        let inputs = entries.into_iter().map(|path| {
            let bytes = path.metadata()?.len();
            Ok(Input { path, bytes })
        });
        inputs.collect()
    }
}

/// A file that holds an input.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Input {
    path: PathBuf,
    bytes: u64,
}

impl Input {
    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// As many of these as there is room for, the smallest first.
fn smallest(mut inputs: Vec<Input>, room: u64) -> Vec<Input> {
    inputs.sort_by_key(|input| (input.bytes, input.path.clone()));
    let mut bytes = 0;
    let fits = inputs.into_iter().take_while(|input| {
        bytes += input.bytes;
        bytes <= room
    });
    fits.collect()
}

/// The SHA-256 of each of these, in hexadecimal digits.
fn digests(inputs: &[Input]) -> Result<Vec<String>> {
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = Command::new("sha256sum");
    command.args(inputs.iter().map(|input| &input.path));
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("cannot start sha256sum")?;
    if !output.status.success() {
        bail!("sha256sum ended with {}", output.status);
    }
    let text = String::from_utf8(output.stdout)?;
    let digests = text.lines().filter_map(|line| line.split(' ').next());
    Ok(digests.map(str::to_owned).collect())
}

/// A folder that is there from now on.
fn made(folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// The names of the programs.
fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let sources = workspace.entries_in("tests/fuzz/targets")?;
    let names = sources.iter().filter_map(|path| path.file_stem()?.to_str());
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_targets_that_are_there_are_fuzzed() {
        let workspace = Workspace::find();
        let targets = targets(&workspace).unwrap();
        assert!(targets.contains(&"fields_v1".to_owned()), "{targets:?}");
        let error = look(&workspace, Some("nothing"), 1).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("there is no target nothing; there are components, "),
            "{error}"
        );
    }

    #[test]
    fn every_target_has_a_corpus() {
        let workspace = Workspace::find();
        for target in targets(&workspace).unwrap() {
            let inputs = workspace.entries_in(&format!("tests/fuzz/corpus/{target}"));
            assert!(!inputs.unwrap().is_empty(), "{target}");
        }
    }

    #[test]
    fn the_smallest_inputs_are_kept_that_fit() {
        let input = |name: &str, bytes| Input {
            path: name.into(),
            bytes,
        };
        let inputs = || vec![input("d", 3), input("c", 1), input("a", 5), input("b", 1)];
        for (room, kept) in [
            (0, &[][..]),
            (1, &["b"]),
            (4, &["b", "c"]),
            (5, &["b", "c", "d"]),
            (9, &["b", "c", "d"]),
            (10, &["b", "c", "d", "a"]),
            (u64::MAX, &["b", "c", "d", "a"]),
        ] {
            let found = smallest(inputs(), room);
            let found: Vec<String> = found.iter().map(Input::name).collect();
            assert_eq!(found, kept, "{room}");
        }
    }

    #[test]
    fn corpora_of_all_targets_have_room_together() {
        let targets = targets(&Workspace::find()).unwrap().len() as u64;
        assert!(targets * CHECKED_IN <= 1 << 20, "let each have less");
    }

    #[test]
    fn inputs_are_known_by_their_digests() {
        let folder = tempfile::tempdir().unwrap();
        let input = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            Input { path, bytes: 0 }
        };
        let found = digests(&[input("one", ""), input("two", "abc")]).unwrap();
        let starts: Vec<&str> = found.iter().map(|digest| &digest[..12]).collect();
        assert_eq!(starts, ["e3b0c44298fc", "ba7816bf8f01"]);
        assert_eq!(digests(&[]).unwrap(), [""; 0]);
    }
}
