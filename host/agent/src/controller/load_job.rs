//! One load: of the newest version or, where that is refused and nothing runs, of
//! the last good one.

use super::{Done, Loaded};
use crate::active::{Active, LoadKey};
use crate::approval::{Approval, check_pin};
use crate::delivery::{self, Package};
use crate::kept::{self, LastGood};
use crate::left::Place;
use crate::load::{self, Loader, Standing};
use crate::problem::Problem;
use k8s_openapi::api::core::v1::ConfigMap;
use reeve_api::{PluginSpec, Reason};
use reeve_cluster::Object;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a load starts from.
pub(super) struct Load {
    pub(super) loader: Loader,
    pub(super) plugin: Arc<str>,
    /// The plugin's ConfigMap, and what its component is made of.
    pub(super) maps: Vec<Arc<Object>>,
    pub(super) policy: PluginSpec,
    /// What a version may ask for.
    pub(super) approval: Approval,
    /// What runs, if loading the same again would give the same.
    pub(super) current: Option<LoadKey>,
    /// What to go back to if the newest version does not load.
    pub(super) last_good: Option<LastGood>,
    /// Where the plugin may have objects.
    pub(super) places: BTreeSet<Place>,
    /// Kinds to whose objects it contributes.
    pub(super) contributes: BTreeSet<String>,
}

impl Load {
    /// Takes a package through all gates, which takes as long as compiling does.
    pub(super) async fn run(self) -> Done {
        let (newest, result) = self.newest().await;
        let result = match result {
            Err(problem) => self.go_back(newest.as_ref(), problem).await,
            loaded => loaded,
        };
        Done::Load {
            plugin: self.plugin,
            newest: newest.map(|package| package.digest),
            result,
        }
    }

    /// Loads what the ConfigMaps have.
    async fn newest(&self) -> (Option<Package>, Result<Loaded, Problem>) {
        let (maps, plugin) = (self.maps.clone(), self.plugin.clone());
        let package = match blocking(move || unpack(&plugin, &maps)).await {
            Ok(package) => package,
            Err(problem) => return (None, Err(problem)),
        };
        if let Err(problem) = check_pin(&package, &self.policy) {
            return (Some(package), Err(problem));
        }
        if self.current == Some(load::key(&package, &self.policy, &self.contributes)) {
            return (Some(package), Ok(Loaded::Unchanged));
        }
        let loaded = self.load(package.clone()).await;
        if loaded.is_ok() {
            let (engine, package) = (self.loader.engine.clone(), package.clone());
            let (namespace, plugin) = (self.loader.namespace.clone(), self.plugin.clone());
            let keep = move || {
                kept::keep(&engine, &namespace, &plugin, &package);
                Ok(())
            };
            // Not to be kept is a line in the log.
            let _ = blocking(keep).await;
        }
        let loaded = loaded.map(|(active, standing)| Loaded::New(Box::new(active), standing));
        (Some(package), loaded)
    }

    /// Loads the last good version, if there is one and nothing runs. Whatever
    /// comes of it, the problem of the newest version stays.
    async fn go_back(
        &self,
        newest: Option<&Package>,
        mut problem: Problem,
    ) -> Result<Loaded, Problem> {
        // An API server that is away says nothing about the newest version.
        let says_nothing = matches!(problem.reason, Reason::Unreachable | Reason::Syncing);
        let good = self.last_good.filter(|_| !says_nothing);
        let Some(good) = good.filter(|good| newest.map(LastGood::of) != Some(*good)) else {
            return Err(problem);
        };
        let engine = self.loader.engine.clone();
        let (namespace, plugin) = (self.loader.namespace.clone(), self.plugin.clone());
        let find = move || {
            let found = kept::kept(&engine, &namespace, &plugin, good);
            found.map_err(|lost| Problem::lasting(Reason::ComponentAbsent, lost.to_string()))
        };
        let loaded = match blocking(find).await {
            Ok(package) => self.load(package).await,
            Err(lost) => Err(lost),
        };
        match loaded {
            Ok((active, standing)) => Ok(Loaded::LastGood(Box::new(active), standing, problem)),
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

    async fn load(&self, package: Package) -> Result<(Active, Standing), Problem> {
        check_pin(&package, &self.policy)?;
        let (plugin, policy) = (&self.plugin, &self.policy);
        self.loader
            .load(
                plugin,
                package,
                policy,
                &self.approval,
                &self.places,
                &self.contributes,
            )
            .await
    }
}

/// Runs what takes a while without waiting, or waits for a disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        let message = format!("loading was interrupted: {error}");
        Err(Problem::passing(Reason::CompileFailed, message))
    })
}

fn unpack(plugin: &str, maps: &[Arc<Object>]) -> Result<Package, Problem> {
    let parse = |map: &Arc<Object>| {
        serde_json::from_str::<ConfigMap>(map.json()).map_err(|error| {
            let message = format!("ConfigMap {} cannot be read: {error}", map.name());
            Problem::lasting(Reason::ComponentAbsent, message)
        })
    };
    let maps: Vec<ConfigMap> = maps.iter().map(parse).collect::<Result<_, _>>()?;
    delivery::unpack(plugin, &maps)
        .map_err(|error| Problem::lasting(error.reason(), error.to_string()))
}
