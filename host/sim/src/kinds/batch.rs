//! Jobs and CronJobs.

use serde_json::{Map, Value, json};

use super::edit::{default_to, ensure_object, flag, items_mut, present, set, text, text_at};
use super::gated::pod_gated;
use super::meta::validate_immutable;
use super::pod::{default_template, pod_quantities};
use super::pod_validation::{supported, validate_counts, validate_template};
use super::row::Kind;
use super::selectors;
use super::verbs::Subresource;
use crate::field::{Errors, FieldError, Path};
use crate::selector::{FieldLabel, FieldLabels, LabelSelector, Unsupported};

const V1: (&str, &str) = ("batch", "v1");
const ALL: &[&str] = &["all"];
const SPEC: Path<'static> = Path::new("spec");
const STATUS: &[Subresource] = &[Subresource::STATUS];
static JOB_FIELDS: FieldLabels = FieldLabels::of(&[FieldLabel::number(
    "status.successful",
    &["/status/succeeded"],
)])
.refusing(Unsupported::NotSupportedFor("Job"));

pub(super) const ROWS: &[Kind] = &[
    Kind::namespaced(V1, "CronJob", "cronjobs")
        .short(&["cj"])
        .categories(ALL)
        .subresources(STATUS)
        .status("{}")
        .generation_of_spec()
        .quantities(pod_quantities!("spec.jobTemplate.spec.template.spec."))
        .gated(pod_gated!("spec.jobTemplate.spec.template.spec."))
        .defaulted(default_cron_job)
        .validated(validate_cron_job),
    Kind::namespaced(V1, "Job", "jobs")
        .orphaning()
        .categories(ALL)
        .subresources(STATUS)
        .status("{}")
        .generation_of_spec()
        .fields(&JOB_FIELDS)
        .quantities(pod_quantities!("spec.template.spec."))
        .gated(pod_gated!("spec.template.spec."))
        .defaulted(default_job)
        .prepared(generate_selector, |_, _| {})
        .validated(validate_job)
        .update_validated(validate_job_update),
];

/// Without labels of its own, a Job has those of its pods.
fn default_labels(job: &mut Value) {
    let labels = job
        .pointer("/spec/template/metadata/labels")
        .filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty()))
        .cloned();
    if let Some(labels) = labels
        && let Some(meta) = ensure_object(job, "metadata")
        && present(meta, "labels").is_none()
    {
        set(meta, "labels", labels);
    }
}

fn default_job(job: &mut Value) {
    default_labels(job);
    let Some(spec) = ensure_object(job, "spec") else {
        return;
    };
    if spec.get("parallelism").is_none() {
        if spec.get("completions").is_none() {
            set(spec, "completions", 1);
        }
        set(spec, "parallelism", 1);
    }
    let limit = if spec.get("backoffLimitPerIndex").is_some() {
        i64::from(i32::MAX)
    } else {
        6
    };
    default_to(spec, "backoffLimit", limit);
    default_to(spec, "completionMode", "NonIndexed");
    default_to(spec, "suspend", false);
    let replacement = if spec.get("podFailurePolicy").is_some() {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    default_to(spec, "podReplacementPolicy", replacement);
    if let Some(policy) = spec.get_mut("podFailurePolicy") {
        for rule in items_mut(policy, "rules") {
            for condition in items_mut(rule, "onPodConditions") {
                default_to(condition, "status", "True");
            }
        }
    }
    default_to(spec, "manualSelector", false);
    default_template(spec);
}

fn default_cron_job(job: &mut Value) {
    let Some(spec) = ensure_object(job, "spec") else {
        return;
    };
    default_to(spec, "concurrencyPolicy", "Allow");
    default_to(spec, "suspend", false);
    default_to(spec, "successfulJobsHistoryLimit", 3);
    default_to(spec, "failedJobsHistoryLimit", 1);
    if let Some(template) = ensure_object(spec, "jobTemplate") {
        ensure_object(template, "metadata");
        // The Job's own defaults come when it is made.
        if let Some(spec) = ensure_object(template, "spec") {
            default_template(spec);
        }
    }
}

/// Selects the pods of the Job by its UID, unless the client selects itself.
fn generate_selector(job: &mut Value) {
    let uid = text_at(job, "/metadata/uid").to_owned();
    let name = text_at(job, "/metadata/name").to_owned();
    let Some(spec) = job.get_mut("spec") else {
        return;
    };
    if flag(spec, "manualSelector") {
        return;
    }
    let labels = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    if let Some(template) = ensure_object(spec, "template")
        .and_then(|template| ensure_object(template, "metadata"))
        .and_then(|meta| ensure_object(meta, "labels"))
    {
        for (key, value) in labels {
            set(template, key, value.clone());
        }
    }
    if let Some(selector) =
        ensure_object(spec, "selector").and_then(|selector| ensure_object(selector, "matchLabels"))
    {
        set(selector, labels[0].0, uid.clone());
    }
    default_labels(job);
}

fn validate_job(job: &Value, errors: &mut Errors) {
    validate_generated(job, errors);
    validate_own_spec(job, errors);
}

/// Checks that a selector which was generated still is.
fn validate_generated(job: &Value, errors: &mut Errors) {
    let spec = job.get("spec").unwrap_or(&Value::Null);
    let selector = spec.get("selector").filter(|selector| selector.is_object());
    let (false, Some(selector)) = (flag(spec, "manualSelector"), selector) else {
        return;
    };
    let uid = text_at(job, "/metadata/uid");
    let name = text_at(job, "/metadata/name");
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    let labels = spec.pointer("/template/metadata/labels");
    let path = SPEC.child("template.metadata.labels");
    for (key, value) in expected {
        let why = format!("must be '{value}'");
        match labels.and_then(|labels| labels.get(key)) {
            Some(found) if found == value => {}
            Some(_) => {
                let shown = labels.unwrap_or(&Value::Null);
                errors.push(FieldError::invalid(&path.key(key), shown, why));
            }
            None => errors.push(FieldError::required(&path.key(key), why)),
        }
    }
    let expected = expected.map(|(key, value)| (key.to_owned(), value.into()));
    let expected: Map<String, Value> = expected.into_iter().collect();
    if LabelSelector::from_object(selector).is_ok_and(|found| !found.matches(Some(&expected))) {
        let why = "`selector` not auto-generated";
        errors.push(FieldError::invalid(&SPEC.child("selector"), selector, why));
    }
}

/// Checks the spec of a Job, with its selector.
fn validate_own_spec(job: &Value, errors: &mut Errors) {
    let spec = job.get("spec").unwrap_or(&Value::Null);
    validate_job_spec(&SPEC, spec, errors);
    let Some(selector) = spec.get("selector").filter(|selector| selector.is_object()) else {
        errors.push(FieldError::required(&SPEC.child("selector"), ""));
        return;
    };
    selectors::validate(&SPEC.child("selector"), selector, errors);
    let labels = spec.pointer("/template/metadata/labels");
    let matches = LabelSelector::from_object(selector)
        .is_ok_and(|selector| selector.matches(labels.and_then(Value::as_object)));
    if !matches {
        errors.push(FieldError::invalid(
            &SPEC.child("template.metadata.labels"),
            labels.unwrap_or(&Value::Null),
            "`selector` does not match template `labels`",
        ));
    }
}

fn validate_job_spec(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    validate_counts(path, spec, &counts, errors);
    let modes = ["NonIndexed", "Indexed"];
    supported(path, spec, "completionMode", &modes, errors);
    if text(spec, "completionMode") == "Indexed" && spec.get("completions").is_none() {
        errors.push(FieldError::required(
            &path.child("completions"),
            "when completion mode is Indexed",
        ));
    }
    let template = spec.get("template").unwrap_or(&Value::Null);
    let template_path = path.child("template");
    validate_template(&template_path, template, errors);
    let policy = text_at(template, "/spec/restartPolicy");
    let policy_path = template_path.child("spec.restartPolicy");
    match policy {
        "OnFailure" | "Never" => {}
        "Always" | "" => errors.push(FieldError::required(
            &policy_path,
            "valid values: \"OnFailure\", \"Never\"",
        )),
        other => errors.push(FieldError::not_supported(
            &policy_path,
            &other.into(),
            &["OnFailure", "Never"],
        )),
    }
}

fn validate_job_update(job: &Value, old: &Value, errors: &mut Errors) {
    // A second time, as by the real server.
    validate_own_spec(job, errors);
    let spec = job.get("spec").unwrap_or(&Value::Null);
    let old = old.get("spec").unwrap_or(&Value::Null);
    // An indexed Job may be resized when its parallelism follows.
    let elastic = text(spec, "completionMode") == "Indexed"
        && spec.get("completions") == spec.get("parallelism");
    let fields: &[&str] = &[
        "completions",
        "selector",
        "template",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ];
    for field in fields {
        let suspended = *field == "template" && flag(old, "suspend");
        if suspended || (*field == "completions" && elastic) {
            continue;
        }
        validate_immutable(&SPEC.child(field), spec, old, field, errors);
    }
}

fn validate_cron_job(job: &Value, errors: &mut Errors) {
    let spec = job.get("spec").unwrap_or(&Value::Null);
    // Pods are named after Jobs, which are named after the CronJob and a time.
    const NAME_MAX: usize = 52;
    let name = text_at(job, "/metadata/name");
    if name.len() > NAME_MAX {
        let meta = Path::new("metadata");
        errors.push(FieldError::invalid_str(
            &meta.child("name"),
            name,
            format!("must be no more than {NAME_MAX} characters"),
        ));
    }
    let path = SPEC.child("schedule");
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else if let Err(wrong) = check_schedule(schedule) {
        errors.push(FieldError::invalid_str(&path, schedule, wrong));
    } else if schedule.contains("TZ") {
        errors.push(FieldError::invalid_str(
            &path,
            schedule,
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        ));
    }
    validate_counts(&SPEC, spec, &["startingDeadlineSeconds"], errors);
    if let Some(zone) = spec.get("timeZone").and_then(Value::as_str) {
        validate_zone(&SPEC.child("timeZone"), zone, errors);
    }
    supported(
        &SPEC,
        spec,
        "concurrencyPolicy",
        &["Allow", "Forbid", "Replace"],
        errors,
    );
    let template = spec.pointer("/jobTemplate/spec").unwrap_or(&Value::Null);
    validate_job_spec(&SPEC.child("jobTemplate.spec"), template, errors);
    let path = SPEC.child("jobTemplate.spec");
    if let Some(selector) = template.get("selector").filter(|given| given.is_object()) {
        let why = "`selector` will be auto-generated";
        errors.push(FieldError::invalid(&path.child("selector"), selector, why));
    }
    if flag(template, "manualSelector") {
        errors.push(FieldError::not_supported(
            &path.child("manualSelector"),
            &Value::Bool(true),
            &["nil", "false"],
        ));
    }
    let counts = ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    validate_counts(&SPEC, spec, &counts, errors);
}

/// Checks the form of the name of a time zone. There is no list to look it up in.
fn validate_zone(path: &Path<'_>, zone: &str, errors: &mut Errors) {
    const LONGEST_PART: usize = 14;
    let is_part = |part: &str| {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.len() <= LONGEST_PART
            && part.chars().all(is_legal)
    };
    let unknown = || format!("unknown time zone {zone}");
    let mut complain = |why: String| errors.push(FieldError::invalid_str(path, zone, why));
    if zone.is_empty() {
        complain("timeZone must be nil or non-empty string".to_owned());
    } else if !zone.split('/').all(is_part) {
        complain(unknown());
    } else if zone.eq_ignore_ascii_case("Local") {
        complain(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
                .to_owned(),
        );
        if zone != "Local" {
            complain(unknown());
        }
    }
}

/// Whether a schedule has five fields of numbers, names, ranges and steps, or
/// is one of the named ones.
fn check_schedule(schedule: &str) -> Result<(), String> {
    let plain = schedule
        .strip_prefix("TZ=")
        .or_else(|| schedule.strip_prefix("CRON_TZ="))
        .and_then(|rest| rest.split_once(' '))
        .map_or(schedule, |(_, rest)| rest.trim());
    if let Some(name) = plain.strip_prefix('@') {
        let known = [
            "yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly",
        ];
        return if known.contains(&name) || name.starts_with("every ") {
            Ok(())
        } else {
            Err(format!("unrecognized descriptor: {plain}"))
        };
    }
    let fields: Vec<&str> = plain.split_whitespace().collect();
    if fields.len() != 5 {
        let found = json!(fields).to_string().replace(['"', ','], " ");
        let found: Vec<&str> = found.trim_matches(['[', ']']).split_whitespace().collect();
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            found.join(" ")
        ));
    }
    const BOUNDS: [(u32, u32); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
    for (field, (low, high)) in fields.iter().zip(BOUNDS) {
        for part in field.split(',') {
            check_range(part, low, high)?;
        }
    }
    Ok(())
}

fn check_range(part: &str, low: u32, high: u32) -> Result<(), String> {
    const NAMES: [&str; 19] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "sun",
        "mon", "tue", "wed", "thu", "fri", "sat",
    ];
    let (range, step) = part
        .split_once('/')
        .map_or((part, None), |(range, step)| (range, Some(step)));
    let number = |text: &str| {
        text.parse::<u32>().map_err(|_| {
            format!(
                "failed to parse int from {text}: strconv.Atoi: parsing {}: invalid syntax",
                crate::field::quoted(text)
            )
        })
    };
    if let Some(step) = step
        && number(step)? == 0
    {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    if range == "*" || range == "?" {
        return Ok(());
    }
    for end in range.split('-') {
        if NAMES.contains(&end.to_ascii_lowercase().as_str()) {
            continue;
        }
        let end = number(end)?;
        if end < low {
            return Err(format!(
                "beginning of range ({end}) below minimum ({low}): {part}"
            ));
        }
        if end > high {
            return Err(format!(
                "end of range ({end}) above maximum ({high}): {part}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules() {
        for good in ["* * * * *", "*/5 1-3 1,2 jan sun", "@daily", "0 0 1 1 0"] {
            assert_eq!(check_schedule(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "* * * *",
            "60 * * * *",
            "a * * * *",
            "@never",
            "*/0 * * * *",
        ] {
            assert!(check_schedule(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_job_selects_its_own_pods() {
        let mut job = json!({"metadata": {"name": "a", "uid": "u"}, "spec": {}});
        default_job(&mut job);
        generate_selector(&mut job);
        assert_eq!(
            job["spec"]["selector"]["matchLabels"],
            json!({"batch.kubernetes.io/controller-uid": "u"})
        );
        let labels = &job["spec"]["template"]["metadata"]["labels"];
        assert_eq!(labels["job-name"], "a");
        assert_eq!(labels.as_object().map(serde_json::Map::len), Some(4));
        assert_eq!(&job["metadata"]["labels"], labels);
    }
}
