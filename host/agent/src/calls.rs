//! Where guests run: on threads that do nothing else, a few for each plugin.
//!
//! A guest computes, and one that means harm computes for as long as it may. On
//! the threads of the runtime it would hold up requests, timers and other guests
//! for an epoch at a time; on its own threads the kernel shares the processors
//! fairly, and gives them first to whoever has used them least. A plugin has few of
//! these threads at once, so that one cannot have most of them.

mod lane;

use lane::{Ended, Lane, Next, Turn};
use reeve_engine::{Called, Fault, FaultKind};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, LazyLock};
use std::thread;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Threads for guests. Clones share them.
#[derive(Clone, Debug)]
pub struct GuestThreads {
    /// None where there are no threads for them.
    all: Option<Arc<Semaphore>>,
    for_each: usize,
}

/// The part of the threads that one plugin may use. Clones share it.
#[derive(Clone, Debug)]
pub struct PluginThreads {
    all: Option<Arc<Semaphore>>,
    lane: Arc<Lane>,
    /// Whose turn it is where there are no threads: one call after another, as on one.
    here: Arc<Semaphore>,
}

/// Work that did not come to its end, and why. Prints as the reason.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Interrupted(String);

/// How many processors there are: to ask takes files to be read.
static PROCESSORS: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

impl Default for GuestThreads {
    fn default() -> Self {
        let (all, for_each) = Self::usual();
        Self::new(all, for_each)
    }
}

impl GuestThreads {
    /// How many there are in all where nobody says, and for each plugin. Four for each
    /// processor, so that those which wait for one do not keep others from it; for each
    /// plugin half as many as there are processors, and one at least: whatever one plugin
    /// does, another finds a processor.
    pub fn usual() -> (usize, usize) {
        let processors = *PROCESSORS;
        (processors * 4, (processors / 2).max(1))
    }

    /// So many threads in all, and so many for each plugin; one of each at least.
    pub fn new(all: usize, for_each: usize) -> Self {
        Self {
            all: Some(Arc::new(Semaphore::new(
                all.clamp(1, Semaphore::MAX_PERMITS),
            ))),
            for_each: for_each.max(1),
        }
    }

    /// No threads: guests run where they are asked for, one of each plugin at a time, and so
    /// does most of what loading a plugin takes. For an agent on a runtime of one thread
    /// with a paused clock, as in scenarios; anywhere else a guest would hold up everything.
    pub fn none() -> Self {
        Self {
            all: None,
            for_each: 1,
        }
    }

    /// Other threads than these; none where there are none.
    pub(crate) fn others(&self, all: usize, for_each: usize) -> Self {
        match self.all {
            Some(_) => Self::new(all, for_each),
            None => Self::none(),
        }
    }

    /// The part of one plugin.
    pub fn of_plugin(&self) -> PluginThreads {
        PluginThreads {
            all: self.all.clone(),
            lane: Arc::new(Lane::new(self.for_each)),
            here: Arc::new(Semaphore::new(1)),
        }
    }

    /// As [`PluginThreads::aside`].
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Interrupted> {
        aside(self.all.is_some(), work).await
    }
}

impl PluginThreads {
    /// Does what takes a while without waiting, or waits for a disk, and is no guest: on a
    /// thread that the runtime has for that.
    ///
    /// # Errors
    ///
    /// When the work panics, or the runtime ends before it.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Interrupted> {
        aside(self.all.is_some(), work).await
    }

    /// As [`run_judged`](Self::run_judged), where no answer counts as a failure.
    ///
    /// # Errors
    ///
    /// What the call itself ends with. When the call panics, so does this.
    pub async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<Called<T>, Fault>> + Send + 'static,
    ) -> Result<Called<T>, Fault> {
        self.run_judged(call, |_| false).await
    }

    /// Runs a call of a guest on one of the threads, once one is free. Where a call fails, by a
    /// fault of the guest's or by an answer that is a failure, and another had less than five
    /// milliseconds before it began, or less than twice as long as it computed, the plugin's
    /// threads rest for twice as long as it computed: for one millisecond at least and two
    /// hundred at most. A runtime's paused clock stays where it is meanwhile. The guest ends when
    /// the future is dropped.
    ///
    /// # Errors
    ///
    /// What the call itself ends with. When the call panics, so does this.
    pub async fn run_judged<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<Called<T>, Fault>> + Send + 'static,
        is_failure: impl FnOnce(&T) -> bool + Send + 'static,
    ) -> Result<Called<T>, Fault> {
        let Some(all) = &self.all else {
            // Never closed; without a turn the call still runs.
            let _turn = self.here.acquire().await;
            return call.await;
        };
        let (_wanted, unwanted) = oneshot::channel::<()>();
        let (answer, answered) = oneshot::channel();
        let runtime = Handle::current();
        let work = move || {
            let called = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(async move {
                    tokio::select! {
                        biased;
                        // Looked at each time that the guest yields.
                        _ = unwanted => None,
                        called = call => Some(called),
                    }
                })
            }));
            let is_failure = match &called {
                Ok(None) => false,
                Ok(Some(Ok(called))) => is_failure(&called.value),
                Ok(Some(Err(fault))) => !matches!(*fault.kind, FaultKind::Host { .. }),
                Err(_) => true,
            };
            let ended = match is_failure {
                true => Ended::Failed,
                false => Ended::Answered,
            };
            // Who asked may be gone.
            let _ = answer.send(called);
            ended
        };
        if let Some(turn) = self.lane.put(Box::new(work)) {
            serve(Handle::current(), Arc::clone(all), turn);
        }
        match answered.await {
            Ok(Ok(Some(called))) => called,
            Ok(Err(panic)) => resume_unwind(panic),
            // The runtime ends, or nobody waits any more: nobody sees this.
            Ok(Ok(None)) | Err(_) => std::future::pending().await,
        }
    }
}

async fn aside<T: Send + 'static>(
    threads: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Interrupted> {
    if threads {
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| Interrupted(error.to_string()))
    } else {
        let done = catch_unwind(AssertUnwindSafe(work));
        done.map_err(|_| Interrupted("it panicked".to_owned()))
    }
}

/// Lets a thread have a turn, once it is free.
fn serve(runtime: Handle, all: Arc<Semaphore>, turn: Turn) {
    match Arc::clone(&all).try_acquire_owned() {
        Ok(place) => start(runtime, all, Some(place), turn),
        Err(_) => {
            let handle = runtime.clone();
            handle.spawn(async move {
                // Nobody closes them; without them the calls still run.
                let place = Arc::clone(&all).acquire_owned().await.ok();
                start(runtime, all, place, turn);
            });
        }
    }
}

fn start(runtime: Handle, all: Arc<Semaphore>, place: Option<OwnedSemaphorePermit>, turn: Turn) {
    let handle = runtime.clone();
    // It tells by itself what came of each call.
    drop(handle.spawn_blocking(move || {
        let next = turn.take();
        drop(place);
        match next {
            Next::Nothing => {}
            Next::Turn(turn) => serve(runtime, all, turn),
            Next::Rest(turn, time) => {
                let handle = runtime.clone();
                // It waits on a thread, and no guest for that one: a runtime's paused clock
                // stays where it is.
                drop(handle.spawn_blocking(move || {
                    thread::sleep(time);
                    serve(runtime, all, turn);
                }));
            }
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::lane::{APART, REST, computed, rest_after};
    use super::*;
    use parking_lot::Mutex;
    use reeve_engine::Usage;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

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

    #[tokio::test]
    async fn a_call_that_panics_panics_where_it_was_asked_for_and_nowhere_else() {
        let threads = GuestThreads::new(1, 1).of_plugin();
        let asked = threads.clone();
        let call = async { panic!("as told") };
        let panicked = tokio::spawn(async move { asked.run::<u32>(call).await.map(drop) });
        assert!(panicked.await.unwrap_err().is_panic());
        assert_eq!(threads.run(async { called(1) }).await.unwrap().value, 1);
    }

    /// A plugin with calls without end does not keep the only thread.
    #[tokio::test]
    async fn turns_are_taken() {
        let threads = GuestThreads::new(1, 1);
        let (many, few) = (threads.of_plugin(), threads.of_plugin());
        let busy: Vec<_> = (0..1000)
            .map(|number| {
                let many = many.clone();
                let call = async move {
                    thread::sleep(Duration::from_millis(1));
                    called(number)
                };
                tokio::spawn(async move { many.run(call).await.map(drop) })
            })
            .collect();
        for number in 0..5 {
            few.run(async move { called(number) }).await.unwrap();
        }
        let left = busy.iter().filter(|busy| !busy.is_finished()).count();
        assert!(left > 500, "{left} are left");
        for busy in busy {
            busy.await.unwrap().unwrap();
        }
        // The thread tells the answer first, and leaves then.
        let left = async {
            while many.lane.state.lock().serving > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), left)
            .await
            .unwrap();
    }

    /// Whether a plugin rests, once what its threads were asked for is over: they tell an
    /// answer first.
    async fn rests(threads: &PluginThreads) -> bool {
        while threads.lane.state.lock().serving > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        threads.lane.state.lock().rests.is_some()
    }

    async fn faulty(kind: FaultKind) -> Result<Called<u32>, Fault> {
        Err(Fault {
            function: "reconcile",
            kind: Box::new(kind),
            logs: Vec::new(),
            logs_dropped: false,
            usage: Box::default(),
        })
    }

    /// On whichever of its threads they are, also where calls that are answered come between;
    /// others do not wait for it.
    #[tokio::test]
    async fn a_plugin_rests_between_failures() {
        for kind in [Some(FaultKind::Exit { code: 1 }), None] {
            rests_between(kind).await;
        }
    }

    /// Failures by a fault, or by what is answered.
    async fn rests_between(kind: Option<FaultKind>) {
        const FAILURES: u32 = 20;
        let threads = GuestThreads::new(4, 2);
        let (bad, good) = (threads.of_plugin(), threads.of_plugin());
        let fail = async || match kind.clone() {
            Some(kind) => drop(bad.run(faulty(kind)).await.unwrap_err()),
            None => drop(bad.run_judged(async { called(0) }, |_| true).await.unwrap()),
        };
        let begun = Instant::now();
        fail().await;
        let failures = (0..FAILURES).map(async |_| {
            fail().await;
            bad.run(async { called(2) }).await.unwrap();
        });
        futures::future::join_all(failures).await;
        // Two threads make two calls between two rests at most. Where the machine stands still
        // for so long that failures are apart, at least that time has passed.
        assert!(
            begun.elapsed() >= REST * (FAILURES / 2 - 1),
            "{kind:?}: {:?}",
            begun.elapsed()
        );
        good.run(async { called(1) }).await.unwrap();
        assert!(!rests(&good).await);
    }

    #[test]
    fn failures_that_take_long_are_not_set_apart_by_a_little() {
        let rests = |between, used| {
            let rest = rest_after(Duration::from_millis(between), Duration::from_millis(used));
            rest.map(|rest| rest.as_millis())
        };
        assert_eq!(rests(0, 0), Some(1));
        assert_eq!(rests(4, 0), Some(1));
        assert_eq!(rests(5, 0), None);
        assert_eq!(rests(11, 6), Some(12));
        assert_eq!(rests(12, 6), None);
        assert_eq!(rests(90, 100), Some(200));
        assert_eq!(rests(1999, 1000), Some(200));
    }

    /// However fast others of its calls are.
    #[tokio::test]
    async fn who_fails_slowly_rests_as_long() {
        // Where the machine stands still for so long that failures are apart, at least that time
        // has passed.
        const SLOW: Duration = Duration::from_millis(4);
        const { assert!(SLOW.as_nanos() < APART.as_nanos()) };
        let plugin = GuestThreads::new(4, 1).of_plugin();
        let begun = Instant::now();
        // At the first nobody knows that another follows. Each time the second call waits for the
        // rest.
        for _ in 0..4 {
            let fail = async {
                let begun = computed();
                while computed() - begun < SLOW {}
                called(0)
            };
            plugin.run_judged(fail, |_| true).await.unwrap();
            plugin.run(async { called(1) }).await.unwrap();
        }
        assert!(begun.elapsed() >= SLOW * 10, "{:?}", begun.elapsed());
        // What waits, or is kept from its processor, is not what others notice.
        let plugin = GuestThreads::new(4, 1).of_plugin();
        for _ in 0..2 {
            let waits = async {
                thread::sleep(SLOW * 50);
                called(0)
            };
            plugin.run_judged(waits, |_| true).await.unwrap();
        }
        rests(&plugin).await;
        let until = plugin.lane.state.lock().rests;
        let soon = Instant::now() + SLOW * 10;
        assert!(until.is_none_or(|until| until < soon), "{until:?}");
        // What takes long and is answered is no failure.
        let before = plugin.lane.state.lock().rests;
        let slow = async {
            thread::sleep(SLOW);
            called(1)
        };
        plugin.run(slow).await.unwrap();
        assert_eq!(plugin.lane.state.lock().rests, before);
    }

    /// What is nobody's fault begins nothing, and neither does one failure, nor any number of
    /// answers.
    #[tokio::test]
    async fn a_plugin_does_not_rest_for_nothing() {
        let plugin = GuestThreads::new(4, 2).of_plugin();
        for _ in 0..3 {
            let reason = "as told".to_owned();
            let host = plugin.run(faulty(FaultKind::Host { reason }));
            host.await.unwrap_err();
        }
        let exit = plugin.run(faulty(FaultKind::Exit { code: 1 }));
        exit.await.unwrap_err();
        for _ in 0..3 {
            let answer = plugin.run_judged(async { called(1) }, |value| *value != 1);
            answer.await.unwrap();
        }
        assert!(!rests(&plugin).await);
    }

    #[tokio::test(start_paused = true)]
    async fn no_time_passes_on_a_paused_clock() {
        for threads in [GuestThreads::new(1, 1), GuestThreads::none()] {
            let before = tokio::time::Instant::now();
            let call = async {
                thread::sleep(Duration::from_millis(20));
                called(1)
            };
            let slow = threads.of_plugin();
            let answer = tokio::time::timeout(Duration::from_secs(1), slow.run(call));
            assert_eq!(answer.await.unwrap().unwrap().value, 1);
            // A rest takes real time, and none of this.
            for _ in 0..3 {
                let exit = slow.run(faulty(FaultKind::Exit { code: 1 }));
                exit.await.unwrap_err();
            }
            assert_eq!(before.elapsed(), Duration::ZERO);
        }
    }

    #[tokio::test]
    async fn without_threads_work_is_done_where_it_is_asked_for() {
        let here = thread::current().id();
        for (threads, is_here) in [
            (GuestThreads::new(1, 1), false),
            (GuestThreads::none(), true),
        ] {
            let thread = threads.aside(|| thread::current().id()).await.unwrap();
            assert_eq!(thread == here, is_here);
            let (asked, answer) = (threads.of_plugin(), Arc::new(Mutex::new(None)));
            let told = Arc::clone(&answer);
            let call = async move {
                *told.lock() = Some(thread::current().id());
                called(1)
            };
            asked.run(call).await.unwrap();
            assert_eq!(*answer.lock() == Some(here), is_here);
            let panicked = threads.aside(|| panic!("as told")).await;
            assert!(panicked.unwrap_err().to_string().contains("panicked"));
        }
    }

    /// The guest yields at each epoch, and who asked may have gone by then.
    #[tokio::test]
    async fn without_threads_a_guest_ends_when_nobody_waits() {
        let ended = Arc::new(AtomicBool::new(false));
        let (threads, guest) = (
            GuestThreads::none().of_plugin(),
            SetOnDrop(Arc::clone(&ended)),
        );
        let looping = tokio::spawn(async move { threads.run(endless(guest)).await.map(drop) });
        tokio::task::yield_now().await;
        looping.abort();
        assert!(looping.await.unwrap_err().is_cancelled());
        assert!(ended.load(Ordering::SeqCst));
    }
}
