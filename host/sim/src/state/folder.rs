//! The folder of a state: whose it is, and what is in it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rcgen::CertifiedKey;
use serde::{Deserialize, Serialize};

use super::StateError;
use super::file::{self, Kind};

const LOCK: &str = "lock";
const SERVER: &str = "server.json";
/// No file has a larger number, so that there are others after each: no server will ever
/// have written so many.
const LAST: u64 = 1 << 62;
/// What a new folder of a file system may hold.
const NOT_OURS: &[&str] = &["lost+found", ".gitignore", ".DS_Store"];

/// A folder that is locked for this process.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(super) path: PathBuf,
    /// The lock ends with the file, and the file with the process at the latest.
    _lock: File,
}

/// As whom the server is known over a socket.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Known {
    /// The certificate, in PEM.
    pub(crate) certificate: String,
    /// Its key, in PEM.
    pub(crate) key: String,
    /// The administrator's token.
    pub(crate) token: String,
    /// Where the server listened last.
    pub(crate) address: Option<SocketAddr>,
}

/// What is in the folder, by the numbers of the files.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) snapshots: Vec<u64>,
    pub(super) logs: Vec<u64>,
    /// What the end of a process has left without its name.
    pub(super) unfinished: Vec<PathBuf>,
}

impl Folder {
    /// Locks the folder, which is made where it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self, StateError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(path)
            .map_err(StateError::io("make folder", path))?;
        // Before the lock is put into a folder that is meant for something else.
        content(path)?;
        let lock = lock(path)?;
        Ok(Folder {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Locks a folder that has to be there.
    pub(super) fn open_existing(path: &Path) -> Result<Self, StateError> {
        if content(path)?.is_empty() {
            return Err(StateError::Empty {
                path: path.to_owned(),
            });
        }
        Folder::open(path)
    }

    /// The snapshots and logs, in order.
    pub(super) fn content(&self) -> Result<Content, StateError> {
        content(&self.path)
    }

    /// The path of a numbered file.
    pub(super) fn file(&self, kind: Kind, number: u64) -> PathBuf {
        numbered(&self.path, kind, number)
    }

    /// As whom the server was known before, where there was one.
    pub(crate) fn known(&self) -> Result<Option<Known>, StateError> {
        let path = self.path.join(SERVER);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateError::io("read", &path)(error)),
        };
        let known = serde_json::from_slice(&text).map_err(|error| StateError::Damaged {
            path,
            at: place(&text, &error),
            why: error.to_string(),
            remedy: "the objects are not affected: remove this file to have another certificate and token made, which earlier kubeconfigs do not know".to_owned(),
        })?;
        Ok(Some(known))
    }

    /// Keeps as whom the server is known.
    pub(crate) fn keep(&self, known: &Known) -> Result<(), StateError> {
        let path = self.path.join(SERVER);
        file::create(&path, |output| {
            serde_json::to_writer_pretty(&mut *output, known)?;
            output.write_all(b"\n")
        })?;
        Ok(())
    }
}

impl Content {
    /// Whether nothing was ever kept.
    pub(super) fn is_empty(&self) -> bool {
        self.snapshots.is_empty() && self.logs.is_empty()
    }
}

impl Known {
    /// Somebody new, with this token.
    pub(crate) fn new(token: String) -> Result<Self, rcgen::Error> {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(crate::serve::NAMES.map(str::to_owned))?;
        Ok(Known {
            certificate: cert.pem(),
            key: signing_key.serialize_pem(),
            token,
            address: None,
        })
    }
}

pub(super) fn numbered(folder: &Path, kind: Kind, number: u64) -> PathBuf {
    folder.join(format!("{}-{number}", kind.word()))
}

/// What a file with this name is of a state. Names that a state gives no file are those of
/// other files.
fn number_of(name: &str) -> Option<(Kind, u64)> {
    let (word, number) = name.split_once('-')?;
    let kind = [Kind::Snapshot, Kind::Log]
        .into_iter()
        .find(|kind| kind.word() == word)?;
    let known: u64 = number.parse().ok()?;
    (known <= LAST && known.to_string() == number).then_some((kind, known))
}

pub(super) fn content(path: &Path) -> Result<Content, StateError> {
    let mut content = Content::default();
    let mut foreign = None;
    let mut ours = false;
    let unreadable = |source| StateError::Unusable {
        action: "read folder",
        path: path.to_owned(),
        source,
    };
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some((kind, number)) = number_of(&name) {
            match kind {
                Kind::Snapshot => content.snapshots.push(number),
                Kind::Log => content.logs.push(number),
            }
        } else if name != LOCK && name != SERVER {
            let unfinished = name.strip_suffix(file::NEW);
            if unfinished.is_some_and(|name| name == SERVER || number_of(name).is_some()) {
                content.unfinished.push(entry.path());
            }
            if unfinished.is_none() && !NOT_OURS.contains(&name.as_str()) {
                foreign = Some(name);
            }
            continue;
        }
        ours = true;
    }
    content.snapshots.sort_unstable();
    content.logs.sort_unstable();
    match foreign {
        Some(file) if !ours => Err(StateError::Foreign {
            path: path.to_owned(),
            file,
        }),
        _ => Ok(content),
    }
}

fn lock(folder: &Path) -> Result<File, StateError> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&path).map_err(StateError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut by = String::new();
            let _ = file.read_to_string(&mut by);
            let by = by.trim();
            return Err(StateError::InUse {
                path: folder.to_owned(),
                by: match by.parse::<u32>() {
                    Ok(id) => format!("process {id}"),
                    Err(_) => "another process".to_owned(),
                },
            });
        }
        Err(TryLockError::Error(error)) => return Err(StateError::io("lock", &path)(error)),
    }
    // Only read to tell others; the lock holds without it.
    let _ = file
        .set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

/// Removes what the snapshot `number` has taken the place of.
pub(super) fn tidy(folder: &Path, content: &Content, number: u64) {
    let kinds = [
        (Kind::Snapshot, &content.snapshots),
        (Kind::Log, &content.logs),
    ];
    for (kind, numbers) in kinds {
        for older in numbers.iter().filter(|older| **older < number) {
            // What stays is not read, and removed the next time.
            let _ = fs::remove_file(numbered(folder, kind, *older));
        }
    }
}

/// The byte of a text at which its JSON is wrong.
fn place(text: &[u8], error: &serde_json::Error) -> u64 {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    u64::try_from(before + error.column()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_the_names_that_they_are_given() {
        assert_eq!(number_of("log-7"), Some((Kind::Log, 7)));
        assert_eq!(number_of("snapshot-0"), Some((Kind::Snapshot, 0)));
        let last = number_of("log-4611686018427387904");
        assert_eq!(last, Some((Kind::Log, LAST)));
        for name in [
            "log-+7",
            "log-07",
            "log-",
            "log",
            "logs-7",
            "log-7.new",
            "log-4611686018427387905",
            "log-18446744073709551614",
            "log-18446744073709551615",
            "log-18446744073709551616",
        ] {
            assert_eq!(number_of(name), None, "{name}");
        }
    }
}
