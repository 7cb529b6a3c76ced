//! What serves now: the Deployment and its ReplicaSets, read.

use std::time::Duration;

use reeve_sdk::Strings;
use reeve_sdk::prelude::*;

use crate::image::{Digest, Image};
use crate::model::Version;
use crate::names::{DEPLOYMENT, DIGEST, OF, Place, RELAUNCH, REPLICA_SET};

/// The Deployment as it is.
#[input]
struct LiveDeployment {
    metadata: Marks,
    spec: Option<DeploymentSpec>,
    status: Option<DeploymentStatus>,
}

/// What of metadata is read here.
#[input]
struct Marks {
    generation: Option<i64>,
    labels: Option<Strings>,
    annotations: Option<Strings>,
}

#[input]
struct DeploymentSpec {
    replicas: Option<i64>,
    progress_deadline_seconds: Option<u32>,
    template: Option<Template>,
}

#[input]
struct DeploymentStatus {
    observed_generation: Option<i64>,
    replicas: Option<i64>,
    updated_replicas: Option<i64>,
    available_replicas: Option<i64>,
    conditions: Option<Vec<DeploymentCondition>>,
}

#[input]
struct DeploymentCondition {
    r#type: String,
    status: String,
    reason: Option<String>,
    message: Option<String>,
    last_transition_time: Option<String>,
}

/// A ReplicaSet of a model.
#[input]
struct LiveSet {
    spec: Option<SetSpec>,
    status: Option<SetStatus>,
}

#[input]
struct SetSpec {
    template: Template,
}

#[input]
struct Template {
    metadata: Option<Marks>,
    spec: Option<PodSpec>,
}

#[input]
struct PodSpec {
    containers: Vec<Container>,
}

#[input]
struct Container {
    image: Option<String>,
}

#[input]
struct SetStatus {
    available_replicas: Option<i64>,
}

/// What serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    /// Whether there is a Deployment at all.
    pub(crate) exists: bool,
    /// What the Deployment is of, if it can be told.
    pub(crate) version: Option<Version>,
    /// The relaunch and the number of servers that it is of.
    pub(crate) relaunch: Option<String>,
    pub(crate) replicas: Option<i64>,
    /// How its rollout stands.
    pub(crate) rollout: Rollout,
    /// How many servers there were to be when all of them answered last.
    pub(crate) served: Option<i64>,
    /// When what is under way has taken too long, of which nothing else will tell.
    pub(crate) due: Option<Duration>,
    /// What answers requests: the versions of which servers are available.
    pub(crate) answering: Vec<Version>,
    /// How many ReplicaSets there are.
    pub(crate) sets: usize,
    /// The images that these name.
    pub(crate) images: Vec<Image>,
}

/// How a rollout stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rollout {
    /// Under way.
    #[default]
    Progressing,
    /// Everything is new and available.
    Done,
    /// Done, and no server is wanted.
    Idle,
    /// It was done once, and now servers are missing that were there.
    Short { available: i64, wanted: i64 },
    /// It has taken too long.
    Stuck(String),
}

const DEPLOYMENT_PARTS: [&str; 12] = [
    "/metadata/labels",
    "/metadata/annotations",
    "/metadata/generation",
    "/spec/replicas",
    "/spec/progressDeadlineSeconds",
    "/spec/template/metadata/labels",
    "/spec/template/metadata/annotations",
    "/status/observedGeneration",
    "/status/replicas",
    "/status/updatedReplicas",
    "/status/availableReplicas",
    "/status/conditions",
];

impl Live {
    /// Reads what serves a deployment.
    /// `served` is how many servers there were to be when all of them answered last, as it
    /// was recorded: said of the Deployment itself, it would count as a change of it.
    pub(crate) fn read(place: &Place, served: Option<i64>, cx: &Context) -> Result<Self, Failure> {
        let reference = place.object(&DEPLOYMENT, &place.name);
        let deployment: Option<LiveDeployment> = cx.get_parts(&reference, DEPLOYMENT_PARTS)?;
        let query = place.labelled(REPLICA_SET, OF, &place.name).projection([
            "/spec/template/metadata/labels",
            "/spec/template/metadata/annotations",
            "/spec/template/spec/containers",
            "/status/availableReplicas",
        ]);
        let sets: Vec<LiveSet> = cx.list(&query)?;
        let mut live = Self {
            sets: sets.len(),
            ..Self::default()
        };
        for set in &sets {
            live.add(set);
        }
        if let Some(deployment) = deployment {
            live.exists = true;
            // Somebody may have edited one of them.
            live.version = deployment
                .version()
                .or_else(|| live.answering.first().cloned());
            live.rollout = deployment.rollout();
            live.relaunch = deployment.relaunch();
            live.replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas);
            live.scaled(&deployment, served, cx);
        }
        Ok(live)
    }

    fn add(&mut self, set: &LiveSet) {
        let Some(spec) = &set.spec else {
            return;
        };
        let containers = spec.template.spec.iter().flat_map(|pod| &pod.containers);
        let images = containers.filter_map(|container| container.image.as_deref());
        self.images
            .extend(images.filter_map(|image| Image::parse(image).ok()));
        let status = set.status.as_ref();
        let available = status.and_then(|status| status.available_replicas);
        let version = spec.template.metadata.as_ref().and_then(Marks::version);
        if let Some(version) = version.filter(|_| available.unwrap_or(0) > 0) {
            self.answering.push(version);
        }
    }

    /// Tells servers that are to come from those that went: of both the Deployment says the
    /// same, and for the first it knows no deadline.
    fn scaled(&mut self, deployment: &LiveDeployment, served: Option<i64>, cx: &Context) {
        self.served = match self.rollout {
            Rollout::Done | Rollout::Idle => Some(self.replicas.unwrap_or(1)),
            _ => served,
        };
        if let (Rollout::Short { available, wanted }, Some(served)) = (&self.rollout, self.served)
            && served <= *available
            && served < *wanted
        {
            self.due = deployment.left(cx);
        }
        if self.due.is_some() {
            self.rollout = Rollout::Progressing;
        }
    }

    /// Whether a ReplicaSet of this deployment names an image of this digest.
    pub(crate) fn names(&self, digest: &Digest) -> bool {
        let mut images = self.images.iter();
        images.any(|image| image.digest.as_ref() == Some(digest))
    }

    /// Whether it served once. Of a Deployment that is there alone nobody can tell.
    pub(crate) fn was_ready(&self) -> bool {
        self.served.is_some_and(|servers| servers > 0) || !self.answering.is_empty()
    }

    /// Whether what is of this key answers requests.
    pub(crate) fn answers(&self, key: &str) -> bool {
        self.answering.iter().any(|version| version.key == key)
    }

    /// What answers requests and is of another key.
    pub(crate) fn old(&self, key: &str) -> Option<&Version> {
        self.answering.iter().find(|version| version.key != key)
    }
}

/// Whether any ReplicaSet in the namespace names an image of this digest, wherever it does.
/// Those of this plugin are found by their label, so that the others are seldom looked at.
pub(crate) fn is_named(place: &Place, digest: &Digest, cx: &Context) -> Result<bool, Failure> {
    let query = place.labelled(REPLICA_SET, DIGEST, digest.label());
    if !cx.list_references(&query)?.is_empty() {
        return Ok(true);
    }
    let all = Query::of(REPLICA_SET).in_namespace(&place.namespace);
    let sets: Vec<Json> = cx.list(&all.projection(["/spec/template/spec"]))?;
    let mut sets = sets.iter().map(|set| set["spec"].to_string());
    Ok(sets.any(|pod| pod.contains(digest.as_str())))
}

impl Marks {
    fn version(&self) -> Option<Version> {
        Version::read(self.labels.as_ref()?, self.annotations.as_ref()?)
    }
}

impl LiveDeployment {
    /// What is said of its pods.
    fn marks(&self) -> Option<&Marks> {
        let template = self.spec.as_ref()?.template.as_ref()?;
        template.metadata.as_ref()
    }

    fn version(&self) -> Option<Version> {
        self.marks()
            .and_then(Marks::version)
            .or_else(|| self.metadata.version())
    }

    fn relaunch(&self) -> Option<String> {
        self.marks()?.annotations.as_ref()?.get(RELAUNCH).cloned()
    }

    /// How long it may still take until as many servers answer as are wanted.
    fn left(&self, cx: &Context) -> Option<Duration> {
        let deadline = self.spec.as_ref()?.progress_deadline_seconds?;
        let mut conditions = self
            .status
            .iter()
            .flat_map(|s| s.conditions.iter().flatten());
        let available = conditions.find(|one| one.r#type == "Available")?;
        let since = available.last_transition_time.as_deref()?;
        let since = humantime::parse_rfc3339(since).ok()?;
        let passed = cx.now().duration_since(since).unwrap_or_default();
        let deadline = Duration::from_secs(deadline.into());
        deadline.checked_sub(passed).filter(|left| !left.is_zero())
    }

    fn rollout(&self) -> Rollout {
        let seen = |status: &&DeploymentStatus| {
            status.observed_generation.is_some()
                && status.observed_generation == self.metadata.generation
        };
        let Some(status) = self.status.as_ref().filter(seen) else {
            return Rollout::Progressing;
        };
        let wanted = self.spec.as_ref().and_then(|spec| spec.replicas);
        let wanted = wanted.unwrap_or(1);
        let progress = status.conditions.iter().flatten();
        let mut progress = progress.filter(|one| one.r#type == "Progressing");
        let progress = progress.next();
        let reason = progress.and_then(|one| one.reason.as_deref());
        if reason == Some("ProgressDeadlineExceeded") {
            let message = progress.and_then(|one| one.message.clone());
            return Rollout::Stuck(message.unwrap_or_default());
        }
        let count = |count: Option<i64>| count.unwrap_or(0);
        let available = count(status.available_replicas);
        let is_new = count(status.updated_replicas) >= wanted
            && count(status.replicas) <= count(status.updated_replicas);
        if is_new && available >= wanted {
            return match wanted {
                0 => Rollout::Idle,
                _ => Rollout::Done,
            };
        }
        // The controller leaves this reason in place once a rollout is done.
        let is_true = progress.is_some_and(|one| one.status == "True");
        match is_new && is_true && reason == Some("NewReplicaSetAvailable") {
            true => Rollout::Short { available, wanted },
            false => Rollout::Progressing,
        }
    }
}
