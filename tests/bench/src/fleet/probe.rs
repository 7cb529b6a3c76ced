//! Changes of a Profile, one at a time, and when what they lead to is seen.

use crate::world::{Wanted, World, api_resource, profile_name};
use anyhow::{Context as _, Result, bail};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::core::ApiResource;
use reeve_core::GroupVersionKind;
use serde_json::json;
use std::time::{Duration, Instant};

/// The label that changes, and the limit that the plugin `quotas` makes of it.
const LABEL: &str = "quotas.statcan.gc.ca/requests.cpu";
const LIMIT: &str = "requests.cpu";
/// Above what the plugin gives without the label: each change makes a difference.
const FIRST: usize = 100;
/// Longer than any change takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// Just below what kube refuses.
const WATCH_SECONDS: u32 = 290;

/// Changes Profiles, and watches them and their quotas as anybody would.
pub(super) struct Probe {
    world: World,
    profiles: Api<DynamicObject>,
    quotas: Api<DynamicObject>,
    resource: ApiResource,
    profile_events: Events,
    quota_events: Events,
    /// Makes each value a new one.
    count: usize,
}

type Events = BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>>;

/// When what a change led to was seen, from when it was sent.
pub(super) struct Seen {
    /// The change itself.
    pub(super) event: Duration,
    /// What the agent wrote in answer.
    pub(super) write: Duration,
}

impl Probe {
    /// Of a world with the plugin `quotas`.
    pub(super) async fn open(world: World) -> Result<Self> {
        let client = world.client();
        let resource = api_resource(&world.primaries().await?.resource);
        let profiles: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let quota = GroupVersionKind::new("", "v1", "ResourceQuota");
        let resource = api_resource(&world.admin().resolve(&quota).await?);
        let quotas: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        Ok(Self {
            profile_events: follow(&profiles).await?,
            quota_events: follow(&quotas).await?,
            profiles,
            quotas,
            resource,
            world,
            count: FIRST,
        })
    }

    /// Listens anew, which is needed every few minutes: watches end.
    pub(super) async fn listen(&mut self) -> Result<()> {
        self.profile_events = follow(&self.profiles).await?;
        self.quota_events = follow(&self.quotas).await?;
        Ok(())
    }

    /// The world that is changed.
    pub(super) fn world(&self) -> &World {
        &self.world
    }

    /// Changes a Profile, another one each time as far as there are others.
    pub(super) async fn change(&mut self) -> Result<Seen> {
        self.count += 1;
        let name = profile_name(self.count % self.world.profiles());
        let value = amount(self.count);
        let patch = Patch::Merge(json!({"metadata": {"labels": {LABEL: value}}}));
        let params = PatchParams::default();
        let begun = Instant::now();
        let (sent, event, write) = tokio::join!(
            self.profiles.patch(&name, &params, &patch),
            next(&mut self.profile_events, |profile| {
                profile.metadata.name.as_deref() == Some(&name)
            }),
            next(&mut self.quota_events, |quota| {
                quota.metadata.namespace.as_deref() == Some(&name)
                    && quota.data["spec"]["hard"][LIMIT] == *value
            }),
        );
        sent?;
        Ok(Seen {
            event: event?.duration_since(begun),
            write: write?.duration_since(begun),
        })
    }

    /// Changes what the agent has written, another object each time as far as there are
    /// others, and returns for how long that is seen.
    pub(super) async fn drift(&mut self) -> Result<Duration> {
        self.count += 1;
        let namespace = profile_name(self.count % self.world.profiles());
        let quotas: Api<DynamicObject> =
            Api::namespaced_with(self.world.client().clone(), &namespace, &self.resource);
        let owned = quotas.list(&ListParams::default()).await?.items;
        let name = owned.first().and_then(|quota| quota.metadata.name.clone());
        let name = name.context("no quota")?;
        let value = amount(self.count);
        let patch = Patch::Merge(json!({"spec": {"hard": {LIMIT: value}}}));
        let params = PatchParams::default();
        let events = &mut self.quota_events;
        let is_theirs = |quota: &DynamicObject, theirs: bool| {
            quota.metadata.namespace.as_deref() == Some(&namespace)
                && (quota.data["spec"]["hard"][LIMIT] == *value) == theirs
        };
        let (sent, stood) = tokio::join!(quotas.patch(&name, &params, &patch), async {
            let drifted = next(events, |quota| is_theirs(quota, true)).await?;
            let repaired = next(events, |quota| is_theirs(quota, false)).await?;
            anyhow::Ok(repaired.duration_since(drifted))
        });
        sent?;
        stood
    }

    /// Sends one apply as the agent would, to an object that is not the agent's, and
    /// returns when it was seen.
    pub(super) async fn apply(&mut self, quota: &mut Wanted) -> Result<Duration> {
        self.count += 1;
        let value = amount(self.count);
        quota.body["spec"]["hard"][LIMIT] = json!(value);
        let reference = &quota.reference;
        let begun = Instant::now();
        let (sent, seen) = tokio::join!(
            quota.send(self.world.admin()),
            next(&mut self.quota_events, |seen| {
                seen.metadata.namespace == reference.namespace
                    && seen.metadata.name.as_ref() == Some(&reference.name)
                    && seen.data["spec"]["hard"][LIMIT] == *value
            }),
        );
        sent?;
        Ok(seen?.duration_since(begun))
    }
}

/// An amount that the API server writes as it is: one of thousands would get a `k`.
fn amount(count: usize) -> String {
    format!("{count}1")
}

/// Events from now on.
async fn follow(api: &Api<DynamicObject>) -> Result<Events> {
    let now = api.list(&ListParams::default().limit(1)).await?;
    let version = now.metadata.resource_version.context("no version")?;
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    Ok(api.watch(&params, &version).await?.boxed())
}

/// When the next event came that is meant.
async fn next(events: &mut Events, meant: impl Fn(&DynamicObject) -> bool) -> Result<Instant> {
    let come = async {
        loop {
            match events.try_next().await? {
                Some(WatchEvent::Added(object) | WatchEvent::Modified(object))
                    if meant(&object) =>
                {
                    return Ok(Instant::now());
                }
                Some(WatchEvent::Error(status)) => bail!("a watch fails: {}", status.message),
                Some(_) => {}
                None => bail!("a watch has ended"),
            }
        }
    };
    let come = tokio::time::timeout(PATIENCE, come).await;
    come.context("a change is not answered")?
}
