//! `reeve:plugin@0.1`: from the contract's types to the project's and back.

mod convert;
mod host;

use crate::component::{ConfigError, Request};
use crate::state::State;
use reeve_core::manifest::RawManifest;
use reeve_core::{Failure, Metadata, Outcome};
use wasmtime::Store;
use wasmtime::component::{HasData, Linker};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "controller",
        imports: { default: trappable },
        exports: { default: async },
    });
}

pub(crate) use bindings::{Controller, ControllerPre};

/// Every host function sees the whole state of its call.
struct Host;

impl HasData for Host {
    type Data<'a> = &'a mut State;
}

/// Links the imports of the world.
pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    Controller::add_to_linker::<State, Host>(linker, |state| {
        state.meter.count_host_call();
        state
    })
}

pub(super) async fn metadata(
    guest: &Controller,
    store: &mut Store<State>,
) -> wasmtime::Result<Metadata> {
    let metadata = guest
        .reeve_plugin_controller_api()
        .call_metadata(&mut *store)
        .await?;
    let size = metadata.name.len() + metadata.version.len() + metadata.config_schema.len();
    store.data_mut().meter.count_output(0, size)?;
    Ok(metadata.into())
}

pub(super) async fn describe(
    guest: &Controller,
    store: &mut Store<State>,
    config: &[u8],
) -> wasmtime::Result<Result<RawManifest, ConfigError>> {
    let answer = guest
        .reeve_plugin_controller_api()
        .call_describe(&mut *store, &config.to_vec())
        .await?;
    Ok(match answer {
        Ok(manifest) => Ok(manifest.into()),
        Err(error) => Err(error.into()),
    })
}

pub(super) async fn reconcile(
    guest: &Controller,
    store: &mut Store<State>,
    request: &Request,
) -> wasmtime::Result<Result<Outcome, Failure>> {
    let request = convert::request(request);
    let answer = guest
        .reeve_plugin_controller_api()
        .call_reconcile(&mut *store, &request)
        .await?;
    let meter = &mut store.data_mut().meter;
    Ok(match answer {
        Ok(outcome) => {
            meter.count_output(outcome.objects.len(), convert::size(&outcome))?;
            Ok(outcome.into())
        }
        Err(failure) => {
            let failure = Failure::from(failure);
            meter.count_output(0, failure.to_string().len())?;
            Err(failure)
        }
    })
}
