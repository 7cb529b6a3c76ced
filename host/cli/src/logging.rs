//! Logs, to standard error.

use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;

/// Starts logging at this level unless `RUST_LOG` says otherwise.
pub(crate) fn init(level: &str, json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if json {
        logs.json().init();
    } else {
        logs.with_ansi(std::io::stderr().is_terminal()).init();
    }
}
