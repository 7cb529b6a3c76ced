//! Whether a version of a plugin may take the place of the one that runs: what it would
//! do to all units, counted, and how much of that may happen without a person.
//!
//! Counting is the agent's; deciding is here, so that whoever shows a count (`reeve
//! plugin diff`, a status) and whoever acts on it cannot disagree.

use crate::digest::Digest;
use crate::prune;
use std::fmt;
use std::str::FromStr;

/// What a version would do, over all units that were looked at, beyond what the running
/// one would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Units that were looked at.
    pub units: usize,
    /// Units for which nothing would be different.
    pub unchanged: usize,
    /// Units for which it has no answer, and the running version has one.
    pub failing: usize,
    /// Those of them for which it traps or goes beyond a limit.
    pub trapped: usize,
    /// Units for which neither version has an answer.
    pub failing_alike: usize,
    /// Units for which it waits for something.
    pub waiting: usize,
    /// Objects that would be made, hooks that would run among them.
    pub created: usize,
    /// Objects that would be changed.
    pub changed: usize,
    /// Objects that would be deleted.
    pub deleted: usize,
    /// Effects outside of the cluster that would be made, made anew or taken away.
    pub effects: usize,
    /// Objects that the plugin has in the cluster.
    pub owned: usize,
}

/// How much of something there may be. What is not bounded may be any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// So many.
    pub count: Option<usize>,
    /// So large a share, from 0 to 100.
    pub percent: Option<u8>,
}

/// Why a text is no [`Bound`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a number such as 20 nor a percentage from 0% to 100%")]
pub struct ParseBoundError(String);

impl FromStr for Bound {
    type Err = ParseBoundError;

    fn from_str(text: &str) -> Result<Self, ParseBoundError> {
        let error = || ParseBoundError(text.to_owned());
        // A sign is accepted by `parse`, and means nothing here.
        if !text.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(error());
        }
        match text.strip_suffix('%') {
            Some(percent) => match percent.parse() {
                Ok(percent @ 0..=100) => Ok(Self {
                    percent: Some(percent),
                    count: None,
                }),
                _ => Err(error()),
            },
            None => Ok(Self {
                count: Some(text.parse().map_err(|_| error())?),
                percent: None,
            }),
        }
    }
}

/// The most that an upgrade may do without a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Of objects that would be deleted; a share is one of all objects of the plugin.
    pub deleted: Bound,
    /// Of objects that would be changed; a share is one of all objects of the plugin.
    pub changed: Bound,
    /// Of units for which the new version would have no answer; a share is one of all
    /// units that were looked at.
    pub failing: Bound,
}

/// The share of units for which a version may fail that the one before served. Fewer
/// than ten units are each too many; of a large fleet some may be of a form that a
/// stricter version refuses for a reason.
pub const FAILING_PERCENT: u8 = 10;

impl Bounds {
    /// What holds where nothing else is said: as many deletions as the guard over
    /// withdrawals lets go within its window, for a version that wants more would come to
    /// a stop halfway; any changes, since a new label changes everything; and
    /// [`FAILING_PERCENT`].
    pub fn of(withdrawals: &prune::Policy) -> Self {
        Self {
            deleted: Bound {
                count: Some(withdrawals.budget),
                percent: Some(withdrawals.plugin_share_percent),
            },
            changed: Bound::default(),
            failing: Bound {
                count: None,
                percent: Some(FAILING_PERCENT),
            },
        }
    }
}

/// What of an upgrade is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    what: What,
    part: usize,
    whole: usize,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Deleted,
    Changed,
    Failing,
}

/// `40 of 100 objects would be deleted, where 30% may be`.
impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what, part, whole, ..
        } = self;
        let (things, deed) = match what {
            What::Deleted => ("objects", "would be deleted"),
            What::Changed => ("objects", "would be changed"),
            What::Failing => ("units", "would fail that do not now"),
        };
        write!(f, "{part} of {whole} {things} {deed}, where ")?;
        match (self.bound.count, self.bound.percent) {
            (Some(count), Some(percent)) => write!(f, "{count} and {percent}% may"),
            (Some(count), None) => write!(f, "{count} may"),
            (None, percent) => write!(f, "{}% may", percent.unwrap_or(100)),
        }
    }
}

/// What becomes of an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may go on.
    Passes,
    /// A person has to approve it, for these reasons.
    Held(Vec<Excess>),
    /// It traps, or goes beyond a limit, for every unit that the running version serves:
    /// nobody can want that.
    Broken,
}

/// Decides about an upgrade. `replaces` where another version runs: without one nobody
/// loses anything by a version that fails, so that only what happens to objects counts.
pub fn judge(tally: &Tally, bounds: &Bounds, replaces: bool) -> Verdict {
    let served = tally
        .units
        .saturating_sub(tally.waiting + tally.failing_alike);
    if replaces && tally.trapped > 0 && tally.trapped >= served {
        return Verdict::Broken;
    }
    // Of few objects a share means nothing, as for the guard over withdrawals.
    let floor = prune::FLOOR;
    let excess = [
        (
            What::Deleted,
            tally.deleted,
            tally.owned,
            bounds.deleted,
            floor,
        ),
        (
            What::Changed,
            tally.changed,
            tally.owned,
            bounds.changed,
            floor,
        ),
        (What::Failing, tally.failing, tally.units, bounds.failing, 0),
    ];
    let excess: Vec<Excess> = excess
        .into_iter()
        .filter(|(what, ..)| replaces || *what != What::Failing)
        .filter(|(_, part, whole, bound, floor)| exceeds(*part, *whole, *bound, *floor))
        .map(|(what, part, whole, bound, _)| Excess {
            what,
            part,
            whole,
            bound,
        })
        .collect();
    match excess.is_empty() {
        true => Verdict::Passes,
        false => Verdict::Held(excess),
    }
}

fn exceeds(part: usize, whole: usize, bound: Bound, floor: usize) -> bool {
    let counted = bound.count.is_some_and(|count| part > count);
    let shared = bound.percent.is_some_and(|percent| {
        part > floor && part as u128 * 100 > whole as u128 * u128::from(percent)
    });
    counted || shared
}

/// Length of what names a version in an annotation: 80 bits of a digest, as for other
/// approvals. Nobody gains from another version of the same name, since both would have
/// to be delivered by whoever may deliver anyway.
const TOKEN_LENGTH: usize = 20;

/// What names a version in an annotation that lets it run for all units at once, though
/// some to which it was given first failed under it.
pub fn token_for_all(token: &str) -> String {
    format!("{token}/all")
}

/// What names a component under a configuration, where a person approves of it or goes
/// back from it. Another configuration is another version.
pub fn token(component: &Digest, config: &Digest) -> String {
    let (component, config) = (component.hex(), config.hex());
    let parts = [component.as_bytes(), config.as_bytes()];
    Digest::of_parts(parts).hex()[..TOKEN_LENGTH].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds() -> Bounds {
        Bounds::of(&prune::Policy::default())
    }

    fn check(tally: Tally, replaces: bool, expected: Result<(), &[&str]>) {
        let found = match judge(&tally, &bounds(), replaces) {
            Verdict::Passes => Ok(()),
            Verdict::Held(excess) => Err(excess.iter().map(ToString::to_string).collect()),
            Verdict::Broken => Err(vec!["broken".to_owned()]),
        };
        let expected = expected.map_err(|texts| texts.iter().map(ToString::to_string).collect());
        assert_eq!(found, expected, "{tally:?}");
    }

    #[test]
    fn deletions_are_held_as_the_guard_would() {
        let tally = |deleted, owned| Tally {
            units: 50,
            deleted,
            owned,
            ..Tally::default()
        };
        check(tally(20, 20), true, Ok(()));
        check(
            tally(21, 60),
            true,
            Err(&["21 of 60 objects would be deleted, where 100 and 30% may"]),
        );
        check(tally(21, 70), true, Ok(()));
        check(tally(100, 1000), true, Ok(()));
        check(
            tally(101, 1000),
            false,
            Err(&["101 of 1000 objects would be deleted, where 100 and 30% may"]),
        );
    }

    #[test]
    fn what_fails_is_held_where_something_runs() {
        let tally = |units, failing, trapped| Tally {
            units,
            failing,
            trapped,
            ..Tally::default()
        };
        check(tally(0, 0, 0), true, Ok(()));
        check(tally(10, 1, 1), true, Ok(()));
        check(
            tally(9, 1, 1),
            true,
            Err(&["1 of 9 units would fail that do not now, where 10% may"]),
        );
        check(tally(9, 9, 0), false, Ok(()));
        check(
            tally(9, 9, 0),
            true,
            Err(&["9 of 9 units would fail that do not now, where 10% may"]),
        );
        check(tally(9, 9, 9), true, Err(&["broken"]));
        check(tally(9, 9, 9), false, Ok(()));
        let others = Tally {
            waiting: 3,
            failing_alike: 2,
            ..tally(9, 4, 4)
        };
        check(others, true, Err(&["broken"]));
    }

    #[test]
    fn bounds_are_read() {
        let bound = |count, percent| Ok(Bound { count, percent });
        for (text, expected) in [
            ("0", bound(Some(0), None)),
            ("250", bound(Some(250), None)),
            ("0%", bound(None, Some(0))),
            ("100%", bound(None, Some(100))),
        ] {
            assert_eq!(text.parse(), expected);
        }
        for text in ["", "%", "101%", "-1", "+1", "1.5%", "5 %", "many"] {
            let error = text.parse::<Bound>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{text}` is neither")),
                "{error}"
            );
        }
        let none: Bounds = Bounds {
            deleted: "0".parse().unwrap(),
            changed: "0%".parse().unwrap(),
            failing: "100%".parse().unwrap(),
        };
        let tally = Tally {
            units: 9,
            deleted: 1,
            changed: 21,
            failing: 9,
            owned: 40,
            ..Tally::default()
        };
        let Verdict::Held(excess) = judge(&tally, &none, true) else {
            panic!("not held");
        };
        let texts: Vec<String> = excess.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "1 of 40 objects would be deleted, where 0 may",
                "21 of 40 objects would be changed, where 0% may",
            ]
        );
    }

    #[test]
    fn another_configuration_is_another_version() {
        let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
        let token = |a, b| super::token(a, b);
        assert_eq!(token(&one, &two).len(), 20);
        assert_ne!(token(&one, &two), token(&two, &one));
        assert_ne!(token(&one, &two), token(&one, &one));
    }
}
