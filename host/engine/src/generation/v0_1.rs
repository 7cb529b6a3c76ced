//! `reeve:plugin@0.1`: from the contract's types to the project's and back.

mod convert;
mod host;

use crate::component::{ConfigError, Request};
use crate::state::State;
use reeve_core::manifest::RawManifest;
use reeve_core::{Failure, Metadata, Outcome};
use wasmtime::component::types::{ComponentExtern, ComponentItem};
use wasmtime::component::{HasData, InstancePre, Linker};
use wasmtime::error::Context as _;
use wasmtime::{Store, bail, format_err};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "controller",
        imports: { default: trappable },
        exports: { default: async },
    });
}

use bindings::exports::reeve::plugin::controller_api as api;
pub(crate) use bindings::{Controller, ControllerPre};

/// The exported interface, whatever its patch level.
const API: &str = "reeve:plugin/controller-api@0.1.";

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

/// Checks the exports of a component.
///
/// The generated check looks at the names only, in no certain order, and leaves
/// the types to each instantiation; but a plugin that cannot be called must not
/// be loaded, and must get the same message each time.
pub(super) fn prepare(instance: InstancePre<State>) -> wasmtime::Result<ControllerPre<State>> {
    let (engine, component) = (instance.engine(), instance.component().component_type());
    let types = component.instance_type();
    let Some((name, api)) = component
        .exports(engine)
        .find_map(|(name, export)| match export.ty {
            ComponentItem::ComponentInstance(api) if name.starts_with(API) => Some((name, api)),
            _ => None,
        })
    else {
        bail!("the export `{API}…` is not an instance");
    };
    let function = |function: &str| match api.get_export(engine, function) {
        Some(ComponentExtern {
            ty: ComponentItem::ComponentFunc(ty),
            ..
        }) => Ok(ty),
        _ => Err(format_err!(
            "`{name}` does not export the function `{function}`"
        )),
    };
    let typed = |function: &str, checked: wasmtime::Result<()>| {
        checked.with_context(|| {
            format!("`{function}` of `{name}` does not have the type that the contract gives it")
        })
    };
    let metadata = function("metadata")?.typecheck::<(), (api::PluginMetadata,)>(&types);
    typed("metadata", metadata)?;
    let describe = function("describe")?
        .typecheck::<(Vec<u8>,), (Result<api::Manifest, api::ConfigError>,)>(&types);
    typed("describe", describe)?;
    let reconcile = function("reconcile")?
        .typecheck::<(api::Request,), (Result<api::Outcome, api::Failure>,)>(&types);
    typed("reconcile", reconcile)?;
    ControllerPre::new(instance)
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
    let answer = match answer {
        Ok(manifest) => Ok(RawManifest::from(manifest)),
        Err(error) => Err(ConfigError::from(error)),
    };
    let size = match &answer {
        Ok(manifest) => convert::size_of_manifest(manifest),
        Err(error) => error.path.len() + error.message.len(),
    };
    store.data_mut().meter.count_output(0, size)?;
    Ok(answer)
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
