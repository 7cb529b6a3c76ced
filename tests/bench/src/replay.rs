//! Recorded calls, made again from their files.

use crate::figure::Figures;
use crate::setup::{Fixed, large_profile, plugin, request};
use anyhow::{Result, ensure};
use reeve_core::recording::{About, Body, CalledComponent, Input, Named, Recording, compare};
use reeve_core::{GroupVersionKind, ObjectReference};
use reeve_engine::{
    Compiler, Component, Engine, EngineConfig, Limits, Recorder, Replay, answer_of,
};
use std::sync::Arc;
use std::time::Instant;

const CALLS: usize = 5_000;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    let engine = Engine::new(EngineConfig::new(Compiler::InThisProcess))?;
    let component = engine.load(plugin("quotas")?).await?;
    let file = record(&component).await?;
    let begun = Instant::now();
    for _ in 0..CALLS {
        // As `reeve replay` does, but for starting and compiling.
        let recording = Recording::read(file.as_bytes())?.recording;
        let recorded = recording.answer.clone();
        let replayed = Replay::new(recording).with(&component).await?;
        let answer = replayed.answer.as_ref();
        let equal = answer.is_some_and(|answer| compare(&recorded, answer).is_empty());
        ensure!(equal, "a replay answers something else");
    }
    let rate = CALLS as f64 / begun.elapsed().as_secs_f64();
    let what = format!("recorded calls replayed, files of {} bytes", file.len());
    figures.at_least(&what, rate, "/s", 1_000.0);
    Ok(())
}

/// The file of a call for a Profile.
async fn record(component: &Component) -> Result<String> {
    let limits = Limits::default();
    let request = request(&large_profile());
    let recorder = Arc::new(Recorder::new(Arc::new(Fixed::default())));
    let called = component.reconcile(request.clone(), recorder.clone(), &limits);
    let answer = answer_of(called.await)?;
    let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
    let recording = Recording {
        metadata: About {
            plugin: "quotas".to_owned(),
            primary: Named::from(&ObjectReference::new(kind, None, "alice")),
            recorded_at: "2026-01-01T00:00:00Z".to_owned(),
            reeve: env!("CARGO_PKG_VERSION").to_owned(),
        },
        component: CalledComponent {
            digest: component.digest(),
            bytes: component.size() as u64,
            name: "quotas".to_owned(),
            version: "0.1.0".to_owned(),
        },
        contract: component.generation().to_string(),
        input: Input {
            primary: Body::new(&*request.primary),
            projection: vec!["/metadata/labels".to_owned()],
            config: Body::new(&*request.config),
            facts: Vec::new(),
            reads: recorder.reads()?,
            kinds: Vec::new(),
            config_map_sources: Vec::new(),
        },
        limits: (&limits).into(),
        redacted: Vec::new(),
        answer,
    };
    Ok(recording.to_text()?)
}
