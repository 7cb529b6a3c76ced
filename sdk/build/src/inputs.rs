//! What a component was built from, and whether that is what there is now.
//!
//! A component has a file beside it, `quotas.inputs` for `quotas.wasm`, with the path of each
//! file that it was built from in a line of its own. The file is as old as that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::write_whole;

/// What went into a build that began at some time.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    files: Vec<PathBuf>,
    begun: SystemTime,
}

impl Inputs {
    /// What cargo has read for a module, in the plugin's own crate and in those that it
    /// depends on by path, and these `manifests` and the `lock` file, which cargo does not
    /// list. Crates from a registry change with the lock file. None where cargo does not say.
    pub(crate) fn of_module(
        module: &Path,
        manifests: impl IntoIterator<Item = PathBuf>,
        lock: PathBuf,
        begun: SystemTime,
    ) -> Option<Self> {
        // A rule of make: what is made, and what of.
        let rule = fs::read_to_string(module.with_extension("d")).ok()?;
        let (_, list) = rule.lines().next()?.split_once(": ")?;
        let mut files = paths(list);
        // Cargo itself writes it, before it reads any source.
        let begun = begun.max(changed(&lock).unwrap_or(begun));
        let manifests = manifests.into_iter().chain([lock]);
        files.extend(manifests.filter(|file| file.is_file()));
        Some(Self { files, begun })
    }

    /// Writes them beside a component.
    pub(crate) fn write_beside(&self, component: &Path) -> io::Result<()> {
        let lines = self
            .files
            .iter()
            .map(|file| format!("{}\n", file.display()));
        // What is saved while it is built is newer.
        let text = lines.collect::<String>();
        write_whole(&list_of(component), text.as_bytes(), Some(self.begun))
    }
}

/// Forgets what a component was built from.
pub(crate) fn forget(component: &Path) -> io::Result<()> {
    match fs::remove_file(list_of(component)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether what a component was built from is unchanged since, and is the plugin crate in
/// this folder. Not if that is not known, or if one of the files is gone.
pub fn is_current(component: &Path, folder: &Path) -> bool {
    let list = list_of(component);
    let (Ok(built), Ok(files)) = (changed(&list), fs::read_to_string(&list)) else {
        return false;
    };
    // One that was copied from elsewhere tells of the crate that is there.
    let own = folder.join("Cargo.toml").canonicalize().unwrap_or_default();
    component.is_file()
        && files.lines().any(|file| Path::new(file) == own)
        && files
            .lines()
            .all(|file| changed(Path::new(file)).is_ok_and(|changed| changed <= built))
}

fn list_of(component: &Path) -> PathBuf {
    component.with_extension("inputs")
}

fn changed(file: &Path) -> io::Result<SystemTime> {
    file.metadata()?.modified()
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
