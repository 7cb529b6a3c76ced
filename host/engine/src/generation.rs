//! The generations of the contract, one adapter each.
//!
//! A released generation never changes, and neither does its adapter. Which one a
//! component speaks is decided once, when it is loaded; from there on everything
//! is in the project's own types.

pub(crate) mod v0_1;

use crate::component::{ConfigError, Request};
use crate::outside::Actuation;
use crate::state::State;
use reeve_core::manifest::RawManifest;
use reeve_core::outcome::Completion;
use reeve_core::{Failure, Metadata, Outcome};
use std::fmt;
use wasmtime::Store;
use wasmtime::component::{InstancePre, Linker};

/// A generation of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Generation {
    /// `reeve:plugin@0.1`.
    V0_1,
}

impl Generation {
    /// All of them, newest first.
    pub(crate) const ALL: [Self; 1] = [Self::V0_1];

    /// The interface by which a component says that it speaks this generation.
    pub(crate) fn export(self) -> &'static str {
        match self {
            Self::V0_1 => "reeve:plugin/controller-api@0.1.0",
        }
    }

    /// Links what this generation imports.
    pub(crate) fn link(self, linker: &mut Linker<State>) -> wasmtime::Result<()> {
        match self {
            Self::V0_1 => v0_1::link(linker),
        }
    }

    /// Checks the exports of a component, down to the types of its functions.
    pub(crate) fn prepare(self, instance: InstancePre<State>) -> wasmtime::Result<Prepared> {
        match self {
            Self::V0_1 => v0_1::prepare(instance).map(Prepared::V0_1),
        }
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V0_1 => "reeve:plugin@0.1",
        })
    }
}

/// A component that can be instantiated without further checks.
pub(crate) enum Prepared {
    V0_1(v0_1::Pre),
}

impl Prepared {
    pub(crate) fn has_actions(&self) -> bool {
        match self {
            Self::V0_1(pre) => pre.has_actions(),
        }
    }

    pub(crate) async fn instantiate(&self, store: &mut Store<State>) -> wasmtime::Result<Guest> {
        match self {
            Self::V0_1(pre) => pre.instantiate(store).await.map(Guest::V0_1),
        }
    }
}

/// An instance, used for one call.
pub(crate) enum Guest {
    V0_1(v0_1::Guest),
}

impl Guest {
    pub(crate) async fn metadata(&self, store: &mut Store<State>) -> wasmtime::Result<Metadata> {
        match self {
            Self::V0_1(guest) => v0_1::metadata(guest, store).await,
        }
    }

    pub(crate) async fn describe(
        &self,
        store: &mut Store<State>,
        config: &[u8],
    ) -> wasmtime::Result<Result<RawManifest, ConfigError>> {
        match self {
            Self::V0_1(guest) => v0_1::describe(guest, store, config).await,
        }
    }

    pub(crate) async fn reconcile(
        &self,
        store: &mut Store<State>,
        request: &Request,
    ) -> wasmtime::Result<Result<Outcome, Failure>> {
        match self {
            Self::V0_1(guest) => v0_1::reconcile(guest, store, request).await,
        }
    }

    pub(crate) async fn actuate(
        &self,
        store: &mut Store<State>,
        actuation: &Actuation,
    ) -> wasmtime::Result<Result<Completion, Failure>> {
        match self {
            Self::V0_1(guest) => v0_1::actuate(guest, store, actuation).await,
        }
    }
}
