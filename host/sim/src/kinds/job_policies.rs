//! When a Job gives up, and when it is done: its policies, and the limits of those whose
//! pods have an index.

use std::collections::BTreeSet;

use serde_json::Value;

use super::edit::{integer, items, object, present, text};
use super::job_status::count_indexes;
use super::meta::validate_nonnegative;
use super::references;
use crate::field::{Errors, FieldError, Path};
use crate::names;

/// The most rules of a policy, and the most conditions that one of them names.
const MOST_RULES: usize = 20;
/// The most exit codes that a rule names.
const MOST_CODES: usize = 255;
/// The longest list of indexes that a rule names, in bytes.
const LONGEST_INDEXES: usize = 64 * 1024;
/// Limits of an indexed Job: they keep its status small.
const MOST_PARALLEL: i64 = 100_000;
const MOST_FAILED: i64 = 100_000;
/// Beyond as many completions the lower limits count.
const MANY: i64 = 100_000;
const LOWER: i64 = 10_000;

/// Checks what goes with the mode of completion.
pub(super) fn validate_mode(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    const PARALLELISM: &str = "parallelism";
    const FAILED: &str = "maxFailedIndexes";
    const PER_INDEX: &str = "backoffLimitPerIndex";
    let (completions, parallelism) = (integer(spec, "completions"), integer(spec, PARALLELISM));
    let (failed, per_index) = (integer(spec, FAILED), integer(spec, PER_INDEX));
    let mode = text(spec, "completionMode");
    let mut refuse = |field: &str, value: i64, why: String| {
        errors.push(FieldError::invalid(&path.child(field), &value.into(), why));
    };
    if mode == "NonIndexed" || mode.is_empty() {
        for (field, value) in [(PER_INDEX, per_index), (FAILED, failed)] {
            if let Some(value) = value {
                refuse(field, value, "requires indexed completion mode".to_owned());
            }
        }
    }
    if mode != "Indexed" {
        return;
    }
    if let Some(parallelism) = parallelism.filter(|count| *count > MOST_PARALLEL) {
        let why = format!(
            "must be less than or equal to {MOST_PARALLEL} when completion mode is Indexed"
        );
        refuse(PARALLELISM, parallelism, why);
    }
    if let Some(failed) = failed {
        if completions.is_some_and(|completions| failed > completions) {
            let why = "must be less than or equal to completions".to_owned();
            refuse(FAILED, failed, why);
        }
        if failed > MOST_FAILED {
            let why = format!("must be less than or equal to {MOST_FAILED}");
            refuse(FAILED, failed, why);
        }
    }
    if completions.is_none_or(|completions| completions <= MANY) || per_index.is_none() {
        return;
    }
    let why = || {
        format!(
            "must be less than or equal to {LOWER} when completions are above {MANY} and used with backoff limit per index"
        )
    };
    let above = |value: &i64| *value > LOWER;
    let (parallelism, above_failed) = (parallelism.filter(above), failed.filter(above));
    if failed.is_none() {
        let why = format!("must be specified when completions is above {MANY}");
        errors.push(FieldError::required(&path.child(FAILED), why));
    }
    for (field, value) in [(PARALLELISM, parallelism), (FAILED, above_failed)] {
        if let Some(value) = value {
            errors.push(FieldError::invalid(
                &path.child(field),
                &value.into(),
                why(),
            ));
        }
    }
}

/// Checks the policies of a Job.
pub(super) fn validate(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    let failure = object(spec, "podFailurePolicy");
    if let Some(policy) = failure {
        validate_failure(&path.child("podFailurePolicy"), spec, policy, errors);
    }
    if let Some(policy) = object(spec, "successPolicy") {
        let path = path.child("successPolicy");
        if text(spec, "completionMode") == "Indexed" {
            validate_success(&path, spec, policy, errors);
        } else {
            let why = "requires indexed completion mode";
            errors.push(FieldError::invalid(&path, policy, why));
        }
    }
    let replacement = if failure.is_some() {
        &["Failed"][..]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    let path = path.child("podReplacementPolicy");
    if let Some(given) = present(spec, "podReplacementPolicy")
        && !given
            .as_str()
            .is_some_and(|given| replacement.contains(&given))
    {
        errors.push(FieldError::not_supported(&path, given, replacement));
    }
}

fn validate_failure(path: &Path<'_>, spec: &Value, policy: &Value, errors: &mut Errors) {
    let list = path.child("rules");
    let count = items(policy, "rules").count();
    if count > MOST_RULES {
        errors.push(FieldError::too_many(&list, count, MOST_RULES));
    }
    let pod = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    let containers: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| items(pod, list))
        .map(|container| text(container, "name"))
        .collect();
    for (index, rule) in items(policy, "rules").enumerate() {
        let path = list.index(index);
        validate_action(&path.child("action"), spec, text(rule, "action"), errors);
        let codes = object(rule, "onExitCodes");
        let conditions = items(rule, "onPodConditions").count();
        if let Some(codes) = codes {
            validate_codes(&path.child("onExitCodes"), codes, &containers, errors);
        }
        if conditions > 0 {
            validate_conditions(&path.child("onPodConditions"), rule, conditions, errors);
        }
        let why = match (codes.is_some(), conditions > 0) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        errors.push(FieldError::invalid_unshown(&path, why));
    }
}

/// Pushes an error where a text is missing or none of `values`.
fn choose(path: &Path<'_>, given: &str, values: &[&str], errors: &mut Errors) {
    if given.is_empty() {
        let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        let why = format!("valid values: [{}]", values.join(" "));
        errors.push(FieldError::required(path, why));
    } else if !values.contains(&given) {
        errors.push(FieldError::not_supported(path, &given.into(), values));
    }
}

fn validate_action(path: &Path<'_>, spec: &Value, action: &str, errors: &mut Errors) {
    if action == "FailIndex" {
        if spec.get("backoffLimitPerIndex").is_none_or(Value::is_null) {
            let why = "requires the backoffLimitPerIndex to be set";
            errors.push(FieldError::invalid_str(path, action, why));
        }
        return;
    }
    choose(
        path,
        action,
        &["Count", "FailIndex", "FailJob", "Ignore"],
        errors,
    );
}

fn validate_codes(
    path: &Path<'_>,
    codes: &Value,
    containers: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    let operator = text(codes, "operator");
    choose(&path.child("operator"), operator, &["In", "NotIn"], errors);
    if let Some(name) = codes.get("containerName").and_then(Value::as_str)
        && !containers.contains(name)
    {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid_str(
            &path.child("containerName"),
            name,
            why,
        ));
    }
    let path = path.child("values");
    let values: Vec<i64> = items(codes, "values").filter_map(Value::as_i64).collect();
    let all = codes.get("values").unwrap_or(&Value::Null);
    if values.is_empty() {
        errors.push(FieldError::invalid(
            &path,
            all,
            "at least one value is required",
        ));
    } else if values.len() > MOST_CODES {
        errors.push(FieldError::too_many(&path, values.len(), MOST_CODES));
    }
    let mut seen = BTreeSet::new();
    for (index, code) in values.iter().enumerate() {
        let path = path.index(index);
        if operator == "In" && *code == 0 {
            let why = "must not be 0 for the In operator";
            errors.push(FieldError::invalid(&path, &(*code).into(), why));
        }
        if !seen.insert(code) {
            errors.push(FieldError::duplicate(&path, &(*code).into()));
        }
    }
    if !values.is_sorted() {
        errors.push(FieldError::invalid(&path, all, "must be ordered"));
    }
}

fn validate_conditions(path: &Path<'_>, rule: &Value, count: usize, errors: &mut Errors) {
    if count > MOST_RULES {
        errors.push(FieldError::too_many(path, count, MOST_RULES));
    }
    for (index, pattern) in items(rule, "onPodConditions").enumerate() {
        let path = path.index(index);
        let kind = text(pattern, "type");
        for wrong in names::qualified_name(kind) {
            errors.push(FieldError::invalid_str(&path.child("type"), kind, wrong));
        }
        let status = text(pattern, "status");
        choose(
            &path.child("status"),
            status,
            &["False", "True", "Unknown"],
            errors,
        );
    }
}

fn validate_success(path: &Path<'_>, spec: &Value, policy: &Value, errors: &mut Errors) {
    let list = path.child("rules");
    let count = items(policy, "rules").count();
    if count == 0 {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&list, why));
    }
    if count > MOST_RULES {
        errors.push(FieldError::too_many(&list, count, MOST_RULES));
    }
    let completions = integer(spec, "completions").unwrap_or(0);
    for (index, rule) in items(policy, "rules").enumerate() {
        let path = list.index(index);
        let indexes = rule.get("succeededIndexes").and_then(Value::as_str);
        let wanted = integer(rule, "succeededCount");
        if indexes.is_none() && wanted.is_none() {
            let why = "at least one of succeededCount or succeededIndexes must be specified";
            errors.push(FieldError::required(&path, why));
        }
        let mut named = 0;
        if let Some(indexes) = indexes {
            let path = path.child("succeededIndexes");
            if indexes.len() > LONGEST_INDEXES {
                errors.push(FieldError::too_long(&path, LONGEST_INDEXES));
            }
            match count_indexes(indexes, completions) {
                Ok(count) => named = count,
                Err(why) => {
                    let why = format!("error parsing succeededIndexes: {why}");
                    errors.push(FieldError::invalid_str(&path, indexes, why));
                }
            }
        }
        let Some(wanted) = wanted else { continue };
        validate_nonnegative(&path, rule, "succeededCount", errors);
        let path = path.child("succeededCount");
        let mut most = |limit: i64, of: &str| {
            if wanted > limit {
                let why = format!("must be less than or equal to {limit} ({of})");
                errors.push(FieldError::invalid(&path, &wanted.into(), why));
            }
        };
        most(completions, "the number of specified completions");
        if indexes.is_some() {
            most(
                named,
                "the number of indexes in the specified succeededIndexes field",
            );
        }
    }
}

/// Checks who else than the cluster runs a Job.
pub(super) fn validate_manager(path: &Path<'_>, spec: &Value, errors: &mut Errors) {
    const LONGEST: usize = 63;
    let Some(manager) = spec.get("managedBy").and_then(Value::as_str) else {
        return;
    };
    let path = path.child("managedBy");
    references::validate_domain_path(&path, manager, errors);
    if manager.len() > LONGEST {
        errors.push(FieldError::too_long(&path, LONGEST));
    }
}
