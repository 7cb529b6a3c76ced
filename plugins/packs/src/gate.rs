//! Whether the packs that a pack needs are ready.

use reeve_sdk::prelude::*;

use crate::catalog::{self, FLUX};
use crate::findings::Findings;
use crate::graph;
use crate::live::Live;
use crate::render::{World, render};

/// Why a pack has to wait, one reason for each that it needs and that is not ready.
pub(crate) fn blocked_by(
    name: &str,
    world: &World<'_>,
    cx: &Context,
) -> Result<Vec<String>, Failure> {
    let mut reasons = Vec::new();
    for need in graph::needs(name, world.packs) {
        if let Some(reason) = lacks(need, world, cx)? {
            reasons.push(format!("pack {need}: {reason}"));
        }
    }
    Ok(reasons)
}

/// Why a pack is not ready.
pub(crate) fn lacks(
    name: &str,
    world: &World<'_>,
    cx: &Context,
) -> Result<Option<String>, Failure> {
    let said = |text: &str| Ok(Some(text.to_owned()));
    let Some(spec) = world.packs.get(name) else {
        return said("there is none; add it, or change dependsOn");
    };
    if !spec.is_enabled() {
        return said("it is not enabled");
    }
    if name == FLUX {
        return Live::flux_lacks(cx);
    }
    let Some(definition) = catalog::find(name) else {
        return Ok(Some(catalog::unknown()));
    };
    let mut findings = Findings::default();
    let rendered = render(definition, spec, world, &mut findings);
    if let Some(error) = findings.errors.first() {
        return Ok(Some(error.clone()));
    }
    let live = Live::read(name, cx)?;
    let mut judged = rendered.judged.iter();
    Ok(judged.find_map(|wanted| live.lacks(wanted, &rendered.revision)))
}
