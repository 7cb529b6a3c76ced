//! Settings of an engine.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of an [`crate::Engine`], fixed for its life.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Folder for compiled components, made when it is missing. It must belong to
    /// this installation alone: whoever can write to it and read its key can run
    /// code as this process. Without it every start compiles everything anew.
    pub cache: Option<PathBuf>,
    /// Bounds on compiling one component.
    pub compile: CompileLimits,
    /// Instances that run at once on memory reserved beforehand. More than that
    /// run too, on memory that is mapped for each call, several times slower.
    /// Zero reserves nothing.
    pub max_instances: u32,
}

impl EngineConfig {
    /// More calls than this at once do not go faster on any machine that an agent
    /// is given; each takes 4 GiB of address space, which costs nothing until it
    /// is used.
    pub const MAX_INSTANCES: u32 = 128;
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            cache: None,
            compile: CompileLimits::default(),
            max_instances: Self::MAX_INSTANCES,
        }
    }
}

/// Bounds on compiling one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Size of the component.
    pub component_bytes: u64,
    /// Time until a load gives up waiting for the compiler.
    pub time: Duration,
}

impl CompileLimits {
    /// Ten times a component made by an interpreted language's tool chain.
    pub const COMPONENT_BYTES: u64 = 32 << 20;
    /// Such a component takes some ten seconds on one slow core.
    pub const TIME: Duration = Duration::from_secs(60);
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            component_bytes: Self::COMPONENT_BYTES,
            time: Self::TIME,
        }
    }
}
