//! Saying that a test was skipped.

use std::io::Write as _;

/// Says, loudly, that something is not tried here, and why: the summary of a test run counts
/// it. Not by a macro, whose words the test runner keeps to itself where a test passes.
pub fn skipped(why: &str) {
    // Where nobody hears it, nothing is to be done about that.
    let _ = std::io::stderr().write_all(format!("SKIPPED: {why}\n").as_bytes());
}
