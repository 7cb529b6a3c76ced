//! Logs, to standard error.

use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;

/// Starts logging at this level unless `RUST_LOG` says otherwise.
pub(crate) fn init(level: &str, json: bool) {
    let asked = std::env::var(EnvFilter::DEFAULT_ENV).ok();
    let asked = asked.filter(|text| !text.trim().is_empty());
    let asked = asked.map(EnvFilter::try_new).transpose();
    let (filter, unusable) = match asked {
        Ok(filter) => (filter, None),
        Err(error) => (None, Some(error)),
    };
    let filter = filter.unwrap_or_else(|| EnvFilter::new(level));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if json {
        logs.json().init();
    } else {
        logs.with_ansi(std::io::stderr().is_terminal()).init();
    }
    if let Some(error) = unusable {
        let variable = EnvFilter::DEFAULT_ENV;
        tracing::warn!(%error, "{variable} is no filter of logs, and ignored");
    }
}
