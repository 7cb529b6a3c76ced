//! What text files say: nothing about one machine, and links that lead somewhere.

use std::path::{Component, Path, PathBuf};

use crate::sources::lines_with;
use crate::{TextFile, Tree};

/// Folders that exist on somebody's machine. In two parts each, so that this file
/// does not contain them.
const MACHINE_PATHS: &[(&str, &str)] = &[
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("/ho", "me/"),
    ("/tm", "p/"),
    ("/Use", "rs/"),
];

/// Servers from which packages happen to come; which, is a setting of the user's.
const REGISTRIES: &[(&str, &str)] = &[
    ("proxy.gol", "ang.org"),
    ("sum.gol", "ang.org"),
    ("index.crat", "es.io"),
    ("static.crat", "es.io"),
    ("registry.np", "mjs.org"),
    ("files.pythonho", "sted.org"),
];

/// Written by tools, which put in what they need.
const GENERATED: &[&str] = &["Cargo.lock", "go.sum", "package-lock.json"];

/// Paths of one machine, and names of registries.
pub fn machine_words(file: &TextFile) -> Vec<String> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    if GENERATED.contains(&name) {
        return Vec::new();
    }
    let mut findings = lines_with(file, names_machine_path, "a path of one machine");
    for (start, end) in REGISTRIES {
        let host = format!("{start}{end}");
        findings.extend(lines_with(
            file,
            |line| line.contains(&host),
            "the host name of a registry",
        ));
    }
    findings
}

/// Whether an absolute path of a machine begins somewhere in the line; `a/home/b`
/// is none.
fn names_machine_path(line: &str) -> bool {
    MACHINE_PATHS.iter().any(|(start, end)| {
        line.match_indices(&format!("{start}{end}")).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            before.is_none_or(|before| !(before.is_alphanumeric() || "._-~}/".contains(before)))
        })
    })
}

/// Where plugins stand in a table with their lines of code.
const PLUGINS: &str = "docs/plugins.md";

/// Plugins that have other lines of code than their table says.
pub fn lines_of_plugins(tree: &Tree) -> Vec<String> {
    let table = tree.files().iter().find(|file| file.path == PLUGINS);
    let rows = table.into_iter().flat_map(|file| file.text.lines());
    let mut findings = Vec::new();
    let mut count = 0;
    for row in rows {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let (Some(plugin), Some(said)) = (cells.next(), cells.next()) else {
            continue;
        };
        let Ok(said) = said.replace(',', "").parse::<usize>() else {
            continue;
        };
        let found = code_lines(tree, &format!("plugins/{plugin}/src/"));
        // Numbers stand in tables of settings, too.
        if found == 0 {
            continue;
        }
        count += 1;
        if said != found {
            findings.push(format!("{PLUGINS}: {plugin} has {found} lines, not {said}"));
        }
    }
    if count == 0 {
        findings.push(format!("{PLUGINS}: no table with lines of plugins"));
    }
    findings
}

/// Lines without blank ones, comments and tests.
fn code_lines(tree: &Tree, folder: &str) -> usize {
    let sources = tree.rust().filter(|file| {
        let rest = file.path.strip_prefix(folder);
        rest.is_some_and(|rest| !rest.split('/').any(|part| part.starts_with("tests")))
    });
    let lines = sources.flat_map(|file| {
        let code = file.text.lines().map(str::trim);
        code.take_while(|line| *line != "#[cfg(test)]")
    });
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
    lines.filter(is_code).count()
}

/// Links in Markdown files to files that are not there.
pub fn dead_links(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for file in tree.files() {
        if !file.path.ends_with(".md") {
            continue;
        }
        for target in links(&file.text) {
            if !leads_somewhere(tree, file, target) {
                findings.push(format!("{}: dead link to {target}", file.path));
            }
        }
    }
    findings
}

/// The targets of inline links and of link definitions, outside of code.
fn links(markdown: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut in_code = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for rest in line.split("](").skip(1) {
            targets.extend(rest.split([')', ' ']).next());
        }
        if line.starts_with('[')
            && let Some((_, target)) = line.split_once("]: ")
        {
            targets.extend(target.split_whitespace().next());
        }
    }
    targets
}

fn leads_somewhere(tree: &Tree, file: &TextFile, target: &str) -> bool {
    let path = target.split('#').next().unwrap_or_default();
    if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
        return true;
    }
    let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let Some(path) = within_root(&folder.join(path)) else {
        return false;
    };
    // Asked of the tree, not the disk: a built file is not there for the reader.
    let known = |tracked: &str| Path::new(tracked).starts_with(&path);
    tree.files().iter().any(|file| known(&file.path)) || tree.root().join(&path).is_file()
}

/// The path without `..`; none when it leads out of the repository.
fn within_root(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::Normal(part) => plain.push(part),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_of_a_machine_are_found() {
        for (line, found) in [
            (concat!("see /ho", "me/ann/x"), true),
            (concat!("\"/tm", "p/x\""), true),
            (concat!("--dir=/ro", "ot/x"), true),
            (concat!("~/tm", "p/x and a/wo", "rk/b"), false),
            (concat!("https://example.com/ho", "me/x"), false),
            ("/workspace and /tmpfs", false),
        ] {
            assert_eq!(names_machine_path(line), found, "{line}");
        }
    }

    #[test]
    fn host_names_are_found_except_in_generated_files() {
        let text = concat!("https://proxy.gol", "ang.org/x\n").to_owned();
        for (path, findings) in [("docs/a.md", 1), ("tests/real/parts/etcd/go.sum", 0)] {
            let path = path.to_owned();
            let text = text.clone();
            assert_eq!(machine_words(&TextFile { path, text }).len(), findings);
        }
    }

    #[test]
    fn links_are_read_outside_of_code() {
        let text = "A [b](c.md#d) and ![e](f.svg \"title\").\n```\n[no](g.md)\n```\n[h]: i.md\n";
        assert_eq!(links(text), ["c.md#d", "f.svg", "i.md"]);
    }

    #[test]
    fn paths_are_made_plain() {
        for (path, plain) in [
            ("docs/../README.md", Some("README.md")),
            ("docs/./a.md", Some("docs/a.md")),
            ("../outside.md", None),
            ("/absolute.md", None),
        ] {
            assert_eq!(
                within_root(Path::new(path)),
                plain.map(PathBuf::from),
                "{path}"
            );
        }
    }
}
