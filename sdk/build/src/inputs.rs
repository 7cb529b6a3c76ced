//! What a component was built from, and whether that is what there is now.
//!
//! A component has a file beside it, `quotas.inputs` for `quotas.wasm`, with the path of each
//! file that it was built from in a line of its own. The file is as old as that.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What went into a build that began at some time.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    files: Vec<PathBuf>,
    begun: SystemTime,
}

impl Inputs {
    /// What cargo has read for a module, in the plugin's own crate and in those that it
    /// depends on by path, and these `manifests` and the `lock` file, which cargo does not
    /// list. Crates from a registry change with the lock file.
    pub(crate) fn of_module(
        module: &Path,
        manifests: impl IntoIterator<Item = PathBuf>,
        lock: PathBuf,
        begun: SystemTime,
    ) -> Self {
        // A rule of make: what is made, and what of.
        let rule = fs::read_to_string(module.with_extension("d")).unwrap_or_default();
        let list = rule.lines().next().and_then(|rule| rule.split_once(": "));
        let mut files = list.map(|(_, list)| paths(list)).unwrap_or_default();
        // Cargo itself writes it, before it reads any source.
        let begun = begun.max(changed(&lock).unwrap_or(begun));
        let manifests = manifests.into_iter().chain([lock]);
        files.extend(manifests.filter(|file| file.is_file()));
        Self { files, begun }
    }

    /// Writes them beside a component. Where that fails it is built once more the next time.
    pub(crate) fn write_beside(&self, component: &Path) -> io::Result<()> {
        let lines = self
            .files
            .iter()
            .map(|file| format!("{}\n", file.display()));
        let list = component.with_extension(ENDING);
        fs::write(&list, lines.collect::<String>())?;
        // What is saved while it is built is newer.
        File::options()
            .append(true)
            .open(&list)?
            .set_modified(self.begun)
    }
}

const ENDING: &str = "inputs";

/// Whether what a component was built from is unchanged since. Not if that is not known, or
/// if one of the files is gone.
pub fn is_current(component: &Path) -> bool {
    let list = component.with_extension(ENDING);
    let (Ok(built), Ok(files)) = (changed(&list), fs::read_to_string(&list)) else {
        return false;
    };
    component.is_file()
        && files
            .lines()
            .all(|file| changed(Path::new(file)).is_ok_and(|changed| changed <= built))
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
