//! kube-rs: watchers and reflectors, with lists and with streaming lists.

use std::fmt::Debug;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, Patch, PatchParams, PostParams, VersionMatch};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Config, ResourceExt as _};
use reeve_real::{ControlPlane, EmbeddedCluster};
use serde_json::json;
use tokio::time::timeout;

/// No event takes nearly as long.
const PATIENCE: Duration = Duration::from_secs(30);

async fn client(kubeconfig: &Path) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

fn object(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some(name.to_owned()),
            ..Default::default()
        },
        ..Default::default()
    }
}

/// The next event in a word.
async fn next<S, E>(events: &mut S) -> Result<String>
where
    S: Stream<Item = Result<Event<ConfigMap>, E>> + Unpin,
    E: Debug,
{
    let event = timeout(PATIENCE, events.next()).await?;
    Ok(match event.context("the watch is over")? {
        Ok(Event::Init) => "init".to_owned(),
        Ok(Event::InitApply(object)) => format!("init {}", object.name_any()),
        Ok(Event::InitDone) => "done".to_owned(),
        Ok(Event::Apply(object)) => format!(
            "apply {} {}",
            object.name_any(),
            object.data.unwrap_or_default().len()
        ),
        Ok(Event::Delete(object)) => format!("delete {}", object.name_any()),
        Err(error) => bail!("{error:?}"),
    })
}

/// What a watcher tells of objects that are there, come, change and go, and what the
/// store of its reflector has in the end.
async fn story(client: &Client, namespace: &str, config: watcher::Config) -> Result<Vec<String>> {
    let spaces: Api<Namespace> = Api::all(client.clone());
    let space = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
    spaces.create(&PostParams::default(), &space).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    // It comes by itself, and must not come later.
    let begun = Instant::now();
    while maps.get_opt("kube-root-ca.crt").await?.is_none() {
        ensure!(begun.elapsed() < PATIENCE, "there is no certificate");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut version = None;
    for name in ["a", "b", "c"] {
        let made = maps.create(&PostParams::default(), &object(name)).await?;
        version = made.resource_version();
    }
    // A streaming list asks for any version, and a real server's cache may be behind.
    let version = version.context("an object without a version")?;
    let fresh = ListParams::default()
        .at(&version)
        .matching(VersionMatch::NotOlderThan);
    maps.list(&fresh).await?;

    let (store, writer) = reflector::store();
    let watched = watcher(maps.clone(), config);
    let mut events = Box::pin(reflector::reflector(writer, watched));
    let mut words = Vec::new();
    while words.last().is_none_or(|word| word != "done") {
        words.push(next(&mut events).await?);
    }
    // A streaming list has no order; what is there does not depend on one.
    words.sort();

    maps.create(&PostParams::default(), &object("d")).await?;
    words.push(next(&mut events).await?);
    let apply = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}});
    let parameters = PatchParams::apply("story");
    maps.patch("a", &parameters, &Patch::Apply(&apply)).await?;
    words.push(next(&mut events).await?);
    maps.delete("b", &Default::default()).await?;
    words.push(next(&mut events).await?);

    let mut stored: Vec<String> = store
        .state()
        .iter()
        .map(|object| object.name_any())
        .collect();
    stored.sort();
    words.extend(stored);
    let changed = store.get(&ObjectRef::new("a").within(namespace));
    let data = changed.and_then(|object| object.data.clone());
    words.push(format!("{data:?}"));
    Ok(words)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_and_reflectors_follow() -> Result<()> {
    let (real, embedded) = tokio::task::spawn_blocking(|| {
        anyhow::Ok((
            ControlPlane::keeping_up_namespaces()?,
            EmbeddedCluster::start()?,
        ))
    })
    .await??;
    let real_client = client(&real.kubeconfig()).await?;
    let embedded_client = client(&embedded.kubeconfig()).await?;
    for (namespace, config) in [
        ("listed", watcher::Config::default()),
        ("paged", watcher::Config::default().page_size(2)),
        ("streamed", watcher::Config::default().streaming_lists()),
    ] {
        let expected = story(&real_client, namespace, config.clone()).await?;
        let found = story(&embedded_client, namespace, config).await?;
        assert_eq!(found, expected, "{namespace}");
        assert!(expected.contains(&"delete b".to_owned()), "{expected:?}");
    }
    // They wait for processes when they are dropped.
    tokio::task::spawn_blocking(|| drop((real, embedded))).await?;
    Ok(())
}
