//! Counts what a call uses and stops it at its limits.

use crate::called::Usage;
use crate::fault::FaultKind;
use crate::limits::Limits;
use crate::run_clock::RunClock;
use crate::settings;
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
    run_clock: RunClock,
    memory_bytes: u64,
    host_calls: u64,
    host_call_bytes: u64,
    output_bytes: u64,
    output_objects: u64,
}

/// What one entry of a table takes; wasmtime's entries are one pointer.
const TABLE_ENTRY_BYTES: u64 = size_of::<usize>() as u64;

impl Meter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            started: Instant::now(),
            run_clock: RunClock::default(),
            memory_bytes: 0,
            host_calls: 0,
            host_call_bytes: 0,
            output_bytes: 0,
            output_objects: 0,
        }
    }

    /// Follows control from host to guest and back.
    ///
    /// The epoch callback, in which the guest yields to other work, is host time
    /// too, so a guest that waits for its turn is not charged for it.
    pub(crate) fn cross(&mut self, hook: CallHook) -> Result<(), Breach> {
        match hook {
            CallHook::CallingWasm => self.run_clock.resume(),
            CallHook::ReturningFromWasm | CallHook::CallingHost => self.run_clock.pause(),
            CallHook::ReturningFromHost => {
                self.check_host_calls()?;
                self.check_wall_time()?;
                self.run_clock.resume();
            }
        }
        Ok(())
    }

    /// Called at each epoch that ends while the guest runs.
    pub(crate) fn check_time(&self) -> Result<(), Breach> {
        if self.run_clock.total() >= self.limits.run_time {
            return Err(Breach(FaultKind::Deadline {
                limit: self.limits.run_time,
            }));
        }
        self.check_wall_time()
    }

    fn check_wall_time(&self) -> Result<(), Breach> {
        if self.started.elapsed() >= self.limits.wall_time {
            return Err(self.out_of_time());
        }
        Ok(())
    }

    /// When the call has to be over.
    pub(crate) fn deadline(&self) -> Instant {
        /// Later than any limit; what the clock cannot say is not reached.
        const FAR: Duration = Duration::from_secs(1 << 30);
        let end = self.started.checked_add(self.limits.wall_time);
        end.unwrap_or_else(|| self.started + FAR)
    }

    /// That it was not.
    pub(crate) fn out_of_time(&self) -> Breach {
        Breach(FaultKind::WallTime {
            limit: self.limits.wall_time,
        })
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
        self.output_objects = objects as u64;
        if objects as u64 > self.limits.output_objects {
            return Err(Breach(FaultKind::OutputObjects {
                limit: self.limits.output_objects,
                got: objects as u64,
            }));
        }
        if self.output_bytes > self.limits.output_bytes {
            return Err(Breach(FaultKind::OutputBytes {
                limit: self.limits.output_bytes,
                got: self.output_bytes,
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
            run_time: self.run_clock.total(),
            // Known when the call is over.
            processor: Duration::ZERO,
            memory_bytes: self.memory_bytes,
            host_calls: self.host_calls,
            host_call_bytes: self.host_call_bytes,
            output_bytes: self.output_bytes,
            output_objects: self.output_objects,
            // The log counts itself.
            log_bytes: 0,
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

    fn instances(&self) -> usize {
        settings::PER_COMPONENT as usize
    }

    fn tables(&self) -> usize {
        settings::PER_COMPONENT as usize
    }

    fn memories(&self) -> usize {
        settings::PER_COMPONENT as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter() -> Meter {
        Meter::new(Limits {
            memory_bytes: 1000,
            output_bytes: 100,
            output_objects: 2,
            host_calls: 1,
            host_call_bytes: 10,
            run_time: Duration::ZERO,
            ..Limits::default()
        })
    }

    /// What a meter says to one step.
    type Step = fn(&mut Meter) -> Result<(), wasmtime::Error>;

    /// All steps pass but the last, which ends with this.
    fn check(steps: &[Step], expected: &FaultKind) {
        let mut meter = meter();
        let (last, first) = steps.split_last().unwrap();
        for step in first {
            step(&mut meter).unwrap();
        }
        let error = last(&mut meter).unwrap_err();
        let Breach(kind) = error.downcast_ref().unwrap();
        assert_eq!(kind, expected);
    }

    #[test]
    fn memories_and_tables_share_one_allowance() {
        let memory: Step = |meter| meter.memory_growing(0, 400, None).map(drop);
        let table: Step = |meter| meter.table_growing(0, 25, None).map(drop);
        for (steps, wanted) in [
            (&[memory, memory, memory] as &[Step], 1200),
            (&[memory, memory, table, table], 1200),
            (&[table, table, memory, memory], 1200),
            (
                &[|meter| meter.memory_growing(900, 2000, None).map(drop)],
                1100,
            ),
        ] {
            let limit = 1000;
            check(steps, &FaultKind::Memory { limit, wanted });
        }
    }

    #[test]
    fn growing_beyond_a_maximum_is_the_guests_own_business() {
        let mut meter = meter();
        assert!(!meter.memory_growing(0, 5000, Some(100)).unwrap());
        assert!(!meter.table_growing(0, 5000, Some(100)).unwrap());
        assert_eq!(meter.usage().memory_bytes, 0);
    }

    #[test]
    fn answers_are_counted() {
        check(
            &[
                |meter| Ok(meter.count_output(2, 100)?),
                |meter| Ok(meter.count_output(3, 0)?),
            ],
            &FaultKind::OutputObjects { limit: 2, got: 3 },
        );
        check(
            &[|meter| Ok(meter.count_output(0, 101)?)],
            &FaultKind::OutputBytes {
                limit: 100,
                got: 101,
            },
        );
    }

    #[test]
    fn host_calls_are_counted_and_looked_at_when_they_return() {
        let call: Step = |meter| {
            meter.cross(CallHook::CallingHost)?;
            meter.count_host_call();
            Ok(meter.cross(CallHook::ReturningFromHost)?)
        };
        check(&[call, call], &FaultKind::HostCalls { limit: 1 });
        let read: Step = |meter| Ok(meter.count_host_bytes(5)?);
        check(&[read, read, read], &FaultKind::HostCallBytes { limit: 10 });
    }

    #[test]
    fn run_time_counts_only_while_the_guest_has_control() {
        let mut meter = meter();
        meter.cross(CallHook::CallingWasm).unwrap();
        assert!(meter.run_clock.runs());
        meter.cross(CallHook::CallingHost).unwrap();
        assert!(!meter.run_clock.runs());
        meter.cross(CallHook::ReturningFromHost).unwrap();
        assert!(meter.run_clock.runs());
        meter.cross(CallHook::ReturningFromWasm).unwrap();
        assert!(!meter.run_clock.runs());
        let limit = Duration::ZERO;
        check(
            &[|meter| Ok(meter.check_time()?)],
            &FaultKind::Deadline { limit },
        );
    }

    #[test]
    fn wall_time_counts_always() {
        let mut meter = Meter::new(Limits {
            wall_time: Duration::ZERO,
            ..Limits::default()
        });
        let limit = Duration::ZERO;
        for breach in [meter.check_time(), meter.cross(CallHook::ReturningFromHost)] {
            let Breach(kind) = breach.unwrap_err();
            assert_eq!(kind, FaultKind::WallTime { limit });
        }
    }
}
