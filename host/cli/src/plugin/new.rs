//! `reeve plugin new`.

use crate::output::print;
use anyhow::{Context as _, bail};
use clap::Args;
use reeve_core::manifest::is_dns_label;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make the crate of a new plugin
///
/// It is a small plugin that works: it builds, passes its scenario and its unit test, and
/// runs under `reeve dev`. Make it your own from there.
///
/// In a checkout of Reeve it becomes `plugins/NAME`, a member of the workspace. Elsewhere
/// it is a workspace of its own, and has to be told where the SDK is.
#[derive(Args)]
#[command(after_help = "Exit codes: 0 it is made; 2 it is not.\n\n\
    Examples:\n  \
    reeve plugin new greeting\n  \
    reeve plugin new greeting --path ../greeting --sdk sdk/rust")]
pub(crate) struct NewArgs {
    /// Name of the plugin: lower-case letters, digits and `-`
    name: String,
    /// Folder to make; by default plugins/NAME in a checkout of Reeve, and NAME elsewhere
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Folder of the crate `reeve-sdk`; known in a checkout of Reeve
    #[arg(long, value_name = "DIR", conflicts_with = "sdk_version")]
    sdk: Option<PathBuf>,
    /// Version of the crate `reeve-sdk`, where a registry has it
    #[arg(long, value_name = "VERSION")]
    sdk_version: Option<String>,
}

/// What is in the folder, with `{{…}}` where it differs.
const FILES: [(&str, &str); 6] = [
    ("README.md", include_str!("new/template/README.md.tpl")),
    ("src/lib.rs", include_str!("new/template/lib.rs.tpl")),
    ("src/tests.rs", include_str!("new/template/tests.rs.tpl")),
    (
        "scenarios/{{name}}.yaml",
        include_str!("new/template/scenario.yaml.tpl"),
    ),
    (
        "scenarios/crds/profile.yaml",
        include_str!("new/template/profile.yaml.tpl"),
    ),
    (".gitignore", "/target\n"),
];

/// The manifest of a crate that is a member of Reeve's workspace.
const MEMBER: &str = include_str!("new/template/member.toml.tpl");

/// The manifest of a crate that is a workspace of its own.
const ALONE: &str = include_str!("new/template/alone.toml.tpl");

/// Names that cargo does not take for a library, since they mean something else in the
/// language or beside it.
const TAKEN: [&str; 11] = [
    "alloc",
    "build",
    "core",
    "crate",
    "deps",
    "examples",
    "incremental",
    "proc-macro",
    "self",
    "std",
    "test",
];

/// The crate on which each plugin depends.
const SDK: &str = "reeve-sdk";

/// Words of the language that are names by the rules of Kubernetes.
const KEYWORDS: [&str; 41] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "super", "trait", "true", "try", "type",
];

pub(crate) fn run(args: &NewArgs) -> anyhow::Result<ExitCode> {
    let name = &args.name;
    check(name)?;
    let here = std::path::absolute(".").context("cannot tell which folder this is")?;
    let folder = match &args.path {
        Some(path) => path.clone(),
        None if checkout(&here).is_some_and(|root| root == here) => Path::new("plugins").join(name),
        None => name.into(),
    };
    let place = std::path::absolute(&folder)
        .with_context(|| format!("{} is no place for a folder", folder.display()))?;
    if std::fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!(
            "{} is there already, and not empty; name another folder with --path",
            folder.display()
        );
    }
    let (manifest, is_member) = manifest(args, &place)?;
    if let Some(root) = checkout(&place).filter(|root| is_member && has_crate(root, name)) {
        bail!(
            "the workspace in {} has a crate `{name}` already; choose another name",
            root.display()
        );
    }
    let written = |text: &str| text.replace("{{name}}", name);
    let cargo = [("Cargo.toml", manifest.as_str())];
    // The workspace has what keeps its target folder out of git.
    let files = FILES
        .iter()
        .filter(|(file, _)| !is_member || *file != ".gitignore");
    for (file, text) in cargo.iter().chain(files) {
        let path = place.join(written(file));
        let cannot = || format!("cannot write {}", path.display());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(cannot)?;
        }
        std::fs::write(&path, written(text)).with_context(cannot)?;
    }
    let folder = folder.display();
    print(format_args!(
        "made {folder}\n\
        test it with: reeve test {folder}\n\
        run it, and save src/lib.rs to swap it, with: reeve dev --plugins {folder}\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn check(name: &str) -> anyhow::Result<()> {
    if !is_dns_label(name) || name.starts_with(|c: char| c.is_ascii_digit()) {
        bail!(
            "`{name}` is no name of a plugin: use lower-case letters, digits and `-`, a letter \
             first, and 63 at most"
        );
    }
    if TAKEN.contains(&name) || KEYWORDS.contains(&name) {
        bail!("`{name}` cannot be the name of a crate, since it means something in Rust");
    }
    if name == SDK {
        bail!("`{name}` is what plugins are written with; choose another name");
    }
    Ok(())
}

/// The manifest of the crate, and whether it is a member of Reeve's workspace.
fn manifest(args: &NewArgs, place: &Path) -> anyhow::Result<(String, bool)> {
    if let Some(version) = &args.sdk_version {
        return Ok((alone(&Value::from(version.as_str()).to_string()), false));
    }
    let root = checkout(place);
    let at = |sdk: &Path| {
        let path = Value::from(sdk.display().to_string());
        (alone(&format!("{{ path = {path} }}")), false)
    };
    match (&args.sdk, root) {
        (Some(sdk), _) => {
            let cannot = || format!("--sdk: {} is no crate `reeve-sdk`", sdk.display());
            let sdk = sdk.canonicalize().with_context(cannot)?;
            if !is_sdk(&sdk) {
                bail!("{}", cannot());
            }
            Ok(at(&sdk))
        }
        (None, Some(root)) if place.parent() == Some(&root.join("plugins")) => {
            Ok((MEMBER.to_owned(), true))
        }
        (None, Some(root)) => Ok(at(&root.join("sdk/rust"))),
        (None, None) => bail!(
            "{} is in no checkout of Reeve; name the folder of the crate `reeve-sdk` with --sdk, \
             or its version with --sdk-version",
            place.display()
        ),
    }
}

fn alone(sdk: &str) -> String {
    ALONE.replace("{{sdk}}", sdk)
}

/// The root of the checkout of Reeve that a path is in.
fn checkout(path: &Path) -> Option<PathBuf> {
    let mut above = path.ancestors();
    let root = above.find(|folder| is_sdk(&folder.join("sdk/rust")))?;
    Some(root.to_owned())
}

/// Whether a crate of this name is a part of a workspace: of those that its lock file knows,
/// those without a source.
fn has_crate(root: &Path, name: &str) -> bool {
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).unwrap_or_default();
    let named = format!("name = \"{name}\"");
    lock.split("[[package]]").any(|package| {
        package.lines().any(|line| line == named)
            && !package.lines().any(|line| line.starts_with("source = "))
    })
}

fn is_sdk(folder: &Path) -> bool {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml"));
    manifest.is_ok_and(|text| text.lines().any(|line| line == "name = \"reeve-sdk\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_both_kubernetes_and_cargo_take() {
        for (name, expected) in [
            ("greeting", None),
            ("my-plugin2", None),
            ("2fast", Some("is no name of a plugin")),
            ("Greeting", Some("is no name of a plugin")),
            ("a_b", Some("is no name of a plugin")),
            ("../a", Some("is no name of a plugin")),
            ("", Some("is no name of a plugin")),
            ("match", Some("means something in Rust")),
            ("reeve-sdk", Some("is what plugins are written with")),
        ] {
            let found = check(name).err().map(|error| error.to_string());
            match (found, expected) {
                (None, None) => {}
                (Some(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
                (found, _) => panic!("{name}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_checkout_is_known_by_its_sdk() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .unwrap();
        let inside = root.join("plugins/new");
        assert_eq!(checkout(&inside).as_deref(), Some(root));
        let outside = tempfile::tempdir().unwrap();
        assert_eq!(checkout(outside.path()), None);
    }
}
