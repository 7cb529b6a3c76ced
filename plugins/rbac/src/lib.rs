//! Gives the namespace of every Profile the bindings, and if configured the Role,
//! that its people and those who support them need.

mod config;
mod objects;

use reeve_sdk::prelude::*;

use config::Config;
use objects::{Subject, role, role_binding};

const PROFILE: Kind = Kind::new("kubeflow.org/v1", "Profile");
const ROLE: Kind = Kind::new("rbac.authorization.k8s.io/v1", "Role");
const ROLE_BINDING: Kind = Kind::new("rbac.authorization.k8s.io/v1", "RoleBinding");

/// The binding for support, and the ClusterRole that it names.
const SUPPORT: &str = "profile-support";
/// The binding for pipelines, and the ClusterRole that it names.
const ML_PIPELINE: &str = "ml-pipeline";

/// The part of a Profile that is read.
#[input]
struct Profile {
    metadata: Metadata,
    spec: Option<ProfileSpec>,
}

#[input]
struct ProfileSpec {
    owner: Option<Owner>,
}

/// Whose Profile it is.
#[input]
struct Owner {
    kind: Option<String>,
    name: Option<String>,
}

/// The part of a binding that somebody else made that is read.
#[input]
struct Found {
    metadata: Metadata,
}

fn manifest(config: &Config) -> Result<Manifest, ConfigError> {
    config.check()?;
    let projection = match config.ml_pipeline() {
        true => "/spec/owner",
        // The name is there in any case.
        false => "/metadata/name",
    };
    let place = || Scope::NamespaceNamedLikePrimary;
    let manifest = Manifest::controller(PROFILE)
        .projection([projection])
        .writes(ROLE_BINDING, place())
        // Also without rules: then the Role of an earlier configuration goes.
        .writes(ROLE, place());
    Ok(match config.removes_support_binding() {
        true => manifest.reads(ReadRule::new(ROLE_BINDING, place()).names([SUPPORT])),
        false => manifest,
    })
}

fn reconcile(profile: Profile, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    let namespace = &profile.metadata.name;
    let mut problems = Problems::new();
    // Without groups and pipelines there is nothing, and that is meant.
    let mut outcome = Outcome::new().empty_is_meant();
    if !config.role.rules.is_empty() {
        outcome = outcome.object(role(namespace, &config.role));
    }
    if config.ml_pipeline()
        && let Some(owner) = problems.take(owner(profile.spec))
    {
        let subjects = vec![Subject::user(owner)];
        outcome = outcome.object(role_binding(namespace, ML_PIPELINE, subjects));
    }
    if !config.support_groups.is_empty() {
        let groups = config.groups().map(Subject::group).collect();
        outcome = outcome.object(role_binding(namespace, SUPPORT, groups));
    } else if config.removes_support_binding() {
        let binding = ROLE_BINDING.object(SUPPORT).in_namespace(namespace);
        let found: Option<Found> = cx.get_parts(&binding, ["/metadata/labels"])?;
        // What a plugin made goes by being withdrawn.
        if let Some(found) = found.filter(|found| !found.metadata.belongs_to_plugin()) {
            outcome = outcome.absent(binding.if_uid(found.metadata.uid));
        }
    }
    Ok(outcome.problems("OwnerUsable", "UnusableOwner", &problems))
}

/// The user who owns a Profile.
fn owner(spec: Option<ProfileSpec>) -> Result<String, String> {
    let owner = spec.and_then(|spec| spec.owner);
    let (kind, name) = owner.map_or((None, None), |owner| (owner.kind, owner.name));
    match (kind.as_deref().unwrap_or("User"), name) {
        ("User", Some(name)) if !name.is_empty() => Ok(name),
        ("User", _) => Err(format!(
            "spec.owner.name is empty, so there is no RoleBinding {ML_PIPELINE}; \
             set it to the name of the user who owns the Profile"
        )),
        (kind, _) => Err(format!(
            "spec.owner.kind is {kind}, but only a User can be bound to {ML_PIPELINE}, so there is \
             no such RoleBinding; set it to User, or turn mlPipeline off"
        )),
    }
}

reeve_sdk::plugin!(manifest, reconcile);

#[cfg(test)]
mod tests;
