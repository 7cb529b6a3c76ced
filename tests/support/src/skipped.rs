//! Saying that a test was skipped.

use std::io::Write as _;

/// Says, loudly, that the test of this thread does not try something, and why: the summary of
/// a test run counts it. Not by a macro, whose words the test runner keeps to itself where a
/// test passes.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    // The test runner names threads by their tests.
    let test = thread.name().unwrap_or("a test");
    // Where nobody hears it, nothing is to be done about that.
    let _ = std::io::stderr().write_all(format!("SKIPPED: {test}: {why}\n").as_bytes());
}
