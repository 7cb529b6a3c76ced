//! From a saved source to the plugin that runs, in `reeve dev` as it is started.

use crate::figure::{Figures, median};
use crate::process::{Process, reeve};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{ChildStdout, Stdio};
use std::time::Instant;

const ROUNDS: usize = 9;

pub(crate) fn measure(figures: &mut Figures) -> Result<()> {
    let folder = tempfile::tempdir()?;
    checkout(folder.path())?;
    let mut dev = Process::start(
        reeve()?
            .args(["dev", "--plugins", "plugins", "--kubeconfig", "kubeconfig"])
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
    anyhow::ensure!(text.contains(default), "no {default} in hard.rs");
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

/// A checkout with the SDK and quotas alone, so that no source of this one is touched. The
/// folder is the root of this one.
fn checkout(place: &Path) -> Result<()> {
    let manifest = fs::read_to_string("Cargo.toml")?;
    let (_, rest) = manifest
        .split_once("[workspace.package]")
        .context("run this in the root of the repository")?;
    let members = "[workspace]\nresolver = \"3\"\nmembers = [\"plugins/*\"]\n\n";
    fs::write(
        place.join("Cargo.toml"),
        format!("{members}[workspace.package]{rest}"),
    )?;
    for file in ["Cargo.lock", "rust-toolchain.toml"] {
        fs::copy(file, place.join(file)).context(file)?;
    }
    std::os::unix::fs::symlink(fs::canonicalize("sdk")?, place.join("sdk"))?;
    let (from, to) = (Path::new("plugins/quotas"), place.join("plugins/quotas"));
    fs::create_dir_all(to.join("src"))?;
    for file in ["Cargo.toml", "src"] {
        let from = from.join(file);
        if from.is_file() {
            fs::copy(&from, to.join(file))?;
            continue;
        }
        for entry in fs::read_dir(&from)? {
            let entry = entry?.path();
            let name = entry.file_name().context("a source has a name")?;
            fs::copy(&entry, to.join(file).join(name))?;
        }
    }
    Ok(())
}
