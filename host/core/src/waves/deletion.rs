//! The order in which objects are deleted: the reverse of that in which they are
//! applied.
//!
//! Flux ignores dependencies when it deletes, and leaves finalizers without the
//! controllers that would remove them (kustomize-controller issue 301,
//! helm-controller issue 321, flux2 issues 1744 and 4340). Here what depends goes
//! first, and each step is gone before the next begins. Unlike applying, deleting
//! always has an order: what is left of a unit may say things that no longer
//! agree, and must not be stuck because of it.

use super::graph::{Edge, levels_at_any_cost};
use super::hook::Phase;
use super::options::Role;
use super::order::{named, sorted};
use super::slots::{Member, Occurrence, Step, enabling, pull_forward, steps};
use crate::kind::ObjectReference;

/// The order in which objects are deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    /// The steps, each to be gone before the next begins.
    pub steps: Vec<Step>,
    /// What goes after everything else is healthy (`PruneLast`).
    pub last: Vec<Step>,
    /// Dependencies that were not respected: what depends, and on what. They
    /// contradict waves, or each other.
    pub ignored: Vec<(ObjectReference, ObjectReference)>,
}

/// Orders the deletion of objects.
///
/// Each is in the phase and wave in which it was applied; later ones go first,
/// and in one wave what depends goes before what it depends on, kinds in reverse.
/// The result does not depend on the order in which they are given.
pub fn deletion(members: &[Member]) -> Deletion {
    let members = sorted(members);
    let mut all: Vec<Occurrence> = members
        .iter()
        .enumerate()
        .map(|(member, of)| Occurrence {
            member,
            phase: phase(of),
            wave: of.options.wave,
        })
        .collect();
    let mut edges = enabling(&members, &all);
    pull_forward(&mut all, &edges);
    let mut ignored = Vec::new();
    let mut ignore = |edge: &Edge| {
        let [object, dependency] =
            [edge.after, edge.before].map(|index| members[index].reference.clone());
        ignored.push((object, dependency));
    };
    for (after, member) in members.iter().enumerate() {
        for dependency in &member.options.depends_on {
            // What is gone already needs no order.
            for before in named(&members, after, dependency) {
                let edge = Edge {
                    before,
                    after,
                    steps: 1,
                };
                if all[before].slot() > all[after].slot() {
                    ignore(&edge);
                } else {
                    edges.push(edge);
                }
            }
        }
    }
    edges.retain(|edge| all[edge.before].slot() == all[edge.after].slot());
    let (levels, given_up) = levels_at_any_cost(all.len(), &edges);
    given_up.iter().for_each(&mut ignore);
    let placed = |last: bool| {
        let chosen = all
            .iter()
            .zip(&levels)
            .filter(|(one, _)| members[one.member].options.sync.prune_last == last);
        chosen
            .map(|(one, level)| (*one, Some(one.wave), *level))
            .collect::<Vec<_>>()
    };
    let (first, last) = (placed(false), placed(true));
    Deletion {
        steps: steps(&members, first, true),
        last: steps(&members, last, true),
        ignored,
    }
}

/// The first phase in which something is applied; what is not applied in a sync
/// goes with its ordinary objects.
fn phase(member: &Member) -> Phase {
    match &member.options.role {
        Role::Hook(hook) => hook
            .phases
            .first()
            .copied()
            .filter(|phase| phase.in_sync())
            .unwrap_or(Phase::Sync),
        Role::Resource | Role::Skipped => Phase::Sync,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::GroupVersionKind;
    use proptest::prelude::*;
    use serde_json::json;

    fn member(
        kind: (&str, &str),
        namespace: Option<&str>,
        name: &str,
        more: &[(&str, &str)],
    ) -> Member {
        let kind = GroupVersionKind::new(kind.0, "v1", kind.1);
        let reference = ObjectReference::new(kind, namespace.map(Into::into), name);
        let annotations: serde_json::Map<_, _> = more
            .iter()
            .map(|(k, v)| ((*k).to_owned(), json!(v)))
            .collect();
        let body = json!({"metadata": {"annotations": annotations},
            "spec": {"group": "example.com", "names": {"kind": "Widget"}}});
        Member::of(reference, &body).0
    }

    fn names(steps: &[Step]) -> Vec<String> {
        let text = |step: &Step| {
            let groups: Vec<_> = step
                .groups
                .iter()
                .map(|group| {
                    group
                        .iter()
                        .map(|one| one.name.as_str())
                        .collect::<Vec<_>>()
                        .join(",")
                })
                .collect();
            groups.join(" ")
        };
        steps.iter().map(text).collect()
    }

    const NAMESPACE: (&str, &str) = ("", "Namespace");
    const CONFIG: (&str, &str) = ("", "ConfigMap");
    const DEPLOYMENT: (&str, &str) = ("apps", "Deployment");
    const DEFINITION: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");
    const WIDGET: (&str, &str) = ("example.com", "Widget");

    #[test]
    fn it_is_the_reverse_of_applying() {
        let wave = |wave: &'static str| [("reeve.dev/wave", wave)];
        let members = [
            member(NAMESPACE, None, "ns", &wave("3")),
            member(CONFIG, Some("ns"), "config", &wave("-1")),
            member(DEPLOYMENT, Some("ns"), "web", &[]),
            member(CONFIG, Some("ns"), "a", &[]),
            member(
                CONFIG,
                Some("ns"),
                "b",
                &[("reeve.dev/depends-on", "ConfigMap/a")],
            ),
            member(CONFIG, Some("ns"), "late", &wave("2")),
        ];
        let found = deletion(&members);
        // The namespace was pulled to wave -1, and so goes with it, last.
        assert_eq!(names(&found.steps), ["late", "b", "web a", "config ns"]);
        assert_eq!((found.last, found.ignored), (vec![], vec![]));
    }

    #[test]
    fn instances_go_before_their_definition() {
        let members = [
            member(DEFINITION, None, "widgets", &[("reeve.dev/wave", "5")]),
            member(WIDGET, None, "w", &[("reeve.dev/wave", "1")]),
        ];
        assert_eq!(names(&deletion(&members).steps), ["w", "widgets"]);
    }

    #[test]
    fn some_go_when_all_else_is_healthy() {
        let last = [("argocd.argoproj.io/sync-options", "PruneLast=true")];
        let members = [
            member(CONFIG, Some("ns"), "a", &[]),
            member(CONFIG, Some("ns"), "b", &last),
        ];
        let found = deletion(&members);
        assert_eq!(names(&found.steps), ["a"]);
        assert_eq!(names(&found.last), ["b"]);
    }

    #[test]
    fn what_does_not_agree_holds_nothing_up() {
        let depends = |on: &'static str| ("reeve.dev/depends-on", on);
        let members = [
            member(CONFIG, Some("ns"), "a", &[depends("ConfigMap/b")]),
            member(CONFIG, Some("ns"), "b", &[depends("ConfigMap/a")]),
            member(
                CONFIG,
                Some("ns"),
                "c",
                &[depends("ConfigMap/gone"), depends("x")],
            ),
            member(CONFIG, Some("ns"), "d", &[depends("ConfigMap/e")]),
            member(CONFIG, Some("ns"), "e", &[("reeve.dev/wave", "1")]),
        ];
        let found = deletion(&members);
        assert_eq!(names(&found.steps), ["e", "b", "d,c,a"]);
        let ignored: Vec<_> = found
            .ignored
            .iter()
            .map(|(object, on)| format!("{} on {}", object.name, on.name))
            .collect();
        assert_eq!(ignored, ["d on e", "a on b"]);
    }

    proptest! {
        #[test]
        fn waves_descend_and_everything_goes_once(
            waves in prop::collection::vec((-3_i64..4, 0_usize..10), 1..10),
        ) {
            let members: Vec<Member> = waves.iter().enumerate().map(|(index, (wave, on))| {
                let (wave, on) = (wave.to_string(), format!("ConfigMap/o{on}"));
                let annotations = [("reeve.dev/wave", wave.as_str()), ("reeve.dev/depends-on", &on)];
                member(CONFIG, Some("ns"), &format!("o{index}"), &annotations)
            }).collect();
            let found = deletion(&members);
            let order: Vec<_> = found.steps.iter().map(|step| step.wave).collect();
            prop_assert!(order.windows(2).all(|pair| pair[0] >= pair[1]));
            let mut gone: Vec<_> = found.steps.iter().flat_map(Step::objects).collect();
            gone.sort();
            let mut all: Vec<_> = members.iter().map(|member| &member.reference).collect();
            all.sort();
            prop_assert_eq!(gone, all);
            let mut shuffled = members.clone();
            shuffled.reverse();
            prop_assert_eq!(deletion(&shuffled), found);
        }
    }
}
