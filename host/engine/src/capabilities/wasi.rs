//! WASI 0.2, linked always and empty.
//!
//! Libraries and languages import WASI for things that a plugin never uses, so
//! every interface is there. What they find: no files, no environment, no
//! arguments, closed standard input, no network, a clock that stands at zero, and
//! random numbers that are the same at every call of the same component for the same
//! unit, and others for any other. What they write to standard output and error becomes
//! lines of the log. No answer depends on the machine, so none of this is an input.

use super::http::HttpState;
use crate::called::Level;
use crate::state::State;
use bytes::Bytes;
use parking_lot::Mutex;
use ring::digest;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWrite;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::{
    DynPollable, OutputStream, Pollable, StreamResult, add_to_linker_async, subscribe,
};
use wasmtime_wasi::random::Deterministic;
use wasmtime_wasi::{
    HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView,
};

/// Handles that a guest may hold at once. Each is host memory that the guest's
/// own limit does not cover: less than 100 KiB, so that all of them have 25 MiB.
const MAX_HANDLES: usize = 256;

/// The most random bytes that a guest may ask for at once.
const MAX_RANDOM_BYTES: u64 = 64 << 10;

/// After how many bytes the random stream starts again. Long enough that nothing
/// which draws numbers until they suit goes round in circles.
const RANDOM_PERIOD_BYTES: usize = 4 << 10;

/// The longest line of standard output; longer ones are broken. Without it, a
/// guest that never ends its line would fill the host's memory.
const MAX_LINE_BYTES: usize = 4 << 10;

/// WASI's state within one call.
pub(crate) struct Wasi {
    ctx: WasiCtx,
    pub(super) table: ResourceTable,
    output: [Output; 2],
    pub(super) http: HttpState,
}

/// Links every interface of WASI 0.2.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    add_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<State, StillClock>(linker, |state| StillClockView {
        table: state.ctx().table,
    })?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Moves what the guest has written into the log.
pub(crate) fn collect_output(state: &mut State) {
    let Some(wasi) = &state.wasi else { return };
    for output in &wasi.output {
        output.drain(&mut state.log);
    }
}

impl WasiView for State {
    /// Called once for each call of a WASI function.
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let wasi = self.wasi();
        WasiCtxView {
            ctx: &mut wasi.ctx,
            table: &mut wasi.table,
        }
    }
}

impl State {
    /// WASI's state, for one call of one of its functions.
    pub(super) fn wasi(&mut self) -> &mut Wasi {
        self.meter.count_host_call();
        let (seed, room) = (self.seed.bytes(), self.log.room());
        let (outside, function) = (&self.outside, self.function);
        self.wasi.get_or_insert_with(|| {
            let http = HttpState::new(outside.clone(), function);
            Box::new(Wasi::new(&seed, room, http))
        })
    }
}

impl Wasi {
    fn new(seed: &[u8], room: u64, http: HttpState) -> Self {
        let output = [
            Output::new(Level::Info, room),
            Output::new(Level::Warn, room),
        ];
        let [stdout, stderr] = output.clone();
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        let ctx = WasiCtxBuilder::new()
            .stdout(stdout)
            .stderr(stderr)
            .wall_clock(StillClock)
            .monotonic_clock(StillClock)
            .secure_random(Deterministic::new(stream(
                seed,
                b"secure",
                RANDOM_PERIOD_BYTES,
            )))
            .insecure_random(Deterministic::new(stream(
                seed,
                b"insecure",
                RANDOM_PERIOD_BYTES,
            )))
            .insecure_random_seed(insecure_seed(seed))
            .max_random_size(MAX_RANDOM_BYTES)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .build();
        Self {
            ctx,
            table,
            output,
            http,
        }
    }
}

/// So many bytes that look random and depend on nothing but the seed and the purpose.
fn stream(seed: &[u8], purpose: &[u8], length: usize) -> Vec<u8> {
    let mut start = digest::Context::new(&digest::SHA256);
    start.update(seed);
    start.update(purpose);
    let blocks = (0u32..).map(|block| {
        let mut whole = start.clone();
        whole.update(&block.to_le_bytes());
        whole.finish()
    });
    let bytes = blocks.flat_map(|block| block.as_ref().to_vec());
    bytes.take(length).collect()
}

fn insecure_seed(seed: &[u8]) -> u128 {
    let bytes = stream(seed, b"seed", 16).into_iter();
    bytes.fold(0, |number, byte| number << 8 | u128::from(byte))
}

/// A clock that stands at zero. Waiting for a later time is over at once: a
/// guest cannot wait, and one that sleeps must not hold up anything.
struct StillClock;

struct StillClockView<'a> {
    table: &'a mut ResourceTable,
}

impl HasData for StillClock {
    type Data<'a> = StillClockView<'a>;
}

impl HostWallClock for StillClock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

impl HostMonotonicClock for StillClock {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        0
    }
}

impl monotonic_clock::Host for StillClockView<'_> {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(0)
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(1)
    }

    fn subscribe_instant(&mut self, _when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let over = self.table.push(Over)?;
        subscribe(self.table, over)
    }

    fn subscribe_duration(&mut self, _length: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let over = self.table.push(Over)?;
        subscribe(self.table, over)
    }
}

/// A wait that is over.
struct Over;

#[async_trait::async_trait]
impl Pollable for Over {
    async fn ready(&mut self) {}
}

/// Standard output or error: what was written and is not in the log yet.
#[derive(Clone)]
struct Output {
    level: Level,
    written: Arc<Mutex<Written>>,
}

struct Written {
    bytes: Vec<u8>,
    room: usize,
    dropped: bool,
}

impl Output {
    fn new(level: Level, room: u64) -> Self {
        Self {
            level,
            written: Arc::new(Mutex::new(Written {
                bytes: Vec::new(),
                room: usize::try_from(room).unwrap_or(usize::MAX),
                dropped: false,
            })),
        }
    }

    /// Everything counts as written, as to a terminal that nobody reads.
    fn push(&self, bytes: &[u8]) {
        let mut written = self.written.lock();
        let fits = bytes.len().min(written.room - written.bytes.len());
        written.bytes.extend_from_slice(&bytes[..fits]);
        written.dropped |= fits < bytes.len();
    }

    fn drain(&self, log: &mut crate::state::Log) {
        let mut written = self.written.lock();
        let bytes = std::mem::take(&mut written.bytes);
        for line in bytes.split(|byte| *byte == b'\n') {
            for piece in line.chunks(MAX_LINE_BYTES) {
                log.write(self.level, String::from_utf8_lossy(piece).into_owned());
            }
        }
        if written.dropped {
            log.mark_dropped();
        }
    }
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_LINE_BYTES)
    }
}

#[async_trait::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {}
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
