//! What stands between a replica and the cluster: no lease, no write.

use super::clock::{BootClock, Moment, SystemBootClock};
use super::timing::LeaseTiming;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// This replica may not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this replica is not the leader")]
pub struct NotLeader;

/// A term is looked at this often while a write is under way in it: tokio's clock
/// stands still while the machine sleeps.
const LOOK: Duration = Duration::from_secs(1);

/// Says whether a write may begin. Clones are the same fence.
///
/// It opens for a term when its owner arms it, having seen to it that nothing of
/// an earlier term is left, and closes by itself when the term has not been
/// renewed in time, at that very moment and whether anybody runs or not.
#[derive(Clone)]
pub struct Fence(Option<Arc<Shared>>);

struct Shared {
    clock: Arc<dyn BootClock>,
    timing: LeaseTiming,
    state: Mutex<State>,
    /// Writes that are under way.
    passages: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    /// The term, and when the request was sent that renewed it last.
    term: Option<(u64, Moment)>,
    /// The term for which the fence was opened.
    armed: Option<u64>,
}

impl Shared {
    /// The term in which a write may begin now.
    fn term_to_write_in(&self) -> Result<u64, NotLeader> {
        let state = self.state.lock();
        let (number, renewed) = state.term.ok_or(NotLeader)?;
        // The clock is read under the lock, not before a wait for it.
        let lasts = self.clock.now().since(renewed) < self.timing.renew_deadline();
        if lasts && state.armed == Some(number) {
            Ok(number)
        } else {
            Err(NotLeader)
        }
    }
}

impl Fence {
    /// A fence that is always open: for an agent that is alone.
    pub fn open() -> Self {
        Self(None)
    }

    /// A fence that never opens: for whoever only looks.
    pub fn shut() -> Self {
        Self::closed(Arc::new(SystemBootClock), LeaseTiming::default())
    }

    /// A fence that is closed until it is armed for a term.
    pub(crate) fn closed(clock: Arc<dyn BootClock>, timing: LeaseTiming) -> Self {
        Self(Some(Arc::new(Shared {
            clock,
            timing,
            state: Mutex::default(),
            passages: watch::Sender::new(0),
        })))
    }

    /// For how long a term lasts that is not renewed; zero for a fence that is always open.
    pub fn lease_duration(&self) -> Duration {
        let shared = self.0.as_ref();
        shared.map_or(Duration::ZERO, |shared| shared.timing.duration())
    }

    /// Whether a write may begin now.
    ///
    /// # Errors
    ///
    /// When it may not.
    pub fn check(&self) -> Result<(), NotLeader> {
        match &self.0 {
            None => Ok(()),
            Some(shared) => shared.term_to_write_in().map(drop),
        }
    }

    /// Opens the fence for a term, for as long as it lasts.
    ///
    /// # Errors
    ///
    /// When the term is over.
    pub fn arm(&self, term: u64) -> Result<(), NotLeader> {
        let Some(shared) = &self.0 else {
            return Ok(());
        };
        shared.state.lock().armed = Some(term);
        self.check().inspect_err(|_| self.disarm())
    }

    /// Closes the fence until it is armed again. A fence that is always open stays
    /// so.
    pub fn disarm(&self) {
        if let Some(shared) = &self.0 {
            shared.state.lock().armed = None;
        }
    }

    /// Waits until no write is under way.
    pub async fn drained(&self) {
        if let Some(shared) = &self.0 {
            let mut passages = shared.passages.subscribe();
            // Its sender is in what we hold.
            let _ = passages.wait_for(|passages| *passages == 0).await;
        }
    }

    /// Notes the term as it is now.
    pub(crate) fn set_term(&self, term: Option<(u64, Moment)>) {
        if let Some(shared) = &self.0 {
            shared.state.lock().term = term;
        }
    }

    /// Begins a write, which is under way until the passage is dropped.
    pub(crate) fn pass(&self) -> Result<Passage, NotLeader> {
        let Some(shared) = &self.0 else {
            return Ok(Passage(None));
        };
        // Counted first: who closes the fence and then finds nothing under way
        // must not be overtaken by a write that was just let through.
        shared.passages.send_modify(|passages| *passages += 1);
        let mut passage = Passage(Some((shared.clone(), 0)));
        let term = shared.term_to_write_in()?;
        passage.0 = passage.0.take().map(|(shared, _)| (shared, term));
        Ok(passage)
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Fence");
        debug.field("open", &self.check().is_ok()).finish()
    }
}

/// A write that is under way, and the term in which it began.
pub(crate) struct Passage(Option<(Arc<Shared>, u64)>);

/// Whether a write that was let through may be sent still.
#[derive(Clone)]
pub(crate) struct LastLook(Arc<Shared>, u64);

impl LastLook {
    /// Looks whether writes may begin in the term in which this one was let through.
    pub(crate) fn check(&self) -> Result<(), NotLeader> {
        let Self(shared, number) = self;
        let term = shared.term_to_write_in()?;
        (term == *number).then_some(()).ok_or(NotLeader)
    }
}

impl Passage {
    /// For whoever writes it to the connection. None for a fence that is always open.
    pub(crate) fn last_look(&self) -> Option<LastLook> {
        let (shared, number) = self.0.as_ref()?;
        Some(LastLook(shared.clone(), *number))
    }

    /// Waits until the write has to be abandoned, because others may soon begin
    /// theirs. Renewals put that off; that the fence was closed meanwhile, or that
    /// the term is over, does not hasten it.
    pub(crate) async fn over(&self) {
        let Some((shared, number)) = &self.0 else {
            return std::future::pending().await;
        };
        let mut renewed = None;
        loop {
            let term = shared.state.lock().term;
            // Of a term that is over the last renewal still counts.
            renewed = term
                .filter(|(n, _)| n == number)
                .map(|(_, at)| at)
                .or(renewed);
            let Some(renewed) = renewed else {
                return;
            };
            let age = shared.clock.now().since(renewed);
            let left = shared.timing.hold().saturating_sub(age);
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        if let Some((shared, _)) = &self.0 {
            shared.passages.send_modify(|passages| *passages -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::clock::TokioClock;
    use tokio::time::{Instant, sleep};

    fn at(millis: u64) -> Moment {
        Moment(Duration::from_millis(millis))
    }

    fn fence() -> Fence {
        Fence::closed(Arc::new(TokioClock::new()), LeaseTiming::default())
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_open_for_an_armed_term_until_the_renew_deadline() {
        let fence = fence();
        assert_eq!(fence.check(), Err(NotLeader));
        assert_eq!(fence.arm(1), Err(NotLeader), "there is no term");
        fence.set_term(Some((1, at(0))));
        assert_eq!(fence.check(), Err(NotLeader), "it is not armed");
        assert_eq!(fence.arm(1), Ok(()));
        sleep(Duration::from_millis(9_999)).await;
        assert_eq!(fence.check(), Ok(()));
        sleep(Duration::from_millis(1)).await;
        assert_eq!(fence.check(), Err(NotLeader));
        // The next term needs to be armed too.
        fence.set_term(Some((2, at(10_000))));
        assert_eq!(fence.check(), Err(NotLeader));
        assert_eq!(fence.arm(1), Err(NotLeader));
        assert_eq!(fence.arm(2), Ok(()));
        fence.disarm();
        assert_eq!(fence.check(), Err(NotLeader));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_under_way_is_over_before_others_take_over() {
        let fence = fence();
        fence.set_term(Some((1, at(0))));
        fence.arm(1).unwrap();
        let passage = fence.pass().unwrap();
        let start = Instant::now();
        let renewing = async {
            sleep(Duration::from_secs(2)).await;
            fence.set_term(Some((1, at(2_000))));
            sleep(Duration::from_secs(10)).await;
            fence.set_term(None);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = passage.over() => {}
            () = renewing => {}
        }
        assert_eq!(start.elapsed().as_secs(), 2 + 14);
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_term_does_not_lengthen_a_write() {
        let fence = fence();
        fence.set_term(Some((1, at(0))));
        fence.arm(1).unwrap();
        let passage = fence.pass().unwrap();
        let start = Instant::now();
        let retaking = async {
            sleep(Duration::from_secs(12)).await;
            fence.set_term(Some((2, at(12_000))));
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = passage.over() => {}
            () = retaking => {}
        }
        assert_eq!(start.elapsed().as_secs(), 14);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_the_writes_waits_for_all() {
        let fence = fence();
        fence.drained().await;
        fence.set_term(Some((1, at(0))));
        fence.arm(1).unwrap();
        let passages = [fence.pass().unwrap(), fence.pass().unwrap()];
        fence.disarm();
        assert!(fence.pass().is_err());
        for passage in passages {
            let waited = tokio::time::timeout(Duration::from_secs(1), fence.drained()).await;
            assert!(waited.is_err());
            drop(passage);
        }
        fence.drained().await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_fence_lets_everything_through() {
        let fence = Fence::open();
        fence.disarm();
        assert_eq!(fence.check(), Ok(()));
        assert_eq!(fence.arm(7), Ok(()));
        let passage = fence.pass().unwrap();
        fence.drained().await;
        let over = tokio::time::timeout(Duration::from_secs(3600), passage.over()).await;
        assert!(over.is_err());
    }
}
