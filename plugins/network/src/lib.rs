//! Gives the namespace of every Profile the NetworkPolicies that its workloads
//! need under a default of denying all.

mod config;
mod gates;
mod policy;
mod table;

use std::collections::BTreeSet;

use reeve_sdk::prelude::*;

use config::Config;
use gates::Gates;
use table::POLICIES;

const PROFILE: Kind = Kind::new("kubeflow.org/v1", "Profile");
const NETWORK_POLICY: Kind = Kind::new("networking.k8s.io/v1", "NetworkPolicy");

/// Policies of earlier versions of the original controller.
const FORMER: [&str; 5] = [
    "notebooks-allow-ingress-gateway",
    "protected-b-notebooks-allow-ingress",
    "protected-b-allow-system",
    "protected-b-default-deny",
    "notebooks-allow-ingress",
];

/// The part of a Profile that is read.
#[input]
struct Profile {
    metadata: Metadata,
}

/// The part of a policy that is read, to find those that should not be there.
#[input]
struct Found {
    metadata: Metadata,
}

fn manifest(config: &Config) -> Result<Manifest, ConfigError> {
    config.check()?;
    let place = || Scope::NamespaceNamedLikePrimary;
    let manifest = Manifest::controller(PROFILE)
        .projection(["/metadata/labels"])
        .writes(NETWORK_POLICY, place());
    Ok(match config.removes_strays() || config.removes_former() {
        true => manifest.reads((NETWORK_POLICY, place())),
        false => manifest,
    })
}

fn reconcile(profile: Profile, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    let profile = profile.metadata;
    let namespace = &profile.name;
    let mut problems = Problems::new();
    let gates = Gates::read(&profile, config, &mut problems);
    // All policies may be turned off, and that is meant.
    let mut outcome = Outcome::new().empty_is_meant();
    let mut wanted = BTreeSet::new();
    for policy in &POLICIES {
        if config.wants(policy) && gates.is_open(policy.gate) {
            wanted.insert(policy.name);
            outcome = outcome.object(policy.object(namespace, config));
        }
    }
    for found in unwanted(&profile, config, &wanted, cx)? {
        let policy = NETWORK_POLICY.object(found.name).in_namespace(namespace);
        outcome = outcome.absent(policy.if_uid(found.uid));
    }
    Ok(outcome.problems("LabelsUsable", "UnusableLabels", &problems))
}

/// Policies that no plugin made, and that are to go: those of the Profile that are
/// not among the wanted, and those of earlier versions, whoever made them.
fn unwanted(
    profile: &Metadata,
    config: &Config,
    wanted: &BTreeSet<&str>,
    cx: &Context,
) -> Result<Vec<Metadata>, Failure> {
    if !config.removes_strays() && !config.removes_former() {
        return Ok(Vec::new());
    }
    let policies = Query::of(NETWORK_POLICY)
        .in_namespace(&profile.name)
        .projection(["/metadata/labels", "/metadata/ownerReferences"]);
    let mut found: Vec<Found> = cx.list(&policies)?;
    found.retain(|Found { metadata }| {
        let name = metadata.name.as_str();
        let owners = &metadata.owner_references;
        let is_stray = owners
            .iter()
            .any(|owner| owner.kind == "Profile" && owner.uid == profile.uid);
        !metadata.belongs_to_plugin()
            && !wanted.contains(name)
            && ((config.removes_strays() && is_stray)
                || (config.removes_former() && FORMER.contains(&name)))
    });
    let found = found.into_iter().map(|found| found.metadata);
    Ok(found.collect())
}

reeve_sdk::plugin!(manifest, reconcile);

#[cfg(test)]
mod tests;
