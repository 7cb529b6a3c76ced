//! The embedded API server: how fast it applies beside a real one, what its objects
//! weigh, how soon it answers.

use crate::figure::{Figures, median};
use crate::process::{ClusterProcess, client, cpu_of, cpu_of_all};
use crate::setup::spread;
use crate::world::list;
use anyhow::{Context as _, Result, ensure};
use kube::api::{Api, ListParams, PostParams};
use reeve_agent::AgentConfig;
use reeve_cluster::{Apply, Cluster, Preconditions, Resource};
use reeve_core::GroupVersionKind;
use reeve_real::ControlPlane;
use reeve_sim::{Config, Server};
use reeve_test_support::samples;
use serde_json::{Value, json};
use std::time::Instant;

/// Each is applied twice: made, and changed.
const APPLIED: usize = 1_000;
const ROUNDS: usize = 5;
const HELD: usize = 100_000;
const STARTS: usize = 9;
const NAMESPACE: &str = "bench";
/// What a typical object weighs before the server adds to it.
const BODY: usize = 1_200;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    applies(figures).await?;
    memory(figures).await?;
    starts(figures).await
}

/// The same applies, at the concurrency of the agent, in turns.
async fn applies(figures: &mut Figures) -> Result<()> {
    let started = tokio::task::spawn_blocking(|| ControlPlane::builder().controllers([]).start());
    let control_plane = started.await??;
    let real = Cluster::new(client(&control_plane.kubeconfig()).await?);
    let server = Server::new(Config::default());
    let embedded = Cluster::new(server.client());
    let served = ClusterProcess::start()?;
    let socket = Cluster::new(served.client().await?);
    for cluster in [&real, &embedded, &socket] {
        apply(cluster, &namespaces(), None, &samples::namespace(NAMESPACE)).await?;
    }
    let mut rates = [const { Vec::new() }; 3];
    let mut ratios = [const { Vec::new() }; 3];
    for round in 0..=ROUNDS {
        let (mut rate, mut cost) = ([0.0; 3], [0.0; 3]);
        let clusters = [&real, &embedded, &socket];
        for (cluster, (rate, cost)) in clusters.into_iter().zip(rate.iter_mut().zip(&mut cost)) {
            let before = used_by_others()?;
            *rate = applies_per_second(cluster, round).await?;
            *cost = used_by_others()? - before;
        }
        // The first round warms all of them up.
        if round > 0 {
            ratios[0].push(rate[1] / rate[0]);
            ratios[1].push(rate[2] / rate[0]);
            ratios[2].push(cost[0] / cost[2]);
            for (all, rate) in rates.iter_mut().zip(rate) {
                all.push(rate);
            }
        }
    }
    let [mut real, mut embedded, mut socket] = rates;
    let concurrency = AgentConfig::CONCURRENCY;
    let what = format!("kube-apiserver, applies at once: {concurrency}, median");
    figures.plain(&what, median(&mut real), "/s");
    let what = format!("embedded, applies at once: {concurrency}, median");
    figures.plain(&what, median(&mut embedded), "/s");
    let what = format!("embedded on a socket, applies at once: {concurrency}, median");
    figures.plain(&what, median(&mut socket), "/s");
    let [mut inside, mut outside, mut cost] = ratios;
    let what = "embedded / kube-apiserver, applies a second, median";
    figures.at_least(what, median(&mut inside), "", 10.0);
    // Both over TLS, each in a process of its own. There the client takes more of the same
    // processors than the server, so that ten times is for what the servers take themselves,
    // which includes whatever else the machine does meanwhile.
    let what = "embedded on a socket / kube-apiserver, applies a second, median";
    figures.at_least(what, median(&mut outside), "", 4.0);
    let what =
        "embedded on a socket / kube-apiserver and etcd, applies for a second of CPU, median";
    figures.at_least(what, median(&mut cost), "", 10.0);
    tokio::task::spawn_blocking(move || drop(control_plane)).await?;
    Ok(())
}

/// Seconds of CPU that everything but this process has used so far.
fn used_by_others() -> Result<f64> {
    Ok(cpu_of_all()? - cpu_of(std::process::id())?)
}

async fn applies_per_second(cluster: &Cluster, round: usize) -> Result<f64> {
    let begun = Instant::now();
    for change in ["made", "changed"] {
        spread(
            APPLIED,
            cluster.clone(),
            move |cluster, number| async move {
                let name = format!("applied-{round}-{number}");
                let object = config_map(&name, change);
                apply(&cluster, &config_maps(), Some(NAMESPACE), &object).await
            },
        )
        .await?;
    }
    // Counts fit a float exactly.
    Ok(2.0 * APPLIED as f64 / begun.elapsed().as_secs_f64())
}

/// Objects of about 1.5 KB, as they are stored and served.
async fn memory(figures: &mut Figures) -> Result<()> {
    let served = ClusterProcess::start()?;
    let client = served.client().await?;
    let cluster = Cluster::new(client.clone());
    apply(
        &cluster,
        &namespaces(),
        None,
        &samples::namespace(NAMESPACE),
    )
    .await?;
    let before = served.process().resident()?;
    spread(HELD, client.clone(), move |client, number| async move {
        let object = serde_json::from_value(config_map(&format!("held-{number:06}"), "made"))?;
        let api: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(client, NAMESPACE);
        api.create(&PostParams::default(), &object).await?;
        Ok(())
    })
    .await?;
    let resident = served.process().resident()? - before;
    let resource = config_maps();
    let listed = list(&client, &resource, Some(NAMESPACE), ListParams::default()).await?;
    let (objects, json) = (listed.objects, listed.bytes as f64);
    ensure!(objects >= HELD, "{objects} of {HELD} objects are there");
    figures.plain(
        &format!("JSON of {HELD} objects, each"),
        json / HELD as f64,
        "B",
    );
    figures.limited(
        "embedded, resident / JSON of its objects",
        resident / json,
        "",
        1.5,
    );
    Ok(())
}

async fn starts(figures: &mut Figures) -> Result<()> {
    let (mut inside, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let begun = Instant::now();
        let server = Server::new(Config::default());
        server.client().apiserver_version().await?;
        inside.push(begun.elapsed().as_secs_f64() * 1e3);
        let begun = Instant::now();
        let served = ClusterProcess::start()?;
        served.client().await?.apiserver_version().await?;
        alone.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let what = "embedded, start to first answer, in a process, median";
    figures.limited(what, median(&mut inside), "ms", 20.0);
    let what = "reeve cluster, start to first answer, median";
    figures.limited(what, median(&mut alone), "ms", 20.0);
    Ok(())
}

async fn apply(
    cluster: &Cluster,
    resource: &Resource,
    namespace: Option<&str>,
    object: &Value,
) -> Result<()> {
    let name = object["metadata"]["name"].as_str().context("name")?;
    cluster
        .apply(Apply {
            resource,
            namespace,
            name,
            body: object.into(),
            onto: Preconditions::default(),
            manager: "bench",
            force: true,
            strict: true,
            dry_run: false,
            identity: None,
        })
        .await?;
    Ok(())
}

fn config_map(name: &str, change: &str) -> Value {
    let mut data = serde_json::Map::new();
    data.insert("change".to_owned(), json!(change));
    let mut size = 0;
    while size < BODY {
        let (key, value) = (format!("key-{}", data.len()), "a value ".repeat(8));
        size += key.len() + value.len();
        data.insert(key, json!(value));
    }
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "bench"}},
        "data": data,
    })
}

fn config_maps() -> Resource {
    resource("ConfigMap", "configmaps", true)
}

fn namespaces() -> Resource {
    resource("Namespace", "namespaces", false)
}

fn resource(kind: &str, plural: &str, namespaced: bool) -> Resource {
    Resource {
        kind: GroupVersionKind::new("", "v1", kind),
        plural: plural.into(),
        namespaced,
    }
}
