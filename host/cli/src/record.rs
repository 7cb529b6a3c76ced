//! `reeve record`.

use crate::columns::counted;
use crate::looking::{LookArgs, Output, given, print_json, reference, select};
use crate::output;
use anyhow::{Context as _, bail};
use clap::Args;
use reeve_agent::planner::Opened;
use reeve_core::ObjectReference;
use reeve_core::recording::{Answer, Recording, secrets};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Keep one call of a plugin as a file
///
/// Calls the plugin here for one of its units, on what the cluster holds, exactly as the
/// agent does, and writes down everything that the answer follows from: the primary, the
/// configuration, each read with its answer, the limits; and the answer. Nothing is
/// changed, and a running agent does not notice. `reeve replay` makes the call again from
/// the file alone, `reeve test --from` makes a scenario of it.
///
/// The file has what the plugin was shown, values of Secrets among it, and is readable by
/// you alone. With --redact-secrets the plugin is not shown them in the first place: the
/// recording then is of a call with other values in their place, and says so.
///
/// It reads with your own rights, as `reeve plan` does. The component itself is not in
/// the file, but its digest; keep it with --save-component.
#[derive(Args)]
#[command(after_help = "Exit codes: 0 it is recorded; 2 it is not.\n\n\
    Examples:\n  \
    reeve record quotas/alice                                  into quotas-alice.recording.json\n  \
    reeve record notebook/alice/lab --redact-secrets --file lab.json\n  \
    reeve record quotas/alice --save-component quotas.wasm     what a replay takes")]
pub(crate) struct RecordArgs {
    /// The plugin and its unit, by the primary: quotas/alice, notebook/alice/lab. The unit
    /// may be left out where there is only one
    #[arg(value_name = "PLUGIN[/UNIT]")]
    what: String,
    /// The unit of this primary, as a word of its own
    #[arg(long, value_name = "PRIMARY")]
    unit: Option<String>,
    /// Call this component instead of the installed one; it need not be installed
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    /// Call it with this configuration instead of the installed one
    #[arg(long, value_name = "FILE", requires = "component")]
    config: Option<PathBuf>,
    /// Where to write the recording; `-` is standard output. Without it, a file in this
    /// folder that is named after plugin and primary
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
    /// Show the plugin no values of Secrets, so that none are in the file
    #[arg(long)]
    redact_secrets: bool,
    /// Also write the component that was called
    #[arg(long, value_name = "FILE")]
    save_component: Option<PathBuf>,
    /// Form of what is said about it
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    look: LookArgs,
}

pub(crate) async fn run(args: RecordArgs) -> anyhow::Result<ExitCode> {
    let (plugin, unit) = named(&args)?;
    let given = given(args.component.as_deref(), args.config.as_deref())?;
    let planner = args.look.planner().await?;
    let opened = planner.open(plugin, given).await?;
    let primary = chosen(&opened, unit).with_context(|| format!("plugin {plugin}"))?;
    let recording = opened.record(&primary, args.redact_secrets).await?;
    let text = recording.to_text()?;
    let file = args.file.clone().unwrap_or_else(|| file_name(&recording));
    let to_stdout = file.as_os_str() == "-";
    if to_stdout {
        output::print(&text)?;
    } else {
        write(&file, text.as_bytes(), args.force, 0o600)?;
    }
    if let Some(path) = &args.save_component {
        // Anybody may have what anybody may install.
        write(path, opened.component_bytes(), args.force, 0o644)?;
    }
    if to_stdout {
        return Ok(ExitCode::SUCCESS);
    }
    let told = Told {
        file: &file,
        bytes: text.len(),
        component: args.save_component.as_deref(),
        warnings: opened.warnings(),
        recording: &recording,
    };
    match args.output {
        Output::Text => output::print(told.text())?,
        Output::Json => print_json(&told.json())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Plugin and unit as they were named.
fn named(args: &RecordArgs) -> anyhow::Result<(&str, Option<&str>)> {
    match (args.what.split_once('/'), args.unit.as_deref()) {
        (Some((_, unit)), Some(_)) => bail!("the unit is named twice: as {unit} and with --unit"),
        (Some((plugin, unit)), None) => Ok((plugin, Some(unit))),
        (None, unit) => Ok((&args.what, unit)),
    }
}

fn chosen(opened: &Opened<'_>, unit: Option<&str>) -> anyhow::Result<ObjectReference> {
    let units = opened.units();
    match (unit, units.as_slice()) {
        (Some(unit), units) => select(units, unit),
        (None, [only]) => Ok(only.clone()),
        (None, []) => bail!("it has no units: there is no {}", opened.primary_kind()),
        (None, [first, ..]) => bail!(
            "it has {} units; name one of them, such as {}/{}",
            units.len(),
            opened.plugin(),
            path_of(first)
        ),
    }
}

/// `alice`, or `alice/lab` in a namespace.
fn path_of(primary: &ObjectReference) -> String {
    match &primary.namespace {
        Some(namespace) => format!("{namespace}/{}", primary.name),
        None => primary.name.clone(),
    }
}

fn file_name(recording: &Recording) -> PathBuf {
    let about = &recording.metadata;
    let name = format!("{}-{}", about.plugin, path_of(&about.primary.reference()));
    // Names of some kinds have characters that mean something in paths.
    let safe = |c: char| {
        if c.is_alphanumeric() || ".-_".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = name.chars().map(safe).collect();
    format!("{name}.recording.json").into()
}

/// Writes a file that others may read as `mode` says, and that is whole or not there.
pub(crate) fn write(path: &Path, bytes: &[u8], force: bool, mode: u32) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if force {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(cannot);
            }
            _ => {}
        }
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let mut file = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(
            "{} is there already; name another, or replace it with --force",
            path.display()
        ),
        opened => opened.with_context(cannot)?,
    };
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a recording is worse than none. That it cannot be removed either is
        // no better news than that it cannot be written.
        let _ = std::fs::remove_file(path);
    }
    written.with_context(cannot)
}

/// What is said about a recording.
struct Told<'a> {
    file: &'a Path,
    bytes: usize,
    component: Option<&'a Path>,
    warnings: &'a [String],
    recording: &'a Recording,
}

impl Told<'_> {
    fn text(&self) -> String {
        let Recording {
            metadata,
            component,
            input,
            redacted,
            answer,
            ..
        } = self.recording;
        let file = self.file.display();
        let mut lines: Vec<String> = self
            .warnings
            .iter()
            .map(|warning| format!("warning: {warning}"))
            .collect();
        lines.push(format!(
            "recorded {} {} for {}: {}, {}",
            metadata.plugin,
            component.version,
            metadata.primary.reference(),
            counted(input.reads.len(), "read"),
            answer.summary(),
        ));
        lines.push(format!("written to {file} ({} bytes)", self.bytes));
        if !redacted.is_empty() {
            lines.push(format!(
                "values of {} were not shown to it: the answer is the one to what stands in \
                 their place",
                counted(redacted.len(), "Secret")
            ));
        }
        let secrets = secrets(self.recording);
        if !secrets.is_empty() {
            lines.push(format!(
                "it holds values of {}: {}{}",
                counted(secrets.len(), "Secret"),
                secrets.join(", "),
                if redacted.is_empty() {
                    "; --redact-secrets leaves out those that are read"
                } else {
                    ", as the plugin returned it"
                },
            ));
        }
        let component = self
            .component
            .map_or_else(|| "FILE.wasm".to_owned(), |path| path.display().to_string());
        lines.push(format!(
            "replay it with: reeve replay {file} --component {component}"
        ));
        lines.join("\n") + "\n"
    }

    fn json(&self) -> Value {
        let recording = self.recording;
        let redacted = recording.redacted.iter();
        json!({
            "file": self.file.display().to_string(),
            "bytes": self.bytes,
            "digest": recording.digest(),
            "plugin": recording.metadata.plugin,
            "primary": reference(&recording.metadata.primary.reference()),
            "component": recording.component,
            "savedComponent": self.component.map(|path| path.display().to_string()),
            "reads": recording.input.reads.len(),
            "answer": match &recording.answer {
                Answer::Outcome(_) => "outcome",
                Answer::Failure(_) => "failure",
                Answer::Fault(_) => "fault",
            },
            "redacted": redacted
                .map(|one| one.object.reference().to_string())
                .collect::<Vec<_>>(),
            "secrets": secrets(recording),
            "warnings": self.warnings,
        })
    }
}
