//! One load: of the newest version or, where that is refused and nothing runs, of
//! the last good one; or of the one before, where a person wants that.

mod back;

use super::canary::NewCanary;
use super::{Done, Loaded};
use crate::active::{Active, LoadKey};
use crate::approval::{Approval, check_pin};
use crate::artifacts::Seen;
use crate::delivery::{self, MAX_COMPONENT_BYTES, PART_OF_LABEL, Package, Unpacking};
use crate::gates::{CanaryRules, Gates, Upgrade, check_policy};
use crate::kept;
use crate::left::Place;
use crate::load::{self, Loader, Purpose, Standing, Turn, Turns, holding};
use crate::problem::{Problem, chain};
use crate::version::{Artifact, VersionId};
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use reeve_api::{ArtifactSource, PluginSpec, Reason, ShadowStatus};
use reeve_cluster::Object;
use reeve_core::upgrade;
use std::collections::BTreeSet;
use std::sync::Arc;

/// ConfigMaps that one load reads at once.
const READS_AT_ONCE: usize = 4;

fn is_part(map: &Object) -> bool {
    map.label(PART_OF_LABEL).is_some()
}

/// Of which component a ConfigMap is, or a part.
fn generation(map: &Object) -> Option<String> {
    map.value()["data"]["generation"]
        .as_str()
        .map(|generation| generation.trim().to_owned())
}

/// What a load starts from.
pub(super) struct Load {
    pub(super) loader: Loader,
    /// What a new version has to pass before it takes over; none where it takes over
    /// whatever it would do.
    pub(super) gates: Option<Gates>,
    pub(super) plugin: Arc<str>,
    /// The plugin's ConfigMap, if it has one, and what its component is made of.
    pub(super) maps: Vec<Arc<Object>>,
    pub(super) policy: PluginSpec,
    /// What a version may ask for.
    pub(super) approval: Approval,
    /// What a person has said of versions.
    pub(super) words: Words,
    /// What runs.
    pub(super) running: Option<Arc<Active>>,
    /// The version that some units run before all others, if there is one.
    pub(super) canary: Option<VersionId>,
    /// The token of a version that too many of them failed under, and what was said.
    pub(super) returned: Option<(String, String)>,
    /// What runs, if loading the same again would give the same.
    pub(super) current: Option<LoadKey>,
    /// What ran last: what to go back to if nothing runs and the newest version does not
    /// load.
    pub(super) last_good: Option<VersionId>,
    /// What ran before that.
    pub(super) previous: Previous,
    /// What a person went back from last.
    pub(super) left: Previous,
    /// Where the plugin may have objects.
    pub(super) places: BTreeSet<Place>,
    /// Kinds to whose objects it contributes.
    pub(super) contributes: BTreeSet<String>,
}

/// What a person has said of versions, by their tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// The one that may do what it was held for.
    pub(crate) approved: Option<String>,
    /// The one that is not to run.
    pub(crate) rolled_back: Option<String>,
}

impl Words {
    /// Whether a version is not to run.
    pub(crate) fn is_rolled_back(&self, version: VersionId) -> bool {
        self.rolled_back.as_deref().map(str::trim) == Some(version.token().as_str())
    }
}

/// A version that ran and may run again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Previous {
    pub(crate) version: Option<VersionId>,
    /// That version as it was compiled, where no cache keeps it.
    pub(crate) compiled: Option<Artifact>,
}

impl Load {
    /// Takes a package through all gates, which takes as long as compiling and asking
    /// about every unit does.
    pub(super) async fn run(self) -> Done {
        let in_registry = self.policy.artifact.is_some();
        let _turn = self.loader.turns.load(in_registry).await;
        let (mut shadow, mut seen) = (None, None);
        let (newest, result) = self.newest(&mut shadow, &mut seen).await;
        let result = match result {
            Err(problem) => match self.unwanted() {
                Some(unwanted) => self.leave(unwanted, problem).await,
                None => match self.regained(newest, &problem) {
                    Some(regained) => self.go_forward(regained, problem).await,
                    None => self.go_back(newest, problem).await,
                },
            },
            loaded => loaded,
        }
        .map_err(|problem| self.told(problem));
        Done::Load {
            plugin: self.plugin,
            newest: newest.map(|version| version.component),
            seen: seen.map(Box::new),
            shadow: shadow.map(Box::new),
            result,
        }
    }

    /// Loads what the ConfigMaps have, or the registry.
    async fn newest(
        &self,
        shadow: &mut Option<ShadowStatus>,
        seen: &mut Option<Seen>,
    ) -> (Option<VersionId>, Result<Loaded, Problem>) {
        let package = match &self.policy.artifact {
            None => self.delivered().await,
            Some(source) => self.pull(source, seen).await,
        };
        match package {
            Ok((package, room)) => {
                let version = VersionId::of(&package);
                let result = self.load_newest(version, package, room, shadow).await;
                (Some(version), result)
            }
            Err(problem) => (None, Err(problem)),
        }
    }

    /// What the ConfigMaps have, and the room that it has until it is compiled.
    async fn delivered(&self) -> Result<(Package, Turn), Problem> {
        let turns = &self.loader.turns;
        // One ConfigMap is no larger than a megabyte; its parts are, all together.
        let parts = match self.maps.iter().any(|map| is_part(map)) {
            true => turns.parts().await,
            false => None,
        };
        let maps = self.read_maps().await?;
        let turn = turns.unpack().await;
        let (plugin, how) = (self.plugin.clone(), self.unpacking());
        // The turns go along: a load that is given up goes on unpacking.
        let unpacked = self.aside(move || {
            let package = unpack(&plugin, &maps, &how)?;
            drop((maps, parts));
            Ok((package, turn))
        });
        let (package, turn) = unpacked.await?;
        let room = turns.room(Purpose::Delivered, package.component.len());
        let room = room.await;
        drop(turn);
        Ok((package, room))
    }

    /// A package that is there until it can be kept, whatever that takes; none where there
    /// is no room for it or nothing is kept.
    fn to_keep(&self, package: &Package) -> Option<Package> {
        if !self.loader.engine.has_cache() {
            return None;
        }
        let turns = &self.loader.turns;
        let component = turns.try_hold(Purpose::ToKeep, &package.component)?;
        Some(Package {
            component,
            ..package.clone()
        })
    }

    /// What the ConfigMaps have, or was pulled, once more, if it is still this version: for
    /// one that had no room to wait until it is kept.
    async fn once_more(&self, version: VersionId, config: &Bytes) -> Option<Package> {
        if !self.loader.engine.has_cache() {
            return None;
        }
        let Loader {
            artifacts, turns, ..
        } = &self.loader;
        let found = match &self.policy.artifact {
            None => self.delivered().await.ok(),
            Some(source) => {
                let pulled = artifacts.pulled(&self.plugin, source, turns).await;
                pulled.map(|(pulled, room)| (pulled.package(config.clone()), room))
            }
        };
        let found = found.filter(|(package, _)| VersionId::of(package) == version);
        let Some((package, room)) = found else {
            tracing::warn!(plugin = %self.plugin, digest = %version.component, "not kept for the next start: there was no room for it while its gates were looked at, and it cannot be read once more");
            return None;
        };
        Some(Package {
            component: holding(package.component, room),
            ..package
        })
    }

    /// Takes the newest version through all gates. Its bytes are dropped when it is
    /// compiled.
    async fn load_newest(
        &self,
        version: VersionId,
        package: Package,
        room: Turn,
        shadow: &mut Option<ShadowStatus>,
    ) -> Result<Loaded, Problem> {
        if self.words.is_rolled_back(version) {
            drop((package, room));
            return self.roll_back(version).await;
        }
        let to_keep = self.to_keep(&package);
        let artifact = Artifact::Delivered(Package {
            component: holding(package.component, room),
            ..package
        });
        // Without a version that goes on meanwhile, a mistake that only concerns the next
        // one is told with that.
        let policy = match self.running {
            Some(_) => check_policy(&self.policy),
            None => Ok(()),
        };
        policy.and_then(|()| check_pin(&artifact, &self.policy))?;
        // Keys that were changed count for what runs as well.
        let signers = &self.loader.signers;
        let (artifact, _) = signers.verify(&self.plugin, artifact, &self.policy).await?;
        if self.current == Some(load::key(&artifact, &self.policy, &self.contributes)) {
            return Ok(Loaded::Unchanged);
        }
        if let Some(first) = self.first(version).await {
            return Ok(first);
        }
        self.check_returned(version)?;
        let (active, standing) = self.load(artifact, &self.approval).await?;
        self.gated(&active, version, shadow).await?;
        if self.is_for_some(&active, version) {
            let stable = self.reload_stable().await?;
            let new = NewCanary {
                package: to_keep,
                stable,
            };
            return Ok(Loaded::Canary(active, standing, Box::new(new)));
        }
        let to_keep = match to_keep {
            Some(package) => Some(package),
            None => self.once_more(version, &active.config).await,
        };
        if let Some(package) = to_keep {
            self.keep(package).await;
        }
        Ok(Loaded::New(active, standing))
    }

    /// How its component is unpacked.
    fn unpacking(&self) -> Unpacking {
        let usual = self.loader.engine.compile_limits();
        let limits = self.policy.limits.as_ref();
        let allowed = self.loader.bounds.limits(limits, usual);
        // What is wrong with the policy is told when it is loaded.
        let most = allowed.map(|allowed| usize::try_from(allowed.compile.component_bytes));
        let most = most.ok().and_then(Result::ok);
        Unpacking {
            findings: self.loader.findings.clone(),
            most: most.map_or(MAX_COMPONENT_BYTES, |most| most.min(MAX_COMPONENT_BYTES)),
        }
    }

    /// The ConfigMaps with all that is in them, which the watch does not keep. Parts of
    /// other generations may stay for long: they are only told of, as the watch has them.
    async fn read_maps(&self) -> Result<Vec<Arc<Object>>, Problem> {
        let mut wanted = BTreeSet::new();
        for map in &self.maps {
            if !is_part(map) {
                wanted.insert(generation(map));
            }
        }
        let (mut reads, mut others) = (Vec::new(), Vec::new());
        for map in &self.maps {
            if !is_part(map) || wanted.contains(&generation(map)) {
                reads.push(self.read_map(map).boxed());
            } else {
                others.push(map.clone());
            }
        }
        let reads = futures::stream::iter(reads).buffered(READS_AT_ONCE);
        let read: Vec<Option<Arc<Object>>> = reads.try_collect().await?;
        Ok(read.into_iter().flatten().chain(others).collect())
    }

    async fn read_map(&self, map: &Object) -> Result<Option<Arc<Object>>, Problem> {
        let (namespace, name) = (map.namespace(), map.name());
        let read = self.loader.cluster.get(map.resource(), namespace, name);
        match read.await {
            Ok(Some(read)) => Ok(Some(Arc::new(read))),
            // The watch has not told of it yet; that a part is lacking is told of anyway.
            Ok(None) if is_part(map) => Ok(None),
            Ok(None) => Err(Problem::passing(
                Reason::Syncing,
                format!("ConfigMap {name} is gone, and the watch has not told of it yet"),
            )),
            Err(error) => Err(Problem::passing(
                Reason::Unreachable,
                format!("ConfigMap {name} cannot be read: {}", chain(&error)),
            )),
        }
    }

    /// Pulls what the policy names, and says what was seen of it.
    async fn pull(
        &self,
        source: &ArtifactSource,
        seen: &mut Option<Seen>,
    ) -> Result<(Package, Turn), Problem> {
        let plugin = self.plugin.clone();
        let signed = self.loader.signers.demand(&self.policy);
        let turns = &self.loader.turns;
        let pulled = self
            .loader
            .artifacts
            .pull(&plugin, source, signed, turns)
            .await;
        let (pulled, room, stale) = pulled.inspect_err(|_| {
            *seen = Some(Seen {
                status: None,
                stale: None,
            });
        })?;
        *seen = Some(Seen {
            status: Some(pulled.status()),
            stale,
        });
        let maps = self.read_maps().await?;
        self.aside(move || {
            let maps = parse(&maps)?;
            let config = delivery::unpack_config(&plugin, &maps);
            let config =
                config.map_err(|error| Problem::lasting(error.reason(), error.to_string()))?;
            Ok((pulled.package(config), room))
        })
        .await
    }

    /// What ran before a restart, if the newest version is another: that is held against
    /// it, and goes on with the work meanwhile.
    async fn first(&self, newest: VersionId) -> Option<Loaded> {
        let good = self.last_good.filter(|good| *good != newest)?;
        if self.running.is_some() || self.gates.is_none() {
            return None;
        }
        let package = self.kept(good).await.ok()?;
        let artifact = Artifact::Delivered(package);
        match self.load(artifact, &self.approval).await {
            Ok((active, standing)) => Some(Loaded::First(active, standing)),
            Err(problem) => {
                tracing::info!(plugin = %self.plugin, %problem, "the version before the restart does not load");
                None
            }
        }
    }

    /// What too many units failed under does not run again, unless a person wants it.
    fn check_returned(&self, version: VersionId) -> Result<(), Problem> {
        match &self.returned {
            // It has taken over by now, whoever let it.
            _ if self.ran() == Some(version) => Ok(()),
            Some((token, message))
                if *token == version.token() && !self.is_approved_for_all(version) =>
            {
                Err(Problem::lasting(Reason::CanaryReturned, message.clone()))
            }
            _ => Ok(()),
        }
    }

    /// What runs for all units, or ran when the agent ended.
    fn ran(&self) -> Option<VersionId> {
        let running = self.running.as_ref();
        let running = running.map(|active| VersionId::running(active));
        running.or(self.last_good)
    }

    /// Whether a person lets a version run for all units though some failed under it. To
    /// let it do what it was held for is less.
    fn is_approved_for_all(&self, version: VersionId) -> bool {
        let approved = self.words.approved.as_deref().map(str::trim);
        approved == Some(upgrade::token_for_all(&version.token()).as_str())
    }

    /// Whether a version is to run for some units first: it takes the place of another
    /// one with the same kind of primaries, the policy wants it, and no person has let
    /// it take over.
    fn is_for_some(&self, active: &Active, version: VersionId) -> bool {
        let wanted = CanaryRules::read(&self.policy).is_ok_and(|rules| rules.is_some());
        let primary = |active: &Active| active.manifest.primary().kind.clone();
        let replaces = self.running.as_ref().is_some_and(|running| {
            VersionId::running(running) != version && primary(running) == primary(active)
        });
        // Whoever takes over whatever it does asks nobody.
        self.gates.is_some() && wanted && replaces && !self.is_approved_for_all(version)
    }

    /// What runs for the others, loaded anew if what it is loaded from has changed
    /// besides its version.
    async fn reload_stable(&self) -> Result<Option<Arc<Active>>, Problem> {
        let Some(running) = &self.running else {
            return Ok(None);
        };
        let artifact = Artifact::of(running);
        let same = load::key(&artifact, &self.policy, &self.contributes) == running.key;
        if same && self.current.is_some() {
            return Ok(None);
        }
        let approval = Approval::given();
        let policy = PluginSpec {
            // It is for the newest version.
            digest: None,
            ..self.policy.clone()
        };
        let loaded = self.loader.load(
            &self.plugin,
            artifact,
            &policy,
            &approval,
            &self.places,
            &self.contributes,
        );
        let (stable, _) = loaded.await?;
        Ok(Some(Arc::new(stable)))
    }

    /// Takes a version that could run through the gates of an upgrade, if it is one.
    async fn gated(
        &self,
        active: &Arc<Active>,
        version: VersionId,
        shadow: &mut Option<ShadowStatus>,
    ) -> Result<(), Problem> {
        let running = self.running.as_ref();
        let Some(gates) = self
            .gates
            .as_ref()
            .filter(|_| self.ran() != Some(version) && self.canary != Some(version))
        else {
            return Ok(());
        };
        let upgrade = Upgrade {
            plugin: &self.plugin,
            new: active,
            running,
            // Whoever deletes a ConfigMap and makes it anew gets around nothing.
            ran_before: self.approval.asks.is_some(),
            spec: &self.policy,
            contributes: &self.contributes,
            approved: self.words.approved.as_deref(),
        };
        let (found, result) = gates.check(&upgrade).await;
        *shadow = found;
        result
    }

    /// Loads the last good version, if there is one and nothing runs. Whatever
    /// comes of it, the problem of the newest version stays.
    async fn go_back(
        &self,
        newest: Option<VersionId>,
        mut problem: Problem,
    ) -> Result<Loaded, Problem> {
        // An API server that is away says nothing about the newest version.
        let says_nothing = matches!(problem.reason, Reason::Unreachable | Reason::Syncing);
        // What runs is not given up for an older version.
        let stays = says_nothing || self.running.is_some();
        let good = self.last_good.filter(|_| !stays);
        let Some(good) = good.filter(|good| newest != Some(*good)) else {
            return Err(problem);
        };
        let loaded = match self.kept(good).await {
            Ok(package) => {
                let artifact = Artifact::Delivered(package);
                self.load(artifact, &self.approval).await
            }
            Err(lost) => Err(back::lost_problem(lost)),
        };
        match loaded {
            Ok((active, standing)) => Ok(Loaded::InPlaceOfNewest(active, standing, problem)),
            Err(lost) => {
                let text = format!(
                    "{}; nothing runs, since the version that ran last, {}, cannot run either: {}",
                    problem.message, good.component, lost.message
                );
                problem.message = text;
                problem.retries |= lost.retries;
                Err(problem)
            }
        }
    }

    async fn load(
        &self,
        artifact: Artifact,
        approval: &Approval,
    ) -> Result<(Arc<Active>, Standing), Problem> {
        check_pin(&artifact, &self.policy)?;
        let (plugin, policy) = (&self.plugin, &self.policy);
        let (active, standing) = self
            .loader
            .load(
                plugin,
                artifact,
                policy,
                approval,
                &self.places,
                &self.contributes,
            )
            .await?;
        Ok((Arc::new(active), standing))
    }

    /// Keeps what is about to run for the next start. Not to be kept is a line in the
    /// log.
    async fn keep(&self, package: Package) {
        let engine = self.loader.engine.clone();
        let (namespace, plugin) = (self.loader.namespace.clone(), self.plugin.clone());
        let keep = move || {
            kept::keep(&engine, &namespace, &plugin, &package);
            Ok(())
        };
        let _ = self.aside(keep).await;
    }

    /// What was kept of a version.
    async fn kept(&self, wanted: VersionId) -> Result<Package, kept::Lost> {
        let engine = self.loader.engine.clone();
        let (namespace, plugin) = (self.loader.namespace.clone(), self.plugin.clone());
        // How large it is nobody knows before.
        let room = self.loader.turns.room(Purpose::Again, MAX_COMPONENT_BYTES);
        let room = room.await;
        let find = move || {
            let package = kept::kept(&engine, &namespace, &plugin, wanted)?;
            let room = Turns::fit(room, package.component.len());
            Ok(Package {
                component: holding(package.component, room),
                ..package
            })
        };
        let found = self.loader.threads.aside(find).await;
        found.unwrap_or(Err(kept::Lost::NotThere))
    }

    /// Runs what takes a while without waiting, or waits for a disk.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let done = self.loader.threads.aside(work).await;
        done.unwrap_or_else(|error| {
            let message = format!("loading was interrupted: {error}");
            Err(Problem::passing(Reason::CompileFailed, message))
        })
    }
}

fn unpack(plugin: &str, maps: &[Arc<Object>], how: &Unpacking) -> Result<Package, Problem> {
    delivery::unpack_as(plugin, &parse(maps)?, how)
        .map_err(|error| Problem::lasting(error.reason(), error.to_string()))
}

fn parse(maps: &[Arc<Object>]) -> Result<Vec<ConfigMap>, Problem> {
    let parse = |map: &Arc<Object>| {
        serde_json::from_str::<ConfigMap>(map.json()).map_err(|error| {
            let message = format!("ConfigMap {} cannot be read: {error}", map.name());
            Problem::lasting(Reason::ComponentAbsent, message)
        })
    };
    maps.iter().map(parse).collect()
}
