//! A loaded component and its calls.

use crate::artifact::Code;
use crate::called::Called;
use crate::capabilities::wasi;
use crate::engine::{Engine, Runtime};
use crate::fault::{Fault, FaultKind, frames};
use crate::generation::{Generation, Guest, Prepared};
use crate::idle::InUse;
use crate::limits::Limits;
use crate::meter::Breach;
use crate::outside::{Actuation, Outside};
use crate::processor::measured;
use crate::settings;
use crate::state::{Given, Seed, State};
use crate::ticker::Running;
use crate::view::View;
use bytes::Bytes;
use parking_lot::Mutex;
use reeve_core::manifest::RawManifest;
use reeve_core::outcome::Completion;
use reeve_core::{Digest, Failure, Metadata, Outcome, UnitKey};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use wasmtime::{PoolConcurrencyLimitError, Store, Trap, UpdateDeadline};
use wasmtime_wasi::I32Exit;

/// A compiled component. Cheap to clone; all clones share the machine code.
#[derive(Clone)]
pub struct Component {
    inner: Arc<Inner>,
}

/// What [`crate::Engine::load`] keeps a weak hold on, to share it.
pub(crate) struct Inner {
    engine: Engine,
    digest: Digest,
    size: usize,
    generation: Generation,
    code: Arc<InUse<Code>>,
    prepared: Prepared,
    /// The same code for allocators without a pool, by the size of their stacks:
    /// made when the pool is first exhausted, or another stack is asked for.
    spare: Mutex<HashMap<usize, Spare>>,
}

/// The same code for an allocator without a pool.
#[derive(Clone)]
struct Spare {
    code: Arc<InUse<Code>>,
    prepared: Arc<Prepared>,
}

/// One call of `reconcile`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The primary, stripped and projected: one JSON text.
    pub primary: Bytes,
    /// The configuration, checked against the schema: one JSON text.
    pub config: Bytes,
    /// Facts from finished actions.
    pub facts: Vec<Fact>,
    /// For whom the call is made. The guest is not told; what it draws of random numbers
    /// is another for another unit.
    pub unit: Option<UnitKey>,
}

/// What a finished action left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The action's key.
    pub key: String,
    /// What it reported: one JSON text.
    pub value: Bytes,
}

/// Configuration that fits the schema but makes no sense to the plugin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ConfigError {
    /// JSON Pointer into the configuration.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Component {
    pub(crate) fn new(
        engine: Engine,
        digest: Digest,
        size: usize,
        generation: Generation,
        code: Code,
        prepared: Prepared,
    ) -> Self {
        let code = Arc::new(InUse::new(code));
        engine.ticker().using(&code);
        Self {
            inner: Arc::new(Inner {
                engine,
                digest,
                size,
                generation,
                code,
                prepared,
                spare: Mutex::default(),
            }),
        }
    }

    pub(crate) fn from_inner(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Sees that the machine code can be given back. Blocks for as long as the disk takes.
    pub(crate) fn sync(&self) {
        let inner = &*self.inner;
        sync(inner.code.get(), inner.digest);
        // It may have been looked at before.
        inner.engine.ticker().using(&inner.code);
    }

    /// Digest of the bytes that were loaded.
    pub fn digest(&self) -> Digest {
        self.inner.digest
    }

    /// Number of the bytes that were loaded.
    pub fn size(&self) -> usize {
        self.inner.size
    }

    /// Which generation of the contract it speaks.
    pub fn generation(&self) -> Generation {
        self.inner.generation
    }

    /// Asks the component who it is. The answer is not checked.
    ///
    /// # Errors
    ///
    /// When the guest traps or goes beyond a limit.
    pub async fn metadata(&self, limits: &Limits) -> Result<Called<Metadata>, Fault> {
        measured(async {
            let mut call = self.start("metadata", limits, Given::Nothing, None).await?;
            let (until, running) = (call.deadline(), &call.running);
            let answer = running.until(until, call.guest.metadata(&mut call.store));
            let answer = answer.await;
            call.finish(answer)
        })
        .await
    }

    /// Asks what the component is and may touch under a configuration. The
    /// manifest is not checked.
    ///
    /// # Errors
    ///
    /// When the guest traps or goes beyond a limit. A guest that refuses its
    /// configuration has answered: that is in the value.
    pub async fn describe(
        &self,
        config: Bytes,
        limits: &Limits,
    ) -> Result<Called<Result<RawManifest, ConfigError>>, Fault> {
        measured(async {
            let mut call = self.start("describe", limits, Given::Nothing, None).await?;
            let (until, running) = (call.deadline(), &call.running);
            let answer = running.until(until, call.guest.describe(&mut call.store, &config));
            let answer = answer.await;
            call.finish(answer)
        })
        .await
    }

    /// Asks what should exist for a primary. The outcome is not checked.
    ///
    /// The future may be dropped at any time, which ends the guest. It yields to
    /// its executor at each epoch that ends while the guest runs.
    ///
    /// # Errors
    ///
    /// When the guest traps or goes beyond a limit. A guest that reports a failure
    /// has answered: that is in the value.
    pub async fn reconcile(
        &self,
        request: Request,
        view: Arc<dyn View>,
        limits: &Limits,
    ) -> Result<Called<Result<Outcome, Failure>>, Fault> {
        measured(async {
            let given = Given::View(view);
            let unit = request.unit.as_ref();
            let mut call = self.start("reconcile", limits, given, unit).await?;
            let (until, running) = (call.deadline(), &call.running);
            let answer = running.until(until, call.guest.reconcile(&mut call.store, &request));
            let answer = answer.await;
            call.finish(answer)
        })
        .await
    }

    /// Whether it has outside effects: whether it exports `actions-api`.
    pub fn has_actions(&self) -> bool {
        self.inner.prepared.has_actions()
    }

    /// Has the component do something about an outside effect. The fact is not
    /// checked.
    ///
    /// Time in which the guest waits for an answer from outside does not count as its
    /// run time. When the future is dropped the guest ends, and what it has sent stays
    /// sent.
    ///
    /// # Errors
    ///
    /// When the guest traps or goes beyond a limit, or has no outside effects. A guest
    /// that reports a failure has answered: that is in the value.
    pub async fn actuate(
        &self,
        actuation: Actuation,
        outside: Arc<dyn Outside>,
        limits: &Limits,
    ) -> Result<Called<Result<Completion, Failure>>, Fault> {
        measured(async {
            let given = Given::Outside(outside);
            let unit = actuation.unit.as_ref();
            let mut call = self.start("actuate", limits, given, unit).await?;
            let (until, running) = (call.deadline(), &call.running);
            let answer = running.until(until, call.guest.actuate(&mut call.store, &actuation));
            let answer = answer.await;
            call.finish(answer)
        })
        .await
    }

    /// A fresh instance, from the pool if that has room.
    async fn start(
        &self,
        function: &'static str,
        limits: &Limits,
        given: Given,
        unit: Option<&UnitKey>,
    ) -> Result<Call, Fault> {
        let inner = &*self.inner;
        let seed = Seed::new(inner.digest, unit);
        let ticker = inner.engine.ticker();
        let unknown = |reason| FaultKind::Host { reason };
        let stack = settings::stack_for(limits.stack_bytes);
        if stack == settings::STACK_BYTES {
            let state = State::new(function, limits, given.clone(), seed.clone());
            let mut store = new_store(inner.engine.primary(), state);
            let running = ticker.start(&inner.code);
            match instantiate(&inner.prepared, &mut store, &running).await {
                Ok(guest) => return Ok(Call::new(function, store, guest, running)),
                Err(error) if error.is::<PoolConcurrencyLimitError>() => {
                    inner.engine.count_overflow();
                }
                Err(error) => return Err(fault(function, &error, store.into_data(), unknown)),
            }
        }
        let state = State::new(function, limits, given, seed);
        let (runtime, spare) = match inner.spare(stack) {
            Ok(spare) => spare,
            Err(error) => return Err(fault(function, &error, state, unknown)),
        };
        let mut store = new_store(&runtime, state);
        let running = ticker.start(&spare.code);
        match instantiate(&spare.prepared, &mut store, &running).await {
            Ok(guest) => Ok(Call::new(function, store, guest, running)),
            Err(error) => Err(fault(function, &error, store.into_data(), unknown)),
        }
    }
}

impl Inner {
    /// The component for an allocator without a pool, with stacks of this size.
    fn spare(&self, stack_bytes: usize) -> wasmtime::Result<(Arc<Runtime>, Spare)> {
        let runtime = self.engine.spare(stack_bytes)?;
        let mut spare = self.spare.lock();
        if let Some(spare) = spare.get(&stack_bytes) {
            return Ok((runtime, spare.clone()));
        }
        // To copy it is to read it.
        self.engine.ticker().using(&self.code);
        let compiled = self.code.get().component();
        let code = crate::artifact::copy(compiled, runtime.wasm(), self.engine.cache())?;
        let prepared = self
            .generation
            .prepare(runtime.linker().instantiate_pre(code.component())?)?;
        sync(&code, self.digest);
        let made = Spare {
            code: Arc::new(InUse::new(code)),
            prepared: Arc::new(prepared),
        };
        spare.insert(stack_bytes, made.clone());
        Ok((runtime, made))
    }
}

/// Sees that code can be given back.
fn sync(code: &Code, digest: Digest) {
    if let Err(error) = code.sync() {
        tracing::error!(
            %error,
            component = %digest,
            "cannot write compiled code to the cache folder, whose disk fails; restart with another"
        );
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Component")
            .field("digest", &self.inner.digest)
            .field("size", &self.inner.size)
            .field("generation", &self.inner.generation)
            .finish_non_exhaustive()
    }
}

/// A call that has been started.
struct Call {
    function: &'static str,
    store: Store<State>,
    guest: Guest,
    /// Keeps the epochs coming.
    running: Running,
}

impl Call {
    fn new(function: &'static str, store: Store<State>, guest: Guest, running: Running) -> Self {
        Self {
            function,
            store,
            guest,
            running,
        }
    }

    /// When it has to be over.
    fn deadline(&self) -> Instant {
        self.store.data().meter.deadline()
    }

    /// What came of it; no answer where that has not come in time.
    fn finish<T>(self, answer: Option<wasmtime::Result<T>>) -> Result<Called<T>, Fault> {
        let late = || Err(self.store.data().meter.out_of_time().into());
        let answer = answer.unwrap_or_else(late);
        let mut state = self.store.into_data();
        match answer {
            Ok(value) => {
                wasi::collect_output(&mut state);
                let usage = state.usage();
                let (logs, logs_dropped) = state.log.finish();
                Ok(Called {
                    value,
                    logs,
                    logs_dropped,
                    usage,
                })
            }
            Err(error) => {
                let unknown = |reason| FaultKind::MalformedResult { reason };
                Err(fault(self.function, &error, state, unknown))
            }
        }
    }
}

/// An instance, of which the start may run code of the guest's.
async fn instantiate(
    prepared: &Prepared,
    store: &mut Store<State>,
    running: &Running,
) -> wasmtime::Result<Guest> {
    let until = store.data().meter.deadline();
    match running
        .until(until, prepared.instantiate(&mut *store))
        .await
    {
        Some(made) => made,
        None => Err(store.data().meter.out_of_time().into()),
    }
}

fn new_store(runtime: &Runtime, state: State) -> Store<State> {
    let mut store = Store::new(runtime.wasm(), state);
    // None of these closures captures anything, so none of them is allocated.
    store.limiter(|state| &mut state.meter);
    store.call_hook(|mut store, hook| Ok(store.data_mut().meter.cross(hook)?));
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|store| {
        store.data().meter.check_time()?;
        // Tokio's own, since it lets timers and sockets have a turn too; outside
        // of tokio it just wakes the task again.
        Ok(UpdateDeadline::YieldCustom(
            1,
            Box::pin(tokio::task::yield_now()),
        ))
    });
    let allowance = store.data().meter.lift_allowance();
    store.set_hostcall_fuel(allowance);
    store
}

/// What is known about a call that ended with an error. `unknown` makes a kind of
/// errors that have nothing to do with anything the guest was executing.
fn fault(
    function: &'static str,
    error: &wasmtime::Error,
    mut state: State,
    unknown: fn(String) -> FaultKind,
) -> Fault {
    wasi::collect_output(&mut state);
    let usage = Box::new(state.usage());
    let message = state.fault_message;
    let kind = Box::new(kind(error, message, state.meter.limits(), unknown));
    let (logs, logs_dropped) = state.log.finish();
    Fault {
        function,
        kind,
        logs,
        logs_dropped,
        usage,
    }
}

fn kind(
    error: &wasmtime::Error,
    message: Option<String>,
    limits: &Limits,
    unknown: fn(String) -> FaultKind,
) -> FaultKind {
    if let Some(Breach(kind)) = error.downcast_ref() {
        return kind.clone();
    }
    if let Some(I32Exit(code)) = error.downcast_ref() {
        return FaultKind::Exit { code: *code };
    }
    let frames = frames(error);
    let root = error.root_cause().to_string();
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => FaultKind::Stack {
            limit: settings::stack_for(limits.stack_bytes) as u64,
            frames,
        },
        Some(trap) => FaultKind::Trap {
            message,
            trap: trap.to_string(),
            frames,
        },
        // The type is private to wasmtime, so its text has to do. When nothing of
        // the guest is on the stack, it has returned.
        None if root.contains("fuel allocated for hostcalls") => match &*frames {
            [] => FaultKind::Output {
                bytes: limits.output_bytes,
                objects: limits.output_objects,
            },
            _ => FaultKind::ArgumentBytes {
                limit: limits.output_bytes,
                frames,
            },
        },
        None if frames.is_empty() => unknown(root),
        // Raised by a host function, such as one of WASI.
        None => FaultKind::Trap {
            message,
            trap: root,
            frames,
        },
    }
}
