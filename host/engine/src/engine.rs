//! The engine: what all components share.

use crate::artifact::{Cache, CacheError};
use crate::compiler::{self, Compiler, Confinement};
use crate::config::{CompileLimits, EngineConfig};
use crate::generation::Generation;
use crate::load::{Interest, Key, Loads};
use crate::settings;
use crate::state::State;
use crate::ticker::Ticker;
use crate::{Component, LoadError, capabilities};
use bytes::Bytes;
use parking_lot::Mutex;
use reeve_core::Digest;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wasmtime::component::Linker;

/// Compiles and runs components. Cheap to clone; a process needs one, which may
/// serve any number of async runtimes.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    config: EngineConfig,
    ticker: Ticker,
    /// With a pool, if there is one.
    primary: Runtime,
    /// Without a pool, by the size of their stacks.
    spare: Mutex<HashMap<usize, Arc<Runtime>>>,
    pooled: bool,
    cache: Option<Cache>,
    confinement: Option<Confinement>,
    loads: Loads,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    compiled: AtomicU64,
    cached: AtomicU64,
    overflowed: AtomicU64,
}

/// What an engine has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineStats {
    /// Components that were compiled.
    pub compiled: u64,
    /// Components that came from the artifact cache.
    pub cached: u64,
    /// Calls that found the pool exhausted and ran outside of it.
    pub overflowed: u64,
    /// Whether there is a pool.
    pub pooled: bool,
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// wasmtime does not run on this machine.
    #[error("cannot set up wasmtime")]
    Wasmtime {
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The thread that ends epochs cannot be started.
    #[error("cannot start the thread that interrupts guests")]
    Ticker {
        /// Why.
        source: std::io::Error,
    },
    /// The program that compiles cannot be run.
    #[error("cannot run the compiler")]
    Compiler {
        /// Why.
        source: std::io::Error,
    },
    /// The artifact cache cannot be used.
    #[error("cannot use the artifact cache")]
    Cache {
        /// Why.
        source: CacheError,
    },
}

/// One allocator with the host functions linked for it.
pub(crate) struct Runtime {
    wasm: wasmtime::Engine,
    linker: Linker<State>,
}

impl Engine {
    /// Reserves memory, starts the thread that interrupts guests, opens the
    /// artifact cache.
    ///
    /// Where the address space for the pool cannot be reserved, as in a process
    /// with a limit on it, the engine does without a pool and says so in
    /// [`EngineStats::pooled`].
    ///
    /// # Errors
    ///
    /// When wasmtime does not support this machine, no thread can be started, the
    /// compiler does not run, or the cache folder cannot be used.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        let wasmtime_error = |source: wasmtime::Error| EngineError::Wasmtime {
            source: source.into_boxed_dyn_error(),
        };
        let pooled = if config.max_instances == 0 {
            None
        } else {
            match Runtime::new(&settings::pooled(config.max_instances)) {
                Ok(runtime) => Some(runtime),
                Err(error) => {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "cannot reserve memory for guests, calls will be slower"
                    );
                    None
                }
            }
        };
        let is_pooled = pooled.is_some();
        let primary = match pooled {
            Some(runtime) => runtime,
            None => {
                Runtime::new(&settings::on_demand(settings::STACK_BYTES)).map_err(wasmtime_error)?
            }
        };
        let cache = match &config.cache {
            Some(folder) => Some(
                Cache::open(folder, &primary.wasm)
                    .map_err(|source| EngineError::Cache { source })?,
            ),
            None => None,
        };
        let confinement = match &config.compiler {
            Compiler::Process(program) => Some(
                compiler::probe(program, &config.compile)
                    .map_err(|source| EngineError::Compiler { source })?,
            ),
            Compiler::InThisProcess => None,
        };
        if let Some(confinement) = confinement {
            tracing::info!(%confinement, "components are compiled in processes of their own");
        }
        let ticker = Ticker::new().map_err(|source| EngineError::Ticker { source })?;
        ticker.add(&primary.wasm);
        Ok(Self {
            inner: Arc::new(Inner {
                config,
                ticker,
                primary,
                spare: Mutex::default(),
                pooled: is_pooled,
                cache,
                confinement,
                loads: Loads::default(),
                counters: Counters::default(),
            }),
        })
    }

    /// Checks and compiles a component.
    ///
    /// Each component is compiled once: loads of the same bytes share one
    /// compilation when they come at the same time and one component as long as
    /// somebody holds it, and the artifact cache answers after a restart.
    ///
    /// The work is done on tokio's blocking threads, so this needs to be called
    /// within a tokio runtime. A paused clock stays where it is meanwhile. When the
    /// future is dropped and nobody else waits for the same bytes, a compiler in a
    /// process of its own is ended.
    ///
    /// # Errors
    ///
    /// When the bytes are no component that this engine can run; see
    /// [`LoadError`].
    pub async fn load(&self, bytes: Bytes) -> Result<Component, LoadError> {
        let limits = self.config().compile.clone();
        self.load_within(bytes, limits).await
    }

    /// As [`Self::load`], within bounds of its own. How many compilers run at once is for
    /// all to share, and stays what the engine was made with.
    ///
    /// Loads of the same bytes that differ in what may be in them, its size, imports,
    /// exports and definitions, share nothing: what one is refused the other is not given.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub async fn load_within(
        &self,
        bytes: Bytes,
        limits: CompileLimits,
    ) -> Result<Component, LoadError> {
        let engine = self.clone();
        let interest = Arc::new(Interest);
        let wanted = Arc::downgrade(&interest);
        let load = move || crate::load::load(&engine, &bytes, &limits, &wanted);
        match tokio::task::spawn_blocking(load).await {
            Ok(result) => result,
            // A panic, or the end of the runtime.
            Err(error) => Err(LoadError::Interrupted {
                reason: error.to_string(),
            }),
        }
    }

    /// The component with these bytes, if somebody holds it who was allowed the same. For
    /// who knows their digest already: nothing is computed, and nothing waited for.
    pub fn loaded(&self, digest: Digest, limits: &CompileLimits) -> Option<Component> {
        self.loads().loaded(Key::new(digest, limits))
    }

    /// Keeps bytes in the artifact cache from one start to the next, in the place of
    /// what was kept under this key before. What is kept already and begins with
    /// `head` is taken to be the same, and is not written again.
    ///
    /// Blocks. Without a cache nothing is kept; nor when it cannot be written or is
    /// full, which is a line in the log. Returns whether it is kept.
    pub fn keep(&self, key: Digest, head: &[u8], body: &[u8]) -> bool {
        let cache = self.inner.cache.as_ref();
        cache.is_some_and(|cache| cache.keep(key, head, body))
    }

    /// What was kept under a key: head and body in one, authenticated by this
    /// installation's key as everything in the artifact cache is. Blocks.
    pub fn kept(&self, key: Digest) -> Option<Vec<u8>> {
        self.inner.cache.as_ref()?.kept(key)
    }

    /// Whether there is an artifact cache.
    pub fn has_cache(&self) -> bool {
        self.inner.cache.is_some()
    }

    /// What confines the compiler; none when it is in this process.
    pub fn confinement(&self) -> Option<Confinement> {
        self.inner.confinement
    }

    /// What the engine has done so far.
    pub fn stats(&self) -> EngineStats {
        let counters = &self.inner.counters;
        EngineStats {
            compiled: counters.compiled.load(Ordering::Relaxed),
            cached: counters.cached.load(Ordering::Relaxed),
            overflowed: counters.overflowed.load(Ordering::Relaxed),
            pooled: self.inner.pooled,
        }
    }

    /// Bounds on compiling a component of which nothing else is said.
    pub fn compile_limits(&self) -> &CompileLimits {
        &self.inner.config.compile
    }

    pub(crate) fn config(&self) -> &EngineConfig {
        &self.inner.config
    }

    pub(crate) fn cache(&self) -> Option<&Cache> {
        self.inner.cache.as_ref()
    }

    pub(crate) fn loads(&self) -> &Loads {
        &self.inner.loads
    }

    pub(crate) fn ticker(&self) -> &Ticker {
        &self.inner.ticker
    }

    pub(crate) fn primary(&self) -> &Runtime {
        &self.inner.primary
    }

    /// The allocator for calls that find the pool exhausted, or need another stack.
    pub(crate) fn spare(&self, stack_bytes: usize) -> wasmtime::Result<Arc<Runtime>> {
        let mut spare = self.inner.spare.lock();
        if let Some(runtime) = spare.get(&stack_bytes) {
            return Ok(Arc::clone(runtime));
        }
        let runtime = Arc::new(Runtime::new(&settings::on_demand(stack_bytes))?);
        self.inner.ticker.add(&runtime.wasm);
        spare.insert(stack_bytes, Arc::clone(&runtime));
        Ok(runtime)
    }

    pub(crate) fn count_compiled(&self) {
        self.inner.counters.compiled.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_cached(&self) {
        self.inner.counters.cached.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_overflow(&self) {
        self.inner
            .counters
            .overflowed
            .fetch_add(1, Ordering::Relaxed);
    }
}

impl Runtime {
    fn new(config: &wasmtime::Config) -> wasmtime::Result<Self> {
        let wasm = wasmtime::Engine::new(config)?;
        let mut linker = Linker::new(&wasm);
        capabilities::wasi::link(&mut linker)?;
        capabilities::http::link(&mut linker)?;
        for generation in Generation::ALL {
            generation.link(&mut linker)?;
        }
        Ok(Self { wasm, linker })
    }

    pub(crate) fn wasm(&self) -> &wasmtime::Engine {
        &self.wasm
    }

    pub(crate) fn linker(&self) -> &Linker<State> {
        &self.linker
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("config", &self.inner.config)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
