//! Jobs and CronJobs.

use serde_json::{Map, Value, json};

use super::edit::{
    copy, default_to, ensure_object, flag, integer, items, items_mut, present, remove, set, text,
    text_at,
};
use super::gated::pod_gated;
use super::meta::validate_immutable;
use super::pod::{default_template, pod_atomic_quantities, pod_quantities};
use super::pod_validation::{supported, validate_counts, validate_template};
use super::row::Kind;
use super::verbs::Subresource;
use super::{job_policies, job_status, quantities, schedule, selectors};
use crate::field::{Errors, FieldError, Path};
use crate::names;
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
        .atomic_quantities(pod_atomic_quantities!(
            "spec.jobTemplate.spec.template.spec."
        ))
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
        .atomic_quantities(pod_atomic_quantities!("spec.template.spec."))
        .gated(pod_gated!("spec.template.spec."))
        .defaulted(default_job)
        .filled_late(("/metadata/labels", "/spec/template/metadata/labels"))
        .prepared(generate_selector, |_, _| {})
        .validated(validate_job)
        .update_validated(validate_job_update)
        .status_validated(job_status::validate),
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
            keep_or_set(template, key, value);
        }
    }
    if let Some(selector) =
        ensure_object(spec, "selector").and_then(|selector| ensure_object(selector, "matchLabels"))
    {
        keep_or_set(selector, labels[0].0, &uid);
    }
}

/// What a client has given instead is refused later.
fn keep_or_set(labels: &mut Value, key: &str, value: &str) {
    if labels.get(key).is_none() {
        set(labels, key, value);
    }
}

fn validate_job(job: &Value, errors: &mut Errors) {
    validate_generated(job, errors);
    validate_own_spec(job, errors);
    validate_hostnames(job, errors);
}

/// The pods of an indexed Job are called on the network after it and their index.
fn validate_hostnames(job: &Value, errors: &mut Errors) {
    let spec = job.get("spec").unwrap_or(&Value::Null);
    let completions = integer(spec, "completions").unwrap_or(0);
    if text(spec, "completionMode") != "Indexed" || completions <= 0 {
        return;
    }
    let name = text_at(job, "/metadata/name");
    let longest = format!("{name}-{}", completions - 1);
    if !names::dns1123_label(&longest).is_empty() {
        let meta = Path::new("metadata");
        let why = format!("will not able to create pod with invalid DNS label: {longest}");
        errors.push(FieldError::invalid_str(&meta.child("name"), name, why));
    }
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
    if spec.get("maxFailedIndexes").is_some() && spec.get("backoffLimitPerIndex").is_none() {
        let why = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(
            &path.child("backoffLimitPerIndex"),
            why,
        ));
    }
    job_policies::validate_manager(path, spec, errors);
    let modes = ["NonIndexed", "Indexed"];
    supported(path, spec, "completionMode", &modes, errors);
    if text(spec, "completionMode") == "Indexed" && spec.get("completions").is_none() {
        errors.push(FieldError::required(
            &path.child("completions"),
            "when completion mode is Indexed",
        ));
    }
    job_policies::validate_mode(path, spec, errors);
    job_policies::validate(path, spec, errors);
    let template = spec.get("template").unwrap_or(&Value::Null);
    let template_path = path.child("template");
    validate_template(&template_path, template, errors);
    let policy = text_at(template, "/spec/restartPolicy");
    let policy_path = template_path.child("spec.restartPolicy");
    match policy {
        "OnFailure" if spec.get("podFailurePolicy").is_some_and(Value::is_object) => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(FieldError::invalid_str(&policy_path, policy, why));
        }
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
    let before = old.get("spec").unwrap_or(&Value::Null);
    validate_completions(spec, before, errors);
    validate_immutable(&SPEC.child("selector"), spec, before, "selector", errors);
    validate_template_kept(spec, old, errors);
    for field in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        validate_immutable(&SPEC.child(field), spec, before, field, errors);
    }
}

/// An indexed Job may be resized together with its parallelism.
fn validate_completions(spec: &Value, before: &Value, errors: &mut Errors) {
    const FIELD: &str = "completions";
    let path = SPEC.child(FIELD);
    if text(spec, "completionMode") != "Indexed" {
        validate_immutable(&path, spec, before, FIELD, errors);
    } else if let Some(completions) = spec
        .get(FIELD)
        .filter(|_| spec.get(FIELD) != before.get(FIELD))
        && spec.get("parallelism") != Some(completions)
    {
        let why = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid(&path, completions, why));
    }
}

/// The template stays as it is. While the Job is suspended and has no pods, it may say
/// otherwise where they are to run and what they are to get.
fn validate_template_kept(spec: &Value, old: &Value, errors: &mut Errors) {
    let null = Value::Null;
    let before = old.get("spec").unwrap_or(&null);
    let status = old.get("status").unwrap_or(&null);
    let is_suspended = items(status, "conditions")
        .any(|given| text(given, "type") == "Suspended" && text(given, "status") == "True");
    let is_idle = integer(status, "active").unwrap_or(0) == 0;
    let never_started = present(status, "startTime").is_none();
    if !(flag(before, "suspend") && is_idle && (never_started || is_suspended)) {
        if !is_same_template(
            spec.get("template").unwrap_or(&null),
            before.get("template").unwrap_or(&null),
        ) {
            validate_immutable(&SPEC.child("template"), spec, before, "template", errors);
        }
        return;
    }
    let wanted = spec.get("template").unwrap_or(&null);
    let mut kept = before.get("template").cloned().unwrap_or_default();
    let Some(pod) = kept.get_mut("spec") else {
        return;
    };
    let asked = wanted.get("spec").unwrap_or(&null);
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        copy(pod, asked, field);
    }
    let mut affinity = pod.get("affinity").cloned().unwrap_or(json!({}));
    copy(
        &mut affinity,
        asked.get("affinity").unwrap_or(&null),
        "nodeAffinity",
    );
    if asked.get("affinity").is_none()
        && present(&affinity, "podAffinity").is_none()
        && present(&affinity, "podAntiAffinity").is_none()
    {
        remove(pod, "affinity");
    } else {
        set(pod, "affinity", affinity);
    }
    for list in ["containers", "initContainers"] {
        let asked: Vec<&Value> = items(asked, list).collect();
        for (container, asked) in items_mut(pod, list).zip(asked) {
            if text(container, "name") == text(asked, "name") {
                copy(container, asked, "resources");
            }
        }
    }
    // Only the spec counts.
    let of = |template: &Value| json!({"spec": template.get("spec")});
    if !is_same_template(&of(wanted), &of(&kept)) {
        validate_immutable(&SPEC.child("template.spec"), wanted, &kept, "spec", errors);
    }
}

/// Whether two templates are the same, however their quantities are written.
fn is_same_template(one: &Value, other: &Value) -> bool {
    let of = |template: &Value| json!({ "template": template });
    quantities::is_same_spec(("batch", "v1"), "Job", &of(one), &of(other))
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
    } else {
        schedule::validate(&path, schedule, errors);
    }
    validate_counts(&SPEC, spec, &["startingDeadlineSeconds"], errors);
    if let Some(zone) = spec.get("timeZone").and_then(Value::as_str) {
        schedule::validate_zone(&SPEC.child("timeZone"), zone, errors);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_indexes_have_names_on_the_network() {
        let complaints = |name: &str, mode: &str, completions: i64| {
            let spec = json!({"completionMode": mode, "completions": completions});
            let job = json!({"metadata": {"name": name}, "spec": spec});
            let mut errors = Errors::new();
            validate_hostnames(&job, &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let none: [String; 0] = [];
        assert_eq!(complaints("a", "Indexed", 3), none);
        assert_eq!(complaints("a.b", "NonIndexed", 3), none);
        assert_eq!(complaints("a.b", "Indexed", 0), none);
        let wrong = "metadata.name: Invalid value: \"a.b\": will not able to create pod with \
                     invalid DNS label: a.b-2";
        assert_eq!(complaints("a.b", "Indexed", 3), [wrong]);
        // What fits with few digits does not with many.
        let long = "a".repeat(61);
        assert_eq!(complaints(&long, "Indexed", 10), none);
        assert_eq!(complaints(&long, "Indexed", 11).len(), 1);
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
        assert_eq!(job["metadata"].get("labels"), None);
    }

    #[test]
    fn a_job_without_labels_has_those_of_its_pods_when_it_is_read() {
        let kind = ROWS.iter().find(|row| row.kind == "Job").unwrap();
        let made = |metadata: Value, template: Value| {
            let mut job =
                json!({"metadata": metadata, "spec": {"template": {"metadata": template}}});
            job["metadata"]["name"] = json!("a");
            job["metadata"]["uid"] = json!("u");
            let shares = kind.shares(&job);
            kind.default(&mut job);
            kind.prepare_create(&mut job);
            if shares {
                kind.share(&mut job);
            }
            let filled = kind.fill_late(&mut job).is_some();
            let labels = &job["metadata"]["labels"];
            let is_same = *labels == job["spec"]["template"]["metadata"]["labels"];
            (filled, is_same, labels.as_object().map(Map::len))
        };
        let own = json!({"labels": {"x": "y"}});
        assert_eq!(made(json!({}), json!({})), (true, true, Some(4)));
        assert_eq!(made(json!({}), own.clone()), (false, true, Some(5)));
        assert_eq!(made(own.clone(), json!({})), (false, false, Some(1)));
        assert_eq!(made(own.clone(), own), (false, false, Some(1)));
    }
}
