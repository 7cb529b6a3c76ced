//! Finds the component of a plugin, or builds it.

use crate::Error;
use reeve_build::{Builder, PluginCrate, Profile, is_current};
use std::path::{Path, PathBuf};

/// Where built components are, below the root of the workspace.
const BUILT: &str = "target/plugins";

/// The component of the plugin in `folder`: `target/plugins/<name>.wasm` of its
/// workspace.
///
/// It is built when it is missing, or older than what it was built from: the sources of the
/// plugin and of the crates that it depends on by path, its manifest, and the lock file.
pub(crate) fn of(folder: &Path) -> Result<PathBuf, Error> {
    let name = folder.file_name().unwrap_or_default();
    let root = workspace_root(folder);
    let component = root.join(BUILT).join(name).with_extension("wasm");
    if is_current(&component, folder) {
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
    Ok(component)
}

/// The outermost folder with a lock file, or the plugin's own.
fn workspace_root(folder: &Path) -> &Path {
    let locked = folder
        .ancestors()
        .filter(|f| f.join("Cargo.lock").is_file());
    locked.last().unwrap_or(folder)
}
