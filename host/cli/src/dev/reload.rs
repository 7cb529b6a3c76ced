//! Rebuilds and swaps a plugin when its source is saved.

use super::crates::Source;
use super::grants;
use super::install::Installer;
use crate::output;
use anyhow::Context as _;
use bytes::Bytes;
use notify::{RecursiveMode, Watcher as _};
use reeve_agent::Agent;
use reeve_build::{Builder, PluginCrate, Profile};
use reeve_core::{Digest, chain};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Editors write a file in several steps; this is when they are done.
const QUIET: Duration = Duration::from_millis(60);
/// A version that does not run by then will not.
const PATIENCE: Duration = Duration::from_secs(20);

/// Builds plugin crates for the development loop, and shows the progress.
pub(crate) async fn build_all(sources: Vec<PluginCrate>) -> anyhow::Result<Vec<Bytes>> {
    let build = move || Builder::new(Profile::Dev).build_all(&sources);
    let built = tokio::task::spawn_blocking(build).await;
    let components = built.context("the build was interrupted")??;
    let bytes = components.into_iter().map(|c| Bytes::from(c.into_bytes()));
    Ok(bytes.collect())
}

/// Builds a plugin crate that was saved.
async fn build(source: PluginCrate) -> anyhow::Result<Bytes> {
    let build = move || Builder::new(Profile::Dev).quiet().build(&source);
    let built = tokio::task::spawn_blocking(build).await;
    let component = built.context("the build was interrupted")??;
    Ok(Bytes::from(component.into_bytes()))
}

/// Watches the sources until something fails for good.
pub(crate) async fn watch(
    folder: &Path,
    crates: Vec<Source>,
    installer: &Installer,
    agent: &Agent,
) -> anyhow::Result<()> {
    let (sender, mut saved) = mpsc::unbounded_channel::<PathBuf>();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        // Reading a file is no reason to build, and building reads them all.
        if event.kind.is_access() {
            return;
        }
        for path in event.paths {
            // The receiver goes only with the whole command.
            let _ = sender.send(path);
        }
    })
    .context("cannot watch files")?;
    let folder = folder
        .canonicalize()
        .with_context(|| format!("cannot find {}", folder.display()))?;
    watcher
        .watch(&folder, RecursiveMode::Recursive)
        .with_context(|| format!("cannot watch {}", folder.display()))?;
    while let Some(first) = saved.recv().await {
        let since = Instant::now();
        let mut paths = vec![first];
        while let Ok(Some(path)) = tokio::time::timeout(QUIET, saved.recv()).await {
            paths.push(path);
        }
        for plugin in &crates {
            if paths.iter().any(|path| plugin.is_built_from(path)) {
                swap(plugin, installer, agent, since).await;
            }
        }
    }
    Ok(())
}

async fn swap(plugin: &Source, installer: &Installer, agent: &Agent, since: Instant) {
    let name = &plugin.name;
    output::tell(format_args!("{name}: building"));
    let component = match build(plugin.source.clone()).await {
        Ok(component) => component,
        Err(error) => {
            let why = chain(error.as_ref());
            output::tell(format_args!(
                "{name}: not built, the running version stays\n{why}"
            ));
            return;
        }
    };
    let digest = Digest::of(&component);
    let running = |name: &str| {
        let status = agent.status();
        let status = status.borrow();
        let plugin = status.plugins.iter().find(|plugin| plugin.name == name);
        plugin.and_then(|plugin| plugin.digest)
    };
    if running(name) == Some(digest) {
        output::tell(format_args!("{name}: unchanged"));
        return;
    }
    match installer.install(name, &component).await {
        Ok(granted) => grants::tell(name, granted),
        Err(error) => {
            let why = chain(error.as_ref());
            output::tell(format_args!("{name}: not installed: {why}"));
            return;
        }
    }
    let mut status = agent.status();
    let swapped = async {
        while running(name) != Some(digest) {
            if status.changed().await.is_err() {
                return;
            }
        }
    };
    let how = match tokio::time::timeout(PATIENCE, swapped).await {
        Ok(()) => {
            let seconds = since.elapsed().as_secs_f64();
            format!("running {seconds:.1} s after it was saved")
        }
        Err(_) => "does not run; the problem is above".to_owned(),
    };
    output::tell(format_args!("{name}: {digest} {how}"));
}
