//! PodDisruptionBudgets: how many pods may be taken away at present.

use serde_json::Value;

use super::conditions::{self, Condition};
use super::context::{Context, MANAGER};
use super::index::controller;
use super::replica_set::is_ready;
use super::tables::{DISRUPTION_BUDGETS, PODS};
use super::template;
use crate::kinds::edit::{integer, set, text_at};
use crate::rest::meta;
use crate::status::ApiError;

pub(super) fn reconcile(context: &mut Context<'_>, budget: &Value) -> Result<(), ApiError> {
    if meta::is_terminating(budget) {
        return Ok(());
    }
    let selector = template::selector(budget);
    let pods: Vec<Value> = context
        .list(PODS, meta::text(budget, "namespace"))
        .into_iter()
        .filter(|pod| !template::is_over(pod))
        .filter(|pod| {
            selector
                .as_ref()
                .is_some_and(|s| s.matches(template::labels(pod)))
        })
        .collect();
    let (expected, desired) = wanted(context, budget, &pods);
    let healthy = pods
        .iter()
        .filter(|pod| is_ready(pod) && !meta::is_terminating(pod));
    let healthy = i64::try_from(healthy.count()).unwrap_or(i64::MAX);
    let allowed = if expected > 0 {
        (healthy - desired).max(0)
    } else {
        0
    };
    let now = context.timestamp();
    let generation = meta::generation(budget);
    context.change_status(DISRUPTION_BUDGETS, budget, MANAGER, |budget| {
        let Some(status) = budget.get_mut("status") else {
            return;
        };
        for (field, number) in [
            ("currentHealthy", healthy),
            ("desiredHealthy", desired),
            ("disruptionsAllowed", allowed),
            ("expectedPods", expected),
            ("observedGeneration", generation),
        ] {
            set(status, field, number);
        }
        let condition = Condition {
            kind: "DisruptionAllowed",
            status: allowed > 0,
            reason: if allowed > 0 {
                "SufficientPods"
            } else {
                "InsufficientPods"
            },
            message: "",
        };
        conditions::set_standard(status, condition, generation, &now);
    })
}

/// How many pods there should be, and how many of them have to be healthy.
fn wanted(context: &Context<'_>, budget: &Value, pods: &[Value]) -> (i64, i64) {
    let count = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let spec = &budget["spec"];
    if let Some(most) = spec.get("maxUnavailable") {
        let expected = scale(context, pods);
        return (
            expected,
            (expected - template::share(Some(most), expected, true)).max(0),
        );
    }
    match spec.get("minAvailable") {
        Some(Value::String(_)) => {
            let expected = scale(context, pods);
            (
                expected,
                template::share(spec.get("minAvailable"), expected, true),
            )
        }
        least => (count, template::share(least, count, true)),
    }
}

/// The pods that the controllers of these pods want.
fn scale(context: &Context<'_>, pods: &[Value]) -> i64 {
    let mut seen: Vec<Value> = Vec::new();
    for pod in pods {
        let mut top = None;
        let mut next = controller(pod);
        while let Some(found) = next
            .and_then(|c| c.target)
            .and_then(|target| context.get(&target.table, &target.key))
        {
            next = controller(&found);
            top = Some(found);
        }
        let top = top.unwrap_or_else(|| pod.clone());
        let uid = text_at(&top, "/metadata/uid").to_owned();
        if !seen
            .iter()
            .any(|known| text_at(known, "/metadata/uid") == uid)
        {
            seen.push(top);
        }
    }
    let replicas = |object: &Value| {
        object
            .get("spec")
            .and_then(|spec| integer(spec, "replicas"))
            .unwrap_or(1)
    };
    seen.iter().map(replicas).sum()
}
