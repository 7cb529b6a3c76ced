//! What a call gives back besides its answer.

use std::fmt;
use std::time::Duration;

/// A call that came back.
#[derive(Clone, Debug)]
pub struct Called<T> {
    /// The guest's answer.
    pub value: T,
    /// What it logged, in order.
    pub logs: Vec<LogLine>,
    /// Whether lines were dropped because the limit was reached.
    pub logs_dropped: bool,
    /// What it used.
    pub usage: Usage,
}

impl<T> Called<T> {
    /// The same call with another answer.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Called<U> {
        Called {
            value: change(self.value),
            logs: self.logs,
            logs_dropped: self.logs_dropped,
            usage: self.usage,
        }
    }
}

/// One line of a guest's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// How much it matters.
    pub level: Level,
    /// The text, without a line break at its end.
    pub message: String,
}

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the author.
    Debug,
    /// Ordinary; also standard output.
    Info,
    /// Unusual; also standard error.
    Warn,
    /// Broken.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

/// What a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// From the first instruction of the instance's making to the last of the
    /// call, waiting included.
    pub wall: Duration,
    /// Processor time of the guest itself; this is what the run time limit bounds.
    pub run_time: Duration,
    /// Processor time of the whole call: the guest's, and the host's for making its instance
    /// and for answering what it asks. No limit is about it.
    pub processor: Duration,
    /// Linear memories and tables at their largest.
    pub memory_bytes: u64,
    /// Calls of host functions, WASI included.
    pub host_calls: u64,
    /// Bytes that host functions returned.
    pub host_call_bytes: u64,
    /// Bytes that the guest returned: its objects and other texts.
    pub output_bytes: u64,
    /// Objects that the guest returned.
    pub output_objects: u64,
    /// Bytes of the log lines that were kept.
    pub log_bytes: u64,
}
