//! Waiting for something that happens elsewhere.

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Between two looks. Short beside anything that is waited for.
const INTERVAL: Duration = Duration::from_millis(20);

/// What a look found instead of what is waited for; shown when time is up.
#[derive(Debug)]
pub struct Pending(String);

impl<T: fmt::Display> From<T> for Pending {
    fn from(seen: T) -> Self {
        Self(seen.to_string())
    }
}

/// Looks again and again until `look` returns `Ok`, and returns that value.
///
/// A look that fails says what it saw instead; any error or text will do. Under
/// tokio's paused clock no time passes.
///
/// ```
/// # async fn replicas() -> anyhow::Result<u32> { Ok(3) }
/// # async fn example() {
/// use std::time::Duration;
/// use reeve_test_support::{Pending, eventually};
///
/// eventually(Duration::from_secs(5), "three replicas", async || {
///     match replicas().await? {
///         3 => Ok(()),
///         seen => Err(Pending::from(format!("{seen} replicas"))),
///     }
/// })
/// .await;
/// # }
/// ```
///
/// # Panics
///
/// After `timeout`, with `what` was waited for and what the last look saw.
#[expect(clippy::panic, reason = "the error message of a test")]
pub async fn eventually<T>(
    timeout: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, Pending>,
) -> T {
    let deadline = Instant::now() + timeout;
    loop {
        // A look that hangs is cut off too.
        let seen = match tokio::time::timeout_at(deadline, look()).await {
            Ok(Ok(value)) => return value,
            Ok(Err(Pending(seen))) => seen,
            Err(_) => "a look that did not end".to_owned(),
        };
        if Instant::now() + INTERVAL > deadline {
            panic!("waited {timeout:?} for {what}; last seen: {seen}");
        }
        sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn the_value_of_the_first_look_that_succeeds_is_returned() {
        let mut looks = 0;
        let value = eventually(LONG, "the third look", async || {
            looks += 1;
            if looks == 3 {
                Ok(looks)
            } else {
                Err("not yet".into())
            }
        })
        .await;
        assert_eq!(value, 3);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "waited 3600s for rain; last seen: sunshine")]
    async fn the_last_look_is_in_the_message() {
        eventually(LONG, "rain", async || Err::<(), _>("sunshine".into())).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "last seen: a look that did not end")]
    async fn a_look_that_hangs_is_cut_off() {
        eventually(LONG, "anything", async || {
            std::future::pending::<Result<(), Pending>>().await
        })
        .await;
    }
}
