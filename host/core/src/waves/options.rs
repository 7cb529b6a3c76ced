//! What an object's annotations say about how it is to be handled.
//!
//! Those of Argo CD, Helm and Flux are understood, and each has a name of ours,
//! which wins. A value that is not understood is warned about and changes
//! nothing, with one exception: an object whose hook annotation names no known
//! phase is not applied at all, since it was never meant to be applied as an
//! ordinary one.

use super::dependency::{Dependency, DependencyError};
use super::hook::{Hook, HookDeletePolicy, Phase};
use super::sync_options::{CompareOptions, SyncOptions};
use crate::annotations::{Annotations, Warning};
use crate::ownership::{
    APPLIED_ANNOTATION, PRIMARY_ANNOTATION, PRIMARY_UID_ANNOTATION, PRUNE_ANNOTATION,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// What we put on each object of ours, and which most have alone.
const STAMPS: [&str; 3] = [
    APPLIED_ANNOTATION,
    PRIMARY_ANNOTATION,
    PRIMARY_UID_ANNOTATION,
];
const WAVE: [&str; 3] = [
    "reeve.dev/wave",
    "argocd.argoproj.io/sync-wave",
    "helm.sh/hook-weight",
];
const HOOK: [&str; 2] = ["reeve.dev/hook", "argocd.argoproj.io/hook"];
const HELM_HOOK: &str = "helm.sh/hook";
const HOOK_DELETE_POLICY: [&str; 3] = [
    "reeve.dev/hook-delete-policy",
    "argocd.argoproj.io/hook-delete-policy",
    "helm.sh/hook-delete-policy",
];
const DEPENDS_ON: [&str; 2] = ["reeve.dev/depends-on", "config.kubernetes.io/depends-on"];
const SKIP_RECONCILE: [&str; 2] = [
    "reeve.dev/skip-reconcile",
    "argocd.argoproj.io/skip-reconcile",
];
const REFRESH: [&str; 2] = ["reeve.dev/refresh", "argocd.argoproj.io/refresh"];
const APPLY: &str = "reeve.dev/apply";
const DELETE: &str = "reeve.dev/delete";
const HELM_RESOURCE_POLICY: &str = "helm.sh/resource-policy";
const FLUX_SSA: &str = "kustomize.toolkit.fluxcd.io/ssa";
const FLUX_FORCE: &str = "kustomize.toolkit.fluxcd.io/force";
/// Annotation or label of Flux, by which an object asks to be left where it is.
pub const FLUX_PRUNE: &str = "kustomize.toolkit.fluxcd.io/prune";
const FLUX_RECONCILE: &str = "kustomize.toolkit.fluxcd.io/reconcile";

/// What to do with an object that is to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Removal {
    /// Nobody said anything: it goes, unless its kind is precious.
    #[default]
    Unsaid,
    /// It may go, also if its kind is precious.
    Permitted,
    /// It goes when a person confirms.
    Confirm,
    /// It stays.
    Never,
}

/// Part of what is desired, or of getting there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// An ordinary object.
    #[default]
    Resource,
    /// A hook.
    Hook(Hook),
    /// Never applied: a hook that is to be skipped, or of phases that do not
    /// exist here, such as Helm's tests.
    Skipped,
}

/// How an object is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ApplyMode {
    /// Applied server-side.
    #[default]
    Apply,
    /// Only its fields are ours, not the object: never created, labelled or
    /// pruned.
    Contribute,
    /// Applied, fields of others being left alone (Flux: `Merge`).
    Merge,
    /// Created where it does not exist, and left alone after that.
    IfNotPresent,
    /// Replaced as a whole.
    Replace,
    /// Left alone.
    Ignore,
}

/// What an object's annotations say, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Its wave.
    pub wave: i64,
    /// Whether it is a hook.
    pub role: Role,
    /// How it is written.
    pub apply: ApplyMode,
    /// Whether it is deleted and created again where it cannot be changed.
    pub force: bool,
    /// What to do when it is no longer desired.
    pub prune: Removal,
    /// What to do when its unit ends.
    pub delete: Removal,
    /// What it waits for.
    pub depends_on: Vec<Dependency>,
    /// Dependencies that cannot be read. Whoever wrote them wanted an order, so
    /// there is none without them.
    pub unreadable_dependencies: Vec<DependencyError>,
    /// All of its sync options; those above are taken from them where nothing
    /// stronger is said.
    pub sync: SyncOptions,
    /// How it is compared.
    pub compare: CompareOptions,
    /// Whether it is left alone for the time being (`skip-reconcile`).
    pub skip_reconcile: bool,
}

impl Options {
    /// Those of an object, and what in its annotations is not understood.
    pub fn of(object: &Value) -> (Self, Vec<Warning>) {
        let label = |key: &str| {
            object
                .pointer("/metadata/labels")
                .and_then(|labels| labels.get(key)?.as_str())
        };
        Self::read(&Annotations::of(object), label(FLUX_PRUNE))
    }

    /// Those of an object of which no more is kept than its annotations and its label
    /// [`FLUX_PRUNE`].
    pub fn of_live(
        annotations: &Annotations<'_>,
        flux_prune_label: Option<&str>,
    ) -> (Self, Vec<Warning>) {
        Self::read(annotations, flux_prune_label)
    }

    fn read(annotations: &Annotations<'_>, flux_prune_label: Option<&str>) -> (Self, Vec<Warning>) {
        if flux_prune_label.is_none() && annotations.only(&STAMPS) {
            return (Self::default(), Vec::new());
        }
        Self::read_all(annotations, flux_prune_label)
    }

    fn read_all(
        annotations: &Annotations<'_>,
        flux_prune_label: Option<&str>,
    ) -> (Self, Vec<Warning>) {
        let mut warnings = Vec::new();
        let sync = SyncOptions::read(annotations, &mut warnings);
        let flux = |key| annotations.get(key).map(str::to_ascii_lowercase);
        let left_alone = flux(FLUX_RECONCILE).as_deref() == Some("disabled");

        let mut options = Self {
            wave: wave(annotations, &mut warnings),
            role: role(annotations, &mut warnings),
            apply: apply_mode(annotations, &sync, left_alone, &mut warnings),
            force: sync.force || flux(FLUX_FORCE).as_deref() == Some("enabled"),
            prune: sync.prune,
            delete: sync.delete,
            compare: CompareOptions::read(annotations, &mut warnings),
            skip_reconcile: annotations.flag(&SKIP_RECONCILE, &mut warnings),
            sync,
            ..Self::default()
        };
        if let Some((key, value)) = annotations.first(&REFRESH) {
            let expected = "nothing of that name, since what has changed is seen at once; \
                            `reeve.dev/reconcile-at` on the primary has it looked at now";
            warnings.push(Warning::new(key, value, expected));
        }
        if annotations.get(HELM_RESOURCE_POLICY) == Some("keep") {
            options.prune = Removal::Never;
            options.delete = Removal::Never;
        }
        let flux_prune = annotations.get(FLUX_PRUNE).or(flux_prune_label);
        if left_alone || flux_prune.is_some_and(|value| value.eq_ignore_ascii_case("disabled")) {
            options.prune = Removal::Never;
        }
        for (key, slot) in [
            (PRUNE_ANNOTATION, &mut options.prune),
            (DELETE, &mut options.delete),
        ] {
            match annotations.get(key).map(str::trim) {
                None => {}
                Some("allow") => *slot = Removal::Permitted,
                Some("confirm") => *slot = Removal::Confirm,
                Some("never") => *slot = Removal::Never,
                // Something was to be said about deleting this: better ask.
                Some(value) => {
                    *slot = (*slot).max_caution(Removal::Confirm);
                    let expected =
                        "`allow`, `confirm` or `never`; a person is asked before it is deleted";
                    warnings.push(Warning::new(key, value, expected));
                }
            }
        }
        if let Some((_, list)) = annotations.first(&DEPENDS_ON) {
            for dependency in Dependency::parse_list(list) {
                match dependency {
                    Ok(dependency) => options.depends_on.push(dependency),
                    Err(error) => options.unreadable_dependencies.push(error),
                }
            }
        }
        (options, warnings)
    }
}

impl Removal {
    fn max_caution(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::Confirm, _) | (_, Self::Confirm) => Self::Confirm,
            (Self::Unsaid, _) | (_, Self::Unsaid) => Self::Unsaid,
            (Self::Permitted, Self::Permitted) => Self::Permitted,
        }
    }
}

/// The first name whose value is a number; none is wave 0 (Argo CD).
fn wave(annotations: &Annotations<'_>, warnings: &mut Vec<Warning>) -> i64 {
    for key in WAVE {
        if let Some(value) = annotations.get(key) {
            match value.trim().parse() {
                Ok(wave) => return wave,
                Err(_) => {
                    let expected = "a whole number; it is ignored";
                    warnings.push(Warning::new(key, value, expected));
                }
            }
        }
    }
    0
}

fn role(annotations: &Annotations<'_>, warnings: &mut Vec<Warning>) -> Role {
    let own = annotations.first(&HOOK);
    let (key, list, parse): (_, _, fn(&str) -> Option<Phase>) = match own {
        Some((key, list)) => (key, list, Phase::from_argo),
        None => match annotations.get(HELM_HOOK) {
            Some(list) => (HELM_HOOK, list, Phase::from_helm),
            None => return Role::Resource,
        },
    };
    let words: Vec<&str> = words(list).collect();
    if words.is_empty() {
        let expected = "a phase such as `PreSync`; the object is applied as an ordinary one";
        warnings.push(Warning::new(key, list, expected));
        return Role::Resource;
    }
    if own.is_some() && words.contains(&"Skip") {
        return Role::Skipped;
    }
    // Helm's name for definitions, which are no hooks.
    if own.is_none() && words.iter().all(|word| *word == "crd-install") {
        return Role::Resource;
    }
    let mut phases = BTreeSet::new();
    for word in words {
        match parse(word) {
            Some(phase) => {
                phases.insert(phase);
            }
            None if own.is_none() && word == "crd-install" => {}
            None => {
                let expected = "a phase that exists here; the hook does not run in this one";
                warnings.push(Warning::new(key, word, expected));
            }
        }
    }
    if phases.is_empty() {
        return Role::Skipped;
    }
    let delete = delete_policies(annotations, warnings);
    Role::Hook(Hook { phases, delete })
}

fn delete_policies(
    annotations: &Annotations<'_>,
    warnings: &mut Vec<Warning>,
) -> BTreeSet<HookDeletePolicy> {
    let mut policies = BTreeSet::new();
    if let Some((key, list)) = annotations.first(&HOOK_DELETE_POLICY) {
        for word in words(list) {
            match HookDeletePolicy::parse(word) {
                Some(policy) => {
                    policies.insert(policy);
                }
                None => {
                    let expected =
                        "`BeforeHookCreation`, `HookSucceeded` or `HookFailed`; it is ignored";
                    warnings.push(Warning::new(key, word, expected));
                }
            }
        }
    }
    if policies.is_empty() {
        policies.insert(HookDeletePolicy::BeforeHookCreation);
    }
    policies
}

fn apply_mode(
    annotations: &Annotations<'_>,
    sync: &SyncOptions,
    left_alone: bool,
    warnings: &mut Vec<Warning>,
) -> ApplyMode {
    if let Some(value) = annotations.get(APPLY) {
        match value.trim() {
            "Apply" => return ApplyMode::Apply,
            "Contribute" => return ApplyMode::Contribute,
            "Merge" => return ApplyMode::Merge,
            "IfNotPresent" => return ApplyMode::IfNotPresent,
            "Replace" => return ApplyMode::Replace,
            "Ignore" => return ApplyMode::Ignore,
            _ => {
                let expected = "`Apply`, `Contribute`, `Merge`, `IfNotPresent`, `Replace` or \
                    `Ignore`; it is ignored";
                warnings.push(Warning::new(APPLY, value, expected));
            }
        }
    }
    if left_alone {
        return ApplyMode::Ignore;
    }
    if let Some(value) = annotations.get(FLUX_SSA) {
        match value.to_ascii_lowercase().as_str() {
            "override" => return ApplyMode::Apply,
            "merge" => return ApplyMode::Merge,
            "ifnotpresent" => return ApplyMode::IfNotPresent,
            "ignore" => return ApplyMode::Ignore,
            _ => {
                let expected = "`Override`, `Merge`, `IfNotPresent` or `Ignore`; it is ignored";
                warnings.push(Warning::new(FLUX_SSA, value, expected));
            }
        }
    }
    if sync.replace {
        ApplyMode::Replace
    } else {
        ApplyMode::Apply
    }
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests;
