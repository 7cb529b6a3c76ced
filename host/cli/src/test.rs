//! `reeve test`.

use crate::{compile, output};
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use reeve_harness::{Options, Printer, run as play};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a plugin's scenarios offline
///
/// Each scenario plays against the whole agent on an embedded cluster in this
/// process, without a network and on a virtual clock. PATH is the folder of a
/// plugin, whose scenarios are in `scenarios/`, a folder of scenarios, or a file.
/// The form of scenarios is described in docs/testing.md.
#[derive(Args)]
pub(crate) struct TestArgs {
    /// What to test
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Component to test, instead of the plugin's own, which is built if need be
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    /// Run only scenarios with this text in their name or path
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Rewrite what the scenarios expect to what was found
    #[arg(long)]
    update: bool,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

pub(crate) fn run(args: TestArgs) -> anyhow::Result<ExitCode> {
    let options = Options {
        paths: args.paths,
        component: args.component,
        filter: args.filter,
        update: args.update,
        junit: args.junit,
        compiler: Some(compile::program()?),
        ..Options::default()
    };
    let text = args.output == Output::Text;
    let printer = Printer {
        colour: std::io::stdout().is_terminal(),
    };
    let mut printed = Ok(());
    let report = play(&options, |scenario| {
        if text && printed.is_ok() {
            printed = output::print(printer.scenario(scenario));
        }
    })?;
    printed?;
    if text {
        output::print(printer.summary(&report))?;
    } else {
        let json = serde_json::to_string_pretty(&report).context("cannot write the report")?;
        output::print(json + "\n")?;
    }
    Ok(ExitCode::from(report.exit_code()))
}
