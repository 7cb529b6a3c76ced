//! `reeve get`.

mod plugins;
mod units;

use crate::connection::ConnectionArgs;
use clap::{Args, Subcommand, ValueEnum};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::process::ExitCode;

/// List plugins or units, those in trouble first
#[derive(Args)]
pub(crate) struct GetArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Plugins(plugins::PluginsArgs),
    Units(units::UnitsArgs),
}

/// Form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ListOutput {
    /// For people
    Text,
    /// With messages
    Wide,
    /// For programs
    Json,
}

pub(crate) async fn run(args: GetArgs) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Plugins(args) => plugins::run(args).await?,
        What::Units(args) => units::run(args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether something is ready, and what its conditions say about it.
struct Readiness {
    ready: bool,
    status: String,
    reason: String,
    message: String,
    since: Option<Timestamp>,
}

impl Readiness {
    /// What conditions say. Without a condition it is not known yet.
    fn of(conditions: &[Condition]) -> Self {
        let found = conditions.iter().find(|one| one.type_ == "Ready");
        Self {
            ready: found.is_some_and(|one| one.status == "True"),
            status: found.map_or_else(|| "Unknown".to_owned(), |one| one.status.clone()),
            reason: found.map(|one| one.reason.clone()).unwrap_or_default(),
            message: found.map(|one| one.message.clone()).unwrap_or_default(),
            since: found.map(|one| one.last_transition_time.0),
        }
    }
}

/// How long ago something was, as kubectl writes ages: `45s`, `12m`, `3h`, `8d`.
fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else {
        return "-".to_owned();
    };
    let seconds = now
        .duration_since(since)
        .max(SignedDuration::ZERO)
        .as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        for (ago, expected) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (7_199, "119m"),
            (7_200, "2h"),
            (172_800, "2d"),
        ] {
            let since = now.checked_sub(SignedDuration::from_secs(ago)).unwrap();
            assert_eq!(age(Some(since), now), expected, "{ago}");
        }
        assert_eq!(age(None, now), "-");
    }
}
