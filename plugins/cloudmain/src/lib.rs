//! Lets the workloads of Profiles without guests reach a host of cloud-main,
//! through the egress gateway that is there for it.

mod config;
mod routes;

use reeve_sdk::prelude::*;

use config::Config;

const PROFILE: Kind = Kind::new("kubeflow.org/v1", "Profile");
const VIRTUAL_SERVICE: Kind = Kind::new("networking.istio.io/v1beta1", "VirtualService");
const SERVICE_ENTRY: Kind = Kind::new("networking.istio.io/v1beta1", "ServiceEntry");
const DESTINATION_RULE: Kind = Kind::new("networking.istio.io/v1beta1", "DestinationRule");

/// The VirtualService, and the DestinationRule.
const THROUGH_GATEWAY: &str = "direct-through-cloud-main-egress-gateway";
/// The ServiceEntry, and the subset of the gateway that it goes through.
const HOSTS: &str = "cloud-main-hosts";

/// All that is made.
const OBJECTS: [(Kind, &str); 3] = [
    (VIRTUAL_SERVICE, THROUGH_GATEWAY),
    (SERVICE_ENTRY, HOSTS),
    (DESTINATION_RULE, THROUGH_GATEWAY),
];

/// The part of a Profile, and of an object that somebody else made, that is read.
#[input]
struct Named {
    metadata: Metadata,
}

fn manifest(config: &Config) -> Result<Manifest, ConfigError> {
    config.check()?;
    let place = || Scope::NamespaceNamedLikePrimary;
    let mut manifest = Manifest::controller(PROFILE).projection(["/metadata/labels"]);
    for (kind, name) in OBJECTS {
        manifest = manifest.writes(kind.clone(), place());
        if config.removes_foreign() {
            manifest = manifest.reads(ReadRule::new(kind, place()).names([name]));
        }
    }
    Ok(manifest)
}

fn reconcile(profile: Named, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    let profile = profile.metadata;
    let mut problems = Problems::new();
    let namespace = &profile.name;
    let flag = profile.flag(&config.non_employee_label);
    // Only who is known to have no guests gets through: not a Profile without the
    // label, nor one whose label says nothing.
    let mut outcome = Outcome::new().empty_is_meant();
    if problems.take(flag).flatten() == Some(false) {
        outcome = outcome
            .object(routes::virtual_service(namespace, config))
            .object(routes::service_entry(namespace, config))
            .object(routes::destination_rule(namespace, config));
    } else if config.removes_foreign() {
        for (kind, name) in OBJECTS {
            let object = kind.object(name).in_namespace(namespace);
            let found: Option<Named> = cx.get_parts(&object, ["/metadata/labels"])?;
            // What a plugin made goes by being withdrawn.
            if let Some(found) = found.filter(|found| !found.metadata.belongs_to_plugin()) {
                outcome = outcome.absent(object.if_uid(found.metadata.uid));
            }
        }
    }
    Ok(outcome.problems("LabelsUsable", "UnusableLabels", &problems))
}

reeve_sdk::plugin!(manifest, reconcile);

#[cfg(test)]
mod tests;
