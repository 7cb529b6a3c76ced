//! Gives the namespace of every Profile a PodDefault, with which people choose to
//! run a notebook as protected-b.

use reeve_sdk::prelude::*;

const PROFILE: Kind = Kind::new("kubeflow.org/v1", "Profile");
const POD_DEFAULT: Kind = Kind::new("kubeflow.org/v1alpha1", "PodDefault");

/// PodDefaults of earlier versions of the original controller.
const FORMER: [&str; 2] = ["blob-csi-mounts", "minio-mounts"];

/// The part of a Profile, and of a PodDefault, that is read.
#[input]
struct Named {
    metadata: Metadata,
}

/// What is offered to people who make notebooks.
#[config]
#[derive(Default)]
struct Config {
    /// Accepted so that one value may be given to all plugins of Profiles: README
    /// and code of the original controller say the same of this one.
    preset: Preset,
    /// Whether PodDefaults of earlier versions of the original controller are
    /// deleted, whoever made them. Off unless set, as in the original.
    remove_former: bool,
}

/// Which of the two descriptions of the original controller is followed.
#[config(lowercase)]
#[derive(Default)]
enum Preset {
    /// Its README.
    #[default]
    Readme,
    /// Its code.
    Main,
}

fn manifest(config: &Config) -> Manifest {
    let place = || Scope::NamespaceNamedLikePrimary;
    // The name is there in any case; a projection of nothing else keeps every other
    // change of a Profile from running the plugin.
    let manifest = Manifest::controller(PROFILE)
        .projection(["/metadata/name"])
        .writes(POD_DEFAULT, place());
    match config.remove_former {
        true => manifest.reads(ReadRule::new(POD_DEFAULT, place()).names(FORMER)),
        false => manifest,
    }
}

fn reconcile(profile: Named, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    // Both mean the same here.
    let (Preset::Readme | Preset::Main) = config.preset;
    let profile = profile.metadata;
    let namespace = &profile.name;
    let mut outcome = Outcome::of([protected_b(namespace)]);
    for name in FORMER.iter().filter(|_| config.remove_former) {
        let former = POD_DEFAULT.object(*name).in_namespace(namespace);
        let found: Option<Named> = cx.get_parts(&former, ["/metadata/labels"])?;
        if let Some(found) = found.filter(|found| !found.metadata.belongs_to_plugin()) {
            outcome = outcome.absent(former.if_uid(found.metadata.uid));
        }
    }
    Ok(outcome)
}

/// Pods with the label of the selector become protected-b.
fn protected_b(namespace: &str) -> Object<Value> {
    Object::new(
        POD_DEFAULT.object("protected-b").in_namespace(namespace),
        json!({
            "desc": "Run a Protected B notebook / Exécuter un bloc-notes protégé B",
            "selector": {"matchLabels": {"notebook.statcan.gc.ca/protected-b": "true"}},
            "labels": {"data.statcan.gc.ca/classification": "protected-b"},
        }),
    )
}

reeve_sdk::plugin!(manifest, reconcile);

#[cfg(test)]
mod tests;
