//! States as single files: saved from a folder or a running server, and loaded into a
//! folder.

use std::path::Path;
use std::sync::Arc;

use http::{Method, StatusCode};

use super::file::Kind;
use super::folder::Folder;
use super::snapshot::{self, Snapshot};
use super::{StateError, begin};
use crate::http::response::{self, Answer};
use crate::identity::Identity;
use crate::server::Shared;
use crate::status::ApiError;

/// The segments of the path at which a running server gives its state.
const PATH: [&str; 2] = ["debug", "snapshot"];
/// Nothing is watched in a state that is only copied.
const HISTORY: usize = 1;

/// Writes what `folder` holds to `file`, which may be there already: all objects with
/// their versions and uids. Tokens, certificate and port stay behind, so that what is
/// loaded is another server. The answer is how many objects it holds.
///
/// # Errors
///
/// When the folder holds no state, is in use or damaged, or the file cannot be
/// written.
pub fn save_state(folder: &Path, file: &Path) -> Result<usize, StateError> {
    let found = Folder::open_existing(folder)?.recover(HISTORY)?;
    let found = found.ok_or_else(|| StateError::Empty {
        path: folder.to_owned(),
    })?;
    copy(&found.store.snapshot_of_all(), file)
}

/// Makes a state of what was saved to `file`, in a `folder` that holds none.
/// The answer is how many objects it holds.
///
/// # Errors
///
/// When the file is no snapshot or a damaged one, or the folder holds a state, is in
/// use, or cannot be written.
pub fn load_state(file: &Path, folder: &Path) -> Result<usize, StateError> {
    let loaded = snapshot::read(file, HISTORY)?;
    let folder = Folder::open(folder)?;
    if !folder.content()?.is_empty() {
        return Err(StateError::Exists {
            path: folder.path.clone(),
        });
    }
    // Its log is begun when the folder is opened.
    let first = folder.file(Kind::Snapshot, begin::FIRST);
    copy(&loaded.store.snapshot_of_all(), &first)
}

/// Whether a file begins as snapshots do.
pub fn is_snapshot(file: &Path) -> bool {
    use std::io::Read as _;
    let mut start = [0; super::file::MAGIC.len()];
    let read = std::fs::File::open(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *super::file::MAGIC.as_bytes()
}

fn copy(objects: &Snapshot, file: &Path) -> Result<usize, StateError> {
    snapshot::create(file, objects)?;
    let tables = objects.objects.tables.iter();
    Ok(tables.map(|(_, objects)| objects.len()).sum())
}

/// Whether a path is that of the snapshot.
pub(crate) fn is_path(segments: &[String]) -> bool {
    segments == PATH
}

/// Answers a request for the snapshot.
pub(crate) fn answer(
    shared: &Arc<Shared>,
    method: &Method,
    user: &Identity,
) -> Result<Answer, ApiError> {
    user.check_is_master("have a snapshot")?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(ApiError::method_not_allowed());
    }
    let mut bytes = Vec::new();
    let written = snapshot::write(&mut bytes, &shared.store.snapshot_of_all());
    written.map_err(|error| ApiError::internal(error.to_string()))?;
    let kind = "application/octet-stream";
    Ok(response::bytes(StatusCode::OK, kind, bytes))
}
