//! `cargo xtask fuzz`: looks for inputs that break what must hold of all.
//!
//! The targets and their checked-in inputs are in `tests/fuzz`; `cargo xtask test`
//! replays those inputs without any of this.

use std::fs;
use std::path::Path;
use std::process::Command;
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

/// Fuzzes one target, or each in turn, for so many seconds each.
///
/// # Errors
///
/// When an input fails; what is printed above names the file that holds it.
pub(crate) fn run(workspace: &Workspace, target: Option<&str>, seconds: u64) -> Result<()> {
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
        fuzz(workspace, &cargo_fuzz, target, seconds)?;
    }
    Ok(())
}

fn fuzz(workspace: &Workspace, cargo_fuzz: &Path, target: &str, seconds: u64) -> Result<()> {
    eprintln!("fuzzing {target} for {seconds} s");
    let output = workspace.output("fuzz");
    let found = output.join("corpus").join(target);
    let failed = output.join("failed").join(target);
    for folder in [&found, &failed] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut fuzz = Command::new(cargo_fuzz);
    fuzz.current_dir(workspace.root())
        .env("RUSTUP_TOOLCHAIN", TOOLCHAIN)
        .args(["fuzz", "run", "--fuzz-dir", "tests/fuzz"])
        .args(["--features", "libfuzzer"])
        // They look into unsafe code, of which there is none; without, more inputs
        // are tried.
        .args(["--sanitizer", "none"])
        .arg("--target-dir")
        .arg(output.join("target"))
        .arg(target)
        // What is found goes to the first folder, the others are only read.
        .arg(&found)
        .arg(Path::new("tests/fuzz/corpus").join(target))
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={}", SLOWEST.as_secs()))
        .arg(format!("-max_len={LONGEST}"))
        .arg(format!("-artifact_prefix={}/", failed.display()));
    process::run(&mut fuzz).with_context(|| {
        format!(
            "{target} fails on an input, now in {}; add it to tests/fuzz/corpus/{target}, \
             where `cargo test --package reeve-fuzz` runs it, and mend what is wrong",
            failed.display()
        )
    })
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
        let error = run(&workspace, Some("nothing"), 1).unwrap_err();
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
}
