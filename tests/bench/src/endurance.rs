//! A hundred clients at the embedded API server for ten minutes, at what clients do all
//! the time: nothing grows.

use crate::figure::{Figures, median};
use crate::process::{ClusterProcess, client};
use crate::scale::scaled;
use anyhow::{Context as _, Result, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::ResourceExt as _;
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use reeve_test_support::samples;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const CLIENTS: usize = 100;
/// In seconds.
const LASTS: usize = 600;
/// How often its memory is looked at.
const PAUSE: Duration = Duration::from_secs(2);
/// No event takes so long, or it is lost.
const LOST: Duration = Duration::from_secs(60);

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    reeve_sim::allow_many_connections();
    let server = ClusterProcess::start()?;
    let kubeconfig = server.kubeconfig();
    let lasts = Duration::from_secs(u64::try_from(scaled(LASTS)?)?);
    let (rounds, begun) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        clients.spawn(live(
            kubeconfig.clone(),
            number,
            begun + lasts,
            rounds.clone(),
        ));
    }
    let mut resident = Vec::new();
    while begun.elapsed() < lasts {
        tokio::time::sleep(PAUSE).await;
        resident.push(server.process().resident()?);
        while let Some(ended) = clients.try_join_next() {
            ended??;
        }
    }
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    let rounds = rounds.load(Ordering::Relaxed);
    ensure!(rounds > 0, "no client has come round once");
    // What it remembers of the past is full by then.
    let half = resident.split_off(resident.len() / 2);
    let (third, last) = half.split_at(half.len() / 2);
    let (third, last) = (median(&mut third.to_vec()), median(&mut last.to_vec()));
    let what = format!("{CLIENTS} clients, lives of an object, each of 7 requests");
    // A count fits a float exactly.
    figures.plain(&what, rounds as f64, "");
    let mebibytes = last / 1024.0 / 1024.0;
    figures.plain("embedded, resident in the last quarter", mebibytes, "MiB");
    let what = "embedded, resident, last quarter / the one before";
    figures.limited(what, last / third, "", 1.05);
    Ok(())
}

/// One client: objects are made, read, changed, listed, watched and deleted, in a namespace
/// of its own.
async fn live(
    kubeconfig: PathBuf,
    number: usize,
    until: Instant,
    rounds: Arc<AtomicU64>,
) -> Result<()> {
    let client = client(&kubeconfig).await?;
    let name = format!("client-{number}");
    let namespace: Namespace = serde_json::from_value(samples::namespace(&name))?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await?;
    let api: Api<ConfigMap> = Api::namespaced(client, &name);
    let mut round = 0_u64;
    while Instant::now() < until {
        round += 1;
        let name = format!("object-{}", round % 10);
        life(&api, &name, round)
            .await
            .with_context(|| format!("client {number}, round {round}"))?;
        rounds.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Seven requests.
async fn life(api: &Api<ConfigMap>, name: &str, round: u64) -> Result<()> {
    let data = json!({"round": round.to_string(), "text": "a value ".repeat(100)});
    let object = json!({"metadata": {"name": name, "labels": {"app": "bench"}}, "data": data});
    let made = api
        .create(&PostParams::default(), &serde_json::from_value(object)?)
        .await?;
    let version = made.resource_version().context("no version")?;
    ensure!(api.get(name).await?.resource_version() == Some(version.clone()));
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"applied": round.to_string()},
    });
    let params = PatchParams::apply("bench");
    api.patch(name, &params, &Patch::Apply(&applied)).await?;
    let merged = json!({"metadata": {"annotations": {"round": round.to_string()}}});
    let params = PatchParams::default();
    api.patch(name, &params, &Patch::Merge(&merged)).await?;
    let listed = api.list(&ListParams::default().labels("app=bench")).await?;
    ensure!(listed.items.len() == 1, "{} objects", listed.items.len());
    // Both changes are in the past, and seen in their order. The certificate of a new
    // namespace, which may come after that, is no object of ours.
    let params = WatchParams::default().labels("app=bench");
    let watch = api.watch(&params, &version).await?;
    let mut watch = Box::pin(watch);
    for _ in 0..2 {
        let event = tokio::time::timeout(LOST, watch.try_next()).await??;
        ensure!(
            matches!(&event, Some(WatchEvent::Modified(seen)) if seen.name_any() == name),
            "{event:?}"
        );
    }
    api.delete(name, &DeleteParams::default()).await?;
    Ok(())
}
