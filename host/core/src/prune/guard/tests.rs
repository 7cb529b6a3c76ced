//! Mistakes that a guard has to stop, and work that it must not.

use super::*;
use crate::kind::{GroupVersionKind, ObjectReference};
use crate::prune::{APPROVAL_LIFETIME, BUDGET, WINDOW};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

fn unit(index: usize) -> UnitKey {
    let kind = GroupVersionKind::new("kubeflow.org", "v1", "Profile");
    UnitKey::new(
        "quotas",
        ObjectReference::new(kind, None, format!("u{index}")),
    )
}

fn candidate(kind: &str, name: &str, removal: Removal) -> Candidate {
    let kind = GroupVersionKind::new("", "v1", kind);
    Candidate {
        reference: ObjectReference::new(kind, Some("ns".into()), name),
        uid: format!("uid-{name}"),
        removal,
    }
}

fn config(name: &str) -> Candidate {
    candidate("ConfigMap", name, Removal::Unsaid)
}

fn configs(prefix: &str, count: usize) -> Vec<Candidate> {
    (0..count)
        .map(|index| config(&format!("{prefix}{index}")))
        .collect()
}

fn request(unit: &UnitKey, candidates: Vec<Candidate>, unit_owns: usize) -> Request<'_> {
    Request {
        unit,
        cause: Cause::Withdrawn,
        candidates,
        unit_owns,
        plugin_owns: 1_000_000,
        empty_not_meant: false,
    }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::try_from(seconds).unwrap()).unwrap()
}

fn guard() -> Guard {
    Guard::new("quotas", Policy::default())
}

fn reasons(verdict: &Verdict) -> Vec<String> {
    verdict
        .holds
        .iter()
        .map(|hold| hold.reason.to_string())
        .collect()
}

const LATCHED: &str = "deletions of other units of the plugin are held";
const OVER_BUDGET: &str =
    "the plugin may withdraw 100 objects within 60 minutes over all its units";

#[test]
fn one_unit_withdrawing_some_is_ordinary() {
    let mut guard = guard();
    for (index, (withdrawn, owned)) in [(1, 1), (20, 20), (40, 80)].into_iter().enumerate() {
        let unit = unit(index);
        let candidates = configs(&format!("{index}-"), withdrawn);
        let verdict = guard.review(request(&unit, candidates.clone(), owned), &[], at(0));
        assert_eq!((verdict.delete, verdict.holds), (candidates, vec![]));
    }
}

#[test]
fn a_version_that_forgets_one_object_of_each_unit_stops_early() {
    let mut guard = guard();
    let units: Vec<_> = (0..10_000).map(unit).collect();
    let want = |index: usize| vec![config(&format!("a{index}"))];
    let mut deleted = 0;
    for (index, unit) in units.iter().enumerate() {
        let verdict = guard.review(request(unit, want(index), 5), &[], at(index as u64 / 100));
        deleted += verdict.delete.len();
    }
    assert_eq!(deleted, BUDGET);
    let hold = guard.hold().unwrap();
    assert_eq!(
        (hold.count, hold.reason.to_string()),
        (9_900, OVER_BUDGET.into())
    );
    // Waiting does not help: what is held stays held.
    let later = at(3 * WINDOW.as_secs());
    let verdict = guard.review(request(&units[500], want(500), 5), &[], later);
    assert_eq!(reasons(&verdict), [LATCHED]);
    assert_eq!(verdict.delete, []);
    // The approval lets exactly these go, once, whatever the budget.
    let token = guard.hold().unwrap().token;
    assert_eq!(guard.approve(&token, later), Ok(9_900));
    assert_eq!(guard.hold(), None);
    for (index, unit) in units.iter().enumerate().skip(100) {
        let verdict = guard.review(request(unit, want(index), 5), &[], later);
        assert_eq!(verdict.delete, want(index));
    }
    assert_eq!(
        guard.approve(&token, later),
        Err(ApprovalError::NothingHeld)
    );
}

#[test]
fn going_back_to_the_old_version_opens_the_guard() {
    let mut guard = guard();
    let units: Vec<_> = (0..103).map(unit).collect();
    for (index, unit) in units.iter().enumerate() {
        guard.review(
            request(unit, vec![config(&format!("a{index}"))], 5),
            &[],
            at(0),
        );
    }
    assert_eq!(guard.hold().unwrap().count, 3);
    for unit in &units[100..102] {
        guard.review(request(unit, vec![], 5), &[], at(1));
        assert!(guard.hold().is_some());
    }
    guard.forget(&units[102]);
    assert_eq!(guard.hold(), None);
    // The budget is spent all the same, until the window has moved on.
    let more = request(&units[0], vec![config("more")], 5);
    assert_eq!(
        reasons(&guard.review(more.clone(), &[], at(2))),
        [OVER_BUDGET]
    );
    let end = at(WINDOW.as_secs());
    assert_eq!(
        reasons(&guard.review(more.clone(), &[], end)),
        [OVER_BUDGET],
        "what is held stays held"
    );
    guard.review(request(&units[0], vec![], 5), &[], end);
    assert_eq!(guard.review(more, &[], end).delete, [config("more")]);
}

#[test]
fn shares_stop_what_the_budget_would_let_pass() {
    let unit = unit(0);
    let mut guard = guard();
    let verdict = guard.review(request(&unit, configs("a", 41), 80), &[], at(0));
    assert_eq!(
        reasons(&verdict),
        ["these are more than 50 % of the 80 objects of the unit"]
    );
    assert_eq!(guard.hold(), None, "it is the unit's own hold");

    let mut small = request(&unit, configs("a", 31), 100);
    small.plugin_owns = 100;
    let verdict = guard.review(small.clone(), &[], at(0));
    assert_eq!(
        reasons(&verdict),
        [
            "with these the plugin would have withdrawn more than 30 % of its 100 objects within 60 \
          minutes"
        ]
    );
    small.candidates.truncate(30);
    assert_eq!(guard.review(small, &[], at(0)).delete.len(), 30);
    // Of 70 that are left, one more is 31 of 100 again.
    let other = super::tests::unit(1);
    let mut more = request(&other, vec![config("b")], 10);
    more.plugin_owns = 70;
    assert!(guard.review(more, &[], at(0)).delete.is_empty());
}

#[test]
fn what_is_precious_waits_alone() {
    let unit = unit(0);
    let mut guard = guard();
    let claim = |removal| candidate("PersistentVolumeClaim", "data", removal);
    let namespace = candidate("Namespace", "ns", Removal::Unsaid);
    let asks = candidate("ConfigMap", "asks", Removal::Confirm);
    let stays = candidate("ConfigMap", "stays", Removal::Never);
    let wanted = vec![
        config("a"),
        claim(Removal::Unsaid),
        namespace.clone(),
        asks.clone(),
        stays.clone(),
    ];
    let verdict = guard.review(request(&unit, wanted.clone(), 10), &[], at(0));
    assert_eq!(verdict.delete, [config("a")]);
    assert_eq!(verdict.kept, [stays]);
    let texts: Vec<_> = verdict.holds.iter().map(ToString::to_string).collect();
    let tokens: Vec<_> = verdict
        .holds
        .iter()
        .map(|hold| hold.token.clone())
        .collect();
    assert_eq!(
        texts,
        [
            format!(
                "2 deletions are held: deleting them loses data, and they are not annotated \
                 `reeve.dev/prune: allow`: Namespace ns/ns, PersistentVolumeClaim ns/data; \
                 approve these and no others with {}",
                tokens[0]
            ),
            format!(
                "1 deletion is held: their annotations ask that a person confirms: ConfigMap \
                 ns/asks; approve these and no others with {}",
                tokens[1]
            ),
        ]
    );
    // Each is approved for itself.
    let verdict = guard.review(request(&unit, wanted, 10), &tokens[..1], at(1));
    let expected = [claim(Removal::Unsaid), namespace, config("a")];
    assert_eq!(verdict.delete, expected);
    assert_eq!(verdict.holds.len(), 1);
    // With our permission on it, nothing is asked.
    let permitted = vec![claim(Removal::Permitted)];
    let verdict = guard.review(request(&unit, permitted.clone(), 10), &[], at(1));
    assert_eq!((verdict.delete, verdict.holds), (permitted, vec![]));
}

#[test]
fn an_empty_answer_has_to_be_meant() {
    let unit = unit(0);
    let mut guard = guard();
    let mut wanted = request(&unit, vec![config("a")], 1);
    wanted.empty_not_meant = true;
    let verdict = guard.review(wanted.clone(), &[], at(0));
    assert_eq!(verdict.delete, []);
    let expected = "the plugin returned no objects and did not say that an empty set is meant";
    assert!(reasons(&verdict)[0].starts_with(expected), "{verdict:?}");
    let approvals = [verdict.holds[0].token.clone()];
    let verdict = guard.review(wanted, &approvals, at(1));
    assert_eq!(verdict.delete, [config("a")]);
}

#[test]
fn the_end_of_a_unit_was_asked_for() {
    let unit = unit(0);
    let mut guard = guard();
    let mut ended = request(&unit, configs("a", 500), 500);
    ended.cause = Cause::Ended;
    ended
        .candidates
        .push(candidate("Namespace", "ns", Removal::Unsaid));
    ended
        .candidates
        .push(candidate("ConfigMap", "asks", Removal::Confirm));
    ended
        .candidates
        .push(candidate("ConfigMap", "stays", Removal::Never));
    let verdict = guard.review(ended, &[], at(0));
    assert_eq!((verdict.delete.len(), verdict.kept.len()), (501, 1));
    assert_eq!(
        reasons(&verdict),
        ["their annotations ask that a person confirms"]
    );
    assert_eq!(guard.spent().count(), 0);
}

#[test]
fn who_is_no_longer_selected_may_be_so_by_mistake() {
    let mut guard = guard();
    let deselected = |index: usize, unit: &UnitKey, guard: &mut Guard| {
        let mut request = request(unit, configs(&format!("{index}-"), 30), 30);
        request.cause = Cause::Deselected;
        let claim = candidate(
            "PersistentVolumeClaim",
            &format!("{index}"),
            Removal::Unsaid,
        );
        request.candidates.push(claim);
        guard.review(request, &[], at(0))
    };
    // All of a unit goes, which is no share of it, but for what holds data of others.
    for index in 0..3 {
        let verdict = deselected(index, &unit(index), &mut guard);
        assert_eq!(verdict.delete.len(), 30);
        assert_eq!(verdict.holds.len(), 1, "{verdict:?}");
        assert_eq!(verdict.holds[0].reason, Reason::Precious);
    }
    let verdict = deselected(3, &unit(3), &mut guard);
    assert_eq!(verdict.delete, []);
    assert!(
        reasons(&verdict).contains(&OVER_BUDGET.to_owned()),
        "{verdict:?}"
    );
}

/// Also when nobody else holds anything, and the window has moved on.
#[test]
fn one_unit_keeps_holding_what_it_held() {
    let (one, other) = (unit(0), unit(1));
    let mut guard = guard();
    let verdict = guard.review(request(&one, configs("a", 60), 200), &[], at(0));
    assert_eq!(verdict.delete.len(), 60);
    let ask = |guard: &mut Guard, count: usize, second: u64| {
        guard.review(request(&other, configs("b", count), 200), &[], at(second))
    };
    assert_eq!(reasons(&ask(&mut guard, 60, 1)), [OVER_BUDGET]);
    let later = WINDOW.as_secs() + 60;
    for count in [60, 70, 70] {
        let verdict = ask(&mut guard, count, later);
        assert_eq!(verdict.delete, []);
        assert_eq!(reasons(&verdict), [OVER_BUDGET]);
    }
    // Less is another request.
    assert_eq!(ask(&mut guard, 20, later).delete.len(), 20);
}

/// A unit that waited only since another one did is asked for anew.
#[test]
fn who_waited_for_another_waits_no_longer_than_it() {
    let (large, small) = (unit(0), unit(1));
    let mut guard = guard();
    let over = guard.review(request(&large, configs("a", 101), 1000), &[], at(0));
    assert_eq!(reasons(&over), [OVER_BUDGET]);
    let one = || request(&small, vec![config("b")], 1000);
    assert_eq!(reasons(&guard.review(one(), &[], at(1))), [LATCHED]);
    guard.review(request(&large, vec![], 1000), &[], at(2));
    assert_eq!(guard.review(one(), &[], at(3)).delete, [config("b")]);
}

#[test]
fn what_is_recalled_late_does_not_hold_again_what_all_were_heard_about() {
    let unit = unit(0);
    let mut guard = guard();
    guard.caught_up();
    guard.resume([], true);
    let verdict = guard.review(request(&unit, configs("a", 1), 10), &[], at(0));
    assert_eq!(verdict.delete.len(), 1);
}

#[test]
fn an_approval_approves_nothing_else() {
    let units = [unit(0), unit(1)];
    let mut guard = guard();
    guard.review(request(&units[0], configs("a", 101), 1000), &[], at(0));
    let token = guard.hold().unwrap().token;
    // Another unit joins: it is another set now.
    guard.review(request(&units[1], vec![config("b")], 10), &[], at(1));
    let error = guard.approve(&token, at(2)).unwrap_err();
    let held = guard.hold().unwrap().token;
    assert_eq!(
        error.to_string(),
        format!(
            "{token} approves other deletions than the 102 that are held now; look at them, and \
             approve them with {held}"
        )
    );
    assert_eq!(guard.approve(&held, at(2)), Ok(102));
    // An object of the same name made since has another uid, and the same object
    // withdrawn by another unit was not looked at.
    let mut remade = config("b");
    remade.uid = "uid-other".into();
    guard.review(request(&units[0], configs("c", 100), 1000), &[], at(2));
    for (unit, wanted) in [(&units[1], remade), (&units[1], config("a7"))] {
        let verdict = guard.review(request(unit, vec![wanted], 10), &[], at(2));
        assert_eq!(verdict.delete, [], "{unit}");
    }
    // And it does not last.
    let verdict = guard.review(request(&units[1], vec![config("b")], 10), &[], at(3));
    assert_eq!(verdict.delete, [config("b")]);
    guard.review(request(&units[0], configs("d", 101), 1000), &[], at(4));
    let late = at(2 + APPROVAL_LIFETIME.as_secs());
    let verdict = guard.review(request(&units[1], vec![config("b")], 10), &[], late);
    assert_eq!(verdict.delete, []);
}

#[test]
fn the_hold_of_the_plugin_can_be_approved_for_one_unit() {
    let units = [unit(0), unit(1)];
    let mut guard = guard();
    guard.review(request(&units[0], configs("a", 101), 1000), &[], at(0));
    let wanted = request(&units[1], vec![config("b")], 10);
    let verdict = guard.review(wanted.clone(), &[], at(0));
    let token = verdict.holds[0].token.clone();
    assert_eq!(guard.review(wanted, &[token], at(0)).delete, [config("b")]);
    assert_eq!(guard.hold().unwrap().count, 101);
}

#[test]
fn trying_again_costs_nothing() {
    let unit = unit(0);
    let mut guard = guard();
    for time in 0..50 {
        let verdict = guard.review(request(&unit, configs("a", 10), 100), &[], at(time));
        assert_eq!(verdict.delete.len(), 10);
    }
    assert_eq!(guard.spent().count(), 10);
}

#[test]
fn a_restart_is_no_new_budget() {
    let mut before = guard();
    let units: Vec<_> = (0..3).map(unit).collect();
    before.review(request(&units[0], configs("a", 90), 1000), &[], at(0));
    let kept: Vec<_> = before
        .spent()
        .map(|(uid, time)| (uid.to_owned(), time))
        .collect();
    let mut after = guard().resumed(kept.clone(), false);
    let verdict = after.review(request(&units[1], configs("b", 11), 1000), &[], at(1));
    assert_eq!(reasons(&verdict), [OVER_BUDGET]);

    // Something was held: until all units are heard nothing passes.
    let mut after = guard().resumed(kept, true);
    let late = at(2 * WINDOW.as_secs());
    let wanted = request(&units[1], vec![config("b")], 1000);
    assert_eq!(reasons(&after.review(wanted.clone(), &[], late)), [LATCHED]);
    after.caught_up();
    assert_eq!(after.review(wanted, &[], late).delete, [config("b")]);
}

/// A unit, objects of which some are precious, and the time until the next.
type Attempt = (usize, Vec<(usize, bool)>, u64);

/// Requests of a few units over time.
fn histories() -> impl Strategy<Value = Vec<Attempt>> {
    let object = (0_usize..60, prop::bool::weighted(0.1));
    let objects = prop::collection::vec(object, 0..12);
    prop::collection::vec((0_usize..6, objects, 0_u64..1200), 1..40)
}

proptest! {
    #[test]
    fn no_window_has_more_than_the_budget(history in histories()) {
        let policy = Policy { budget: 15, floor: 1_000, ..Policy::default() };
        let mut guard = Guard::new("quotas", policy);
        let mut time = 0;
        let mut passed: Vec<(u64, String)> = Vec::new();
        for (index, objects, pause) in history {
            time += pause;
            let unit = unit(index);
            let candidates: Vec<_> = objects.iter().map(|(object, precious)| {
                let kind = if *precious { "PersistentVolumeClaim" } else { "ConfigMap" };
                candidate(kind, &format!("{kind}-{index}-{object}"), Removal::Unsaid)
            }).collect();
            let before = candidates.len();
            let verdict = guard.review(request(&unit, candidates, 100), &[], at(time));
            let held: usize = verdict.holds.iter().map(|hold| hold.count).sum();
            prop_assert_eq!(verdict.delete.len() + held, before);
            for one in verdict.delete {
                prop_assert_eq!(&one.reference.kind.kind, "ConfigMap");
                passed.push((time, one.uid));
            }
            prop_assert!(guard.spent().count() <= 15);
        }
        let window = Duration::from_secs(60 * 60).as_secs();
        for (start, _) in &passed {
            let inside = passed.iter().filter(|(at, _)| *at >= *start && *at < start + window);
            let distinct: BTreeSet<_> = inside.map(|(_, uid)| uid).collect();
            // What passed before the window began may be tried again in it.
            let fresh = distinct.iter().filter(|uid| {
                !passed.iter().any(|(at, other)| at < start && at + window > *start && other == **uid)
            });
            prop_assert!(fresh.count() <= 15);
        }
    }

    #[test]
    fn a_token_is_of_a_set(names in prop::collection::btree_set(0_usize..40, 1..12), seed in any::<usize>()) {
        let unit = unit(0);
        let candidates: Vec<_> = names.iter().map(|name| config(&name.to_string())).collect();
        let token = |list: &[Candidate]| Token::of("p", list.iter().map(|one| (&unit, one)));
        let mut turned = candidates.clone();
        turned.rotate_left(seed % candidates.len());
        turned.push(turned[0].clone());
        prop_assert_eq!(token(&candidates), token(&turned));
        let mut fewer = candidates.clone();
        fewer.remove(seed % candidates.len());
        prop_assert_ne!(token(&candidates), token(&fewer));
        let mut other = candidates.clone();
        other[seed % candidates.len()].uid.push('x');
        prop_assert_ne!(token(&candidates), token(&other));
        let plugin = Token::of("q", candidates.iter().map(|one| (&unit, one)));
        prop_assert_ne!(token(&candidates), plugin);
    }
}

#[test]
fn other_limits_hold_for_what_is_asked_from_then_on() {
    let mut guard = guard();
    let limited = |budget| Policy {
        budget,
        ..Policy::default()
    };
    let (one, two) = (unit(1), unit(2));
    guard.set_policy(limited(3));
    let passed = |guard: &mut Guard, unit: &UnitKey, candidates: Vec<Candidate>| {
        let verdict = guard.review(request(unit, candidates, 100), &[], at(0));
        (verdict.delete.len(), reasons(&verdict))
    };
    let over = |budget: usize| {
        vec![format!(
            "the plugin may withdraw {budget} objects within 60 minutes over all its units"
        )]
    };
    assert_eq!(passed(&mut guard, &one, configs("a", 2)), (2, vec![]));
    assert_eq!(passed(&mut guard, &two, configs("b", 2)), (0, over(3)));
    // The same limits change nothing: what is held stays so.
    guard.set_policy(limited(3));
    assert_eq!(guard.hold().map(|hold| hold.count), Some(2));
    // What was withdrawn before counts under the new ones.
    guard.set_policy(limited(4));
    assert_eq!(guard.hold(), None);
    assert_eq!(passed(&mut guard, &two, configs("b", 2)), (2, vec![]));
    assert_eq!(passed(&mut guard, &one, configs("c", 1)), (0, over(4)));
    // A narrower limit releases nothing.
    guard.set_policy(limited(2));
    assert_eq!(guard.hold().map(|hold| hold.count), Some(1));
    assert_eq!(passed(&mut guard, &one, vec![]), (0, vec![]));
    guard.set_policy(limited(0));
    assert_eq!(passed(&mut guard, &two, configs("d", 1)), (0, over(0)));
    // Trying again what was let pass costs nothing, also then.
    guard.set_policy(limited(1));
    assert_eq!(passed(&mut guard, &one, configs("a", 2)), (2, vec![]));
}
