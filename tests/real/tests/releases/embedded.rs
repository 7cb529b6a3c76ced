//! The scenarios with actors, on virtual time.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use reeve_sim::{Actors, Clock, Config};
use serde_json::Value;

use crate::scenarios::Scenario;
use crate::servers::{Archive, Server, Story};
use crate::statuses;

/// Longer than all pauses but those that a scenario makes long: what waits for others is
/// looked at every 30 s.
const STEP: Duration = Duration::from_secs(45);

/// What became of a release.
pub(crate) struct Played {
    /// Its status after each step; null where it is not there yet.
    pub(crate) after: Vec<Value>,
    /// All of its statuses in order.
    pub(crate) story: Vec<Value>,
}

/// Plays all scenarios, and returns what became of each by its name.
pub(crate) fn play(
    scenarios: &[Scenario],
    chart: &Bytes,
) -> Result<BTreeMap<&'static str, Played>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    runtime.block_on(async {
        let kinds = ["HelmRelease.helm", "OCIRepository.source"];
        let kinds = kinds.iter().map(|kind| format!("{kind}.toolkit.fluxcd.io"));
        let kinds: Result<Vec<_>, _> = kinds.map(|kind| kind.parse()).collect();
        let server = reeve_sim::Server::new(Config {
            clock: Clock::following_tokio(UNIX_EPOCH + Duration::from_secs(1_767_225_600)),
            seed: Some(1),
            actors: Some(Actors {
                kinds: kinds.ok().context("a kind")?.into_iter().collect(),
                ..Actors::default()
            }),
            ..Config::default()
        });
        let there = Server::new(server.client());
        there.define().await?;
        // Nobody fetches it.
        there
            .publish(&Archive::of(chart, "http://127.0.0.1:1"))
            .await?;
        let mut played = BTreeMap::new();
        for scenario in scenarios {
            let story = Story::default();
            let follow = tokio::spawn(there.clone().follow(story.clone()));
            let mut after = Vec::new();
            for place in 0..scenario.steps.len() {
                there.take(scenario, place).await?;
                tokio::time::sleep(STEP).await;
                let found = there.release(scenario.name).await;
                after.push(found.map_or(Value::Null, |found| statuses::of(&found)));
            }
            follow.abort();
            let mut story = story.lock().unwrap_or_else(PoisonError::into_inner);
            let story = story.remove(scenario.name).unwrap_or_default();
            played.insert(scenario.name, Played { after, story });
        }
        Ok(played)
    })
}
