//! Compiled components that all programs of tests share.
//!
//! Most tests begin with an agent that has compiled nothing, and a debug build compiles
//! the components of this repository for longer than the tests run. So an agent begins
//! with what others before it have compiled, and nothing else: not with the components
//! that they kept for their next start.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use anyhow::{Context as _, Result};

/// By which the agent knows entries as its own: 32 bytes that only their owner may read.
const KEY: &str = "key";

/// How the names of entries end that an agent keeps for its next start.
const KEPT: &str = "-kept-as-it-comes";

/// More than all components of this repository and its tests take; beyond it those
/// made longest ago are let go of.
const LIMIT: u64 = 512 << 20;

/// The folder in which programs of tests keep compiled components for one another and for
/// the next run, if there is one.
#[must_use]
pub fn compiled() -> Option<PathBuf> {
    env::var_os("REEVE_CACHE").map(PathBuf::from)
}

/// The folder that agents share.
#[derive(Clone, Debug)]
pub struct Compiled {
    shared: PathBuf,
}

impl Compiled {
    /// The one that all programs of a run share; without one, that beside the `reeve`
    /// binary that compiles.
    ///
    /// # Errors
    ///
    /// When the folder or its key cannot be made.
    pub fn beside(binary: &Path) -> Result<Self> {
        if let Some(shared) = Self::shared()? {
            return Ok(shared);
        }
        let folder = binary.parent().context("the binary is in no folder")?;
        Self::at(folder.join("compiled-for-tests"))
    }

    /// The one that all programs of a run share, if there is one.
    ///
    /// # Errors
    ///
    /// When the folder or its key cannot be made.
    pub fn shared() -> Result<Option<Self>> {
        compiled().map(Self::at).transpose()
    }

    fn at(shared: PathBuf) -> Result<Self> {
        fs::create_dir_all(&shared)?;
        let compiled = Self { shared };
        if !compiled.shared.join(KEY).exists() {
            let mut key = [0; 32];
            File::open("/dev/urandom")?.read_exact(&mut key)?;
            // Of several processes one makes the key, and the others find it.
            compiled.write(KEY, &key, false)?;
        }
        Ok(compiled)
    }

    /// Gives a cache what has been compiled so far, unless it was in use before.
    ///
    /// # Errors
    ///
    /// When the cache cannot be written, or the folder cannot be read.
    pub fn give(&self, cache: &Path) -> Result<()> {
        fs::create_dir_all(cache)?;
        if cache.join(KEY).exists() {
            return Ok(());
        }
        for entry in entries(&self.shared)? {
            // A link will do: neither side changes an entry, and what takes its place is
            // another file. Another process may just have let go of it.
            let place = cache.join(&entry.name);
            if fs::hard_link(&entry.path, &place).is_err() {
                let _ = fs::copy(&entry.path, &place);
            }
        }
        fs::copy(self.shared.join(KEY), cache.join(KEY)).context("the key cannot be copied")?;
        Ok(())
    }

    /// Takes over what an agent has compiled into a cache that it was given.
    ///
    /// # Errors
    ///
    /// When the cache cannot be read, or the folder cannot be written.
    pub fn take(&self, cache: &Path) -> Result<()> {
        if fs::read(cache.join(KEY))? != fs::read(self.shared.join(KEY))? {
            return Ok(());
        }
        for entry in entries(cache)? {
            if !self.shared.join(&entry.name).exists() {
                self.write(&entry.name, &fs::read(&entry.path)?, true)?;
            }
        }
        self.stay_within(LIMIT)
    }

    /// Puts a whole file in its place at once.
    fn write(&self, name: &str, bytes: &[u8], replace: bool) -> Result<()> {
        static WRITES: AtomicU64 = AtomicU64::new(0);
        let write = WRITES.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("{}-{write}.tmp", process::id());
        let temporary = self.shared.join(temporary);
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(bytes)?;
        let place = self.shared.join(name);
        if replace {
            return Ok(fs::rename(&temporary, place)?);
        }
        let linked = fs::hard_link(&temporary, place);
        fs::remove_file(&temporary)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn stay_within(&self, limit: u64) -> Result<()> {
        let mut entries = entries(&self.shared)?;
        entries.sort_by_key(|entry| entry.made);
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        for entry in entries {
            if bytes <= limit {
                break;
            }
            bytes -= entry.bytes;
            // Another process may have done it.
            let _ = fs::remove_file(entry.path);
        }
        Ok(())
    }
}

struct Entry {
    name: String,
    path: PathBuf,
    bytes: u64,
    made: SystemTime,
}

/// The compiled components in a folder.
fn entries(folder: &Path) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Neither the key, nor what is half written.
        let is_entry = name.len() > 64 && !name.ends_with(KEPT) && !name.contains('.');
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if is_entry && metadata.is_file() {
            found.push(Entry {
                name,
                path: entry.path(),
                bytes: metadata.len(),
                made: metadata.modified()?,
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compiled_is_shared_and_what_was_kept_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let compiled = Compiled::at(folder.path().join("shared")).unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        let one = format!("{}-{}", "a".repeat(64), "1".repeat(16));
        let kept = format!("{}{KEPT}", "b".repeat(64));
        compiled.give(&first).unwrap();
        for (name, text) in [(&one, "code"), (&kept, "bytes")] {
            fs::write(first.join(name), text).unwrap();
        }
        fs::write(first.join(format!("{one}.7.tmp")), "half").unwrap();
        compiled.take(&first).unwrap();
        compiled.give(&second).unwrap();
        assert_eq!(fs::read_to_string(second.join(&one)).unwrap(), "code");
        assert_eq!(
            fs::read(second.join(KEY)).unwrap(),
            fs::read(first.join(KEY)).unwrap()
        );
        assert_eq!(fs::read_dir(&second).unwrap().count(), 2, "the key and one");

        compiled.stay_within(3).unwrap();
        assert!(entries(&compiled.shared).unwrap().is_empty());
    }

    #[test]
    fn a_cache_with_a_key_of_its_own_gives_and_gets_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let compiled = Compiled::at(folder.path().join("shared")).unwrap();
        let cache = folder.path().join("cache");
        fs::create_dir_all(&cache).unwrap();
        fs::write(cache.join(KEY), "another").unwrap();
        let one = format!("{}-{}", "a".repeat(64), "1".repeat(16));
        fs::write(cache.join(&one), "code").unwrap();
        compiled.give(&cache).unwrap();
        compiled.take(&cache).unwrap();
        assert_eq!(fs::read(cache.join(KEY)).unwrap(), b"another");
        assert!(entries(&compiled.shared).unwrap().is_empty());
    }
}
