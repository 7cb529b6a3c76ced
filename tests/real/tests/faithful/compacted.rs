//! What both servers say of versions that they have forgotten.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::corpus::{self, Scenario, Step};
use crate::play::{Outcome, Player};
use crate::servers::Servers;
use crate::suite::{findings, folder, report};

const NAMESPACE: &str = "compacted";

/// Plays steps on both servers, and adds what they came to.
async fn play(
    steps: &[Step],
    players: &mut [Player<'_>; 2],
    outcomes: &mut [Vec<Outcome>; 2],
) -> Result<()> {
    for (player, outcomes) in players.iter_mut().zip(outcomes) {
        for step in steps {
            let outcome = player.step(step).await;
            outcomes.push(outcome.with_context(|| step.title())?);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_that_are_forgotten_are_refused_alike() -> Result<()> {
    let text = fs::read_to_string(folder().join("compacted.yaml"))?;
    let scenarios: Vec<Scenario> = corpus::parse(&text)?;
    let [before, after] = <[Scenario; 2]>::try_from(scenarios)
        .ok()
        .context("one scenario before, and one after")?;

    let servers = Servers::start().await?;
    let (real, embedded) = (servers.real.clone(), servers.embedded.clone());
    let mut players = [
        Player::new(&real, NAMESPACE).await?,
        Player::new(&embedded, NAMESPACE).await?,
    ];
    let mut outcomes = [Vec::new(), Vec::new()];
    play(&before.steps, &mut players, &mut outcomes).await?;
    let _servers = servers.compact().await?;
    play(&after.steps, &mut players, &mut outcomes).await?;

    // Something was forgotten, or all this says nothing.
    let [of_real, of_embedded] = &outcomes;
    let expired = |outcomes: &[Outcome]| {
        let is_expired = |outcome: &&Outcome| match outcome {
            Outcome::Answer(answer) => answer.status == 410,
            Outcome::Events(events, _) => events.iter().any(|event| event.contains("\"code\":410")),
        };
        outcomes.iter().filter(is_expired).count()
    };
    for outcomes in [of_real, of_embedded] {
        ensure!(expired(outcomes) >= 10, "{} are 410", expired(outcomes));
    }

    let whole = Scenario {
        name: "compacted".to_owned(),
        alone: false,
        steps: [before.steps, after.steps].concat(),
    };
    let found = findings(&whole, NAMESPACE, of_real, of_embedded);
    ensure!(found.is_empty(), "{}", report(&whole.name, &found));
    Ok(())
}
