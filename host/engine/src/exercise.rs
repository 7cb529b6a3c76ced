//! The host functions without a guest, for whoever looks for sequences of calls that
//! break what must hold of any.

use crate::called::{Level, LogLine, Usage};
use crate::capabilities;
use crate::fault::FaultKind;
use crate::limits::Limits;
use crate::meter::Breach;
use crate::state::{Given, Seed, State};
use crate::view::{Document, ListQuery, ReadError, SourceError, View};
use bytes::Bytes;
use reeve_core::{Digest, ObjectReference};
use std::sync::Arc;
use wasmtime::CallHook;

/// One call of a guest as the host sees it: host functions, one after the other.
///
/// A limit ends the call, as it would end the guest: each function gives the
/// [`FaultKind`] with which it does. Nothing may be called after that.
pub struct HostCalls {
    state: State,
}

impl HostCalls {
    /// A call of `reconcile` with this view, or of another function without one.
    pub fn new(limits: &Limits, view: Option<Arc<dyn View>>) -> Self {
        let given = view.map_or(Given::Nothing, Given::View);
        Self {
            state: State::new("reconcile", limits, given, Seed::new(Digest::of(b""), None)),
        }
    }

    fn call<T>(
        &mut self,
        function: impl FnOnce(&mut State) -> Result<T, Breach>,
    ) -> Result<T, FaultKind> {
        let meter = &mut self.state.meter;
        meter
            .cross(CallHook::CallingHost)
            .map_err(|Breach(kind)| kind)?;
        meter.count_host_call();
        let answer = function(&mut self.state).map_err(|Breach(kind)| kind)?;
        self.state
            .meter
            .cross(CallHook::ReturningFromHost)
            .map_err(|Breach(kind)| kind)?;
        Ok(answer)
    }

    /// `cluster.get`.
    ///
    /// # Errors
    ///
    /// When a limit ends the call.
    pub fn get(
        &mut self,
        object: &ObjectReference,
        projection: &[String],
    ) -> Result<Result<Option<Bytes>, ReadError>, FaultKind> {
        self.call(|state| capabilities::cluster::get(state, object, projection))
    }

    /// `cluster.list`.
    ///
    /// # Errors
    ///
    /// When a limit ends the call.
    pub fn list(&mut self, query: &ListQuery) -> Result<Result<Vec<Bytes>, ReadError>, FaultKind> {
        self.call(|state| capabilities::cluster::list(state, query))
    }

    /// `cluster.list-keys`.
    ///
    /// # Errors
    ///
    /// When a limit ends the call.
    pub fn list_keys(
        &mut self,
        query: &ListQuery,
    ) -> Result<Result<Vec<ObjectReference>, ReadError>, FaultKind> {
        self.call(|state| capabilities::cluster::list_keys(state, query))
    }

    /// `sources.read`.
    ///
    /// # Errors
    ///
    /// When a limit ends the call.
    pub fn source(&mut self, name: &str) -> Result<Result<Document, SourceError>, FaultKind> {
        self.call(|state| capabilities::sources::read(state, name))
    }

    /// `sources.age`.
    ///
    /// # Errors
    ///
    /// When a limit ends the call.
    pub fn source_age(&mut self, name: &str) -> Result<Result<u64, SourceError>, FaultKind> {
        self.call(|state| Ok(capabilities::sources::age(state, name)))
    }

    /// `clock.now`.
    ///
    /// # Errors
    ///
    /// When a limit ends the call, or there is no time to read.
    pub fn now(&mut self) -> Result<u64, FaultKind> {
        self.call(|state| capabilities::clock::now(state))
    }

    /// `log.write`.
    ///
    /// # Errors
    ///
    /// When a limit ends the call.
    pub fn log(&mut self, level: Level, message: String) -> Result<(), FaultKind> {
        self.call(|state| {
            capabilities::log::write(state, level, message);
            Ok(())
        })
    }

    /// `log.fault`.
    ///
    /// # Errors
    ///
    /// When a limit ends the call.
    pub fn fault(&mut self, message: String) -> Result<(), FaultKind> {
        self.call(|state| {
            capabilities::log::fault(state, message);
            Ok(())
        })
    }

    /// What was used, what was logged and whether lines were dropped, and what was
    /// said before the end.
    pub fn finish(self) -> (Usage, Vec<LogLine>, bool, Option<String>) {
        let usage = self.state.usage();
        let (lines, dropped) = self.state.log.finish();
        (usage, lines, dropped, self.state.fault_message)
    }
}
