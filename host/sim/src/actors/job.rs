//! Jobs: pods that are to complete.

mod policy;

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::conditions::{self, Condition};
use super::context::{Context, Kind, MANAGER};
use super::tables::{JOBS, PODS};
use super::template;
use crate::clock;
use crate::kinds::edit::{ensure_object, flag, integer, items, remove, set, text, text_at};
use crate::rest::meta;
use crate::status::ApiError;

const CONTROLLER: &str = "job-controller";
/// What holds a pod back until its Job has counted it.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const STAMPS: &[&str] = &["lastProbeTime"];
/// The pause before a failed pod is replaced: the first, doubled with each further
/// failure, and the longest.
const BACKOFF: Duration = Duration::from_secs(10);
const BACKOFF_MAX: Duration = Duration::from_secs(600);

/// Whether a Job still has to count a pod.
pub(super) fn is_tracked(pod: &Value) -> bool {
    items(&pod["metadata"], "finalizers").any(|finalizer| finalizer == TRACKING)
}

/// Lets a pod go that has been counted.
pub(super) fn untrack(pod: &mut Value) {
    let metadata = meta::of_mut(pod);
    if let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers") {
        finalizers.retain(|finalizer| finalizer != TRACKING);
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        }
    }
}

/// Whether a Job has ended, and how.
pub(super) fn ending(job: &Value) -> Option<bool> {
    let status = &job["status"];
    if conditions::is_true(status, "Complete") {
        return Some(true);
    }
    conditions::is_true(status, "Failed").then_some(false)
}

pub(super) fn reconcile(context: &mut Context<'_>, job: &Value) -> Result<(), ApiError> {
    context.complain(job);
    let managed = text_at(job, "/spec/managedBy");
    if !matches!(managed, "" | "kubernetes.io/job-controller") {
        return Ok(());
    }
    if ending(job).is_some() {
        return expire(context, job);
    }
    let pods = context.controlled(job, PODS);
    let counted = Count::of(job, &pods);
    for pod in pods
        .iter()
        .filter(|pod| is_tracked(pod) && !template::is_active(pod))
    {
        context.change(PODS, pod, MANAGER, untrack)?;
    }
    let active: Vec<&Value> = pods.iter().filter(|pod| template::is_active(pod)).collect();
    let verdict = verdict(context, job, &counted, &active);
    let mut kept = active.clone();
    if meta::is_terminating(job) {
        // Its pods are the garbage collector's.
    } else if verdict.is_some() || flag(&job["spec"], "suspend") {
        for pod in &active {
            context.change(PODS, pod, MANAGER, untrack)?;
            context.delete(PODS, pod)?;
        }
        kept.clear();
    } else {
        make(context, job, &counted, &active, &pods)?;
    }
    report(context, job, &counted, &kept, verdict.as_ref())
}

/// How many pods have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Count {
    succeeded: i64,
    failed: i64,
    /// The indexes that are done, of a Job that has them.
    done: Vec<i64>,
    indexed: bool,
    /// What fails the whole Job, of the pods that failed just now.
    fatal: Option<String>,
}

impl Count {
    fn of(job: &Value, pods: &[Value]) -> Self {
        let status = &job["status"];
        let indexed = text_at(job, "/spec/completionMode") == "Indexed";
        let succeeded = pods
            .iter()
            .filter(|pod| is_tracked(pod) && template::phase(pod) == "Succeeded");
        let fresh = succeeded.count();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let mut done = indexes(text(status, "completedIndexes"));
        if indexed {
            let succeeded = pods
                .iter()
                .filter(|pod| template::phase(pod) == "Succeeded");
            done.extend(succeeded.filter_map(index_of));
            done.sort_unstable();
            done.dedup();
        }
        // A pod that somebody deletes has failed, unless the Job is suspended.
        let suspended = flag(&job["spec"], "suspend");
        let is_lost = |pod: &&Value| {
            let deleted = meta::is_terminating(pod) && !template::is_over(pod) && !suspended;
            is_tracked(pod) && (deleted || template::phase(pod) == "Failed")
        };
        let mut failed = 0;
        let mut fatal = None;
        for pod in pods.iter().filter(is_lost) {
            match policy::judge(job, pod) {
                policy::Judgement::Counted => failed += 1,
                policy::Judgement::Ignored => {}
                policy::Judgement::Fatal(why) => {
                    failed += 1;
                    fatal.get_or_insert(why);
                }
            }
        }
        let before = |field: &str| integer(status, field).unwrap_or(0);
        let succeeded = if indexed {
            number(done.len())
        } else {
            before("succeeded") + number(fresh)
        };
        Count {
            succeeded,
            failed: before("failed") + failed,
            done,
            indexed,
            fatal,
        }
    }
}

/// How a Job ends.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Verdict {
    success: bool,
    reason: &'static str,
    message: Cow<'static, str>,
}

fn verdict(
    context: &mut Context<'_>,
    job: &Value,
    count: &Count,
    active: &[&Value],
) -> Option<Verdict> {
    let spec = &job["spec"];
    let limit = integer(spec, "backoffLimit").unwrap_or(6);
    let restarts: i64 = active
        .iter()
        .flat_map(|pod| items(&pod["status"], "containerStatuses"))
        .filter_map(|status| integer(status, "restartCount"))
        .sum();
    let restarting = text_at(spec, "/template/spec/restartPolicy") == "OnFailure";
    if let Some(why) = &count.fatal {
        return Some(Verdict {
            success: false,
            reason: "PodFailurePolicy",
            message: Cow::Owned(why.clone()),
        });
    }
    if count.failed > limit || (restarting && restarts > 0 && restarts >= limit) {
        return Some(Verdict {
            success: false,
            reason: "BackoffLimitExceeded",
            message: "Job has reached the specified backoff limit".into(),
        });
    }
    if let Some(deadline) = deadline(job) {
        if deadline <= context.now() {
            return Some(Verdict {
                success: false,
                reason: "DeadlineExceeded",
                message: "Job was active longer than specified deadline".into(),
            });
        }
        context.wake_at(deadline);
    }
    let done = match integer(spec, "completions") {
        Some(completions) => count.succeeded >= completions,
        // A queue of work is empty when one pod has found it so.
        None => count.succeeded > 0 && active.is_empty(),
    };
    done.then_some(Verdict {
        success: true,
        reason: "CompletionsReached",
        message: "Reached expected number of succeeded pods".into(),
    })
}

fn deadline(job: &Value) -> Option<SystemTime> {
    if flag(&job["spec"], "suspend") {
        return None;
    }
    let seconds = integer(&job["spec"], "activeDeadlineSeconds")?;
    let started = clock::parse(text_at(job, "/status/startTime"))?;
    Some(started + Duration::from_secs(u64::try_from(seconds).ok()?))
}

fn make(
    context: &mut Context<'_>,
    job: &Value,
    count: &Count,
    active: &[&Value],
    pods: &[Value],
) -> Result<(), ApiError> {
    let spec = &job["spec"];
    let parallelism = integer(spec, "parallelism").unwrap_or(1);
    let running = i64::try_from(active.len()).unwrap_or(i64::MAX);
    let wanted = match integer(spec, "completions") {
        Some(completions) => parallelism.min(completions - count.succeeded),
        // Once one has succeeded, no more are begun.
        None if count.succeeded > 0 => running,
        None => parallelism,
    };
    for pod in active
        .iter()
        .rev()
        .take(usize::try_from(running - wanted).unwrap_or(0))
    {
        context.change(PODS, pod, MANAGER, untrack)?;
        context.delete(PODS, pod)?;
    }
    if running >= wanted {
        return Ok(());
    }
    if let Some(again) = pause(count, pods)
        && again > context.now()
    {
        context.wake_at(again);
        return Ok(());
    }
    let taken: Vec<i64> = active.iter().filter_map(|pod| index_of(pod)).collect();
    let mut free = (0..).filter(|index| !taken.contains(index) && !count.done.contains(index));
    for _ in running..wanted {
        let index = if count.indexed { free.next() } else { None };
        let mut pod = template::pod(job, &spec["template"]);
        let name = meta::text(job, "name");
        let prefix = match index {
            Some(index) => format!("{name}-{index}-"),
            None => format!("{name}-"),
        };
        set(&mut pod["metadata"], "generateName", prefix);
        let mut finalizers: Vec<Value> = items(&pod["metadata"], "finalizers").cloned().collect();
        finalizers.push(json!(TRACKING));
        set(&mut pod["metadata"], "finalizers", finalizers);
        if let Some(index) = index {
            number(&mut pod, name, index);
        }
        let made = context.create(PODS, meta::text(job, "namespace"), MANAGER, pod);
        match made {
            Ok(made) => {
                let message = format!("Created pod: {}", meta::text(&made, "name"));
                context.event(CONTROLLER, job, Kind::Normal, "SuccessfulCreate", &message);
            }
            Err(error) => {
                let message = format!("Error creating: {error}");
                context.event(CONTROLLER, job, Kind::Warning, "FailedCreate", &message);
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Makes a pod that of an index.
fn number(pod: &mut Value, job: &str, index: i64) {
    for field in ["labels", "annotations"] {
        if let Some(map) = ensure_object(&mut pod["metadata"], field) {
            set(map, INDEX, index.to_string());
        }
    }
    set(&mut pod["spec"], "hostname", format!("{job}-{index}"));
    let variable = json!({
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"fieldPath": format!("metadata.labels['{INDEX}']")}},
    });
    for list in ["containers", "initContainers"] {
        for container in crate::kinds::edit::items_mut(&mut pod["spec"], list) {
            let mut env: Vec<Value> = items(container, "env").cloned().collect();
            if !env.iter().any(|known| known["name"] == variable["name"]) {
                env.push(variable.clone());
                set(container, "env", env);
            }
        }
    }
}

/// Until when failed pods are not replaced.
fn pause(count: &Count, pods: &[Value]) -> Option<SystemTime> {
    let failed = pods.iter().filter(|pod| template::phase(pod) == "Failed");
    let failed: Vec<&Value> = failed.collect();
    let lists = ["initContainerStatuses", "containerStatuses"];
    let statuses = failed.iter().flat_map(|pod| {
        lists
            .into_iter()
            .flat_map(|list| items(&pod["status"], list))
    });
    let ends =
        statuses.filter_map(|status| clock::parse(text_at(status, "/state/terminated/finishedAt")));
    let last = ends.max()?;
    // Those that a policy leaves out of account make the pauses longer, too.
    let times = i64::try_from(failed.len())
        .unwrap_or(i64::MAX)
        .max(count.failed);
    let doublings = u32::try_from(times - 1).unwrap_or(0).min(10);
    Some(last + (BACKOFF * 2_u32.pow(doublings)).min(BACKOFF_MAX))
}

fn index_of(pod: &Value) -> Option<i64> {
    let annotations = pod.pointer("/metadata/annotations")?;
    text(annotations, INDEX).parse().ok()
}

/// Reads `0-2,5,6`.
fn indexes(text: &str) -> Vec<i64> {
    let mut all = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
            all.extend(first..=last);
        }
    }
    all
}

/// Writes `0-2,5,6`: two that follow each other are no range yet, as with the real
/// controller.
fn ranges(indexes: &[i64]) -> String {
    let mut parts: Vec<(i64, i64)> = Vec::new();
    for index in indexes {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => parts.push((*index, *index)),
        }
    }
    let texts = parts.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

fn report(
    context: &mut Context<'_>,
    job: &Value,
    count: &Count,
    active: &[&Value],
    verdict: Option<&Verdict>,
) -> Result<(), ApiError> {
    let now = context.timestamp();
    let suspended = flag(&job["spec"], "suspend");
    let ready = active
        .iter()
        .filter(|pod| super::replica_set::is_ready(pod))
        .count();
    let live = |status: &Value| {
        let mut status = status.clone();
        for (field, number) in [
            ("active", active.len()),
            ("succeeded", usize::try_from(count.succeeded).unwrap_or(0)),
            ("failed", usize::try_from(count.failed).unwrap_or(0)),
        ] {
            if number == 0 {
                remove(&mut status, field);
            } else {
                set(&mut status, field, number);
            }
        }
        set(&mut status, "ready", ready);
        set(&mut status, "terminating", 0);
        set(&mut status, "uncountedTerminatedPods", json!({}));
        if count.indexed && !count.done.is_empty() {
            set(&mut status, "completedIndexes", ranges(&count.done));
        }
        if suspended {
            remove(&mut status, "startTime");
        } else if status.get("startTime").is_none() {
            set(&mut status, "startTime", now.clone());
        }
        judge_suspension(&mut status, suspended, &now);
        if let Some(verdict) = verdict {
            finish(&mut status, verdict, &now);
        }
        status
    };
    let before = job["status"].clone();
    context.change_status(JOBS, job, MANAGER, |job| {
        let status = live(&job["status"]);
        set(job, "status", status);
    })?;
    let was_suspended = conditions::is_true(&before, "Suspended");
    if suspended && !was_suspended {
        context.event(CONTROLLER, job, Kind::Normal, "Suspended", "Job suspended");
    }
    if !suspended && was_suspended {
        context.event(CONTROLLER, job, Kind::Normal, "Resumed", "Job resumed");
    }
    match verdict {
        Some(verdict) if verdict.success => {
            context.event(CONTROLLER, job, Kind::Normal, "Completed", "Job completed");
        }
        Some(verdict) => {
            context.event(
                CONTROLLER,
                job,
                Kind::Warning,
                verdict.reason,
                &verdict.message,
            );
        }
        None => {
            if let Some(deadline) = deadline(job) {
                context.wake_at(deadline);
            }
        }
    }
    Ok(())
}

fn judge_suspension(status: &mut Value, suspended: bool, now: &str) {
    let known = conditions::get(status, "Suspended").is_some();
    if suspended {
        let condition = Condition {
            kind: "Suspended",
            status: true,
            reason: "JobSuspended",
            message: "Job suspended",
        };
        conditions::replace(status, condition, now, STAMPS);
    } else if known {
        let condition = Condition {
            kind: "Suspended",
            status: false,
            reason: "JobResumed",
            message: "Job resumed",
        };
        conditions::replace(status, condition, now, STAMPS);
    }
}

fn finish(status: &mut Value, verdict: &Verdict, now: &str) {
    let kinds = if verdict.success {
        ["SuccessCriteriaMet", "Complete"]
    } else {
        ["FailureTarget", "Failed"]
    };
    for kind in kinds {
        let condition = Condition {
            kind,
            status: true,
            reason: verdict.reason,
            message: &verdict.message,
        };
        conditions::replace(status, condition, now, STAMPS);
    }
    if verdict.success {
        // A clock that was set back must not make of it a status that is refused: its pods
        // would be counted for nothing, and made anew without end.
        let started = text(status, "startTime");
        let end = if started > now { started } else { now }.to_owned();
        set(status, "completionTime", end);
    }
}

/// Deletes a Job when it has been over for as long as it says.
fn expire(context: &mut Context<'_>, job: &Value) -> Result<(), ApiError> {
    for pod in context.controlled(job, PODS) {
        if is_tracked(&pod) && !template::is_active(&pod) {
            context.change(PODS, &pod, MANAGER, untrack)?;
        }
    }
    let seconds = integer(&job["spec"], "ttlSecondsAfterFinished");
    let Some(seconds) = seconds.and_then(|seconds| u64::try_from(seconds).ok()) else {
        return Ok(());
    };
    let kind = if ending(job) == Some(true) {
        "Complete"
    } else {
        "Failed"
    };
    let ended = conditions::get(&job["status"], kind)
        .and_then(|condition| clock::parse(text(condition, "lastTransitionTime")));
    let Some(expires) = ended.map(|ended| ended + Duration::from_secs(seconds)) else {
        return Ok(());
    };
    if expires > context.now() {
        context.wake_at(expires);
        return Ok(());
    }
    context.delete(JOBS, job)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_ranges() {
        for text in ["", "0", "0-2,5", "1,3,4,9-12"] {
            assert_eq!(ranges(&indexes(text)), text);
        }
        assert_eq!(indexes("0-2,5"), [0, 1, 2, 5]);
    }
}
