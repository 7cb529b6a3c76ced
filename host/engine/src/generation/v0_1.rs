//! `reeve:plugin@0.1`: from the contract's types to the project's and back.

mod convert;
mod host;

use crate::component::{ConfigError, Request};
use crate::fault::FaultKind;
use crate::meter::Breach;
use crate::outside::Actuation;
use crate::state::State;
use reeve_core::manifest::RawManifest;
use reeve_core::outcome::Completion;
use reeve_core::{Failure, Metadata, Outcome};
use wasmtime::component::types::{ComponentExtern, ComponentInstance, ComponentItem};
use wasmtime::component::{HasData, InstancePre, Linker};
use wasmtime::error::Context as _;
use wasmtime::{Store, bail, format_err};

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "controller-with-actions",
        imports: {
            "reeve:plugin/sql": async | trappable,
            default: trappable,
        },
        exports: { default: async },
    });
}

use bindings::ControllerWithActions;
use bindings::exports::reeve::plugin::{actions_api, controller_api as api};

/// The exported interfaces, whatever their patch level.
const API: &str = "reeve:plugin/controller-api@0.1.";
const ACTIONS: &str = "reeve:plugin/actions-api@0.1.";

/// A component of one of the two worlds: actions are there or not.
pub(crate) struct Pre {
    instance: InstancePre<State>,
    controller: api::GuestIndices,
    actions: Option<actions_api::GuestIndices>,
}

/// An instance of it.
pub(crate) struct Guest {
    controller: api::Guest,
    actions: Option<actions_api::Guest>,
}

impl Pre {
    pub(crate) fn has_actions(&self) -> bool {
        self.actions.is_some()
    }

    pub(crate) async fn instantiate(&self, store: &mut Store<State>) -> wasmtime::Result<Guest> {
        let instance = self.instance.instantiate_async(&mut *store).await?;
        let actions = match &self.actions {
            Some(actions) => Some(actions.load(&mut *store, &instance)?),
            None => None,
        };
        Ok(Guest {
            controller: self.controller.load(store, &instance)?,
            actions,
        })
    }
}

/// Every host function sees the whole state of its call.
struct Host;

impl HasData for Host {
    type Data<'a> = &'a mut State;
}

/// Links the imports of the world.
pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    ControllerWithActions::add_to_linker::<State, Host>(linker, |state| {
        state.meter.count_host_call();
        state
    })
}

/// Checks the exports of a component.
///
/// The generated check looks at the names only, in no certain order, and leaves
/// the types to each instantiation; but a plugin that cannot be called must not
/// be loaded, and must get the same message each time.
pub(super) fn prepare(instance: InstancePre<State>) -> wasmtime::Result<Pre> {
    let (engine, component) = (instance.engine(), instance.component().component_type());
    let types = component.instance_type();
    let exported = |prefix: &str| {
        component
            .exports(engine)
            .find_map(|(name, export)| match export.ty {
                ComponentItem::ComponentInstance(api) if name.starts_with(prefix) => {
                    Some((name, api))
                }
                _ => None,
            })
    };
    let function = |(name, api): &(&str, ComponentInstance), function: &str| match api
        .get_export(engine, function)
    {
        Some(ComponentExtern {
            ty: ComponentItem::ComponentFunc(ty),
            ..
        }) => Ok(ty),
        _ => Err(format_err!(
            "`{name}` does not export the function `{function}`"
        )),
    };
    let typed = |name: &str, function: &str, checked: wasmtime::Result<()>| {
        checked.with_context(|| {
            format!("`{function}` of `{name}` does not have the type that the contract gives it")
        })
    };
    let Some(api) = exported(API) else {
        bail!("the export `{API}…` is not an instance");
    };
    let metadata = function(&api, "metadata")?.typecheck::<(), (api::PluginMetadata,)>(&types);
    typed(api.0, "metadata", metadata)?;
    let describe = function(&api, "describe")?
        .typecheck::<(Vec<u8>,), (Result<api::Manifest, api::ConfigError>,)>(&types);
    typed(api.0, "describe", describe)?;
    let reconcile = function(&api, "reconcile")?
        .typecheck::<(api::Request,), (Result<api::Outcome, api::Failure>,)>(&types);
    typed(api.0, "reconcile", reconcile)?;
    let actions = match exported(ACTIONS) {
        None => None,
        Some(actions) => {
            let actuate = function(&actions, "actuate")?.typecheck::<(actions_api::Actuation,), (
                Result<actions_api::Completion, actions_api::Failure>,
            )>(&types);
            typed(actions.0, "actuate", actuate)?;
            Some(actions_api::GuestIndices::new(&instance)?)
        }
    };
    Ok(Pre {
        controller: api::GuestIndices::new(&instance)?,
        actions,
        instance,
    })
}

pub(super) async fn metadata(
    guest: &Guest,
    store: &mut Store<State>,
) -> wasmtime::Result<Metadata> {
    let metadata = guest.controller.call_metadata(&mut *store).await?;
    let size = metadata.name.len() + metadata.version.len() + metadata.config_schema.len();
    store.data_mut().meter.count_output(0, size)?;
    Ok(metadata.into())
}

pub(super) async fn describe(
    guest: &Guest,
    store: &mut Store<State>,
    config: &[u8],
) -> wasmtime::Result<Result<RawManifest, ConfigError>> {
    let answer = guest
        .controller
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
    guest: &Guest,
    store: &mut Store<State>,
    request: &Request,
) -> wasmtime::Result<Result<Outcome, Failure>> {
    let request = convert::request(request);
    let answer = guest
        .controller
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

pub(super) async fn actuate(
    guest: &Guest,
    store: &mut Store<State>,
    actuation: &Actuation,
) -> wasmtime::Result<Result<Completion, Failure>> {
    let Some(actions) = &guest.actions else {
        return Err(Breach(FaultKind::NoActions).into());
    };
    let actuation = convert::actuation(actuation);
    let answer = actions.call_actuate(&mut *store, &actuation).await?;
    let meter = &mut store.data_mut().meter;
    Ok(match answer {
        Ok(completion) => {
            meter.count_output(0, completion.fact.len())?;
            Ok(Completion {
                in_place: completion.in_place,
                fact: completion.fact,
            })
        }
        Err(failure) => {
            let failure = Failure::from(failure);
            meter.count_output(0, failure.to_string().len())?;
            Err(failure)
        }
    })
}
