//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Writes a file, in its folder, which is made when needed; as if it had been changed at a
/// time, if one is given.
pub(crate) fn write_whole(
    destination: &Path,
    bytes: &[u8],
    modified: Option<SystemTime>,
) -> io::Result<()> {
    if let Some(folder) = destination.parent() {
        fs::create_dir_all(folder)?;
    }
    // Beside the destination, since a rename does not cross file systems; with
    // the process in its name, since two commands may build at once.
    let mut beside = destination.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = PathBuf::from(beside);
    let result = write(&beside, bytes, modified).and_then(|()| fs::rename(&beside, destination));
    if result.is_err() {
        // The first failure is the one to report.
        let _ = fs::remove_file(&beside);
    }
    result
}

fn write(path: &Path, bytes: &[u8], modified: Option<SystemTime>) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    match modified {
        Some(time) => file.set_modified(time),
        None => Ok(()),
    }
}
