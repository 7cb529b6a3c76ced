//! Measures how long a processor works for a call.

use crate::called::Called;
use crate::fault::Fault;
use std::future::poll_fn;
use std::time::Duration;

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

/// Processor time that this thread has had.
pub(crate) fn of_this_thread() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
