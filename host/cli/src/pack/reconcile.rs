//! `reeve pack reconcile`.

use super::TargetArgs;
use super::parts::{self, DESIRED_STATE, Halt, Part};
use crate::looking::{Output, print_json};
use crate::output;
use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use reeve_api::{
    APPROVE_PLAN_ANNOTATION, PlanStatus, Plugin, RECONCILE_ANNOTATION, Unit, UnitStatus,
};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Field manager of what is written.
const FIELD_MANAGER: &str = "reeve-cli";

/// The agent reports what it did within about a quarter of a second.
const INTERVAL: Duration = Duration::from_millis(200);

/// Apply the desired state, or look at one pack again now
///
/// Without a name the desired state is read anew, and where that waits for somebody the
/// plan is approved: this is what a changed desired state takes effect by. With a name
/// the parts of the plugin look at that pack. You need get and patch on plugins and
/// units.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 it was applied, or nothing differs; 1 something is wrong with the \
    desired state, or it is not done in time; 2 it could not be asked, or nobody answers in time."
)]
pub(super) struct ReconcileArgs {
    /// Only this pack
    name: Option<String>,
    /// How long to wait for the agent, such as 90s or 5m
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = crate::operate::duration)]
    timeout: Duration,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    target: TargetArgs,
}

/// What came of it.
#[derive(Default)]
struct Answer {
    asked: Vec<String>,
    approved: Vec<PlanStatus>,
    /// What is wrong, of the units that were asked for.
    troubles: Vec<String>,
}

pub(super) async fn run(args: ReconcileArgs) -> anyhow::Result<ExitCode> {
    let client = args.target.connection.client().await?;
    let parts = parts::find(&client, &args.target).await?;
    let asked: Vec<&Part> = match &args.name {
        None => vec![parts::desired_state(&parts)?],
        Some(_) => {
            let others = parts.iter().filter(|part| part.role != DESIRED_STATE);
            others.collect()
        }
    };
    let desk = Desk {
        plugins: Api::namespaced(client.clone(), &args.target.connection.namespace),
        units: Api::namespaced(client.clone(), &args.target.connection.namespace),
        until: Instant::now() + args.timeout,
        timeout: args.timeout,
    };
    if let Some(name) = &args.name {
        check_there(&client, name).await?;
    }
    let mut answer = Answer::default();
    let mut requests = Vec::new();
    for part in asked {
        requests.push((part, desk.ask(part, args.name.as_deref()).await?));
        answer.asked.push(part.plugin.clone());
    }
    for (part, request) in &requests {
        desk.wait_until_handled(part, request).await?;
        if let Some(halt) = Halt::of(Some(&desk.plugin(&part.plugin).await?)) {
            answer
                .troubles
                .push(format!("{}: {}: {}", part.plugin, halt.reason, halt.said()));
        }
        desk.take_stock(part, args.name.as_deref(), &mut answer)
            .await?;
    }
    match args.output {
        Output::Json => print_json(&answer.json())?,
        Output::Text => answer.tell(args.name.as_deref()),
    }
    Ok(match answer.troubles.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

async fn check_there(client: &Client, name: &str) -> anyhow::Result<()> {
    let packs = super::standing::packs(client).await?;
    if packs.iter().any(|pack| pack.name_any() == name) {
        return Ok(());
    }
    let names: Vec<String> = packs.iter().map(|pack| pack.name_any()).collect();
    bail!(
        "there is no Pack {name}; there are: {}. `reeve pack add {name}` and `reeve pack \
         reconcile` make it",
        names.join(", ")
    )
}

/// Where the agent is asked, and reports.
struct Desk {
    plugins: Api<Plugin>,
    units: Api<Unit>,
    until: Instant,
    timeout: Duration,
}

impl Desk {
    async fn plugin(&self, name: &str) -> anyhow::Result<Plugin> {
        let found = self.plugins.get_opt(name).await;
        let found = found.with_context(|| format!("cannot read plugin {name}"))?;
        found.with_context(|| {
            format!("there is no plugin {name} yet; is an agent running? `reeve get plugins` lists those that there are")
        })
    }

    /// Asks a part to run all of its units, or one. Returns the request.
    async fn ask(&self, part: &Part, pack: Option<&str>) -> anyhow::Result<String> {
        let name = &part.plugin;
        loop {
            let plugin = self.plugin(name).await?;
            if plugin.spec.suspend {
                bail!(
                    "plugin {name} is suspended, so nothing runs; `reeve resume {name}` lets it \
                     go on"
                );
            }
            // It may have been delivered a moment ago.
            match Halt::of(Some(&plugin)).filter(|halt| !halt.runs) {
                None => break,
                Some(halt) if halt.passes && Instant::now() < self.until => {
                    sleep(INTERVAL).await;
                }
                Some(Halt {
                    reason, message, ..
                }) => bail!(
                    "plugin {name} does not run, so nothing is applied: {reason}: {message}; \
                     `reeve get plugins -o wide` says how it stands"
                ),
            }
        }
        let mut request = Timestamp::now().to_string();
        if let Some(pack) = pack {
            request.push_str(&format!(" Pack.packs.reeve.dev//{pack}"));
        }
        let patch = json!({"metadata": {"annotations": {RECONCILE_ANNOTATION: request}}});
        let asked = self
            .plugins
            .patch(name, &params(), &Patch::Merge(&patch))
            .await;
        asked.with_context(|| format!("cannot change plugin {name}"))?;
        Ok(request)
    }

    async fn wait_until_handled(&self, part: &Part, request: &str) -> anyhow::Result<()> {
        let name = &part.plugin;
        loop {
            let status = self.plugin(name).await?.status.unwrap_or_default();
            if status.last_handled_reconcile_at.as_deref() == Some(request) {
                return Ok(());
            }
            if Instant::now() >= self.until {
                bail!(
                    "plugin {name} was asked, and did not answer within {} s; is an agent running? \
                     `reeve get plugins -o wide` says how it stands",
                    self.timeout.as_secs()
                );
            }
            sleep(INTERVAL).await;
        }
    }

    async fn units(&self, part: &Part, pack: Option<&str>) -> anyhow::Result<Vec<Unit>> {
        let units = self.units.list(&ListParams::default()).await;
        let mut units = units.context("cannot list units")?.items;
        units.retain(|unit| {
            unit.spec.plugin == part.plugin
                && pack.is_none_or(|pack| unit.spec.primary.name == pack)
        });
        Ok(units)
    }

    /// Approves what waits for it, and notes what is wrong.
    async fn take_stock(
        &self,
        part: &Part,
        pack: Option<&str>,
        answer: &mut Answer,
    ) -> anyhow::Result<()> {
        for unit in self.units(part, pack).await? {
            let status = unit.status.clone().unwrap_or_default();
            let ready = status.conditions.iter().find(|one| one.type_ == "Ready");
            let Some(ready) = ready.filter(|one| one.status != "True") else {
                continue;
            };
            let plan = status
                .plan
                .filter(|_| ready.reason == "AwaitingApproval" && pack.is_none());
            let trouble = match plan {
                Some(plan) => {
                    let trouble = self.approve(&unit.name_any(), &plan).await?;
                    answer.approved.push(plan);
                    trouble
                }
                None => Some(said(ready)),
            };
            let trouble = trouble.map(|trouble| format!("{}: {trouble}", part.plugin));
            answer.troubles.extend(trouble);
        }
        Ok(())
    }

    /// Approves a plan, and waits until it is carried out. Returns what is wrong then.
    async fn approve(&self, unit: &str, plan: &PlanStatus) -> anyhow::Result<Option<String>> {
        let patch = json!({"metadata": {"annotations": {APPROVE_PLAN_ANNOTATION: plan.id}}});
        let approved = self
            .units
            .patch(unit, &params(), &Patch::Merge(&patch))
            .await;
        approved.with_context(|| format!("cannot change unit {unit}"))?;
        loop {
            let found = self.units.get_opt(unit).await;
            let found = found.with_context(|| format!("cannot read unit {unit}"))?;
            let status = found.and_then(|found| found.status).unwrap_or_default();
            let (id, limit) = (&plan.id, self.timeout.as_secs());
            let late = match after(&status, id) {
                After::Done => return Ok(None),
                After::Wrong(trouble) => return Ok(Some(trouble)),
                After::NotTakenUp => {
                    format!("the plan {id} was approved, and is not taken up within {limit} s")
                }
                After::OnItsWay(said) => {
                    format!("the plan {id} was approved, and is not done within {limit} s: {said}")
                }
            };
            if Instant::now() >= self.until {
                return Ok(Some(late));
            }
            sleep(INTERVAL).await;
        }
    }
}

/// How a unit stands after a plan of it was approved.
#[derive(Debug, PartialEq, Eq)]
enum After {
    /// The agent has not come to it yet.
    NotTakenUp,
    /// It is carried out, and something is waited for.
    OnItsWay(String),
    Done,
    Wrong(String),
}

fn after(status: &UnitStatus, plan: &str) -> After {
    let ready = status.conditions.iter().find(|one| one.type_ == "Ready");
    let Some(ready) = ready.filter(|one| one.status != "True") else {
        return After::Done;
    };
    match ready.reason.as_str() {
        "AwaitingApproval" if status.plan.as_ref().is_some_and(|now| now.id == plan) => {
            After::NotTakenUp
        }
        "AwaitingApproval" => After::Wrong(format!(
            "another plan waits since: {}; `reeve pack reconcile` approves that one",
            said(ready)
        )),
        "Waiting" => After::OnItsWay(said(ready)),
        _ => After::Wrong(said(ready)),
    }
}

/// What a condition says, on one line.
fn said(ready: &Condition) -> String {
    format!("{}: {}", ready.reason, output::on_one_line(&ready.message))
}

fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

impl Answer {
    fn json(&self) -> Value {
        json!({"asked": self.asked, "approved": self.approved, "troubles": self.troubles})
    }

    fn tell(&self, pack: Option<&str>) {
        for plan in &self.approved {
            output::tell(format_args!(
                "approved: {} to create, {} to change, {} to delete",
                plan.create, plan.change, plan.delete
            ));
            for step in &plan.steps {
                let object = &step.object;
                let line = format!("  {} {} {}", step.action, object.kind, object.name);
                output::tell(line);
            }
        }
        for trouble in &self.troubles {
            output::tell(trouble);
        }
        match (pack, self.troubles.is_empty(), self.approved.is_empty()) {
            (_, false, _) => output::complain(
                "not all is well; `reeve pack status` shows what stands in the way of what",
            ),
            (Some(pack), ..) => output::tell(format_args!("pack {pack} is as it is wanted")),
            (None, true, true) => output::tell("the desired state is applied; nothing differs"),
            (None, true, false) => output::tell("`reeve pack status` says how far it is"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_api::condition;

    #[test]
    fn what_was_approved_is_done_or_says_why_not() {
        let status = |reason: &str, plan: &str| {
            let ready = condition(
                "Ready",
                "False",
                reason,
                "a\n b",
                None,
                Timestamp::UNIX_EPOCH,
            );
            UnitStatus {
                conditions: vec![ready],
                plan: (!plan.is_empty()).then(|| PlanStatus {
                    id: plan.to_owned(),
                    ..PlanStatus::default()
                }),
                ..UnitStatus::default()
            }
        };
        assert_eq!(after(&UnitStatus::default(), "A"), After::Done);
        assert_eq!(
            after(&status("AwaitingApproval", "A"), "A"),
            After::NotTakenUp
        );
        let on_its_way = After::OnItsWay("Waiting: a b".to_owned());
        assert_eq!(after(&status("Waiting", ""), "A"), on_its_way);
        for (now, said) in [
            (
                status("AwaitingApproval", "B"),
                "another plan waits since: AwaitingApproval: a b; `reeve pack reconcile` approves \
                 that one",
            ),
            (status("ApplyFailed", ""), "ApplyFailed: a b"),
            // What is left of the plan that was approved.
            (status("Forbidden", "A"), "Forbidden: a b"),
        ] {
            assert_eq!(after(&now, "A"), After::Wrong(said.to_owned()));
        }
    }
}
