//! Readers of the embedded API server beside those of a real one, both on sockets: a list
//! of everything in pages, and an event to a thousand watchers.

use crate::figure::{Figures, median};
use crate::process::{ClusterProcess, client};
use crate::scale::scaled;
use crate::setup::{control_plane, spread};
use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};
use reeve_test_support::samples;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const NAMESPACE: &str = "bench";
const LISTED: usize = 100_000;
/// As kubectl asks for them.
const PAGE: u32 = 500;
const LISTS: usize = 5;
const WATCHERS: usize = 1_000;
const EVENTS: usize = 21;
/// Clients, among which the watchers are spread, as those of many programs are: what one
/// client has open at once over one connection is limited on either server.
const CLIENTS: usize = 20;
/// No event takes so long, or it is lost.
const LOST: Duration = Duration::from_secs(60);

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    reeve_sim::allow_many_connections();
    let control_plane = control_plane(false).await?;
    let embedded = ClusterProcess::start()?;
    let servers = [control_plane.kubeconfig(), embedded.kubeconfig()];
    for kubeconfig in &servers {
        fill(&client(kubeconfig).await?).await?;
    }
    lists(&servers, figures).await?;
    events(&servers, figures).await?;
    tokio::task::spawn_blocking(move || drop(control_plane)).await?;
    Ok(())
}

async fn fill(client: &Client) -> Result<()> {
    let namespace: Namespace = serde_json::from_value(samples::namespace(NAMESPACE))?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await?;
    spread(
        scaled(LISTED)?,
        client.clone(),
        |client, number| async move {
            let object = serde_json::from_value(object(&format!("listed-{number:06}")))?;
            let api: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
            api.create(&PostParams::default(), &object).await?;
            Ok(())
        },
    )
    .await
}

fn object(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "data": {"one": "a value ".repeat(20), "other": "a value ".repeat(20)},
    })
}

/// In turns, all pages one after the other.
async fn lists(servers: &[impl AsRef<Path>; 2], figures: &mut Figures) -> Result<()> {
    let count = scaled(LISTED)?;
    let (mut times, mut ratios) = ([const { Vec::new() }; 2], Vec::new());
    // The first round warms both up.
    for round in 0..=LISTS {
        let mut taken = [0.0; 2];
        for (server, taken) in servers.iter().zip(&mut taken) {
            *taken = list(&client(server.as_ref()).await?, count).await?;
        }
        if round > 0 {
            ratios.push(taken[1] / taken[0]);
            for (all, taken) in times.iter_mut().zip(taken) {
                all.push(taken);
            }
        }
    }
    let [mut real, mut embedded] = times;
    let what = format!("kube-apiserver, list of {count} by {PAGE}, median");
    figures.plain(&what, median(&mut real), "s");
    let what = format!("embedded, list of {count} by {PAGE}, median");
    figures.plain(&what, median(&mut embedded), "s");
    let what = format!("embedded / kube-apiserver, list of {count}, median");
    figures.limited(&what, median(&mut ratios), "", 1.0);
    Ok(())
}

/// How many seconds it takes to get all; what they are is not looked at.
async fn list(client: &Client, count: usize) -> Result<f64> {
    const PATH: &str = "/api/v1/namespaces/bench/configmaps";
    let begun = Instant::now();
    let mut params = ListParams::default().limit(PAGE);
    let mut pages = 0;
    loop {
        let request = kube::core::Request::new(PATH).list(&params)?;
        let page = client.request_text(request).await?;
        pages += 1;
        match token(&page)? {
            Some(token) => params.continue_token = Some(token),
            None => break,
        }
    }
    let taken = begun.elapsed().as_secs_f64();
    ensure!(
        pages * PAGE as usize >= count,
        "{pages} pages of {PAGE} are not all"
    );
    Ok(taken)
}

/// Where the next page begins.
fn token(page: &str) -> Result<Option<String>> {
    // The metadata of a list comes before its items, on both servers.
    let (head, _) = page.split_once("\"items\"").context("no list")?;
    let Some((_, rest)) = head.split_once("\"continue\":\"") else {
        return Ok(None);
    };
    let (token, _) = rest.split_once('"').context("no end of the token")?;
    Ok((!token.is_empty()).then(|| token.to_owned()))
}

/// From a write to the last of all watchers that sees it, in turns.
async fn events(servers: &[impl AsRef<Path>; 2], figures: &mut Figures) -> Result<()> {
    let count = scaled(WATCHERS / CLIENTS)? * CLIENTS;
    let mut crowds = Vec::new();
    for server in servers {
        crowds.push(Crowd::gather(server.as_ref(), count).await?);
    }
    let (mut times, mut ratios) = ([const { Vec::new() }; 2], Vec::new());
    for round in 0..=EVENTS {
        let mut taken = [0.0; 2];
        for (crowd, taken) in crowds.iter_mut().zip(&mut taken) {
            *taken = crowd.tell(round).await?;
        }
        if round > 0 {
            ratios.push(taken[1] / taken[0]);
            for (all, taken) in times.iter_mut().zip(taken) {
                all.push(taken * 1e3);
            }
        }
    }
    let [mut real, mut embedded] = times;
    let what = format!("kube-apiserver, a write to {count} watchers, median");
    figures.plain(&what, median(&mut real), "ms");
    let what = format!("embedded, a write to {count} watchers, median");
    figures.plain(&what, median(&mut embedded), "ms");
    let what = format!("embedded / kube-apiserver, a write to {count} watchers, median");
    figures.limited(&what, median(&mut ratios), "", 1.0);
    Ok(())
}

/// Watchers of one server.
struct Crowd {
    /// How many they are.
    size: usize,
    api: Api<ConfigMap>,
    /// The version of each object that one of them has seen.
    seen: mpsc::UnboundedReceiver<String>,
    _watches: JoinSet<Result<()>>,
}

impl Crowd {
    async fn gather(kubeconfig: &Path, size: usize) -> Result<Self> {
        let (said, seen) = mpsc::unbounded_channel();
        let mut watches = JoinSet::new();
        let api: Api<ConfigMap> = Api::namespaced(client(kubeconfig).await?, NAMESPACE);
        let first = api.list(&ListParams::default().limit(1)).await?;
        let version = first.metadata.resource_version.context("no version")?;
        for _ in 0..CLIENTS {
            let api: Api<ConfigMap> = Api::namespaced(client(kubeconfig).await?, NAMESPACE);
            for _ in 0..size / CLIENTS {
                let params = WatchParams::default().labels("told=yes");
                let watch = api.watch(&params, &version).await?.boxed();
                let said = said.clone();
                watches.spawn(watched(watch, said));
            }
        }
        Ok(Self {
            size,
            api,
            seen,
            _watches: watches,
        })
    }

    /// Writes, and waits until all have seen it. Returns the seconds.
    async fn tell(&mut self, round: usize) -> Result<f64> {
        let mut object = object("told");
        object["apiVersion"] = json!("v1");
        object["kind"] = json!("ConfigMap");
        object["metadata"]["labels"]["told"] = json!("yes");
        object["data"]["round"] = json!(round.to_string());
        let params = PatchParams::apply("bench").force();
        let begun = Instant::now();
        let patch = Patch::Apply(&object);
        let written = self.api.patch("told", &params, &patch);
        let version = written.await?.resource_version();
        let mut count = 0;
        while count < self.size {
            let next = tokio::time::timeout(LOST, self.seen.recv()).await;
            let next =
                next.with_context(|| format!("{count} of {} saw round {round}", self.size))?;
            count += usize::from(next == version);
        }
        Ok(begun.elapsed().as_secs_f64())
    }
}

async fn watched(
    mut watch: futures::stream::BoxStream<'static, kube::Result<WatchEvent<ConfigMap>>>,
    said: mpsc::UnboundedSender<String>,
) -> Result<()> {
    while let Some(event) = watch.try_next().await? {
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
            said.send(object.resource_version().unwrap_or_default())?;
        }
    }
    Ok(())
}
