//! Tables of what annotations say.

use super::*;
use HookDeletePolicy::{BeforeHookCreation, HookFailed, HookSucceeded};
use proptest::prelude::*;
use serde_json::json;

/// Reads annotations; the warnings by the value that they are about.
fn read(pairs: &[(&str, &str)]) -> (Options, Vec<String>) {
    let (options, warnings) = Options::of_live(&pairs.iter().copied().collect(), None);
    let values = warnings.iter().map(|warning| warning.value.clone());
    (options, values.collect())
}

#[test]
fn an_object_that_says_nothing_has_the_defaults() {
    let defaults = (Options::default(), Vec::new());
    let stamps = super::STAMPS.map(|stamp| (stamp, "-1"));
    for pairs in [&[][..], &stamps] {
        let annotations = pairs.iter().copied().collect();
        assert_eq!(Options::read(&annotations, None), defaults);
        // It is what they say, too.
        assert_eq!(Options::read_all(&annotations, None), defaults);
    }
}

#[test]
fn waves_come_from_the_first_number() {
    let (argo, helm) = ("argocd.argoproj.io/sync-wave", "helm.sh/hook-weight");
    let none: &[&str] = &[];
    for (pairs, wave, warned) in [
        (vec![], 0, none),
        (vec![(argo, "-15")], -15, none),
        (vec![(argo, "+3")], 3, none),
        (vec![(helm, "7")], 7, none),
        (vec![(helm, "7"), (argo, "2")], 2, none),
        (vec![("reeve.dev/wave", "1"), (argo, "2")], 1, none),
        (vec![(argo, "first")], 0, &["first"]),
        (vec![(argo, "first"), (helm, "7")], 7, &["first"]),
        (
            vec![(argo, "99999999999999999999")],
            0,
            &["99999999999999999999"],
        ),
        (vec![(argo, "")], 0, &[""]),
    ] {
        let (options, warnings) = read(&pairs);
        assert_eq!(options.wave, wave, "{pairs:?}");
        assert_eq!(warnings, warned, "{pairs:?}");
    }
}

#[test]
fn hooks_of_argo_and_helm_are_one_thing() {
    let (argo, helm) = ("argocd.argoproj.io/hook", "helm.sh/hook");
    let hook = |phases: &[Phase]| {
        Role::Hook(Hook {
            phases: phases.iter().copied().collect(),
            delete: [BeforeHookCreation].into(),
        })
    };
    for (pairs, role, warned) in [
        (vec![], Role::Resource, 0),
        (vec![(argo, "PreSync")], hook(&[Phase::PreSync]), 0),
        (
            vec![(argo, "PostSync, SyncFail")],
            hook(&[Phase::PostSync, Phase::SyncFail]),
            0,
        ),
        (vec![(argo, "Sync")], hook(&[Phase::Sync]), 0),
        (vec![(argo, "Skip")], Role::Skipped, 0),
        (vec![(argo, "PreSync,Skip")], Role::Skipped, 0),
        (vec![(argo, "presync")], Role::Skipped, 1),
        (vec![(argo, "PreSync,Later")], hook(&[Phase::PreSync]), 1),
        (vec![(argo, " ,")], Role::Resource, 1),
        (
            vec![(helm, "pre-install,pre-upgrade")],
            hook(&[Phase::PreSync]),
            0,
        ),
        (
            vec![(helm, "post-upgrade,post-delete,pre-delete")],
            hook(&[Phase::PostSync, Phase::PreDelete, Phase::PostDelete]),
            0,
        ),
        (vec![(helm, "crd-install")], Role::Resource, 0),
        (
            vec![(helm, "crd-install,pre-install")],
            hook(&[Phase::PreSync]),
            0,
        ),
        (vec![(helm, "test")], Role::Skipped, 1),
        (
            vec![(helm, "pre-rollback,post-install")],
            hook(&[Phase::PostSync]),
            1,
        ),
        (
            vec![(helm, "test"), (argo, "PostSync")],
            hook(&[Phase::PostSync]),
            0,
        ),
        (
            vec![("reeve.dev/hook", "PreSync"), (argo, "PostSync")],
            hook(&[Phase::PreSync]),
            0,
        ),
    ] {
        let (options, warnings) = read(&pairs);
        assert_eq!(
            (&options.role, warnings.len()),
            (&role, warned),
            "{pairs:?}"
        );
    }
}

#[test]
fn delete_policies_have_a_default() {
    for (key, value, expected) in [
        (
            "argocd.argoproj.io/hook-delete-policy",
            "HookSucceeded",
            vec![HookSucceeded],
        ),
        (
            "helm.sh/hook-delete-policy",
            "before-hook-creation,hook-failed",
            vec![BeforeHookCreation, HookFailed],
        ),
        (
            "reeve.dev/hook-delete-policy",
            "Never",
            vec![BeforeHookCreation],
        ),
    ] {
        let (options, _) = read(&[("helm.sh/hook", "pre-install"), (key, value)]);
        let Role::Hook(hook) = options.role else {
            panic!("{key} is no hook");
        };
        assert_eq!(hook.delete.into_iter().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn everybody_may_say_what_is_to_stay() {
    use Removal::*;
    let argo = "argocd.argoproj.io/sync-options";
    for (pairs, prune, delete) in [
        (vec![], Unsaid, Unsaid),
        (vec![(argo, "Prune=false")], Never, Unsaid),
        (
            vec![(argo, "Prune=confirm,Delete=confirm")],
            Confirm,
            Confirm,
        ),
        (vec![("helm.sh/resource-policy", "keep")], Never, Never),
        (vec![(FLUX_PRUNE, "Disabled")], Never, Unsaid),
        (vec![(FLUX_RECONCILE, "disabled")], Never, Unsaid),
        (vec![("reeve.dev/prune", "allow")], Permitted, Unsaid),
        (
            vec![("reeve.dev/prune", "allow"), (argo, "Prune=false")],
            Permitted,
            Unsaid,
        ),
        (vec![("reeve.dev/delete", "never")], Unsaid, Never),
        (vec![("reeve.dev/prune", "yes")], Confirm, Unsaid),
        (
            vec![("reeve.dev/prune", "yes"), (argo, "Prune=false")],
            Never,
            Unsaid,
        ),
    ] {
        let (options, _) = read(&pairs);
        assert_eq!(
            (options.prune, options.delete),
            (prune, delete),
            "{pairs:?}"
        );
    }
    let labelled = json!({"metadata": {"labels": {FLUX_PRUNE: "disabled"}}});
    assert_eq!(Options::of(&labelled).0.prune, Never);
}

#[test]
fn writing_has_its_modes() {
    use ApplyMode::*;
    let argo = "argocd.argoproj.io/sync-options";
    for (pairs, mode, force) in [
        (vec![], Apply, false),
        (
            vec![(argo, "Replace=true,ServerSideApply=true")],
            Replace,
            false,
        ),
        (vec![(argo, "Force=true,Replace=true")], Replace, true),
        (vec![(FLUX_SSA, "IfNotPresent")], IfNotPresent, false),
        (
            vec![(FLUX_SSA, "Merge"), (FLUX_FORCE, "Enabled")],
            Merge,
            true,
        ),
        (vec![(FLUX_SSA, "Ignore")], Ignore, false),
        (vec![(FLUX_RECONCILE, "disabled")], Ignore, false),
        (
            vec![(APPLY, "Contribute"), (FLUX_SSA, "Ignore")],
            Contribute,
            false,
        ),
        (vec![(APPLY, "contribute")], Apply, false),
    ] {
        let (options, _) = read(&pairs);
        assert_eq!((options.apply, options.force), (mode, force), "{pairs:?}");
    }
}

#[test]
fn the_rest_is_read_too() {
    let (options, warnings) = read(&[
        (
            "reeve.dev/depends-on",
            "Secret/s, nonsense,apps/namespaces/a/Deployment/b",
        ),
        ("argocd.argoproj.io/skip-reconcile", "true"),
    ]);
    let names: Vec<_> = options.depends_on.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["Secret/s", "apps/namespaces/a/Deployment/b"]);
    assert_eq!(
        options.unreadable_dependencies,
        [DependencyError("nonsense".into())]
    );
    assert!(options.skip_reconcile);
    assert_eq!(warnings, Vec::<String>::new());
    // What is only done elsewhere is told.
    let (options, warnings) = read(&[("argocd.argoproj.io/refresh", "hard")]);
    assert_eq!(
        (options, warnings),
        (Options::default(), vec!["hard".to_owned()])
    );
}

proptest! {
    #[test]
    fn any_text_is_read(
        pairs in prop::collection::btree_map(
            prop::sample::select([&WAVE[..], &HOOK, &HOOK_DELETE_POLICY, &DEPENDS_ON, &REFRESH,
                &[HELM_HOOK, APPLY, DELETE, PRUNE_ANNOTATION, FLUX_SSA,
                  "reeve.dev/sync-options", "reeve.dev/compare-options"]].concat()),
            "[A-Za-z=,/ +0-9-]{0,20}|.{0,8}",
            0..6,
        )
    ) {
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let first = read(&pairs);
        prop_assert_eq!(&first, &read(&pairs));
        if let Role::Hook(hook) = first.0.role {
            prop_assert!(!hook.phases.is_empty() && !hook.delete.is_empty());
        }
    }
}
