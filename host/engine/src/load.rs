//! From bytes to a component, once for each digest.

use crate::artifact::Artifact;
use crate::compiler::{self, Compiler};
use crate::component::{self, Component};
use crate::config::CompileLimits;
use crate::engine::Engine;
use crate::generation::{Generation, Prepared};
use crate::limits::ByteSize;
use crate::settings;
use crate::world::{self, Found, WorldProblem};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use reeve_core::Digest;
use reeve_core::printable::printable;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Why bytes cannot be loaded. Prints as what is wrong and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The component is larger than the limit.
    #[error(
        "the component has {size} bytes, more than the limit of {}; build it for size and without debug information",
        ByteSize(*limit)
    )]
    TooLarge {
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The bytes are no component.
    #[error("this is no WebAssembly component: {found}")]
    NotAComponent {
        /// What they are.
        found: Found,
    },
    /// The component is damaged, or uses a feature that plugins do not have.
    #[error(
        "the component is not valid: {}; check it with `wasm-tools validate`",
        printable(reason.clone())
    )]
    Invalid {
        /// What is wrong, and at which offset.
        reason: String,
    },
    /// The component belongs to another world.
    #[error("the component does not fit: {}", list(problems))]
    WrongWorld {
        /// Where it does not fit; at least one.
        problems: Vec<WorldProblem>,
    },
    /// The component has more of something than is allowed.
    #[error("the component has more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: Counted,
        /// The limit.
        limit: u64,
    },
    /// The component is valid and cannot be compiled.
    #[error(
        "the component is valid and cannot be compiled: {}; this is a limit or a fault of the compiler: build the component with smaller functions, or report it",
        printable(reason.clone())
    )]
    Compile {
        /// Why.
        reason: String,
    },
    /// Compiled, it is more than an instance may be.
    #[error(
        "no instance of the component can be made: {}; it may have {} core instances, memories and \
         tables, {} entries in a table and {} in a memory: build it with fewer or smaller ones",
        printable(reason.clone()),
        settings::PER_COMPONENT,
        settings::TABLE_ENTRIES,
        ByteSize(settings::MEMORY_CEILING_BYTES as u64)
    )]
    BeyondInstance {
        /// What it has too much of.
        reason: String,
    },
    /// The compiler is still at it.
    #[error(
        "compiling the component takes longer than {} s; make it smaller, or raise the limit",
        limit.as_secs_f64()
    )]
    CompileTimeout {
        /// The limit.
        limit: Duration,
    },
    /// The compiler needs too much memory.
    #[error(
        "compiling the component takes more than {} of memory; make it smaller, or raise the limit",
        ByteSize(*limit)
    )]
    CompileMemory {
        /// The limit.
        limit: u64,
    },
    /// The compiler ended without an answer.
    #[error(
        "the compiler crashed on the component: {how}; it may have been built to do that, otherwise this is a bug of wasmtime"
    )]
    CompilerCrashed {
        /// How it ended, and what it said.
        how: String,
    },
    /// The load was given up by this process.
    #[error("loading the component was interrupted: {reason}")]
    Interrupted {
        /// Why.
        reason: String,
    },
}

impl LoadError {
    /// Whether the same bytes may load at another time.
    pub fn retries(&self) -> bool {
        matches!(self, Self::CompileTimeout { .. } | Self::Interrupted { .. })
    }
}

/// What is counted of a component. Prints as a plural, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Interfaces and functions that it imports.
    Imports,
    /// Interfaces and functions that it exports.
    Exports,
    /// Everything that is defined in it and in what is nested in it.
    Definitions,
    /// Bytes of the name that one of its functions has.
    NameBytes,
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Imports => {
                "imports; a plugin imports interfaces of `reeve:plugin` and WASI 0.2 only, each once"
            }
            Self::Exports => {
                "exports; a plugin exports an interface of `reeve:plugin`, and little else"
            }
            Self::Definitions => {
                "types, functions, instances and other definitions, those of nested components included; \
                 leave out what it does not need"
            }
            Self::NameBytes => {
                "bytes in the name of a function; build it without names for debugging"
            }
        })
    }
}

/// The problems, as far as a person would read them.
fn list(problems: &[WorldProblem]) -> String {
    const SHOWN: usize = 10;
    let mut texts: Vec<String> = problems
        .iter()
        .take(SHOWN)
        .map(|problem| printable(problem.to_string()))
        .collect();
    match problems.len().saturating_sub(SHOWN) {
        0 => {}
        more => texts.push(format!("and {more} more")),
    }
    texts.join("; ")
}

/// The components that are loaded or being loaded.
#[derive(Default)]
pub(crate) struct Loads {
    slots: Mutex<HashMap<Key, Slot>>,
    turns: Turns,
}

/// What two loads have to agree in to be one: the bytes, and what may be in them. What
/// compiling may cost is not among these, as it does not decide what comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    digest: Digest,
    counted: [u64; 4],
}

impl Key {
    pub(crate) fn new(digest: Digest, limits: &CompileLimits) -> Self {
        let counted = limits.counted();
        Self { digest, counted }
    }

    /// Under which the artifact is kept.
    fn kept(&self) -> Digest {
        if self.counted == CompileLimits::default().counted() {
            return self.digest;
        }
        let counted = self.counted.map(u64::to_le_bytes);
        let bytes = self.digest.hex();
        let counted = counted.iter().map(|number| &number[..]);
        Digest::of_parts([bytes.as_bytes()].into_iter().chain(counted))
    }
}

enum Slot {
    Compiling(Arc<Job>),
    /// As long as somebody holds it.
    Loaded(Weak<component::Inner>),
}

/// A component that is being made, and those who wait for it.
struct Job {
    started: Instant,
    /// Held by those who wait. None for a compilation that cannot be stopped: it
    /// goes on to its end whether or not anybody waits.
    wanted: Option<Mutex<Vec<Weak<Interest>>>>,
    result: Mutex<Option<Result<Component, LoadError>>>,
    done: Condvar,
}

/// Somebody wants a component; dropped when they no longer do.
pub(crate) struct Interest;

/// Compilers that run, so that their memory has a bound.
#[derive(Default)]
struct Turns {
    taken: Mutex<u32>,
    freed: Condvar,
}

/// A compiler may run while this lives.
struct Turn<'a>(&'a Turns);

/// What a load finds.
enum Place {
    Loaded(Component),
    /// Somebody is at it already.
    Join(Arc<Job>),
    /// The caller's to start.
    Start(Arc<Job>),
}

/// Loads a component, on a thread that may block.
pub(crate) fn load(
    engine: &Engine,
    bytes: &Bytes,
    limits: &CompileLimits,
    interest: &Weak<Interest>,
) -> Result<Component, LoadError> {
    let config = engine.config();
    if bytes.len() as u64 > limits.component_bytes {
        return Err(LoadError::TooLarge {
            size: bytes.len() as u64,
            limit: limits.component_bytes,
        });
    }
    world::identify(bytes).map_err(|found| LoadError::NotAComponent { found })?;
    // A process is ended when its time is over, and waits for its turn before that
    // begins. A thread goes on, and only those who wait can be told.
    let patience = match config.compiler {
        Compiler::Process(_) => None,
        Compiler::InThisProcess => Some(limits.time),
    };
    let key = Key::new(Digest::of(bytes), limits);
    let stoppable = patience.is_none();
    loop {
        match engine.loads().place(key, stoppable, interest) {
            Place::Loaded(component) => return Ok(component),
            Place::Join(job) => match job.wait(patience) {
                // It was another's time or memory that was short.
                Err(LoadError::CompileTimeout { limit }) if limit < limits.time => {}
                Err(LoadError::CompileMemory { limit }) if limit < limits.memory_bytes => {}
                ended => return ended,
            },
            Place::Start(job) => {
                start(engine, bytes, limits, key, &job);
                return job.wait(patience);
            }
        }
    }
}

/// Has the component compiled, on a thread of its own.
///
/// Loads of the same bytes in the meantime wait for that thread rather than starting
/// another. A compilation in this process cannot be stopped: when it takes too long,
/// whoever waits is told so, while the thread goes on to its end. Loads until then wait
/// for it again, and later ones find what it made in the artifact cache. So each component occupies one thread at most.
fn start(engine: &Engine, bytes: &Bytes, limits: &CompileLimits, key: Key, job: &Arc<Job>) {
    let work = {
        let (engine, bytes, job) = (engine.clone(), bytes.clone(), Arc::clone(job));
        let limits = limits.clone();
        move || {
            let result = catch_unwind(AssertUnwindSafe(|| {
                make(&engine, &bytes, &limits, key, &job)
            }));
            let result = result.unwrap_or_else(|_| {
                Err(LoadError::Compile {
                    reason: "the compiler failed; this is a bug of wasmtime".to_owned(),
                })
            });
            let component = result.as_ref().ok().cloned();
            engine.loads().settle(key, &job, result);
            // Nobody waits for the disk.
            if let Some(component) = component {
                component.sync();
            }
        }
    };
    let thread = thread::Builder::new()
        .name("reeve-compile".to_owned())
        .spawn(work);
    if let Err(error) = thread {
        let error = LoadError::Interrupted {
            reason: format!("cannot start a thread for the compiler: {error}"),
        };
        engine.loads().settle(key, job, Err(error));
    }
}

fn make(
    engine: &Engine,
    bytes: &Bytes,
    limits: &CompileLimits,
    key: Key,
    job: &Job,
) -> Result<Component, LoadError> {
    let wasm = engine.primary().wasm();
    let cached = engine.cache().and_then(|cache| cache.get(key.kept(), wasm));
    let code = match cached {
        Some(code) => {
            engine.count_cached();
            code
        }
        None => {
            let artifact = compile(engine, bytes, limits, job)?;
            let code = artifact
                .load(wasm, engine.cache())
                .map_err(|error| unloadable(&error))?;
            if let Some(cache) = engine.cache() {
                cache.put(key.kept(), &artifact);
            }
            code
        }
    };
    let (generation, prepared) = prepare(engine, code.component())?;
    Ok(Component::new(
        engine.clone(),
        key.digest,
        bytes.len(),
        generation,
        code,
        prepared,
    ))
}

/// Why there can be no instances of what has been compiled. Its kind is private to wasmtime,
/// so its text has to do.
fn unloadable(error: &wasmtime::Error) -> LoadError {
    const BOUNDS: [&str; 3] = [
        "exceeds the limit",
        "exceeds the configured",
        "pooling allocator",
    ];
    let reason = format!("{error:#}");
    match BOUNDS.iter().any(|words| reason.contains(words)) {
        true => LoadError::BeyondInstance { reason },
        false => LoadError::Compile { reason },
    }
}

fn compile(
    engine: &Engine,
    bytes: &Bytes,
    limits: &CompileLimits,
    job: &Job,
) -> Result<Artifact, LoadError> {
    let (config, wasm) = (engine.config(), engine.primary().wasm());
    let made = match &config.compiler {
        Compiler::Process(program) => {
            let unwanted = || job.is_unwanted();
            let turn = engine.loads().turns.take(config.compile.at_once, &unwanted);
            let Some(_turn) = turn else {
                return Err(LoadError::Interrupted {
                    reason: "nobody waits for it any more".to_owned(),
                });
            };
            engine.count_compiled();
            compiler::compile(program, bytes, limits, &unwanted)
        }
        Compiler::InThisProcess => {
            engine.count_compiled();
            crate::compile::compile(wasm, bytes, limits)
        }
    };
    made.map(Artifact::made)
}

/// Compares the types of imports and exports with the world's.
fn prepare(
    engine: &Engine,
    compiled: &wasmtime::component::Component,
) -> Result<(Generation, Prepared), LoadError> {
    let wasm = engine.primary().wasm();
    let ty = compiled.component_type();
    let exports = ty.exports(wasm).map(|(name, _)| name);
    let generation = world::generation(exports).ok_or_else(|| LoadError::WrongWorld {
        problems: vec![WorldProblem::MissingExport {
            name: world::expected_export(),
        }],
    })?;
    engine
        .primary()
        .linker()
        .instantiate_pre(compiled)
        .and_then(|instance| generation.prepare(instance))
        .map(|prepared| (generation, prepared))
        .map_err(|error| LoadError::WrongWorld {
            problems: vec![WorldProblem::WrongType {
                detail: format!("{error:#}"),
            }],
        })
}

impl Loads {
    /// A component that somebody holds.
    pub(crate) fn loaded(&self, key: Key) -> Option<Component> {
        match self.slots.lock().get(&key)? {
            Slot::Loaded(component) => component.upgrade().map(Component::from_inner),
            Slot::Compiling(_) => None,
        }
    }

    fn place(&self, key: Key, stoppable: bool, interest: &Weak<Interest>) -> Place {
        let mut slots = self.slots.lock();
        match slots.get(&key) {
            // One that was given up ends without a result.
            Some(Slot::Compiling(job)) if !job.is_unwanted() => {
                if let Some(wanted) = &job.wanted {
                    wanted.lock().push(Weak::clone(interest));
                }
                return Place::Join(Arc::clone(job));
            }
            Some(Slot::Loaded(component)) => {
                if let Some(inner) = component.upgrade() {
                    return Place::Loaded(Component::from_inner(inner));
                }
            }
            Some(Slot::Compiling(_)) | None => {}
        }
        // Components that nobody holds any more leave here.
        slots.retain(|_, slot| match slot {
            Slot::Compiling(_) => true,
            Slot::Loaded(component) => component.strong_count() > 0,
        });
        let job = Arc::new(Job {
            started: Instant::now(),
            wanted: stoppable.then(|| Mutex::new(vec![Weak::clone(interest)])),
            result: Mutex::new(None),
            done: Condvar::new(),
        });
        slots.insert(key, Slot::Compiling(Arc::clone(&job)));
        Place::Start(job)
    }

    /// Hands the result to those who wait. A failure is forgotten, so that the
    /// next load tries again.
    fn settle(&self, key: Key, job: &Arc<Job>, result: Result<Component, LoadError>) {
        let mut slots = self.slots.lock();
        let is_current = matches!(
            slots.get(&key),
            Some(Slot::Compiling(current)) if Arc::ptr_eq(current, job)
        );
        // Otherwise it was given up, and another has taken its place.
        if is_current {
            match &result {
                Ok(component) => {
                    slots.insert(key, Slot::Loaded(Arc::downgrade(component.inner())));
                }
                Err(_) => {
                    slots.remove(&key);
                }
            }
        }
        drop(slots);
        // The job, and so the component, lives as long as somebody waits.
        *job.result.lock() = Some(result);
        job.done.notify_all();
    }
}

impl Job {
    /// Whether it is given up, as nobody waits any more.
    fn is_unwanted(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| {
            let wanted = wanted.lock();
            wanted.iter().all(|interest| interest.strong_count() == 0)
        })
    }

    fn wait(&self, patience: Option<Duration>) -> Result<Component, LoadError> {
        let mut result = self.result.lock();
        loop {
            if let Some(result) = &*result {
                return result.clone();
            }
            // No deadline at all for a limit beyond what the clock can express.
            let timeout =
                patience.and_then(|limit| Some((limit, self.started.checked_add(limit)?)));
            match timeout {
                None => self.done.wait(&mut result),
                Some((limit, deadline)) => {
                    if self.done.wait_until(&mut result, deadline).timed_out() && result.is_none() {
                        return Err(LoadError::CompileTimeout { limit });
                    }
                }
            }
        }
    }
}

impl Turns {
    /// Waits for a turn, of which there are so many at once. None when `unwanted`
    /// says that nobody waits any more.
    fn take(&self, at_once: u32, unwanted: &dyn Fn() -> bool) -> Option<Turn<'_>> {
        /// How often to look whether anybody waits.
        const LOOK: Duration = Duration::from_millis(50);
        let mut taken = self.taken.lock();
        while *taken >= at_once.max(1) {
            if unwanted() {
                return None;
            }
            self.freed.wait_for(&mut taken, LOOK);
        }
        *taken += 1;
        Some(Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock() -= 1;
        self.0.freed.notify_one();
    }
}
