//! `reeve pack status`.

use super::TargetArgs;
use super::standing::{PackStanding, Standing, State, Trouble, Warning};
use crate::looking::{Output, print_json};
use crate::output;
use anyhow::bail;
use clap::Args;
use std::process::ExitCode;

/// Show the tree of packs, and what stands in the way of each
///
/// You need get on the desired state, and list on packs, units, plugins and helmreleases.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 all packs are as they are wanted; 1 something is not, and it says \
    what; 2 it could not be told."
)]
pub(super) struct StatusArgs {
    /// Only this pack
    name: Option<String>,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: StatusArgs) -> anyhow::Result<ExitCode> {
    let client = args.target.connection.client().await?;
    let mut standing = Standing::read(&client, &args.target).await?;
    if let Some(name) = &args.name {
        let names: Vec<String> = standing.packs.iter().map(|one| one.name.clone()).collect();
        standing.packs.retain(|pack| pack.name == *name);
        if standing.packs.is_empty() {
            bail!(
                "there is no pack {name}, and none is wanted; there are: {}",
                names.join(", ")
            );
        }
        standing.troubles.clear();
        standing.warnings.clear();
    }
    match args.output {
        Output::Json => print_json(&standing.json())?,
        Output::Text => output::print(text(&standing))?,
    }
    Ok(ExitCode::from(code(&standing)))
}

/// What is known to be wrong comes before what is not known.
fn code(standing: &Standing) -> u8 {
    match standing.untold() {
        _ if !standing.is_well() => 1,
        Some(_) => 2,
        None => 0,
    }
}

fn text(standing: &Standing) -> String {
    let mut text = match &standing.place {
        Some(place) => format!("desired state: {place}\n"),
        None => "desired state: none, Packs are made by hand\n".to_owned(),
    };
    if let Some(unknown) = &standing.unknown {
        text.push_str(&format!("  not known: {unknown}\n"));
    }
    for trouble in standing.halts.iter().chain(&standing.troubles) {
        text.push_str(&format!("  {}\n", said(trouble)));
    }
    for warning in &standing.warnings {
        text.push_str(&format!("  {}\n", warned(warning)));
    }
    let last = standing.packs.len().saturating_sub(1);
    for (index, pack) in standing.packs.iter().enumerate() {
        let (branch, stem) = match index == last {
            true => ("└─ ", "   "),
            false => ("├─ ", "│  "),
        };
        text.push_str(&format!("{branch}{}: {}\n", pack.name, of(pack)));
        for line in below(pack) {
            text.push_str(&format!("{stem}  {line}\n"));
        }
    }
    text
}

fn of(pack: &PackStanding) -> String {
    let state = match pack.state {
        State::NotApplied => "not applied",
        State::Going => "going",
        State::Disabled => "not enabled",
        State::Suspended => "suspended",
        State::Blocked => "blocked",
        State::Waiting => "waiting",
        State::Failed => "failed",
        State::Ready => "ready",
    };
    match pack.pending {
        true => format!("{state}; `reeve pack reconcile` applies what is wanted of it now"),
        false => state.to_owned(),
    }
}

fn below(pack: &PackStanding) -> Vec<String> {
    let mut lines: Vec<String> = pack.troubles.iter().map(said).collect();
    lines.extend(pack.warnings.iter().map(warned));
    for release in &pack.releases {
        let ready = match release.ready {
            true => "ready",
            false => "not ready",
        };
        lines.push(format!(
            "HelmRelease {} is {ready}: {}",
            release.name, release.message
        ));
    }
    lines
}

fn said(trouble: &Trouble) -> String {
    let Trouble {
        plugin,
        reason,
        message,
        ..
    } = trouble;
    match &trouble.plan {
        Some(_) => format!("{plugin}: {message}; `reeve pack reconcile` approves it"),
        None => format!("{plugin}: {reason}: {message}"),
    }
}

fn warned(warning: &Warning) -> String {
    let Warning {
        plugin,
        condition,
        message,
    } = warning;
    format!("{plugin}: warning: {condition}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::standing::Release;
    use crate::pack::stored::Place;

    #[test]
    fn the_tree_says_what_blocks() {
        let pack = |name: &str, state: State, message: Option<&str>| PackStanding {
            name: name.to_owned(),
            wave: Some(1),
            version: None,
            state,
            pending: false,
            troubles: message
                .map(|message| Trouble {
                    plugin: "packs".to_owned(),
                    reason: "NotReady".to_owned(),
                    message: message.to_owned(),
                    blocked_by: None,
                    plan: None,
                })
                .into_iter()
                .collect(),
            warnings: Vec::new(),
            releases: Vec::new(),
        };
        let mut istio = pack("istio", State::Waiting, None);
        istio.pending = true;
        let warning = |plugin: &str, condition: &str| Warning {
            plugin: plugin.to_owned(),
            condition: condition.to_owned(),
            message: "spec.patches[0]: no object".to_owned(),
        };
        istio.warnings.push(warning("packs", "PatchesMatch"));
        istio.releases.push(Release {
            name: "istio-system/istiod".to_owned(),
            ready: false,
            message: "R: m".to_owned(),
        });
        let mut standing = Standing {
            place: None,
            unknown: Some("no".to_owned()),
            halts: vec![Trouble {
                plugin: "packs-flux".to_owned(),
                reason: "ApprovalRequired".to_owned(),
                message: "an earlier version runs: x".to_owned(),
                blocked_by: None,
                plan: None,
            }],
            troubles: vec![Trouble {
                plugin: "packs-desired-state".to_owned(),
                reason: "AwaitingApproval".to_owned(),
                message: "1 to create".to_owned(),
                blocked_by: None,
                plan: Some("id".to_owned()),
            }],
            warnings: vec![warning("packs-desired-state", "DesiredStateClear")],
            packs: vec![
                istio,
                pack("sgp-apps", State::Blocked, Some("blocked by pack istio: x")),
            ],
        };
        assert_eq!(
            text(&standing),
            "desired state: none, Packs are made by hand\n  \
               not known: no\n  \
               packs-flux: ApprovalRequired: an earlier version runs: x\n  \
               packs-desired-state: 1 to create; `reeve pack reconcile` approves it\n  \
               packs-desired-state: warning: DesiredStateClear: spec.patches[0]: no object\n\
             ├─ istio: waiting; `reeve pack reconcile` applies what is wanted of it now\n\
             │    packs: warning: PatchesMatch: spec.patches[0]: no object\n\
             │    HelmRelease istio-system/istiod is not ready: R: m\n\
             └─ sgp-apps: blocked\n     \
                  packs: NotReady: blocked by pack istio: x\n"
        );
        assert_eq!(code(&standing), 1);
        standing.troubles.clear();
        standing.halts.clear();
        standing.packs = vec![pack("flux", State::Ready, None)];
        assert_eq!(code(&standing), 2);
        assert_eq!(standing.json()["ready"], false);
        // What is in a file, only the agent reads.
        standing.place = Some(Place::File("/state".to_owned()));
        assert_eq!(code(&standing), 0);
        standing.place = None;
        standing.unknown = None;
        assert_eq!(code(&standing), 0);
    }
}
