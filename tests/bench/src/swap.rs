//! From a saved source to the plugin that runs, in `reeve dev` as it is started.

use crate::figure::{Figures, median};
use crate::process::{Process, reeve};
use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 9;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let folder = tempfile::tempdir()?;
    checkout(folder.path())?;
    let mut dev = Process::start(
        reeve()?
            .args(["dev", "--kubeconfig", "kubeconfig"])
            .current_dir(folder.path())
            .env("CARGO_TARGET_DIR", folder.path().join("target"))
            .stdout(Stdio::piped()),
    )?;
    let mut lines = BufReader::new(dev.output()?).lines();
    wait_for(&mut lines, "converged: ")?;
    wait_for(&mut lines, "Save a source file below ")?;

    let source = folder.path().join("plugins/quotas/src/hard.rs");
    let text = fs::read_to_string(&source)?;
    let default = "(\"pods\", \"100\")";
    ensure!(text.contains(default), "no {default} in hard.rs");
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let changed = format!("(\"pods\", \"{}\")", 200 + round);
        let begun = Instant::now();
        fs::write(&source, text.replace(default, &changed))?;
        wait_for(&mut lines, "quotas: sha256:")?;
        // The first round fills what the compiler keeps of a crate that is edited.
        if round > 0 {
            times.push(begun.elapsed().as_secs_f64());
        }
    }
    let what = "quotas, from saved to running in `reeve dev`, median";
    figures.limited(what, median(&mut times), "s", 2.0);
    Ok(())
}

/// Reads until a line begins like this.
fn wait_for(lines: &mut Lines<BufReader<ChildStdout>>, start: &str) -> Result<()> {
    let mut said = String::new();
    for line in lines {
        let line = line?;
        if line.starts_with(start) {
            return match line.ends_with("; the problem is above") {
                true => bail!("{said}{line}"),
                false => Ok(()),
            };
        }
        said.push_str(&line);
        said.push('\n');
        if line.starts_with("quotas: not ") || line.starts_with("not converged") {
            bail!("{said}");
        }
    }
    bail!("`reeve dev` ended before it said `{start}`:\n{said}")
}

/// A copy of the tree as it is, all that git knows of, so that no source of this one is
/// touched. The folder is the root of this one.
fn checkout(place: &Path) -> Result<()> {
    let listed = Command::new("git").args(["ls-files", "-z"]).output()?;
    ensure!(
        listed.status.success() && Path::new("Cargo.toml").exists(),
        "run this in the root of the repository, a git checkout"
    );
    let listed = String::from_utf8(listed.stdout)?;
    for file in listed.split_terminator('\0').map(Path::new) {
        let to = place.join(file);
        fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
        // What was deleted and not yet committed is still listed.
        if file.exists() {
            fs::copy(file, to).with_context(|| file.display().to_string())?;
        }
    }
    Ok(())
}
