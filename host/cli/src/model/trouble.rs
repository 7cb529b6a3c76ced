//! What is in the way of a deployment that its status does not tell: the plugin says what it
//! wants, and the agent what became of that.

use crate::output::on_one_line;
use anyhow::Context as _;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt as _};
use reeve_api::Unit;

/// With these a unit waits for what is on its way, or for what has failed: how builds and servers
/// are, the status tells.
const TOLD: [&str; 4] = ["Waiting", "NotReady", "Degraded", "WaveTimedOut"];

/// Units that are asked for at once.
const PAGE: u32 = 500;

/// What the agent says of a deployment, wherever the agent is. None where nothing is amiss, or
/// where Units may not be listed in all namespaces: who drives deployments need not have that
/// right.
///
/// # Errors
///
/// When it cannot be told for another reason.
pub(super) async fn of(
    client: &Client,
    deployment: &DynamicObject,
) -> anyhow::Result<Option<String>> {
    let units: Api<Unit> = Api::all(client.clone());
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = match units.list(&page).await {
            Ok(list) => list,
            Err(kube::Error::Api(status)) if [403, 404].contains(&status.code) => return Ok(None),
            Err(error) => return Err(error).context("cannot list units"),
        };
        if let Some(trouble) = told(&list.items, deployment) {
            return Ok(Some(trouble));
        }
        match list.metadata.continue_ {
            Some(next) if !next.is_empty() => page = page.continue_token(&next),
            _ => return Ok(None),
        }
    }
}

fn told(units: &[Unit], deployment: &DynamicObject) -> Option<String> {
    let mut own = units.iter().filter(|unit| {
        // No other object has its uid, of whatever kind.
        deployment
            .uid()
            .is_some_and(|uid| unit.spec.primary.uid == uid)
    });
    own.find_map(|unit| {
        let conditions = &unit.status.as_ref()?.conditions;
        let ready = conditions.iter().find(|one| one.type_ == "Ready")?;
        let is_amiss = ready.status != "True" && !TOLD.contains(&ready.reason.as_str());
        is_amiss.then(|| format!("{}: {}", ready.reason, on_one_line(&ready.message)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_api::UnitSpec;
    use serde_json::{Value, json};

    fn deployment(uid: &str) -> DynamicObject {
        let object = json!({
            "apiVersion": "models.reeve.dev/v1alpha1", "kind": "ModelDeployment",
            "metadata": {"name": "churn", "namespace": "models", "uid": uid}, "spec": {},
        });
        serde_json::from_value(object).unwrap()
    }

    fn unit(status: &Value) -> Unit {
        let mut unit = Unit::new("u", UnitSpec::default());
        unit.spec.primary.kind = "ModelDeployment".to_owned();
        unit.spec.primary.name = "churn".to_owned();
        unit.spec.primary.namespace = Some("models".to_owned());
        unit.spec.primary.uid = "1".to_owned();
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
    fn a_refusal_is_told_and_what_the_status_tells_is_not() {
        for reason in ["ApplyFailed", "Forbidden", "Conflict", "Suspended"] {
            let refused = [unit(&json!(["False", reason]))];
            assert_eq!(
                told(&refused, &deployment("1")).unwrap(),
                format!("{reason}: Deployment models/churn: denied")
            );
            // One that was made anew under its name.
            assert_eq!(told(&refused, &deployment("2")), None);
        }
        for status in [
            ["False", "Waiting"],
            ["False", "Degraded"],
            ["False", "WaveTimedOut"],
            ["True", "Running"],
        ] {
            assert_eq!(told(&[unit(&json!(status))], &deployment("1")), None);
        }
    }
}
