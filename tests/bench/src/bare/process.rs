//! A bare loop as a process of its own, so that what it costs is its alone.
//!
//! The process is told what to do on its standard input: a line with the settings,
//! and a line for each apply. It says `ready`, waits for another line, does it, says
//! `done`, and goes on watching until its input ends.

use super::{BareLoop, Follow};
use crate::process::Process;
use crate::world::{Wanted, Watched};
use anyhow::{Context as _, Result, ensure};
use reeve_cluster::Resource;
use reeve_core::GroupVersionKind;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The subcommand with which this program is a bare loop.
pub(crate) const ARGUMENT: &str = "bare-loop";

const READY: &str = "ready";
const DONE: &str = "done";

/// A bare loop that is ready to run.
pub(crate) struct BareProcess {
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl BareProcess {
    /// Starts a process, which returns when it knows what to do and has done nothing
    /// of it: not even connected.
    pub(crate) fn start(kubeconfig: &Path, work: &BareLoop) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = Process::start(&mut command)?;
        let (input, output) = process.pipes()?;
        let mut this = Self {
            process,
            input,
            output: BufReader::new(output),
        };
        this.tell(kubeconfig, work)?;
        this.expect(READY)?;
        Ok(this)
    }

    fn tell(&mut self, kubeconfig: &Path, work: &BareLoop) -> Result<()> {
        let mut input = BufWriter::new(&mut self.input);
        let watches: Vec<Value> = work.watches.iter().map(watch_to_json).collect();
        let settings = json!({
            "kubeconfig": kubeconfig,
            "watches": watches,
            "decode": work.follow == Follow::Decode,
            "applies": work.applies.len(),
        });
        writeln!(input, "{settings}")?;
        for wanted in work.applies.iter() {
            let line = json!({
                "plugin": wanted.plugin, "account": wanted.account, "body": wanted.body,
            });
            writeln!(input, "{line}")?;
        }
        input.flush().context("a bare loop does not listen")
    }

    /// Lets it run, and returns when it is done, with how long that took.
    pub(crate) fn run(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        writeln!(self.input, "go")?;
        self.expect(DONE)?;
        Ok(begun.elapsed())
    }

    fn expect(&mut self, word: &str) -> Result<()> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(
            line.trim_end() == word,
            "a bare loop says {line:?}, not {word}"
        );
        Ok(())
    }

    /// The process, which lives for as long as this.
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }
}

/// What the process does.
pub(crate) async fn serve() -> Result<()> {
    let mut input = std::io::stdin().lock();
    let settings: Value = serde_json::from_str(&line(&mut input)?)?;
    let watches = settings["watches"].as_array().into_iter().flatten();
    let watches: Result<_> = watches.map(watch_from_json).collect();
    let mut applies = Vec::new();
    for _ in 0..settings["applies"].as_u64().context("applies")? {
        let mut wanted: Value = serde_json::from_str(&line(&mut input)?)?;
        let body = wanted["body"].take();
        let plugin = wanted["plugin"].as_str().context("plugin")?;
        let account = wanted["account"].as_str().context("account")?;
        applies.push(Wanted::new(plugin, body)?.sent_as(account));
    }
    let work = BareLoop {
        watches: watches?,
        follow: match settings["decode"] == true {
            true => Follow::Decode,
            false => Follow::Keep,
        },
        applies: applies.into(),
    };
    let kubeconfig = settings["kubeconfig"].as_str().context("kubeconfig")?;
    println!("{READY}");
    line(&mut input)?;
    let following = work.run_in(Path::new(kubeconfig)).await?;
    println!("{DONE}");
    // Reading blocks a thread, of which watches have others.
    line(&mut input)?;
    drop(following);
    Ok(())
}

/// The next line; empty at the end.
fn line(input: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    Ok(line)
}

fn watch_to_json(watched: &Watched) -> Value {
    let Watched { resource, selector } = watched;
    json!({
        "kind": resource.kind,
        "plural": resource.plural,
        "namespaced": resource.namespaced,
        "selector": selector.to_string(),
    })
}

fn watch_from_json(value: &Value) -> Result<Watched> {
    let text = |field: &'static str| value[field].as_str().context(field);
    let of_kind = |field: &'static str| value["kind"][field].as_str().context(field);
    Ok(Watched {
        resource: Resource {
            kind: GroupVersionKind::new(of_kind("group")?, of_kind("version")?, of_kind("kind")?),
            plural: text("plural")?.into(),
            namespaced: value["namespaced"] == true,
        },
        selector: text("selector")?.parse()?,
    })
}
