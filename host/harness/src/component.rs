//! Finds the component of a plugin, or builds it.

use crate::Error;
use reeve_build::{Builder, PluginCrate, Profile, is_current};
use std::path::{Path, PathBuf};

/// Where built components are, below the root of the workspace.
const BUILT: &str = "target/plugins";

/// The component of the plugin in `folder`.
///
/// It is built when it is missing, or older than what it was built from: the sources of the
/// plugin and of the crates that it depends on by path, its manifest, and the lock file.
pub(crate) fn of(folder: &Path) -> Result<PathBuf, Error> {
    let component = component_path(folder);
    if is_current(&component, folder) {
        return Ok(component);
    }
    let failed = |source| Error::Build {
        folder: folder.to_owned(),
        source: Box::new(source),
    };
    let plugin = PluginCrate::open(folder).map_err(failed)?;
    let built = Builder::new(Profile::Release)
        .build(&plugin)
        .map_err(failed)?;
    // The first build of a workspace writes its lock file, by which its folder is found.
    let component = component_path(folder);
    built.write_to(&component).map_err(failed)?;
    Ok(component)
}

/// Where the component of the plugin in `folder` is looked for, and built to:
/// `target/plugins/<name of the folder>.wasm` in the outermost folder with a lock file, or in
/// its own. Whether there is one is another matter.
pub fn component_path(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default();
    let built = workspace_root(folder).join(BUILT);
    built.join(name).with_extension("wasm")
}

/// The outermost folder with a lock file, or the plugin's own.
fn workspace_root(folder: &Path) -> &Path {
    let locked = folder
        .ancestors()
        .filter(|f| f.join("Cargo.lock").is_file());
    locked.last().unwrap_or(folder)
}
