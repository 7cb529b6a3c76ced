//! Makes a scenario smaller as long as it shows a difference.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use serde_json::Value;

use crate::accepted::Accepted;
use crate::compare::Difference;
use crate::corpus::{Scenario, Step};
use crate::servers::Servers;
use crate::suite::{Finding, compare, unaccepted};

/// How often a scenario is played to make it smaller.
const ATTEMPTS: usize = 120;

static NAMESPACES: AtomicUsize = AtomicUsize::new(0);

/// The smallest scenario found that still has a difference at this place which is not
/// accepted.
pub(crate) async fn shrink(
    servers: &Servers,
    accepted: &Accepted,
    scenario: &Scenario,
    at: &str,
) -> Result<Scenario> {
    let mut attempts = ATTEMPTS;
    let mut best = scenario.clone();
    let mut changed = true;
    while changed {
        changed = false;
        for candidate in smaller(&best) {
            if attempts == 0 {
                return Ok(best);
            }
            attempts -= 1;
            let namespace = format!("shrink{}x", NAMESPACES.fetch_add(1, Ordering::Relaxed));
            let findings = compare(servers, &candidate, &namespace).await?;
            let accepts = |name: &str, request: &str, difference: &Difference| {
                accepted.has(name, request, difference)
            };
            let findings = unaccepted(&candidate.name, findings, accepts);
            let here = |finding: &&Finding| finding.differences.iter().any(|d| d.at == at);
            if let Some(first) = findings.iter().find(here) {
                best = candidate;
                best.steps.truncate(first.step + 1);
                changed = true;
                break;
            }
        }
    }
    Ok(best)
}

/// Scenarios with one thing less, those that may lose most first.
fn smaller(scenario: &Scenario) -> Vec<Scenario> {
    let with = |steps: Vec<Step>| Scenario {
        name: scenario.name.clone(),
        alone: scenario.alone,
        steps,
    };
    let mut candidates = Vec::new();
    let mut chunk = scenario.steps.len() / 2;
    while chunk > 0 {
        for start in (0..scenario.steps.len()).step_by(chunk) {
            let mut steps = scenario.steps.clone();
            steps.drain(start..(start + chunk).min(steps.len()));
            if !steps.is_empty() {
                candidates.push(with(steps));
            }
        }
        chunk /= 2;
    }
    for (index, step) in scenario.steps.iter().enumerate() {
        for step in simpler(step) {
            let mut steps = scenario.steps.clone();
            steps[index] = step;
            candidates.push(with(steps));
        }
    }
    candidates
}

/// A step with one field less in its body.
fn simpler(step: &Step) -> Vec<Step> {
    let mut steps = Vec::new();
    let bodies = [
        |step: &mut Step| step.body.take(),
        |step: &mut Step| step.apply.take(),
        |step: &mut Step| step.merge.take(),
        |step: &mut Step| step.strategic.take(),
    ];
    let back = [
        |step: &mut Step, body| step.body = Some(body),
        |step: &mut Step, body| step.apply = Some(body),
        |step: &mut Step, body| step.merge = Some(body),
        |step: &mut Step, body| step.strategic = Some(body),
    ];
    for (take, put) in bodies.iter().zip(back) {
        let mut bare = step.clone();
        let Some(body) = take(&mut bare) else {
            continue;
        };
        for body in without_one(&body) {
            let mut step = bare.clone();
            put(&mut step, body);
            steps.push(step);
        }
    }
    if let Some(edit) = &step.edit {
        for pointer in edit.set.keys() {
            let mut edit = edit.clone();
            edit.set.remove(pointer);
            steps.push(Step {
                edit: Some(edit),
                ..step.clone()
            });
        }
    }
    if let Some(Value::Array(operations)) = &step.json {
        for index in 0..operations.len() {
            let mut operations = operations.clone();
            operations.remove(index);
            steps.push(Step {
                json: Some(operations.into()),
                ..step.clone()
            });
        }
    }
    steps
}

/// The values that are this one without one of its fields, however deep.
fn without_one(value: &Value) -> Vec<Value> {
    let Value::Object(fields) = value else {
        return Vec::new();
    };
    let mut values = Vec::new();
    for (key, inner) in fields {
        if matches!(key.as_str(), "apiVersion" | "kind" | "name") {
            continue;
        }
        let mut without = fields.clone();
        without.remove(key);
        if key != "metadata" {
            values.push(Value::Object(without));
        }
        for inner in without_one(inner) {
            let mut with = fields.clone();
            with.insert(key.clone(), inner);
            values.push(Value::Object(with));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_field_goes_at_a_time() {
        let value = json!({"kind": "A", "metadata": {"name": "a", "labels": {"x": "1"}}, "b": 1});
        assert_eq!(
            without_one(&value),
            [
                json!({"kind": "A", "metadata": {"name": "a", "labels": {"x": "1"}}}),
                json!({"kind": "A", "metadata": {"name": "a"}, "b": 1}),
                json!({"kind": "A", "metadata": {"name": "a", "labels": {}}, "b": 1}),
            ]
        );
    }
}
