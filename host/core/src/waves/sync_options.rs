//! `sync-options` and `compare-options`, as Argo CD defines them.

use super::options::{Options, Removal};
use crate::annotations::{Annotations, Warning};
use crate::health::is_static;
use crate::kind::GroupVersionKind;
use serde_json::Value;
use std::fmt;

const SYNC: [&str; 2] = ["argocd.argoproj.io/sync-options", "reeve.dev/sync-options"];
const COMPARE: [&str; 2] = [
    "argocd.argoproj.io/compare-options",
    "reeve.dev/compare-options",
];

/// What the garbage collector does with the dependents of a deleted object
/// (`propagationPolicy` of the Kubernetes API).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Propagation {
    /// They go first, and it stays until they are gone: later waves can wait for
    /// that. The default.
    #[default]
    Foreground,
    /// It goes, they follow.
    Background,
    /// They stay.
    Orphan,
}

impl Propagation {
    /// That with which an object is deleted when its unit no longer wants it. To wait
    /// for dependents of what never has any would only take longer.
    pub fn of(object: &Value) -> Self {
        let propagation = Options::of(object).0.sync.propagation;
        let text = |key: &str| object[key].as_str();
        let kind = text("apiVersion").zip(text("kind"));
        let kind = kind.and_then(|(version, kind)| GroupVersionKind::from_fields(version, kind));
        match propagation {
            Self::Foreground if kind.is_some_and(|kind| is_static(&kind)) => Self::Background,
            said => said,
        }
    }
}

/// As the Kubernetes API writes it.
impl fmt::Display for Propagation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What `sync-options` say of one object. None stands for what is done anyway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncOptions {
    /// `Prune`: what to do when it is no longer desired.
    pub prune: Removal,
    /// `Delete`: what to do when its unit ends.
    pub delete: Removal,
    /// `PruneLast`: prune it after everything else is healthy.
    pub prune_last: bool,
    /// `PrunePropagationPolicy`.
    pub propagation: Propagation,
    /// `Replace`: replace it instead of applying; beats `ServerSideApply`.
    pub replace: bool,
    /// `Force`: delete and create it again.
    pub force: bool,
    /// `ServerSideApply`; here every apply is one.
    pub server_side_apply: Option<bool>,
    /// `ClientSideApplyMigration`: take over what kubectl applied from the client.
    pub client_side_apply_migration: Option<bool>,
    /// `CreateNamespace`.
    pub create_namespace: bool,
    /// `ApplyOutOfSyncOnly`: apply only what has changed; here nothing else is.
    pub apply_out_of_sync_only: bool,
    /// `RespectIgnoreDifferences`: ignored paths are left out when applying.
    pub respect_ignore_differences: bool,
    /// `FailOnSharedResource`: fail if another unit owns it.
    pub fail_on_shared_resource: bool,
    /// `Validate`: false leaves out the validation of fields.
    pub validate: Option<bool>,
    /// `SkipDryRun`, which is ours: it is not asked beforehand whether it would be
    /// refused.
    pub skip_dry_run: bool,
    /// `SkipDryRunOnMissingResource`: its kind may not be served yet. Nothing is asked
    /// beforehand of such kinds.
    pub skip_dry_run_on_missing_resource: bool,
}

impl SyncOptions {
    /// Those of an object. Where both annotations are there, ours is read last
    /// and wins option by option.
    pub(super) fn read(annotations: &Annotations<'_>, warnings: &mut Vec<Warning>) -> Self {
        let mut options = Self::default();
        for (annotation, entry) in entries(annotations, &SYNC) {
            let known = match entry.split_once('=') {
                Some((name, value)) => options.set(name.trim(), value.trim()),
                None => false,
            };
            if !known {
                let expected = "a sync option such as `Prune=false`; it is ignored";
                warnings.push(Warning::new(annotation, entry, expected));
            }
            if known && entry.replace(' ', "") == "ServerSideApply=false" {
                let expected =
                    "`true` or nothing: every apply is made by the API server; it is ignored";
                warnings.push(Warning::new(annotation, entry, expected));
            }
        }
        options
    }

    /// Whether the option is known and has such a value.
    fn set(&mut self, name: &str, value: &str) -> bool {
        if let "Prune" | "Delete" = name {
            let removal = match value {
                // Argo CD's default, not a permission to delete what is precious.
                "true" => Removal::Unsaid,
                "false" => Removal::Never,
                "confirm" => Removal::Confirm,
                _ => return false,
            };
            match name {
                "Prune" => self.prune = removal,
                _ => self.delete = removal,
            }
            return true;
        }
        if name == "PrunePropagationPolicy" {
            self.propagation = match value {
                "foreground" => Propagation::Foreground,
                "background" => Propagation::Background,
                "orphan" => Propagation::Orphan,
                _ => return false,
            };
            return true;
        }
        let on = match value {
            "true" => true,
            "false" => false,
            _ => return false,
        };
        match name {
            "PruneLast" => self.prune_last = on,
            "Replace" => self.replace = on,
            "Force" => self.force = on,
            "ServerSideApply" => self.server_side_apply = Some(on),
            "ClientSideApplyMigration" => self.client_side_apply_migration = Some(on),
            "CreateNamespace" => self.create_namespace = on,
            "ApplyOutOfSyncOnly" => self.apply_out_of_sync_only = on,
            "RespectIgnoreDifferences" => self.respect_ignore_differences = on,
            "FailOnSharedResource" => self.fail_on_shared_resource = on,
            "Validate" => self.validate = Some(on),
            "SkipDryRun" => self.skip_dry_run = on,
            "SkipDryRunOnMissingResource" => self.skip_dry_run_on_missing_resource = on,
            _ => return false,
        }
        true
    }
}

/// What `compare-options` say of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompareOptions {
    /// `ServerSideDiff`: compare with a dry run; here drift always is.
    pub server_side_diff: Option<bool>,
    /// `IncludeMutationWebhook`: with what webhooks make of it.
    pub include_mutation_webhook: Option<bool>,
}

impl CompareOptions {
    pub(super) fn read(annotations: &Annotations<'_>, warnings: &mut Vec<Warning>) -> Self {
        let mut options = Self::default();
        for (annotation, entry) in entries(annotations, &COMPARE) {
            match entry {
                "IgnoreExtraneous" => {
                    let expected = "nothing of that name: what is not returned any more is \
                                    deleted; `Prune=false` keeps it";
                    warnings.push(Warning::new(annotation, entry, expected));
                }
                "ServerSideDiff=true" => options.server_side_diff = Some(true),
                "ServerSideDiff=false" => options.server_side_diff = Some(false),
                "IncludeMutationWebhook=true" => options.include_mutation_webhook = Some(true),
                "IncludeMutationWebhook=false" => options.include_mutation_webhook = Some(false),
                _ => {
                    let expected = "a compare option such as `ServerSideDiff=true`; it is ignored";
                    warnings.push(Warning::new(annotation, entry, expected));
                }
            }
        }
        options
    }
}

/// The entries of comma lists, trimmed, without the empty ones, each with the
/// annotation that it is from.
fn entries<'a>(
    annotations: &Annotations<'a>,
    keys: &'static [&'static str],
) -> impl Iterator<Item = (&'static str, &'a str)> {
    let lists: Vec<_> = keys
        .iter()
        .filter_map(|key| Some((*key, annotations.get(key)?)))
        .collect();
    lists.into_iter().flat_map(|(key, list)| {
        list.split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(move |entry| (key, entry))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> (SyncOptions, CompareOptions, Vec<String>) {
        let annotations: Annotations<'_> = pairs.iter().copied().collect();
        let mut warnings = Vec::new();
        let sync = SyncOptions::read(&annotations, &mut warnings);
        let compare = CompareOptions::read(&annotations, &mut warnings);
        let warnings = warnings.iter().map(|warning| warning.value.clone());
        (sync, compare, warnings.collect())
    }

    #[test]
    fn every_option_is_read() {
        let all = "Prune=confirm, Delete=false,PruneLast=true,PrunePropagationPolicy=orphan,\
            Replace=true,Force=true,ServerSideApply=true,ClientSideApplyMigration=false,\
            CreateNamespace=true,ApplyOutOfSyncOnly=true,RespectIgnoreDifferences=true,\
            FailOnSharedResource=true,Validate=false,SkipDryRunOnMissingResource=true,\
            SkipDryRun=true";
        let (sync, _, warnings) = read(&[(SYNC[0], all)]);
        let expected = SyncOptions {
            prune: Removal::Confirm,
            delete: Removal::Never,
            prune_last: true,
            propagation: Propagation::Orphan,
            replace: true,
            force: true,
            server_side_apply: Some(true),
            client_side_apply_migration: Some(false),
            create_namespace: true,
            apply_out_of_sync_only: true,
            respect_ignore_differences: true,
            fail_on_shared_resource: true,
            validate: Some(false),
            skip_dry_run: true,
            skip_dry_run_on_missing_resource: true,
        };
        assert_eq!((sync, warnings), (expected, vec![]));
        let list = "ServerSideDiff=true,IncludeMutationWebhook=false";
        let (_, compare, warnings) = read(&[(COMPARE[0], list)]);
        let expected = CompareOptions {
            server_side_diff: Some(true),
            include_mutation_webhook: Some(false),
        };
        assert_eq!((compare, warnings), (expected, vec![]));
    }

    #[test]
    fn what_has_no_effect_here_is_told() {
        let (sync, _, warnings) = read(&[
            (SYNC[0], "ServerSideApply=false"),
            (COMPARE[0], "IgnoreExtraneous"),
        ]);
        assert_eq!(sync.server_side_apply, Some(false));
        assert_eq!(warnings, ["ServerSideApply=false", "IgnoreExtraneous"]);
    }

    #[test]
    fn dependents_go_first_unless_something_else_is_said() {
        for (version, kind, options, expected) in [
            ("apps/v1", "Deployment", "", Propagation::Foreground),
            ("example.com/v1", "Widget", "", Propagation::Foreground),
            ("v1", "ConfigMap", "", Propagation::Background),
            (
                "v1",
                "ConfigMap",
                "PrunePropagationPolicy=orphan",
                Propagation::Orphan,
            ),
            (
                "apps/v1",
                "Deployment",
                "PrunePropagationPolicy=background",
                Propagation::Background,
            ),
            (
                "apps/v1",
                "Deployment",
                "PrunePropagationPolicy=never",
                Propagation::Foreground,
            ),
        ] {
            let object = serde_json::json!({"apiVersion": version, "kind": kind,
                "metadata": {"name": "a", "annotations": {SYNC[1]: options}}});
            assert_eq!(Propagation::of(&object), expected, "{object}");
        }
    }

    #[test]
    fn what_is_not_understood_is_told_and_changes_nothing() {
        let odd = "Prune=perhaps,Prune,Frobnicate=true,prune=false,PruneLast=1,,\
            PrunePropagationPolicy=Orphan";
        let (sync, compare, warnings) = read(&[(SYNC[0], odd), (COMPARE[0], "ServerSideDiff")]);
        assert_eq!(sync, SyncOptions::default());
        assert_eq!(compare, CompareOptions::default());
        let expected = [
            "Prune=perhaps",
            "Prune",
            "Frobnicate=true",
            "prune=false",
            "PruneLast=1",
            "PrunePropagationPolicy=Orphan",
            "ServerSideDiff",
        ];
        assert_eq!(warnings, expected);
    }

    #[test]
    fn ours_wins_option_by_option() {
        let (sync, _, _) = read(&[
            (SYNC[0], "Prune=false,Replace=true"),
            (SYNC[1], "Replace=false"),
        ]);
        assert_eq!((sync.prune, sync.replace), (Removal::Never, false));
        // `Prune=true` takes a refusal back; it permits nothing by itself.
        let (sync, _, _) = read(&[(SYNC[0], "Prune=false"), (SYNC[1], "Prune=true")]);
        assert_eq!(sync.prune, Removal::Unsaid);
    }
}
