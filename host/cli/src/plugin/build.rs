//! `reeve plugin build`.

use crate::output::print;
use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use reeve_agent::delivery::ZSTD_LEVEL;
use reeve_build::{Builder, PluginCrate, Profile};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Build the component of a plugin, as small as it is delivered
///
/// `cargo` compiles the crate, for a target that is added where it is missing. The
/// component is the one that `reeve test` builds for itself, to the byte.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 it is built; 2 it is not, and what the compiler said is shown.\n\n\
    Examples:\n  \
    reeve plugin build plugins/quotas\n  \
    reeve plugin build --to greeting.wasm && reeve plugin package greeting.wasm | kubectl apply -n reeve-system -f -"
)]
pub(crate) struct BuildArgs {
    /// Folder of the plugin's crate
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// File to write; by default that which `reeve test` looks for, target/plugins/NAME.wasm
    /// in the outermost folder with a Cargo.lock. A list of what it was built from is put
    /// beside it, as NAME.inputs
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

pub(crate) fn run(args: &BuildArgs) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.to
        && file.extension().is_none_or(|ending| ending != "wasm")
    {
        bail!("--to {}: name a file that ends in .wasm", file.display());
    }
    let plugin = PluginCrate::open(&args.folder)?;
    let component = Builder::new(Profile::Release).build(&plugin)?;
    // The first build of a workspace writes its lock file, by which its folder is found.
    let file = match &args.to {
        Some(file) => file.clone(),
        None => reeve_harness::component_path(plugin.folder()),
    };
    component.write_to(&file)?;
    let raw = component.bytes().len();
    let compressed = zstd::stream::encode_all(component.bytes(), ZSTD_LEVEL)
        .context("cannot compress the component")?
        .len();
    match args.output {
        Output::Text => print(format_args!(
            "built {}: {}, {} as zstd\n",
            from_here(&file).display(),
            kilobytes(raw),
            kilobytes(compressed),
        ))?,
        Output::Json => {
            let built = json!({"file": file, "bytes": raw, "zstdBytes": compressed});
            print(format_args!("{}\n", serde_json::to_string_pretty(&built)?))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The path as a person in this folder would write it.
fn from_here(path: &Path) -> &Path {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path)
}

fn kilobytes(bytes: usize) -> String {
    format!("{:.1} KB", bytes as f64 / 1000.0)
}
