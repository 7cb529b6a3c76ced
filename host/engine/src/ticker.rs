//! Ends an epoch every ten milliseconds, but only while a guest runs, and has what no guest
//! runs any more given back.

use crate::artifact::Code;
use crate::idle::{self, Idle, InUse};
use parking_lot::Mutex;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use wasmtime::{Engine, EngineWeak};

/// How long a guest has its thread for itself. A tenth of what a person notices,
/// and a thousand times what changing over costs.
pub(crate) const EPOCH: Duration = Duration::from_millis(10);

/// The thread that ends epochs. It sleeps for good once no guest has run for a while, so an
/// idle agent wakes nothing; it ends with the ticker.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
}

struct Shared {
    engines: Mutex<Vec<EngineWeak>>,
    running: AtomicUsize,
    /// Calls that wait for something else than their turn.
    waiting: Mutex<Vec<Weak<Waiting>>>,
    ended: AtomicBool,
    idle: Idle<Code>,
}

/// A call that waits, and until when it may.
struct Waiting {
    until: Instant,
    waker: Mutex<Waker>,
}

/// A guest that is running, for as long as this lives.
pub(crate) struct Running {
    shared: Arc<Shared>,
    code: Arc<InUse<Code>>,
}

impl Ticker {
    pub(crate) fn new() -> io::Result<Self> {
        let shared = Arc::new(Shared {
            engines: Mutex::new(Vec::new()),
            running: AtomicUsize::new(0),
            waiting: Mutex::default(),
            ended: AtomicBool::new(false),
            idle: Idle::default(),
        });
        let handle = thread::Builder::new()
            .name("reeve-epochs".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.tick()
            })?;
        Ok(Self {
            shared,
            thread: handle.thread().clone(),
        })
    }

    /// Ends epochs of this engine too.
    pub(crate) fn add(&self, engine: &Engine) {
        self.shared.engines.lock().push(engine.weak());
    }

    /// Says that this machine code is used now.
    pub(crate) fn using(&self, code: &Arc<InUse<Code>>) {
        if self.shared.idle.using(code) {
            // It may sleep for good, with nothing to give back.
            self.thread.unpark();
        }
    }

    /// Says that a guest with this machine code runs now.
    pub(crate) fn start(&self, code: &Arc<InUse<Code>>) -> Running {
        self.shared.idle.using(code);
        if self.shared.running.fetch_add(1, Ordering::SeqCst) == 0 {
            // Free unless the thread really is asleep.
            self.thread.unpark();
        }
        Running {
            shared: Arc::clone(&self.shared),
            code: Arc::clone(code),
        }
    }
}

impl Running {
    /// Makes a call, or gives it up at the first epoch that ends after `until`: then there is
    /// no answer. A guest that computes is looked at by others; this is for one that waits in
    /// a function of the host for what never comes. It is the machine's own time, whatever
    /// the clock of a runtime says.
    pub(crate) async fn until<T>(
        &self,
        until: Instant,
        call: impl Future<Output = T>,
    ) -> Option<T> {
        let mut call = pin!(call);
        let mut waiting: Option<Arc<Waiting>> = None;
        poll_fn(|context| {
            if let Poll::Ready(answer) = call.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            if Instant::now() >= until {
                return Poll::Ready(None);
            }
            match &waiting {
                Some(waiting) => waiting.waker.lock().clone_from(context.waker()),
                None => {
                    let made = Arc::new(Waiting {
                        until,
                        waker: Mutex::new(context.waker().clone()),
                    });
                    self.shared.waiting.lock().push(Arc::downgrade(&made));
                    waiting = Some(made);
                }
            }
            Poll::Pending
        })
        .await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that ran for long may have been given back and come again meanwhile.
        self.shared.idle.using(&self.code);
        self.shared.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl Shared {
    fn tick(&self) {
        let mut looked = Instant::now();
        while !self.ended.load(Ordering::SeqCst) {
            if looked.elapsed() >= idle::LOOK {
                self.idle.look(|code| {
                    code.give_back();
                });
                looked = Instant::now();
            }
            if self.running.load(Ordering::SeqCst) == 0 {
                // A start in between has left its permit, so these return at once.
                if self.idle.is_waiting() {
                    thread::park_timeout(idle::LOOK.saturating_sub(looked.elapsed()));
                } else {
                    thread::park();
                    looked = Instant::now();
                }
                continue;
            }
            thread::sleep(EPOCH);
            for engine in self.engines.lock().iter() {
                if let Some(engine) = engine.upgrade() {
                    engine.increment_epoch();
                }
            }
            self.wake();
        }
    }

    /// Wakes the calls that have waited for as long as they may, and forgets those that are
    /// over.
    fn wake(&self) {
        let now = Instant::now();
        self.waiting.lock().retain(|waiting| {
            let Some(waiting) = waiting.upgrade() else {
                return false;
            };
            let is_over = now >= waiting.until;
            if is_over {
                waiting.waker.lock().wake_by_ref();
            }
            !is_over
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::Artifact;

    #[test]
    fn a_guest_counts_as_running_until_it_is_dropped() {
        let ticker = Ticker::new().unwrap();
        let engine = Engine::default();
        let nothing = engine.precompile_component(b"\0asm\x0d\0\x01\0").unwrap();
        let nothing = Artifact::made(nothing).load(&engine, None).unwrap();
        let code = Arc::new(InUse::new(nothing));
        let first = ticker.start(&code);
        let second = ticker.start(&code);
        assert_eq!(ticker.shared.running.load(Ordering::SeqCst), 2);
        drop((first, second));
        assert_eq!(ticker.shared.running.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn the_thread_ends_with_the_ticker() {
        let ticker = Ticker::new().unwrap();
        let shared = Arc::downgrade(&ticker.shared);
        drop(ticker);
        // The thread holds the last reference; it lets go when it ends.
        while shared.strong_count() > 0 {
            thread::yield_now();
        }
    }
}
