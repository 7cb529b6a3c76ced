//! The files of a state: their first line, and how they come to be all at once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::StateError;
use super::record::Records;

/// The format that is written, and the newest that is read. In the first one, no object has a
/// mark.
pub(super) const FORMAT: u64 = 2;
/// The first word of every file.
pub(super) const MAGIC: &str = "reeve-state";
/// No version is larger: in tokens of pages they are numbers of 63 bits and a sign, and no
/// server will ever have made so many writes.
const LAST_VERSION: u64 = i64::MAX.unsigned_abs();
/// No first line is longer.
const LONGEST_LINE: u64 = 200;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// All objects at one version.
    Snapshot,
    /// The writes after it.
    Log,
}

impl Kind {
    /// The word in the first line, and the start of the file's name.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Snapshot => "snapshot",
            Kind::Log => "log",
        }
    }
}

/// The first line of a file that begins at `version`.
pub(super) fn line(kind: Kind, version: u64) -> String {
    format!("{MAGIC} {FORMAT} {} {version}\n", kind.word())
}

/// Whether a file that can be read is of an older format, of which whoever wrote it expects no
/// newer records.
pub(super) fn is_older(path: &Path) -> Result<bool, StateError> {
    let mut first = Vec::new();
    let file = File::open(path).map_err(StateError::io("read", path))?;
    let mut input = BufReader::new(io::Read::take(file, LONGEST_LINE));
    let read = input.read_until(b'\n', &mut first);
    read.map_err(StateError::io("read", path))?;
    let format = std::str::from_utf8(&first).ok().and_then(|line| {
        let format = line.split(' ').nth(1)?;
        format.parse::<u64>().ok()
    });
    Ok(format.is_some_and(|format| format < FORMAT))
}

/// Opens a file of this kind: the version that it begins at, and its records.
pub(super) fn open(path: &Path, kind: Kind) -> Result<(u64, Records<BufReader<File>>), StateError> {
    let unreadable = |source| StateError::Unusable {
        action: "read",
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let end = file.metadata().map_err(unreadable)?.len();
    let mut input = BufReader::with_capacity(1 << 16, file);
    let mut first = Vec::new();
    io::Read::take(&mut input, LONGEST_LINE)
        .read_until(b'\n', &mut first)
        .map_err(unreadable)?;
    let version = parse(&first, kind).map_err(|wrong| match wrong {
        Wrong::Newer(format) => StateError::Newer {
            path: path.to_owned(),
            format,
            known: FORMAT,
        },
        Wrong::Other => StateError::Damaged {
            path: path.to_owned(),
            at: 0,
            why: format!("it does not begin as a {} of reeve does", kind.word()),
            remedy: "nothing of it can be read: name another file, or put back a copy".to_owned(),
        },
    })?;
    let at = u64::try_from(first.len()).unwrap_or(end);
    Ok((version, Records::new(input, at, end)))
}

enum Wrong {
    Newer(u64),
    Other,
}

fn parse(first: &[u8], kind: Kind) -> Result<u64, Wrong> {
    let line = std::str::from_utf8(first).map_err(|_| Wrong::Other)?;
    let line = line.strip_suffix('\n').ok_or(Wrong::Other)?;
    let mut words = line.split(' ');
    if words.next() != Some(MAGIC) {
        return Err(Wrong::Other);
    }
    let mut number = || words.next()?.parse::<u64>().ok();
    let format = number().ok_or(Wrong::Other)?;
    if format > FORMAT {
        return Err(Wrong::Newer(format));
    }
    let mut words = line.split(' ').skip(2);
    match (words.next(), words.next(), words.next()) {
        (Some(word), Some(version), None) if word == kind.word() => {
            let version = version.parse().map_err(|_| Wrong::Other)?;
            (version <= LAST_VERSION)
                .then_some(version)
                .ok_or(Wrong::Other)
        }
        _ => Err(Wrong::Other),
    }
}

/// Writes a file that only its owner can read: after a crash at any moment it is
/// there whole, or not there. The answer is the file, open for appending.
pub(super) fn create(
    path: &Path,
    write: impl FnOnce(&mut io::BufWriter<&File>) -> io::Result<()>,
) -> Result<File, StateError> {
    let fresh = fresh(path);
    let made = (|| {
        // What an earlier attempt has left may have another mode.
        let _ = fs::remove_file(&fresh);
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&fresh)?;
        let mut output = io::BufWriter::with_capacity(1 << 16, &file);
        write(&mut output)?;
        output.flush()?;
        drop(output);
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        sync_folder(path)?;
        Ok(file)
    })();
    made.map_err(|source| {
        let _ = fs::remove_file(&fresh);
        StateError::io("write", path)(source)
    })
}

/// Where a file is written before it gets its name.
pub(super) fn fresh(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(NEW);
    path.with_file_name(name)
}

/// The end of the name of a file that is not whole yet.
pub(super) const NEW: &str = ".new";

/// A name is on the disk when its folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_are_read_as_they_are_written() {
        let ok = |first: &str, kind| parse(first.as_bytes(), kind).ok();
        assert_eq!(ok(&line(Kind::Log, 17), Kind::Log), Some(17));
        for wrong in [
            "",
            "reeve-state",
            "reeve-state 1 log 17",
            "reeve-state 1 snapshot 17\n",
            "reeve-state 1 log x\n",
            "reeve-state 1 log 17 18\n",
            "reeve-state 1 log 9223372036854775808\n",
            "reeve-state 1 log 18446744073709551615\n",
            "apiVersion: v1\n",
        ] {
            assert_eq!(ok(wrong, Kind::Log), None, "{wrong}");
        }
        let newer = parse(b"reeve-state 3 anything else\n", Kind::Log);
        assert!(matches!(newer, Err(Wrong::Newer(3))));
    }
}
