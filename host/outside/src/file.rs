//! Documents in files of the agent's own machine or pod.

use bytes::Bytes;
use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

/// Folders from which nothing is ever read, whatever is granted: they hold the
/// agent's own identity and its processes.
const NEVER: [&str; 5] = ["/proc", "/sys", "/dev", "/run/secrets", "/var/run/secrets"];

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It is in no folder that was granted.
    #[error(
        "{path} is in no folder that is granted; name its folder in Plugin spec.capabilities.files"
    )]
    NotGranted {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read {path}: {problem}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        problem: String,
    },
    /// It is too large.
    #[error("{path} has more than {limit} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
}

/// Whether a file, as its path is written, may be read below a folder. Where links lead
/// is told only by [`read`].
pub fn is_written_below(path: &Path, folder: &Path) -> bool {
    let climbs = path.components().any(|part| part == Component::ParentDir);
    let never = NEVER.iter().any(|never| path.starts_with(never));
    path.is_absolute() && !climbs && !never && path.starts_with(folder)
}

/// Reads a file below one of the granted folders. Links are followed first, so what
/// counts is where the file really is. Blocks.
///
/// # Errors
///
/// When it is elsewhere, cannot be read or is larger than `limit`.
pub fn read(path: &Path, granted: &[PathBuf], limit: u64) -> Result<Bytes, FileError> {
    let unreadable = |error: std::io::Error| FileError::Unreadable {
        path: path.to_owned(),
        problem: error.to_string(),
    };
    // Before anything is said of whether it exists.
    if !granted.iter().any(|folder| is_written_below(path, folder)) {
        return Err(FileError::NotGranted {
            path: path.to_owned(),
        });
    }
    let real = path.canonicalize().map_err(unreadable)?;
    let below = |folder: &PathBuf| {
        folder
            .canonicalize()
            .is_ok_and(|folder| real.starts_with(folder))
    };
    let never = NEVER.iter().any(|folder| real.starts_with(folder));
    if never || !granted.iter().any(below) {
        // Where a link leads is nobody's to know.
        return Err(FileError::NotGranted {
            path: path.to_owned(),
        });
    }
    // Before it is opened: to open a pipe is to wait for somebody.
    if !real.metadata().map_err(unreadable)?.is_file() {
        return Err(FileError::Unreadable {
            path: real,
            problem: "it is no regular file".to_owned(),
        });
    }
    let file = File::open(&real).map_err(unreadable)?;
    let mut body = Vec::new();
    let mut bounded = file.take(limit.saturating_add(1));
    bounded.read_to_end(&mut body).map_err(unreadable)?;
    if body.len() as u64 > limit {
        return Err(FileError::TooLarge { path: real, limit });
    }
    Ok(body.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_granted_folders_are_read() {
        let root = std::env::temp_dir().join(format!("reeve-file-{}", std::process::id()));
        let (granted, other) = (root.join("granted"), root.join("other"));
        for folder in [&granted, &other] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("a.json"), "{}").unwrap();
        }
        // As Kubernetes mounts a ConfigMap.
        symlink("a.json", granted.join("linked.json")).unwrap();
        symlink(other.join("a.json"), granted.join("stolen.json")).unwrap();
        symlink("/proc/self/environ", granted.join("environ")).unwrap();
        let folders = [granted.clone()];
        for (path, expected) in [
            (granted.join("a.json"), "ok"),
            (granted.join("linked.json"), "ok"),
            (granted.join("stolen.json"), "is in no folder"),
            (granted.join("environ"), "is in no folder"),
            (granted.join("../other/a.json"), "is in no folder"),
            (other.join("a.json"), "is in no folder"),
            (PathBuf::from("granted/a.json"), "is in no folder"),
            (granted.join("absent"), "cannot read"),
            (granted.clone(), "no regular file"),
        ] {
            let found = match read(&path, &folders, 10) {
                Ok(_) => "ok".to_owned(),
                Err(error) => error.to_string(),
            };
            assert!(found.contains(expected), "{}: {found}", path.display());
        }
        let found = read(&granted.join("a.json"), &folders, 1).unwrap_err();
        assert!(found.to_string().contains("more than 1 bytes"), "{found}");
        let everything = [PathBuf::from("/")];
        let found = read(Path::new("/proc/self/environ"), &everything, 1 << 20);
        assert!(
            matches!(found, Err(FileError::NotGranted { .. })),
            "{found:?}"
        );
        fs::remove_dir_all(root).unwrap();
    }
}
