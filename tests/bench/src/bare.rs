//! The bare loop: what is left of the agent's work without the agent. It watches
//! what it is told to and sends applies that were computed beforehand, as the same
//! accounts and at the same concurrency.

mod plain;
mod process;

pub(crate) use process::{ARGUMENT, BareProcess, serve};

use crate::process::client;
use crate::setup::spread;
use crate::world::{Wanted, Watched, api_resource};
use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher;
use plain::Plain;
use reeve_cluster::{Cluster, Store, WatchHandle, WatchScope, WatchSpec};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Events of objects that have been applied come within moments.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a bare loop does.
#[derive(Clone)]
pub(crate) struct BareLoop {
    /// What it watches, and has seen all of before it sends.
    pub(crate) watches: Vec<Watched>,
    pub(crate) follow: Follow,
    /// What it sends.
    pub(crate) applies: Arc<[Wanted]>,
}

/// How objects are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// As controllers commonly do, with kube and nothing else: each object that a watch or an
    /// apply tells of is decoded, whole.
    Decode,
    /// As the agent does: objects are kept as they come, unread.
    Keep,
}

/// What sends.
#[derive(Clone)]
enum Sender {
    /// As the agent does.
    Lean(Cluster),
    Plain(Plain),
}

/// Watches that go on for as long as it lives.
pub(crate) enum Following {
    Decoding(Decoding),
    Keeping(Vec<WatchHandle>),
}

/// Watches of [`Follow::Decode`].
pub(crate) struct Decoding {
    tasks: JoinSet<Result<()>>,
    seen: watch::Receiver<Seen>,
}

/// What has been seen by all watches together.
#[derive(Default)]
struct Seen {
    lists: usize,
    events: usize,
}

impl BareLoop {
    /// Does all of it; watches that decode have then seen what was sent.
    pub(crate) async fn run(&self, client: kube::Client) -> Result<Following> {
        let sender = Sender::Lean(Cluster::new(client.clone()));
        self.run_by(client, sender).await
    }

    /// The same in a cluster that others made, as its users: with kube alone, where it decodes.
    pub(crate) async fn run_in(&self, kubeconfig: &Path) -> Result<Following> {
        match self.follow {
            Follow::Keep => self.run(client(kubeconfig).await?).await,
            Follow::Decode => {
                let plain = Plain::connect(kubeconfig, &self.applies).await?;
                self.run_by(plain.client().clone(), Sender::Plain(plain))
                    .await
            }
        }
    }

    async fn run_by(&self, client: kube::Client, sender: Sender) -> Result<Following> {
        let mut following = match self.follow {
            Follow::Decode => Following::Decoding(self.decode(&client)),
            Follow::Keep => Following::Keeping(self.keep(&Cluster::new(client))),
        };
        following.synced(self.watches.len()).await?;
        let shared = (sender, self.applies.clone());
        let send = move |(sender, applies): (Sender, Arc<[Wanted]>), number: usize| async move {
            match sender {
                Sender::Lean(cluster) => applies[number].send(&cluster).await,
                Sender::Plain(plain) => plain.send(&applies[number]).await,
            }
        };
        spread(self.applies.len(), shared, send).await?;
        if let Following::Decoding(decoding) = &mut following {
            let events = self.applies.len();
            let seen = decoding.until(|seen| seen.events >= events);
            let seen = tokio::time::timeout(PATIENCE, seen).await;
            seen.context("watches lack events of what was applied")??;
        }
        Ok(following)
    }

    fn keep(&self, cluster: &Cluster) -> Vec<WatchHandle> {
        let (store, _) = Store::new(cluster.clone());
        let watches = self.watches.iter().map(|watched| {
            store.watch(WatchSpec {
                resource: watched.resource.clone(),
                scope: WatchScope::All,
                selector: watched.selector.clone(),
                without_payload: false,
            })
        });
        watches.collect()
    }

    fn decode(&self, client: &kube::Client) -> Decoding {
        let (sender, seen) = watch::channel(Seen::default());
        let mut tasks = JoinSet::new();
        for watched in &self.watches {
            let resource = api_resource(&watched.resource);
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            let config = watcher::Config::default().labels(&watched.selector.to_string());
            tasks.spawn(follow(api, config, sender.clone()));
        }
        Decoding { tasks, seen }
    }
}

impl Following {
    async fn synced(&mut self, watches: usize) -> Result<()> {
        match self {
            Self::Decoding(decoding) => decoding.until(|seen| seen.lists >= watches).await,
            Self::Keeping(handles) => {
                for handle in handles {
                    handle.synced().await;
                }
                Ok(())
            }
        }
    }
}

impl Decoding {
    async fn until(&mut self, enough: impl FnMut(&Seen) -> bool) -> Result<()> {
        tokio::select! {
            seen = self.seen.wait_for(enough) => seen.map(drop).context("no watch is left"),
            Some(ended) = self.tasks.join_next() => ended?,
        }
    }
}

/// Decodes objects and lets go of them.
async fn follow(
    api: Api<DynamicObject>,
    config: watcher::Config,
    seen: watch::Sender<Seen>,
) -> Result<()> {
    let mut events = watcher(api, config).boxed();
    while let Some(event) = events.next().await {
        match event? {
            watcher::Event::InitDone => seen.send_modify(|seen| seen.lists += 1),
            watcher::Event::Apply(_) => seen.send_modify(|seen| seen.events += 1),
            _ => {}
        }
    }
    bail!("a watch has ended")
}
