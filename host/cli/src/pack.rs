//! `reeve pack`.

mod document;
mod edit;
mod list;
mod offline;
mod parts;
mod reconcile;
mod render;
mod standing;
mod status;
mod stored;

use crate::connection::ConnectionArgs;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// List, change, apply and render packs
///
/// A platform comes in packs, which the plugin packs installs from a desired state; see
/// docs/packs.md. `add`, `remove`, `suspend` and `resume` change the desired state,
/// `reconcile` has it applied, and `status` says what stands in the way.
#[derive(Args)]
pub(crate) struct PackArgs {
    #[command(subcommand)]
    command: PackCommand,
}

#[derive(Subcommand)]
enum PackCommand {
    List(list::ListArgs),
    Add(edit::AddArgs),
    Remove(edit::RemoveArgs),
    Suspend(edit::SuspendArgs),
    Resume(edit::ResumeArgs),
    Reconcile(reconcile::ReconcileArgs),
    Status(status::StatusArgs),
    Render(render::RenderArgs),
}

/// Which installation of the plugin is meant.
#[derive(Args)]
struct TargetArgs {
    /// The ConfigMap with the component of packs; its parts are the plugins that name
    /// it, and itself
    #[arg(long, value_name = "NAME", default_value = "packs")]
    plugin: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) async fn run(args: PackArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        PackCommand::List(args) => list::run(args).await,
        PackCommand::Add(args) => edit::add(args).await,
        PackCommand::Remove(args) => edit::remove(args).await,
        PackCommand::Suspend(args) => edit::suspend(args).await,
        PackCommand::Resume(args) => edit::resume(args).await,
        PackCommand::Reconcile(args) => reconcile::run(args).await,
        PackCommand::Status(args) => status::run(args).await,
        PackCommand::Render(args) => render::run(args).await,
    }
}
