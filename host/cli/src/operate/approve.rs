//! `reeve approve`.

use super::outcome::{Goal, wait};
use super::{TargetArgs, change, find, patch_params};
use crate::output;
use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch};
use reeve_api::{APPROVE_DELETION_ANNOTATION, APPROVE_PLAN_ANNOTATION, PlanEffect, Plugin, Unit};
use reeve_core::prune::Token;
use serde_json::json;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// Let held deletions go, or plans be carried out
///
/// Without tokens it lists what waits. A token stands for exactly the objects or the
/// plan that it was listed with, and for no others; of deletions it can be acted on for
/// an hour, and a plan is carried out once. Sets the annotation
/// reeve.dev/approve-deletion of the Plugin or reeve.dev/approve-plan of the Unit, for
/// which you need get and patch on them, and list on units.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 it was approved, or listed; 1 with --wait, it is still held; 2 it \
    could not be approved."
)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Tokens of what may go
    #[arg(value_name = "TOKEN", value_parser = parse_token)]
    tokens: Vec<Token>,
    /// Everything that waits now
    #[arg(long, conflicts_with = "tokens")]
    all: bool,
}

fn parse_token(text: &str) -> Result<Token, String> {
    text.parse::<Token>().map_err(|error| error.to_string())
}

/// Approvals that are kept on a plugin: they end after an hour, so that older ones
/// than the last few have done what they can.
const KEPT: usize = 20;

/// Something that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// What approves it.
    pub(super) token: String,
    /// What is said about it, and of which unit; none for the whole plugin.
    message: String,
    unit: Option<String>,
    /// Name of the Unit whose plan it is; none for deletions.
    plan_of: Option<String>,
}

pub(crate) async fn run(args: ApproveArgs) -> anyhow::Result<ExitCode> {
    let target = &args.target;
    let name = &target.plugin;
    let client = target.connection.client().await?;
    let plugin = find(&client, target).await?;
    let units: Api<Unit> = Api::namespaced(client.clone(), &target.connection.namespace);
    let units = units.list(&ListParams::default()).await;
    let mut units = units.context("cannot list units")?.items;
    units.retain(|unit| unit.spec.plugin == *name);
    let held = held(&plugin, &units);
    if args.tokens.is_empty() && !args.all {
        list(name, &held);
        return Ok(ExitCode::SUCCESS);
    }
    let chosen: Vec<String> = if args.all {
        held.iter().map(|one| one.token.clone()).collect()
    } else {
        args.tokens.iter().map(ToString::to_string).collect()
    };
    if chosen.is_empty() {
        bail!("nothing of plugin {name} waits for approval");
    }
    for token in &chosen {
        if !held.iter().any(|one| one.token == *token) {
            bail!(
                "{token} stands for nothing of plugin {name} that waits now: what waits has \
                 changed, or is gone; `reeve approve {name}` lists it"
            );
        }
    }
    let is_chosen = |one: &&Held| chosen.contains(&one.token);
    let (plans, deletions): (Vec<&Held>, Vec<&Held>) = held
        .iter()
        .filter(is_chosen)
        .partition(|one| one.plan_of.is_some());
    if !deletions.is_empty() {
        let tokens: Vec<String> = deletions.iter().map(|one| one.token.clone()).collect();
        let value = approvals(&plugin, &tokens);
        let patch = json!({"metadata": {"annotations": {APPROVE_DELETION_ANNOTATION: value}}});
        change(&client, target, &patch).await?;
    }
    for plan in plans {
        let unit = plan.plan_of.as_deref().unwrap_or_default();
        let annotations = json!({APPROVE_PLAN_ANNOTATION: plan.token});
        let patch = json!({"metadata": {"annotations": annotations}});
        let api: Api<Unit> = Api::namespaced(client.clone(), &target.connection.namespace);
        let patched = api
            .patch(unit, &patch_params(), &Patch::Merge(&patch))
            .await;
        patched.with_context(|| format!("cannot change unit {unit}"))?;
    }
    output::tell(format_args!("{name}: approved {}", chosen.join(", ")));
    if !target.wait {
        return Ok(ExitCode::SUCCESS);
    }
    wait(&client, target, &Goal::Approved(chosen)).await
}

/// The value of the annotation with these tokens added to those that are there.
fn approvals(plugin: &Plugin, chosen: &[String]) -> String {
    let there = plugin.annotations().get(APPROVE_DELETION_ANNOTATION);
    let there = there.map(String::as_str).unwrap_or_default().split(',');
    let mut tokens: Vec<&str> = there
        .map(str::trim)
        .filter(|token| !token.is_empty() && !chosen.iter().any(|one| one == token))
        .collect();
    tokens.extend(chosen.iter().map(String::as_str));
    let surplus = tokens.len().saturating_sub(KEPT.max(chosen.len()));
    tokens[surplus..].join(",")
}

fn list(name: &str, held: &[Held]) {
    if held.is_empty() {
        output::tell(format_args!("nothing of plugin {name} waits for approval"));
    }
    for one in held {
        let place = match &one.unit {
            Some(unit) => format!("{unit}: "),
            None => "all units together: ".to_owned(),
        };
        output::tell(format_args!(
            "{}\n  {place}{}\n  approve with: reeve approve {name} {}",
            one.token, one.message, one.token
        ));
    }
}

/// What waits of a plugin as a whole, and of its units.
pub(super) fn held(plugin: &Plugin, units: &[Unit]) -> Vec<Held> {
    let mut held = Vec::new();
    let mut known = BTreeSet::new();
    let mut add = |message: &str, unit: Option<String>| {
        for part in message.split("; approve these and no others with ") {
            // What is before the first is what the hold says.
            let Some(token) = first_word(part) else {
                continue;
            };
            if known.insert(token.clone()) {
                held.push(Held {
                    message: told(message, &token),
                    token,
                    unit: unit.clone(),
                    plan_of: None,
                });
            }
        }
    };
    let status = plugin.status.iter();
    for condition in status.flat_map(|status| &status.conditions) {
        if condition.type_ == "DeletionsHeld" {
            add(&condition.message, None);
        }
    }
    for unit in units {
        let status = unit.status.iter();
        let conditions = status.flat_map(|status| &status.conditions);
        for condition in conditions.filter(|one| one.type_ == "Ready") {
            let primary = &unit.spec.primary;
            add(
                &condition.message,
                Some(format!("{} {}", primary.kind, primary.name)),
            );
        }
    }
    held.extend(units.iter().filter_map(plan_of));
    held
}

/// The plan of a unit that waits for a person.
fn plan_of(unit: &Unit) -> Option<Held> {
    let status = unit.status.as_ref()?;
    let plan = status.plan.as_ref()?;
    let waits = |one: &&Condition| one.type_ == "Ready" && one.reason == "AwaitingApproval";
    status.conditions.iter().find(waits)?;
    let primary = &unit.spec.primary;
    let mut message = format!(
        "{} to create, {} to change, {} to delete",
        plan.create, plan.change, plan.delete
    );
    for step in &plan.steps {
        let object = &step.object;
        let name = match &object.namespace {
            Some(namespace) => format!("{namespace}/{}", object.name),
            None => object.name.clone(),
        };
        message.push_str(&format!("\n    {} {} {name}", step.action, object.kind));
    }
    let shown = u32::try_from(plan.steps.len()).unwrap_or(u32::MAX);
    let more = (plan.create + plan.change + plan.delete).saturating_sub(shown);
    if more > 0 {
        message.push_str(&format!("\n    and {more} more"));
    }
    for effect in &plan.effects {
        let PlanEffect { verb, name, key } = effect;
        message.push_str(&format!("\n    {verb} outside effect {name} ({key})"));
    }
    let shown = u32::try_from(plan.effects.len()).unwrap_or(u32::MAX);
    let more = plan.effect_count.saturating_sub(shown);
    if more > 0 {
        message.push_str(&format!("\n    and {more} more outside effects"));
    }
    Some(Held {
        token: plan.id.clone(),
        message,
        unit: Some(format!("{} {}", primary.kind, primary.name)),
        plan_of: Some(unit.name_any()),
    })
}

/// The token with which a text begins, if it does.
fn first_word(text: &str) -> Option<String> {
    let word = text.split([':', ' ', ';']).next()?;
    word.parse::<Token>().ok().map(|token| token.to_string())
}

/// What a message says before a token.
fn told(message: &str, token: &str) -> String {
    let before = message.split("; approve these and no others with ");
    let mut last = "";
    for part in before {
        if first_word(part).as_deref() == Some(token) {
            break;
        }
        last = part;
    }
    // Behind an earlier token stands its command, and then the next hold.
    let last = last.rsplit("`; ").next().unwrap_or(last);
    last.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::Timestamp;
    use reeve_api::{
        PlanStatus, PlanStep, PluginSpec, PrimaryReference, UnitSpec, UnitStatus, condition,
    };

    const ONE: &str = "0123456789abcdef0123";
    const TWO: &str = "abcdef0123456789abcd";

    fn unit(message: &str) -> Unit {
        let mut unit = Unit::new("u", UnitSpec::default());
        unit.spec.primary.kind = "Profile".to_owned();
        unit.spec.primary.name = "alice".to_owned();
        let now = Timestamp::UNIX_EPOCH;
        unit.status = Some(UnitStatus {
            conditions: vec![condition(
                "Ready",
                "False",
                "DeletionHeld",
                message,
                None,
                now,
            )],
            ..UnitStatus::default()
        });
        unit
    }

    #[test]
    fn tokens_are_found_in_what_is_said() {
        let hold = |what: &str, token: &str| {
            format!("{what}; approve these and no others with {token}: `reeve approve p {token}`")
        };
        let plugin = Plugin::new("p", PluginSpec::default());
        let message = format!("{}; {}", hold("1 deletion is held: x", ONE), hold("y", TWO));
        let found = held(&plugin, &[unit(&message), unit("all is well")]);
        let told: Vec<_> = found
            .iter()
            .map(|one| {
                (
                    one.token.as_str(),
                    one.message.as_str(),
                    one.unit.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (ONE, "1 deletion is held: x", Some("Profile alice")),
                (TWO, "y", Some("Profile alice")),
            ]
        );
    }

    #[test]
    fn plans_that_wait_are_listed_with_their_steps() {
        let plugin = Plugin::new("p", PluginSpec::default());
        let mut waiting = unit("waits");
        let status = waiting.status.as_mut().unwrap();
        status.conditions[0].reason = "AwaitingApproval".to_owned();
        let object = PrimaryReference {
            kind: "Widget".to_owned(),
            namespace: Some("a".to_owned()),
            name: "w".to_owned(),
            ..PrimaryReference::default()
        };
        status.plan = Some(PlanStatus {
            id: ONE.to_owned(),
            create: 2,
            steps: vec![PlanStep {
                action: "Create".to_owned(),
                object,
            }],
            effects: vec![PlanEffect {
                verb: "Retire".to_owned(),
                name: "database".to_owned(),
                key: "db".to_owned(),
            }],
            effect_count: 3,
            ..PlanStatus::default()
        });
        let mut shown = waiting.clone();
        shown.status.as_mut().unwrap().conditions[0].reason = "PlanOnly".to_owned();
        let found = held(&plugin, &[shown, waiting]);
        let expected = Held {
            token: ONE.to_owned(),
            message: "2 to create, 0 to change, 0 to delete\n    Create Widget a/w\n    \
                      and 1 more\n    Retire outside effect database (db)\n    \
                      and 2 more outside effects"
                .to_owned(),
            unit: Some("Profile alice".to_owned()),
            plan_of: Some("u".to_owned()),
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn approvals_are_added_and_bounded() {
        let mut plugin = Plugin::new("p", PluginSpec::default());
        let two = [TWO.to_owned()];
        assert_eq!(approvals(&plugin, &two), TWO);
        let annotate = |plugin: &mut Plugin, value: String| {
            plugin
                .annotations_mut()
                .insert(APPROVE_DELETION_ANNOTATION.to_owned(), value);
        };
        annotate(&mut plugin, format!("{ONE}, {TWO}"));
        assert_eq!(approvals(&plugin, &two), format!("{ONE},{TWO}"));
        annotate(&mut plugin, vec![ONE; 30].join(","));
        let tokens = approvals(&plugin, &two);
        assert_eq!(tokens.split(',').count(), KEPT);
        assert!(tokens.ends_with(TWO));
    }
}
