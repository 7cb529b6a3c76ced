//! The gates of an upgrade: what a new version has to pass when it could run, before it
//! takes the place of the one that does.
//!
//! It is asked twice about the same and has to answer the same, and has to come to rest
//! where it reads what it makes ([`conformance`]); then
//! it is asked about every unit, and what it would do beyond what the running version
//! would is counted ([`shadow`]). Both only read: the running version goes on meanwhile,
//! and repairs what drifts.

mod conformance;
mod policy;
mod shadow;
mod share;

use crate::active::Active;
use crate::memo::Memo;
use crate::metrics::Metrics;
use crate::plugin::PluginState;
use crate::problem::Problem;
use crate::run::{Means, Runner};
use crate::version::VersionId;
use crate::written::Written;
use policy::UpgradeRules;
use reeve_api::{APPROVE_UPGRADE_ANNOTATION, PluginSpec, Reason, ShadowMode, ShadowStatus};
use reeve_cluster::{Object, Snapshot, WatchSpec};
use reeve_core::UnitKey;
use reeve_core::prune;
use reeve_core::selector::Selector;
use reeve_core::upgrade::{Verdict, judge, token_for_all};
use shadow::Found;
pub(crate) use share::CanaryRules;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Outside documents of a new version that take longer than this are as good as absent.
const SOURCE_PATIENCE: Duration = Duration::from_secs(10);

/// What the gates need of the agent.
#[derive(Clone)]
pub(crate) struct Gates {
    pub(crate) runner: Runner,
    /// The watch of `Unit` objects: how far syncs are stands there.
    pub(crate) units: Arc<WatchSpec>,
}

/// A version that is about to take over.
pub(crate) struct Upgrade<'a> {
    pub(crate) plugin: &'a Arc<str>,
    pub(crate) new: &'a Arc<Active>,
    /// What runs; none after a restart that has found nothing to go back to.
    pub(crate) running: Option<&'a Arc<Active>>,
    /// Whether any version of the plugin ever ran.
    pub(crate) ran_before: bool,
    pub(crate) spec: &'a PluginSpec,
    /// Kinds to whose objects it contributes.
    pub(crate) contributes: &'a BTreeSet<String>,
    /// The token by which a person approved of a version that was held.
    pub(crate) approved: Option<&'a str>,
}

/// Whether `spec.upgrade` can be followed: a mistake in it is told when it is made, not
/// with the next version.
pub(crate) fn check_policy(spec: &PluginSpec) -> Result<(), Problem> {
    CanaryRules::read(spec)?;
    UpgradeRules::read(spec.upgrade.as_ref(), &prune::Policy::default()).map(drop)
}

/// All units of a plugin, as a version would find them.
struct Fleet {
    state: PluginState,
    /// Those that would be asked about, with their primaries.
    units: Vec<(UnitKey, Arc<Object>)>,
    snapshot: Snapshot,
}

impl Gates {
    /// Takes a version through the gates, and says what the shadow run found, if there
    /// was one.
    ///
    /// # Errors
    ///
    /// When it may not take over, or that cannot be told now.
    pub(crate) async fn check(
        &self,
        upgrade: &Upgrade<'_>,
    ) -> (Option<ShadowStatus>, Result<(), Problem>) {
        match self.pass(upgrade).await {
            Ok((found, result)) => (found, result),
            Err(problem) => (None, Err(problem)),
        }
    }

    async fn pass(
        &self,
        upgrade: &Upgrade<'_>,
    ) -> Result<(Option<ShadowStatus>, Result<(), Problem>), Problem> {
        let new = upgrade.new;
        let rules = UpgradeRules::read(upgrade.spec.upgrade.as_ref(), &new.withdrawals)?;
        let fleet = self.fleet(upgrade).await?;
        // What is not there yet would be told to the plugin as not there at all.
        new.sources.looked_at(SOURCE_PATIENCE).await;
        let at_rest = rules.shadow == ShadowMode::Enforce;
        conformance::check(&self.bystander(), new, &fleet, at_rest).await?;
        if !upgrade.ran_before || rules.shadow == ShadowMode::Off {
            return Ok((None, Ok(())));
        }
        let running = upgrade
            .running
            // Units of another kind of primary are not those of the new version.
            .filter(|old| old.manifest.primary().kind == new.manifest.primary().kind);
        let found = shadow::run(self, &fleet, new, running).await?;
        let verdict = judge(&found.tally, &rules.bounds, running.is_some());
        let (word, result) = self.decide(upgrade, &rules, &found, verdict);
        let now = self.runner.clock.now();
        let status = found.to_status(VersionId::running(new), word, now);
        Ok((Some(status), result))
    }

    /// What becomes of a version, in a word.
    fn decide(
        &self,
        upgrade: &Upgrade<'_>,
        rules: &UpgradeRules,
        found: &Found,
        verdict: Verdict,
    ) -> (&'static str, Result<(), Problem>) {
        if verdict == Verdict::Passes {
            return ("Passed", Ok(()));
        }
        if rules.shadow == ShadowMode::Report {
            return ("Reported", Ok(()));
        }
        let (plugin, namespace) = (upgrade.plugin, &self.runner.namespace);
        let version = VersionId::running(upgrade.new);
        let excess = match verdict {
            Verdict::Passes => Vec::new(),
            Verdict::Held(excess) => excess,
            Verdict::Broken => {
                let example = found.failures.first().map(String::as_str);
                let message = format!(
                    "the new version, {}, traps or goes beyond a limit for all {} units that the \
                     running one serves, and does not take over: {}. Deliver a better one, or \
                     set spec.upgrade.shadow of the Plugin to Report",
                    version.component,
                    found.tally.trapped,
                    example.unwrap_or_default(),
                );
                let problem = Problem::lasting(Reason::UpgradeBroken, message);
                return ("Refused", Err(problem));
            }
        };
        let token = version.token();
        let approved = upgrade.approved.map(str::trim);
        if approved == Some(token.as_str()) || approved == Some(&token_for_all(&token)) {
            return ("Approved", Ok(()));
        }
        let excess: Vec<String> = excess.iter().map(ToString::to_string).collect();
        let example = found.example();
        let example = example.map_or_else(String::new, |example| format!(", such as to {example}"));
        let running = upgrade.running.map(|running| VersionId::running(running));
        let message = format!(
            "the new version, {}, is held for what it would do: {}{example}; in all, {}. `reeve plugin \
             diff {plugin} --namespace {namespace}` shows it; `reeve plugin approve {plugin} \
             --namespace {namespace}` lets it, which annotates the Plugin \
             {APPROVE_UPGRADE_ANNOTATION}={token}",
            running.map_or_else(|| version.component.to_string(), |it| version.beside(it)),
            excess.join("; "),
            found.in_words(),
        );
        let problem = Problem {
            reason: Reason::UpgradeHeld,
            message,
            // What failed for a while may work the next time.
            retries: found.passing,
        };
        ("Held", Err(problem))
    }

    /// Somebody who runs units and leaves no trace of it.
    fn bystander(&self) -> Runner {
        let metrics = Metrics::default();
        Runner {
            executor: self.runner.executor.counted_by(metrics.clone()),
            memo: Arc::new(Memo::none()),
            means: Arc::new(Means {
                metrics,
                ..Means::clone(&self.runner.means)
            }),
            ..self.runner.clone()
        }
    }

    /// Finds the units of a new version. Takes a while for a large fleet, and so is
    /// done aside.
    async fn fleet(&self, upgrade: &Upgrade<'_>) -> Result<Arc<Fleet>, Problem> {
        let store = self.runner.store.clone();
        let (plugin, new) = (upgrade.plugin.clone(), upgrade.new.clone());
        let (spec, contributes) = (upgrade.spec.clone(), upgrade.contributes.clone());
        let units = self.units.clone();
        let found = upgrade.new.threads.aside(move || {
            let snapshot = store.snapshot();
            let watch = new.watches.primary.spec();
            let primaries = snapshot.list_in(watch, None, &Selector::default());
            let primaries = primaries.found()?;
            let mut state = PluginState::new(&plugin);
            state.policy = Some((spec, None));
            state.contributions.record(contributes);
            state.active = Some(new.clone());
            state.take_stock(&new, &snapshot, &primaries);
            let written = Written::seen(&plugin, &snapshot, &units);
            state.resume_syncs(&written.unwrap_or_default());
            let mut units: Vec<(UnitKey, Arc<Object>)> = primaries
                .into_iter()
                .filter(|primary| !primary.is_deleting())
                .map(|primary| (state.unit(&primary.reference()), primary))
                .collect();
            units.sort_by(|(a, _), (b, _)| a.primary.cmp(&b.primary));
            Some(Arc::new(Fleet {
                state,
                units,
                snapshot,
            }))
        });
        let lost = || {
            let message = "the watch of the new version's primaries was lost; it is tried again";
            Problem::passing(Reason::Syncing, message)
        };
        found.await.ok().flatten().ok_or_else(lost)
    }
}
