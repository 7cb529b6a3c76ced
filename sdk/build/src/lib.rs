//! Builds a plugin crate into a component.
//!
//! ```no_run
//! use reeve_build::{Builder, PluginCrate, Profile};
//!
//! # fn main() -> Result<(), reeve_build::BuildError> {
//! let quotas = PluginCrate::open("plugins/quotas")?;
//! let component = Builder::new(Profile::Release).build(&quotas)?;
//! component.write_to("target/plugins/quotas.wasm")?;
//! # Ok(())
//! # }
//! ```
//!
//! The steps are: make sure that the compiler has the wasm target, run `cargo
//! build` for it, take the core module that comes out, drop the custom sections
//! nobody reads, and wrap it into a validated component. Used by `cargo xtask`,
//! `reeve dev` and `reeve test`, so that all of them give the same bytes.

mod cargo;
mod component;
mod error;
mod inputs;
mod source;
mod target;
mod whole;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use inputs::Inputs;
use whole::write_whole;

pub use component::Component;
pub use error::BuildError;
pub use inputs::is_current;
pub use source::PluginCrate;

/// The only target a plugin is built for: no operating system, so that every
/// effect has to go through the contract.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// How much time goes into making the component small and fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// What is delivered: smallest, without symbol names.
    Release,
    /// What somebody is editing right now: quickest to build, with symbol names
    /// for readable stack traces.
    Dev,
}

/// Builds plugin crates; cheap to make, holds only settings.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    profile: Profile,
    quiet: bool,
}

impl Builder {
    /// A builder that shows cargo's progress on stderr.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            quiet: false,
        }
    }

    /// Keeps cargo's progress off stderr. Compiler errors are still in the
    /// returned error, and warnings are dropped.
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Builds `plugin` into a component, in memory.
    ///
    /// Works in the folder `wasm` of the crate's own target folder: cargo locks a
    /// target folder while it builds, and a rebuild after a save must not wait
    /// for a build of the host. Nothing is written anywhere else; see
    /// [`Component::write_to`].
    ///
    /// # Errors
    ///
    /// When the target is missing and cannot be added, the crate does not
    /// compile (the error carries what the compiler said), the crate is no
    /// `cdylib`, or the module does not implement the world it claims.
    pub fn build(&self, plugin: &PluginCrate) -> Result<Component, BuildError> {
        target::ensure_installed(plugin.folder())?;
        let begun = SystemTime::now();
        let modules = cargo::compile(&[plugin], self.profile, self.quiet)?;
        let module = modules.into_iter().next().unwrap_or_default();
        self.component(plugin, module, begun)
    }

    /// Builds all of `plugins` into components, in the same order. Those of one
    /// workspace are compiled in one go, side by side.
    ///
    /// # Errors
    ///
    /// Those of [`Self::build`], for the first that fails.
    pub fn build_all(&self, plugins: &[PluginCrate]) -> Result<Vec<Component>, BuildError> {
        let mut built = BTreeMap::new();
        let begun = SystemTime::now();
        for plugin in plugins {
            if built.contains_key(plugin.folder()) {
                continue;
            }
            target::ensure_installed(plugin.folder())?;
            let together: Vec<&PluginCrate> = plugins
                .iter()
                .filter(|other| other.workspace_manifest() == plugin.workspace_manifest())
                .collect();
            let modules = cargo::compile(&together, self.profile, self.quiet)?;
            for (plugin, module) in together.into_iter().zip(modules) {
                built.insert(plugin.folder(), module);
            }
        }
        plugins
            .iter()
            .map(|plugin| {
                let module = built.get(plugin.folder()).cloned().unwrap_or_default();
                self.component(plugin, module, begun)
            })
            .collect()
    }

    fn component(
        &self,
        plugin: &PluginCrate,
        module: PathBuf,
        begun: SystemTime,
    ) -> Result<Component, BuildError> {
        let inputs = Inputs::of_module(&module, plugin.manifests(), plugin.lock_file(), begun);
        let bytes = std::fs::read(&module).map_err(|source| BuildError::ReadModule {
            path: module,
            source,
        })?;
        Component::from_module(plugin.name(), &bytes, self.profile, inputs)
    }
}
