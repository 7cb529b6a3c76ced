//! Measures for how long a guest computes.
//!
//! A guest is charged for what it computes, not for a busy or throttled machine, so
//! what counts is the processor time of its thread. Asking the kernel for that takes
//! about as long as everything else that is done when control passes between guest and
//! host, which happens a dozen times in a small call. So stretches that are short by
//! the wall are taken as they are, and the kernel is asked about long ones only.

use crate::processor::Reading;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// A stretch that is shorter than this by the wall is charged in full. A thread that
/// loses its processor loses it for longer, so what is charged too much is less.
const SHORT: Duration = Duration::from_micros(200);

/// How old a reading of the processor's time may be when a stretch begins. What the
/// thread did between the two is charged to a long stretch, so this bounds the error.
const FRESH: Duration = Duration::from_millis(1);

/// The time that one guest has computed.
#[derive(Debug, Default)]
pub(crate) struct RunClock {
    /// When the guest took over; none while the host has control.
    since: Option<Instant>,
    known: Option<Known>,
    total: Duration,
}

/// A reading of a thread's, and what came of it.
#[derive(Debug)]
struct Known {
    thread: ThreadId,
    reading: Reading,
    /// What has been charged since, without asking.
    charged: Duration,
}

/// The clocks of a thread.
trait Clocks {
    fn thread(&self) -> ThreadId;
    fn now(&self) -> Instant;
    /// Processor time that this thread has had.
    fn processor(&self) -> Duration;
    /// The same, as it was at this moment or later.
    fn reading_since(&self, oldest: Instant) -> Reading;
}

/// Those of the thread that asks.
struct Here;

impl Clocks for Here {
    fn thread(&self) -> ThreadId {
        thread::current().id()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn processor(&self) -> Duration {
        crate::processor::of_this_thread()
    }

    fn reading_since(&self, oldest: Instant) -> Reading {
        crate::processor::read_since(oldest)
    }
}

impl RunClock {
    /// The guest takes over, on this thread. It changes threads only where it yields,
    /// which is while the host has control.
    pub(crate) fn resume(&mut self) {
        self.resume_by(&Here);
    }

    /// The host takes over.
    pub(crate) fn pause(&mut self) {
        self.pause_by(&Here);
    }

    /// Whether the guest has control.
    #[cfg(test)]
    pub(crate) fn runs(&self) -> bool {
        self.since.is_some()
    }

    /// What the guest has computed until the host last took over.
    pub(crate) fn total(&self) -> Duration {
        self.total
    }

    fn resume_by(&mut self, clocks: &impl Clocks) {
        let (thread, now) = (clocks.thread(), clocks.now());
        let fresh = self.known.as_ref().is_some_and(|known| {
            known.thread == thread && now.saturating_duration_since(known.reading.at) < FRESH
        });
        if !fresh {
            let oldest = now.checked_sub(FRESH).unwrap_or(now);
            self.known = Some(Known {
                thread,
                reading: clocks.reading_since(oldest),
                charged: Duration::ZERO,
            });
        }
        self.since = Some(now);
    }

    fn pause_by(&mut self, clocks: &impl Clocks) {
        let Some(since) = self.since.take() else {
            return;
        };
        let now = clocks.now();
        let wall = now.saturating_duration_since(since);
        let Some(known) = &mut self.known else {
            self.total += wall;
            return;
        };
        if wall < SHORT {
            known.charged += wall;
            self.total += wall;
            return;
        }
        let processor = clocks.processor();
        let had = processor
            .saturating_sub(known.reading.processor)
            .saturating_sub(known.charged);
        self.total += had.min(wall);
        *known = Known {
            thread: known.thread,
            reading: Reading { at: now, processor },
            charged: Duration::ZERO,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct Told {
        start: Instant,
        thread: Cell<ThreadId>,
        wall: Cell<Duration>,
        processor: Cell<Duration>,
        asked: Cell<usize>,
    }

    impl Told {
        fn new() -> Self {
            Self {
                start: Instant::now(),
                thread: Cell::new(thread::current().id()),
                wall: Cell::default(),
                processor: Cell::new(Duration::from_secs(7)),
                asked: Cell::default(),
            }
        }

        fn pass(&self, wall: u64, processor: u64) {
            let micros = Duration::from_micros;
            self.wall.set(self.wall.get() + micros(wall));
            self.processor.set(self.processor.get() + micros(processor));
        }
    }

    impl Clocks for Told {
        fn thread(&self) -> ThreadId {
            self.thread.get()
        }

        fn now(&self) -> Instant {
            self.start + self.wall.get()
        }

        fn processor(&self) -> Duration {
            self.asked.set(self.asked.get() + 1);
            self.processor.get()
        }

        fn reading_since(&self, _: Instant) -> Reading {
            Reading {
                at: self.now(),
                processor: self.processor(),
            }
        }
    }

    /// Stretches of guest and host in turn, each by the wall and the processor.
    fn check(stretches: &[(u64, u64)], total: u64, asked: usize) {
        let (told, mut clock) = (Told::new(), RunClock::default());
        for (number, (wall, processor)) in stretches.iter().enumerate() {
            if number % 2 == 0 {
                clock.resume_by(&told);
            }
            told.pass(*wall, *processor);
            clock.pause_by(&told);
        }
        assert_eq!(clock.total(), Duration::from_micros(total), "{stretches:?}");
        assert_eq!(told.asked.get(), asked, "{stretches:?}");
    }

    #[test]
    fn short_stretches_are_taken_as_they_are() {
        check(&[(10, 10), (20, 20), (30, 30)], 40, 1);
        check(&[(199, 0), (1, 1), (199, 0)], 398, 1);
    }

    #[test]
    fn long_stretches_count_by_the_processor() {
        check(&[(10_000, 9_000)], 9_000, 2);
        check(&[(1_000_000, 10)], 10, 2);
        check(&[(10_000, 10_000), (5, 5), (10_000, 4_000)], 14_005, 3);
    }

    #[test]
    fn what_a_thread_did_long_before_is_not_the_guests() {
        check(&[(10, 10), (50_000, 50_000), (90_000, 300)], 310, 3);
    }

    #[test]
    fn a_short_stretch_is_not_charged_twice() {
        check(&[(150, 150), (1, 0), (10_000, 300)], 450, 2);
    }

    #[test]
    fn another_thread_has_another_time() {
        let (told, mut clock) = (Told::new(), RunClock::default());
        clock.resume_by(&told);
        told.pass(10, 10);
        clock.pause_by(&told);
        let other = thread::spawn(|| thread::current().id()).join().unwrap();
        told.thread.set(other);
        told.processor.set(Duration::from_secs(900));
        clock.resume_by(&told);
        told.pass(1_000, 400);
        clock.pause_by(&told);
        assert_eq!(clock.total(), Duration::from_micros(410));
    }
}
