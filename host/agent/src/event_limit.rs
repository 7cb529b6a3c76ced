//! How many events a unit may have recorded.

use std::time::Duration;
use tokio::time::Instant;

/// So many events of a unit are recorded at once; client-go allows as many of one
/// object.
const BURST: u32 = 25;

/// After that, one each so often; client-go allows as many. A plugin that words its
/// event anew at each run would otherwise fill the API server's store.
const REFILL: Duration = Duration::from_secs(5 * 60);

/// What is left of a unit's room for events.
#[derive(Debug, Default)]
pub(crate) struct EventLimit {
    spent: u32,
    /// When the last of these was or will have been given back; none before the
    /// first.
    counted: Option<Instant>,
}

impl EventLimit {
    /// Whether another event may be recorded, which is then counted.
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        let counted = *self.counted.get_or_insert(now);
        let periods = now.duration_since(counted).as_secs() / REFILL.as_secs();
        let given_back = u32::try_from(periods).unwrap_or(u32::MAX);
        self.spent = self.spent.saturating_sub(given_back);
        self.counted = Some(match self.spent {
            0 => now,
            _ => counted + REFILL.saturating_mul(given_back),
        });
        let room = self.spent < BURST;
        self.spent += u32::from(room);
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_burst_there_is_one_each_period() {
        let start = Instant::now();
        let mut limit = EventLimit::default();
        let mut admitted = |after: Duration, tries: u32| {
            let now = start + after;
            (0..tries).filter(|_| limit.admit(now)).count()
        };
        assert_eq!(admitted(Duration::ZERO, 100), 25);
        assert_eq!(admitted(REFILL - Duration::from_secs(1), 3), 0);
        assert_eq!(admitted(REFILL, 3), 1);
        assert_eq!(admitted(REFILL * 2 - Duration::from_secs(1), 3), 0);
        assert_eq!(admitted(REFILL * 4, 5), 3);
        assert_eq!(admitted(REFILL * 1000, 100), 25);
    }
}
