//! Why a state cannot be used.

use std::io;
use std::path::{Path, PathBuf};

/// Why a state folder or a snapshot cannot be used. Nothing was changed in it.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {}; the state needs a folder that you may write to", path.display())]
    Unusable {
        /// What could not be done.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something else is in the folder.
    #[error("{} is no state folder: it holds {file}; name an empty folder, or one that this command made", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// A file of which nothing is known.
        file: String,
    },
    /// Another server uses the folder.
    #[error("state folder {} is in use by {by}; stop that server, or name another folder", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
        /// Who has it.
        by: String,
    },
    /// A newer version wrote it.
    #[error("{} is of format {format}, and this version reads {known} at most: a newer reeve has written it, use that one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u64,
        /// The newest that is known here.
        known: u64,
    },
    /// It was changed by something else than a server, or by the disk.
    #[error("{} is damaged at byte {at}: {why}; {remedy}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        at: u64,
        /// What is wrong there.
        why: String,
        /// What is lost, and how to go on.
        remedy: String,
    },
    /// The folder holds a state already.
    #[error("{} holds a state already; name an empty folder, or remove that one", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// There is no state.
    #[error("{} holds no state; name a folder that reeve cluster --state was given", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// No certificate could be made.
    #[error("cannot make a certificate")]
    Certificate(#[source] rcgen::Error),
}

impl StateError {
    /// What to make of an error of the file system.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| StateError::Unusable {
            action,
            path,
            source,
        }
    }
}
