//! Whom the API server has told to come back later, and until when.
//!
//! It tells users apart when it has too much to do, so that what it says to one account
//! says nothing about another. It counts on being heard: whoever comes back sooner makes
//! it worse for all.

use crate::cluster::Cluster;
use crate::identity::Identity;
use http::{HeaderMap, header};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// Seconds beyond which a demand is not kept to: it may be a mistake of something on the
/// way, and a server's own demands are of a few.
const LONGEST: u32 = 60;

/// Until when users are to wait, by name; the agent's own has none.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<HashMap<Option<String>, Instant>>);

impl Throttle {
    /// Notes that a user is to wait so long from now.
    pub(crate) fn wait(&self, user: Option<String>, time: Duration) {
        let now = Instant::now();
        let until = now + time;
        let mut waiting = self.0.lock();
        waiting.retain(|_, until| *until > now);
        let known = waiting.entry(user).or_insert(until);
        *known = until.max(*known);
    }

    fn until(&self, user: Option<&str>) -> Option<Instant> {
        let waiting = self.0.lock();
        let until = waiting.get(&user.map(str::to_owned)).copied()?;
        (until > Instant::now()).then_some(until)
    }
}

impl Cluster {
    /// Until when the API server wants to hear no more of somebody, the agent itself
    /// without an `identity`; none when it has not said so, or that time is over. Requests
    /// are sent all the same.
    pub fn told_to_wait(&self, identity: Option<&Identity>) -> Option<Instant> {
        self.throttle
            .until(identity.map(|identity| identity.user.as_str()))
    }
}

/// How many seconds an answer asks to wait: by its header, which is often all that a
/// server has time for (the other form of it, a date, no API server sends), or by its
/// body.
pub(crate) fn demanded(headers: &HeaderMap, body: u32) -> u32 {
    let header = headers.get(header::RETRY_AFTER);
    let header = header.and_then(|header| header.to_str().ok()?.parse().ok());
    header.unwrap_or(0).max(body).clamp(1, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_latest_demand_counts_for_whom_it_was_made() {
        let throttle = Throttle::default();
        let start = Instant::now();
        let left = |user| {
            let until = throttle.until(user)?;
            Some(until.duration_since(start).as_secs())
        };
        let wait = |user: Option<&str>, seconds| {
            throttle.wait(user.map(str::to_owned), Duration::from_secs(seconds));
        };
        wait(Some("a"), 5);
        wait(Some("a"), 2);
        wait(None, 60);
        assert_eq!(left(Some("a")), Some(5));
        assert_eq!((left(Some("b")), left(None)), (None, Some(60)));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!((left(Some("a")), left(None)), (None, Some(60)));
        // What is over is forgotten.
        wait(Some("b"), 1);
        assert_eq!(throttle.0.lock().len(), 2);
    }

    #[test]
    fn answers_are_read() {
        let date = "Wed, 21 Oct 2015 07:28:00 GMT";
        for (header, body, expected) in [
            (None, 0, 1),
            (None, 5, 5),
            (Some("7"), 0, 7),
            (Some("7"), 9, 9),
            (Some("7200"), 0, LONGEST),
            (Some(date), 0, 1),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(header::RETRY_AFTER, header.parse().unwrap());
            }
            assert_eq!(demanded(&headers, body), expected, "{header:?}, {body}");
        }
    }
}
