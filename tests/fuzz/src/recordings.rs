//! Recordings, which are files that people send each other.

use reeve_core::recording::{Recording, RecordingError, compare};

/// The input is a file.
///
/// What is read in is written and read back the same; what is not says why. A file that
/// reads as unchanged after a change would be one whose digest means nothing.
pub fn recordings(input: &[u8]) {
    let read = match Recording::read(input) {
        Ok(read) => read,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let recording = read.recording;
    let text = match recording.to_text() {
        Ok(text) => text,
        // As its own lines it may be longer than as it came.
        Err(error) => return assert_eq!(error, RecordingError::TooMuch),
    };
    let again = Recording::read(text.as_bytes()).expect("what is written reads back");
    assert_eq!(again.recording, recording);
    assert!(!again.edited, "what was just written is told to be edited");
    assert_eq!(again.recording.to_text().as_ref(), Ok(&text));
    assert_eq!(compare(&recording.answer, &again.recording.answer), []);
    let mut other = recording.clone();
    other.metadata.plugin.push('x');
    assert_ne!(other.digest(), recording.digest());
}
