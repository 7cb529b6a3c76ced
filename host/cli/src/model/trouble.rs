//! What is in the way of a deployment that its status does not tell: the plugin says what it
//! wants, and the agent what became of that.

use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt as _};
use reeve_api::Unit;

/// With these a unit waits for what is on its way, which the status tells of.
const ON_ITS_WAY: [&str; 2] = ["Waiting", "NotReady"];

/// What the agent says of a deployment, wherever the agent is. None where nothing is amiss, or
/// where Units may not be listed in all namespaces: who drives deployments need not have that
/// right.
pub(super) async fn of(client: &Client, deployment: &DynamicObject) -> Option<String> {
    let units: Api<Unit> = Api::all(client.clone());
    let units = units.list(&ListParams::default()).await.ok()?;
    told(&units.items, deployment)
}

fn told(units: &[Unit], deployment: &DynamicObject) -> Option<String> {
    let mut own = units.iter().filter(|unit| {
        let primary = &unit.spec.primary;
        primary.kind == "ModelDeployment"
            && primary.name == deployment.name_any()
            && primary.namespace == deployment.namespace()
    });
    own.find_map(|unit| {
        let conditions = &unit.status.as_ref()?.conditions;
        let ready = conditions.iter().find(|one| one.type_ == "Ready")?;
        let is_amiss = ready.status != "True" && !ON_ITS_WAY.contains(&ready.reason.as_str());
        let words: Vec<&str> = ready.message.split_whitespace().collect();
        is_amiss.then(|| format!("{}: {}", ready.reason, words.join(" ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_api::UnitSpec;
    use serde_json::{Value, json};

    fn deployment(namespace: &str) -> DynamicObject {
        let object = json!({
            "apiVersion": "models.reeve.dev/v1alpha1", "kind": "ModelDeployment",
            "metadata": {"name": "churn", "namespace": namespace}, "spec": {},
        });
        serde_json::from_value(object).unwrap()
    }

    fn unit(status: &Value) -> Unit {
        let mut unit = Unit::new("u", UnitSpec::default());
        unit.spec.primary.kind = "ModelDeployment".to_owned();
        unit.spec.primary.name = "churn".to_owned();
        unit.spec.primary.namespace = Some("models".to_owned());
        let mut condition = json!({
            "type": "Ready", "message": "Deployment models/churn:\n  denied",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        condition["status"] = status[0].clone();
        condition["reason"] = status[1].clone();
        unit.status = Some(serde_json::from_value(json!({"conditions": [condition]})).unwrap());
        unit
    }

    #[test]
    fn a_refusal_is_told_and_a_wait_is_not() {
        let refused = [unit(&json!(["False", "ApplyFailed"]))];
        assert_eq!(
            told(&refused, &deployment("models")).unwrap(),
            "ApplyFailed: Deployment models/churn: denied"
        );
        assert_eq!(told(&refused, &deployment("others")), None);
        for status in [["False", "Waiting"], ["True", "Running"]] {
            assert_eq!(told(&[unit(&json!(status))], &deployment("models")), None);
        }
    }
}
