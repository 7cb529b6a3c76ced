//! Why scenarios could not be run at all.

use std::io;
use std::path::PathBuf;

/// Input that cannot be used. No scenario has run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A component cannot be packed for its ConfigMap.
    #[error("cannot compress {}", path.display())]
    Pack {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There are no scenarios in a folder.
    #[error("there are no scenarios (*.yaml) in {}", folder.display())]
    NoScenarios {
        /// The folder.
        folder: PathBuf,
    },
    /// Scenario files are wrong.
    #[error("{}", problems.join("\n"))]
    Invalid {
        /// Each with file and line.
        problems: Vec<String>,
    },
    /// The filter leaves nothing.
    #[error("no scenario has `{filter}` in its name or path")]
    NothingMatches {
        /// The filter.
        filter: String,
    },
    /// It is unknown which plugin the scenarios are about.
    #[error(
        "{} is in no plugin's folder (there is no Cargo.toml above it); name the component with --component",
        path.display()
    )]
    NoPlugin {
        /// What was to be run.
        path: PathBuf,
    },
    /// The plugin cannot be built.
    #[error("cannot build the plugin in {}", folder.display())]
    Build {
        /// Its folder.
        folder: PathBuf,
        /// Why not.
        source: Box<reeve_build::BuildError>,
    },
    /// The plugin's component cannot be loaded.
    #[error("cannot load {}", path.display())]
    Load {
        /// The component.
        path: PathBuf,
        /// Why not.
        source: Box<reeve_engine::LoadError>,
    },
    /// There is no engine.
    #[error("cannot run components on this machine")]
    Engine {
        /// Why not.
        source: Box<reeve_engine::EngineError>,
    },
    /// The embedded cluster does not work.
    #[error("the embedded cluster does not work; this is a bug of reeve")]
    Cluster {
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no runtime.
    #[error("cannot start the async runtime")]
    Runtime {
        /// Why not.
        source: io::Error,
    },
    /// A report or a rewritten scenario cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Error {
    /// What the process is to exit with.
    pub const EXIT_CODE: u8 = 2;
}
