//! In which state a deployment is and what follows: one pure function.
//!
//! Nothing is remembered from one call to the next. What is known is what stands on the
//! objects of the cluster, so that a state is the same after a restart.

use crate::image::{Digest, Image};
use crate::job::JobState;
use crate::live::{Live, Rollout};
use crate::model::Version;

/// What a decision is made from.
pub(crate) struct Observed<'a> {
    /// Whether nothing is to serve.
    pub(crate) stopped: bool,
    /// Whether a build is under way, or going, that only this deployment needs.
    pub(crate) busy: bool,
    /// What is wanted, or all that is wrong with it.
    pub(crate) wanted: Result<Wanted<'a>, Vec<String>>,
    /// What serves.
    pub(crate) live: &'a Live,
}

/// A model that is wanted.
pub(crate) struct Wanted<'a> {
    /// Its build key.
    pub(crate) key: &'a str,
    /// Its image, if it is known.
    pub(crate) image: Option<Image>,
    /// Where its image is pushed.
    pub(crate) repository: &'a Image,
    /// What a build, or its servers where it needs none, need and do not find.
    pub(crate) missing: Vec<String>,
    /// How its build stands.
    pub(crate) job: JobState,
    /// Jobs of the build that were gone before anybody read what they pushed.
    pub(crate) losses: usize,
}

/// The steps of a deployment's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Pending,
    Building,
    Deploying,
    Ready,
    Degraded,
    Replacing,
    Stopping,
    Stopped,
    Errored,
}

impl Phase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Building => "Building",
            Self::Deploying => "Deploying",
            Self::Ready => "Ready",
            Self::Degraded => "Degraded",
            Self::Replacing => "Replacing",
            Self::Stopping => "Stopping",
            Self::Stopped => "Stopped",
            Self::Errored => "Errored",
        }
    }

    /// As the management agent calls it.
    pub(crate) fn state(self) -> &'static str {
        match self {
            Self::Pending | Self::Building | Self::Deploying => "launching",
            Self::Ready => "ready",
            Self::Replacing => "replacingModel",
            Self::Stopping => "shuttingDown",
            Self::Stopped => "stopped",
            Self::Degraded | Self::Errored => "errored",
        }
    }
}

/// How well it is, as the management agent calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Passing,
    Failing,
    Warning,
    Unknown,
}

impl Health {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Passing => "passing",
            Self::Failing => "failing",
            Self::Warning => "warning",
            Self::Unknown => "unknown",
        }
    }

    /// As the management agent numbers it.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Passing => 0,
            Self::Failing => 1,
            Self::Warning => 2,
            Self::Unknown => 3,
        }
    }
}

/// What is to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deploy {
    /// Nothing.
    Nothing,
    /// What serves already.
    Kept,
    /// The model that is wanted, in this image.
    Wanted(Image),
}

/// What becomes of the Job of the model that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// It is to be there.
    Made,
    /// If it is over, it may stay for its log. Otherwise it goes, unless others need it.
    Left,
    /// It goes.
    Removed,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) phase: Phase,
    pub(crate) health: Health,
    /// In one word.
    pub(crate) reason: &'static str,
    /// For people.
    pub(crate) message: String,
    pub(crate) deploy: Deploy,
    pub(crate) build: Build,
    /// Whether another model than the one that is wanted answers requests.
    pub(crate) old_model_in_use: bool,
    /// Id of the model that answers requests.
    pub(crate) current_model: Option<String>,
}

/// Jobs of one build that may be lost before there is no other: the first time may be
/// chance, the second is a cause that a third Job would meet as well.
const LOSSES: usize = 2;

/// What to do about a failure.
const RETRY: &str = "Mend the cause, then set spec.retry to another value";

/// Decides.
pub(crate) fn decide(observed: &Observed<'_>) -> Decision {
    let live = observed.live;
    if observed.stopped {
        return stop(observed);
    }
    let wanted = match &observed.wanted {
        Ok(wanted) => wanted,
        Err(problems) => return held(live, None, "Invalid", problems.join("; "), Build::Left),
    };
    let serves = live.version.as_ref().filter(|v| v.key == wanted.key);
    if let Some(version) = serves {
        return roll_out(live, wanted, version);
    }
    let fail = |reason, message| held(live, Some(wanted.key), reason, message, Build::Left);
    let missing = || fail("PrerequisiteMissing", wanted.missing.join("; "));
    if let Some(image) = &wanted.image {
        return match wanted.missing.is_empty() {
            true => deploy(live, wanted, image.clone()),
            false => missing(),
        };
    }
    match &wanted.job {
        JobState::Absent if wanted.losses >= LOSSES => fail("BuildLost", lost("it was deleted")),
        JobState::Absent if !wanted.missing.is_empty() => missing(),
        JobState::Absent if wanted.losses > 0 => {
            let message = "the build was deleted before its result was read; it is made once more";
            build(live, wanted, "Rebuilding", message.to_owned(), Build::Made)
        }
        JobState::Absent => {
            let message = "the model is to be built".to_owned();
            build(live, wanted, "Pending", message, Build::Made)
        }
        JobState::Going => {
            let message = "an earlier build of the same model is being deleted".to_owned();
            build(live, wanted, "Pending", message, Build::Removed)
        }
        JobState::Active { trouble: None } => {
            let message = "the model is being built".to_owned();
            build(live, wanted, "Building", message, Build::Made)
        }
        JobState::Active {
            trouble: Some(trouble),
        } => {
            let message = format!("the build has not started: {trouble}");
            build(live, wanted, "BuildWaiting", message, Build::Made)
        }
        JobState::Complete(digest) => deploy(live, wanted, image_of(wanted, digest)),
        JobState::Unread if wanted.losses + 1 >= LOSSES => {
            fail("BuildLost", lost("its pod was deleted"))
        }
        JobState::Evicted if wanted.losses + 1 >= LOSSES => {
            fail("BuildEvicted", lost("its pods were evicted"))
        }
        JobState::Unread => {
            let message = "the pod of the build was deleted before its result was read; it is made \
                           once more";
            build(
                live,
                wanted,
                "Rebuilding",
                message.to_owned(),
                Build::Removed,
            )
        }
        JobState::Evicted => {
            let message = "the build was evicted from its node; it is made once more";
            build(
                live,
                wanted,
                "Rebuilding",
                message.to_owned(),
                Build::Removed,
            )
        }
        JobState::NoDigest { said } => fail(
            "DigestInvalid",
            format!(
                "the build succeeded, but its termination message is no digest: `{said}`. {RETRY}"
            ),
        ),
        JobState::Failed { why } => {
            fail("BuildFailed", format!("the build failed: {why}. {RETRY}"))
        }
    }
}

fn image_of(wanted: &Wanted<'_>, digest: &Digest) -> Image {
    wanted.repository.at(digest.clone())
}

fn lost(what: &str) -> String {
    format!("the build was made twice, and both times {what} before its result was read. {RETRY}")
}

/// Nothing is to serve. A build goes first: what it pushed after the end would be of no
/// use.
fn stop(observed: &Observed<'_>) -> Decision {
    let live = observed.live;
    let is_gone = !live.exists && live.sets == 0 && !observed.busy;
    let (phase, reason, message) = if observed.busy {
        (Phase::Stopping, "Stopping", "the build is being deleted")
    } else if is_gone {
        (
            Phase::Stopped,
            "Stopped",
            "nothing serves, as spec.stopped says",
        )
    } else {
        (Phase::Stopping, "Stopping", "the servers are being deleted")
    };
    Decision {
        phase,
        health: Health::Unknown,
        reason,
        message: message.to_owned(),
        deploy: match observed.busy && live.version.is_some() {
            true => Deploy::Kept,
            false => Deploy::Nothing,
        },
        build: Build::Left,
        old_model_in_use: false,
        current_model: answering(live, None),
    }
}

/// Something is in the way of what is wanted. What serves goes on.
fn held(
    live: &Live,
    key: Option<&str>,
    reason: &'static str,
    message: String,
    build: Build,
) -> Decision {
    let serves = !live.answering.is_empty();
    let (phase, health) = match (live.was_ready(), serves) {
        (_, true) => (Phase::Ready, Health::Warning),
        // It served, and does not, and nothing better is in sight.
        (true, false) => (Phase::Degraded, Health::Failing),
        (false, false) => (Phase::Errored, Health::Failing),
    };
    let message = match phase {
        Phase::Ready => format!("the earlier model goes on serving: {message}"),
        _ => message,
    };
    Decision {
        phase,
        health,
        reason,
        message,
        deploy: kept(live),
        build,
        old_model_in_use: serves,
        current_model: answering(live, key),
    }
}

/// There is no image yet. What serves goes on.
fn build(
    live: &Live,
    wanted: &Wanted<'_>,
    reason: &'static str,
    message: String,
    build: Build,
) -> Decision {
    let has_job = matches!(wanted.job, JobState::Active { .. });
    let serves = !live.answering.is_empty();
    let (phase, health) = match (live.was_ready(), has_job) {
        _ if serves => (Phase::Replacing, Health::Passing),
        (true, _) => (Phase::Replacing, Health::Failing),
        (false, true) => (Phase::Building, Health::Unknown),
        (false, false) => (Phase::Pending, Health::Unknown),
    };
    Decision {
        phase,
        health,
        reason,
        message,
        deploy: kept(live),
        build,
        old_model_in_use: serves,
        current_model: answering(live, Some(wanted.key)),
    }
}

/// The image is there, and the Deployment does not name it yet.
fn deploy(live: &Live, wanted: &Wanted<'_>, image: Image) -> Decision {
    let serves = !live.answering.is_empty();
    let (phase, health) = match live.was_ready() {
        _ if serves => (Phase::Replacing, Health::Passing),
        true => (Phase::Replacing, Health::Failing),
        false => (Phase::Deploying, Health::Unknown),
    };
    Decision {
        phase,
        health,
        reason: "Deploying",
        message: "the model is built and is being rolled out".to_owned(),
        deploy: Deploy::Wanted(image),
        build: Build::Left,
        old_model_in_use: live.old(wanted.key).is_some(),
        current_model: answering(live, Some(wanted.key)),
    }
}

/// The Deployment names the image.
fn roll_out(live: &Live, wanted: &Wanted<'_>, version: &Version) -> Decision {
    let is_old = live.old(wanted.key).is_some();
    let is_new = live.answers(wanted.key);
    let (phase, health, reason, message) = match &live.rollout {
        Rollout::Done => (
            Phase::Ready,
            Health::Passing,
            "Serving",
            "the model serves".to_owned(),
        ),
        Rollout::Idle => (
            Phase::Ready,
            Health::Unknown,
            "NoServers",
            "no server answers, since none is wanted: replicas is 0".to_owned(),
        ),
        // Its pods wait for that, and a rollout that waits says nothing for long.
        Rollout::Progressing if !wanted.missing.is_empty() => {
            return Decision {
                deploy: Deploy::Wanted(version.image.clone()),
                ..held(
                    live,
                    Some(wanted.key),
                    "PrerequisiteMissing",
                    wanted.missing.join("; "),
                    Build::Left,
                )
            };
        }
        Rollout::Progressing if is_old => (
            Phase::Replacing,
            Health::Passing,
            "Deploying",
            "the model is being rolled out; the earlier one serves until it does".to_owned(),
        ),
        Rollout::Progressing => (
            Phase::Deploying,
            if is_new {
                Health::Passing
            } else {
                Health::Unknown
            },
            "Deploying",
            "the servers are starting".to_owned(),
        ),
        Rollout::Short { available, wanted } => (
            Phase::Degraded,
            Health::Warning,
            "ServersMissing",
            format!("{available} of {wanted} servers answer"),
        ),
        Rollout::Stuck(why) if is_old => (
            Phase::Ready,
            Health::Warning,
            "RolloutFailed",
            format!("the earlier model goes on serving: the rollout has failed: {why}"),
        ),
        Rollout::Stuck(why) if is_new => (
            Phase::Degraded,
            Health::Warning,
            "RolloutFailed",
            format!("some servers answer, but the rollout has failed: {why}"),
        ),
        Rollout::Stuck(why) => (
            Phase::Errored,
            Health::Failing,
            "RolloutFailed",
            format!("no server answers: the rollout has failed: {why}"),
        ),
    };
    Decision {
        phase,
        health,
        reason,
        message,
        deploy: Deploy::Wanted(version.image.clone()),
        build: Build::Left,
        old_model_in_use: is_old,
        current_model: answering(live, Some(wanted.key)),
    }
}

fn kept(live: &Live) -> Deploy {
    match live.version.is_some() {
        true => Deploy::Kept,
        false => Deploy::Nothing,
    }
}

/// The model that answers: another than the one that is wanted, as long as it does.
fn answering(live: &Live, key: Option<&str>) -> Option<String> {
    let old = key.and_then(|key| live.old(key));
    let version = old.or(live.answering.first())?;
    Some(version.model_id.clone())
}

#[cfg(test)]
mod tests;
