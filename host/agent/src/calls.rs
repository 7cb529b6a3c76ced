//! Where guests run: on threads that do nothing else, a few for each plugin.
//!
//! A guest computes, and one that means harm computes for as long as it may. On
//! the threads of the runtime it would hold up requests, timers and other guests
//! for an epoch at a time; on its own threads the kernel shares the processors
//! fairly, and gives them first to whoever has used them least. A plugin has few of
//! these threads at once, so that one cannot have most of them.

use reeve_engine::{Called, Fault};
use std::sync::Arc;
use std::thread;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

/// Threads for guests. Clones share them.
#[derive(Clone, Debug)]
pub struct GuestThreads {
    all: Arc<Semaphore>,
    for_each: usize,
}

/// The part of the threads that one plugin may use.
#[derive(Clone, Debug)]
pub struct PluginThreads {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
}

impl Default for GuestThreads {
    /// Four for each processor, so that those which wait for one do not keep others
    /// from it; for each plugin half as many as there are processors, and one at
    /// least: whatever one plugin does, another finds a processor.
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self::new(processors * 4, processors / 2)
    }
}

impl GuestThreads {
    /// So many threads in all, and so many for each plugin; one of each at least.
    pub fn new(all: usize, for_each: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all.clamp(1, Semaphore::MAX_PERMITS))),
            for_each: for_each.clamp(1, Semaphore::MAX_PERMITS),
        }
    }

    /// The part of one plugin.
    pub fn of_plugin(&self) -> PluginThreads {
        PluginThreads {
            all: Arc::clone(&self.all),
            own: Arc::new(Semaphore::new(self.for_each)),
        }
    }
}

impl PluginThreads {
    /// Runs a call of a guest on one of the threads, once one is free. A runtime's
    /// paused clock stays where it is meanwhile. The guest ends when the future is
    /// dropped.
    ///
    /// # Errors
    ///
    /// What the call itself ends with. When the thread panics, so does this.
    pub async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<Called<T>, Fault>> + Send + 'static,
    ) -> Result<Called<T>, Fault> {
        // Nobody closes them; without them the call still runs.
        let _own = self.own.acquire().await;
        let _all = self.all.acquire().await;
        let (_wanted, unwanted) = oneshot::channel::<()>();
        let runtime = Handle::current();
        let work = tokio::task::spawn_blocking(move || {
            runtime.block_on(async move {
                tokio::select! {
                    biased;
                    // Looked at each time that the guest yields.
                    _ = unwanted => None,
                    called = call => Some(called),
                }
            })
        });
        match work.await {
            Ok(Some(called)) => called,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime ends, or nobody waits any more: nobody sees this.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_engine::Usage;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn called(value: u32) -> Result<Called<u32>, Fault> {
        Ok(Called {
            value,
            logs: Vec::new(),
            logs_dropped: false,
            usage: Usage::default(),
        })
    }

    /// As a guest that loops: it yields at each epoch.
    async fn endless(ended: SetOnDrop) -> Result<Called<u32>, Fault> {
        let _ended = ended;
        loop {
            tokio::task::yield_now().await;
        }
    }

    struct SetOnDrop(Arc<AtomicBool>);

    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn a_plugin_that_loops_keeps_its_own_thread_only() {
        let threads = GuestThreads::new(2, 1);
        let (bad, good) = (threads.of_plugin(), threads.of_plugin());
        let ended = Arc::new(AtomicBool::new(false));
        let looping: Vec<_> = (0..10)
            .map(|_| {
                let (bad, ended) = (bad.clone(), SetOnDrop(Arc::clone(&ended)));
                tokio::spawn(async move { bad.run(endless(ended)).await.map(drop) })
            })
            .collect();
        for number in 0..100 {
            let answer = good.run(async move { called(number) }).await.unwrap();
            assert_eq!(answer.value, number);
        }
        for looping in looping {
            looping.abort();
            assert!(looping.await.unwrap_err().is_cancelled());
        }
        // The thread is free again, since the guest has ended.
        assert_eq!(bad.run(async { called(1) }).await.unwrap().value, 1);
        assert!(ended.load(Ordering::SeqCst));
    }

    #[tokio::test(start_paused = true)]
    async fn no_time_passes_on_a_paused_clock() {
        let before = tokio::time::Instant::now();
        let call = async {
            thread::sleep(std::time::Duration::from_millis(20));
            called(1)
        };
        let slow = GuestThreads::new(1, 1).of_plugin();
        let answer = tokio::time::timeout(std::time::Duration::from_secs(1), slow.run(call));
        assert_eq!(answer.await.unwrap().unwrap().value, 1);
        assert_eq!(before.elapsed(), std::time::Duration::ZERO);
    }
}
