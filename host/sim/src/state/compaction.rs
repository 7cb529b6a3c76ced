//! A snapshot takes the place of what was written so far.

use super::StateError;
use super::file::Kind;
use super::folder::{self, numbered};
use super::journal::Journal;
use super::snapshot;
use super::source::Source;

/// Writes a snapshot, and removes what it takes the place of. Writes wait only while
/// the objects are noted, which are shared.
pub(super) fn compact(source: &Source, journal: &Journal) -> Result<(), StateError> {
    // Most of it before anybody has to wait.
    journal.sync();
    let (image, number) = source.image(|version| journal.switch(version))?;
    let path = numbered(journal.folder(), Kind::Snapshot, number);
    let length = snapshot::create(&path, &image)?;
    journal.compacted(length);
    folder::tidy(
        journal.folder(),
        &folder::content(journal.folder())?,
        number,
    );
    Ok(())
}
