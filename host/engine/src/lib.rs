//! Runs plugins: compiles components, keeps them within limits, shows them what
//! a call may see and nothing else.
//!
//! ```text
//! Engine ──load(bytes)──▶ Component ──metadata | describe | reconcile | actuate──▶ Called | Fault
//!                                                               ▲         ▲
//!                                                             View     Outside (the caller's)
//! ```
//!
//! Every call runs on a fresh instance with its own store, so nothing is
//! remembered and nothing leaks from one call to the next. The guest's only
//! inputs are the request and what it reads through the caller's [`View`]; WASI
//! is linked but empty. That is what makes a call a pure
//! function, which the rest of the project builds on. `actuate` is the one function
//! that is not pure: what it reaches is the caller's [`Outside`].
//!
//! Components are compiled in short-lived processes, see [`compiler`].
//!
//! The engine holds no handle of an async runtime: one [`Engine`] may serve many
//! runtimes, also ones whose clock is paused.

mod artifact;
mod called;
mod capabilities;
mod compile;
pub mod compiler;
mod component;
mod config;
mod engine;
#[doc(hidden)]
pub mod exercise;
mod fault;
mod generation;
mod idle;
mod interfaces;
mod limits;
mod load;
mod meter;
mod outside;
mod processor;
mod record;
mod replay;
mod run_clock;
mod settings;
mod state;
mod ticker;
mod view;
mod world;

pub use artifact::CacheError;
pub use called::{Called, Level, LogLine, Usage};
pub use compile::check_component;
pub use compiler::{Compiler, CompilerProgram, Confinement};
pub use component::{Component, ConfigError, Fact, Request};
pub use config::{CompileLimits, EngineConfig};
pub use engine::{Engine, EngineError, EngineStats};
pub use fault::{Fault, FaultKind};
pub use generation::Generation;
pub use interfaces::{Interfaces, InterfacesError, interfaces};
pub use limits::{ByteSize, Limits};
pub use load::{Counted, LoadError};
pub use outside::{Actuation, Answering, Outside};
pub use record::{Recorder, answer_of};
pub use replay::{Obstacle, Replay, ReplayError, Replayed};
pub use view::{Document, ListQuery, ReadError, SourceError, View};
pub use world::{Found, WorldProblem};
