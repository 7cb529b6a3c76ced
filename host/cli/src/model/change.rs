//! `reeve model start`, `stop`, `replace` and `relaunch`.

use super::PlaceArgs;
use super::fleet::Fleet;
use super::look::text;
use super::result::{Standing, is_reported};
use crate::looking::{Output, print_json};
use crate::output;
use anyhow::{Context as _, bail};
use clap::{ArgGroup, Args};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Field manager of what is written.
const FIELD_MANAGER: &str = "reeve-cli";

/// How often it is looked whether something has come about: builds take minutes.
const INTERVAL: Duration = Duration::from_millis(500);

/// The longest name of a ModelDeployment.
const LONGEST_NAME: usize = 52;

/// Deploy a model, or start a deployment again that was stopped
#[derive(Args)]
pub(super) struct StartArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Name of the ModelDeployment, where it is made; of the id unless set
    #[arg(long)]
    name: Option<String>,
    /// How many servers; left to others unless set
    #[arg(long, value_name = "COUNT")]
    replicas: Option<u32>,
    #[command(flatten)]
    action: ActionArgs,
}

/// Take a deployment out of service
///
/// What serves is removed; the ModelDeployment and its images stay, and `start` brings it
/// back.
#[derive(Args)]
pub(super) struct StopArgs {
    #[command(flatten)]
    action: ActionArgs,
}

/// Serve another model; the old one serves until the new one does
#[derive(Args)]
pub(super) struct ReplaceArgs {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    action: ActionArgs,
}

/// Start all servers of a deployment anew, one by one
#[derive(Args)]
pub(super) struct RelaunchArgs {
    #[command(flatten)]
    action: ActionArgs,
}

/// Which deployment, and whether to wait.
#[derive(Args)]
struct ActionArgs {
    /// Id of the deployment
    id: String,
    /// Wait until it is done, or has failed
    #[arg(long, short)]
    wait: bool,
    /// How long to wait, such as 90s or 30m
    #[arg(long, value_name = "DURATION", default_value = "30m", requires = "wait", value_parser = crate::operate::duration)]
    timeout: Duration,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    place: PlaceArgs,
}

/// The model that is wanted.
#[derive(Args)]
#[command(group = ArgGroup::new("source").args(["package_url", "artifact"]))]
struct ModelArgs {
    /// Id of the model
    #[arg(long, value_name = "ID")]
    model_id: Option<String>,
    /// Where its package is
    #[arg(long, value_name = "URL", requires = "sha256", requires = "model_id")]
    package_url: Option<String>,
    /// SHA-256 of its package, in hexadecimal
    #[arg(long, value_name = "DIGEST", requires = "package_url")]
    sha256: Option<String>,
    /// Size of its package, by which disk is reserved
    #[arg(long, value_name = "BYTES", requires = "package_url")]
    size_bytes: Option<u64>,
    /// Instead of a package: the model as an artifact of a registry, by digest
    #[arg(long, value_name = "IMAGE", requires = "model_id")]
    artifact: Option<String>,
    /// Format of the package; datarobot unless set
    #[arg(long)]
    format: Option<String>,
}

impl ModelArgs {
    /// The model, if one is named.
    ///
    /// # Errors
    ///
    /// When it is not said where it is.
    fn model(&self) -> anyhow::Result<Option<Value>> {
        let Some(id) = &self.model_id else {
            return Ok(None);
        };
        let mut model = json!({"id": id});
        match (&self.package_url, &self.artifact) {
            (Some(url), _) => {
                model["package"] = json!({"url": url, "sha256": self.sha256});
                if let Some(size) = self.size_bytes {
                    model["package"]["sizeBytes"] = json!(size);
                }
            }
            (None, Some(artifact)) => model["artifact"] = json!(artifact),
            (None, None) => {
                bail!("where is model {id}? Say --package-url and --sha256, or --artifact")
            }
        }
        if let Some(format) = &self.format {
            model["format"] = json!(format);
        }
        Ok(Some(model))
    }
}

/// What an action is to lead to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Serving,
    Stopped,
}

pub(super) async fn start(args: StartArgs) -> anyhow::Result<ExitCode> {
    let action = Action::begin(&args.action).await?;
    let id = &args.action.id;
    let model = args.model.model()?;
    let Some(found) = action.fleet.find(id)? else {
        let Some(model) = model else {
            bail!(
                "there is no deployment {id} in namespace {} yet; say which model it is to serve: \
                 --model-id, and --package-url with --sha256 or --artifact",
                action.fleet.namespace
            );
        };
        let mut spec = json!({"deploymentId": id, "model": model});
        if let Some(replicas) = args.replicas {
            spec["replicas"] = json!(replicas);
        }
        let name = match args.name {
            Some(name) => name,
            None => name_of(id)?,
        };
        return action.create(&name, spec).await;
    };
    // Which of the fields somebody else wants otherwise is theirs to say.
    let there = &found.data["spec"]["model"];
    if let Some(model) = model.filter(|model| !is_same(there, model)) {
        bail!(
            "deployment {id} is there and wants model {}; `reeve model replace {id}` has it serve {}",
            there["id"].as_str().unwrap_or_default(),
            model["id"].as_str().unwrap_or_default()
        );
    }
    let mut spec = json!({"stopped": null});
    if let Some(replicas) = args.replicas {
        spec["replicas"] = json!(replicas);
    }
    action.patch(found, spec, Goal::Serving).await
}

pub(super) async fn stop(args: StopArgs) -> anyhow::Result<ExitCode> {
    let action = Action::begin(&args.action).await?;
    let found = action.fleet.get(&args.action.id)?;
    action
        .patch(found, json!({"stopped": true}), Goal::Stopped)
        .await
}

pub(super) async fn replace(args: ReplaceArgs) -> anyhow::Result<ExitCode> {
    let action = Action::begin(&args.action).await?;
    let id = &args.action.id;
    let found = action.fleet.get(id)?;
    let Some(model) = args.model.model()? else {
        bail!(
            "which model is deployment {id} to serve? Say --model-id, and --package-url with \
             --sha256 or --artifact"
        );
    };
    // What the old model has and the new one does not goes.
    let mut whole = model;
    for field in ["package", "artifact", "format"] {
        if whole.get(field).is_none() {
            whole[field] = Value::Null;
        }
    }
    if whole["package"].is_object() && whole["package"].get("sizeBytes").is_none() {
        whole["package"]["sizeBytes"] = Value::Null;
    }
    action
        .patch(found, json!({"model": whole}), Goal::Serving)
        .await
}

pub(super) async fn relaunch(args: RelaunchArgs) -> anyhow::Result<ExitCode> {
    let action = Action::begin(&args.action).await?;
    let id = &args.action.id;
    let found = action.fleet.get(id)?;
    if found.data["spec"]["stopped"] == true {
        bail!("deployment {id} is stopped; `reeve model start {id}` starts it");
    }
    let relaunch = Timestamp::now().to_string();
    action
        .patch(found, json!({"relaunch": relaunch}), Goal::Serving)
        .await
}

/// Whether a deployment wants this model already, as far as it is said.
fn is_same(there: &Value, model: &Value) -> bool {
    let empty = Map::new();
    let said = model.as_object().unwrap_or(&empty);
    said.iter().all(|(field, value)| match value {
        Value::Object(inner) => inner.iter().all(|(key, value)| there[field][key] == *value),
        value => there[field] == *value,
    })
}

/// A name for the ModelDeployment of an id, which may begin with a digit.
fn name_of(id: &str) -> anyhow::Result<String> {
    let plain = id.to_lowercase().replace('_', "-");
    let name = match plain.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => plain,
        false => format!("deployment-{plain}"),
    };
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.len() > LONGEST_NAME || !name.chars().all(fits) || name.ends_with('-') {
        bail!(
            "{id} makes no name of a ModelDeployment, which has at most {LONGEST_NAME} lower-case \
             letters, digits and `-`; say one with --name"
        );
    }
    Ok(name)
}

/// An action on a deployment.
struct Action<'a> {
    args: &'a ActionArgs,
    fleet: Fleet,
    began: std::time::Instant,
}

impl<'a> Action<'a> {
    async fn begin(args: &'a ActionArgs) -> anyhow::Result<Self> {
        Ok(Self {
            args,
            fleet: Fleet::read(&args.place).await?,
            began: std::time::Instant::now(),
        })
    }

    async fn create(&self, name: &str, spec: Value) -> anyhow::Result<ExitCode> {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "models.reeve.dev/v1alpha1", "kind": "ModelDeployment",
            "metadata": {"name": name, "namespace": self.fleet.namespace}, "spec": spec,
        }))?;
        let params = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        let made = match self.fleet.api.create(&params, &object).await {
            Ok(made) => made,
            Err(kube::Error::Api(status)) if status.code == 409 => bail!(
                "there is a ModelDeployment {name} of another deployment in namespace {}; say \
                 another name with --name",
                self.fleet.namespace
            ),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot make ModelDeployment {name}"));
            }
        };
        self.answer(made, None, Goal::Serving).await
    }

    async fn patch(
        &self,
        found: &DynamicObject,
        spec: Value,
        goal: Goal,
    ) -> anyhow::Result<ExitCode> {
        let name = found.name_any();
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = json!({"spec": spec});
        let patched = self
            .fleet
            .api
            .patch(&name, &params, &Patch::Merge(&patch))
            .await;
        let patched = patched.with_context(|| format!("cannot change ModelDeployment {name}"))?;
        // What was reported of the same spec may be the last that is reported of it. Only a
        // plugin that does not say which spec it saw is to report something else.
        let is_changed = patched.data["spec"] != found.data["spec"];
        let before = is_changed.then(|| found.data["status"].clone());
        self.answer(patched, before, goal).await
    }

    /// Says how the deployment stands: at once, or when that is settled.
    async fn answer(
        &self,
        deployment: DynamicObject,
        before: Option<Value>,
        goal: Goal,
    ) -> anyhow::Result<ExitCode> {
        let name = deployment.name_any();
        let mut standing = Standing::of(&deployment);
        let mut settled = None;
        if self.args.wait {
            let until = Instant::now() + self.args.timeout;
            while settled.is_none() && Instant::now() < until {
                sleep(INTERVAL).await;
                let found = self.fleet.api.get_opt(&name).await;
                let found = found.with_context(|| format!("cannot read ModelDeployment {name}"))?;
                let Some(found) = found else {
                    bail!("ModelDeployment {name} was deleted meanwhile");
                };
                standing = Standing::of(&found);
                let is_seen = is_seen(&found.data, before.as_ref());
                settled = settles(goal, &standing, is_seen && is_heard(&found.data));
            }
        }
        match self.args.output {
            Output::Json => print_json(&standing.result(self.began.elapsed()))?,
            Output::Text => output::print(text(std::slice::from_ref(&standing)))?,
        }
        let id = &self.args.id;
        match settled {
            Some(true) => Ok(ExitCode::SUCCESS),
            Some(false) => {
                output::complain(format_args!(
                    "deployment {id} is {}: {}",
                    standing.status, standing.message
                ));
                Ok(ExitCode::FAILURE)
            }
            None if self.args.wait => {
                output::complain(format_args!(
                    "not done within {} s; `reeve model status {id}` says how it stands",
                    self.args.timeout.as_secs()
                ));
                Ok(ExitCode::FAILURE)
            }
            None => {
                if self.args.output == Output::Text {
                    output::tell(format_args!(
                        "it was asked for; `reeve model status {id}` says how far it is"
                    ));
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

/// Whether what is reported is of this spec: a report of before says nothing about what comes.
/// `before` is what was reported before the spec changed, if it did.
fn is_seen(deployment: &Value, before: Option<&Value>) -> bool {
    is_reported(deployment).unwrap_or_else(|| before != Some(&deployment["status"]))
}

/// Whether what serves is of the last relaunch and has as many servers as are wanted, as far as
/// it is reported: the report before that says that all is well, too.
fn is_heard(deployment: &Value) -> bool {
    let (spec, status) = (&deployment["spec"], &deployment["status"]);
    // Of what serves there always is a number of servers; before the first relaunch it is of
    // none.
    let fields = ["relaunch", "replicas"];
    let is_reported = fields.iter().any(|field| !status[field].is_null());
    fields.into_iter().all(|field| {
        let (wanted, is) = (&spec[field], &status[field]);
        wanted.is_null() || !is_reported || wanted == is
    })
}

/// Whether an action has come to its end, and a good one.
fn settles(goal: Goal, now: &Standing, is_seen: bool) -> Option<bool> {
    match goal {
        _ if !is_seen => None,
        Goal::Stopped if now.state == "stopped" => Some(true),
        Goal::Stopped => None,
        Goal::Serving if now.is_serving() || now.is_idle() => Some(true),
        // A replacement has failed, and the old model goes on.
        Goal::Serving if now.state == "ready" && now.status == "warning" => Some(false),
        Goal::Serving if now.state == "errored" => Some(false),
        Goal::Serving => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_make_names() {
        for (id, expected) in [
            ("churn", "churn"),
            ("Churn_2", "churn-2"),
            (
                "64f0c2a1b7d3e90012345678",
                "deployment-64f0c2a1b7d3e90012345678",
            ),
        ] {
            assert_eq!(name_of(id).unwrap(), expected);
        }
        for id in ["a.b", "a-", &"a".repeat(53)] {
            assert!(
                name_of(id).unwrap_err().to_string().ends_with("--name"),
                "{id}"
            );
        }
    }

    #[test]
    fn the_same_model_is_known_again() {
        let there = json!({"id": "m", "format": "datarobot", "package": {"url": "u", "sha256": "s", "sizeBytes": 1}});
        for (model, expected) in [
            (
                json!({"id": "m", "package": {"url": "u", "sha256": "s"}}),
                true,
            ),
            (
                json!({"id": "n", "package": {"url": "u", "sha256": "s"}}),
                false,
            ),
            (
                json!({"id": "m", "package": {"url": "u", "sha256": "t"}}),
                false,
            ),
            (json!({"id": "m", "artifact": "a"}), false),
        ] {
            assert_eq!(is_same(&there, &model), expected, "{model}");
        }
    }

    #[test]
    fn what_was_asked_for_is_heard_when_it_is_rolled_out() {
        let heard = |spec: Value, status: Value| is_heard(&json!({"spec": spec, "status": status}));
        assert!(heard(json!({}), json!({"replicas": 1})));
        assert!(
            heard(json!({"relaunch": "2"}), json!({})),
            "nobody reports it"
        );
        assert!(!heard(json!({"relaunch": "2"}), json!({"relaunch": "1"})));
        assert!(!heard(json!({"relaunch": "1"}), json!({"replicas": 1})));
        assert!(!heard(
            json!({"relaunch": "2", "replicas": 3}),
            json!({"relaunch": "2", "replicas": 1})
        ));
        assert!(heard(
            json!({"relaunch": "2", "replicas": 3}),
            json!({"relaunch": "2", "replicas": 3})
        ));
    }

    /// Also where the report stays the same, as of a URL of the same package, a switch that is
    /// off already or a number that was the default.
    #[test]
    fn a_report_says_of_which_spec_it_is() {
        let seen = |spec: &Value, status: &Value, before: Option<&Value>| {
            is_seen(&json!({"spec": spec, "status": status}), before)
        };
        let package = json!({"url": "https://app.datarobot.com/m.mlpkg", "sha256": "1".repeat(64), "sizeBytes": 1000});
        let mut spec = json!({"deploymentId": "64f0", "model": {"id": "m1", "package": package}});
        // As the plugin computes it, whose test has the same texts.
        for (more, observed) in [
            (Value::Null, "9f1188d3b8e9"),
            (json!({"limits": {"cpu": "1"}, "é": 0.5}), "623bc5cfd9ff"),
        ] {
            if more.is_object() {
                spec["resources"] = more;
            }
            let status = json!({"state": "ready", "observed": observed});
            assert!(seen(&spec, &status, Some(&status)), "{spec}");
            let mut changed = spec.clone();
            changed["stopped"] = json!(false);
            assert!(!seen(&changed, &status, None), "{spec}");
        }
        // Older plugins do not say it.
        let status = json!({"state": "ready"});
        assert!(seen(&spec, &status, None));
        assert!(!seen(&spec, &status, Some(&status)));
        assert!(seen(&spec, &status, Some(&Value::Null)));
    }

    #[test]
    fn an_action_ends_with_a_report_of_its_spec() {
        let standing = |state: &str, status: &str, current: &str, old: bool| {
            let object = json!({
                "apiVersion": "models.reeve.dev/v1alpha1", "kind": "ModelDeployment",
                "metadata": {"name": "a"}, "spec": {"model": {"id": "m2"}},
                "status": {"state": state, "status": status, "currentModelId": current, "oldModelInUse": old},
            });
            Standing::of(&serde_json::from_value(object).unwrap())
        };
        let old = standing("ready", "passing", "m1", true);
        let done = standing("ready", "passing", "m2", false);
        for (now, goal, expected) in [
            (old, Goal::Serving, None),
            (
                standing("replacingModel", "passing", "m1", true),
                Goal::Serving,
                None,
            ),
            (done.clone(), Goal::Serving, Some(true)),
            // None is wanted, and none is there.
            (
                standing("ready", "unknown", "", false),
                Goal::Serving,
                Some(true),
            ),
            (
                standing("ready", "warning", "m1", true),
                Goal::Serving,
                Some(false),
            ),
            (
                standing("errored", "failing", "", false),
                Goal::Serving,
                Some(false),
            ),
            (
                standing("shuttingDown", "passing", "", false),
                Goal::Stopped,
                None,
            ),
            (
                standing("stopped", "passing", "", false),
                Goal::Stopped,
                Some(true),
            ),
        ] {
            assert_eq!(settles(goal, &now, true), expected, "{now:?}");
        }
        assert_eq!(settles(Goal::Serving, &done, false), None);
    }
}
