//! Counts what a call uses and stops it at its limits.

use crate::called::Usage;
use crate::fault::FaultKind;
use crate::limits::Limits;
use std::time::{Duration, Instant};
use wasmtime::{CallHook, ResourceLimiter};

/// A limit was reached, or something was refused. Travels through wasmtime as the
/// error that unwinds the guest.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Breach(pub(crate) FaultKind);

impl From<FaultKind> for Breach {
    fn from(kind: FaultKind) -> Self {
        Self(kind)
    }
}

/// The counters of one call.
pub(crate) struct Meter {
    limits: Limits,
    started: Instant,
    /// Since when the guest has been running; none while the host is.
    running_since: Option<Instant>,
    run_time: Duration,
    memory_bytes: u64,
    host_calls: u64,
    host_call_bytes: u64,
    output_bytes: u64,
}

/// What one entry of a table takes; wasmtime's entries are one pointer.
const TABLE_ENTRY_BYTES: u64 = size_of::<usize>() as u64;

impl Meter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            started: Instant::now(),
            running_since: None,
            run_time: Duration::ZERO,
            memory_bytes: 0,
            host_calls: 0,
            host_call_bytes: 0,
            output_bytes: 0,
        }
    }

    /// Follows control from host to guest and back.
    ///
    /// The epoch callback, in which the guest yields to other work, is host time
    /// too, so a guest that waits for its turn is not charged for it.
    pub(crate) fn cross(&mut self, hook: CallHook) -> Result<(), Breach> {
        match hook {
            CallHook::CallingWasm => self.resume(),
            CallHook::ReturningFromWasm | CallHook::CallingHost => self.pause(),
            CallHook::ReturningFromHost => {
                self.check_host_calls()?;
                self.resume();
            }
        }
        Ok(())
    }

    fn resume(&mut self) {
        self.running_since = Some(Instant::now());
    }

    fn pause(&mut self) {
        if let Some(since) = self.running_since.take() {
            self.run_time += since.elapsed();
        }
    }

    /// Called at each epoch that ends while the guest runs.
    pub(crate) fn check_run_time(&self) -> Result<(), Breach> {
        if self.run_time >= self.limits.run_time {
            return Err(Breach(FaultKind::Deadline {
                limit: self.limits.run_time,
            }));
        }
        Ok(())
    }

    /// Counts one call of a host function. The limit is looked at when the call
    /// returns, since some host functions have no way to fail.
    pub(crate) fn count_host_call(&mut self) {
        self.host_calls += 1;
    }

    fn check_host_calls(&self) -> Result<(), Breach> {
        if self.host_calls > self.limits.host_calls {
            return Err(Breach(FaultKind::HostCalls {
                limit: self.limits.host_calls,
            }));
        }
        Ok(())
    }

    /// Counts what a host function is about to return.
    pub(crate) fn count_host_bytes(&mut self, bytes: usize) -> Result<(), Breach> {
        self.host_call_bytes = self.host_call_bytes.saturating_add(bytes as u64);
        if self.host_call_bytes > self.limits.host_call_bytes {
            return Err(Breach(FaultKind::HostCallBytes {
                limit: self.limits.host_call_bytes,
            }));
        }
        Ok(())
    }

    /// Checks the size of an answer.
    pub(crate) fn count_output(&mut self, objects: usize, bytes: usize) -> Result<(), Breach> {
        self.output_bytes = bytes as u64;
        if objects as u64 > self.limits.output_objects {
            return Err(Breach(FaultKind::OutputObjects {
                limit: self.limits.output_objects,
                got: objects as u64,
            }));
        }
        if self.output_bytes > self.limits.output_bytes {
            return Err(Breach(FaultKind::OutputBytes {
                limit: self.limits.output_bytes,
                got: Some(self.output_bytes),
            }));
        }
        Ok(())
    }

    /// How much wasmtime may copy out of the guest at once. It is charged for the
    /// bytes of strings and for the Rust form of list entries, before either is
    /// allocated; so an answer somewhat above its limit is still measured, and
    /// anything larger never reaches the host's memory.
    pub(crate) fn lift_allowance(&self) -> usize {
        /// For the entries of lists other than objects.
        const SLACK: u64 = 64 << 10;
        let entries = self
            .limits
            .output_objects
            .saturating_add(1)
            .saturating_mul(size_of::<Vec<u8>>() as u64);
        usize::try_from(
            self.limits
                .output_bytes
                .saturating_add(entries)
                .saturating_add(SLACK),
        )
        .unwrap_or(usize::MAX)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            wall: self.started.elapsed(),
            run_time: self.run_time,
            memory_bytes: self.memory_bytes,
            host_calls: self.host_calls,
            host_call_bytes: self.host_call_bytes,
            output_bytes: self.output_bytes,
        }
    }

    fn grow(&mut self, current: u64, desired: u64) -> wasmtime::Result<bool> {
        let wanted = self
            .memory_bytes
            .saturating_add(desired.saturating_sub(current));
        if wanted > self.limits.memory_bytes {
            // Refusing politely would make the guest's allocator abort with a
            // message about something else.
            return Err(Breach(FaultKind::Memory {
                limit: self.limits.memory_bytes,
                wanted,
            })
            .into());
        }
        self.memory_bytes = wanted;
        Ok(true)
    }
}

/// All memories and tables of all instances in the store share one allowance.
impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.grow(current as u64, desired as u64)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let bytes = |entries: usize| (entries as u64).saturating_mul(TABLE_ENTRY_BYTES);
        self.grow(bytes(current), bytes(desired))
    }
}
