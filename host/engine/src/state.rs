//! What the store of one call holds.

use crate::called::{Level, LogLine, Usage};
use crate::capabilities::wasi::Wasi;
use crate::limits::Limits;
use crate::meter::Meter;
use crate::outside::Outside;
use crate::view::View;
use reeve_core::printable::printable;
use reeve_core::{Digest, UnitKey};
use std::sync::Arc;

/// What the store of one call holds. Made for the call and dropped after it.
pub(crate) struct State {
    /// What the guest may read; none outside of `reconcile`.
    pub(crate) view: Option<Arc<dyn View>>,
    /// What it may reach; none outside of `actuate`.
    pub(crate) outside: Option<Arc<dyn Outside>>,
    /// The function that is called.
    pub(crate) function: &'static str,
    pub(crate) meter: Meter,
    pub(crate) log: Log,
    /// What the guest said before it trapped.
    pub(crate) fault_message: Option<String>,
    /// Where random numbers come from.
    pub(crate) seed: Seed,
    /// Made when the guest first calls WASI, which most never do.
    pub(crate) wasi: Option<Box<Wasi>>,
}

/// What random numbers follow from, and nothing else: the component, and for whom it is
/// called. So no two plugins, and no two units of one, draw the same.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    component: Digest,
    unit: Option<UnitKey>,
}

impl Seed {
    pub(crate) fn new(component: Digest, unit: Option<&UnitKey>) -> Self {
        Self {
            component,
            unit: unit.cloned(),
        }
    }

    /// As bytes; whatever purpose stands behind them, no two seeds have the same.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.component.hex().into_bytes();
        if let Some(unit) = &self.unit {
            // No name has zeroes, so each ends where it seems to.
            for name in [&*unit.plugin, &*unit.id()] {
                bytes.extend(name.as_bytes());
                bytes.push(0);
            }
        }
        bytes
    }
}

/// What a call is given besides its arguments.
#[derive(Clone)]
pub(crate) enum Given {
    /// Nothing.
    Nothing,
    /// Something to read.
    View(Arc<dyn View>),
    /// Something to reach.
    Outside(Arc<dyn Outside>),
}

impl State {
    pub(crate) fn new(function: &'static str, limits: &Limits, given: Given, seed: Seed) -> Self {
        let (view, outside) = match given {
            Given::Nothing => (None, None),
            Given::View(view) => (Some(view), None),
            Given::Outside(outside) => (None, Some(outside)),
        };
        Self {
            view,
            outside,
            function,
            log: Log::new(limits.log_bytes),
            meter: Meter::new(limits.clone()),
            fault_message: None,
            seed,
            wasi: None,
        }
    }
}

impl State {
    /// What the call has used so far.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            log_bytes: self.log.bytes(),
            ..self.meter.usage()
        }
    }
}

/// The lines that a guest has logged, up to a limit.
pub(crate) struct Log {
    lines: Vec<LogLine>,
    left: u64,
    dropped: bool,
}

impl Log {
    /// What a line costs beyond its text, so that empty lines are bounded too.
    const LINE_COST: u64 = 32;

    fn new(limit: u64) -> Self {
        Self {
            lines: Vec::new(),
            left: limit,
            dropped: false,
        }
    }

    /// Keeps a line, or drops it when it does not fit. A line that does not fit
    /// ends the log: what is kept is always a beginning.
    pub(crate) fn write(&mut self, level: Level, message: String) {
        let cost = |message: &str| message.len() as u64 + Self::LINE_COST;
        // What is written out takes more, of what was there in full.
        let fits = !self.dropped && cost(&message) <= self.left;
        let message = if fits { printable(message) } else { message };
        if !fits || cost(&message) > self.left {
            self.dropped = true;
            return;
        }
        self.left -= cost(&message);
        self.lines.push(LogLine { level, message });
    }

    /// How many bytes of text still fit.
    pub(crate) fn room(&self) -> u64 {
        if self.dropped { 0 } else { self.left }
    }

    /// Notes that something was dropped before it became a line.
    pub(crate) fn mark_dropped(&mut self) {
        self.dropped = true;
    }

    /// Bytes of the lines that were kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.lines
            .iter()
            .map(|line| line.message.len() as u64)
            .sum()
    }

    pub(crate) fn finish(self) -> (Vec<LogLine>, bool) {
        (self.lines, self.dropped)
    }
}
