//! The `reeve` binary: parses, wires, runs.

mod actors;
mod cluster;
mod connection;
mod crds;
mod dev;
mod logging;
mod output;
mod run;
mod signal;
mod test;
mod undo;

use clap::{Parser, Subcommand};
use reeve_core::chain;
use std::io::Write as _;
use std::process::ExitCode;

/// Kubernetes controllers as WebAssembly components
///
/// Reeve loads plugins from ConfigMaps, shows them the cluster, and applies the
/// resources that they return, as the ServiceAccount that each of them was given.
#[derive(Parser)]
#[command(name = "reeve", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 success; 1 it ran and failed; 2 the command line, a file or \
    the environment is unusable.\nLogs go to standard error; set RUST_LOG to see more, for \
    example RUST_LOG=reeve=debug."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dev(dev::DevArgs),
    Run(run::RunArgs),
    Cluster(cluster::ClusterArgs),
    Test(test::TestArgs),
    Undo(undo::UndoArgs),
    Crds(crds::CrdsArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match cli.command {
        Command::Dev(args) => {
            logging::init(dev::LOGS, false);
            with_runtime(dev::run(args))
        }
        Command::Run(args) => {
            logging::init("info", args.json_logs());
            with_runtime(run::run(args))
        }
        Command::Cluster(args) => {
            logging::init("warn", false);
            with_runtime(cluster::run(args))
        }
        Command::Test(args) => {
            logging::init("error", false);
            test::run(args)
        }
        Command::Undo(args) => {
            logging::init("error", false);
            with_runtime(undo::run(args))
        }
        Command::Crds(args) => crds::run(&args),
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            // Where nobody reads it, the exit code has to do.
            let _ = writeln!(std::io::stderr(), "error: {}", chain(error.as_ref()));
            ExitCode::from(2)
        }
    }
}

fn with_runtime(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(work);
    // A compilation that nobody waits for any more must not hold up the exit.
    runtime.shutdown_background();
    ended
}
