//! What the sandbox of the compiler costs a component.

use crate::figure::{Figures, median};
use crate::process::Process;
use crate::setup::plugin;
use crate::wasm::another;
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use reeve_engine::{Compiler, CompilerProgram, Engine, EngineConfig};
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// The subcommand with which this program compiles.
pub(crate) const COMPILE: &str = "compile-component";

/// The subcommand with which this program compiles as part of itself, as often as it is
/// told to.
pub(crate) const HERE: &str = "compile-here";

/// How often a compiler is started for nothing.
const STARTS: u8 = 20;
/// How often each way of compiling has its turn.
const ROUNDS: usize = 9;

/// A process that compiles in itself on one thread, as a confined compiler does.
struct OneThread {
    // Ends when this is dropped.
    _process: Process,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

pub(super) async fn measure(figures: &mut Figures) -> Result<()> {
    let program = CompilerProgram::this_one(COMPILE)?;
    let apart = engine(Compiler::Process(program))?;
    starts(figures, &apart).await?;
    let here = engine(Compiler::InThisProcess)?;
    let mut single = OneThread::start()?;
    let component = plugin("quotas")?;
    let (mut confined, mut free, mut on_one) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let times = (
            load(&apart, &component, round).await?,
            load(&here, &component, round).await?,
            single.load(round)?,
        );
        // The first round warms up.
        if round > 0 {
            confined.push(times.0);
            free.push(times.1);
            on_one.push(times.2);
        }
    }
    figures.plain(
        "load quotas, compiled in a confined process, median",
        median(&mut confined.clone()),
        "ms",
    );
    // A compiler has one thread, which is part of what confines it, and is most of what
    // it takes longer where there are more processors.
    for (what, other) in [
        ("the same in this process, on all processors", free),
        (
            "the same in a process that is not confined, on one thread",
            on_one,
        ),
    ] {
        let pairs = || confined.iter().zip(&other);
        let mut more: Vec<f64> = pairs().map(|(confined, other)| confined - other).collect();
        let mut times: Vec<f64> = pairs().map(|(confined, other)| confined / other).collect();
        figures.plain(what, median(&mut other.clone()), "ms");
        figures.plain(
            "so a confined process takes more, median",
            median(&mut more),
            "ms",
        );
        figures.plain("that is", median(&mut times), "×");
    }
    Ok(())
}

/// An engine without cache and without a pool.
fn engine(compiler: Compiler) -> Result<Engine> {
    Ok(Engine::new(EngineConfig {
        max_instances: 0,
        ..EngineConfig::new(compiler)
    })?)
}

/// A process for nothing.
async fn starts(figures: &mut Figures, engine: &Engine) -> Result<()> {
    let mut times = Vec::new();
    for round in 0..STARTS {
        // The head of a component, and nothing that could follow.
        let broken = [b"\0asm\x0d\0\x01\0", &[0xff, round][..]].concat();
        let begun = Instant::now();
        let refused = engine.load(Bytes::from(broken)).await;
        ensure!(refused.is_err(), "rubbish has been compiled");
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let confinement = engine.confinement().context("a compiler is a process")?;
    println!("compilers have: {confinement}");
    figures.plain(
        "starting, confining and ending a compiler",
        median(&mut times),
        "ms",
    );
    Ok(())
}

/// Loads a component that the engine has not seen, and tells how many milliseconds that
/// took.
async fn load(engine: &Engine, component: &[u8], number: usize) -> Result<f64> {
    let (bytes, compiled) = (another(component, number, 0), engine.stats().compiled);
    let begun = Instant::now();
    engine.load(bytes.into()).await?;
    let time = begun.elapsed().as_secs_f64() * 1e3;
    ensure!(engine.stats().compiled > compiled, "it was there already");
    Ok(time)
}

impl OneThread {
    fn start() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(HERE)
            // Read by the threads on which wasmtime compiles.
            .env("RAYON_NUM_THREADS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = Process::start(&mut command)?;
        let (input, output) = process.pipes()?;
        Ok(Self {
            _process: process,
            input,
            output: BufReader::new(output).lines(),
        })
    }

    /// As [`load`], over there.
    fn load(&mut self, number: usize) -> Result<f64> {
        writeln!(self.input, "{number}")?;
        let line = self.output.next().context("it ended")??;
        line.parse().with_context(|| format!("it says {line:?}"))
    }
}

/// What that process does.
pub(crate) async fn serve() -> Result<()> {
    let engine = engine(Compiler::InThisProcess)?;
    let component = plugin("quotas")?;
    for line in std::io::stdin().lines() {
        let time = load(&engine, &component, line?.parse()?).await?;
        println!("{time}");
    }
    Ok(())
}
