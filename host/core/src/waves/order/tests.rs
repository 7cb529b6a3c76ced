//! Tables and properties of orders.

use super::*;
use crate::kind::GroupVersionKind;
use crate::waves::hook::Phase;
use proptest::prelude::*;
use serde_json::json;

/// An object by `kind/name` or `group:kind/name`, in namespace `ns` unless its
/// kind is one that is in none, with annotations.
fn member(text: &str, annotations: &[(&str, &str)]) -> Member {
    let (group, rest) = text.split_once(':').unwrap_or(("", text));
    let (kind, name) = rest.split_once('/').unwrap();
    let clustered = matches!(
        kind,
        "Namespace" | "CustomResourceDefinition" | "ClusterRole"
    ) || kind.ends_with("WebhookConfiguration");
    let kind = GroupVersionKind::new(group, "v1", kind);
    let reference = ObjectReference::new(kind, (!clustered).then(|| "ns".into()), name);
    let annotations: serde_json::Map<_, _> = annotations
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    let body = json!({"metadata": {"annotations": annotations},
        "spec": {"group": "example.com", "names": {"kind": "Widget"}}});
    Member::of(reference, &body).0
}

const DEFINITION: &str = "apiextensions.k8s.io:CustomResourceDefinition/widgets";

fn wave(wave: &str) -> [(&str, &str); 1] {
    [("reeve.dev/wave", wave)]
}

/// `PreSync 0.0: a,b c`: phase, wave and level, and the groups.
fn shown(steps: &[Step]) -> Vec<String> {
    steps
        .iter()
        .map(|step| {
            let wave = step
                .wave
                .map_or_else(|| "-".to_owned(), |wave| wave.to_string());
            let groups: Vec<_> = step
                .groups
                .iter()
                .map(|group| {
                    let names: Vec<_> = group.iter().map(|one| one.name.as_str()).collect();
                    names.join(",")
                })
                .collect();
            format!("{} {wave}.{}: {}", step.phase, step.level, groups.join(" "))
        })
        .collect()
}

fn notices(sequence: &Sequence) -> Vec<String> {
    sequence.notices.iter().map(ToString::to_string).collect()
}

#[test]
fn phases_then_waves_then_kinds_then_names() {
    let members = [
        member("apps:Deployment/web", &[]),
        member(
            "admissionregistration.k8s.io:MutatingWebhookConfiguration/hook",
            &[],
        ),
        member("ConfigMap/b", &[]),
        member("ConfigMap/a", &[]),
        member("example.com:Gadget/x", &[]),
        member("Secret/early", &wave("-5")),
        member("Secret/late", &wave("3")),
        member(
            "batch:Job/migrate",
            &[("argocd.argoproj.io/hook", "PreSync")],
        ),
        member(
            "batch:Job/check",
            &[
                ("argocd.argoproj.io/hook", "PostSync,SyncFail"),
                ("reeve.dev/wave", "2"),
            ],
        ),
        member(
            "batch:Job/undo",
            &[
                ("helm.sh/hook", "pre-delete"),
                ("helm.sh/hook-weight", "-1"),
            ],
        ),
        member("batch:Job/bye", &[("helm.sh/hook", "post-delete")]),
        member("Pod/test", &[("helm.sh/hook", "test")]),
    ];
    let sequence = order(&members, Mode::Waves).unwrap();
    assert_eq!(
        shown(&sequence.steps),
        [
            "PreSync 0.0: migrate",
            "Sync -5.0: early",
            "Sync 0.0: a,b web x hook",
            "Sync 3.0: late",
            "PostSync 2.0: check",
        ]
    );
    assert_eq!(shown(&sequence.on_failure), ["SyncFail 2.0: check"]);
    assert_eq!(shown(&sequence.before_deletion), ["PreDelete -1.0: undo"]);
    assert_eq!(shown(&sequence.after_deletion), ["PostDelete 0.0: bye"]);
    let skipped: Vec<_> = sequence.skipped.iter().map(ToString::to_string).collect();
    assert_eq!(skipped, ["Pod ns/test"]);
    assert_eq!(notices(&sequence), Vec::<String>::new());
}

#[test]
fn namespaces_and_definitions_go_where_they_are_needed() {
    let members = [
        member("Namespace/ns", &wave("4")),
        member(DEFINITION, &wave("4")),
        member(
            "batch:Job/migrate",
            &[("reeve.dev/hook", "PreSync"), ("reeve.dev/wave", "-1")],
        ),
        member("example.com:Widget/w", &wave("2")),
        member("ConfigMap/c", &wave("2")),
    ];
    let sequence = order(&members, Mode::Waves).unwrap();
    assert_eq!(
        shown(&sequence.steps),
        [
            "PreSync -1.0: ns migrate",
            // Instances wait until the definition is established; others do not.
            "Sync 2.0: c widgets",
            "Sync 2.1: w",
        ]
    );
    assert_eq!(
        notices(&sequence),
        [
            "Namespace ns is applied in PreSync wave -1 instead of Sync wave 4, where it is needed \
             first",
            "CustomResourceDefinition widgets is applied in Sync wave 2 instead of Sync wave 4, \
             where it is needed first",
        ]
    );
    // Where they are early enough they stay.
    let members = [
        member("Namespace/ns", &wave("-9")),
        member("Namespace/other", &wave("4")),
        member("ConfigMap/c", &[]),
    ];
    let sequence = order(&members, Mode::Waves).unwrap();
    assert_eq!(
        shown(&sequence.steps),
        ["Sync -9.0: ns", "Sync 0.0: c", "Sync 4.0: other"]
    );
}

#[test]
fn dependencies_refine_waves() {
    let depends = |on: &'static str| ("reeve.dev/depends-on", on);
    let members = [
        member(
            "ConfigMap/a",
            &[depends("apps/namespaces/ns/Deployment/web")],
        ),
        member("apps:Deployment/web", &[depends("Secret/s")]),
        member("Secret/s", &[]),
        member("Secret/t", &[]),
        member(
            "Service/late",
            &[("reeve.dev/wave", "1"), depends("ConfigMap/a")],
        ),
    ];
    let sequence = order(&members, Mode::Waves).unwrap();
    let expected = [
        "Sync 0.0: s,t",
        "Sync 0.1: web",
        "Sync 0.2: a",
        "Sync 1.0: late",
    ];
    assert_eq!(shown(&sequence.steps), expected);
    assert_eq!(
        notices(&sequence),
        [
            "ConfigMap ns/a depends on Deployment ns/web, and both are in Sync wave 0: the wave is \
             divided",
            "Deployment ns/web depends on Secret ns/s, and both are in Sync wave 0: the wave is \
             divided",
        ]
    );
    let sequence = order(&members, Mode::WavesOnly).unwrap();
    assert_eq!(
        shown(&sequence.steps),
        ["Sync 0.0: s,t a web", "Sync 1.0: late"]
    );
    assert!(notices(&sequence)[0].ends_with("waves do not order them, so they go together"));
    let sequence = order(&members, Mode::Dependencies).unwrap();
    assert_eq!(
        shown(&sequence.steps),
        [
            "Sync -.0: s,t",
            "Sync -.1: web",
            "Sync -.2: a",
            "Sync -.3: late"
        ]
    );
    assert_eq!(notices(&sequence), Vec::<String>::new());
}

#[test]
fn what_cannot_be_ordered_says_why() {
    let depends = |on: &'static str| ("reeve.dev/depends-on", on);
    let cases: [(Vec<Member>, &str); 7] = [
        (
            vec![member("ConfigMap/a", &[depends("ConfigMap/b")])],
            "ConfigMap ns/a depends on ConfigMap/b, which this unit does not apply; name one of \
             its objects, or remove the dependency",
        ),
        (
            vec![
                member("ConfigMap/a", &[depends("Pod/test")]),
                member("Pod/test", &[("helm.sh/hook", "test")]),
            ],
            "ConfigMap ns/a depends on Pod/test, which this unit does not apply; name one of its \
             objects, or remove the dependency",
        ),
        (
            vec![member("ConfigMap/a", &[depends("everything")])],
            "ConfigMap ns/a: annotation reeve.dev/depends-on: `everything` names no object: \
             expected `kind/name`, `group/kind/name` or `group/namespaces/namespace/kind/name`",
        ),
        (
            vec![member("ConfigMap/a", &[depends("ConfigMap/a")])],
            "objects wait for each other: ConfigMap ns/a waits for ConfigMap ns/a; remove one of \
             these dependencies",
        ),
        (
            vec![
                member(
                    "ConfigMap/a",
                    &[depends("ConfigMap/c"), ("reeve.dev/wave", "1")],
                ),
                member("ConfigMap/b", &[depends("ConfigMap/a")]),
                member(
                    "ConfigMap/c",
                    &[depends("ConfigMap/b"), ("reeve.dev/wave", "7")],
                ),
            ],
            "objects wait for each other: ConfigMap ns/a waits for ConfigMap ns/c waits for \
             ConfigMap ns/b waits for ConfigMap ns/a; remove one of these dependencies",
        ),
        (
            vec![
                member("Namespace/ns", &[depends("/namespaces/ns/ConfigMap/a")]),
                member("ConfigMap/a", &[]),
            ],
            "objects wait for each other: Namespace ns waits for ConfigMap ns/a waits for \
             Namespace ns; remove one of these dependencies",
        ),
        (
            vec![
                member("ConfigMap/a", &[depends("ConfigMap/b")]),
                member("ConfigMap/b", &wave("2")),
            ],
            "ConfigMap ns/a (Sync wave 0) depends on ConfigMap ns/b (Sync wave 2), which is \
             applied later; move one of them, or remove the dependency",
        ),
    ];
    for (members, expected) in cases {
        let error = order(&members, Mode::Waves).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_contradiction_is_only_told_where_waves_alone_count() {
    let members = [
        member("ConfigMap/a", &[("reeve.dev/depends-on", "ConfigMap/b")]),
        member("ConfigMap/b", &wave("2")),
    ];
    let sequence = order(&members, Mode::WavesOnly).unwrap();
    assert_eq!(shown(&sequence.steps), ["Sync 0.0: a", "Sync 2.0: b"]);
    assert_eq!(
        notices(&sequence),
        ["ConfigMap ns/a depends on ConfigMap ns/b, whose wave is later: it is applied before it"]
    );
    let sequence = order(&members, Mode::Dependencies).unwrap();
    assert_eq!(shown(&sequence.steps), ["Sync -.0: b", "Sync -.1: a"]);
}

#[test]
fn hooks_depend_within_their_own_phases() {
    let members = [
        member(
            "batch:Job/cleanup",
            &[
                ("reeve.dev/hook", "PostSync,PostDelete"),
                ("reeve.dev/depends-on", "Secret/s"),
            ],
        ),
        member("Secret/s", &[]),
    ];
    let sequence = order(&members, Mode::Waves).unwrap();
    assert_eq!(
        shown(&sequence.steps),
        ["Sync 0.0: s", "PostSync 0.0: cleanup"]
    );
    assert_eq!(shown(&sequence.after_deletion), ["PostDelete 0.0: cleanup"]);
    assert_eq!(
        notices(&sequence),
        [
            "Job ns/cleanup depends on Secret ns/s, which is of another phase: it does not wait for it"
        ]
    );
    let backwards = [
        member("Secret/s", &[("reeve.dev/depends-on", "Job/after")]),
        member("batch:Job/after", &[("reeve.dev/hook", "PostSync")]),
    ];
    for mode in [Mode::Waves, Mode::Dependencies] {
        let error = order(&backwards, mode).unwrap_err();
        assert!(matches!(error, OrderError::Contradiction { .. }), "{error}");
    }
}

#[test]
fn what_may_start_follows_from_what_is_done() {
    let depends = |on: &'static str| ("reeve.dev/depends-on", on);
    let members = [
        member("ConfigMap/a", &[]),
        member("ConfigMap/b", &[depends("ConfigMap/a")]),
        member("ConfigMap/c", &wave("1")),
        member("batch:Job/d", &[("reeve.dev/hook", "PostSync")]),
    ];
    for (mode, done, expected, held) in [
        (Mode::Waves, "", "a", "bcd"),
        (Mode::Waves, "a", "b", "bcd"),
        (Mode::Waves, "ab", "c", "bcd"),
        (Mode::Waves, "abc", "d", "bcd"),
        (Mode::Waves, "abcd", "", "bcd"),
        (Mode::WavesOnly, "", "ab", "cd"),
        (Mode::Dependencies, "", "ac", "bd"),
        (Mode::Dependencies, "c", "a", "bd"),
        (Mode::Dependencies, "a", "cb", "bd"),
        (Mode::Dependencies, "abc", "d", "bd"),
    ] {
        let sequence = order(&members, mode).unwrap();
        let joined = |found: Vec<&ObjectReference>| -> String {
            found.iter().map(|one| one.name.as_str()).collect()
        };
        let open = sequence.startable(|_, one| done.contains(&one.name));
        let startable: Vec<_> = open.into_iter().map(|open| open.object).collect();
        assert_eq!(joined(startable), expected, "{mode:?} after {done}");
        let a = &members[0].reference;
        assert_eq!(joined(sequence.held_by(a)), held, "{mode:?}");
    }
}

/// Objects with waves, dependencies, hooks, a namespace and a definition.
fn units() -> impl Strategy<Value = Vec<Member>> {
    let one = (
        -2_i64..3,
        prop::option::weighted(0.3, 0_usize..9),
        0_usize..8,
    );
    prop::collection::vec(one, 1..9).prop_map(|ones| {
        let count = ones.len();
        let text = |index: usize| match index {
            0 => "Namespace/ns".to_owned(),
            1 => DEFINITION.to_owned(),
            2 => "example.com:Widget/w2".to_owned(),
            3 | 4 => format!("apps:Deployment/w{index}"),
            _ => format!("ConfigMap/w{index}"),
        };
        let name = |index: usize| match index {
            0 => "/Namespace/ns".to_owned(),
            1 => "CustomResourceDefinition/widgets".to_owned(),
            2 => "Widget/w2".to_owned(),
            3 | 4 => format!("Deployment/w{index}"),
            _ => format!("ConfigMap/w{index}"),
        };
        ones.into_iter()
            .enumerate()
            .map(|(index, (wave, on, hook))| {
                let wave = wave.to_string();
                let on = on.map(|on| name(on % count));
                let mut annotations = vec![("reeve.dev/wave", wave.as_str())];
                annotations.extend(on.as_deref().map(|on| ("reeve.dev/depends-on", on)));
                match hook {
                    0 => annotations.push(("reeve.dev/hook", "PreSync,PostSync")),
                    1 => annotations.push(("reeve.dev/hook", "PostSync,SyncFail")),
                    2 => annotations.push(("reeve.dev/hook", "Skip")),
                    _ => {}
                }
                member(&text(index), &annotations)
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn the_order_of_the_input_makes_no_difference(
        members in units(), seed in any::<u64>(), mode in 0..3,
    ) {
        let mode = [Mode::Waves, Mode::WavesOnly, Mode::Dependencies][mode as usize];
        let mut shuffled = members.clone();
        // Fisher and Yates, with numbers from the seed.
        let mut state = seed;
        for index in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(index, (state >> 33) as usize % (index + 1));
        }
        prop_assert_eq!(order(&members, mode), order(&shuffled, mode));
    }

    #[test]
    fn waves_ascend_and_edges_are_respected(members in units(), mode in 0..3) {
        let mode = [Mode::Waves, Mode::WavesOnly, Mode::Dependencies][mode as usize];
        let Ok(sequence) = order(&members, mode) else {
            return Ok(());
        };
        let places: Vec<_> = sequence.steps.iter().map(|s| (s.phase, s.wave, s.level)).collect();
        prop_assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");

        // Everything that is not skipped is in as many phases as it says.
        let all = [&sequence.steps, &sequence.on_failure, &sequence.before_deletion,
            &sequence.after_deletion];
        let placed = all.iter().flat_map(|steps| steps.iter()).flat_map(Step::objects).count();
        let wanted: usize = members.iter().map(|member| match &member.options.role {
            crate::waves::Role::Resource => 1,
            crate::waves::Role::Hook(hook) => hook.phases.len(),
            crate::waves::Role::Skipped => 0,
        }).sum();
        prop_assert_eq!(placed, wanted);

        let at = |reference: &ObjectReference| {
            let holds = |step: &Step| step.objects().any(|one| one == reference);
            let step = sequence.steps.iter().position(holds);
            let flat = sequence.steps.iter().flat_map(Step::objects);
            step.zip(flat.into_iter().position(|one| one == reference))
        };
        for member in &members {
            let Some((step, place)) = at(&member.reference) else { continue };
            for other in &members {
                let named = member.options.depends_on.iter()
                    .any(|on| on.names(&other.reference, &member.reference));
                if let (true, Some((before, _))) = (named, at(&other.reference)) {
                    prop_assert!(mode == Mode::WavesOnly || before < step,
                        "{} waits for {}", member.reference, other.reference);
                }
                if other.reference.kind.kind == "Namespace" && member.reference.namespace.is_some()
                    && let Some((_, namespace)) = at(&other.reference)
                {
                    prop_assert!(namespace < place, "{} is before its namespace", member.reference);
                }
                if other.defines.is_some() && member.reference.kind.kind == "Widget"
                    && let Some((definition, _)) = at(&other.reference)
                {
                    prop_assert!(definition < step, "{} is before its kind", member.reference);
                }
            }
        }
        prop_assert!(sequence.startable(|_, _| true).is_empty());
    }

    #[test]
    fn starting_what_may_start_ends_with_everything(members in units(), mode in 0..3) {
        let mode = [Mode::Waves, Mode::WavesOnly, Mode::Dependencies][mode as usize];
        let Ok(sequence) = order(&members, mode) else {
            return Ok(());
        };
        let mut done = BTreeSet::new();
        loop {
            let next: Vec<_> = sequence.startable(|_, one| done.contains(one))
                .into_iter().map(|open| open.object.clone()).collect();
            if next.is_empty() {
                break;
            }
            done.extend(next);
        }
        let all: BTreeSet<_> = sequence.steps.iter().flat_map(Step::objects).cloned().collect();
        prop_assert_eq!(done, all);
        let phases = sequence.steps.iter().map(|step| step.phase);
        prop_assert!(phases.into_iter().all(Phase::in_sync));
    }
}
