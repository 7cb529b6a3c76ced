//! Waiting for what other processes do.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long to wait for a step of another process. The garbage collector looks
/// for new kinds every 30 s; everything else takes a second or two.
const PATIENCE: Duration = Duration::from_secs(90);

/// Most looks go over a connection that is open, and some start a program.
const INTERVAL: Duration = Duration::from_millis(200);

/// Looks again and again until `look` succeeds, and returns what it returned.
///
/// # Errors
///
/// The last look's, with what was waited for, when it takes too long.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let started = Instant::now();
    loop {
        match look() {
            Ok(value) => return Ok(value),
            Err(error) if started.elapsed() > PATIENCE => {
                let waited = PATIENCE.as_secs();
                return Err(error).with_context(|| format!("waited {waited} s until {what}"));
            }
            Err(_) => thread::sleep(INTERVAL),
        }
    }
}
