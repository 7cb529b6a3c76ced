//! All objects at one version, as a file.

use std::io::{self, Write};
use std::path::Path;

use super::StateError;
use super::file::{self, Kind};
use super::record::{Entry, Flaw};
use crate::store::{Image, Store};

/// What a snapshot holds.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The objects.
    pub(crate) objects: Image,
    /// The tokens that hold, as they are kept.
    pub(crate) tokens: Vec<Vec<u8>>,
}

/// Writes a snapshot to `path`, all at once. The answer is its length.
pub(super) fn create(path: &Path, snapshot: &Snapshot) -> Result<u64, StateError> {
    let mut length = 0;
    file::create(path, |output| {
        length = write(output, snapshot)?;
        Ok(())
    })?;
    Ok(length)
}

/// Writes a snapshot. The answer is its length.
pub(super) fn write(output: &mut impl Write, snapshot: &Snapshot) -> io::Result<u64> {
    let version = snapshot.objects.version;
    let line = file::line(Kind::Snapshot, version);
    output.write_all(line.as_bytes())?;
    let (mut length, mut records) = (line.len() as u64, 0);
    let mut buffer = Vec::new();
    let mut put = |entry: Entry<'_>| {
        buffer.clear();
        entry.encode(&mut buffer)?;
        length += buffer.len() as u64;
        output.write_all(&buffer)
    };
    for grant in &snapshot.tokens {
        put(Entry::Token { grant })?;
        records += 1;
    }
    for (table, objects) in &snapshot.objects.tables {
        put(Entry::Table { table })?;
        records += 1;
        for object in objects {
            put(Entry::Put {
                version: object.version(),
                table,
                key: object.key(),
                json: object.written(),
                mark: object.mark(),
            })?;
            records += 1;
        }
    }
    put(Entry::End { version, records })?;
    Ok(length)
}

/// A snapshot that was read.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) store: Store,
    /// The tokens, as they are kept.
    pub(super) tokens: Vec<Vec<u8>>,
    /// How many bytes it has.
    pub(super) length: u64,
}

/// Reads a snapshot, all or nothing.
pub(super) fn read(path: &Path, history: usize) -> Result<Loaded, StateError> {
    let (version, mut records) = file::open(path, Kind::Snapshot)?;
    let store = Store::restored(history, version);
    let mut tokens = Vec::new();
    let mut count = 0;
    let damaged = |at, why: String| {
        StateError::Damaged {
        path: path.to_owned(),
        at,
        why,
        remedy: "what comes after that is lost, so that nothing of it is used: put back a copy, or begin anew with another folder".to_owned(),
    }
    };
    loop {
        let at = records.at();
        let why = match records.next() {
            Ok(Some(Entry::End {
                version: end,
                records: expected,
            })) => {
                let is_end = end == version && expected == count;
                match (is_end, records.next()) {
                    (true, Ok(None)) => {
                        return Ok(Loaded {
                            store,
                            tokens,
                            length: records.at(),
                        });
                    }
                    _ => "it does not end where it says".to_owned(),
                }
            }
            Ok(Some(Entry::Token { grant })) => {
                tokens.push(grant.to_vec());
                count += 1;
                continue;
            }
            Ok(Some(entry)) => match store.place(&entry) {
                Ok(()) => {
                    count += 1;
                    continue;
                }
                Err(why) => why,
            },
            Ok(None) | Err(Flaw::Torn) => "it is cut off".to_owned(),
            Err(Flaw::Damaged(why)) => why.to_owned(),
            Err(Flaw::Unreadable(error)) => return Err(StateError::io("read", path)(error)),
        };
        return Err(damaged(at, why));
    }
}
