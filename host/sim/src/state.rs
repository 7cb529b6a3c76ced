//! What a server keeps in a folder, so that it outlives its process.
//!
//! A folder holds a snapshot of all objects and a log of the writes since then. Each
//! write is in the log before anybody sees it, and before its caller is answered: a
//! process that is killed has lost nothing that it told anybody of. The log goes to
//! the disk once a second ([`journal::INTERVAL`]) and when the server ends, so that a
//! machine that loses its power may lose the writes of the last second. When the log
//! has grown as long as the snapshot, another snapshot takes the place of both.
//!
//! | File | |
//! |---|---|
//! | `lock` | is locked while a server runs, and names its process |
//! | `server.json` | certificate, key, administrator's token and address |
//! | `snapshot-N` | all objects and tokens, before the first record of `log-N` |
//! | `log-N` | what was written since, one record after the other |
//!
//! A log of our own and no database: there is one writer, all is in memory, and
//! nothing is ever looked up on the disk. What is left is to append and to read from
//! the start.

mod begin;
mod compaction;
pub(crate) mod copy;
mod error;
mod file;
mod folder;
pub(crate) mod journal;
mod keeper;
pub(crate) mod record;
mod recover;
mod snapshot;
mod source;

pub use self::copy::{is_snapshot, load_state, save_state};
pub use self::error::StateError;
pub(crate) use self::folder::Known;
pub(crate) use self::journal::{Journal, Unkept};
pub(crate) use self::keeper::Kept;
pub(crate) use self::record::Entry;
pub(crate) use self::snapshot::Snapshot;
