//! What a component was built from.

use std::path::{Path, PathBuf};

use crate::TARGET;

/// The files that the last release build of the plugin `name` has read, in its own crate
/// and in those that it depends on by path. `target` is the target folder of its
/// workspace. Crates from a registry are not among them: they change with `Cargo.lock`.
///
/// None when it was never built there. This is cargo's own list, which has no manifests.
pub fn inputs(target: &Path, name: &str) -> Option<Vec<PathBuf>> {
    let module = target.join("wasm").join(TARGET).join("plugin");
    let list = module.join(name.replace('-', "_")).with_extension("d");
    let text = std::fs::read_to_string(list).ok()?;
    // A rule of make: what is made, and what of.
    let (_, files) = text.lines().next()?.split_once(": ")?;
    Some(paths(files))
}

/// The paths of a list for make, in which spaces within a path are escaped.
fn paths(list: &str) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut path = String::new();
    let mut letters = list.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' => paths.push(std::mem::take(&mut path)),
            '\\' if letters.as_str().starts_with(' ') => path.extend(letters.next()),
            other => path.push(other),
        }
    }
    paths.push(path);
    let named = paths.into_iter().filter(|path| !path.is_empty());
    named.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_within_a_path_are_part_of_it() {
        let list = r"/a/src/lib.rs /my\ plugins/b\c.rs  /d";
        let expected = ["/a/src/lib.rs", r"/my plugins/b\c.rs", "/d"].map(PathBuf::from);
        assert_eq!(paths(list), expected);
        assert!(paths("").is_empty());
    }
}
