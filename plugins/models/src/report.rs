//! What people and supervisors are told: the status of a ModelDeployment.

use reeve_sdk::prelude::*;

use crate::names::{MODEL_DEPLOYMENT, Place, object};
use crate::serve::prediction_url;
use crate::settings::Root;
use crate::state::{Decision, Deploy, Health};

/// What is told beside the decision.
pub(crate) struct Facts<'a> {
    /// Id of the deployment, if it is a usable one.
    pub(crate) id: Option<&'a str>,
    pub(crate) root: Option<&'a Root<'a>>,
    /// The build key of what is wanted.
    pub(crate) key: Option<&'a str>,
    /// The image that serves, or is to.
    pub(crate) image: Option<String>,
    /// The Job of what is wanted, while its image is not known.
    pub(crate) job: Option<&'a str>,
    /// The relaunch and the number of servers that the Deployment is of, so that whoever asked
    /// for another sees when it is.
    pub(crate) relaunch: Option<&'a str>,
    pub(crate) replicas: Option<i64>,
    /// The spec that all this is of, in short. Not its generation: that changes with the status.
    pub(crate) observed: String,
}

/// The status, in the words and numbers of the management agent. Fields of the
/// ModelDeployment that belong to this plugin; the others are left alone.
pub(crate) fn status(place: &Place, decision: &Decision, facts: &Facts<'_>) -> Value {
    let mut status = json!({
        "phase": decision.phase.name(),
        "state": decision.phase.state(),
        "status": decision.health.name(),
        "statusCode": decision.health.code(),
        "reason": decision.reason,
        "message": decision.message,
        "oldModelInUse": decision.old_model_in_use,
        "observed": facts.observed,
    });
    for (field, value) in [
        ("currentModelId", decision.current_model.clone()),
        ("predictionUrl", url(decision, facts.root, facts.id)),
        ("buildKey", facts.key.map(str::to_owned)),
        ("image", facts.image.clone()),
        ("job", facts.job.map(str::to_owned)),
        ("relaunch", facts.relaunch.map(str::to_owned)),
    ] {
        if let Some(value) = value {
            status[field] = json!(value);
        }
    }
    if let Some(replicas) = facts.replicas {
        status["replicas"] = json!(replicas);
    }
    object(
        &place.object(&MODEL_DEPLOYMENT, &place.name),
        json!({"annotations": {"reeve.dev/apply": "Contribute"}}),
        "status",
        status,
    )
}

/// Where predictions are asked for, while something serves.
pub(crate) fn url(
    decision: &Decision,
    root: Option<&Root<'_>>,
    id: Option<&str>,
) -> Option<String> {
    match (&decision.deploy, root, id) {
        (Deploy::Nothing, ..) => None,
        (_, Some(root), Some(id)) => Some(prediction_url(root, id)),
        _ => None,
    }
}

/// A condition and an event, where somebody should look.
pub(crate) fn tell(outcome: Outcome, decision: &Decision) -> Outcome {
    if !matches!(decision.health, Health::Failing | Health::Warning) {
        return outcome;
    }
    let mut problems = Problems::new();
    problems.add(&decision.message);
    outcome.problems("Serving", decision.reason, &problems)
}
