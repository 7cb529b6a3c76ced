//! Two agents on a real API server, of which one leads. What they write is read
//! from the API server's audit log.

mod clocks;
mod stage;

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use reeve_real::{Ahead, Clocks};

use stage::{LEASE, PROFILES, RETRY, Stage};

/// A leader that is stopped in the midst of work, for longer than its lease, and
/// goes on: everything that it had in hand is from before. The second time somebody has
/// set its wall clock back meanwhile, to when its lease was young.
#[test]
fn a_leader_that_was_stopped_begins_nothing() -> Result<()> {
    let clocks = Clocks::possible();
    let stage = Stage::new()?;
    let one = stage.start("one")?;
    stage.wait_until_leading(&one)?;
    let two = stage.start("two")?;
    stage.wait_for_repair()?;

    // Somebody keeps both of them busy all the time.
    let meddler = stage.meddle();
    for round in 0..2 {
        let (stopped, other) = if round == 0 {
            (&one, &two)
        } else {
            (&two, &one)
        };
        sleep(Duration::from_secs(2));
        let before = stage.writers()?;
        ensure!(
            before
                .last()
                .is_some_and(|write| write.user == stopped.user),
            "round {round}: {before:?}"
        );
        stopped.agent.signal("STOP")?;
        let start = Instant::now();
        stage.wait_until_leading(other)?;
        let took = start.elapsed();
        eprintln!(
            "round {round}: taken over {:.1} s after the stop",
            took.as_secs_f32()
        );
        ensure!(took < LEASE + 3 * RETRY + stage::TAKEOVER, "took {took:?}");
        sleep(Duration::from_secs(1));
        if let Some(clocks) = clocks.filter(|_| round == 1) {
            let ahead = Ahead {
                wall: -7 * 3_600,
                boot: 0,
            };
            stopped.agent.set_clocks(clocks, ahead)?;
        }
        stopped.agent.signal("CONT")?;
        sleep(Duration::from_secs(2));
        stage.wait_until_following(stopped)?;

        // From the last write before the stop on, all others are the new leader's.
        let writes = stage.writers()?;
        let since = &writes[before.len()..];
        let first = since.iter().position(|write| write.user == other.user);
        let Some(first) = first else {
            anyhow::bail!("round {round}: the new leader wrote nothing");
        };
        let late: Vec<_> = since[first..]
            .iter()
            .filter(|write| write.user == stopped.user)
            .collect();
        ensure!(
            late.is_empty(),
            "round {round}: {late:?} after {:?}",
            since[first]
        );
        ensure!(
            since.len() > first + 5,
            "round {round}: too little to see: {since:?}"
        );
    }
    meddler.stop()?;
    stage.wait_for_repair()
}

#[test]
fn a_leader_hands_over_and_one_that_is_killed_is_replaced() -> Result<()> {
    let stage = Stage::new()?;
    let mut one = stage.start("one")?;
    stage.wait_until_leading(&one)?;
    let two = stage.start("two")?;
    stage.wait_for_repair()?;
    stage.wait_until_following(&two)?;
    ensure!(two.agent.is_ready()?, "a follower is ready too");

    // Asked to leave, it gives the lease back and ends well.
    let meddler = stage.meddle();
    let start = Instant::now();
    one.agent.signal("TERM")?;
    let code = one.agent.wait_for_exit()?;
    let left = start.elapsed();
    stage.wait_until_leading(&two)?;
    let took = start.elapsed();
    eprintln!(
        "left after {:.2} s, handed over after {:.2} s",
        left.as_secs_f32(),
        took.as_secs_f32()
    );
    ensure!(code == 0, "exit code {code}\n{}", one.agent.log_tail());
    ensure!(
        took < LEASE,
        "no faster than a lease that runs out: {took:?}"
    );
    meddler.stop()?;
    stage.wait_for_repair()?;

    // Killed, it can give nothing back.
    let three = stage.start("one")?;
    stage.wait_until_following(&three)?;
    let start = Instant::now();
    two.agent.signal("KILL")?;
    stage.edit(PROFILES[0])?;
    stage.wait_until_leading(&three)?;
    let took = start.elapsed();
    eprintln!("taken over {:.1} s after the kill", took.as_secs_f32());
    ensure!(took < LEASE + 3 * RETRY + stage::TAKEOVER, "took {took:?}");
    stage.wait_for_repair()?;

    // Never did two write at once: the log changes hands twice.
    let writes = stage.writers()?;
    let hands: Vec<_> = writes
        .chunk_by(|a, b| a.user == b.user)
        .map(|run| run[0].user.as_str())
        .collect();
    ensure!(hands.len() == 3, "{hands:?}");
    Ok(())
}
