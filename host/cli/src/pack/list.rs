//! `reeve pack list`.

use super::TargetArgs;
use super::standing::{PackStanding, Standing};
use crate::columns::table;
use crate::looking::{Output, print_json};
use crate::output;
use clap::Args;
use std::process::ExitCode;

/// List packs: those that are wanted and those that are there
///
/// You need get on the desired state, and list on packs, plugins, units, configmaps and
/// helmreleases.
#[derive(Args)]
pub(super) struct ListArgs {
    /// Form of the list
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: ListArgs) -> anyhow::Result<ExitCode> {
    let client = args.target.connection.client().await?;
    let standing = Standing::read(&client, &args.target).await?;
    match args.output {
        Output::Json => print_json(&standing.json())?,
        Output::Text => output::print(text(&standing))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn text(standing: &Standing) -> String {
    if standing.packs.is_empty() {
        return "no packs; `reeve pack add NAME` and `reeve pack reconcile` install one\n"
            .to_owned();
    }
    let rows: Vec<[String; 5]> = standing.packs.iter().map(row).collect();
    let mut text = table(["NAME", "WAVE", "VERSION", "STATE", "PENDING"], &rows);
    if let Some(unknown) = &standing.unknown {
        text.push_str(&format!("what is wanted is not known: {unknown}\n"));
    }
    if !(standing.halts.is_empty() && standing.troubles.is_empty()) {
        text.push_str("not all is well; `reeve pack status` says what\n");
    }
    text
}

fn row(pack: &PackStanding) -> [String; 5] {
    [
        pack.name.clone(),
        pack.wave.map(|wave| wave.to_string()).unwrap_or_default(),
        pack.version.clone().unwrap_or_else(|| "newest".to_owned()),
        format!("{:?}", pack.state),
        match pack.pending {
            true => "yes".to_owned(),
            false => String::new(),
        },
    ]
}
