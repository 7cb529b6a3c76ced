//! Calls that did not come back with an answer.

use crate::called::{LogLine, Usage};
use crate::limits::ByteSize;
use reeve_core::printable::printable;
use std::time::Duration;
use wasmtime::WasmBacktrace;

/// A call that did not come back with an answer: the guest trapped or went
/// beyond a limit. Prints as what happened, where, and what to do about it.
///
/// Not to be confused with [`reeve_core::Failure`], which is an answer.
#[derive(Debug, thiserror::Error)]
#[error("{function}: {kind}{}", advice(function, kind))]
pub struct Fault {
    /// The function that was called.
    pub function: &'static str,
    /// What happened.
    pub kind: Box<FaultKind>,
    /// What the guest had logged until then, in order.
    pub logs: Vec<LogLine>,
    /// Whether lines were dropped because the limit was reached.
    pub logs_dropped: bool,
    /// What it had used until then.
    pub usage: Box<Usage>,
}

impl Fault {
    /// Whether the same call could end differently although nothing that it reads
    /// has changed: only where this machine, rather than the plugin, may be at fault.
    pub fn retries(&self) -> bool {
        matches!(
            *self.kind,
            FaultKind::Host { .. } | FaultKind::Deadline { .. } | FaultKind::WallTime { .. }
        )
    }
}

/// What ended a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// The guest gave up.
    #[error("{}", trap_text(message.as_deref(), trap, frames))]
    Trap {
        /// What the guest said through `log.fault` before, such as a panic's
        /// message.
        message: Option<String>,
        /// The kind of trap.
        trap: String,
        /// Functions on the guest's stack, innermost first. Components built for
        /// release carry no names; their functions are numbers.
        frames: Vec<String>,
    },
    /// The guest called WASI's `exit`.
    #[error(
        "the plugin called exit({code}); a plugin returns a failure instead of ending its process"
    )]
    Exit {
        /// The exit code.
        code: i32,
    },
    /// The guest ran too long.
    #[error(
        "the plugin ran for more than {}; look for an endless loop, or raise its run time limit",
        show_time(limit)
    )]
    Deadline {
        /// The limit.
        limit: Duration,
    },
    /// The call took too long, whoever had the processor.
    #[error(
        "the plugin did not come to an end within {}, waiting included; make it do less in one call, or raise its wall time limit",
        show_time(limit)
    )]
    WallTime {
        /// The limit.
        limit: Duration,
    },
    /// The guest asked for too much memory.
    #[error(
        "the plugin needs {}, more than its memory limit of {}; make it hold less at once, or raise the limit",
        ByteSize(*wanted), ByteSize(*limit)
    )]
    Memory {
        /// The limit.
        limit: u64,
        /// What it would have had.
        wanted: u64,
    },
    /// The guest's calls are nested too deeply.
    #[error(
        "the plugin used up its stack of {}; look for an endless recursion, {}",
        ByteSize(*limit), at(frames)
    )]
    Stack {
        /// The limit.
        limit: u64,
        /// Functions on the guest's stack, innermost first.
        frames: Vec<String>,
    },
    /// The answer is too large.
    #[error(
        "the plugin returned {got} bytes, more than its output limit of {}; return fewer or smaller objects, or raise the limit",
        ByteSize(*limit)
    )]
    OutputBytes {
        /// The limit.
        limit: u64,
        /// The size.
        got: u64,
    },
    /// The answer is so large that it was not taken over, and nobody knows what of it is too
    /// much.
    #[error(
        "the plugin returned far more than its output limit of {}, or than its limit of {objects} objects; return fewer or smaller objects, or raise the limit",
        ByteSize(*bytes)
    )]
    Output {
        /// The limit of bytes.
        bytes: u64,
        /// The limit of objects.
        objects: u64,
    },
    /// The answer has too many objects.
    #[error(
        "the plugin returned {got} objects, more than its limit of {limit}; return fewer, or raise the limit"
    )]
    OutputObjects {
        /// The limit.
        limit: u64,
        /// How many there were.
        got: u64,
    },
    /// The guest called host functions too often.
    #[error(
        "the plugin called the host more than {limit} times; list objects instead of getting each, or raise the limit"
    )]
    HostCalls {
        /// The limit.
        limit: u64,
    },
    /// The guest read too much.
    #[error(
        "the plugin read more than {} in one call; narrow its lists by namespace, selector or projection, or raise the limit",
        ByteSize(*limit)
    )]
    HostCallBytes {
        /// The limit.
        limit: u64,
    },
    /// The guest passed too much to one host function.
    #[error(
        "the plugin passed more than {} to one host function, {}; pass less",
        ByteSize(*limit), at(frames)
    )]
    ArgumentBytes {
        /// The limit.
        limit: u64,
        /// Functions on the guest's stack, innermost first.
        frames: Vec<String>,
    },
    /// The answer is no value of the declared type, such as a string that is not
    /// UTF-8.
    #[error(
        "the plugin returned a malformed value: {reason}; this is a bug of the SDK it was built with"
    )]
    MalformedResult {
        /// What is wrong with it.
        reason: String,
    },
    /// The guest asked for something that this function is not given.
    #[error("the plugin called {what}, which answers only in `reconcile`")]
    Refused {
        /// What it called.
        what: &'static str,
    },
    /// The component has no outside effects.
    #[error("the component does not export `actions-api`, and so has no outside effects")]
    NoActions,
    /// This machine could not run the guest.
    #[error("the host could not run the plugin: {reason}")]
    Host {
        /// Why.
        reason: String,
    },
}

impl FaultKind {
    /// The limit that ended the call, by the name that it has in
    /// `Plugin.spec.limits`; none when it was something else.
    pub fn limit(&self) -> Option<&'static str> {
        match self {
            Self::Deadline { .. } => Some("runMilliseconds"),
            Self::WallTime { .. } => Some("wallMilliseconds"),
            Self::Memory { .. } => Some("memoryBytes"),
            Self::Stack { .. } => Some("stackBytes"),
            Self::OutputBytes { .. } | Self::Output { .. } | Self::ArgumentBytes { .. } => {
                Some("outputBytes")
            }
            Self::OutputObjects { .. } => Some("outputObjects"),
            Self::HostCalls { .. } => Some("hostCalls"),
            Self::HostCallBytes { .. } => Some("hostCallBytes"),
            Self::Trap { .. }
            | Self::Exit { .. }
            | Self::MalformedResult { .. }
            | Self::Refused { .. }
            | Self::NoActions
            | Self::Host { .. } => None,
        }
    }
}

impl FaultKind {
    /// The limits that may have to be raised, by their names in `Plugin.spec.limits`; none
    /// when it was something else.
    pub fn limits(&self) -> Vec<&'static str> {
        let mut limits: Vec<&str> = self.limit().into_iter().collect();
        if matches!(self, Self::Output { .. }) {
            limits.push("outputObjects");
        }
        limits
    }
}

/// The functions on the guest's stack when an error left it, innermost first.
pub(crate) fn frames(error: &wasmtime::Error) -> Vec<String> {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else {
        return Vec::new();
    };
    backtrace
        .frames()
        .iter()
        .map(|frame| match frame.func_name() {
            Some(name) => shown(name),
            None => format!("function {}", frame.func_index()),
        })
        .collect()
}

/// A name of the component's, as far as a person would read it.
pub(crate) fn shown(name: &str) -> String {
    /// Longer than the path of any function in Rust.
    const LONGEST: usize = 200;
    let end = name.floor_char_boundary(LONGEST);
    match name.get(..end) {
        Some(start) if end < name.len() => printable(format!("{start}…")),
        _ => printable(name.to_owned()),
    }
}

/// What to do about a trap, which is a fault of the plugin and comes again with the same
/// inputs.
fn advice(function: &str, kind: &FaultKind) -> &'static str {
    match kind {
        FaultKind::Trap { .. } if function == "reconcile" => {
            "; mend the plugin; `reeve record` keeps the call as a file, with which its author \
             can make it again"
        }
        FaultKind::Trap { .. } => "; mend the plugin and deliver it again",
        _ => "",
    }
}

fn trap_text(message: Option<&str>, trap: &str, frames: &[String]) -> String {
    match message {
        Some(message) => format!("the plugin gave up: {message}"),
        // Where a stack in memory comes first, it ends at address 0, and then the memory does.
        None if trap.contains("out of bounds memory access") => format!(
            "the plugin trapped: {trap}, {}; one in Rust ends like this, too, when it calls itself \
             deeper than its stack in memory is large",
            at(frames)
        ),
        None => format!("the plugin trapped: {trap}, {}", at(frames)),
    }
}

fn at(frames: &[String]) -> String {
    match frames {
        [] => "at an unknown place".to_owned(),
        [only] => format!("in {only}"),
        [inner, outer, ..] => format!("in {inner}, called by {outer}"),
    }
}

fn show_time(time: &Duration) -> String {
    let millis = time.as_millis();
    if millis.is_multiple_of(1000) {
        format!("{} s", millis / 1000)
    } else {
        format!("{millis} ms")
    }
}
