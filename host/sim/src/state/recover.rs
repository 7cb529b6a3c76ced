//! What a folder holds, as a store: the newest snapshot, and the logs since then.

use std::fs::{File, OpenOptions};
use std::path::Path;

use super::StateError;
use super::file::{self, Kind};
use super::folder::Folder;
use super::journal;
use super::record::{Entry, Flaw};
use super::snapshot;
use crate::store::Store;

/// What was found.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) store: Store,
    /// The tokens, as they are kept.
    pub(super) tokens: Vec<Vec<u8>>,
    /// The log to go on with: its number, the file, and its length.
    pub(super) number: u64,
    pub(super) log: File,
    pub(super) length: u64,
    /// How many bytes the snapshot has.
    pub(super) snapshot: u64,
}

impl Folder {
    /// Reads what is kept; none where nothing ever was. Of the newest log, what the
    /// end of a process or of the machine has left half-written is cut off: nobody
    /// was told of it, or it was of the last second before a machine lost its power.
    pub(super) fn recover(&self, history: usize) -> Result<Option<Recovered>, StateError> {
        let content = self.content()?;
        let Some(&loaded_from) = content.snapshots.last() else {
            return match content.logs.first() {
                None => Ok(None),
                Some(&log) => Err(StateError::Damaged {
                    path: self.file(Kind::Log, log),
                    at: 0,
                    why: "the snapshot that it goes on from is gone".to_owned(),
                    remedy: "put the snapshot back, or begin anew with another folder".to_owned(),
                }),
            };
        };
        let loaded = snapshot::read(&self.file(Kind::Snapshot, loaded_from), history)?;
        let mut tokens = loaded.tokens;
        let logs = content.logs.iter().copied();
        let newer: Vec<u64> = logs.filter(|number| *number >= loaded_from).collect();
        let mut last = None;
        for (expected, log) in (loaded_from..).zip(&newer) {
            let path = self.file(Kind::Log, *log);
            if *log != expected {
                return Err(StateError::Damaged {
                    path,
                    at: 0,
                    why: format!("log-{expected}, which comes before it, is gone"),
                    remedy: format!(
                        "put it back; without it, what was written after resourceVersion {} is lost: to go on from there, remove log-{log} and those after it",
                        loaded.store.version()
                    ),
                });
            }
            let later: Vec<u64> = newer.iter().copied().filter(|n| n > log).collect();
            let length = replay(&path, &loaded.store, &mut tokens, &later)?;
            last = Some((*log, path, length));
        }
        let (number, log, length) = match last {
            // Whoever wrote it must be able to say that the rest is newer, and not damaged.
            Some((number, path, length)) if file::is_older(&path)? => {
                resume(&path, length)?;
                let path = self.file(Kind::Log, number + 1);
                let (log, length) = journal::begin(&path, loaded.store.version())?;
                (number + 1, log, length)
            }
            Some((number, path, length)) => (number, resume(&path, length)?, length),
            // The first snapshot was made, and not its log yet.
            None => {
                let path = self.file(Kind::Log, loaded_from);
                let (log, length) = journal::begin(&path, loaded.store.version())?;
                (loaded_from, log, length)
            }
        };
        super::folder::tidy(&self.path, &content, loaded_from);
        // Others will have other numbers: nobody would ever write over these.
        for unfinished in &content.unfinished {
            let _ = std::fs::remove_file(unfinished);
        }
        Ok(Some(Recovered {
            store: loaded.store,
            tokens,
            number,
            log,
            length,
            snapshot: loaded.length,
        }))
    }
}

/// Opens a log to be appended to, without what comes after its last record.
fn resume(path: &Path, length: u64) -> Result<File, StateError> {
    let mut options = OpenOptions::new();
    let file = options.append(true).open(path);
    let file = file.map_err(StateError::io("open", path))?;
    let found = file.metadata().map_err(StateError::io("read", path))?.len();
    if found != length {
        tracing::info!(file = %path.display(), bytes = found - length, "the end of the log was half-written and is dropped");
        file.set_len(length)
            .map_err(StateError::io("write", path))?;
    }
    Ok(file)
}

/// Carries out what a log says. The answer is where its last record ends.
fn replay(
    path: &Path,
    store: &Store,
    tokens: &mut Vec<Vec<u8>>,
    later: &[u64],
) -> Result<u64, StateError> {
    let damaged = |at: u64, why: String| {
        let cut = match at {
            0 => format!("remove {}", path.display()),
            at => format!("truncate --size {at} {}", path.display()),
        };
        let then = later.iter().map(|number| format!(", remove log-{number}"));
        StateError::Damaged {
            path: path.to_owned(),
            at,
            why,
            remedy: format!(
                "everything up to resourceVersion {} is whole: put back a copy of the folder, or, to go on from there without what was written since, {cut}{}",
                store.version(),
                then.collect::<String>()
            ),
        }
    };
    let (version, mut records) = file::open(path, Kind::Log)?;
    if version != store.version() {
        let why = format!("it goes on from resourceVersion {version}, which is not the last one");
        return Err(damaged(0, why));
    }
    loop {
        let at = records.at();
        let why = match records.next() {
            Ok(None) => return Ok(at),
            // Whether something of it counts is seen by where the next one goes on.
            Err(Flaw::Torn) => return Ok(at),
            Err(Flaw::Damaged(why)) => why.to_owned(),
            Err(Flaw::Unreadable(error)) => return Err(StateError::io("read", path)(error)),
            Ok(Some(Entry::Token { grant })) => {
                tokens.push(grant.to_vec());
                continue;
            }
            Ok(Some(entry)) => match store.replay(&entry) {
                Ok(()) => continue,
                Err(why) => why,
            },
        };
        return Err(damaged(at, why));
    }
}
