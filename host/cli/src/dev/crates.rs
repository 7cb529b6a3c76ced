//! The plugin crates of the development loop.

use anyhow::{Context as _, bail};
use reeve_build::{BuildError, PluginCrate};
use std::path::Path;

/// A plugin crate and the name under which it is installed.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) source: PluginCrate,
}

impl Source {
    /// Whether a file, by its resolved path, belongs to what the plugin is built from.
    pub(super) fn is_built_from(&self, file: &Path) -> bool {
        let ending = file.extension();
        ending.is_some_and(|ending| ending == "rs" || ending == "toml")
            && file.starts_with(self.source.folder())
            // Build scripts write sources, too.
            && !file.starts_with(self.source.target())
    }
}

/// The crate in a folder, or those in its subfolders, by name. Subfolders with the
/// manifest of a workspace are none.
pub(super) fn find(folder: &Path) -> anyhow::Result<Vec<Source>> {
    let cannot = || {
        format!(
            "cannot read {}; run this in the root of the repository, or name the folder with --plugins",
            folder.display()
        )
    };
    // Its name counts, and `.` has none.
    let resolved = folder.canonicalize().with_context(cannot)?;
    let mut crates = Vec::new();
    if let Some(only) = open(&resolved)? {
        crates.push(only);
    } else {
        for entry in std::fs::read_dir(&resolved).with_context(cannot)? {
            crates.extend(open(&entry?.path())?);
        }
    }
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    if crates.is_empty() {
        bail!(
            "{} holds no plugin crates; `reeve plugin new` makes one",
            folder.display()
        );
    }
    Ok(crates)
}

fn open(folder: &Path) -> anyhow::Result<Option<Source>> {
    if !folder.join("Cargo.toml").is_file() {
        return Ok(None);
    }
    let Some(name) = folder.file_name().and_then(|name| name.to_str()) else {
        return Ok(None);
    };
    match PluginCrate::open(folder) {
        Ok(source) => Ok(Some(Source {
            name: name.to_owned(),
            source,
        })),
        Err(BuildError::NoPackage { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn package(folder: &Path, name: &str) {
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("src/lib.rs"), "").unwrap();
        let manifest = format!("[package]\nname = \"{name}\"\n[workspace]\n");
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let found = find(folder).unwrap();
        found.into_iter().map(|found| found.name).collect()
    }

    #[test]
    fn a_folder_is_a_plugin_or_holds_some() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert!(find(&root.join("absent")).is_err());
        let error = find(root).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("reeve plugin new"), "{error}");
        fs::write(root.join("Cargo.toml"), "[workspace]\nmembers = []\n").unwrap();
        fs::create_dir_all(root.join("notes")).unwrap();
        package(&root.join("b"), "b-plugin");
        package(&root.join("a"), "a-plugin");
        assert_eq!(names(root), ["a", "b"]);
        assert_eq!(names(&root.join("b")), ["b"]);
        assert_eq!(names(&root.join("b/../b")), ["b"]);
    }

    #[test]
    fn what_cargo_makes_is_no_source() {
        let folder = tempfile::tempdir().unwrap();
        package(&folder.path().join("a"), "a");
        let found = find(folder.path()).unwrap().remove(0);
        let root = found.source.folder();
        for (file, expected) in [
            ("src/lib.rs", true),
            ("Cargo.toml", true),
            ("scenarios/a.yaml", false),
            ("target/wasm/build/x/out/private.rs", false),
            ("../ab/src/lib.rs", false),
        ] {
            let path = match file.strip_prefix("../") {
                Some(beside) => root.with_file_name(beside),
                None => root.join(file),
            };
            assert_eq!(found.is_built_from(&path), expected, "{file}");
        }
    }
}
