//! A compiler without the wasm target, as it comes: it is added, or it is said why not.

use crate::{reeve_command, tool};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

const DEV: &str = "dev --plugins plugins --once --kubeconfig kubeconfig";

/// A script in the place of a tool.
fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// `reeve dev` with a compiler that has the target once there is a file `added`, and
/// whatever rustup is in the folder of tools.
pub(crate) fn bare(place: &Path) -> Command {
    let tools = place.join("tools");
    fs::create_dir_all(&tools).unwrap();
    let (compiler, added) = (tools.join("compiler"), tools.join("added"));
    let none = tools.join("none");
    let question = "--print target-libdir --target wasm32-unknown-unknown";
    script(
        &compiler,
        &format!(
            "[ \"$*\" = \"{question}\" ] && [ ! -e {} ] && echo {} && exit\nexec {} \"$@\"",
            added.display(),
            none.display(),
            tool("rustc").display(),
        ),
    );
    let mut reeve = reeve_command(place, DEV);
    reeve.env("RUSTC", compiler).env("PATH", &tools);
    reeve
}

/// A rustup that adds the target when it is asked for it.
pub(crate) fn helpful(place: &Path) {
    let tools = place.join("tools");
    let asked = "[ \"$*\" = \"target add wasm32-unknown-unknown\" ]";
    let add = format!("{asked} && : > {}", tools.join("added").display());
    script(&tools.join("rustup"), &add);
}

/// Without rustup, and with one that cannot, it is said why nothing is built.
pub(crate) fn must_be_there(place: &Path) {
    let failed = "failed to run `rustup target add wasm32-unknown-unknown`:";
    for (rustup, why) in [
        (
            None,
            "the Rust compiler has no target wasm32-unknown-unknown and rustup is not \
             installed; install rustup, or add the standard library for \
             wasm32-unknown-unknown the way your distribution provides it"
                .to_owned(),
        ),
        (
            Some("echo no network >&2; exit 1"),
            format!("{failed}\nno network"),
        ),
        // Of another toolchain than the one that compiles.
        (
            Some("echo component is up to date"),
            format!("{failed}\ncomponent is up to date"),
        ),
    ] {
        let mut reeve = bare(place);
        if let Some(text) = rustup {
            script(&place.join("tools/rustup"), text);
        }
        let output = reeve.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let err = String::from_utf8_lossy(&output.stderr);
        let added = "adding the target wasm32-unknown-unknown to the Rust toolchain\n";
        assert_eq!(err, format!("{added}error: {why}\n"));
    }
}
