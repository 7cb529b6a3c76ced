//! What `reeve_ssa` alone says of an apply, held against what the real server
//! does: whether it changes the object. The agent skips applies by this.

use anyhow::Result;
use reeve_ssa::{Apply, builtin, reset};
use serde_json::Value;

use crate::corpus::{Scenario, Step};
use crate::exchange::Endpoint;
use crate::play::{Outcome, Player};

/// How predictions came out.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Applies to objects that were there, which the server took.
    pub(crate) applies: usize,
    /// The server changed something, and no change was predicted: the agent would
    /// have left out a write that was needed.
    pub(crate) missed: Vec<String>,
    /// A change was predicted, and the server changed nothing: the agent would
    /// have sent a write for nothing.
    pub(crate) needless: Vec<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.applies += other.applies;
        self.missed.extend(other.missed);
        self.needless.extend(other.needless);
    }
}

/// Plays a scenario on the real server, and judges each apply on the way.
pub(crate) async fn play(
    endpoint: &Endpoint,
    scenario: &Scenario,
    namespace: &str,
) -> Result<(Vec<Outcome>, Tally)> {
    let mut player = Player::new(endpoint, namespace).await?;
    let (mut outcomes, mut tally) = (Vec::new(), Tally::default());
    for step in &scenario.steps {
        let Some(attempt) = Attempt::of(step) else {
            outcomes.push(player.step(step).await?);
            continue;
        };
        let before = player.look(attempt.object).await?;
        let config = player.resolve(attempt.config);
        let outcome = player.step(step).await?;
        let after = player.look(attempt.object).await?;
        let taken = matches!(&outcome, Outcome::Answer(answer) if answer.status == 200);
        if taken
            && let (Some(before), Some(after)) = (before, after)
            && let Some(predicted) = attempt.predict(&before, &config)
        {
            tally.applies += 1;
            let changed = version(&before) != version(&after);
            if changed != predicted {
                let case = format!("config {config}\n      on {before}\n      gave {after}");
                let list = if changed {
                    &mut tally.missed
                } else {
                    &mut tally.needless
                };
                list.push(case);
            }
        }
        outcomes.push(outcome);
    }
    Ok((outcomes, tally))
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

/// An apply to an object of a built-in kind.
struct Attempt<'a> {
    object: &'a str,
    config: &'a Value,
    manager: &'a str,
    force: bool,
}

impl<'a> Attempt<'a> {
    fn of(step: &'a Step) -> Option<Self> {
        let (object, query) = step.patch.as_deref()?.split_once('?')?;
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        if parameter("dryRun").is_some() || object.ends_with("/status") {
            return None;
        }
        Some(Self {
            object,
            config: step.apply.as_ref()?,
            manager: parameter("fieldManager")?,
            force: parameter("force") == Some("true"),
        })
    }

    /// Whether the apply changes anything; none where `reeve_ssa` has no type. What
    /// it refuses counts as a change: then the server is asked.
    fn predict(&self, live: &Value, config: &Value) -> Option<bool> {
        let text = |field: &str| config[field].as_str().unwrap_or_default();
        let api_version = text("apiVersion");
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let applied = reeve_ssa::apply(Apply {
            schema: builtin::schema(group, version, text("kind"))?,
            versions: &[],
            live: Some(live),
            config,
            manager: self.manager,
            force: self.force,
            subresource: "",
            now: "2001-01-01T00:00:00Z",
            reset: &reset::built_in(group, text("kind"), ""),
        });
        Some(applied.map_or(true, |applied| applied.changed))
    }
}
