//! The result document of the management agent: states, words and numbers.

use super::fleet::id_of;
use k8s_openapi::jiff::Timestamp;
use kube::api::DynamicObject;
use reeve_core::Digest;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How a deployment stands, as the plugin reports it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Standing {
    pub(super) id: String,
    pub(super) state: String,
    pub(super) status: String,
    pub(super) code: i64,
    pub(super) message: String,
    /// What the agent says is in the way.
    trouble: Option<String>,
    /// The model that is wanted, and the one that answers requests.
    pub(super) wanted: String,
    pub(super) current: Option<String>,
    pub(super) old_model_in_use: bool,
    /// Whether all this is of the spec as it is now, if that is said.
    is_current: Option<bool>,
    prediction_url: Option<String>,
    dashboard_url: Option<String>,
}

/// The number of what passes, and is to be looked at.
const WARNING: i64 = 2;
/// The number of what is not known.
const UNKNOWN: i64 = 3;

impl Standing {
    /// What is not reported yet is unknown.
    pub(super) fn of(deployment: &DynamicObject) -> Self {
        let status = &deployment.data["status"];
        let text = |field: &str| status[field].as_str().map(str::to_owned);
        let unknown = || "unknown".to_owned();
        let model = deployment.data.pointer("/spec/model/id");
        let is_current = is_reported(&deployment.data);
        Self {
            id: id_of(deployment),
            state: text("state").unwrap_or_else(unknown),
            status: text("status").unwrap_or_else(unknown),
            code: status["statusCode"].as_i64().unwrap_or(UNKNOWN),
            message: match (text("message"), is_current) {
                (Some(message), Some(false)) => {
                    format!("of the spec before the last change: {message}")
                }
                (Some(message), _) => message,
                (None, _) => {
                    "nothing is reported yet; `reeve get plugins` says whether the plugin \
                     models runs"
                        .to_owned()
                }
            },
            trouble: None,
            wanted: model.and_then(Value::as_str).unwrap_or_default().to_owned(),
            current: text("currentModelId"),
            old_model_in_use: status["oldModelInUse"] == true,
            is_current,
            prediction_url: text("predictionUrl"),
            dashboard_url: text("dashboardUrl"),
        }
    }

    /// Notes what the agent says is in the way, of which the plugin does not know: what passes
    /// by its word is not as it is wanted.
    pub(super) fn hindered_by(&mut self, trouble: String) {
        if self.status == "passing" {
            "warning".clone_into(&mut self.status);
            self.code = WARNING;
        }
        self.message = format!("{}; the agent: {trouble}", self.message);
        self.trouble = Some(trouble);
    }

    /// Whether the model that is wanted serves, and nothing is left to do.
    pub(super) fn is_serving(&self) -> bool {
        self.state == "ready"
            && self.status == "passing"
            && !self.old_model_in_use
            && self.current.as_deref() == Some(&self.wanted)
    }

    /// Whether no server answers since none is wanted.
    pub(super) fn is_idle(&self) -> bool {
        self.state == "ready" && self.status == "unknown" && !self.old_model_in_use
    }

    fn data(&self) -> Map<String, Value> {
        let mut data = Map::new();
        data.insert("oldModelInUse".to_owned(), json!(self.old_model_in_use));
        if let Some(is_current) = self.is_current {
            data.insert("isOfCurrentSpec".to_owned(), json!(is_current));
        }
        for (field, value) in [
            ("currentModelId", &self.current),
            ("predictionUrl", &self.prediction_url),
            ("dashboardUrl", &self.dashboard_url),
            ("agent", &self.trouble),
        ] {
            if let Some(value) = value {
                data.insert(field.to_owned(), json!(value));
            }
        }
        data
    }

    /// The result of an action on this deployment.
    pub(super) fn result(&self, took: Duration) -> Value {
        json!({
            "deploymentId": self.id,
            "status": self.status, "statusCode": self.code, "state": self.state,
            "msg": self.message, "duration": took.as_secs_f64(), "timestamp": now(),
            "data": self.data(),
        })
    }
}

/// Whether what is reported is of the spec as it is now. Older plugins do not say it.
pub(super) fn is_reported(deployment: &Value) -> Option<bool> {
    let observed = deployment["status"]["observed"].as_str()?;
    let spec = Digest::of(deployment["spec"].to_string().as_bytes()).to_string();
    let spec = spec.strip_prefix("sha256:").unwrap_or(&spec);
    Some(!observed.is_empty() && spec.starts_with(observed))
}

/// The result of listing all deployments: the worst of their statuses.
pub(super) fn of_all(standings: &[Standing], took: Duration) -> Value {
    let worst = standings.iter().max_by_key(|standing| badness(standing));
    let (status, code) = worst.map_or(("passing", 0), |one| (one.status.as_str(), one.code));
    let all: Map<String, Value> = standings
        .iter()
        .map(|one| (one.id.clone(), one.result(took)))
        .collect();
    json!({
        "status": status, "statusCode": code, "state": "ready",
        "msg": format!("{} deployments", standings.len()),
        "duration": took.as_secs_f64(), "timestamp": now(),
        "data": {"deploymentsStatus": all},
    })
}

/// How bad a status is, which its number does not say.
fn badness(standing: &Standing) -> u8 {
    match standing.status.as_str() {
        "passing" => 0,
        "warning" => 1,
        "failing" => 3,
        _ => 2,
    }
}

fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(status: &Value) -> Standing {
        let object = json!({
            "apiVersion": "models.reeve.dev/v1alpha1", "kind": "ModelDeployment",
            "metadata": {"name": "churn"},
            "spec": {"deploymentId": "64f0", "model": {"id": "m2"}}, "status": status,
        });
        Standing::of(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn what_the_plugin_reports_is_the_result() {
        let found = standing(&json!({
            "phase": "Replacing", "state": "replacingModel", "status": "passing", "statusCode": 0,
            "message": "building", "oldModelInUse": true, "currentModelId": "m1",
            "predictionUrl": "https://example.com/64f0",
        }));
        assert!(!found.is_serving());
        let mut result = found.result(Duration::from_millis(1500));
        assert!(result["timestamp"].as_i64().unwrap() > 1_700_000_000_000);
        result.as_object_mut().unwrap().remove("timestamp");
        let expected = json!({
            "deploymentId": "64f0", "status": "passing", "statusCode": 0,
            "state": "replacingModel", "msg": "building", "duration": 1.5,
            "data": {"oldModelInUse": true, "currentModelId": "m1", "predictionUrl": "https://example.com/64f0"},
        });
        assert_eq!(result, expected);
        let ready =
            json!({"state": "ready", "status": "passing", "statusCode": 0, "currentModelId": "m2"});
        assert!(standing(&ready).is_serving());
        let unknown = standing(&Value::Null);
        assert_eq!((unknown.state.as_str(), unknown.code), ("unknown", 3));
    }

    #[test]
    fn a_report_of_an_earlier_spec_is_told_as_one() {
        let of = |observed: &str| {
            standing(
                &json!({"state": "ready", "status": "passing", "statusCode": 0,
                "message": "the model serves", "observed": observed}),
            )
        };
        let spec = Digest::of(br#"{"deploymentId":"64f0","model":{"id":"m2"}}"#).to_string();
        let result = of(&spec[7..19]).result(Duration::ZERO);
        assert_eq!(result["data"]["isOfCurrentSpec"], true);
        assert_eq!(result["msg"], "the model serves");
        let result = of("0123456789ab").result(Duration::ZERO);
        assert_eq!(result["data"]["isOfCurrentSpec"], false);
        let told = "of the spec before the last change: the model serves";
        assert_eq!(result["msg"], told);
        let mut hindered = of("0123456789ab");
        hindered.hindered_by("ApplyFailed: no".to_owned());
        let result = hindered.result(Duration::ZERO);
        assert_eq!(result["data"]["agent"], "ApplyFailed: no");
        assert_eq!(
            (&result["status"], &result["statusCode"]),
            (&json!("warning"), &json!(2))
        );
        assert_eq!(result["msg"], format!("{told}; the agent: ApplyFailed: no"));
    }

    #[test]
    fn a_list_is_as_bad_as_the_worst_of_it() {
        let of = |status: &str, code: i64| {
            standing(&json!({"state": "ready", "status": status, "statusCode": code}))
        };
        let all = [
            of("passing", 0),
            of("failing", 1),
            of("warning", 2),
            of("unknown", 3),
        ];
        for (range, expected) in [(0..1, "passing"), (0..4, "failing"), (2..4, "unknown")] {
            let result = of_all(&all[range], Duration::ZERO);
            assert_eq!(result["status"], expected);
            assert!(result["data"]["deploymentsStatus"]["64f0"].is_object());
        }
        assert_eq!(of_all(&[], Duration::ZERO)["statusCode"], 0);
    }
}
