//! The end of a unit whose primary waits for it: hooks before, then all that the unit
//! has, dependents first, then hooks after.

use super::observed::{Live, identity};
use super::surplus::{self, Ending, Withdrawal};
use super::sync::{State, Walk};
use super::{Plan, Progress, Situation, Step};
use crate::health::HealthStatus;
use crate::ownership::Owner;
use crate::waves::{ApplyMode, Hook, Member, Phase, Removal, Role, Step as Wave};
use foldhash::HashMap;
use std::collections::BTreeSet;

/// Why a primary that is deleted has to wait for its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndNeeds {
    /// Its objects have an order, so that garbage collection must not delete them: it
    /// knows none.
    pub order: bool,
    /// Some are where garbage collection does not follow.
    pub reach: bool,
    /// Hooks run before or after.
    pub hooks: bool,
}

impl EndNeeds {
    /// What the end of a unit with these objects needs.
    pub fn of<'a>(owner: &Owner, members: impl Iterator<Item = &'a Member>) -> Self {
        let mut needs = Self::default();
        let mut waves = BTreeSet::new();
        for member in members {
            let options = &member.options;
            if matches!(options.apply, ApplyMode::Contribute | ApplyMode::Ignore) {
                continue;
            }
            match &options.role {
                Role::Skipped => continue,
                Role::Hook(hook) => needs.hooks |= ends(hook),
                Role::Resource => {
                    waves.insert(options.wave);
                    needs.order |= !options.depends_on.is_empty();
                    needs.reach |= !owner.in_reach(&member.reference);
                }
            }
        }
        needs.order |= needs.hooks || waves.len() > 1;
        needs
    }

    /// Whether the primary has to wait at all.
    pub fn any(self) -> bool {
        self.order || self.reach || self.hooks
    }
}

/// Whether a hook runs when its unit ends.
fn ends(hook: &Hook) -> bool {
    let mut phases = hook.phases.iter();
    phases.any(|phase| matches!(phase, Phase::PreDelete | Phase::PostDelete))
}

/// Decides what to do next for a unit that ends while its primary waits.
///
/// `situation` is that of its last desired state; one without objects ends without
/// hooks. A hook before that fails stops the end, one after leaves the primary
/// waiting. [`Progress::Complete`] means that nothing holds the primary any more.
pub fn end(situation: &Situation<'_>) -> Plan {
    let mut plan = Plan::default();
    let live = Live::of(situation, &mut plan.refusals);
    let wanted: HashMap<_, usize> = situation
        .wanted
        .iter()
        .enumerate()
        .map(|(index, one)| (identity(&one.stamped.reference), index))
        .collect();
    let mut walk = Walk {
        situation,
        live: &live,
        wanted: &wanted,
        plan: &mut plan,
    };
    walk.plan.hooks = walk.hooks_now();
    if walk.run_all(&situation.sequence.before_deletion) {
        return plan;
    }
    let after: BTreeSet<_> = situation
        .sequence
        .after_deletion
        .iter()
        .flat_map(Wave::objects)
        .map(identity)
        .collect();
    let before = live.without(|reference| after.contains(&identity(reference)));
    surplus::end(&before, Ending::Deleted, walk.plan);
    if walk.plan.progress < Progress::Complete {
        return plan;
    }
    if walk.run_all(&situation.sequence.after_deletion) {
        return plan;
    }
    let left = live.all();
    let stage = left
        .iter()
        .filter(|object| after.contains(&identity(&object.reference)) && !object.deleting);
    let stage: Vec<Step> = stage
        .map(|object| Step::Delete {
            object: object.reference.clone(),
            uid: object.uid.clone(),
            reason: Withdrawal::HookEnded,
            removal: Removal::Permitted,
        })
        .collect();
    if !stage.is_empty() {
        plan.stages.push(stage);
        plan.progress = Progress::Applying;
    } else if left.iter().any(|object| object.deleting) {
        plan.progress = Progress::Waiting;
    }
    plan
}

impl Walk<'_, '_> {
    /// Runs the first of these waves of hooks that is not done. Returns whether there
    /// is one.
    fn run_all(&mut self, waves: &[Wave]) -> bool {
        for wave in waves {
            let mut stage = Vec::new();
            let (mut open, mut failed) = (false, false);
            for reference in wave.objects() {
                let Some((index, one)) = self.wanted(reference) else {
                    continue;
                };
                let Role::Hook(hook) = &one.member.options.role else {
                    continue;
                };
                match self.hook(index, one, hook, wave.phase) {
                    State::Done | State::Refused(_) => {}
                    State::Do(write) => stage.push(write),
                    State::Wait(status, reason, recheck) => {
                        open = true;
                        self.block(wave.phase, wave.wave, reference, status, reason);
                        self.recheck(recheck);
                    }
                    State::Fail(reason) => {
                        failed = true;
                        let status = HealthStatus::Degraded;
                        self.block(wave.phase, wave.wave, reference, status, reason);
                    }
                }
            }
            if !(failed || open || !stage.is_empty()) {
                continue;
            }
            self.plan.progress = if failed {
                Progress::Failed
            } else if stage.is_empty() {
                Progress::Waiting
            } else {
                self.push(stage);
                Progress::Applying
            };
            return true;
        }
        false
    }
}

/// Whether garbage collection may delete an object with the primary: not where the
/// order of the unit's end matters, nor where the object says that it stays, or that a
/// person is asked.
pub(super) fn is_tied(needs: EndNeeds, member: &Member) -> bool {
    let stays = matches!(member.options.delete, Removal::Never | Removal::Confirm);
    !needs.order && !stays
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{GroupVersionKind, ObjectReference};
    use crate::unit::UnitKey;
    use serde_json::json;

    fn check(primary: Option<&str>, objects: &[(&str, &[(&str, &str)])], expected: [bool; 3]) {
        let kind = GroupVersionKind::new("example.com", "v1", "Bundle");
        let owner = Owner {
            unit: UnitKey::new(
                "p",
                ObjectReference::new(kind, primary.map(Into::into), "one"),
            ),
            uid: "u".to_owned(),
        };
        let member = |(namespace, annotations): &(&str, &[(&str, &str)])| {
            let kind = GroupVersionKind::new("", "v1", "ConfigMap");
            let reference = ObjectReference::new(kind, Some((*namespace).to_owned()), "a");
            let annotations: serde_json::Map<_, _> = annotations
                .iter()
                .map(|(key, value)| ((*key).to_owned(), json!(value)))
                .collect();
            let body = json!({"metadata": {"name": "a", "annotations": annotations}});
            Member::of(reference, &body).0
        };
        let members: Vec<Member> = objects.iter().map(member).collect();
        let EndNeeds {
            order,
            reach,
            hooks,
        } = EndNeeds::of(&owner, members.iter());
        assert_eq!([order, reach, hooks], expected, "{objects:?}");
    }

    #[test]
    fn what_an_end_needs() {
        let wave = ("reeve.dev/wave", "1");
        let depends = ("reeve.dev/depends-on", "ConfigMap/b");
        let contributes = ("reeve.dev/apply", "Contribute");
        let hook = |phase| ("reeve.dev/hook", phase);
        let (none, one) = ([false; 3], Some("apps"));
        check(one, &[("apps", &[]), ("apps", &[])], none);
        check(one, &[("apps", &[wave]), ("apps", &[wave])], none);
        let order = [true, false, false];
        check(one, &[("apps", &[]), ("apps", &[wave])], order);
        check(one, &[("apps", &[depends])], order);
        check(
            one,
            &[("apps", &[]), ("apps", &[hook("PreSync"), wave])],
            none,
        );
        let hooks = [true, false, true];
        check(one, &[("apps", &[hook("PreSync,PreDelete")])], hooks);
        check(one, &[("apps", &[hook("PostDelete")])], hooks);
        let reach = [false, true, false];
        check(one, &[("other", &[])], reach);
        check(None, &[("other", &[])], none);
        // Contributions are given up, not deleted.
        check(one, &[("other", &[contributes, wave]), ("apps", &[])], none);
    }
}
