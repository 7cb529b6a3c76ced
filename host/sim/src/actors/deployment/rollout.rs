//! How many replicas each ReplicaSet of a Deployment gets next.

use serde_json::Value;

use super::{DESIRED, MAX, Sets};
use crate::kinds::edit::{integer, text, text_at};

/// The numbers that a rollout goes by.
#[derive(Debug)]
pub(super) struct Rollout<'a> {
    sets: &'a Sets,
    wanted: i64,
    surge: i64,
    unavailable: i64,
    recreate: bool,
}

/// How many replicas there may be beyond those that are wanted.
pub(super) fn surge(deployment: &Value) -> i64 {
    bounds(deployment).0
}

/// How many of the wanted replicas need not be available.
pub(super) fn unavailable(deployment: &Value) -> i64 {
    bounds(deployment).1
}

fn bounds(deployment: &Value) -> (i64, i64) {
    if text_at(deployment, "/spec/strategy/type") == "Recreate" {
        return (0, 0);
    }
    let wanted = wanted(deployment);
    let rolling = deployment.pointer("/spec/strategy/rollingUpdate");
    let share = |field: &str, up| {
        super::template::share(rolling.and_then(|rolling| rolling.get(field)), wanted, up)
    };
    let (surge, unavailable) = (share("maxSurge", true), share("maxUnavailable", false));
    // Rounding both to nothing would leave no way forward.
    if surge == 0 && unavailable == 0 {
        return (0, 1.min(wanted));
    }
    (surge, unavailable.min(wanted))
}

fn wanted(deployment: &Value) -> i64 {
    integer(&deployment["spec"], "replicas").unwrap_or(1)
}

fn size(set: &Value) -> i64 {
    integer(&set["spec"], "replicas").unwrap_or(0)
}

fn available(set: &Value) -> i64 {
    integer(&set["status"], "availableReplicas").unwrap_or(0)
}

fn number(set: &Value, annotation: &str) -> Option<i64> {
    let annotations = set.pointer("/metadata/annotations")?;
    text(annotations, annotation).parse().ok()
}

impl<'a> Rollout<'a> {
    pub(super) fn new(deployment: &Value, sets: &'a Sets) -> Self {
        let (surge, unavailable) = bounds(deployment);
        Rollout {
            sets,
            wanted: wanted(deployment),
            surge,
            unavailable,
            recreate: text_at(deployment, "/spec/strategy/type") == "Recreate",
        }
    }

    /// The replicas that are wanted.
    pub(super) fn wanted(&self) -> i64 {
        self.wanted
    }

    /// The most replicas that there may be.
    pub(super) fn most(&self) -> i64 {
        self.wanted + self.surge
    }

    /// The replicas with which the ReplicaSet of a new template begins.
    pub(super) fn first_size(&self) -> i64 {
        self.grown(0)
    }

    /// The size that the new ReplicaSet, which has `present` replicas, may grow to.
    fn grown(&self, present: i64) -> i64 {
        if self.recreate {
            return self.wanted;
        }
        let all: i64 = self.sets.all().map(size).sum();
        if all >= self.most() {
            return present;
        }
        let room = (self.most() - all).min(self.wanted - present);
        present + room.max(0)
    }

    /// The next sizes, of those ReplicaSets only whose size changes. `is_empty`
    /// says whether nothing is left of one.
    pub(super) fn steps(
        &self,
        paused: bool,
        is_empty: &dyn Fn(&Value) -> bool,
    ) -> Vec<(&'a Value, i64)> {
        if paused || self.is_scaled() {
            return self.scaled();
        }
        if self.recreate {
            return self.recreated(is_empty);
        }
        let Some(new) = &self.sets.new else {
            return Vec::new();
        };
        if size(new) != self.wanted {
            let next = if size(new) > self.wanted {
                self.wanted
            } else {
                self.grown(size(new))
            };
            if next != size(new) {
                return vec![(new, next)];
            }
        }
        self.shrunk(new)
    }

    /// Whether the Deployment itself was given another size since its ReplicaSets
    /// were.
    fn is_scaled(&self) -> bool {
        let mut active = self.sets.all().filter(|set| size(set) > 0);
        active.any(|set| number(set, DESIRED).is_some_and(|desired| desired != self.wanted))
    }

    /// Another size is shared out among all ReplicaSets, by the size that they have.
    fn scaled(&self) -> Vec<(&'a Value, i64)> {
        let changed = |set: &'a Value, next: i64| {
            (size(set) != next || number(set, DESIRED) != Some(self.wanted)).then_some((set, next))
        };
        let mut active: Vec<&Value> = self.sets.all().filter(|set| size(set) > 0).collect();
        if let [] | [_] = active[..] {
            let only = active
                .first()
                .copied()
                .or_else(|| self.sets.new.as_ref().or_else(|| self.sets.old.last()));
            return only
                .and_then(|set| changed(set, self.wanted))
                .into_iter()
                .collect();
        }
        // A rollout that was complete has one ReplicaSet that counts.
        if let Some(new) = &self.sets.new
            && size(new) == self.wanted
            && available(new) == self.wanted
        {
            let old = self.sets.old.iter().filter(|set| size(set) > 0);
            return old
                .map(|set| (set, 0))
                .chain(changed(new, self.wanted))
                .collect();
        }
        if self.recreate {
            return Vec::new();
        }
        let all: i64 = active.iter().map(|set| size(set)).sum();
        let allowed = if self.wanted > 0 { self.most() } else { 0 };
        let to_add = allowed - all;
        // The largest takes the most; newer ones first when growing, older ones
        // when shrinking.
        active.sort_by_key(|set| std::cmp::Reverse(size(set)));
        let mut left = to_add;
        let mut sizes = Vec::new();
        for set in active {
            let share = if to_add == 0 {
                0
            } else {
                self.share(set, left, to_add, allowed)
            };
            left -= share;
            sizes.push((set, size(set) + share));
        }
        if let Some((_, first)) = sizes.first_mut() {
            *first = (*first + left).max(0);
        }
        sizes
            .into_iter()
            .filter_map(|(set, next)| changed(set, next))
            .collect()
    }

    /// The part of a change of `to_add` replicas that falls to a ReplicaSet.
    fn share(&self, set: &Value, left: i64, to_add: i64, allowed: i64) -> i64 {
        let before = number(set, MAX)
            .filter(|most| *most > 0)
            .unwrap_or(self.most());
        let scaled = (2 * size(set) * allowed + before) / (2 * before);
        let share = scaled - size(set);
        if to_add > 0 {
            share.clamp(0, left.max(0))
        } else {
            share.clamp(left.min(0), 0)
        }
    }

    fn recreated(&self, is_empty: &dyn Fn(&Value) -> bool) -> Vec<(&'a Value, i64)> {
        let old: Vec<(&Value, i64)> = self
            .sets
            .old
            .iter()
            .filter(|set| size(set) > 0)
            .map(|set| (set, 0))
            .collect();
        if !old.is_empty() {
            return old;
        }
        if !self.sets.old.iter().all(is_empty) {
            return Vec::new();
        }
        let new = self.sets.new.iter().filter(|set| size(set) != self.wanted);
        new.map(|set| (set, self.wanted)).collect()
    }

    /// Takes from the old ReplicaSets what the new one makes up for: first what is
    /// not available anyway, then the oldest.
    fn shrunk(&self, new: &Value) -> Vec<(&'a Value, i64)> {
        let old: Vec<&Value> = self.sets.old.iter().filter(|set| size(set) > 0).collect();
        if old.is_empty() {
            return Vec::new();
        }
        let all: i64 = self.sets.all().map(size).sum();
        let least = self.wanted - self.unavailable;
        let missing = size(new) - available(new);
        let mut room = all - least - missing;
        if room <= 0 {
            return Vec::new();
        }
        let mut sizes: Vec<(&Value, i64)> = Vec::new();
        for set in &old {
            let unhealthy = (size(set) - available(set)).clamp(0, room);
            room -= unhealthy;
            sizes.push((set, size(set) - unhealthy));
        }
        let mut spare = self.sets.all().map(available).sum::<i64>() - least;
        for (set, next) in &mut sizes {
            let part = (*next).clamp(0, spare.max(0)).min(available(set));
            spare -= part;
            *next -= part;
        }
        sizes.retain(|(set, next)| size(set) != *next);
        sizes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(name: &str, size: i64, available: i64, desired: i64, most: i64) -> Value {
        json!({
            "metadata": {"name": name, "annotations": {
                DESIRED: desired.to_string(), MAX: most.to_string(),
            }},
            "spec": {"replicas": size},
            "status": {"replicas": size, "availableReplicas": available},
        })
    }

    /// Sizes of old ReplicaSets and of the new one, as (size, available); the next
    /// sizes.
    #[track_caller]
    fn check(
        strategy: &Value,
        wanted: i64,
        desired: i64,
        old: &[(i64, i64)],
        new: (i64, i64),
        expected: &[(&str, i64)],
    ) {
        let deployment = json!({"spec": {"replicas": wanted, "strategy": strategy}});
        let most = desired + surge(&json!({"spec": {"replicas": desired, "strategy": strategy}}));
        let old = old.iter().enumerate();
        let sets = Sets {
            old: old
                .map(|(at, (size, available))| {
                    set(&format!("old{at}"), *size, *available, desired, most)
                })
                .collect(),
            new: Some(set("new", new.0, new.1, desired, most)),
        };
        let rollout = Rollout::new(&deployment, &sets);
        let steps = rollout.steps(false, &|set| available(set) == 0);
        let steps: Vec<(&str, i64)> = steps
            .iter()
            .map(|(set, next)| (text_at(set, "/metadata/name"), *next))
            .collect();
        assert_eq!(steps, expected);
    }

    fn rolling(surge: &Value, unavailable: &Value) -> Value {
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
    }

    #[test]
    fn rollouts_keep_to_their_bounds() {
        let quarter = || rolling(&json!("25%"), &json!("25%"));
        check(&quarter(), 4, 4, &[(4, 4)], (0, 0), &[("new", 1)]);
        check(&quarter(), 4, 4, &[(4, 4)], (1, 0), &[("old0", 3)]);
        check(&quarter(), 4, 4, &[(3, 3)], (1, 0), &[("new", 2)]);
        check(&quarter(), 4, 4, &[(3, 3)], (2, 0), &[]);
        check(&quarter(), 4, 4, &[(3, 3)], (2, 2), &[("old0", 1)]);
        check(&quarter(), 4, 4, &[(1, 1)], (4, 4), &[("old0", 0)]);
        check(&quarter(), 4, 4, &[(0, 0)], (4, 4), &[]);
        // Nothing may be missing: one more first.
        check(&rolling(&json!(1), &json!(0)), 2, 2, &[(2, 2)], (1, 0), &[]);
        check(
            &rolling(&json!(1), &json!(0)),
            2,
            2,
            &[(2, 2)],
            (1, 1),
            &[("old0", 1)],
        );
        // What is not available goes first.
        check(
            &rolling(&json!(0), &json!(1)),
            3,
            3,
            &[(2, 0), (1, 1)],
            (0, 0),
            &[("old0", 1)],
        );
    }

    #[test]
    fn old_pods_go_before_they_are_recreated() {
        let recreate = || json!({"type": "Recreate"});
        check(&recreate(), 3, 3, &[(3, 3)], (0, 0), &[("old0", 0)]);
        check(&recreate(), 3, 3, &[(0, 2)], (0, 0), &[]);
        check(&recreate(), 3, 3, &[(0, 0)], (0, 0), &[("new", 3)]);
    }

    #[test]
    fn another_size_is_shared_out() {
        let one = || rolling(&json!(1), &json!(0));
        check(&one(), 5, 3, &[], (3, 3), &[("new", 5)]);
        check(&one(), 0, 3, &[], (3, 3), &[("new", 0)]);
        check(
            &rolling(&json!(2), &json!(1)),
            20,
            10,
            &[(8, 8)],
            (4, 4),
            &[("old0", 15), ("new", 7)],
        );
    }
}
