//! Finds the component of a plugin, or builds it.

use crate::Error;
use reeve_build::{Builder, PluginCrate, Profile};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where cargo works, below the root of the workspace.
const TARGET: &str = "target";

/// Where built components are, below the root of the workspace.
const BUILT: &str = "target/plugins";

/// The component of the plugin in `folder`: `target/plugins/<name>.wasm` of its
/// workspace.
///
/// It is built when it is missing, or older than what it was built from: the plugin's own
/// sources, those of the crates that it depends on by path, and the lock file.
pub(crate) fn of(folder: &Path) -> Result<PathBuf, Error> {
    let name = folder.file_name().unwrap_or_default();
    let root = workspace_root(folder);
    let component = root.join(BUILT).join(name).with_extension("wasm");
    let inputs = reeve_build::inputs(&root.join(TARGET), &name.to_string_lossy());
    let inputs = inputs.unwrap_or_default();
    let built = component
        .metadata()
        .and_then(|metadata| metadata.modified())
        .ok();
    let is_new = built.is_some_and(|built| {
        let newest = newest(root, folder);
        newest.is_none_or(|newest| newest <= built)
            // One that is gone was changed as well.
            && inputs.iter().all(|input| changed(input).is_some_and(|input| input <= built))
    });
    if is_new {
        return Ok(component);
    }
    let failed = |source| Error::Build {
        folder: folder.to_owned(),
        source: Box::new(source),
    };
    let plugin = PluginCrate::open(folder).map_err(failed)?;
    Builder::new(Profile::Release)
        .build_to(&plugin, &component)
        .map_err(failed)?;
    touch(&component);
    Ok(component)
}

/// The outermost folder with a lock file, or the plugin's own.
fn workspace_root(folder: &Path) -> &Path {
    let locked = folder
        .ancestors()
        .filter(|f| f.join("Cargo.lock").is_file());
    locked.last().unwrap_or(folder)
}

/// When a source of the plugin itself was last changed, or what the workspace says of
/// crates. Scenarios are none.
fn newest(root: &Path, folder: &Path) -> Option<SystemTime> {
    let said = [
        folder.join("Cargo.toml"),
        root.join("Cargo.toml"),
        root.join("Cargo.lock"),
    ];
    let said = said.iter().filter_map(|file| changed(file));
    said.chain(newest_below(&folder.join("src"))).max()
}

fn newest_below(folder: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            if path.is_dir() {
                newest_below(&path)
            } else {
                changed(&path)
            }
        })
        .max()
}

fn changed(file: &Path) -> Option<SystemTime> {
    file.metadata().ok()?.modified().ok()
}

/// An equal component is left as it is by the build; it is new all the same.
fn touch(component: &Path) {
    if let Ok(file) = std::fs::File::options().append(true).open(component) {
        // If that fails, it is built once more the next time.
        let _ = file.set_modified(SystemTime::now());
    }
}
