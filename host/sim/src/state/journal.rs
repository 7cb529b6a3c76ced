//! The log that writes are appended to before anybody sees them.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::Mutex;

use super::StateError;
use super::file::{self, Kind};
use super::folder::numbered;
use super::record::Entry;

/// How long a write may be with the operating system alone, which keeps it when the
/// process is killed, and not when the machine loses its power.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
/// A log may always become so long, in bytes, before a snapshot takes its place;
/// where the last snapshot was longer, as long as that.
const LEAST: u64 = 8 << 20;
/// The buffer of a large object is not kept for the small ones after it.
const BUFFER: usize = 1 << 20;

/// A write cannot be kept, and was not carried out. The log of the process says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unkept;

/// What the keeper is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Something was written that is not on the disk yet.
    Sync,
    /// The log is long enough.
    Compact,
    /// The server ends.
    Stop,
}

/// The log of one server.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    log: Mutex<Log>,
    /// Whether something may not be on the disk, of which the keeper was told.
    dirty: AtomicBool,
    orders: mpsc::Sender<Order>,
}

#[derive(Debug)]
struct Log {
    file: Arc<File>,
    path: PathBuf,
    number: u64,
    /// The length of the file.
    length: u64,
    /// The length at which a snapshot is asked for.
    enough: u64,
    /// What could not be taken back: nothing can be appended after it.
    broken: bool,
    buffer: Vec<u8>,
}

impl Journal {
    /// A journal that goes on with the log `number`, and the orders that it gives.
    /// The last snapshot has so many bytes.
    pub(super) fn new(
        folder: PathBuf,
        number: u64,
        file: File,
        length: u64,
        snapshot: u64,
    ) -> (Self, mpsc::Receiver<Order>) {
        let (orders, given) = mpsc::channel();
        let journal = Journal {
            log: Mutex::new(Log {
                file: Arc::new(file),
                path: numbered(&folder, Kind::Log, number),
                number,
                length,
                enough: snapshot.max(LEAST),
                broken: false,
                buffer: Vec::new(),
            }),
            folder,
            dirty: AtomicBool::new(false),
            orders,
        };
        (journal, given)
    }

    /// Appends an entry. When this returns, no end of the process loses it.
    pub(crate) fn append(&self, entry: &Entry<'_>) -> Result<(), Unkept> {
        let mut log = self.log.lock();
        if let Err(error) = log.append(entry) {
            tracing::error!(%error, file = %log.path.display(), "a write cannot be kept and is refused");
            return Err(Unkept);
        }
        if log.length >= log.enough {
            // Not again before it is done, or has failed for so long.
            log.enough = log.length.saturating_mul(2);
            self.order(Order::Compact);
        }
        if !self.dirty.swap(true, Ordering::AcqRel) {
            self.order(Order::Sync);
        }
        Ok(())
    }

    /// Brings what was appended so far to the disk. Writes go on meanwhile.
    pub(super) fn sync(&self) {
        self.dirty.store(false, Ordering::Release);
        let (file, path) = {
            let log = self.log.lock();
            (log.file.clone(), log.path.clone())
        };
        if let Err(error) = file.sync_data() {
            tracing::error!(%error, file = %path.display(), "the log may not be on the disk");
        }
    }

    /// Appends to a new log from here on, which begins at `version`. The answer is its
    /// number. Nobody may write meanwhile.
    pub(super) fn switch(&self, version: u64) -> Result<u64, StateError> {
        let mut log = self.log.lock();
        let number = log.number + 1;
        let path = numbered(&self.folder, Kind::Log, number);
        // The new log means nothing without the whole of the one before.
        log.file
            .sync_data()
            .map_err(StateError::io("write", &log.path))?;
        let (file, length) = begin(&path, version).inspect_err(|_| {
            // Writes go on in the log before, which no other may follow then.
            let left = path.exists() && std::fs::remove_file(&path).is_err();
            log.broken |= left;
        })?;
        log.file = Arc::new(file);
        log.path = path;
        log.number = number;
        log.length = length;
        log.enough = LEAST;
        log.broken = false;
        Ok(number)
    }

    /// Takes note of how long the snapshot is that has taken the place of the logs.
    pub(super) fn compacted(&self, snapshot: u64) {
        self.log.lock().enough = snapshot.max(LEAST);
    }

    /// Tells the keeper what to do; one that has ended does nothing more.
    pub(super) fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// The folder that the log is in.
    pub(super) fn folder(&self) -> &PathBuf {
        &self.folder
    }
}

impl Log {
    fn append(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other(
                "an earlier write could not be taken back; start the server again",
            ));
        }
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER);
        entry.encode(&mut self.buffer)?;
        if let Err(error) = (&*self.file).write_all(&self.buffer) {
            // A part may be there, after which nothing could be read.
            self.broken = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        self.length += self.buffer.len() as u64;
        Ok(())
    }
}

/// A new log that begins at `version`, and its length.
pub(super) fn begin(path: &std::path::Path, version: u64) -> Result<(File, u64), StateError> {
    let line = file::line(Kind::Log, version);
    let file = file::create(path, |output| output.write_all(line.as_bytes()))?;
    Ok((file, line.len() as u64))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use serde_json::json;

    use super::*;
    use crate::store::{Range, Refused, Store, TableName};

    #[test]
    fn what_cannot_be_kept_is_not_written() {
        // It takes nothing, as a full disk does.
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let folder = std::env::temp_dir();
        let (journal, _orders) = Journal::new(folder, 1, full, 0, 0);
        let store = Store::new(10);
        let table = TableName::from("pods");
        let before = store.create(&table, "a", json!({"metadata": {}})).unwrap();
        store.keep_in(Arc::new(journal));
        for refused in [
            store.create(&table, "b", json!({})),
            store.replace(&table, "a", before.version(), json!({})),
            store.remove(&table, "a", before.version()),
        ] {
            assert_eq!(refused, Err(Refused::Unkept));
        }
        let page = store.list("pods", &Range::default(), None).unwrap();
        assert_eq!(
            (page.version, page.objects),
            (before.version(), vec![before])
        );
    }
}
