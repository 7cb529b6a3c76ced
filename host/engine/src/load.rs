//! From bytes to a component, once for each digest.

use crate::component::{self, Component};
use crate::engine::Engine;
use crate::generation::Generation;
use crate::limits::ByteSize;
use crate::world::{self, Found, WorldProblem};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use reeve_core::Digest;
use std::collections::HashMap;
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
    #[error("the component is not valid: {reason}; check it with `wasm-tools validate`")]
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
    /// The component is valid and cannot be compiled.
    #[error("the component cannot be compiled: {reason}")]
    Compile {
        /// Why.
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

fn list(problems: &[WorldProblem]) -> String {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// The components that are loaded or being loaded.
#[derive(Default)]
pub(crate) struct Loads {
    slots: Mutex<HashMap<Digest, Slot>>,
}

enum Slot {
    Compiling(Arc<Job>),
    /// As long as somebody holds it.
    Loaded(Weak<component::Inner>),
}

/// A component that is being made, and those who wait for it.
struct Job {
    started: Instant,
    result: Mutex<Option<Result<Component, LoadError>>>,
    done: Condvar,
}

/// What a load finds.
enum Place {
    Loaded(Component),
    /// Somebody is at it already.
    Join(Arc<Job>),
    /// The caller's to start.
    Start(Arc<Job>),
}

/// Loads a component, on a thread that may block.
pub(crate) fn load(engine: &Engine, bytes: &Bytes) -> Result<Component, LoadError> {
    let limits = &engine.config().compile;
    if bytes.len() as u64 > limits.component_bytes {
        return Err(LoadError::TooLarge {
            size: bytes.len() as u64,
            limit: limits.component_bytes,
        });
    }
    world::identify(bytes).map_err(|found| LoadError::NotAComponent { found })?;
    let digest = Digest::of(bytes);
    match engine.loads().place(digest) {
        Place::Loaded(component) => Ok(component),
        Place::Join(job) => job.wait(limits.time),
        Place::Start(job) => {
            start(engine, bytes, digest, &job);
            job.wait(limits.time)
        }
    }
}

/// Has the component compiled, on a thread of its own.
///
/// A compilation cannot be stopped. When it takes too long, whoever waits is told
/// so, while the thread goes on to its end; loads of the same bytes in the
/// meantime wait for that thread rather than starting another, and what it makes
/// is used when it comes. So each component occupies one thread at most.
fn start(engine: &Engine, bytes: &Bytes, digest: Digest, job: &Arc<Job>) {
    let work = {
        let (engine, bytes, job) = (engine.clone(), bytes.clone(), Arc::clone(job));
        move || {
            let result = catch_unwind(AssertUnwindSafe(|| make(&engine, &bytes, digest)));
            let result = result.unwrap_or_else(|_| {
                Err(LoadError::Compile {
                    reason: "the compiler failed; this is a bug of wasmtime".to_owned(),
                })
            });
            engine.loads().settle(digest, &job, result);
        }
    };
    let thread = thread::Builder::new()
        .name("reeve-compile".to_owned())
        .spawn(work);
    if let Err(error) = thread {
        let error = LoadError::Interrupted {
            reason: format!("cannot start a thread for the compiler: {error}"),
        };
        engine.loads().settle(digest, job, Err(error));
    }
}

fn make(engine: &Engine, bytes: &Bytes, digest: Digest) -> Result<Component, LoadError> {
    let invalid = |error: wasmparser::BinaryReaderError| LoadError::Invalid {
        reason: error.to_string(),
    };
    let generation = world::check(bytes)
        .map_err(invalid)?
        .map_err(|problems| LoadError::WrongWorld { problems })?;
    let cached = engine
        .cache()
        .and_then(|cache| cache.get(digest, engine.primary().wasm()));
    let compiled = match cached {
        Some(compiled) => {
            engine.count_cached();
            compiled
        }
        None => compile(engine, bytes, digest)?,
    };
    let prepared = prepare(engine, generation, &compiled)?;
    Ok(Component::new(
        engine.clone(),
        digest,
        bytes.len(),
        generation,
        compiled,
        prepared,
    ))
}

fn compile(
    engine: &Engine,
    bytes: &Bytes,
    digest: Digest,
) -> Result<wasmtime::component::Component, LoadError> {
    engine.count_compiled();
    let compiled = wasmtime::component::Component::from_binary(engine.primary().wasm(), bytes)
        .map_err(|error| refusal(&error))?;
    if let Some(cache) = engine.cache() {
        cache.put(digest, &compiled);
    }
    Ok(compiled)
}

/// Tells what is wrong with the component from what the compiler cannot do.
fn refusal(error: &wasmtime::Error) -> LoadError {
    let reason = error.root_cause().to_string();
    // Function bodies are validated while they are compiled, and then the type of
    // the error is private to wasmtime.
    if error.is::<wasmparser::BinaryReaderError>()
        || reason.starts_with("Invalid input WebAssembly code")
    {
        LoadError::Invalid { reason }
    } else {
        LoadError::Compile {
            reason: format!("{error:#}"),
        }
    }
}

/// Compares the types of imports and exports with the world's.
fn prepare(
    engine: &Engine,
    generation: Generation,
    compiled: &wasmtime::component::Component,
) -> Result<crate::generation::Prepared, LoadError> {
    engine
        .primary()
        .linker()
        .instantiate_pre(compiled)
        .and_then(|instance| generation.prepare(instance))
        .map_err(|error| LoadError::WrongWorld {
            problems: vec![WorldProblem::WrongType {
                detail: format!("{error:#}"),
            }],
        })
}

impl Loads {
    fn place(&self, digest: Digest) -> Place {
        let mut slots = self.slots.lock();
        match slots.get(&digest) {
            Some(Slot::Compiling(job)) => return Place::Join(Arc::clone(job)),
            Some(Slot::Loaded(component)) => {
                if let Some(inner) = component.upgrade() {
                    return Place::Loaded(Component::from_inner(inner));
                }
            }
            None => {}
        }
        // Components that nobody holds any more leave here.
        slots.retain(|_, slot| match slot {
            Slot::Compiling(_) => true,
            Slot::Loaded(component) => component.strong_count() > 0,
        });
        let job = Arc::new(Job {
            started: Instant::now(),
            result: Mutex::new(None),
            done: Condvar::new(),
        });
        slots.insert(digest, Slot::Compiling(Arc::clone(&job)));
        Place::Start(job)
    }

    /// Hands the result to those who wait. A failure is forgotten, so that the
    /// next load tries again.
    fn settle(&self, digest: Digest, job: &Job, result: Result<Component, LoadError>) {
        let mut slots = self.slots.lock();
        match &result {
            Ok(component) => {
                slots.insert(digest, Slot::Loaded(Arc::downgrade(component.inner())));
            }
            Err(_) => {
                slots.remove(&digest);
            }
        }
        drop(slots);
        // The job, and so the component, lives as long as somebody waits.
        *job.result.lock() = Some(result);
        job.done.notify_all();
    }
}

impl Job {
    fn wait(&self, limit: Duration) -> Result<Component, LoadError> {
        let mut result = self.result.lock();
        // No deadline at all for a limit beyond what the clock can express.
        let deadline = self.started.checked_add(limit);
        loop {
            if let Some(result) = &*result {
                return result.clone();
            }
            match deadline {
                None => self.done.wait(&mut result),
                Some(deadline) => {
                    if self.done.wait_until(&mut result, deadline).timed_out() && result.is_none() {
                        return Err(LoadError::CompileTimeout { limit });
                    }
                }
            }
        }
    }
}
