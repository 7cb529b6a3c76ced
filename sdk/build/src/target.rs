//! Makes sure that the compiler can produce wasm.

use std::path::Path;
use std::process::{Command, Output};
use std::{env, io};

use crate::{BuildError, TARGET, cargo};

/// Adds the wasm target to the toolchain used in `folder` when it is missing.
///
/// The compiler itself is asked, not rustup: toolchains from a distribution have
/// the target without rustup knowing, or being there at all.
pub(crate) fn ensure_installed(folder: &Path) -> Result<(), BuildError> {
    if has_target(folder)? {
        return Ok(());
    }
    eprintln!("adding the target {TARGET} to the Rust toolchain");
    let added = Command::new("rustup")
        .args(["target", "add", TARGET])
        .current_dir(folder)
        .output();
    let added = match added {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(BuildError::NoRustup),
        Err(source) => {
            return Err(BuildError::Start {
                program: "rustup".to_owned(),
                source,
            });
        }
        Ok(output) => output,
    };
    // Asked again rather than trusted: rustup may have served another toolchain
    // than the one that compiles.
    if added.status.success() && has_target(folder)? {
        return Ok(());
    }
    Err(BuildError::AddTarget {
        output: both_streams(&added),
    })
}

fn has_target(folder: &Path) -> Result<bool, BuildError> {
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = cargo::output(
        Command::new(compiler)
            .args(["--print", "target-libdir", "--target", TARGET])
            .current_dir(folder),
    )?;
    let libraries = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success() && Path::new(libraries.trim()).is_dir())
}

fn both_streams(output: &Output) -> String {
    let streams = [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes));
    let texts = streams.iter().map(|text| text.trim());
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}
