//! What a supervisor is told: one report whenever something has happened to a deployment
//! of its prediction environment.
//!
//! What it was told last, or is being told, stands in the deployment's record. So a report
//! stays the same until something else has happened, however long it takes to be told. The
//! record may be behind: what is told waits for no other object of the deployment. So what
//! was told comes back as the fact of the effect as well, and the later of the two counts.

mod template;

use reeve_sdk::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::config::{Config, Events, Report};
use crate::names::ENVIRONMENT;
use crate::state::{Decision, Health, Phase};

/// The effect, and its key: there is one for each deployment.
const NAME: &str = "report";

/// The kind of those for which the plugin `environments` makes ModelDeployments.
const OWNER: &str = "PredictionEnvironment";

/// What says that two reports are of the same. The words for it may change all the time, and
/// so may the model that answers, while servers come and go.
const SAME: [&str; 5] = ["environmentId", "deploymentId", "happened", "modelId", "to"];

/// In what was told last: what has happened since, of which nothing is told.
const UNSAID: &str = "unsaid";

/// Bytes of a message in JSON: the rest is in the status.
const LONGEST_MESSAGE: usize = 1024;

/// Bytes of a fact, which the host keeps. A URL of kilobytes is left to the record alone.
const LONGEST_FACT: usize = 4 << 10;

/// What has happened to a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happened {
    LaunchStarted,
    LaunchSucceeded,
    LaunchFailed,
    ReplacementStarted,
    ReplacementSucceeded,
    ReplacementFailed,
    ShutdownStarted,
    ShutdownSucceeded,
    HealthDegraded,
    HealthRestored,
}

/// Which deployment a report is about.
pub(crate) struct About<'a> {
    pub(crate) environment: &'a str,
    pub(crate) deployment: &'a str,
    /// Uid of the ModelDeployment.
    pub(crate) uid: &'a str,
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
        let rest = report.url.strip_prefix(scheme).unwrap_or_default();
        let host = rest.split('/').next().unwrap_or_default();
        !host.is_empty() && !host.contains(['{', '@', '?', '#'])
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
    template::check(
        &Value::from(report.url.as_str()),
        &template::IN_PATHS,
        &at("url"),
    )?;
    template::check(&report.body, &template::NAMES, &at("body"))?;
    let rule = ActionRule::new(NAME)
        .describe("tells the supervisor how deployments of its prediction environment are")
        .http(template::base(&report.url).unwrap_or_default());
    Ok(manifest.action(rule))
}

/// The prediction environment that a ModelDeployment was made for.
pub(crate) fn environment(metadata: &Metadata) -> Option<String> {
    let mut owners = metadata.owner_references.iter();
    let made = owners.any(|owner| owner.controller && owner.kind == OWNER);
    let label = metadata.labels.get(ENVIRONMENT).filter(|_| made);
    label.cloned()
}

/// What was told last, or is being told.
pub(crate) fn known(recorded: Option<Value>, cx: &Context) -> Option<Value> {
    let told = cx.fact::<Json>(NAME).map(|told| told.0);
    let told = told.filter(Value::is_object);
    // Of two that are equally late the recorded one may be read by people.
    recorded.into_iter().chain(told).reduce(|recorded, told| {
        if number(&told) > number(&recorded) {
            told
        } else {
            recorded
        }
    })
}

/// How many reports there were when this one was made, itself included.
fn number(report: &Value) -> u64 {
    report["number"].as_u64().unwrap_or_default()
}

/// The report of a deployment, if somebody is to be told. `known` is the one before it.
pub(crate) fn report(
    about: &About<'_>,
    decision: &Decision,
    config: &Config,
    known: Option<&Value>,
    cx: &Context,
) -> Option<Value> {
    let report = &config.supervisor.report;
    if report.url.is_empty() {
        return None;
    }
    let number = known.map_or(0, number).saturating_add(1);
    // What was told of another deployment says nothing of this one.
    let of_this = |known: &&Value| {
        known["environmentId"] == about.environment
            && known["deploymentId"] == about.deployment
            // Reports once had none.
            && known["uid"].as_str().is_none_or(|uid| uid == about.uid)
    };
    let known = known.filter(of_this);
    let happened = happened(decision, known);
    let word = happened.map_or("", |happened| report.events.word(happened));
    let happened = match (happened, known) {
        (Some(happened), _) if !word.is_empty() => happened,
        // What comes next is told as what comes after this.
        (Some(happened), Some(known)) if known["happened"] != happened.name() => {
            let mut known = known.clone();
            known[UNSAID] = json!(happened.name());
            return Some(known);
        }
        (_, known) => return known.cloned(),
    };
    let mut told = json!({
        "environmentId": about.environment,
        "deploymentId": about.deployment,
        "uid": about.uid,
        "happened": happened.name(),
        "event": word,
        "phase": decision.phase.name(),
        "state": decision.phase.state(),
        "status": decision.health.name(),
        "statusCode": decision.health.code(),
        "reason": decision.reason,
        "message": cut(&decision.message),
        "oldModelInUse": decision.old_model_in_use,
        // The model that is wanted.
        "modelId": about.model,
        "currentModelId": decision.current_model,
        "predictionUrl": about.prediction_url,
        // Whoever is told something for the first time is told all.
        "to": to(report),
    });
    let is_same = |known: &&Value| {
        known[UNSAID].is_null() && SAME.iter().all(|name| known[name] == told[name])
    };
    if let Some(known) = known.filter(is_same) {
        return Some(known.clone());
    }
    let since = humantime::format_rfc3339_seconds(cx.now());
    told["since"] = json!(since.to_string());
    told["number"] = json!(number);
    Some(told)
}

/// The effect of telling it.
pub(crate) fn action(told: &Value) -> Action {
    let mut told = told.clone();
    if let Some(told) = told.as_object_mut() {
        told.remove(UNSAID);
    }
    Action::new(NAME, NAME).input(&told)
}

/// Where and in which form, in short.
fn to(report: &Report) -> String {
    let text = format!("{}\n{}\n{}", report.method, report.url, report.body.0);
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn cut(message: &str) -> &str {
    let mut length = 0;
    let end = message.char_indices().find(|(_, letter)| {
        length += match letter {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..' ' => 6,
            letter => letter.len_utf8(),
        };
        length > LONGEST_MESSAGE
    });
    end.map_or(message, |(end, _)| &message[..end])
}

/// What has happened since the supervisor was told something; nothing where it knows.
fn happened(decision: &Decision, known: Option<&Value>) -> Option<Happened> {
    use Happened::{
        HealthDegraded, HealthRestored, LaunchFailed, LaunchStarted, LaunchSucceeded,
        ReplacementFailed, ReplacementStarted, ReplacementSucceeded, ShutdownStarted,
        ShutdownSucceeded,
    };
    let before = known.and_then(|known| {
        let unsaid = known[UNSAID].as_str();
        Happened::of(unsaid.or(known["happened"].as_str())?)
    });
    let served = known.and_then(|known| known["currentModelId"].as_str());
    let serves = decision.current_model.as_deref();
    match decision.phase {
        Phase::Pending | Phase::Building | Phase::Deploying => match before {
            None | Some(LaunchStarted | LaunchFailed | ShutdownStarted | ShutdownSucceeded) => {
                Some(LaunchStarted)
            }
            // Servers that start anew, or the end of a replacement.
            Some(_) => None,
        },
        Phase::Replacing => Some(ReplacementStarted),
        Phase::Stopping => match before {
            // Another deployment needed the build longer, which goes with nobody's servers.
            Some(ShutdownSucceeded) => before,
            _ => Some(ShutdownStarted),
        },
        Phase::Stopped => Some(ShutdownSucceeded),
        Phase::Errored => Some(LaunchFailed),
        Phase::Degraded => Some(HealthDegraded),
        Phase::Ready => match (decision.health, before) {
            (Health::Warning, _) => Some(ReplacementFailed),
            // Nobody wants any server.
            (Health::Unknown | Health::Failing, _) => None,
            (_, Some(ReplacementStarted)) => Some(ReplacementSucceeded),
            (
                _,
                None | Some(LaunchStarted | LaunchFailed | ShutdownStarted | ShutdownSucceeded),
            ) => Some(LaunchSucceeded),
            // So quick that nobody saw it being replaced.
            _ if served.is_some() && serves.is_some() && served != serves => {
                Some(ReplacementSucceeded)
            }
            (_, Some(HealthDegraded | ReplacementFailed)) => Some(HealthRestored),
            (_, Some(LaunchSucceeded | ReplacementSucceeded | HealthRestored)) => before,
        },
    }
}

impl Happened {
    const ALL: [Self; 10] = [
        Self::LaunchStarted,
        Self::LaunchSucceeded,
        Self::LaunchFailed,
        Self::ReplacementStarted,
        Self::ReplacementSucceeded,
        Self::ReplacementFailed,
        Self::ShutdownStarted,
        Self::ShutdownSucceeded,
        Self::HealthDegraded,
        Self::HealthRestored,
    ];

    /// As in the configuration.
    fn name(self) -> &'static str {
        match self {
            Self::LaunchStarted => "launchStarted",
            Self::LaunchSucceeded => "launchSucceeded",
            Self::LaunchFailed => "launchFailed",
            Self::ReplacementStarted => "replacementStarted",
            Self::ReplacementSucceeded => "replacementSucceeded",
            Self::ReplacementFailed => "replacementFailed",
            Self::ShutdownStarted => "shutdownStarted",
            Self::ShutdownSucceeded => "shutdownSucceeded",
            Self::HealthDegraded => "healthDegraded",
            Self::HealthRestored => "healthRestored",
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|happened| happened.name() == name)
    }
}

impl Events {
    fn word(&self, happened: Happened) -> &str {
        match happened {
            Happened::LaunchStarted => &self.launch_started,
            Happened::LaunchSucceeded => &self.launch_succeeded,
            Happened::LaunchFailed => &self.launch_failed,
            Happened::ReplacementStarted => &self.replacement_started,
            Happened::ReplacementSucceeded => &self.replacement_succeeded,
            Happened::ReplacementFailed => &self.replacement_failed,
            Happened::ShutdownStarted => &self.shutdown_started,
            Happened::ShutdownSucceeded => &self.shutdown_succeeded,
            Happened::HealthDegraded => &self.health_degraded,
            Happened::HealthRestored => &self.health_restored,
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
    match told.to_string().len() <= LONGEST_FACT {
        true => Ok(Completion::with_fact(&told.0)),
        false => Ok(Completion::done()),
    }
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
    // A query may hold a credential.
    let shown = url.split('?').next().unwrap_or_default();
    Err(Failure::retry(format!(
        "{} {shown}: the supervisor answers {}{advice}",
        report.method, response.status
    )))
}

#[cfg(test)]
mod tests;
