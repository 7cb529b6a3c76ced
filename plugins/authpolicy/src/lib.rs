//! Gives the namespace of every Profile its Istio AuthorizationPolicies: one for
//! each Notebook that blocks uploads and downloads while it is protected-b, and,
//! if wanted, one that says who is let in.

mod access;
mod block;
mod policy;

use reeve_sdk::names::check_label_value;
use reeve_sdk::prelude::*;

use access::{Binding, access};
use policy::AUTHORIZATION_POLICY;

const PROFILE: Kind = Kind::new("kubeflow.org/v1", "Profile");
const NOTEBOOK: Kind = Kind::new("kubeflow.org/v1", "Notebook");
const ROLE_BINDING: Kind = Kind::new("rbac.authorization.k8s.io/v1", "RoleBinding");

/// The part of a Profile that is read.
#[input]
struct Profile {
    metadata: Metadata,
    spec: Option<ProfileSpec>,
}

#[input]
struct ProfileSpec {
    owner: Option<access::Owner>,
}

/// Which policies there are.
#[config]
#[derive(Default)]
struct Config {
    /// What the other settings are unless they are set.
    preset: Preset,
    /// Whether uploads to and downloads from protected-b notebooks are blocked.
    /// Both presets do so.
    upload_download_block: Option<bool>,
    /// Whether only the owner of a Profile and its editors are let in. The preset
    /// main says so, readme does not.
    namespace_policy: Option<bool>,
}

/// Which of the two descriptions of the original controller is followed.
#[config(lowercase)]
#[derive(Default, PartialEq)]
enum Preset {
    /// Its README.
    #[default]
    Readme,
    /// Its code.
    Main,
}

impl Config {
    fn blocks(&self) -> bool {
        self.upload_download_block.unwrap_or(true)
    }

    fn has_namespace_policy(&self) -> bool {
        self.namespace_policy.unwrap_or(self.preset == Preset::Main)
    }
}

fn manifest(config: &Config) -> Manifest {
    let place = || Scope::NamespaceNamedLikePrimary;
    let projection = match config.has_namespace_policy() {
        true => "/spec/owner",
        // The name is there in any case.
        false => "/metadata/name",
    };
    let mut manifest = Manifest::controller(PROFILE)
        .projection([projection])
        .writes(AUTHORIZATION_POLICY, place());
    if config.blocks() {
        manifest = manifest.reads((NOTEBOOK, place()));
    }
    if config.has_namespace_policy() {
        manifest = manifest.reads((ROLE_BINDING, place()));
    }
    manifest
}

fn reconcile(profile: Profile, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    let namespace = &profile.metadata.name;
    // A profile without notebooks may have nothing, and that is meant.
    let mut outcome = Outcome::new().empty_is_meant();
    if config.has_namespace_policy() {
        let mut problems = Problems::new();
        let bindings = Query::of(ROLE_BINDING)
            .in_namespace(namespace)
            .projection(["/metadata/annotations/role", "/subjects"]);
        let bindings: Vec<Binding> = cx.list(&bindings)?;
        let owner = profile.spec.and_then(|spec| spec.owner);
        let users = access(owner.as_ref(), &bindings, &mut problems);
        outcome = outcome
            .object(policy::namespace(namespace, &users))
            .problems("AccessUsable", "UnusableAccess", &problems);
    }
    if config.blocks() {
        let mut problems = Problems::new();
        // Names are all that is needed: what else changes in a Notebook runs
        // nothing.
        for notebook in cx.list_references(&Query::of(NOTEBOOK).in_namespace(namespace))? {
            match check_label_value(&notebook.name) {
                Ok(()) => outcome = outcome.object(block::policy(namespace, &notebook.name)),
                Err(error) => problems.add(format_args!(
                    "{notebook}: its name cannot be the value of the label {}, by which its pods \
                     are found ({error}), so nothing blocks its uploads and downloads; make it \
                     anew under another name",
                    block::NOTEBOOK_LABEL
                )),
            }
        }
        outcome = outcome.problems("NotebooksUsable", "UnusableNotebooks", &problems);
    }
    Ok(outcome)
}

reeve_sdk::plugin!(manifest, reconcile);

#[cfg(test)]
mod tests;
