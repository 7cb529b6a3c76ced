//! The source-controller of Flux: Git, OCI and Helm repositories, and buckets.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::context::Kind;
use super::super::script::Script;
use super::conditions::{PROGRESSING, READY, RECONCILING, Truth};
use super::scene::Scene;
use super::{ASKED_FOR, conditions, hash, revision};
use crate::kinds::edit::{set, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

pub(super) const FINALIZER: &str = "finalizers.fluxcd.io";
/// Where artifacts are served in a usual installation.
const SERVER: &str = "http://source-controller.flux-system.svc.cluster.local.";
/// The pauses between attempts: the first, doubled each time, and the longest.
const BACKOFF: Duration = Duration::from_millis(750);
const BACKOFF_MAX: Duration = Duration::from_secs(900);
/// More attempts than anybody asks for; the pauses add up to years.
const ATTEMPTS: i64 = 1 << 16;

/// A kind of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Sort {
    Git,
    Oci,
    Helm,
    Bucket,
}

/// How far fetching has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Working,
    /// It did not work, and is tried again.
    Failing,
    /// It did not work, and is not tried again.
    Stalled,
    Done,
}

/// How far something has come that began `elapsed` ago, and when that changes.
pub(super) fn stage(script: &Script, elapsed: Duration) -> (Stage, Option<Duration>) {
    let ready = script.ready_after;
    if script.stalled {
        return (Stage::Stalled, None);
    }
    if elapsed < ready {
        return (Stage::Working, Some(ready));
    }
    if script.failure.is_some() {
        let over = script.fail_times.map(|times| ready + pauses(times));
        return match over {
            Some(over) if elapsed >= over => (Stage::Done, None),
            over => (Stage::Failing, over),
        };
    }
    match script.readiness(elapsed) {
        (true, next) => (Stage::Done, next),
        (false, next) => (Stage::Failing, next),
    }
}

/// How long the pauses after so many failed attempts are together.
fn pauses(times: i64) -> Duration {
    let mut pause = BACKOFF;
    let mut sum = Duration::ZERO;
    for _ in 0..times.min(ATTEMPTS) {
        sum += pause;
        pause = (pause * 2).min(BACKOFF_MAX);
    }
    sum
}

pub(super) fn reconcile(mut scene: Scene<'_, '_>, sort: Sort) -> Result<(), ApiError> {
    if meta::is_terminating(scene.before) {
        return scene.release(|finalizer| finalizer == FINALIZER);
    }
    if sort == Sort::Helm && scene.said("/spec/type") == "oci" {
        // Nothing is fetched before a chart is, and nothing is said of it.
        scene.release(|finalizer| finalizer == FINALIZER)?;
        scene.after["status"] = json!({});
        return scene.commit();
    }
    if scene.hold(FINALIZER)? {
        return Ok(());
    }
    if scene.is_suspended() {
        scene.handled();
        return scene.commit();
    }
    let found = match sort {
        Sort::Git => revision::git(scene.before, &scene.script),
        Sort::Oci => revision::oci(scene.before, &scene.script),
        Sort::Helm | Sort::Bucket => revision::digest(scene.before, &scene.script),
    };
    let words = words(&scene, sort, &found);
    let file = match sort {
        Sort::Helm => format!("index-{found}.yaml"),
        _ => format!("{}.tar.gz", found.rsplit(':').next().unwrap_or_default()),
    };
    fetch(&mut scene, &found, &words, &file)?;
    scene.commit()
}

/// What is said of a source.
pub(super) struct Words {
    /// Why it is ready, and what is there then.
    pub(super) stored: (&'static str, String),
    /// Why what was stored is outdated, and what is there upstream.
    pub(super) news: (&'static str, String),
    /// Why nothing could be fetched, and what is said of what is upstream where that was
    /// known by then.
    pub(super) failed: (&'static str, String, Option<String>),
    /// Why nobody tries to fetch.
    pub(super) invalid: String,
}

/// Why nobody tries to fetch.
const INVALID: &str = "URLInvalid";

fn words(scene: &Scene<'_, '_>, sort: Sort, found: &str) -> Words {
    let url = scene.said("/spec/url");
    let stored = match sort {
        Sort::Git => format!("stored artifact for revision '{found}'"),
        Sort::Oci => format!("stored artifact for digest '{found}'"),
        Sort::Helm | Sort::Bucket => format!("stored artifact: revision '{found}'"),
    };
    let news = match sort {
        Sort::Git | Sort::Bucket => format!("new upstream revision '{found}'"),
        Sort::Oci => format!("new revision '{found}' for '{}'", reference(url, found)),
        Sort::Helm => format!("new index revision '{found}'"),
    };
    let failed = match sort {
        Sort::Git => (
            "GitOperationFailed",
            format!("failed to checkout and determine revision: {ASKED_FOR}"),
            None,
        ),
        Sort::Oci => (
            "OCIArtifactPullFailed",
            format!("failed to pull artifact from '{url}': {ASKED_FOR}"),
            Some(news.clone()),
        ),
        Sort::Helm => (
            "Failed",
            format!("failed to fetch Helm repository index: {ASKED_FOR}"),
            None,
        ),
        Sort::Bucket => {
            let bucket = scene.said("/spec/bucketName");
            (
                "BucketOperationFailed",
                format!("failed to confirm existence of '{bucket}' bucket: {ASKED_FOR}"),
                None,
            )
        }
    };
    let invalid = match sort {
        Sort::Git => format!("failed to parse url '{url}': {ASKED_FOR}"),
        Sort::Oci => format!("URL validation failed for '{url}': {ASKED_FOR}"),
        Sort::Helm => format!("invalid Helm repository URL: {ASKED_FOR}"),
        Sort::Bucket => {
            let endpoint = scene.said("/spec/sts/endpoint");
            format!("failed to parse STS endpoint '{endpoint}': {ASKED_FOR}")
        }
    };
    Words {
        stored: ("Succeeded", stored),
        news: ("NewRevision", news),
        failed,
        invalid,
    }
}

/// What a registry is asked for: by a tag, or by a digest where that is all there is.
fn reference(url: &str, found: &str) -> String {
    let repository = url.trim_start_matches("oci://");
    match found.split_once('@') {
        Some((tag, _)) => format!("{repository}:{tag}"),
        None => format!("{repository}@{found}"),
    }
}

/// Fetches a revision, and stores it as the artifact.
pub(super) fn fetch(
    scene: &mut Scene<'_, '_>,
    found: &str,
    words: &Words,
    file: &str,
) -> Result<(), ApiError> {
    let mark = format!("{found} {} {:?}", scene.requested(), scene.script.failure);
    let stamp = begun(&scene.before["status"], found, words);
    let elapsed = scene.lasts(&mark, stamp);
    let (stage, next) = stage(&scene.script, elapsed);
    if let Some(next) = next {
        scene.wake_at(elapsed, next);
    }
    let stored = text_at(&scene.before["status"], "/artifact/revision");
    let known = stored == found;
    let has_stored = !stored.is_empty();
    let fails = scene.script.failure.is_some();
    // What upstream has is known where that is fetched, and where only the rest fails.
    let news = match (&words.failed, fails || stage != Stage::Working) {
        ((_, _, news), true) => news.as_ref(),
        (_, false) => Some(&words.news.1),
    };
    let progress = match news.filter(|_| !known) {
        Some(news) => format!("building artifact: {news}"),
        None => scene.beginning(),
    };
    if matches!(stage, Stage::Working | Stage::Failing) && has_stored && !known {
        match news {
            Some(news) => scene.say("ArtifactOutdated", Truth::True, words.news.0, news),
            None => scene.unsay("ArtifactOutdated"),
        }
    }
    match stage {
        Stage::Working if known && !fails => keep(scene, words),
        Stage::Working => {
            scene.progress(&progress);
            // Of one that has failed it is not said that it may be ready, until more is
            // known.
            if news.is_some() || !conditions::is(scene.stands(), READY, Truth::False) {
                scene.say(READY, Truth::Unknown, PROGRESSING, &progress);
            }
        }
        Stage::Failing => {
            let (reason, message, _) = &words.failed;
            if !conditions::is(scene.stands(), "FetchFailed", Truth::True) {
                scene.event(Kind::Warning, reason, message);
            }
            scene.say("FetchFailed", Truth::True, reason, message);
            scene.retry(&progress, reason, message);
            scene.handled();
        }
        Stage::Stalled => {
            let message = words.invalid.as_str();
            scene.say("FetchFailed", Truth::True, INVALID, message);
            scene.say(READY, Truth::False, INVALID, message);
            scene.stall(INVALID, message);
            scene.handled();
        }
        Stage::Done => {
            if !known {
                let artifact = artifact(scene, found, file);
                scene.event(Kind::Normal, "NewArtifact", &words.stored.1);
                set(scene.status(), "artifact", artifact);
            }
            keep(scene, words);
        }
    }
    Ok(())
}

/// Since when a revision has been fetched, or tried to be, as far as a status tells.
fn begun<'s>(status: &'s Value, found: &str, words: &Words) -> &'s str {
    let since = |kind: &str, is_about: &dyn Fn(&Value) -> bool| {
        let condition = conditions::get(status, kind).filter(|known| is_about(known));
        condition.map(|condition| text(condition, "lastTransitionTime"))
    };
    let is_stored = text_at(status, "/artifact/revision") == found;
    since("ArtifactInStorage", &|_| is_stored)
        .or_else(|| since("FetchFailed", &|c| text(c, "reason") == words.failed.0))
        .or_else(|| since(RECONCILING, &|c| text(c, "message").contains(found)))
        .unwrap_or_default()
}

/// What is stored is what is there.
fn keep(scene: &mut Scene<'_, '_>, words: &Words) {
    for past in ["ArtifactOutdated", "FetchFailed", "BuildFailed"] {
        scene.unsay(past);
    }
    let (reason, message) = &words.stored;
    scene.say("ArtifactInStorage", Truth::True, reason, message);
    scene.ready(reason, message);
    scene.handled();
}

/// Nothing can be fetched before something else is there.
pub(super) fn lack(scene: &mut Scene<'_, '_>, reason: &str, message: &str) {
    scene.say("FetchFailed", Truth::True, reason, message);
    let progress = scene.beginning();
    scene.retry(&progress, reason, message);
    scene.handled();
}

fn artifact(scene: &Scene<'_, '_>, found: &str, file: &str) -> Value {
    let kind = scene.before["kind"].as_str().unwrap_or_default();
    let folder = format!(
        "{}/{}/{}",
        kind.to_ascii_lowercase(),
        scene.namespace(),
        scene.name()
    );
    let path = format!("{folder}/{file}");
    let digest = hash(&path);
    // Of no use but to be a number that another artifact does not have.
    let size = 1024 + i64::from(digest.bytes().map(u32::from).sum::<u32>());
    json!({
        "digest": format!("sha256:{digest}"),
        "lastUpdateTime": scene.now,
        "path": path,
        "revision": found,
        "size": size,
        "url": format!("{SERVER}/{path}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::Actors;
    use super::super::super::script::Failure;
    use super::*;

    #[test]
    fn attempts_come_at_growing_intervals() {
        let script = |failure, fail_times| Script {
            ready_after: Duration::from_secs(2),
            failure,
            fail_times,
            ..Script::of(&Actors::default())
        };
        let at = |script: &Script, millis| {
            let (stage, next) = stage(script, Duration::from_millis(millis));
            (stage, next.map(|next| next.as_millis()))
        };
        let fine = script(None, None);
        assert_eq!(at(&fine, 1000), (Stage::Working, Some(2000)));
        assert_eq!(at(&fine, 2000), (Stage::Done, None));
        let failing = script(Some(Failure::Fetch), None);
        assert_eq!(at(&failing, 2000), (Stage::Failing, None));
        // 750 ms and 1500 ms.
        let twice = script(Some(Failure::Fetch), Some(2));
        assert_eq!(at(&twice, 2000), (Stage::Failing, Some(4250)));
        assert_eq!(at(&twice, 4250), (Stage::Done, None));
        assert!(pauses(i64::MAX) > Duration::from_secs(3600 * 24 * 365));
        let stalled = Script {
            stalled: true,
            ..fine
        };
        assert_eq!(at(&stalled, 0), (Stage::Stalled, None));
    }
}
