//! Tools that are installed once, into the user's cache folder.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::process;
use crate::workspace::Workspace;

/// Pinned, so that a new release does not change what passes.
const CARGO_DENY: &str = "0.20.2";

/// The path of cargo-deny: the one on the PATH, of whatever version, or ours,
/// which is built when it is absent.
pub(crate) fn cargo_deny(workspace: &Workspace) -> Result<PathBuf> {
    if process::is_there("cargo-deny", "--version") {
        return Ok("cargo-deny".into());
    }
    let root = cache_folder()?.join(format!("cargo-deny-{CARGO_DENY}"));
    let program = root.join("bin").join("cargo-deny");
    if process::is_there(&program, "--version") {
        return Ok(program);
    }
    eprintln!("installing cargo-deny {CARGO_DENY}, once; this takes some minutes");
    let mut install = workspace.cargo(["install", "cargo-deny", "--locked"]);
    install
        .args(["--version", CARGO_DENY])
        .arg("--root")
        .arg(&root)
        // The checkout's own target folder is not cluttered with it.
        .env_remove("CARGO_TARGET_DIR");
    process::run(&mut install)?;
    Ok(program)
}

fn cache_folder() -> Result<PathBuf> {
    let cache = match env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(cache) => PathBuf::from(cache),
        None => env::home_dir()
            .context("no home folder to install tools in; set XDG_CACHE_HOME")?
            .join(".cache"),
    };
    Ok(cache.join("reeve").join("tools"))
}
