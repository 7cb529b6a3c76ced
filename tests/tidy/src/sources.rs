//! How sources are written and laid out.

use std::path::Path;

use crate::{TextFile, Tree};

/// The one file that may hold `unsafe`: loading compiled code is unsafe by
/// nature, and everything that makes it sound stands beside it.
const UNSAFE_ALLOWED: &str = "host/engine/src/artifact.rs";

/// Beyond this a file is more than one idea.
const LONGEST: usize = 700;

/// Names that say nothing about what is inside.
const NAMELESS: &[&str] = &["utils.rs", "util.rs", "misc.rs"];

/// `unsafe` in other places than the one that is allowed.
pub fn unsafe_code(file: &TextFile) -> Vec<String> {
    if file.path == UNSAFE_ALLOWED {
        return Vec::new();
    }
    let uses_unsafe = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        ["{", "fn", "impl", "trait", "extern", "("]
            .iter()
            .any(|next| {
                // Written in two parts, so that this line is not one of them.
                let written = [concat!("un", "safe "), concat!("un", "safe")];
                written
                    .iter()
                    .any(|start| code.contains(&format!("{start}{next}")))
            })
    };
    lines_with(file, uses_unsafe, "unsafe code")
}

/// Files that are too long, named after nothing, or do not say what they are for.
pub fn shape(file: &TextFile) -> Vec<String> {
    let mut findings = Vec::new();
    let lines = file.text.lines().count();
    if lines > LONGEST {
        findings.push(format!("{}: {lines} lines; split it by noun", file.path));
    }
    let name = file.path.rsplit('/').next().unwrap_or_default();
    if NAMELESS.contains(&name) {
        findings.push(format!("{}: name it after what it holds", file.path));
    }
    if !file.text.starts_with("//!") {
        findings.push(format!(
            "{}: no sentence on its purpose at the top",
            file.path
        ));
    }
    findings
}

/// A crate's manifest that does not take the lints of the workspace.
pub fn lints(file: &TextFile) -> Vec<String> {
    let is_member = file.path.ends_with("/Cargo.toml");
    let takes_lints = file
        .text
        .split("\n[")
        .any(|section| section.starts_with("lints]\nworkspace = true\n"));
    if is_member && !takes_lints {
        vec![format!("{}: no `[lints] workspace = true`", file.path)]
    } else {
        Vec::new()
    }
}

/// Guests that no test mentions: a forgotten one tests nothing.
pub fn forgotten_guests(tree: &Tree) -> Vec<String> {
    let folder = "tests/guests/";
    let mut guests: Vec<&str> = tree
        .files()
        .iter()
        .filter_map(|file| file.path.strip_prefix(folder))
        .filter(|path| path.ends_with("/Cargo.toml") || path.ends_with(".wat"))
        .filter_map(|path| Path::new(path.split('/').next()?).file_stem()?.to_str())
        .collect();
    guests.dedup();
    guests.retain(|guest| {
        let name = format!("\"{guest}\"");
        !tree
            .rust()
            .any(|file| !file.path.starts_with(folder) && file.text.contains(&name))
    });
    guests
        .iter()
        .map(|guest| format!("{folder}{guest}: no test mentions \"{guest}\""))
        .collect()
}

/// Plugins without scenarios beside them.
pub fn plugins_without_scenarios(tree: &Tree) -> Vec<String> {
    let paths = || tree.files().iter().map(|file| file.path.as_str());
    paths()
        .filter_map(|path| path.strip_suffix("/Cargo.toml"))
        .filter(|folder| folder.starts_with("plugins/"))
        .filter(|folder| {
            let scenarios = format!("{folder}/scenarios/");
            !paths().any(|path| path.starts_with(&scenarios))
        })
        .map(|folder| format!("{folder}: no scenarios/"))
        .collect()
}

pub(crate) fn lines_with(
    file: &TextFile,
    is_found: impl Fn(&str) -> bool,
    what: &str,
) -> Vec<String> {
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| is_found(line))
        .map(|(number, _)| format!("{}:{}: {what}", file.path, number + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn each_form_of_unsafe_is_found() {
        for (line, found) in [
            (concat!("let a = un", "safe { b };"), true),
            (concat!("pub un", "safe fn a() {}"), true),
            (concat!("#[un", "safe(no_mangle)]"), true),
            (concat!("// an un", "safe { block }"), false),
            ("#![expect(unsafe_code, reason = \"generated\")]", false),
        ] {
            assert_eq!(
                !unsafe_code(&file("a.rs", line)).is_empty(),
                found,
                "{line}"
            );
            assert!(unsafe_code(&file(UNSAFE_ALLOWED, line)).is_empty());
        }
    }

    #[test]
    fn shapeless_files_are_found() {
        let good = "//! Purpose.\n";
        for (path, text, findings) in [
            ("src/plan.rs", good.to_owned(), 0),
            ("src/utils.rs", good.to_owned(), 1),
            ("src/plan.rs", "fn main() {}".to_owned(), 1),
            ("src/plan.rs", good.repeat(700), 0),
            ("src/plan.rs", good.repeat(701), 1),
        ] {
            assert_eq!(shape(&file(path, &text)).len(), findings, "{path}");
        }
    }

    #[test]
    fn a_manifest_without_lints_is_found() {
        for (text, findings) in [
            (
                "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n\n[lib]\n",
                0,
            ),
            ("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n", 0),
            (
                "[package]\nname = \"a\"\n\n[lints.rust]\nunused = \"allow\"\n",
                1,
            ),
            ("[package]\nname = \"a\"\n", 1),
        ] {
            assert_eq!(lints(&file("a/Cargo.toml", text)).len(), findings, "{text}");
        }
        assert!(lints(&file("Cargo.toml", "[workspace]\n")).is_empty());
    }
}
