//! What a Job's policy makes of a pod that failed.

use serde_json::Value;

use crate::kinds::edit::{integer, items, text};
use crate::rest::meta;

/// What a failed pod means to its Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It counts towards the limit.
    Counted,
    /// It counts for nothing.
    Ignored,
    /// The Job has failed, and why.
    Fatal(String),
}

/// Judges by the first rule that fits. That an index has failed counts as any failure:
/// limits by index are not played.
pub(super) fn judge(job: &Value, pod: &Value) -> Judgement {
    let rules = items(&job["spec"]["podFailurePolicy"], "rules");
    for (index, rule) in rules.enumerate() {
        let Some(what) = fits(rule, pod) else {
            continue;
        };
        let action = text(rule, "action");
        return match action {
            "Ignore" => Judgement::Ignored,
            "FailJob" => {
                Judgement::Fatal(format!("{what} matching {action} rule at index {index}"))
            }
            _ => Judgement::Counted,
        };
    }
    Judgement::Counted
}

/// What of the pod fits a rule, as the real controller puts it.
fn fits(rule: &Value, pod: &Value) -> Option<String> {
    let name = format!(
        "{}/{}",
        meta::text(pod, "namespace"),
        meta::text(pod, "name")
    );
    if let Some(codes) = rule.get("onExitCodes").filter(|codes| !codes.is_null()) {
        let lists = ["containerStatuses", "initContainerStatuses"];
        let mut all = lists
            .into_iter()
            .flat_map(|list| items(&pod["status"], list));
        return all.find_map(|status| {
            let code = integer(&status["state"]["terminated"], "exitCode")?;
            let container = text(status, "name");
            is_meant(codes, container, code).then(|| {
                format!("Container {container} for pod {name} failed with exit code {code}")
            })
        });
    }
    let mut patterns = items(rule, "onPodConditions");
    patterns.find_map(|pattern| {
        let kind = text(pattern, "type");
        let mut conditions = items(&pod["status"], "conditions");
        let known = conditions.find(|known| text(known, "type") == kind)?;
        (text(known, "status") == text(pattern, "status"))
            .then(|| format!("Pod {name} has condition {kind}"))
    })
}

/// A container that ended well is never meant.
fn is_meant(codes: &Value, container: &str, code: i64) -> bool {
    let wanted = text(codes, "containerName");
    let mut values = items(codes, "values").filter_map(Value::as_i64);
    let is_named = values.any(|value| value == code);
    let fits = match text(codes, "operator") {
        "In" => is_named,
        "NotIn" => !is_named,
        _ => false,
    };
    code != 0 && fits && (wanted.is_empty() || wanted == container)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(rules: &Value) -> Judgement {
        let job = json!({"spec": {"podFailurePolicy": {"rules": rules}}});
        let ended = |name: &str, code: i64| json!({"name": name, "state": {"terminated": {"exitCode": code}}});
        let pod = json!({
            "metadata": {"namespace": "n", "name": "p"},
            "status": {
                "initContainerStatuses": [ended("fetch", 65)],
                "containerStatuses": [ended("side", 0), {"name": "main", "state": {"waiting": {}}}],
                "conditions": [{"type": "DisruptionTarget", "status": "True"}],
            },
        });
        judge(&job, &pod)
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let codes = |operator: &str, values: &[i64], container: Option<&str>| json!({"operator": operator, "values": values, "containerName": container});
        let disrupted = |status: &str| json!([{"type": "DisruptionTarget", "status": status}]);
        let fatal = |what: &str, index: usize| {
            Judgement::Fatal(format!("{what} matching FailJob rule at index {index}"))
        };
        let fetch = "Container fetch for pod n/p failed with exit code 65";
        for (rules, expected) in [
            (json!([]), Judgement::Counted),
            (json!(null), Judgement::Counted),
            (
                json!([{"action": "FailJob", "onExitCodes": codes("In", &[1, 65], None)}]),
                fatal(fetch, 0),
            ),
            (
                json!([
                    {"action": "FailJob", "onExitCodes": codes("In", &[65], Some("main"))},
                    {"action": "FailJob", "onExitCodes": codes("NotIn", &[1], Some("fetch"))},
                ]),
                fatal(fetch, 1),
            ),
            // Nothing fails with 0.
            (
                json!([{"action": "FailJob", "onExitCodes": codes("NotIn", &[65], None)}]),
                Judgement::Counted,
            ),
            (
                json!([
                    {"action": "FailJob", "onPodConditions": disrupted("False")},
                    {"action": "Ignore", "onPodConditions": disrupted("True")},
                    {"action": "FailJob", "onExitCodes": codes("In", &[65], None)},
                ]),
                Judgement::Ignored,
            ),
            (
                json!([{"action": "FailJob", "onPodConditions": disrupted("True")}]),
                fatal("Pod n/p has condition DisruptionTarget", 0),
            ),
            (
                json!([
                    {"action": "Count", "onExitCodes": codes("In", &[65], None)},
                    {"action": "Ignore", "onPodConditions": disrupted("True")},
                ]),
                Judgement::Counted,
            ),
        ] {
            assert_eq!(judged(&rules), expected, "{rules}");
        }
    }
}
