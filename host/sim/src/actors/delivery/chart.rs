//! The source-controller of Flux: charts that come from a repository.

use super::needs::{self, Standing};
use super::scene::Scene;
use super::source::{FINALIZER, Words, fetch, lack};
use super::{ASKED_FOR, revision};

use crate::kinds::edit::{set, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

pub(super) fn reconcile(mut scene: Scene<'_, '_>) -> Result<(), ApiError> {
    if meta::is_terminating(scene.before) {
        return scene.release(|finalizer| finalizer == FINALIZER);
    }
    if scene.hold(FINALIZER)? {
        return Ok(());
    }
    if scene.is_suspended() {
        scene.handled();
        return scene.commit();
    }
    let (kind, namespace, name) = needs::place(scene.before, "/spec/sourceRef");
    let found = match needs::source(scene.context, kind, namespace, name) {
        Standing::Missing(why) => {
            let message = format!("failed to get source: {why}");
            lack(&mut scene, "SourceUnavailable", &message);
            return scene.commit();
        }
        Standing::There(found) => found,
    };
    let needs_none = text_at(&found.object, "/spec/type") == "oci";
    if found.is_played && found.artifact.is_none() && !needs_none {
        let message = format!("no artifact available for {kind} source '{name}'");
        lack(&mut scene, "NoSourceArtifact", &message);
        return scene.commit();
    }
    if let Some(artifact) = &found.artifact {
        let revision = text(artifact, "revision");
        set(scene.status(), "observedSourceArtifactRevision", revision);
    }
    // The name of a chart in Git or in a bucket is a path to it.
    let chart = scene.said("/spec/chart").trim_end_matches('/');
    let chart = chart.rsplit('/').next().unwrap_or_default();
    let wanted = scene.said("/spec/version");
    let version = revision::chart(wanted, &scene.script);
    let (verb, reason) = match kind {
        "HelmRepository" | "" => ("pulled", "ChartPullSucceeded"),
        _ => ("packaged", "ChartPackageSucceeded"),
    };
    let about = format!("'{chart}' chart with version '{version}'");
    let words = Words {
        stored: (reason, format!("{verb} {about}")),
        news: ("NewChart", format!("{verb} {about}")),
        failed: (
            "ChartPullError",
            format!("chart pull error: failed to download chart for remote reference: {ASKED_FOR}"),
            Some(format!("new {about}")),
        ),
        invalid: format!("invalid Helm repository URL: {ASKED_FOR}"),
    };
    let file = format!("{chart}-{version}.tgz");
    fetch(&mut scene, &version, &words, &file)?;
    if !scene.stands()["artifact"].is_null() {
        set(scene.status(), "observedChartName", chart);
    }
    scene.commit()
}
