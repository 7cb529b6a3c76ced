//! What the agent writes to its log, for tests that look at it.

use parking_lot::Mutex;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// The log of this thread for as long as it lives: a line an event, with what it is about
/// as `target=name` and its fields as `name=value`.
pub(crate) struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

impl Log {
    /// Begins to keep what is logged, from warnings on.
    pub(crate) fn kept() -> Self {
        Self::kept_from(Level::WARN)
    }

    /// Begins to keep what is logged, from a level on.
    pub(crate) fn kept_from(level: Level) -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let keeper = Keeper {
            lines: lines.clone(),
            level,
        };
        Self {
            lines,
            _guard: tracing::subscriber::set_default(keeper),
        }
    }

    /// Whether there is a line with all of these texts.
    pub(crate) fn has(&self, texts: &[&str]) -> bool {
        !self.with(texts).is_empty()
    }

    /// The lines with all of these texts.
    pub(crate) fn with(&self, texts: &[&str]) -> Vec<String> {
        let lines = self.lines.lock();
        let has_all = |line: &&String| texts.iter().all(|text| line.contains(text));
        lines.iter().filter(has_all).cloned().collect()
    }

    /// The lines since this was last called.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock())
    }
}

struct Keeper {
    lines: Arc<Mutex<Vec<String>>>,
    level: Level,
}

struct Line(String);

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        write!(self.0, "{field}={value} ").unwrap();
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("target={} ", event.metadata().target()));
        event.record(&mut line);
        self.lines.lock().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
