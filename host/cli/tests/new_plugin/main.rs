//! `reeve plugin new`: what it makes builds, is free of warnings, passes its own tests and
//! runs at once, in `reeve dev`, which is looked at on the way.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod dev;
mod toolchain;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.unwrap_or(Path::new(""))
}

/// A program in a folder, offline, with the target folder of this checkout: what it is
/// built from is there already.
fn command<S: AsRef<OsStr>>(program: S, folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env_remove("RUST_LOG")
        .env("CARGO_TARGET_DIR", root().join("target"))
        .env("CARGO_NET_OFFLINE", "true");
    command
}

fn reeve_command(folder: &Path, arguments: &str) -> Command {
    command(env!("CARGO_BIN_EXE_reeve"), folder, arguments)
}

fn reeve(folder: &Path, arguments: &str) -> Output {
    reeve_command(folder, arguments).output().unwrap()
}

/// A program of the toolchain that compiled this.
fn tool(name: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").map(PathBuf::from);
    cargo.map_or_else(|| name.into(), |cargo| cargo.with_file_name(name))
}

fn cargo(folder: &Path, arguments: &str) -> Output {
    let mut cargo = command(tool("cargo"), folder, arguments);
    cargo.output().unwrap()
}

#[track_caller]
fn succeeds(output: &Output, part: &str) {
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains(part), "{part}\n{out}\n{err}");
}

#[track_caller]
fn fails(output: &Output, expected: &str) {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(err, format!("error: {expected}\n"));
}

/// A checkout with the SDK in it and nothing else, but for the versions of what it is
/// built from, the lints and the profiles.
fn checkout() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    // Cargo answers with resolved paths.
    let place = folder.path().canonicalize().unwrap();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, rest) = manifest.split_once("[workspace.package]").unwrap();
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"plugins/*\"]\n\n[workspace.package]{rest}"
    );
    fs::write(place.join("Cargo.toml"), manifest).unwrap();
    for file in ["Cargo.lock", "clippy.toml", "rust-toolchain.toml"] {
        fs::copy(root().join(file), place.join(file)).unwrap();
    }
    std::os::unix::fs::symlink(root().join("sdk"), place.join("sdk")).unwrap();
    (folder, place)
}

#[test]
fn in_a_checkout_it_is_a_member_that_passes_everything() {
    let (_folder, place) = checkout();
    let said = reeve(&place, "plugin new greeting");
    succeeds(
        &said,
        "made plugins/greeting\n\
         test it with: reeve test plugins/greeting\n\
         run it, and save src/lib.rs to swap it, with: reeve dev --plugins plugins/greeting\n",
    );
    succeeds(&cargo(&place, "fmt --all --check"), "");
    succeeds(
        &reeve(&place, "test plugins/greeting"),
        "1 passed, 0 failed",
    );
    is_built_as_it_was_for_its_scenarios(&place);
    succeeds(
        &cargo(&place, "clippy -p greeting --all-targets -- -D warnings"),
        "",
    );
    succeeds(
        &cargo(&place, "test -p greeting --lib"),
        "1 passed; 0 failed",
    );
    toolchain::must_be_there(&place);
    dev::ends_when_converged(&place);
    dev::stays(&place);
    let again = reeve(&place, "plugin new greeting");
    fails(
        &again,
        "plugins/greeting is there already, and not empty; name another folder with --path",
    );
}

fn is_built_as_it_was_for_its_scenarios(place: &Path) {
    let component = place.join("target/plugins/greeting.wasm");
    let tested = fs::read(&component).unwrap();
    fs::remove_file(&component).unwrap();
    let built = reeve(place, "plugin build plugins/greeting");
    succeeds(&built, "built target/plugins/greeting.wasm: ");
    succeeds(&built, " KB as zstd\n");
    assert!(fs::read(&component).unwrap() == tested, "the same bytes");
    let there = reeve(
        &place.join("plugins/greeting"),
        "plugin build --to it.wasm -o json",
    );
    succeeds(&there, &format!("\"bytes\": {}", tested.len()));
    let it = place.join("plugins/greeting/it.wasm");
    assert!(fs::read(&it).unwrap() == tested, "the same bytes");
    for file in [it.with_extension("inputs"), it] {
        fs::remove_file(file).unwrap();
    }
    fails(
        &reeve(place, "plugin build plugins/greeting --to it.inputs"),
        "--to it.inputs: name a file that ends in .wasm",
    );
    let nowhere = reeve(place, "plugin build sdk");
    assert_eq!(nowhere.status.code(), Some(2), "{nowhere:?}");
}

#[test]
fn elsewhere_it_is_told_where_the_sdk_is() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    fails(
        &reeve(&place, "plugin new greeting"),
        &format!(
            "{}/greeting is in no checkout of Reeve; name the folder of the crate `reeve-sdk` \
             with --sdk, or its version with --sdk-version",
            place.display()
        ),
    );
    assert!(!place.join("greeting").exists(), "nothing is left behind");
    fs::create_dir(place.join("empty")).unwrap();
    fails(
        &reeve(&place, "plugin new greeting --sdk empty"),
        "--sdk: empty is no crate `reeve-sdk`",
    );
    let sdk = root().join("sdk/rust");
    let new = format!("plugin new greeting --path hello --sdk {}", sdk.display());
    succeeds(&reeve(&place, &new), "made hello\n");
    fs::copy(root().join("Cargo.lock"), place.join("hello/Cargo.lock")).unwrap();
    succeeds(&reeve(&place, "test hello"), "1 passed, 0 failed");
    let versioned = "plugin new other --sdk-version 0.1";
    succeeds(&reeve(&place, versioned), "made other\n");
    let manifest = fs::read_to_string(place.join("other/Cargo.toml")).unwrap();
    assert!(manifest.contains("\nreeve-sdk = \"0.1\"\n"), "{manifest}");
}
