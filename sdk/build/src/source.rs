//! The crate that a plugin is built from.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{BuildError, cargo};

/// A crate on disk, as cargo sees it. It may be a member of any workspace, or
/// none.
#[derive(Clone, Debug)]
pub struct PluginCrate {
    name: String,
    version: String,
    folder: PathBuf,
    workspace: PathBuf,
    target: PathBuf,
}

impl PluginCrate {
    /// Asks cargo about the crate in `folder`. Nothing is compiled.
    ///
    /// # Errors
    ///
    /// When the folder holds no crate or cargo rejects its manifest.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, BuildError> {
        let no_crate = || BuildError::NoCrate {
            folder: folder.as_ref().to_owned(),
        };
        // Cargo answers with resolved paths, so links are followed here too.
        let folder = folder.as_ref().canonicalize().map_err(|_| no_crate())?;
        let manifest = folder.join("Cargo.toml");
        if !manifest.is_file() {
            return Err(no_crate());
        }

        let output = cargo::output(
            cargo::command()
                .args(["metadata", "--no-deps", "--format-version", "1"])
                .arg("--manifest-path")
                .arg(&manifest)
                .current_dir(&folder),
        )?;
        if !output.status.success() {
            return Err(BuildError::Metadata {
                manifest,
                output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            });
        }
        let metadata: Metadata =
            serde_json::from_slice(&output.stdout).map_err(BuildError::UnknownAnswer)?;
        let package = metadata
            .packages
            .into_iter()
            .find(|package| package.manifest_path == manifest)
            .ok_or(BuildError::NoPackage { manifest })?;
        Ok(Self {
            name: package.name,
            version: package.version,
            folder,
            workspace: metadata.workspace_root,
            target: metadata.target_directory,
        })
    }

    /// The name of the package.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version of the package.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The folder with the crate's `Cargo.toml`, links resolved.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where cargo puts what it makes of the crate; it may be in the crate's folder.
    pub fn target(&self) -> &Path {
        &self.target
    }

    pub(crate) fn manifest(&self) -> PathBuf {
        self.folder.join("Cargo.toml")
    }

    /// What says which crates the crate is built from, and how.
    pub(crate) fn manifests(&self) -> [PathBuf; 2] {
        [self.manifest(), self.workspace_manifest()]
    }

    pub(crate) fn lock_file(&self) -> PathBuf {
        self.workspace.join("Cargo.lock")
    }

    pub(crate) fn workspace_manifest(&self) -> PathBuf {
        self.workspace.join("Cargo.toml")
    }

    pub(crate) fn wasm_target_folder(&self) -> PathBuf {
        self.target.join("wasm")
    }
}

/// The part of `cargo metadata` that is needed here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    manifest_path: PathBuf,
}
