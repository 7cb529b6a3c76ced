//! Logs, to standard error.

use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;

/// Starts logging at this level unless `RUST_LOG` says otherwise.
pub(crate) fn init(level: &str, json: bool) {
    let asked = std::env::var(EnvFilter::DEFAULT_ENV).ok();
    let asked = asked.filter(|text| !text.trim().is_empty());
    let filter = match asked.map(EnvFilter::try_new) {
        Some(Ok(filter)) => filter,
        Some(Err(error)) => {
            let name = EnvFilter::DEFAULT_ENV;
            crate::output::complain(format!("{name} is no filter of logs, and ignored: {error}"));
            EnvFilter::new(level)
        }
        None => EnvFilter::new(level),
    };
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if json {
        logs.json().init();
    } else {
        logs.with_ansi(std::io::stderr().is_terminal()).init();
    }
}
