//! Ends an epoch every ten milliseconds, but only while a guest runs, and has what no guest
//! runs any more given back.

use crate::artifact::Code;
use crate::idle::{self, Idle, InUse};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    ended: AtomicBool,
    idle: Idle<Code>,
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
        }
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
