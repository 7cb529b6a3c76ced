//! Clocks of replicas jump, while somebody edits what they look after.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use reeve_real::{Ahead, Clocks};

use crate::stage::{LEASE, PROFILES, RETRY, Replica, Stage, Write};

/// Seconds in an hour.
const HOUR: i64 = 3_600;

/// Two replicas, of which the first leads.
fn replicas() -> Result<(Stage, Replica, Replica)> {
    let stage = Stage::new()?;
    let one = stage.start("one")?;
    stage.wait_until_leading(&one)?;
    let two = stage.start("two")?;
    stage.wait_for_repair()?;
    stage.wait_until_following(&two)?;
    Ok((stage, one, two))
}

/// Lets something happen to the clocks, which have been so for longer than a lease when
/// this returns, and returns what was written from then on: each quota, which somebody
/// has edited, once, and all of it by one replica.
fn edited(stage: &Stage, happens: impl FnOnce() -> Result<()>) -> Result<Vec<Write>> {
    let before = stage.writers()?.len();
    happens()?;
    stage.wait_for_repair()?;
    sleep(LEASE + 2 * RETRY);
    stage.wait_for_repair()?;
    let writes = stage.writers()?.split_off(before);
    let quotas = |write: &&Write| write.what.contains(" resourcequotas ");
    ensure!(
        writes.iter().filter(quotas).count() == PROFILES.len(),
        "{writes:#?}"
    );
    let hands = writes.chunk_by(|a, b| a.user == b.user).count();
    ensure!(hands == 1, "two have written: {writes:#?}");
    Ok(writes)
}

/// The wall clock of a leader or of a follower is set, as people do and NTP does. Whose
/// the lease is is no matter of wall clocks, and what there is to do is not either.
#[test]
fn wall_clocks_that_are_set_change_nothing() -> Result<()> {
    let Some(clocks) = Clocks::possible() else {
        return Ok(());
    };
    let (stage, one, two) = replicas()?;
    let first = stage.lease()?;
    // Back first: what was renewed in a future would be renewed there for as long.
    for (replica, hours) in [(&one, -7), (&one, 5), (&two, 9), (&two, -9)] {
        let ahead = Ahead {
            wall: hours * HOUR,
            boot: 0,
        };
        let before = stage.lease()?;
        let writes = edited(&stage, || {
            replica.agent.set_clocks(clocks, ahead)?;
            stage.edit_all()
        })?;
        let lease = stage.lease()?;
        let writer = writes.first().context("nothing was written")?;
        ensure!(
            writer.user == one.user && lease.transitions == first.transitions,
            "{hours} h: another leads: {writer:?}, {lease:?}"
        );
        // It is by this clock that the leader says when it renewed the lease, and each time
        // it says a later one. More than a lease has passed since the look before.
        let passed = lease.renewed.duration_since(before.renewed);
        let ahead = lease.renewed.duration_since(Timestamp::now());
        let jumped = match hours {
            ..0 if replica.user == one.user => passed < SignedDuration::try_from(LEASE)?,
            5 => ahead > SignedDuration::from_hours(4),
            _ => true,
        };
        ensure!(
            passed.is_positive() && jumped,
            "{hours} h: renewed {passed:?} later, {ahead:?} ahead"
        );
    }
    Ok(())
}

/// Machines sleep: all clocks of what runs on them have jumped when they wake up. The term
/// of whoever led is over by then, so it may write only when it has renewed the lease.
#[test]
fn replicas_that_have_slept_write_one_at_a_time() -> Result<()> {
    let Some(clocks) = Clocks::possible() else {
        return Ok(());
    };
    let (stage, one, two) = replicas()?;
    let mut hours = 0;
    for asleep in [&[&one, &two][..], &[&one], &[&two], &[&two, &one]] {
        hours += 1;
        // The last time, somebody elsewhere has come to lead meanwhile, and is gone again.
        let elsewhere = hours == 4;
        let before = stage.lease()?;
        let mut woken = None;
        let writes = edited(&stage, || {
            let signal = |signal| asleep.iter().try_for_each(|one| one.agent.signal(signal));
            signal("STOP")?;
            // A machine that sleeps misses some renewals of one that does not.
            sleep(Duration::from_secs(1));
            if elsewhere {
                stage.lead_elsewhere()?;
            }
            stage.edit_all()?;
            let ahead = Ahead {
                wall: hours * HOUR,
                boot: hours * HOUR,
            };
            for replica in asleep {
                replica.agent.set_clocks(clocks, ahead)?;
            }
            woken = Some(Timestamp::now());
            signal("CONT")
        })?;
        let woken = woken.context("nobody slept")?;
        let writer = writes.first().context("nothing was written")?;
        let renewals = stage.renewals(&writer.user)?;
        let renewal = renewals.iter().find(|renewal| **renewal >= woken);
        let wrote: Timestamp = writer.at.parse()?;
        let slept = asleep.iter().any(|one| one.user == writer.user);
        ensure!(
            !slept || renewal.is_some_and(|renewal| *renewal <= wrote),
            "it wrote at {wrote}, and renewed the lease at {renewal:?}"
        );
        let lease = stage.lease()?;
        let leaders = [stage.leads(&one)?, stage.leads(&two)?];
        eprintln!(
            "{} slept: {lease:?}, {leaders:?}; written {:?} after it woke",
            asleep.len(),
            wrote.duration_since(woken)
        );
        ensure!(leaders[0] != leaders[1], "{leaders:?}");
        let most = before.transitions + if elsewhere { 2 } else { 1 };
        ensure!(lease.transitions <= most, "{before:?} became {lease:?}");
        // Whoever has just woken up has not seen yet whether that one is alive.
        let waited = wrote.duration_since(woken) >= SignedDuration::try_from(LEASE)?;
        ensure!(
            !elsewhere || waited,
            "it wrote at {wrote}, awake since {woken}"
        );
    }
    Ok(())
}
