//! What one call may use.

use std::fmt;
use std::time::Duration;

/// What one call may use. The defaults suit a controller that computes some
/// objects from some others; each is a constant that gives its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Processor time that the guest itself may use. Time in host functions, and
    /// time in which other work has the processor, is not counted. Looked at each
    /// time that an epoch of 10 ms ends.
    pub run_time: Duration,
    /// Time from the making of the instance to the end of the call, whoever had the
    /// processor. Looked at when an epoch ends and when a host function returns.
    pub wall_time: Duration,
    /// Memory of the guest: all linear memories and tables of all its instances
    /// together. One memory cannot have more than 1 GiB, whatever stands here.
    pub memory_bytes: u64,
    /// Stack of the guest, rounded up to a power of two from 64 KiB to 8 MiB.
    /// Another one than the default costs a call some more time, since the pool
    /// has stacks of one size.
    pub stack_bytes: u64,
    /// Everything that one call returns, its strings and lists added up.
    pub output_bytes: u64,
    /// Objects in one outcome.
    pub output_objects: u64,
    /// Calls of host functions, WASI included.
    pub host_calls: u64,
    /// Bytes that host functions return, added up.
    pub host_call_bytes: u64,
    /// Bytes of log lines that are kept. Going beyond is no fault: further lines
    /// are dropped, and [`crate::Called::logs_dropped`] says so.
    pub log_bytes: u64,
}

impl Limits {
    /// Two seconds is some thousand times what an honest call takes, and short
    /// enough that a plugin that hangs is named before anybody asks.
    pub const RUN_TIME: Duration = Duration::from_secs(2);
    /// Sixty times the run time, so that where a guest gets at least a sixtieth of a
    /// processor, the limit that it meets is on what it computes itself.
    pub const WALL_TIME: Duration = Duration::from_secs(120);
    /// Twice what deeply nested JSON takes in a guest built without optimisation.
    pub const STACK_BYTES: u64 = 512 << 10;
    /// A guest of the largest useful kind, parsing a list of some thousand
    /// objects, takes a third of it. A hundred calls at once fit on a node.
    pub const MEMORY_BYTES: u64 = 64 << 20;
    /// Three times etcd's default limit for one object (1.5 MiB), so one object
    /// of any size that can exist fits, beside others.
    pub const OUTPUT_BYTES: u64 = 4 << 20;
    /// What a namespace of ordinary size holds; one write each is minutes of work
    /// for an API server that allows some tens a second.
    pub const OUTPUT_OBJECTS: u64 = 1_000;
    /// Reading each object of a large namespace one by one, ten times over.
    pub const HOST_CALLS: u64 = 100_000;
    /// Four times the memory, for plugins that go through lists piece by piece.
    pub const HOST_CALL_BYTES: u64 = 256 << 20;
    /// Some hundred lines: what a person would still read.
    pub const LOG_BYTES: u64 = 64 << 10;

    /// The most that can be given to a plugin at all: what the engine can still
    /// keep, or what would keep others from working. An operator may allow less.
    pub const MOST: Self = Self {
        // A minute of a processor for one object is a batch job, not a controller.
        run_time: Duration::from_secs(60),
        wall_time: Duration::from_secs(600),
        // One memory of the pool.
        memory_bytes: 1 << 30,
        stack_bytes: 8 << 20,
        // A tenth of what the API server could take in, in objects of any size.
        output_bytes: 64 << 20,
        output_objects: 100_000,
        host_calls: 10_000_000,
        host_call_bytes: 16 << 30,
        // Kept in memory for each call that runs.
        log_bytes: 4 << 20,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            run_time: Self::RUN_TIME,
            wall_time: Self::WALL_TIME,
            stack_bytes: Self::STACK_BYTES,
            memory_bytes: Self::MEMORY_BYTES,
            output_bytes: Self::OUTPUT_BYTES,
            output_objects: Self::OUTPUT_OBJECTS,
            host_calls: Self::HOST_CALLS,
            host_call_bytes: Self::HOST_CALL_BYTES,
            log_bytes: Self::LOG_BYTES,
        }
    }
}

/// A number of bytes that prints as people write it: `64 MiB`, `1500 bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        // Only what is exact is rounded: a limit must be recognisable.
        for (unit, name) in UNITS {
            if self.0 >= unit && self.0.is_multiple_of(unit) {
                return write!(f, "{} {name}", self.0 / unit);
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_print_as_people_write_them() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1500, "1500 bytes"),
            (1 << 10, "1 KiB"),
            (64 << 20, "64 MiB"),
            ((64 << 20) + 1, "67108865 bytes"),
            (2 << 30, "2 GiB"),
        ] {
            assert_eq!(ByteSize(bytes).to_string(), text);
        }
    }
}
