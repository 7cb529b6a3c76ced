//! Plugins and test guests, built into components.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use reeve_build::{Builder, PluginCrate, Profile};

use crate::workspace::Workspace;

/// The level at which a component is compressed for delivery: zstd's highest that
/// needs no more memory to unpack.
const ZSTD_LEVEL: i32 = 19;

/// Builds each folder of `plugins/` to target/plugins/<name>.wasm.
pub(crate) fn build_plugins(workspace: &Workspace) -> Result<()> {
    build_folder(workspace, "plugins", &workspace.output("plugins"))
}

/// Builds each guest of the tests to target/guests/<name>.wasm.
///
/// A guest is a crate, or a file with a component or module as text, which is
/// copied as it is.
pub(crate) fn build_guests(workspace: &Workspace) -> Result<()> {
    build_folder(workspace, "tests/guests", &workspace.output("guests"))
}

fn build_folder(workspace: &Workspace, folder: &str, output: &Path) -> Result<()> {
    let sources = workspace.entries_in(folder)?;
    if sources.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(output).with_context(|| format!("cannot make {}", output.display()))?;

    let started = Instant::now();
    let mut built = Vec::new();
    let mut crates = Vec::new();
    let mut destinations = Vec::new();
    for source in &sources {
        let Some(name) = source.file_stem().and_then(|name| name.to_str()) else {
            bail!("{} has no usable name", source.display());
        };
        if source.join("Cargo.toml").is_file() {
            crates.push(PluginCrate::open(source)?);
            destinations.push(output.join(name).with_extension("wasm"));
        } else if is_text_module(source) {
            let destination = output.join(name).with_extension("wat");
            fs::copy(source, &destination)
                .with_context(|| format!("cannot write {}", destination.display()))?;
            built.push(Built::measure(&destination)?);
        }
        // Everything else is notes beside the guests, or folders that share code.
    }
    // In one go: cargo then compiles them side by side.
    let components = Builder::new(Profile::Release).build_all(&crates)?;
    for (component, destination) in components.iter().zip(&destinations) {
        component.write_to(destination)?;
        built.push(Built::measure(destination)?);
    }
    built.sort_by(|a, b| a.path.cmp(&b.path));
    remove_others(output, &built)?;
    print_table(workspace, &built);
    println!("built in {:.1} s", started.elapsed().as_secs_f32());
    Ok(())
}

fn is_text_module(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "wat")
}

/// Deletes what was built from a source that is gone: a test must not pass
/// because of it.
fn remove_others(output: &Path, built: &[Built]) -> Result<()> {
    for entry in fs::read_dir(output)? {
        let path = entry?.path();
        let beside = path.extension().is_some_and(|ending| ending == "inputs");
        let of = match beside {
            true => path.with_extension("wasm"),
            false => path.clone(),
        };
        if !built.iter().any(|built| built.path == of) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

struct Built {
    path: PathBuf,
    raw: usize,
    compressed: usize,
}

impl Built {
    fn measure(path: &Path) -> Result<Self> {
        let bytes = fs::read(path)?;
        Ok(Self {
            path: path.to_owned(),
            raw: bytes.len(),
            compressed: zstd::bulk::compress(&bytes, ZSTD_LEVEL)?.len(),
        })
    }
}

fn print_table(workspace: &Workspace, built: &[Built]) {
    let name = |built: &Built| {
        let path = built.path.strip_prefix(workspace.root());
        path.unwrap_or(&built.path).display().to_string()
    };
    let width = built.iter().map(|built| name(built).len()).max();
    let width = width.unwrap_or_default();
    println!("{:width$}  {:>10} {:>10}", "component", "raw", "zstd");
    for row in built {
        println!(
            "{:width$}  {:>7.1} KB {:>7.1} KB",
            name(row),
            row.raw as f64 / 1000.0,
            row.compressed as f64 / 1000.0
        );
    }
}
