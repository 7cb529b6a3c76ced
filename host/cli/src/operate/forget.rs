//! `reeve forget`.

use super::outcome::{Goal, wait};
use super::{TargetArgs, find, find_unit, patch_params, primary_of};
use crate::output;
use anyhow::{Context as _, bail};
use clap::Args;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch};
use reeve_agent::{forget_token, forget_tokens};
use reeve_api::{ActionStatus, FORGET_EFFECTS_ANNOTATION, Unit};
use serde_json::json;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// Have the agent forget outside effects that you have taken away by hand
///
/// What is asked for no more is taken away by the plugin. Where that cannot be, as under a
/// version that no longer declares the action, it is tried again and again, and its unit is
/// not ready. Take it away by hand, and then name its key. Without a key this lists what is
/// to be taken away. Sets the annotation reeve.dev/forget-effects of the Unit, for which you
/// need list and patch on units, and list on the kind of the primary.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 it was asked, or listed, and with --wait it is forgotten; 1 with \
    --wait, it was not in time, as where the plugin is suspended; 2 it could not be asked."
)]
pub(crate) struct ForgetArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// The unit of this primary, such as alice or Profile/alice
    #[arg(long, value_name = "PRIMARY")]
    unit: String,
    /// Keys of effects that you have taken away
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
}

pub(crate) async fn run(args: ForgetArgs) -> anyhow::Result<ExitCode> {
    let target = &args.target;
    let name = &target.plugin;
    let client = target.connection.client().await?;
    let plugin = find(&client, target).await?;
    let primary = find_unit(&client, &plugin, &args.unit).await?;
    let api: Api<Unit> = Api::namespaced(client.clone(), &target.connection.namespace);
    let units = api.list(&ListParams::default()).await;
    let mut units = units.context("cannot list units")?.items.into_iter();
    let unit = units.find(|unit| {
        let found = primary_of(unit).filter(|_| unit.spec.plugin == *name);
        found.is_some_and(|found| {
            found.kind.same_kind(&primary.kind)
                && (&found.namespace, &found.name) == (&primary.namespace, &primary.name)
        })
    });
    let status = unit.as_ref().and_then(|unit| unit.status.as_ref());
    let actions = status.into_iter().flat_map(|status| &status.actions);
    let leaving: Vec<&ActionStatus> = actions.filter(|one| one.state == "Retiring").collect();
    let Some(unit) = unit.as_ref().filter(|_| !leaving.is_empty()) else {
        output::tell(format_args!(
            "{name}: {primary} has no effect that is to be taken away"
        ));
        return Ok(ExitCode::SUCCESS);
    };
    if args.keys.is_empty() {
        for ActionStatus {
            key, name, message, ..
        } in leaving
        {
            let message = message.as_deref().unwrap_or("it was not tried yet");
            output::tell(format_args!("{key} (action {name}): {message}"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let before = unit.annotations().get(FORGET_EFFECTS_ANNOTATION);
    let before = before.map(String::as_str).unwrap_or_default();
    let mut tokens = forget_tokens(before);
    for key in &args.keys {
        let Some(found) = leaving.iter().find(|one| one.key == *key) else {
            let keys: Vec<&str> = leaving.iter().map(|one| one.key.as_str()).collect();
            bail!(
                "no effect {key} of {primary} is to be taken away; there are: {}",
                keys.join(", ")
            );
        };
        tokens.insert(token_of(found));
    }
    // Those of effects that are forgotten by now are of no use.
    let known: BTreeSet<String> = leaving.iter().map(|one| token_of(one)).collect();
    tokens.retain(|token| known.contains(token));
    let tokens: Vec<String> = tokens.into_iter().collect();
    // What somebody else has set meanwhile is not lost.
    let patch = json!({"metadata": {
        "resourceVersion": unit.resource_version(),
        "annotations": {FORGET_EFFECTS_ANNOTATION: tokens.join(",")},
    }});
    let object = unit.name_any();
    let patched = api
        .patch(&object, &patch_params(), &Patch::Merge(&patch))
        .await;
    patched.with_context(|| format!("cannot change Unit {object}"))?;
    output::tell(format_args!(
        "{name}: asked to forget {}",
        args.keys.join(", ")
    ));
    if !target.wait {
        return Ok(ExitCode::SUCCESS);
    }
    let goal = Goal::Forgotten {
        unit: object,
        keys: args.keys,
    };
    wait(&client, target, &goal).await
}

fn token_of(action: &ActionStatus) -> String {
    forget_token(&action.request, action.applied_at.as_deref())
}
