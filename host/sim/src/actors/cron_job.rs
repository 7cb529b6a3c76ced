//! CronJobs: a Job at each time of a schedule.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::context::{Context, Kind, MANAGER};
use super::job::ending;
use super::tables::{CRON_JOBS, JOBS};
use super::template;
use crate::clock::{self, rfc3339};
use crate::field::quoted;
use crate::kinds::edit::{flag, integer, items, remove, set, text, text_at};
use crate::rest::meta;
use crate::schedule::{self, Schedule};
use crate::status::ApiError;

const CONTROLLER: &str = "cronjob-controller";
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

pub(super) fn reconcile(context: &mut Context<'_>, cron: &Value) -> Result<(), ApiError> {
    context.complain(cron);
    if meta::is_terminating(cron) {
        return Ok(());
    }
    let jobs = context.controlled(cron, JOBS);
    clean_up(context, cron, &jobs)?;
    let begun = if flag(&cron["spec"], "suspend") {
        None
    } else {
        run(context, cron, &jobs)?
    };
    report(context, cron, &jobs, begun.as_ref())
}

/// A Job that was made just now, and the time it was made for.
struct Begun {
    job: Value,
    scheduled: SystemTime,
}

fn run(context: &mut Context<'_>, cron: &Value, jobs: &[Value]) -> Result<Option<Begun>, ApiError> {
    let spec = &cron["spec"];
    // Said once: the object does not come up again by itself.
    let warn = |reason: &str, message: &str| {
        context.event(CONTROLLER, cron, Kind::Warning, reason, message);
    };
    let zone = spec.get("timeZone").and_then(Value::as_str);
    let zone = match zone.map(schedule::zone) {
        None => TimeZone::UTC,
        Some(Ok(zone)) => zone,
        Some(Err(error)) => {
            let name = quoted(text(spec, "timeZone"));
            let message = format!("invalid timeZone: {name}: {error}");
            warn("UnknownTimeZone", &message);
            return Ok(None);
        }
    };
    let schedule = match Schedule::parse(text(spec, "schedule")) {
        Ok(schedule) => schedule,
        Err(error) => {
            let schedule = quoted(text(spec, "schedule"));
            let message = format!("unparseable schedule: {schedule} : {error}");
            warn("UnparseableSchedule", &message);
            return Ok(None);
        }
    };
    let now = context.now();
    let last = clock::parse(text_at(cron, "/status/lastScheduleTime"));
    let created = clock::parse(meta::text(cron, "creationTimestamp"));
    let mut after = last.or(created).unwrap_or(now);
    if let Some(seconds) = integer(spec, "startingDeadlineSeconds")
        && let Some(earliest) =
            now.checked_sub(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    {
        after = after.max(earliest);
    }
    if let Some(next) = schedule.next(now, &zone) {
        context.wake_at(next);
    }
    let Some(scheduled) = schedule.last(after, now, &zone) else {
        return Ok(None);
    };
    let active: Vec<&Value> = jobs.iter().filter(|job| ending(job).is_none()).collect();
    match text(spec, "concurrencyPolicy") {
        "Forbid" if !active.is_empty() => {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            context.event(CONTROLLER, cron, Kind::Normal, "JobAlreadyActive", message);
            return Ok(None);
        }
        "Replace" => {
            for job in &active {
                context.delete(JOBS, job)?;
                let message = format!("Deleted job {}", meta::text(job, "name"));
                context.event(CONTROLLER, cron, Kind::Normal, "SuccessfulDelete", &message);
            }
        }
        _ => {}
    }
    make(context, cron, scheduled)
}

fn make(
    context: &Context<'_>,
    cron: &Value,
    scheduled: SystemTime,
) -> Result<Option<Begun>, ApiError> {
    let wanted = &cron["spec"]["jobTemplate"];
    let minutes = scheduled
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() / 60);
    let name = format!("{}-{minutes}", meta::text(cron, "name"));
    let mut annotations = wanted
        .pointer("/metadata/annotations")
        .cloned()
        .unwrap_or_else(|| json!({}));
    set(&mut annotations, SCHEDULED, rfc3339(scheduled));
    let job = json!({
        "metadata": {
            "name": name,
            "labels": wanted.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({})),
            "annotations": annotations,
            "ownerReferences": [template::controller_reference(cron)],
        },
        "spec": wanted["spec"],
    });
    match context.create(JOBS, meta::text(cron, "namespace"), MANAGER, job) {
        Ok(job) => {
            let message = format!("Created job {name}");
            context.event(CONTROLLER, cron, Kind::Normal, "SuccessfulCreate", &message);
            Ok(Some(Begun { job, scheduled }))
        }
        // It was made for this very time before.
        Err(error) if error.reason() == "AlreadyExists" => Ok(None),
        Err(error) => {
            let message = format!("Error creating job: {error}");
            context.event(CONTROLLER, cron, Kind::Warning, "FailedCreate", &message);
            Err(error)
        }
    }
}

/// Deletes the oldest Jobs that are over, beyond those to be kept.
fn clean_up(context: &Context<'_>, cron: &Value, jobs: &[Value]) -> Result<(), ApiError> {
    for (success, field) in [
        (true, "successfulJobsHistoryLimit"),
        (false, "failedJobsHistoryLimit"),
    ] {
        let limit = integer(&cron["spec"], field).and_then(|limit| usize::try_from(limit).ok());
        let Some(limit) = limit else { continue };
        let mut over: Vec<&Value> = jobs
            .iter()
            .filter(|job| ending(job) == Some(success) && !meta::is_terminating(job))
            .collect();
        over.sort_by_key(|job| text_at(job, "/status/startTime"));
        let surplus = over.len().saturating_sub(limit);
        for job in over.into_iter().take(surplus) {
            context.delete(JOBS, job)?;
            let message = format!("Deleted job {}", meta::text(job, "name"));
            context.event(CONTROLLER, cron, Kind::Normal, "SuccessfulDelete", &message);
        }
    }
    Ok(())
}

fn report(
    context: &Context<'_>,
    cron: &Value,
    jobs: &[Value],
    begun: Option<&Begun>,
) -> Result<(), ApiError> {
    let known: Vec<&str> = items(&cron["status"], "active")
        .map(|job| text(job, "uid"))
        .collect();
    for job in jobs {
        if ending(job).is_some() && known.contains(&meta::text(job, "uid")) {
            let status = if ending(job) == Some(true) {
                "Complete"
            } else {
                "Failed"
            };
            let message = format!(
                "Saw completed job: {}, condition: {status}",
                meta::text(job, "name")
            );
            context.event(CONTROLLER, cron, Kind::Normal, "SawCompletedJob", &message);
        }
    }
    let active = jobs
        .iter()
        .filter(|job| ending(job).is_none() && !meta::is_terminating(job));
    let active: Vec<Value> = active
        .chain(begun.map(|begun| &begun.job))
        .map(reference)
        .collect();
    let succeeded = jobs.iter().filter(|job| ending(job) == Some(true));
    let finished = succeeded
        .map(|job| text_at(job, "/status/completionTime"))
        .max();
    context.change_status(CRON_JOBS, cron, MANAGER, |cron| {
        let mut status = cron["status"].clone();
        if active.is_empty() {
            remove(&mut status, "active");
        } else {
            set(&mut status, "active", active.clone());
        }
        if let Some(begun) = begun {
            set(&mut status, "lastScheduleTime", rfc3339(begun.scheduled));
        }
        if let Some(finished) = finished.filter(|at| *at > text(&status, "lastSuccessfulTime")) {
            set(&mut status, "lastSuccessfulTime", finished);
        }
        set(cron, "status", status);
    })
}

fn reference(job: &Value) -> Value {
    json!({
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "namespace": meta::text(job, "namespace"),
        "name": meta::text(job, "name"),
        "uid": meta::text(job, "uid"),
        "resourceVersion": meta::text(job, "resourceVersion"),
    })
}
