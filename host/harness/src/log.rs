//! What plugins and the agent say while a scenario runs.

use parking_lot::Mutex;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Target of what plugins say.
const PLUGIN_TARGET: &str = "reeve::plugin";

/// Lines that are kept of one scenario: what a person reads of a failure, and a
/// bound on what a loop can take.
const MAX_LINES: usize = 200;

/// The lines of the scenario that runs on this thread. A subscriber of its own,
/// since what is global belongs to the program around us.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Takes the lines so far; what comes next begins anew.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target().starts_with("reeve")
            && (metadata.target() == PLUGIN_TARGET || *metadata.level() <= Level::WARN)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // Spans are never enabled.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line {
            plain: event.metadata().target() == PLUGIN_TARGET,
            text: event.metadata().level().to_string(),
        };
        event.record(&mut line);
        let mut lines = self.0.lock();
        if lines.len() == MAX_LINES {
            lines.remove(0);
        }
        lines.push(line.text);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// One event as a line.
struct Line {
    /// Whether values speak for themselves: a plugin's line is its text.
    plain: bool,
    text: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let message = field.name() == "message";
        // Writing to a String cannot fail.
        let _ = match (self.plain, message) {
            // That a plugin speaks is known from where this stands.
            (true, true) => Ok(()),
            (true, false) | (false, true) => write!(self.text, " {value:?}"),
            (false, false) => write!(self.text, " {}={value:?}", field.name()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_and_warnings_are_kept() {
        let log = Log::default();
        tracing::subscriber::with_default(log.clone(), || {
            tracing::info!(target: "reeve::plugin", primary = "Profile alice", text = "hello", "plugin says");
            tracing::warn!(target: "reeve_agent::x", reason = "Trapped", "unit not ready");
            tracing::info!(target: "reeve_agent::x", "not worth a line");
            tracing::error!(target: "hyper", "somebody else's");
        });
        assert_eq!(
            log.take(),
            [
                "INFO Profile alice hello",
                "WARN unit not ready reason=Trapped"
            ]
        );
        assert_eq!(log.take(), [""; 0]);
    }
}
