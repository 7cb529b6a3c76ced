//! What became of a build: a Job and its pods, read.

use std::collections::BTreeMap;

use reeve_sdk::prelude::*;

use crate::builder::{CONTAINER, FETCH, KEPT_FOR, WRONG_PACKAGE};
use crate::image::Digest;
use crate::names::{BUILD, JOB, KEY, OF, POD, Place, TEMPLATE, object};

/// A Job as it is.
#[input]
#[derive(Clone)]
pub(crate) struct LiveJob {
    pub(crate) metadata: JobMetadata,
    status: Option<JobStatus>,
}

/// Of a Job's metadata.
#[input]
#[derive(Clone)]
pub(crate) struct JobMetadata {
    pub(crate) name: String,
    pub(crate) uid: Option<String>,
    pub(crate) creation_timestamp: Option<String>,
    pub(crate) deletion_timestamp: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

#[input]
#[derive(Clone)]
struct JobStatus {
    conditions: Option<Vec<JobCondition>>,
}

#[input]
#[derive(Clone)]
struct JobCondition {
    r#type: String,
    status: String,
    reason: Option<String>,
    message: Option<String>,
}

/// A pod of a Job.
#[input]
pub(crate) struct LivePod {
    metadata: Metadata,
    status: Option<PodStatus>,
}

#[input]
struct PodStatus {
    phase: Option<String>,
    reason: Option<String>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
    container_statuses: Option<Vec<ContainerStatus>>,
}

#[input]
struct ContainerStatus {
    name: String,
    state: Option<ContainerState>,
}

#[input]
struct ContainerState {
    waiting: Option<Waiting>,
    terminated: Option<Terminated>,
}

#[input]
struct Waiting {
    reason: Option<String>,
    message: Option<String>,
}

#[input]
struct Terminated {
    exit_code: Option<i64>,
    message: Option<String>,
}

/// How a build stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobState {
    /// There is no Job.
    Absent,
    /// It is going, and its name is not free yet.
    Going,
    /// It is at it. `trouble` is what keeps its pod from starting, if anything does.
    Active { trouble: Option<String> },
    /// It is over, and this is what was pushed.
    Complete(Digest),
    /// It is over, and nobody can say what was pushed: its pod is gone.
    Unread,
    /// It is over, and what it said is no digest.
    NoDigest { said: String },
    /// It is over because nodes were short of something, which says nothing about it.
    Evicted,
    /// It failed, and why.
    Failed { why: String },
}

/// What of a Job is kept as it is, and read only where one is.
#[input]
struct LiveSpec {
    spec: Json,
}

/// The parts of Jobs that are read.
const PARTS: [&str; 5] = [
    "/metadata/creationTimestamp",
    "/metadata/deletionTimestamp",
    "/metadata/labels",
    "/metadata/annotations",
    "/status/conditions",
];

/// The parts of pods that are read.
const POD_PARTS: [&str; 5] = [
    "/metadata/labels",
    "/status/phase",
    "/status/reason",
    "/status/initContainerStatuses",
    "/status/containerStatuses",
];

/// Characters of a log in a message: the end, where the error stands.
const LOG: usize = 300;

impl LiveJob {
    /// The Jobs that were made for a deployment.
    pub(crate) fn made_for(place: &Place, cx: &Context) -> Result<Vec<Self>, Failure> {
        let query = place.labelled(JOB, OF, &place.name).projection(PARTS);
        Ok(cx.list(&query)?)
    }

    /// The Job of this name, if it is a build under this key, whoever it was made for: `own`
    /// are those that were made for the deployment.
    pub(crate) fn named(
        place: &Place,
        name: &str,
        key: &str,
        own: &[Self],
        cx: &Context,
    ) -> Result<Option<Self>, Failure> {
        let job = match own.iter().find(|job| job.metadata.name == name) {
            Some(job) => Some(job.clone()),
            None => cx.get_parts(&place.object(&JOB, name), PARTS)?,
        };
        Ok(job.filter(|job| job.label(KEY) == Some(key)))
    }

    /// Its pods, without those that a Job of the same name has left behind.
    pub(crate) fn pods(&self, place: &Place, cx: &Context) -> Result<Vec<LivePod>, Failure> {
        let query = place
            .labelled(POD, BUILD, &self.metadata.name)
            .projection(POD_PARTS);
        let mut pods: Vec<LivePod> = cx.list(&query)?;
        pods.retain(|pod| {
            let of = pod.metadata.labels.get(CONTROLLER_UID);
            of.is_none_or(|uid| Some(uid.as_str()) == self.uid())
        });
        Ok(pods)
    }

    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    pub(crate) fn uid(&self) -> Option<&str> {
        self.metadata.uid.as_deref()
    }

    /// Whether it was made for this deployment.
    pub(crate) fn is_of(&self, place: &Place) -> bool {
        self.label(OF) == Some(&place.name)
    }

    fn condition(&self, kind: &str) -> Option<&JobCondition> {
        let conditions = self.status.as_ref()?.conditions.as_ref()?;
        let holds = |one: &&JobCondition| one.r#type == kind && one.status == "True";
        conditions.iter().find(holds)
    }

    /// Whether it is over.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_complete() || self.condition("Failed").is_some()
    }

    /// Whether it is over and did what it was to do.
    pub(crate) fn is_complete(&self) -> bool {
        self.condition("Complete").is_some()
    }

    /// Whether it was made from what another is made from: most of that cannot be changed
    /// once it exists.
    pub(crate) fn is_from_that_of(&self, other: &Value) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        let made_from = annotations.and_then(|annotations| annotations.get(TEMPLATE));
        let other = &other["metadata"]["annotations"][TEMPLATE];
        made_from.is_some_and(|made_from| other == made_from)
    }

    /// How it stands. Of pods and Jobs one may be seen before the other, so a pod that
    /// is not over is waited for, unless another one has said all there is to say.
    pub(crate) fn state(&self, pods: &[LivePod]) -> JobState {
        if self.metadata.deletion_timestamp.is_some() {
            return JobState::Going;
        }
        if let Some(failed) = self.condition("Failed") {
            return failure(failed, pods);
        }
        let said = self.is_complete().then(|| said(pods)).flatten();
        if let Some(digest) = said.and_then(Digest::parse) {
            return JobState::Complete(digest);
        }
        let at_it = |pod: &&LivePod| !pod.is_over();
        if !self.is_complete() || pods.iter().any(|pod| at_it(&pod)) {
            let trouble = pods.iter().filter(at_it).find_map(LivePod::trouble);
            return JobState::Active { trouble };
        }
        match said {
            Some(said) => JobState::NoDigest {
                said: tail(said).to_owned(),
            },
            None => JobState::Unread,
        }
    }

    /// Whether it is over, and nobody can say what came of it.
    pub(crate) fn is_lost(&self, place: &Place, cx: &Context) -> Result<bool, Failure> {
        let state = self.state(&self.pods(place, cx)?);
        Ok(matches!(state, JobState::Unread | JobState::Evicted))
    }

    /// The Job as it is, which is how it is kept: most of it cannot be changed. Its
    /// health is nobody's concern any more.
    pub(crate) fn as_it_is(&self, place: &Place, cx: &Context) -> Result<Value, Failure> {
        let reference = place.object(&JOB, &self.metadata.name);
        let live: Option<LiveSpec> = cx.get_parts(&reference, ["/spec"])?;
        let gone = || Failure::retry(format!("{reference} is gone while it is looked at"));
        let mut spec = live.ok_or_else(gone)?.spec.0;
        if let Some(fields) = spec.as_object_mut() {
            // Set by the API server; a Job that is made may not say them.
            fields.remove("selector");
            fields.remove("manualSelector");
        }
        let template = spec.pointer_mut("/template/metadata");
        if let Some(metadata) = template.and_then(Value::as_object_mut) {
            metadata.remove("creationTimestamp");
            if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
                labels.retain(|key, _| is_ours(key));
            }
        }
        let ours = |map: &Option<BTreeMap<String, String>>| -> Value {
            let ours = map.iter().flatten().filter(|(key, _)| is_ours(key));
            ours.map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        let mut annotations = ours(&self.metadata.annotations);
        annotations[IGNORE_HEALTH] = json!("true");
        Ok(object(
            &reference,
            json!({"labels": ours(&self.metadata.labels), "annotations": annotations}),
            "spec",
            spec,
        ))
    }
}

/// Label of a pod: the uid of its Job.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

/// A failed build that is kept for its log makes no deployment unhealthy.
const IGNORE_HEALTH: &str = "reeve.dev/ignore-healthcheck";

fn is_ours(key: &str) -> bool {
    key.starts_with("models.reeve.dev/")
}

/// The Job goes by itself some time after its end.
pub(crate) fn expiring(mut job: Value) -> Value {
    job["spec"]["ttlSecondsAfterFinished"] = json!(KEPT_FOR);
    job
}

impl LivePod {
    fn phase(&self) -> &str {
        let status = self.status.as_ref();
        status.and_then(|s| s.phase.as_deref()).unwrap_or("Pending")
    }

    fn is_over(&self) -> bool {
        matches!(self.phase(), "Succeeded" | "Failed")
    }

    fn is_evicted(&self) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|status| status.reason.as_deref() == Some("Evicted"))
    }

    fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        let status = self.status.iter();
        status.flat_map(|status| {
            let init = status.init_container_statuses.iter().flatten();
            init.chain(status.container_statuses.iter().flatten())
        })
    }

    /// How a container ended, if it did.
    fn ended(&self, name: &str) -> Option<&Terminated> {
        let mut containers = self.containers();
        let container = containers.find(|container| container.name == name)?;
        container.state.as_ref()?.terminated.as_ref()
    }

    /// What keeps it from starting: an image that cannot be pulled, a Secret without
    /// the key that is needed.
    fn trouble(&self) -> Option<String> {
        let waiting = self.containers().find_map(|container| {
            let waiting = container.state.as_ref()?.waiting.as_ref()?;
            let reason = waiting.reason.as_deref()?;
            let is_start = ["PodInitializing", "ContainerCreating"].contains(&reason);
            (!is_start).then_some((container, reason, waiting))
        });
        let (container, reason, waiting) = waiting?;
        let message = waiting.message.as_deref().unwrap_or_default();
        Some(format!(
            "container {}: {reason}: {}",
            container.name,
            tail(message)
        ))
    }
}

/// The last word of the pod that did what was to be done, if it is there.
fn said(pods: &[LivePod]) -> Option<&str> {
    let mut succeeded = pods.iter().filter(|pod| pod.phase() == "Succeeded");
    let ended = succeeded.next_back()?.ended(CONTAINER);
    Some(
        ended
            .and_then(|ended| ended.message.as_deref())
            .unwrap_or_default(),
    )
}

/// Why a Job failed.
fn failure(condition: &JobCondition, pods: &[LivePod]) -> JobState {
    let failed: Vec<&LivePod> = pods.iter().filter(|pod| pod.phase() == "Failed").collect();
    if !failed.is_empty() && failed.iter().all(|pod| pod.is_evicted()) {
        return JobState::Evicted;
    }
    let reason = condition.reason.as_deref().unwrap_or("Failed");
    let mut why = format!(
        "{reason}: {}",
        condition.message.as_deref().unwrap_or_default()
    );
    for pod in failed.iter().rev() {
        if let Some(fetch) = pod.ended(FETCH).filter(|fetch| fetch.exit_code != Some(0)) {
            if fetch.exit_code == Some(WRONG_PACKAGE) {
                why = "the package has another SHA-256 than spec.model.package.sha256; mend one \
                       of them"
                    .to_owned();
                break;
            }
            why.push_str(&last_words(FETCH, fetch));
            break;
        }
        let build = pod.ended(CONTAINER);
        if let Some(build) = build.filter(|build| build.exit_code != Some(0)) {
            why.push_str(&last_words(CONTAINER, build));
            break;
        }
    }
    JobState::Failed { why }
}

fn last_words(container: &str, ended: &Terminated) -> String {
    let said = ended.message.as_deref().unwrap_or_default();
    let code = ended.exit_code.unwrap_or_default();
    match tail(said) {
        "" => format!("; container {container} ended with {code}"),
        said => format!("; container {container} ended with {code} and said: {said}"),
    }
}

/// The end of a text, where errors stand.
fn tail(text: &str) -> &str {
    let text = text.trim();
    let start = text.len().saturating_sub(LOG);
    let mut starts = start..=text.len();
    let start = starts.find(|&at| text.is_char_boundary(at));
    start.and_then(|at| text.get(at..)).unwrap_or(text)
}
