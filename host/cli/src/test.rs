//! `reeve test`.

use crate::compile::{self, CacheArgs};
use crate::{output, replay};
use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use reeve_harness::{Options, Printer, run as play, scenario};
use std::fs::OpenOptions;
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run a plugin's scenarios offline
///
/// Each scenario plays against the whole agent on an embedded cluster in this
/// process, without a network and on a virtual clock. PATH is the folder of a
/// plugin, whose scenarios are in `scenarios/`, a folder of scenarios, or a file.
/// The form of scenarios is described in docs/testing.md.
///
/// With --from, a call that `reeve record` kept becomes a scenario of the plugin first:
/// what the plugin was shown is given, what it answered is expected. It then plays.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 all passed; 1 some failed; 2 the input cannot be used.\n\n\
    Examples:\n  \
    reeve test plugins/quotas\n  \
    reeve test plugins/quotas --filter label\n  \
    reeve test plugins/quotas --from quotas-alice.recording.json"
)]
pub(crate) struct TestArgs {
    /// What to test
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Make a scenario of this recording, beside those of the plugin, and play it alone
    #[arg(long, value_name = "FILE", conflicts_with_all = ["filter", "update"])]
    from: Option<PathBuf>,
    /// Component to test, instead of the plugin's own, which is built if need be
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    /// Run only scenarios with this text in their name or path
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Rewrite what the scenarios expect to what was found
    #[arg(long, conflicts_with = "repeat")]
    update: bool,
    /// Play each scenario so often, to find those that fail once in a while
    #[arg(long, value_name = "TIMES")]
    repeat: Option<NonZero<usize>>,
    #[command(flatten)]
    cache: CacheArgs,
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
    let paths = match &args.from {
        None => args.paths,
        Some(from) => vec![written(from, &args.paths)?],
    };
    let options = Options {
        paths,
        component: args.component,
        filter: args.filter,
        update: args.update,
        repeat: args.repeat,
        junit: args.junit,
        compiler: Some(compile::program()?),
        cache: args.cache.cache,
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

/// Makes a scenario of a recording, and says where it is.
fn written(from: &Path, paths: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let [folder] = paths else {
        bail!("--from makes a scenario of one plugin; name one folder");
    };
    if !folder.is_dir() {
        bail!(
            "{} is no folder; name that of the plugin to which the scenario belongs",
            folder.display()
        );
    }
    let (recording, _) = replay::read(from)?;
    let folder = match folder.file_name() {
        Some(name) if name == "scenarios" => folder.clone(),
        _ => folder.join("scenarios"),
    };
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make folder {}", folder.display()))?;
    // `quotas-alice.yaml` for `quotas-alice.recording.json`.
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split('.').next().unwrap_or_default();
    let path = folder.join(name).with_extension("yaml");
    let opened = OpenOptions::new().write(true).create_new(true).open(&path);
    let cannot = || format!("cannot write {}", path.display());
    let mut file = match opened {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(
            "{} is there already; remove it, or rename {}, after which it is named",
            path.display(),
            from.display()
        ),
        opened => opened.with_context(cannot)?,
    };
    file.write_all(scenario(&recording).as_bytes())
        .with_context(cannot)?;
    // The report, which may be JSON, goes to standard output.
    eprintln!("made {}", path.display());
    Ok(path)
}
