//! What a supervisor is told: one report whenever a deployment of its prediction
//! environment comes into another state.
//!
//! What it was told last is the fact of the effect, so nothing is told twice, and what
//! has happened is what differs from that.

mod template;

use reeve_sdk::prelude::*;

use crate::config::{Config, Events, Report};
use crate::state::{Decision, Health, Phase};

/// The effect, and its key: there is one for each deployment.
const NAME: &str = "report";

/// What says in which state a deployment is. The words for it may change all the time.
const STATE: [&str; 8] = [
    "environmentId",
    "deploymentId",
    "state",
    "status",
    "reason",
    "modelId",
    "currentModelId",
    "predictionUrl",
];

/// Which deployment a report is about.
pub(crate) struct About<'a> {
    pub(crate) environment: &'a str,
    pub(crate) deployment: &'a str,
    pub(crate) model: Option<&'a str>,
    pub(crate) prediction_url: Option<String>,
}

/// What is asked of the operator: nothing where nobody is told anything.
pub(crate) fn declared(config: &Config, manifest: Manifest) -> Result<Manifest, ConfigError> {
    let report = &config.supervisor.report;
    if report.url.is_empty() {
        return Ok(manifest);
    }
    let at = |field: &str| format!("/supervisor/report/{field}");
    let is_url = ["https://", "http://"].iter().any(|scheme| {
        let rest = report.url.strip_prefix(scheme);
        rest.is_some_and(|rest| !rest.starts_with(['/', '{']))
    });
    if !is_url || template::base(&report.url).is_none() {
        return Err(ConfigError::new(
            at("url"),
            "expected an http or https URL with a path, such as \
             https://app.datarobot.com/api/v2/remoteEvents/",
        ));
    }
    if report.method.is_empty() || !report.method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(ConfigError::new(
            at("method"),
            "expected a method such as POST",
        ));
    }
    template::check(&Value::from(report.url.as_str()), &at("url"))?;
    template::check(&report.body, &at("body"))?;
    let rule = ActionRule::new(NAME)
        .describe("tells the supervisor how deployments of its prediction environment are")
        .http(template::base(&report.url).unwrap_or_default());
    Ok(manifest.action(rule))
}

/// The report of a deployment, if somebody is to be told.
pub(crate) fn action(
    about: &About<'_>,
    decision: &Decision,
    config: &Config,
    cx: &Context,
) -> Option<Action> {
    let report = &config.supervisor.report;
    if report.url.is_empty() {
        return None;
    }
    let known: Option<Json> = cx.fact(NAME);
    let known = known.as_deref();
    let event = event(decision, &report.events, known);
    let mut told = told(about, decision, event);
    // Its time and its words are those of the first moment.
    let is_known = known.is_some_and(|known| STATE.iter().all(|name| known[name] == told[name]));
    let told = match known {
        Some(known) if is_known || event.is_empty() => known.clone(),
        None if event.is_empty() => return None,
        _ => {
            let since = humantime::format_rfc3339_seconds(cx.now());
            told["since"] = json!(since.to_string());
            told
        }
    };
    Some(Action::new(NAME, NAME).input(&told))
}

/// What is to be told, by the names under which it stands in the template, without the
/// time.
fn told(about: &About<'_>, decision: &Decision, event: &str) -> Value {
    json!({
        "environmentId": about.environment,
        "deploymentId": about.deployment,
        "event": event,
        "phase": decision.phase.name(),
        "state": decision.phase.state(),
        "status": decision.health.name(),
        "statusCode": decision.health.code(),
        "reason": decision.reason,
        "message": decision.message,
        "oldModelInUse": decision.old_model_in_use,
        // The model that is wanted.
        "modelId": about.model,
        "currentModelId": decision.current_model,
        "predictionUrl": about.prediction_url,
    })
}

/// What has happened since the supervisor was told something.
fn event<'a>(decision: &Decision, events: &'a Events, known: Option<&Value>) -> &'a str {
    match decision.phase {
        Phase::Pending | Phase::Building | Phase::Deploying => &events.launch_started,
        Phase::Replacing => &events.replacement_started,
        Phase::Stopping => &events.shutdown_started,
        Phase::Stopped => &events.shutdown_succeeded,
        Phase::Errored => &events.launch_failed,
        Phase::Degraded => &events.health_degraded,
        Phase::Ready if decision.health == Health::Warning => &events.replacement_failed,
        Phase::Ready => {
            let was = known.map_or(&Value::Null, |known| &known["phase"]).as_str();
            let served = known.and_then(|known| known["currentModelId"].as_str());
            let replaced = served.is_some() && served != decision.current_model.as_deref();
            match was {
                Some("Replacing") => &events.replacement_succeeded,
                _ if replaced => &events.replacement_succeeded,
                Some("Degraded" | "Ready") => &events.health_restored,
                _ => &events.launch_succeeded,
            }
        }
    }
}

/// Tells the supervisor. What it was told cannot be taken back, and is not asked for.
pub(crate) fn actuate(
    call: &Actuation,
    config: &Config,
    outside: &Outside,
) -> Result<Completion, Failure> {
    let told: Json = call.input()?;
    if call.verb == Verb::Apply {
        tell(&told, &config.supervisor.report, outside)?;
    }
    Ok(Completion::with_fact(&*told))
}

fn tell(told: &Value, report: &Report, outside: &Outside) -> Result<(), Failure> {
    let url = template::path(&report.url, told);
    let body = template::fill(&report.body, told).unwrap_or(Value::Null);
    let request = Request::new(&*report.method, &*url)
        .header("content-type", "application/json")
        .body(body.to_string());
    let response = outside.send(&request)?;
    if response.is_success() {
        return Ok(());
    }
    let advice = match response.status {
        401 | 403 => "; does the key that is granted for it have the API token?",
        404 => "; does it know the deployment?",
        400 | 422 => "; does /supervisor/report say what it expects?",
        _ => "",
    };
    Err(Failure::retry(format!(
        "{} {url}: the supervisor answers {}{advice}",
        report.method, response.status
    )))
}

#[cfg(test)]
mod tests;
