//! Which units get a new version first.
//!
//! Units are ranked by a hash of the version and their own name: the same units at each
//! look and after each restart, others for another version, and none that anybody chose.
//! The lowest ranks get it; a unit that comes later is told apart by its rank as well.

use crate::digest::Digest;
use crate::upgrade::Bound;

/// The rank of a unit under a version, which its token names.
pub fn rank(version: &str, unit: &str) -> u64 {
    let digest = Digest::of_parts([version.as_bytes(), unit.as_bytes()]);
    let mut first = [0; 8];
    first.copy_from_slice(&digest.bytes()[..8]);
    u64::from_be_bytes(first)
}

/// The highest rank that gets the new version, and how many of these units do: so many,
/// or such a share of them rounded up, and one at least. None without units.
pub fn highest(mut ranks: Vec<u64>, share: Bound) -> Option<(u64, usize)> {
    let all = ranks.len();
    let percent = share
        .percent
        .map(|percent| (all * usize::from(percent)).div_ceil(100));
    let wanted = share.count.or(percent).unwrap_or(all);
    let chosen = wanted.max(1).min(all);
    ranks.sort_unstable();
    let highest = ranks.get(chosen.checked_sub(1)?)?;
    Some((*highest, chosen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_up_and_no_unit_is_chosen_twice() {
        let ranks = |count: u64| (0..count).map(|n| rank("v", &n.to_string())).collect();
        for (count, share, expected) in [
            (0, "10%", None),
            (1, "10%", Some(1)),
            (1, "0", Some(1)),
            (10, "10%", Some(1)),
            (11, "10%", Some(2)),
            (1000, "25%", Some(250)),
            (10, "100%", Some(10)),
            (10, "3", Some(3)),
            (10, "30", Some(10)),
        ] {
            let all: Vec<u64> = ranks(count);
            let found = highest(all.clone(), share.parse().unwrap());
            assert_eq!(
                found.map(|(_, chosen)| chosen),
                expected,
                "{share} of {count}"
            );
            if let Some((highest, chosen)) = found {
                let members = all.iter().filter(|rank| **rank <= highest).count();
                assert_eq!(members, chosen);
            }
        }
    }

    #[test]
    fn another_version_has_other_units_first() {
        let first = |version: &str| {
            let mut units: Vec<u32> = (0..100).collect();
            units.sort_by_key(|n| rank(version, &n.to_string()));
            units.truncate(10);
            units
        };
        assert_eq!(first("a"), first("a"));
        assert_ne!(first("a"), first("b"));
    }
}
