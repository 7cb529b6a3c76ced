//! The `reeve` binary: parses, wires, runs.

mod actors;
mod bounds;
mod cluster;
mod columns;
mod compile;
mod connection;
mod crds;
mod dev;
mod explain;
mod get;
mod kinds;
mod kubeconfig;
mod logging;
mod looking;
mod model;
mod operate;
mod output;
mod pack;
mod plan;
mod plugin;
mod record;
mod replay;
mod run;
mod settings;
mod signal;
mod state;
mod style;
mod test;
mod undo;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::process::ExitCode;
use tokio::runtime::Builder;

/// An agent and an embedded cluster make trees of JSON and drop them all the time. Scenarios
/// are a tenth quicker with this one than with that of the C library, and an agent computes a
/// fifth less. How it is set is in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Kubernetes controllers as WebAssembly components
///
/// Reeve loads plugins from ConfigMaps, shows them the cluster, and applies the
/// resources that they return, as the ServiceAccount that each of them was given.
#[derive(Parser)]
#[command(name = "reeve", version, max_term_width = 100)]
#[command(
    after_help = "Authors of plugins begin with `reeve dev` and `reeve test`, operators with \
    `reeve run`, `reeve get` and `reeve plan`.\n\n\
    Exit codes: 0 success; 1 it ran and failed; 2 the command line, a file or \
    the environment is unusable. `reeve plan` and `reeve replay` have their own.\nLogs go to standard error; set RUST_LOG to see more, for \
    example RUST_LOG=reeve=debug."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dev(dev::DevArgs),
    Test(test::TestArgs),
    Cluster(cluster::ClusterArgs),
    Run(run::RunArgs),
    Plan(plan::PlanArgs),
    Record(record::RecordArgs),
    Replay(replay::ReplayArgs),
    Explain(explain::ExplainArgs),
    Get(get::GetArgs),
    Reconcile(operate::ReconcileArgs),
    Retry(operate::RetryArgs),
    Sync(operate::SyncArgs),
    Suspend(operate::SuspendArgs),
    Resume(operate::ResumeArgs),
    Approve(operate::ApproveArgs),
    Release(operate::ReleaseArgs),
    Forget(operate::ForgetArgs),
    Plugin(plugin::PluginArgs),
    Pack(pack::PackArgs),
    Model(model::ModelArgs),
    Undo(undo::UndoArgs),
    Crds(crds::CrdsArgs),
    #[command(name = compile::NAME, hide = true)]
    Compile(compile::CompileArgs),
}

fn main() -> ExitCode {
    let ended = match parse() {
        Ok(Ok(Parsed::Command(command))) => run(*command),
        Ok(Ok(Parsed::Settings(text))) => output::print(text).map(|()| ExitCode::SUCCESS),
        Ok(Err(error)) => return unusable(&error),
        Err(error) => Err(error),
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            output::complain(output::in_words(&error));
            ExitCode::from(2)
        }
    }
}

/// What there is to do.
enum Parsed {
    Command(Box<Command>),
    /// The settings to be printed.
    Settings(String),
}

/// What the command line asks for, or what clap has to say about it.
///
/// # Errors
///
/// When the settings of `reeve run` are unusable.
fn parse() -> anyhow::Result<Result<Parsed, clap::Error>> {
    let matches = match settings::matches(Cli::command())? {
        Ok(matches) => matches,
        Err(error) => return Ok(Err(error)),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return Ok(Err(error)),
    };
    match &cli.command {
        Command::Run(args) if args.print_config => {
            args.check()?;
            let text = settings::print(&Cli::command(), &matches);
            Ok(Ok(Parsed::Settings(text)))
        }
        _ => Ok(Ok(Parsed::Command(Box::new(cli.command)))),
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Dev(args) => {
            logging::init(dev::LOGS, false);
            with_runtime(dev::run(args))
        }
        Command::Run(args) => {
            logging::init("info", args.json_logs());
            for line in settings::unread(&Cli::command()) {
                tracing::warn!("{line}");
            }
            in_runtime(run::threads().enable_all(), run::run(args))
        }
        Command::Cluster(args) => {
            logging::init("warn", false);
            with_runtime(cluster::run(args))
        }
        Command::Test(args) => {
            logging::init("error", false);
            test::run(args)
        }
        Command::Plan(args) => ask(plan::run(args)),
        Command::Record(args) => ask(record::run(args)),
        Command::Replay(args) => ask(replay::run(args)),
        Command::Explain(args) => ask(explain::run(args)),
        Command::Get(args) => ask(get::run(args)),
        Command::Reconcile(args) => ask(operate::reconcile(args)),
        Command::Retry(args) => ask(operate::retry(args)),
        Command::Sync(args) => ask(operate::sync(args)),
        Command::Suspend(args) => ask(operate::suspend(args)),
        Command::Resume(args) => ask(operate::resume(args)),
        Command::Approve(args) => ask(operate::approve(args)),
        Command::Release(args) => ask(operate::release(args)),
        Command::Forget(args) => ask(operate::forget(args)),
        Command::Plugin(args) => ask(plugin::run(args)),
        Command::Pack(args) => ask(pack::run(args)),
        Command::Model(args) => ask(model::run(args)),
        Command::Undo(args) => ask(undo::run(args)),
        Command::Crds(args) => crds::run(&args),
        // Before anything starts a thread.
        Command::Compile(args) => Ok(compile::run(&args)),
    }
}

/// Says what is wrong with the command line, or shows the help that it asks for. Of
/// `reeve plan` and `reeve replay`, exit code 2 means that something differs.
fn unusable(error: &clap::Error) -> ExitCode {
    // Where nobody reads it, the exit code has to do.
    let _ = error.print();
    let given = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    if let Some(name) = settings::variable_of(&Cli::command(), error, given) {
        output::complain(format_args!(
            "the value is that of {name} in the environment; set that otherwise"
        ));
    }
    let compares = std::env::args_os()
        .nth(1)
        .is_some_and(|name| name == "plan" || name == "replay");
    ExitCode::from(match (error.use_stderr(), compares) {
        (false, _) => 0,
        (true, true) => 1,
        (true, false) => 2,
    })
}

/// Runs a command whose answer is all that anybody wants to read.
fn ask(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    // The client logs what its errors say once more.
    logging::init("error,kube_client=off", false);
    with_runtime(work)
}

fn with_runtime(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    in_runtime(Builder::new_multi_thread().enable_all(), work)
}

fn in_runtime(
    builder: &mut Builder,
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let runtime = builder.build()?;
    let ended = runtime.block_on(work);
    // A compilation that nobody waits for any more must not hold up the exit.
    runtime.shutdown_background();
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a command and those below it leave unsaid.
    fn unsaid(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        let says = |text: Option<&clap::builder::StyledStr>| {
            text.is_some_and(|text| text.to_string().len() > 5)
        };
        if !says(command.get_about()) {
            found.push(path.to_owned());
        }
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let id = arg.get_id();
            if !says(arg.get_help()) {
                found.push(format!("{path}: {id}"));
            }
            let default = arg.get_default_values();
            // Commands on models work where their agent did.
            let is_agents = id == "namespace" && !path.starts_with("reeve model ");
            if is_agents && !default.is_empty() && default != ["reeve-system"] {
                found.push(format!("{path}: {id} is {default:?}"));
            }
        }
        for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            unsaid(below, &format!("{path} {}", below.get_name()), found);
        }
    }

    #[test]
    fn every_command_and_argument_says_what_it_is_for() {
        let mut command = Cli::command();
        command.build();
        let mut found = Vec::new();
        unsaid(&command, "reeve", &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
