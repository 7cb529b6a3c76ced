//! Where components are validated and compiled, which is the first that happens to
//! bytes that anybody may have written.
//!
//! ```text
//! agent                               compiler: a process for one component
//! ──────                              ─────────────────────────────────────
//! start it, environment empty  ─────▶ give up files, network, processes
//!                              ◀───── say what confines it
//! component                    ─────▶ validate, compile
//!                              ◀───── machine code, or what is wrong
//! kill it
//! ```
//!
//! A validator that loops, an optimiser that takes all memory, a crash: each ends
//! one process and becomes a [`crate::LoadError`]. What comes back is machine code
//! all the same, which the agent will run. The process protects the agent from a
//! compiler that fails, and keeps one that was taken over away from everything but
//! its answer; it cannot make a wrong answer right.

mod child;
mod confine;
mod parent;
mod wire;

pub use child::serve;
pub use confine::{Confinement, Landlock};
pub(crate) use parent::{compile, probe};

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where components are validated and compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// In a process of its own for each component.
    Process(CompilerProgram),
    /// In this process, on a thread: a component that crashes the compiler or
    /// takes all memory takes the process with it, and one that takes too long
    /// cannot be stopped. [`crate::CompileLimits::memory_bytes`] is not kept.
    ///
    /// For programs that load their author's own components, such as tests;
    /// nothing that runs in a cluster may use it.
    InThisProcess,
}

/// A program that compiles one component and ends: one that hands its last
/// argument to [`serve`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompilerProgram {
    path: PathBuf,
    arguments: Vec<OsString>,
}

impl CompilerProgram {
    /// Some program, and what it is called with before the argument for [`serve`].
    pub fn new(
        path: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self {
            path: path.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
        }
    }

    /// The program that runs now, started again with a subcommand of its own.
    ///
    /// # Errors
    ///
    /// When the system does not say where it is.
    pub fn this_one(subcommand: &str) -> std::io::Result<Self> {
        // What the kernel holds open is the program that runs, even when the file
        // of its name has been replaced by another version.
        let running = Path::new("/proc/self/exe");
        let path = if running.exists() {
            running.to_owned()
        } else {
            std::env::current_exe()?
        };
        Ok(Self::new(path, [subcommand]))
    }
}
