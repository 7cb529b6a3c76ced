//! Tools that are installed once, into the user's cache folder.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::process;
use crate::workspace::Workspace;

/// Pinned, so that a new release does not change what passes.
const CARGO_DENY: &str = "0.20.2";
const CARGO_FUZZ: &str = "0.13.2";

/// The path of cargo-deny: the one on the PATH, of whatever version, or ours,
/// which is built when it is absent.
pub(crate) fn cargo_deny(workspace: &Workspace) -> Result<PathBuf> {
    get(workspace, "cargo-deny", CARGO_DENY)
}

/// The path of cargo-fuzz, as [`cargo_deny`].
pub(crate) fn cargo_fuzz(workspace: &Workspace) -> Result<PathBuf> {
    get(workspace, "cargo-fuzz", CARGO_FUZZ)
}

fn get(workspace: &Workspace, name: &str, version: &str) -> Result<PathBuf> {
    if process::is_there(name, "--version") {
        return Ok(name.into());
    }
    let root = cache_folder()?.join(format!("{name}-{version}"));
    let program = root.join("bin").join(name);
    if process::is_there(&program, "--version") {
        return Ok(program);
    }
    eprintln!("installing {name} {version}, once; this takes some minutes");
    let mut install = workspace.cargo(["install", name, "--locked"]);
    install
        .args(["--version", version])
        .arg("--root")
        .arg(&root)
        // The checkout's own target folder is not cluttered with it.
        .env_remove("CARGO_TARGET_DIR")
        // They run for seconds: what makes them as fast as they get takes minutes.
        .envs([
            ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
            ("CARGO_PROFILE_RELEASE_LTO", "off"),
            ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
        ]);
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
