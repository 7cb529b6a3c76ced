//! The part that makes Packs of the desired state.

use reeve_sdk::prelude::*;

use crate::applyset;
use crate::catalog;
use crate::desired_state::{self, DOCUMENT};
use crate::documents;
use crate::findings::Findings;
use crate::json;
use crate::kinds::{ORIGIN, PACK, PACK_SET, WAVE};
use crate::pack::Packs;
use crate::settings::Config;

/// The name of the desired state where it is a file.
const SOURCE: &str = "desired-state";
/// What a Pack is marked with that the stored document has asked for, and one that the
/// initial state has.
const STORED: &str = "stored";
const INITIAL: &str = "initial";

const PACK_OBJECT: &str = r#"{
    "apiVersion": "packs.reeve.dev/v1alpha1",
    "kind": "Pack",
    "metadata": {"name": "$name", "annotations": {}}
}"#;

pub(crate) fn manifest(config: &Config) -> Manifest {
    let manifest = Manifest::controller(PACK_SET)
        .projection(["/spec"])
        .writes(PACK, Scope::Cluster);
    let manifest = config.desired_state().declared(SOURCE, manifest);
    documents::declare_configuration(config, Packs::declared(manifest))
}

pub(crate) fn reconcile(
    allow_empty: bool,
    config: &Config,
    cx: &Context,
) -> Result<Outcome, Failure> {
    let place = config.desired_state();
    let stored = documents::described(DOCUMENT, &place);
    let (text, name, origin) = match place.read(SOURCE, cx)? {
        Some(text) => (text, stored, STORED),
        None => (initial(&stored, config, cx)?, initial_name(config), INITIAL),
    };
    let mut findings = Findings::default();
    let mut state = desired_state::parse(&text, allow_empty, &mut findings);
    findings.check(&name)?;
    if origin == INITIAL {
        // It begins, and neither changes nor ends what it has begun.
        let packs = Packs::read(cx)?;
        let begun = packs.iter().filter(|pack| pack.origin == INITIAL);
        desired_state::keep(&mut state, begun);
    }
    let specs = desired_state::specs(&state);
    // None at all is only let through where it is meant.
    let mut outcome = Outcome::nothing();
    for wanted in &state {
        let (name, spec) = (&wanted.name, &wanted.spec);
        let mut object = json::fill(PACK_OBJECT, &[("name", Value::from(name.as_str()))]);
        let annotations = &mut object["metadata"]["annotations"];
        annotations[ORIGIN] = Value::from(origin);
        annotations[WAVE] = Value::from(specs.wave(name).to_string());
        if let Some(definition) = catalog::find(name) {
            applyset::mark_parent(&mut object, definition);
        }
        object["spec"] = spec.to_json();
        outcome = outcome.object(object);
    }
    let outcome = findings.tell("DesiredStateClear", &name, outcome);
    // What stands in the way of the configuration is told by each pack that needs it.
    Ok(match documents::configuration(config, cx) {
        Ok((_, findings)) => {
            let name =
                documents::described(crate::configuration::DOCUMENT, &config.configuration());
            findings.tell("ConfigurationClear", &name, outcome)
        }
        Err(_) => outcome,
    })
}

/// The state that the platform begins with, as long as none is stored and none was.
fn initial(stored: &str, config: &Config, cx: &Context) -> Result<String, Failure> {
    if Packs::read(cx)?.iter().any(|pack| pack.origin == STORED) {
        return Err(Failure::not_ready(format!(
            "{stored} is gone, and the packs stay as they are; store it again"
        )));
    }
    let (configuration, _) = documents::configuration(config, cx)?;
    configuration.initial_state().or_not_ready(format_args!(
        "{stored} is not there yet, and the configuration has no initialDesiredState; store it"
    ))
}

fn initial_name(config: &Config) -> String {
    let place = config.configuration();
    documents::described("initialDesiredState", &place)
}
