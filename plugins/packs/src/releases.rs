//! The part that installs packs: their namespaces, Secrets and releases.

use reeve_sdk::prelude::*;

use crate::catalog::{self, Definition, FLUX};
use crate::documents;
use crate::findings::Findings;
use crate::front_door;
use crate::gate;
use crate::graph;
use crate::json::Json;
use crate::kinds::{
    CONFIG_MAP, FLUX_NAMESPACE, HELM_RELEASE, HELM_REPOSITORY, NAMESPACE, OCI_REPOSITORY, PACK,
    SECRET,
};
use crate::live::Live;
use crate::pack::{Pack, Packs, Spec};
use crate::render::{self, World};
use crate::settings::Config;

/// The label by which an agent finds what its plugins own.
const PLUGIN_LABEL: &str = "reeve.dev/plugin";

pub(crate) fn manifest(config: &Config) -> Manifest {
    let namespaces = catalog::namespaces();
    let flux = || Scope::Namespaces(vec![FLUX_NAMESPACE.to_owned()]);
    let own = || Scope::Namespaces(namespaces.clone());
    let mut with_flux = namespaces.clone();
    with_flux.push(FLUX_NAMESPACE.to_owned());
    let manifest = Manifest::controller(PACK)
        .projection(["/metadata/name"])
        .writes(NAMESPACE, Scope::Cluster)
        .writes(SECRET, own())
        .writes(CONFIG_MAP, Scope::Namespaces(with_flux))
        .writes(HELM_REPOSITORY, flux())
        .writes(OCI_REPOSITORY, flux())
        .writes(HELM_RELEASE, own());
    let named = |manifest: Manifest, name| manifest.reads(namespace_rule(name));
    let manifest = namespaces.iter().fold(manifest, named);
    let manifest = Live::declared(Packs::declared(manifest));
    documents::declare_configuration(config, manifest)
}

/// What is read to tell whether a namespace is there. A rule for each: they are watched
/// one by one.
pub(crate) fn namespace_rule(name: impl Into<String>) -> ReadRule {
    ReadRule::new(NAMESPACE, Scope::Cluster).names([name])
}

pub(crate) fn reconcile(name: &str, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    let known = catalog::find(name).or_terminal(catalog::unknown());
    let definition = known?;
    // That is another instance's: the kinds of this one are not there before.
    if name == FLUX {
        return Ok(Outcome::nothing());
    }
    let packs = Packs::read(cx)?;
    let pack = packs.get(name).or_not_ready("the Pack is not seen yet")?;
    if pack.is_going || !pack.spec.is_enabled() {
        check_leave(name, &packs, Some(cx))?;
        return Ok(leave(definition, pack));
    }
    check_stays(pack)?;
    let specs = packs.specs();
    check_order(name, &packs)?;
    let (configuration, _) = documents::configuration(config, cx)?;
    let world = World {
        config,
        configuration: &configuration,
        packs: &specs,
    };
    let mut findings = Findings::default();
    let rendered = render::render(definition, &pack.spec, &world, &mut findings);
    let document = format!("pack {name} and its configuration");
    findings.check(&document)?;
    let mut namespaces = Vec::new();
    for namespace in definition.namespaces {
        if is_own(namespace, cx)? {
            namespaces.push(render::namespace(name, namespace, config));
        }
    }
    let patched = pack.spec.patch(&mut namespaces, &mut findings);
    findings.check(&document)?;
    // What was let through once may be kept up, however those are that it needs.
    if !Live::read(name, cx)?.has_revision(&rendered.revision) {
        let reasons = gate::blocked_by(name, &world, cx)?;
        if !reasons.is_empty() {
            return Err(Failure::not_ready(format!(
                "blocked by {}",
                reasons.join("; ")
            )));
        }
    }
    // The part of the front door tells what is wrong with patches of what it makes.
    let mut theirs = Findings::default();
    let mut door = front_door::objects(definition, true, &configuration);
    let door = pack.spec.patch(&mut door, &mut theirs);
    let outcome = Outcome::of([render::farewell(definition)])
        .objects(namespaces)
        .objects(rendered.objects);
    Ok(match theirs.errors.is_empty() {
        true => tell_unmatched(&pack.spec, &[patched, rendered.patched, door], outcome),
        false => outcome,
    })
}

/// A patch for which there is no object is no error, and may still be a slip of the pen.
/// `matched` says, of sets of objects, which patches had one.
pub(crate) fn tell_unmatched(spec: &Spec, matched: &[Vec<bool>], outcome: Outcome) -> Outcome {
    let mut findings = Findings::default();
    for index in 0..spec.patches.as_ref().map_or(0, Vec::len) {
        if !matched.iter().any(|found| found.get(index) == Some(&true)) {
            findings.warn(
                &format!("/spec/patches/{index}"),
                "no object of the pack is meant by it; look at its target",
            );
        }
    }
    findings.tell("PatchesMatch", "spec.patches", outcome)
}

/// A Pack that is suspended stays as it is.
pub(crate) fn check_stays(pack: &Pack) -> Result<(), Failure> {
    if pack.spec.is_suspended() {
        return Err(Failure::not_ready(
            "suspended by spec.suspend: what was applied stays as it is",
        ));
    }
    Ok(())
}

/// A pack cannot wait for itself.
pub(crate) fn check_order(name: &str, packs: &Packs) -> Result<(), Failure> {
    match graph::circle(name, &packs.specs()) {
        Some(circle) => Err(Failure::terminal(graph::describe(&circle))),
        None => Ok(()),
    }
}

/// A pack goes when no other needs it; of those that go, the ones with a later wave go
/// first. `cluster` is where it can be seen what others still have; who cannot see it goes
/// by what their ends wait for.
pub(crate) fn check_leave(
    name: &str,
    packs: &Packs,
    cluster: Option<&Context>,
) -> Result<(), Failure> {
    let specs = packs.specs();
    // Packs in a circle would wait for one another for ever.
    if graph::circle(name, &specs).is_none() {
        let mut needed = Vec::new();
        for pack in packs.iter() {
            let (other, is_enabled) = (pack.name.as_str(), pack.spec.is_enabled());
            let goes = pack.is_going || !is_enabled;
            let needs = graph::named(other, &pack.spec).contains(&name);
            if !(needs || goes && specs.is_later(other, name)) {
                continue;
            }
            let stays = match cluster {
                // What is no pack of ours has nothing.
                Some(cx) if !is_enabled && catalog::find(other).is_some() => {
                    Live::read(other, cx)?.has_any()
                }
                Some(_) => is_enabled,
                None => is_enabled || pack.is_held,
            };
            if stays {
                needed.push(other);
            }
        }
        if !needed.is_empty() {
            return Err(Failure::not_ready(format!(
                "it goes after the packs that need it: {}; remove them, or change their \
                 dependsOn",
                needed.join(", ")
            )));
        }
    }
    Ok(())
}

/// What is left of a pack that goes. At the end of its Pack only hooks count, so that it
/// ends whatever has become of the configuration.
pub(crate) fn leave(definition: &Definition, pack: &Pack) -> Outcome {
    match pack.is_going {
        true => Outcome::of([render::farewell(definition)]),
        false => Outcome::nothing(),
    }
}

/// Whether a namespace is for a pack to make. One that somebody else has made is used as
/// it is.
pub(crate) fn is_own(name: &str, cx: &Context) -> Result<bool, Failure> {
    let found: Option<Json> = cx.get_parts(&NAMESPACE.object(name), ["/metadata/labels"])?;
    Ok(found.is_none_or(|Json(found)| found["metadata"]["labels"][PLUGIN_LABEL].is_string()))
}
