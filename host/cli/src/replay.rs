//! `reeve replay`.

mod json;
mod text;

use crate::compile::CacheArgs;
use crate::looking::{Output, print_json};
use crate::output;
use crate::plugin::source;
use crate::style::Painter;
use anyhow::{Context as _, bail};
use clap::{ArgGroup, Args};
use reeve_core::recording::{Difference, MAX_BYTES, Recording, RecordingError, compare};
use reeve_core::{Digest, chain};
use reeve_engine::{Component, Limits, Replay, Replayed};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Make a recorded call again, offline
///
/// The component is given what stands in the file, and nothing else: no cluster is
/// asked, nothing is fetched and nothing written. The component that was recorded has to
/// answer the same in each byte, within the same limits. With --with, another version is
/// asked what it would have answered.
///
/// What the file does not have is told as such: another version that reads more, or is
/// shown more of its primary, was not recorded with that.
#[derive(Args)]
#[command(
    group = ArgGroup::new("called").required(true).args(["component", "with"]),
    after_help = "Exit codes: 0 the answer is the recorded one; 2 it differs, or would need what \
    was not recorded; 1 an error. A version given with --with may say the same in other bytes, \
    such as with fields in another order: that is told, and is equal.\n\n\
    Examples:\n  \
    reeve replay alice.json --component quotas.wasm     the recorded component\n  \
    reeve replay alice.json --with new.wasm             what another version would answer"
)]
pub(crate) struct ReplayArgs {
    /// A file that `reeve record` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The component that was recorded, which its digest shows: a file with it, as it is
    /// or compressed, or the ConfigMaps that deliver it
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    /// Another version of it, in the same forms
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
    /// Take a file that was changed after it was written
    #[arg(long)]
    edited: bool,
    /// Show what the plugin logs, and what it did not read this time
    #[arg(long, short)]
    verbose: bool,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    cache: CacheArgs,
}

/// A call that was made again, beside the recorded one.
struct Compared {
    file: String,
    recording: Recording,
    edited: bool,
    /// The component that was called.
    digest: Digest,
    /// Its version, if it says one.
    version: Option<String>,
    replayed: Replayed,
    differences: Vec<Difference>,
}

impl Compared {
    /// Whether it was the recorded component that was called.
    fn is_same_component(&self) -> bool {
        self.digest == self.recording.component.digest
    }

    /// Whether the answer is the recorded one. The same component has to give the same
    /// bytes; of another, what they mean.
    fn is_equal(&self) -> bool {
        let strict = self.is_same_component();
        let differs = |one: &Difference| strict || one.has_meaning();
        self.replayed.obstacles.is_empty() && !self.differences.iter().any(differs)
    }
}

/// Errors end in exit code 1, since 2 means that the answer differs.
pub(crate) async fn run(args: ReplayArgs) -> anyhow::Result<ExitCode> {
    let compared = match compared(&args).await {
        Ok(compared) => compared,
        Err(error) => {
            output::complain(chain(error.as_ref()));
            return Ok(ExitCode::FAILURE);
        }
    };
    match args.output {
        Output::Json => print_json(&json::of(&compared))?,
        Output::Text => {
            let painter = Painter::for_stdout();
            output::print(text::of(&compared, args.verbose, painter))?;
        }
    }
    Ok(ExitCode::from(if compared.is_equal() { 0 } else { 2 }))
}

async fn compared(args: &ReplayArgs) -> anyhow::Result<Compared> {
    let file = args.file.display().to_string();
    let (recording, edited) = read(&args.file)?;
    if edited && !args.edited {
        bail!(
            "{file} was changed after it was written, if only in how a JSON text in it is laid \
             out, which the plugin would see; record the call again, or take the file as it is \
             with --edited"
        );
    }
    let component = load(args, &recording).await?;
    let replay = Replay::new(recording);
    let replayed = replay.with(&component).await?;
    let recording = replay.recording().clone();
    let differences = replayed
        .answer
        .as_ref()
        .map(|answer| compare(&recording.answer, answer));
    // Who does not say is told of by the digest alone.
    let metadata = component.metadata(&Limits::default()).await.ok();
    Ok(Compared {
        file,
        edited,
        digest: component.digest(),
        version: metadata.map(|called| called.value.version),
        differences: differences.unwrap_or_default(),
        recording,
        replayed,
    })
}

/// Reads a recording; and whether it was edited.
pub(crate) fn read(path: &Path) -> anyhow::Result<(Recording, bool)> {
    let cannot = || format!("cannot read the recording {}", path.display());
    let bytes = std::fs::metadata(path).with_context(cannot)?.len();
    // Not even looked at, whatever it is.
    if bytes > MAX_BYTES {
        let error = RecordingError::TooLarge { bytes };
        return Err(error).with_context(|| path.display().to_string());
    }
    let bytes = std::fs::read(path).with_context(cannot)?;
    let read = Recording::read(&bytes).with_context(|| path.display().to_string())?;
    Ok((read.recording, read.edited))
}

/// The component that is to be called.
async fn load(args: &ReplayArgs, recording: &Recording) -> anyhow::Result<Component> {
    // One of the two is there, as clap has seen to.
    let given = args.component.as_ref().or(args.with.as_ref());
    let path = given.context("name the component with --component or --with")?;
    let source = source::from_file(path, Some(&recording.metadata.plugin), None)?;
    let recorded = recording.component.digest;
    let digest = source.package.digest;
    if args.component.is_some() && digest != recorded {
        bail!(
            "{} is {digest}, and the call was recorded with {recorded} ({} {}); name that one, \
             or ask another version with --with",
            path.display(),
            recording.component.name,
            recording.component.version,
        );
    }
    let loaded = args.cache.engine()?.load(source.package.component).await;
    loaded.with_context(|| format!("cannot load {}", path.display()))
}
