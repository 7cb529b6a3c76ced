//! `reeve plugin`.

mod approve;
mod build;
mod describe;
mod diff;
mod grant;
mod inspect;
mod new;
mod outside;
mod package;
mod push;
mod registry;
mod sign;
pub(crate) mod source;

pub(crate) use describe::{Kinds, describe};
pub(crate) use source::{from_file as read_plugin, read_config};

use crate::operate;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Make, build, inspect, package, push, sign, grant and approve plugins, and change their versions
#[derive(Args)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    command: PluginCommand,
}

#[derive(Subcommand)]
enum PluginCommand {
    New(new::NewArgs),
    Build(build::BuildArgs),
    Inspect(inspect::InspectArgs),
    Package(package::PackageArgs),
    Push(push::PushArgs),
    Sign(sign::SignArgs),
    Grant(grant::GrantArgs),
    Approve(approve::ApproveArgs),
    Diff(diff::DiffArgs),
    Rollback(operate::RollbackArgs),
}

pub(crate) async fn run(args: PluginArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        PluginCommand::New(args) => new::run(&args),
        PluginCommand::Build(args) => build::run(&args),
        PluginCommand::Inspect(args) => inspect::run(args).await,
        PluginCommand::Package(args) => package::run(args).await,
        PluginCommand::Push(args) => push::run(args).await,
        PluginCommand::Sign(args) => sign::run(args).await,
        PluginCommand::Grant(args) => grant::run(args).await,
        PluginCommand::Approve(args) => approve::run(args).await,
        PluginCommand::Diff(args) => Box::pin(diff::run(args)).await,
        PluginCommand::Rollback(args) => operate::rollback(args).await,
    }
}
