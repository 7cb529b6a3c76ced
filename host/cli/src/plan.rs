//! `reeve plan`.

mod json;
mod text;

use crate::looking::{LookArgs, Output, given, print_json, select};
use crate::output;
use crate::style::Painter;
use anyhow::Context as _;
use clap::Args;
use reeve_agent::planner::{Action, Given, Opened, PlanError, Planner, Standing, UnitPlan};
use reeve_api::SyncMode;
use reeve_core::chain;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show what the agent would do now
///
/// Runs the plugins here, on what the cluster holds, exactly as the agent does, and
/// stops before the first write and the first outside effect. Nothing is changed, and a
/// running agent does not notice. Values in Secrets are not shown.
///
/// It reads with your own rights: get, list and watch on what the plugin reads and
/// writes and on configmaps, plugins and units in the agent's namespace, get on its
/// serviceaccounts, and create on subjectaccessreviews. What of the last two you
/// lack is a warning.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 nothing would be done; 2 something would be, or waits for a \
    person; 1 an error: something could not be planned, or is refused.\n\n\
    Examples:\n  \
    reeve plan                                    everything that is installed\n  \
    reeve plan quotas --unit alice                one unit\n  \
    reeve plan quotas --component new.wasm        a version that is not installed yet"
)]
pub(crate) struct PlanArgs {
    /// Only this plugin
    plugin: Option<String>,
    /// Only the unit of this primary, such as alice or Profile/alice
    #[arg(long, value_name = "PRIMARY", requires = "plugin")]
    unit: Option<String>,
    /// Plan with this component instead of the installed one; it need not be
    /// installed
    #[arg(long, value_name = "FILE", requires = "plugin")]
    component: Option<PathBuf>,
    /// Plan with this configuration instead of the installed one
    #[arg(long, value_name = "FILE", requires = "component")]
    config: Option<PathBuf>,
    /// Show units that are as they should be too, and the marks of ownership on
    /// objects
    #[arg(long, short)]
    verbose: bool,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    look: LookArgs,
}

/// The plan of one plugin.
struct PluginPlan {
    plugin: String,
    /// None when it could not be loaded.
    loaded: Option<LoadedPlan>,
    error: Option<String>,
}

struct LoadedPlan {
    version: String,
    digest: String,
    suspended: bool,
    mode: SyncMode,
    warnings: Vec<String>,
    units: Vec<UnitPlan>,
}

/// What there is to do, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    create: usize,
    change: usize,
    delete: usize,
    waiting: usize,
    held: usize,
    refused: usize,
    unchanged: usize,
    /// Outside effects that would be made or taken away.
    effects: usize,
    /// Units and plugins without a plan.
    failed: usize,
}

impl Counts {
    fn of(plans: &[PluginPlan]) -> Self {
        let mut counts = Self::default();
        for plan in plans {
            counts.failed += usize::from(plan.error.is_some());
            let units = plan.loaded.iter().flat_map(|loaded| &loaded.units);
            for unit in units {
                counts.failed += usize::from(!unit.planned);
                counts.unchanged += unit.unchanged;
                let due = unit.effects.iter().filter(|effect| effect.is_due());
                counts.effects += due.count();
                for change in &unit.changes {
                    match (change.standing, change.action) {
                        (Standing::Refused, _) => counts.refused += 1,
                        (Standing::Held, _) => counts.held += 1,
                        (standing, action) => {
                            counts.waiting += usize::from(standing == Standing::Waiting);
                            match action {
                                Action::Create => counts.create += 1,
                                Action::Change | Action::Contribute | Action::Release => {
                                    counts.change += 1;
                                }
                                Action::Delete => counts.delete += 1,
                            }
                        }
                    }
                }
            }
        }
        counts
    }

    fn exit_code(self) -> u8 {
        if self.failed > 0 || self.refused > 0 {
            1
        } else {
            let changes = self.create + self.change + self.delete + self.held + self.effects;
            if changes > 0 { 2 } else { 0 }
        }
    }
}

/// Errors end in exit code 1, since 2 means that there are changes.
pub(crate) async fn run(args: PlanArgs) -> anyhow::Result<ExitCode> {
    match plans(&args).await {
        Ok(plans) => {
            let counts = Counts::of(&plans);
            match args.output {
                Output::Json => print_json(&json::of(&plans, counts))?,
                Output::Text => {
                    let painter = Painter::for_stdout();
                    output::print(text::of(&plans, counts, args.verbose, painter))?;
                }
            }
            Ok(ExitCode::from(counts.exit_code()))
        }
        Err(error) => {
            output::complain(chain(error.as_ref()));
            Ok(ExitCode::FAILURE)
        }
    }
}

async fn plans(args: &PlanArgs) -> anyhow::Result<Vec<PluginPlan>> {
    let given = given(args.component.as_deref(), args.config.as_deref())?;
    let planner = args.look.planner().await?;
    let names = match &args.plugin {
        Some(name) => vec![name.clone()],
        None => planner.plugins().await?,
    };
    let mut plans = Vec::new();
    for name in names {
        let all = args.plugin.is_none();
        match plan(&planner, &name, given.clone(), args.unit.as_deref()).await {
            Ok(loaded) => plans.push(PluginPlan {
                plugin: name,
                loaded: Some(loaded),
                error: None,
            }),
            // One that cannot be planned must not hide the others.
            Err(error) if all => plans.push(PluginPlan {
                plugin: name,
                loaded: None,
                error: Some(chain(error.as_ref())),
            }),
            Err(error) => return Err(error),
        }
    }
    Ok(plans)
}

/// What the newest version of a plugin would do now, of as many units as are to be
/// shown.
pub(crate) struct Differing {
    /// For people.
    pub(crate) text: String,
    /// For programs, as `reeve plan` has it.
    pub(crate) json: Value,
    /// Whether anything would be done.
    pub(crate) differs: bool,
    /// Units that were looked at, of so many.
    pub(crate) looked: usize,
    pub(crate) units: usize,
}

/// Plans units of a plugin until `most` of them differ.
pub(crate) async fn differing(
    look: &LookArgs,
    name: &str,
    most: usize,
    verbose: bool,
) -> anyhow::Result<Differing> {
    let planner = look.planner().await?;
    let opened = planner.open(name, None).await;
    let opened = opened.map_err(|error: PlanError| anyhow::Error::new(error))?;
    let primaries = opened.units();
    let (mut units, mut shown) = (Vec::new(), 0);
    for primary in &primaries {
        if shown >= most {
            break;
        }
        let unit = Box::pin(opened.plan(primary)).await;
        let settled = unit.planned && unit.changes.is_empty() && unit.effects.is_empty();
        shown += usize::from(!settled);
        units.push(unit);
    }
    let looked = units.len();
    let plans = [PluginPlan {
        plugin: name.to_owned(),
        loaded: Some(loaded(&opened, units)),
        error: None,
    }];
    let counts = Counts::of(&plans);
    Ok(Differing {
        text: text::of(&plans, counts, verbose, Painter::for_stdout()),
        json: json::of(&plans, counts),
        differs: counts.exit_code() != 0,
        looked,
        units: primaries.len(),
    })
}

async fn plan(
    planner: &Planner,
    name: &str,
    given: Option<Given>,
    unit: Option<&str>,
) -> anyhow::Result<LoadedPlan> {
    let opened = Box::pin(planner.open(name, given)).await;
    let opened = opened.map_err(|error: PlanError| anyhow::Error::new(error))?;
    let mut primaries = opened.units();
    if let Some(unit) = unit {
        let primary = select(&primaries, unit).with_context(|| format!("plugin {name}"))?;
        primaries = vec![primary];
    }
    let mut units = Vec::new();
    for primary in &primaries {
        units.push(Box::pin(opened.plan(primary)).await);
    }
    Ok(loaded(&opened, units))
}

fn loaded(opened: &Opened<'_>, units: Vec<UnitPlan>) -> LoadedPlan {
    LoadedPlan {
        version: opened.version().to_owned(),
        digest: opened.digest(),
        suspended: opened.is_suspended(),
        mode: opened.mode(),
        warnings: opened.warnings().to_vec(),
        units,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_outweighs_a_change() {
        let counts = Counts::default();
        for (counts, code) in [
            (
                Counts {
                    unchanged: 3,
                    ..counts
                },
                0,
            ),
            (
                Counts {
                    create: 1,
                    ..counts
                },
                2,
            ),
            (Counts { held: 1, ..counts }, 2),
            (
                Counts {
                    effects: 1,
                    ..counts
                },
                2,
            ),
            (
                Counts {
                    create: 1,
                    refused: 1,
                    ..counts
                },
                1,
            ),
            (
                Counts {
                    failed: 1,
                    ..counts
                },
                1,
            ),
        ] {
            assert_eq!(counts.exit_code(), code, "{counts:?}");
        }
    }
}
