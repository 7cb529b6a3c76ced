//! `reeve model list` and `status`.

use super::PlaceArgs;
use super::fleet::Fleet;
use super::result::{Standing, of_all};
use super::trouble;
use crate::columns::table;
use crate::looking::{Output, print_json};
use crate::output;
use clap::Args;
use std::process::ExitCode;
use std::time::Instant;

/// List all deployments of a namespace, by their ids
///
/// You need list on modeldeployments.
#[derive(Args)]
pub(super) struct ListArgs {
    /// Form of the list
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Show how a deployment stands
///
/// You need list on modeldeployments. With list on units in all namespaces it is also told
/// what the agent is refused for the deployment.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 it is passing, or with a warning; 1 it is failing, or nothing is \
    known of it; 2 it could not be told."
)]
pub(super) struct StatusArgs {
    /// Id of the deployment
    id: String,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) async fn list(args: ListArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let fleet = Fleet::read(&args.place).await?;
    let standings: Vec<Standing> = fleet.deployments.iter().map(Standing::of).collect();
    match args.output {
        Output::Json => print_json(&of_all(&standings, began.elapsed()))?,
        Output::Text if standings.is_empty() => output::print(format_args!(
            "no deployments in namespace {}; `reeve model start ID` makes one\n",
            fleet.namespace
        ))?,
        Output::Text => output::print(text(&standings))?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn status(args: StatusArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let client = args.place.client().await?;
    let fleet = Fleet::of(client.clone(), &args.place.namespace).await?;
    let deployment = fleet.get(&args.id)?;
    let mut standing = Standing::of(deployment);
    if let Some(trouble) = trouble::of(&client, deployment).await? {
        standing.hindered_by(trouble);
    }
    match args.output {
        Output::Json => print_json(&standing.result(began.elapsed()))?,
        Output::Text => output::print(text(std::slice::from_ref(&standing)))?,
    }
    Ok(match standing.status.as_str() {
        "passing" | "warning" => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

pub(super) fn text(standings: &[Standing]) -> String {
    let rows: Vec<[String; 6]> = standings
        .iter()
        .map(|one| {
            [
                one.id.clone(),
                one.state.clone(),
                one.status.clone(),
                one.current.clone().unwrap_or_default(),
                one.wanted.clone(),
                output::on_one_line(&one.message),
            ]
        })
        .collect();
    table(
        ["ID", "STATE", "STATUS", "MODEL", "WANTED", "MESSAGE"],
        &rows,
    )
}
