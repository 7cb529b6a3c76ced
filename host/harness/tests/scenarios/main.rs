//! Scenarios from text to report.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ended;
mod input;
mod played;
mod recorded;
mod support;
mod updated;
