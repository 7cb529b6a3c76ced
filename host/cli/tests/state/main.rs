//! What outlives `reeve cluster`, as a shell sees it: the binary is run.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may fail anywhere"
)]

mod copies;
mod kills;
mod server;
