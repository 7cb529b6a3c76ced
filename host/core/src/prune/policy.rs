//! Limits on deletions, and the reasons for them.

use crate::journal::{MAX_ENTRIES, MAX_OVERWRITES};
use std::time::Duration;

/// How many objects a plugin may withdraw within [`WINDOW`], over all its units.
/// People who add and remove things come nowhere near it; a version that forgets
/// objects is there within seconds, and what it has deleted by then one can still
/// look through and restore.
pub const BUDGET: usize = 100;

/// The most that a budget can be: what of one plugin the journal tells for sure, after a
/// restart that must not begin a new budget. Overwrites may have the rest of its room.
pub const MOST_BUDGET: usize = MAX_ENTRIES - MAX_OVERWRITES;

/// The time over which [`BUDGET`] and [`PLUGIN_SHARE_PERCENT`] are counted. Long
/// enough that a mistake does not get several budgets before somebody reads the
/// condition that it caused; short enough that a day of ordinary work passes.
pub const WINDOW: Duration = Duration::from_secs(60 * 60);

/// Up to this many objects, shares are not looked at: of three objects, one is a
/// third, and means nothing.
pub const FLOOR: usize = 20;

/// Above the floor, the share of all its objects that a plugin may withdraw
/// within [`WINDOW`].
pub const PLUGIN_SHARE_PERCENT: u8 = 30;

/// Above the floor, the share of its objects that one unit may withdraw at once.
/// A pack that loses a component stays below it, one whose template broke does
/// not.
pub const UNIT_SHARE_PERCENT: u8 = 50;

/// How long an approval can be acted on. What was approved and then not done, for
/// the plugin wanted the object again, is not to be done weeks later.
pub const APPROVAL_LIFETIME: Duration = Duration::from_secs(60 * 60);

/// The limits for one plugin. The defaults are the constants of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// See [`BUDGET`].
    pub budget: usize,
    /// See [`WINDOW`].
    pub window: Duration,
    /// See [`FLOOR`].
    pub floor: usize,
    /// See [`PLUGIN_SHARE_PERCENT`].
    pub plugin_share_percent: u8,
    /// See [`UNIT_SHARE_PERCENT`].
    pub unit_share_percent: u8,
    /// See [`APPROVAL_LIFETIME`].
    pub approval_lifetime: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            budget: BUDGET,
            window: WINDOW,
            floor: FLOOR,
            plugin_share_percent: PLUGIN_SHARE_PERCENT,
            unit_share_percent: UNIT_SHARE_PERCENT,
            approval_lifetime: APPROVAL_LIFETIME,
        }
    }
}

impl Policy {
    /// The widest limits that can be kept.
    pub const MOST: Self = Self {
        budget: MOST_BUDGET,
        window: WINDOW,
        floor: FLOOR,
        plugin_share_percent: 100,
        unit_share_percent: UNIT_SHARE_PERCENT,
        approval_lifetime: APPROVAL_LIFETIME,
    };

    /// Whether `part` of `whole` is more than a share allows.
    pub(super) fn exceeds(&self, part: usize, whole: usize, percent: u8) -> bool {
        let (part_hundredfold, limit) = (part as u128 * 100, whole as u128 * u128::from(percent));
        part > self.floor && part_hundredfold > limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_count_above_the_floor() {
        let policy = Policy::default();
        for (part, whole, percent, exceeds) in [
            (20, 20, 30, false),
            (21, 21, 30, true),
            (21, 70, 30, false),
            (22, 70, 30, true),
            (50, 100, 50, false),
            (51, 100, 50, true),
            (usize::MAX, usize::MAX, 100, false),
            (21, 0, 100, true),
        ] {
            let found = policy.exceeds(part, whole, percent);
            assert_eq!(found, exceeds, "{part} of {whole}");
        }
    }
}
