//! The order of API versions.

use std::cmp::Ordering;

/// Compares two versions by preference: `v10` over `v2` over `v1beta1` over
/// `v1alpha1` over anything else; the greater one is preferred.
pub(crate) fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Of the odd ones the alphabetically first is preferred.
        (None, None) => b.cmp(a),
    }
}

/// Stability, major, minor; each greater is more preferred.
fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    for (stability, word) in [(1, "beta"), (0, "alpha")] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stability, major.parse().ok()?, minor.parse().ok()?));
        }
    }
    Some((2, rest.parse().ok()?, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_come_first() {
        let mut versions = [
            "foo1", "v1alpha1", "v2", "v1beta2", "v10", "foo10", "v1", "v1beta1",
        ];
        versions.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(
            versions,
            [
                "v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo1", "foo10"
            ]
        );
    }
}
