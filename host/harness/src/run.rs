//! Runs scenarios on all cores, and reports in the order of the files.

use crate::log::Log;
use crate::play::{Played, play};
use crate::report::{Failure, Report, ScenarioReport, Verdict, seconds};
use crate::suite::{self, Case};
use crate::update::{Replacement, rewrite};
use crate::watchdog::Watchdog;
use crate::world::{Package, Stage};
use crate::{Error, junit};
use base64::Engine as _;
use reeve_engine::{Compiler, CompilerProgram, Engine, EngineConfig};
use std::collections::{BTreeMap, HashMap};
use std::iter::repeat_n;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// What to run, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folders of plugins, folders of scenarios, or scenario files.
    pub paths: Vec<PathBuf>,
    /// The component to test, instead of the plugin's own.
    pub component: Option<PathBuf>,
    /// Runs only scenarios with this text in their name or path.
    pub filter: Option<String>,
    /// Rewrites expectations to what was found.
    pub update: bool,
    /// Where to write a JUnit report.
    pub junit: Option<PathBuf>,
    /// The program that compiles components. Without one they are compiled in this
    /// process, as [`Compiler::InThisProcess`] says: good enough for components of
    /// one's own.
    pub compiler: Option<CompilerProgram>,
    /// Folder for compiled components, kept between runs.
    pub cache: Option<PathBuf>,
    /// Scenarios that run at once; as many as there are cores when absent.
    pub threads: Option<NonZero<usize>>,
    /// How often each is played, once when absent or with `update`; each time is a scenario
    /// of the report.
    pub repeat: Option<NonZero<usize>>,
}

/// Wall-clock time without any step forward after which a scenario is given up: a
/// thousand times what a step takes. Virtual time cannot bound a plugin and an agent that never rest.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs scenarios. `done` is told of each as soon as it and all before it have
/// ended, in the order of the files.
///
/// # Errors
///
/// When the input cannot be used: then nothing has run; or when the JUnit report
/// or a rewritten file cannot be written. Scenarios that fail are no error, see
/// [`Report::exit_code`].
pub fn run(options: &Options, mut done: impl FnMut(&ScenarioReport)) -> Result<Report, Error> {
    let read = suite::read(options)?;
    let (stage, packages) = prepare(options, &read)?;
    // What one play repairs must not be repaired by the next as well.
    let repeat = options.repeat.filter(|_| !options.update);
    let times = repeat.map_or(1, NonZero::get);
    let cases: Vec<&Case> = read.iter().flat_map(|case| repeat_n(case, times)).collect();
    let begun = Instant::now();
    let mut results = BTreeMap::new();
    let mut scenarios = Vec::with_capacity(cases.len());
    let mut repairs: BTreeMap<&Path, Vec<Replacement>> = BTreeMap::new();
    let next = AtomicUsize::new(0);
    let watchdog = Watchdog::new(PATIENCE);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads(options, cases.len()) {
            let sender = sender.clone();
            let (cases, packages, stage) = (&cases, &packages, &stage);
            let (next, watchdog) = (&next, &watchdog);
            scope.spawn(move || {
                let log = Log::default();
                tracing::subscriber::with_default(log.clone(), || {
                    while let Some((index, case)) = take(next, cases) {
                        let performed =
                            perform(stage, case, packages, options.update, &log, watchdog);
                        // The receiver outlives the threads.
                        let _ = sender.send((index, performed));
                    }
                });
            });
        }
        drop(sender);
        for (index, performed) in receiver {
            results.insert(index, performed);
            while let Some((report, repair)) = results.remove(&scenarios.len()) {
                if let Some(case) = cases.get(scenarios.len()) {
                    repairs.entry(&case.file.path).or_default().extend(repair);
                }
                done(&report);
                scenarios.push(report);
            }
        }
    });
    let elapsed = begun.elapsed();
    let rewritten = rewrite_files(&read, repairs)?;
    let report = Report {
        scenarios,
        rewritten,
        seconds: seconds(elapsed),
    };
    if let Some(path) = &options.junit {
        write(path, &junit::junit(&report))?;
    }
    Ok(report)
}

fn threads(options: &Options, cases: usize) -> usize {
    let cores = || thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    options.threads.unwrap_or_else(cores).get().min(cases)
}

fn take<'a>(next: &AtomicUsize, cases: &[&'a Case]) -> Option<(usize, &'a Case)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, *cases.get(index)?))
}

/// Everything that scenarios share: the engine, the components in it, the kinds.
fn prepare(options: &Options, cases: &[Case]) -> Result<(Stage, HashMap<PathBuf, Package>), Error> {
    let compiler = options.compiler.clone();
    let engine = Engine::new(EngineConfig {
        cache: options.cache.clone(),
        ..EngineConfig::new(compiler.map_or(Compiler::InThisProcess, Compiler::Process))
    })
    .map_err(|source| Error::Engine {
        source: Box::new(source),
    })?;
    runtime()?.block_on(async {
        let stage = Stage::new(engine).await.map_err(|source| Error::Cluster {
            source: Box::new(source),
        })?;
        let mut packages = HashMap::new();
        for case in cases {
            for path in case.components() {
                if packages.contains_key(&path) {
                    continue;
                }
                // What a scenario names itself may be broken on purpose.
                let deliberate = case.scenario.given.component.is_some() || path != case.component;
                let package = load(&stage.engine, &path, deliberate).await?;
                packages.insert(path, package);
            }
        }
        Ok((stage, packages))
    })
}

async fn load(engine: &Engine, path: &Path, may_be_broken: bool) -> Result<Package, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let packed = zstd::stream::encode_all(&bytes[..], zstd::DEFAULT_COMPRESSION_LEVEL).map_err(
        |source| Error::Pack {
            path: path.to_owned(),
            source,
        },
    )?;
    let encoded = base64::engine::general_purpose::STANDARD.encode(packed);
    let component = match engine.load(bytes.into()).await {
        Ok(component) => Some(component),
        Err(_) if may_be_broken => None,
        Err(source) => {
            return Err(Error::Load {
                path: path.to_owned(),
                source: Box::new(source),
            });
        }
    };
    Ok(Package {
        encoded: encoded.into(),
        component,
    })
}

/// A runtime on this thread whose time stands still while anything is to be done,
/// and jumps to the next timer when nothing is.
fn runtime() -> Result<Runtime, Error> {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|source| Error::Runtime { source })
}

/// Plays one scenario in a world and on a runtime of its own.
fn perform(
    stage: &Stage,
    case: &Case,
    packages: &HashMap<PathBuf, Package>,
    update: bool,
    log: &Log,
    watchdog: &Watchdog,
) -> (ScenarioReport, Vec<Replacement>) {
    let begun = Instant::now();
    log.take();
    let whole = |message: String| Played {
        failures: vec![Failure {
            step: 0,
            name: None,
            line: case.line_of(&[]),
            message,
            difference: String::new(),
        }],
        ..Played::default()
    };
    let played = catch_unwind(AssertUnwindSafe(|| {
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(error) => return whole(error.to_string()),
        };
        let played = runtime.block_on(async {
            let watch = watchdog.watch();
            tokio::select! {
                biased;
                () = watch.barked() => None,
                played = play(stage, case, packages, update, log, &watch) => Some(played),
            }
        });
        // What still runs must not hold up the next scenario.
        runtime.shutdown_background();
        played.unwrap_or_else(|| Played {
            log: log.take(),
            ..whole(format!(
                "given up after {} s: plugin and agent never come to rest",
                PATIENCE.as_secs()
            ))
        })
    }))
    .unwrap_or_else(|_| whole("the harness itself failed; this is a bug of reeve".to_owned()));
    let verdict = match (played.failures.is_empty(), played.repairs.is_empty()) {
        (false, _) => Verdict::Failed,
        (true, false) => Verdict::Updated,
        (true, true) => Verdict::Passed,
    };
    let report = ScenarioReport {
        plugin: case.plugin.clone(),
        file: case.file.path.clone(),
        line: case.line_of(&[]),
        name: case.scenario.name.clone(),
        seconds: seconds(begun.elapsed()),
        verdict,
        failures: played.failures,
        conditions: played.conditions,
        log: played.log,
    };
    (report, played.repairs)
}

fn rewrite_files(
    cases: &[Case],
    repairs: BTreeMap<&Path, Vec<Replacement>>,
) -> Result<Vec<PathBuf>, Error> {
    let mut rewritten = Vec::new();
    for (path, repairs) in repairs {
        let Some(case) = cases.iter().find(|case| case.file.path == path) else {
            continue;
        };
        let text = rewrite(&case.file.text, repairs);
        if text != case.file.text {
            write(path, &text)?;
            rewritten.push(path.to_owned());
        }
    }
    Ok(rewritten)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}
