//! The project's own commands: `cargo xtask <command>`.
//!
//! Everything a contributor or the build machine does goes through here, so that
//! both run the same steps. This crate is compiled before anything else and keeps
//! its dependencies few.

mod components;
mod fuzz;
mod image;
mod jobs;
mod lint;
mod process;
mod report;
mod suite;
mod test;
mod tools;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::workspace::{Workspace, executable_named};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Commands for working on Reeve"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run Reeve on an embedded cluster, with hot reload of the plugins
    ///
    /// Builds the agent, then becomes `reeve dev`, which builds the plugins. With
    /// `--once` it exits when everything has converged; the other arguments are
    /// those of `reeve dev`, see `cargo xtask dev --help`; paths among them are
    /// relative to the root of the repository.
    #[command(disable_help_flag = true)]
    Dev {
        /// Arguments of `reeve dev`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Build every plugin and every guest of the tests into a component
    ///
    /// They are left in target/plugins/<name>.wasm and target/guests/<name>.wasm.
    Plugins,
    /// Run every check and every test, the real servers included
    ///
    /// Ends with a table of the steps and one line of counts. With CI=true the
    /// tests against real servers must run; elsewhere they are skipped, loudly,
    /// where the servers cannot be built.
    Test {
        /// Run only tests and scenarios with this in their name, and no checks
        filter: Option<String>,
    },
    /// Tell the whole story, chart included, on the oldest Kubernetes that is supported
    ///
    /// It is built first, once, which takes some minutes.
    Oldest,
    /// Measure, and print each figure beside its limit
    #[command(disable_help_flag = true)]
    Bench {
        /// Arguments of the benchmarks
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Look for inputs that break what must hold, with cargo-fuzz
    ///
    /// Needs a nightly toolchain (`rustup toolchain install nightly`); cargo-fuzz is
    /// installed into the user's cache folder, once. An input that fails is kept in
    /// target/fuzz/failed/<target>, and what reaches more of the code in
    /// target/fuzz/corpus/<target>.
    Fuzz {
        /// One target of tests/fuzz; without, each in turn
        target: Option<String>,
        /// How long to look, for each target
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Look for nothing, but add what was found to tests/fuzz/corpus, as far as it
        /// reaches more than what has a name there, the smallest first
        #[arg(long, conflicts_with = "seconds")]
        keep: bool,
    },
    /// Build the agent as a static program, ready to be put into an image
    ///
    /// It is left with the Containerfile in target/image/<profile>; what makes an image
    /// of both is printed.
    Image {
        /// Cargo's profile; `dev` is quick to build, and slow
        #[arg(long, default_value = image::DEPLOYED)]
        profile: String,
    },
    /// Build the real servers for the tests into the user's cache folder, once
    Parts,
    /// Format the Rust and Go sources
    Fmt,
    /// Check formatting, lints, the state of the tree and the dependencies
    Lint,
    /// Write the generated CRDs into charts/reeve/crds
    Crds {
        /// Only say whether they are up to date
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    let workspace = Workspace::find();
    match command {
        Command::Dev { arguments } => {
            let mut reeve = workspace.program(&workspace.build_reeve()?);
            let dev = reeve.arg("dev").args(arguments);
            Err(process::become_program(dev))
        }
        Command::Plugins => {
            components::build_plugins(&workspace)?;
            components::build_guests(&workspace)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Test { filter } => test::run(&workspace, filter.as_deref()),
        Command::Oldest => test::oldest(&workspace).map(|()| ExitCode::SUCCESS),
        Command::Bench { arguments } => {
            components::build_plugins(&workspace)?;
            components::build_guests(&workspace)?;
            // The agent whose memory is measured is a process of its own.
            let mut build = workspace.program_build("reeve-bench");
            let messages = process::messages(build.args(["--bin", "reeve", "--profile", "dist"]))?;
            let bench = executable_named(&messages, "reeve-bench")?;
            process::run(workspace.program(&bench).args(arguments)).map(|()| ExitCode::SUCCESS)
        }
        Command::Fuzz {
            target,
            seconds,
            keep,
        } => {
            let target = target.as_deref();
            let done = match keep {
                true => fuzz::keep(&workspace, target),
                false => fuzz::look(&workspace, target, seconds),
            };
            done.map(|()| ExitCode::SUCCESS)
        }
        Command::Image { profile } => image::run(&workspace, &profile).map(|()| ExitCode::SUCCESS),
        Command::Parts => {
            let outside = reeve_real::parts::OUTSIDE;
            for part in reeve_real::parts::ALL.iter().chain(outside) {
                println!("{}", part.get()?.display());
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Fmt => lint::format(&workspace).map(|()| ExitCode::SUCCESS),
        Command::Lint => lint::run(&workspace),
        Command::Crds { check } => {
            let reeve = workspace.build_reeve()?;
            lint::crds(&workspace, &reeve, check).map(|()| ExitCode::SUCCESS)
        }
    }
}
