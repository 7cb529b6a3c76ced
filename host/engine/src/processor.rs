//! Measures how long a processor works for a call.

use crate::called::Called;
use crate::fault::Fault;
use std::cell::Cell;
use std::future::poll_fn;
use std::time::{Duration, Instant};

/// A thread's processor time at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    pub(crate) processor: Duration,
}

thread_local! {
    /// What this thread was told last.
    static LAST: Cell<Option<Reading>> = const { Cell::new(None) };
}

/// Awaits a call, and notes in its usage what processor time that took: the guest's, and the
/// host's for what it was asked. It may change threads between two polls; what a thread does
/// for others meanwhile is not counted.
pub(crate) fn measured<T>(
    call: impl Future<Output = Result<Called<T>, Fault>>,
) -> impl Future<Output = Result<Called<T>, Fault>> {
    // Aside, since it is large, and is in everything that awaits a call.
    let mut call = Box::pin(call);
    async move {
        let mut total = Duration::ZERO;
        let mut called = poll_fn(|cx| {
            let begun = of_this_thread();
            let polled = call.as_mut().poll(cx);
            total += of_this_thread().saturating_sub(begun);
            polled
        })
        .await;
        match &mut called {
            Ok(called) => called.usage.processor = total,
            Err(fault) => fault.usage.processor = total,
        }
        called
    }
}

/// Processor time that this thread has had. To ask for it is a system call.
pub(crate) fn of_this_thread() -> Duration {
    read().processor
}

fn read() -> Reading {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let reading = Reading {
        processor: Duration::try_from(time).unwrap_or_default(),
        at: Instant::now(),
    };
    LAST.set(Some(reading));
    reading
}

/// What this thread was told last, if that is no older than this; else what it is told now.
pub(crate) fn read_since(oldest: Instant) -> Reading {
    let last = LAST.get().filter(|last| last.at >= oldest);
    last.unwrap_or_else(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_used_for_as_long_as_it_is_not_too_old() {
        let before = Instant::now();
        let first = read_since(before);
        let again = read_since(before);
        assert_eq!((again.at, again.processor), (first.at, first.processor));
        while of_this_thread() == first.processor {}
        let later = read_since(Instant::now());
        assert!(later.at > first.at && later.processor > first.processor);
        // Each thread has its own.
        let other = std::thread::spawn(move || read_since(before).at)
            .join()
            .unwrap();
        assert!(other > later.at);
    }
}
