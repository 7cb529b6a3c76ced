//! The OpenAPI documents of a live server.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context, Result, anyhow};
use reeve_real::ControlPlane;
use serde_json::Value;
use tempfile::TempDir;

/// Asked for once, by whichever test is first: the documents of groups and versions, and
/// those of discovery.
static FOLDERS: LazyLock<Result<[TempDir; 2]>> = LazyLock::new(download);

/// A folder with the document of each group and version, one a file.
pub(crate) fn folder() -> Result<&'static Path> {
    folders().map(|[versions, _]| versions.path())
}

/// A folder with the documents that describe discovery.
pub(crate) fn discovery() -> Result<&'static Path> {
    folders().map(|[_, discovery]| discovery.path())
}

fn folders() -> Result<&'static [TempDir; 2]> {
    match &*FOLDERS {
        Ok(folders) => Ok(folders),
        Err(error) => Err(anyhow!("{error:#}")),
    }
}

fn download() -> Result<[TempDir; 2]> {
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    let server = ControlPlane::builder().controllers([]).start()?;
    let index: Value = serde_json::from_str(&server.kubectl(&["get", "--raw", "/openapi/v3"])?)?;
    let paths = index["paths"].as_object().context("no paths")?;
    let versioned = |path: &str| {
        path.strip_prefix("apis/")
            .map_or(path == "api/v1", |path| path.contains('/'))
    };
    for (path, entry) in paths {
        let folder = &folders[usize::from(!versioned(path))];
        let url = entry["serverRelativeURL"].as_str().context("no URL")?;
        let document = server.kubectl(&["get", "--raw", url])?;
        let name = format!("{}.json", path.replace('/', "_"));
        fs::write(folder.path().join(name), document)?;
    }
    Ok(folders)
}
