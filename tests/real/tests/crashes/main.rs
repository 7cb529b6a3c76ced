//! The agent is killed again and again, at points that chance picks, while units
//! converge through waves on a real API server. What the cluster ends as, and what
//! came and went on the way, must be as if nothing had happened.
//!
//! `REEVE_KILLS` sets how often it is killed, `REEVE_SEED` repeats a run.

mod account;
mod stage;

use std::collections::BTreeMap;
use std::env;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};

use reeve_real::eventually;
use reeve_test_support::Chance;

use account::Account;
use stage::{Edition, Stage, UNITS, WAVES};

/// Few enough for every run of all tests; hundreds are for a long run.
const KILLS: u64 = 12;

/// The longest that an agent lives before it is killed: about what it needs to start,
/// read everything and be in the midst of writing.
const LONGEST_LIFE: u64 = 1_500;

#[test]
fn kills_at_any_moment_change_nothing() -> Result<()> {
    let kills = number("REEVE_KILLS")?.unwrap_or(KILLS);
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let seed = number("REEVE_SEED")?.unwrap_or(now);
    eprintln!("REEVE_SEED={seed} REEVE_KILLS={kills}");
    let mut random = Chance::new(seed);

    let mut stage = Stage::new()?;
    stage.wanted(Edition::First)?;
    // The second edition comes when half of the kills are done, whatever has been
    // reached by then.
    for kill in 0..kills {
        if kill == kills / 2 {
            stage.wait_until_made(Edition::First)?;
            stage.wanted(Edition::Second)?;
        }
        stage.start_agent()?;
        std::thread::sleep(Duration::from_millis(random.below(LONGEST_LIFE)));
        stage.kill_agent()?;
    }
    stage.start_agent()?;
    stage.wait_until_made(Edition::Second)?;
    stage.wait_until_calm()?;

    // The watch tells the last of it a moment later.
    eventually("each object came and went as often as it should", || {
        check_deeds(&Account::of(stage.witness.seen()?))
    })
    .with_context(|| format!("REEVE_SEED={seed} REEVE_KILLS={kills}"))?;
    // What somebody else has made is theirs, before and after.
    ensure!(stage.foreign_object_is_untouched()?);
    Ok(())
}

/// What the agent did over all of its lives.
fn check_deeds(account: &Account) -> Result<()> {
    let mut wrong = Vec::new();
    let mut wanted: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for unit in 0..UNITS {
        for wave in 0..WAVES {
            // Each is made once, and goes once if the second edition withdraws it.
            let gone =
                usize::from(Edition::First.has(unit, wave) && !Edition::Second.has(unit, wave));
            wanted.insert(stage::name(unit, wave), (1, gone));
        }
    }
    for (name, (made, gone)) in &wanted {
        let seen = (account.made(name), account.deleted(name));
        if seen != (*made, *gone) {
            wrong.push(format!(
                "{name} was made {} times and deleted {} times, not {made} and {gone}",
                seen.0, seen.1
            ));
        }
    }
    for name in account.names() {
        if !wanted.contains_key(name) && !stage::OTHERS.contains(&name) {
            wrong.push(format!("{name} was written and is nobody's"));
        }
    }
    for unit in 0..UNITS {
        for edition in [Edition::First, Edition::Second] {
            let order: Vec<_> = (0..WAVES)
                .filter(|&wave| edition.has(unit, wave))
                .map(|wave| account.first_made(&stage::name(unit, wave)))
                .collect();
            if !order.is_sorted() {
                wrong.push(format!(
                    "the waves of unit {unit} were out of order: {order:?}"
                ));
            }
        }
    }
    if !wrong.is_empty() {
        bail!("{} findings:\n{}", wrong.len(), wrong.join("\n"));
    }
    Ok(())
}

fn number(variable: &str) -> Result<Option<u64>> {
    let Ok(text) = env::var(variable) else {
        return Ok(None);
    };
    let number = text.parse();
    number
        .map(Some)
        .with_context(|| format!("{variable} is {text:?} and should be a number"))
}
