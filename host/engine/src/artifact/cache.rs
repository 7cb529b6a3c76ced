//! Compiled components, kept from one start to the next.
//!
//! Loading machine code is running it, so the cache believes nothing that it has
//! not written itself. Each entry carries a MAC over its name and contents, made
//! with a key that only this installation has. An entry that is truncated,
//! altered, moved under another name or made by another version is removed and
//! the component compiled again. There is no way to put an entry in from outside.
//!
//! ```text
//! folder/key                      32 random bytes, readable by the owner only
//! folder/<component>-<settings>   MAC (32 bytes), then what wasmtime wrote
//! folder/<key>-kept-as-it-comes   MAC (32 bytes), then bytes of the host
//! ```

use super::{Artifact, Code};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt, PermissionsExt};
use hmac::{Hmac, Mac};
use reeve_core::Digest;
use ring::digest;
use sha2::Sha256;
use std::ffi::OsStr;
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use wasmtime::Engine;

const KEY_FILE: &str = "key";
const KEY_BYTES: usize = 32;
const MAC_BYTES: usize = 32;

/// Machine code is some times larger than the component it comes from; an entry
/// beyond this is not one of ours.
const ENTRY_BYTES: u64 = 512 << 20;

/// What compiled components may take: some hundred of them. Beyond that those
/// used longest ago leave.
const COMPILED_BYTES: u64 = 1 << 30;

/// What kept bytes may take: a thousand ordinary components.
const KEPT_BYTES: u64 = 256 << 20;

/// Ends the name of an entry with kept bytes. It is as long as the hexadecimal
/// digits that stand there for settings, and is none.
const KEPT: &str = "kept-as-it-comes";

/// The cache folder.
pub(crate) struct Cache {
    folder: Dir,
    key: [u8; KEY_BYTES],
    /// Stands for everything besides the component that decides about the machine
    /// code: the versions of wasmtime and of this crate, the settings, this processor.
    settings: String,
    /// For the names of files that are being written.
    writes: AtomicU64,
    /// Bytes of code that is mapped from files without names in the folder.
    mapped: Arc<AtomicU64>,
}

/// Room in the folder for code that is mapped, for as long as this is there.
pub(super) struct Room {
    bytes: u64,
    taken: Arc<AtomicU64>,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What an entry holds. Neither sort takes the other's room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Machine code, that of other versions included, and what a killed process
    /// left half written.
    Compiled,
    /// Bytes that the host keeps.
    Kept,
}

impl Sort {
    fn of(name: &OsStr) -> Self {
        if name.to_string_lossy().ends_with(KEPT) {
            Self::Kept
        } else {
            Self::Compiled
        }
    }
}

/// Why the cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The folder cannot be made or opened.
    #[error("cannot open the folder {folder}")]
    Open {
        /// The folder.
        folder: String,
        /// Why.
        source: io::Error,
    },
    /// The key cannot be read or made.
    #[error("cannot read or make the key `{KEY_FILE}` in the folder {folder}")]
    Key {
        /// The folder.
        folder: String,
        /// Why.
        source: io::Error,
    },
}

impl Cache {
    /// Opens a folder as cache, making it and its key where they are missing.
    pub(crate) fn open(path: &Path, engine: &Engine) -> Result<Self, CacheError> {
        let folder = open_folder(path).map_err(|source| CacheError::Open {
            folder: path.display().to_string(),
            source,
        })?;
        let key = read_or_make_key(&folder).map_err(|source| CacheError::Key {
            folder: path.display().to_string(),
            source,
        })?;
        Ok(Self {
            folder,
            key,
            settings: settings(engine),
            writes: AtomicU64::new(0),
            mapped: Arc::default(),
        })
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Dir {
        &self.folder
    }

    /// Room for code that is to be mapped; none when what is mapped takes as much as compiled
    /// components may, so that the folder holds no more than twice that.
    pub(super) fn room(&self, bytes: u64) -> Option<Room> {
        let taken = Arc::clone(&self.mapped);
        let room = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            let taken = taken.checked_add(bytes)?;
            (taken <= COMPILED_BYTES).then_some(taken)
        });
        room.is_ok().then_some(Room { bytes, taken })
    }

    /// The compiled form of a component, if there is a sound one.
    pub(crate) fn get(&self, digest: Digest, engine: &Engine) -> Option<Code> {
        let name = self.name(digest);
        let entry = match self.read(&name) {
            Ok(entry) => entry?,
            Err(error) => {
                tracing::warn!(%error, name, "cannot read a compiled component");
                return None;
            }
        };
        let Some(contents) = self.verified(&name, &entry) else {
            tracing::warn!(
                name,
                "a compiled component was damaged or altered, discarding it"
            );
            if let Err(error) = self.folder.remove_file(&name) {
                tracing::warn!(%error, name, "cannot remove a damaged compiled component");
            }
            return None;
        };
        // Sound, so what keeps it from running now is nothing of the entry's.
        super::ready(contents, engine, self)
            .inspect_err(|error| {
                let error = format!("{error:#}");
                tracing::warn!(error, name, "a compiled component cannot be used");
            })
            .ok()
    }

    /// Keeps the compiled form of a component. Without success nothing is lost
    /// but time, so that is a line in the log.
    pub(crate) fn put(&self, digest: Digest, artifact: &Artifact) {
        let name = self.name(digest);
        let written = self
            .make_room(Sort::Compiled, artifact.0.len() as u64, COMPILED_BYTES)
            .and_then(|()| self.write(&name, &[&artifact.0]));
        if let Err(error) = written {
            tracing::warn!(%error, name, "cannot keep a compiled component");
        }
    }

    /// Keeps bytes under a key, in the place of what was kept there. Nothing is
    /// written when what is kept is whole and begins with this head. Returns whether it
    /// is kept now.
    pub(crate) fn keep(&self, key: Digest, head: &[u8], body: &[u8]) -> bool {
        let name = kept_name(key);
        let kept = self.read(&name).and_then(|entry| {
            let kept = entry.as_deref().and_then(|e| self.verified(&name, e));
            if kept.is_some_and(|contents| contents.starts_with(head)) {
                return Ok(());
            }
            self.make_room(Sort::Kept, (head.len() + body.len()) as u64, KEPT_BYTES)?;
            self.write(&name, &[head, body])
        });
        if let Err(error) = kept {
            tracing::warn!(%error, name, "cannot keep a plugin for the next start");
            return false;
        }
        true
    }

    /// What is kept under a key, if it is just as it was when it was kept.
    pub(crate) fn kept(&self, key: Digest) -> Option<Vec<u8>> {
        let name = kept_name(key);
        let entry = match self.read(&name) {
            Ok(entry) => entry?,
            Err(error) => {
                tracing::warn!(%error, name, "cannot read a kept plugin");
                return None;
            }
        };
        let contents = self.verified(&name, &entry).map(<[u8]>::to_vec);
        if contents.is_none() {
            tracing::warn!(name, "a kept plugin was damaged or altered, ignoring it");
        }
        contents
    }

    fn name(&self, digest: Digest) -> String {
        format!("{}-{}", digest.hex(), self.settings)
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.open_entry(name)? else {
            return Ok(None);
        };
        let mut entry = Vec::new();
        file.take(ENTRY_BYTES).read_to_end(&mut entry)?;
        Ok(Some(entry))
    }

    /// Opens an entry, which thereby counts as used.
    fn open_entry(&self, name: &str) -> io::Result<Option<std::fs::File>> {
        let file = match self.folder.open(name) {
            Ok(file) => file.into_std(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // On a folder that can only be read, nothing is removed either.
        let _ = file.set_modified(SystemTime::now());
        Ok(Some(file))
    }

    /// The contents of an entry, if we wrote it under this name.
    fn verified<'a>(&self, name: &str, entry: &'a [u8]) -> Option<&'a [u8]> {
        let (mac, contents) = entry.split_at_checked(MAC_BYTES)?;
        self.mac(name, &[contents])?.verify_slice(mac).ok()?;
        Some(contents)
    }

    /// Over the digest of name and contents, in however many parts those come. Names all
    /// have one length, so nothing can move from one to the other.
    fn mac(&self, name: &str, parts: &[&[u8]]) -> Option<Hmac<Sha256>> {
        let mut hash = digest::Context::new(&digest::SHA256);
        hash.update(name.as_bytes());
        for part in parts {
            hash.update(part);
        }
        let mac: Hmac<Sha256> = Hmac::new_from_slice(&self.key).ok()?;
        Some(mac.chain_update(hash.finish()))
    }

    /// Removes the entries of a sort that were used longest ago, until so much
    /// more fits.
    fn make_room(&self, sort: Sort, bytes: u64, limit: u64) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in self.folder.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            // Another process may have removed it by now.
            if let Ok(metadata) = entry.metadata()
                && name != KEY_FILE
                && Sort::of(&name) == sort
            {
                entries.push((metadata.modified()?, metadata.len(), name));
            }
        }
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, size, _)| size).sum();
        for (_, size, name) in entries {
            if total.saturating_add(bytes) <= limit {
                break;
            }
            match self.folder.remove_file(&name) {
                // By another that makes room at this moment.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => total -= size,
            }
        }
        Ok(())
    }

    /// Whole or not at all, whoever else writes the same entry at this moment.
    fn write(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let mac = self
            .mac(name, parts)
            .ok_or_else(|| io::Error::other("no MAC with this key"))?
            .finalize()
            .into_bytes();
        let temporary = format!(
            "{}.{}.tmp",
            std::process::id(),
            self.writes.fetch_add(1, Ordering::Relaxed)
        );
        let mac: &[u8] = &mac;
        let whole: Vec<&[u8]> = std::iter::once(mac).chain(parts.iter().copied()).collect();
        let written = create(&self.folder, &temporary, &whole)
            .and_then(|()| self.folder.rename(&temporary, &self.folder, name));
        if written.is_err() {
            // The first failure is the one to report.
            let _ = self.folder.remove_file(&temporary);
        }
        written
    }
}

fn kept_name(key: Digest) -> String {
    format!("{}-{KEPT}", key.hex())
}

/// A name for everything that decides about the machine code, and about whether a
/// component is one that this version of the engine lets in: what is in the cache
/// is not looked at again.
fn settings(engine: &Engine) -> String {
    struct Bytes(digest::Context);

    impl Hasher for Bytes {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }

        fn finish(&self) -> u64 {
            // The digest is read instead.
            0
        }
    }

    let mut bytes = Bytes(digest::Context::new(&digest::SHA256));
    engine.precompile_compatibility_hash().hash(&mut bytes);
    bytes.write(env!("CARGO_PKG_VERSION").as_bytes());
    let digest = bytes.0.finish();
    let start = digest.as_ref().iter().take(8);
    start.map(|byte| format!("{byte:02x}")).collect()
}

fn open_folder(path: &Path) -> io::Result<Dir> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
    match Dir::open_ambient_dir(path, ambient_authority()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Made for the owner alone; one that exists keeps its rights, since a
            // mounted volume's are somebody else's business.
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            let parent =
                Dir::open_ambient_dir(parent.unwrap_or(Path::new(".")), ambient_authority())?;
            let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
            let mut builder = DirBuilder::new();
            builder.mode(0o700);
            parent.create_dir_with(name, &builder)?;
            parent.open_dir(name)
        }
        result => result,
    }
}

fn read_or_make_key(folder: &Dir) -> io::Result<[u8; KEY_BYTES]> {
    if let Some(key) = read_key(folder)? {
        return Ok(key);
    }
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    let temporary = format!("{KEY_FILE}.{}.tmp", std::process::id());
    create(folder, &temporary, &[&key])?;
    // Linking rather than renaming: of several processes that start at once, one
    // makes the key and the others find it.
    let linked = folder.hard_link(&temporary, folder, KEY_FILE);
    folder.remove_file(&temporary)?;
    match linked {
        Ok(()) => Ok(key),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read_key(folder)?.ok_or_else(|| io::Error::other("somebody keeps making bad keys"))
        }
        Err(error) => Err(error),
    }
}

/// The key, if there is a good one. One that others can read, or of another
/// length, is removed: all entries made with it are worth nothing from then on.
fn read_key(folder: &Dir) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let file = match folder.open(KEY_FILE) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_private = file.metadata()?.permissions().mode() & 0o077 == 0;
    let mut bytes = Vec::new();
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    match <[u8; KEY_BYTES]>::try_from(bytes) {
        Ok(key) if is_private => Ok(Some(key)),
        _ => {
            tracing::warn!("the key of the artifact cache was not private, making a new one");
            folder.remove_file(KEY_FILE)?;
            Ok(None)
        }
    }
}

fn create(folder: &Dir, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    // Left behind by a process of the same number that was killed.
    match folder.remove_file(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = folder.open_with(name, &options)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_oldest_entries_leave_when_the_folder_is_full() {
        let kept = kept_name(Digest::of(b"a"));
        for (bytes, expected) in [
            (0, &["a", "b", "c", "key"] as &[&str]),
            (70, &["a", "b", "c", "key"]),
            (71, &["b", "c", "key"]),
            (85, &["c", "key"]),
            (1000, &["key"]),
        ] {
            let mut expected = expected.to_vec();
            expected.push(&kept);
            expected.sort_unstable();
            let folder = tempfile::tempdir().unwrap();
            let engine = Engine::default();
            let cache = Cache::open(folder.path(), &engine).unwrap();
            for (age, name) in [(40, &*kept), (30, "a"), (20, "b"), (10, "c")] {
                let path = folder.path().join(name);
                std::fs::write(&path, [0; 10]).unwrap();
                let written = SystemTime::now() - Duration::from_secs(age);
                let file = std::fs::File::options().append(true).open(&path).unwrap();
                file.set_modified(written).unwrap();
            }
            cache.make_room(Sort::Compiled, bytes, 100).unwrap();
            let mut left: Vec<String> = std::fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            left.sort();
            assert_eq!(left, expected, "{bytes}");
        }
    }

    #[test]
    fn names_of_both_sorts_have_one_length() {
        let digest = Digest::of(b"a");
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), &Engine::default()).unwrap();
        assert_eq!(cache.name(digest).len(), kept_name(digest).len());
        assert!(!KEPT.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn kept_bytes_come_back_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Cache::open(folder.path(), &Engine::default()).unwrap();
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        let path = |key| folder.path().join(kept_name(key));
        open().keep(one, b"1\n", b"first");
        open().keep(two, b"2\n", b"second");
        assert_eq!(open().kept(one).unwrap(), b"1\nfirst");
        assert_eq!(open().kept(two).unwrap(), b"2\nsecond");

        // The same head stands for the same bytes, and another replaces them.
        open().keep(one, b"1\n", b"ignored");
        assert_eq!(open().kept(one).unwrap(), b"1\nfirst");
        open().keep(one, b"3\n", b"third");
        assert_eq!(open().kept(one).unwrap(), b"3\nthird");

        // Under another name, altered, or with another key it is nobody's.
        std::fs::copy(path(two), path(one)).unwrap();
        assert_eq!(open().kept(one), None);
        let mut bytes = std::fs::read(path(two)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(path(two), bytes).unwrap();
        assert_eq!(open().kept(two), None);
        open().keep(one, b"4\n", b"fourth");
        std::fs::remove_file(folder.path().join(KEY_FILE)).unwrap();
        assert_eq!(open().kept(one), None);
        assert_eq!(open().kept(Digest::of(b"never kept")), None);
    }

    #[test]
    fn what_is_used_stays_longest() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), &Engine::default()).unwrap();
        let keys = [b"a", b"b", b"c"].map(|name| Digest::of(name));
        for (index, key) in keys.into_iter().enumerate() {
            cache.keep(key, b"head", &[0; 10]);
            let path = folder.path().join(kept_name(key));
            let age = Duration::from_secs(100 - index as u64);
            let file = std::fs::File::options().append(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        cache.keep(keys[0], b"head", &[0; 10]);
        let all = 3 * (MAC_BYTES as u64 + 14);
        cache.make_room(Sort::Kept, 1, all).unwrap();
        let left = keys.map(|key| cache.kept(key).is_some());
        assert_eq!(left, [true, false, true]);
    }
}
