//! Labels at a glance.

use std::hash::BuildHasher as _;
use std::sync::LazyLock;

/// Drawn anew in each process, so that nobody makes labels that look like all others.
static HASHES: LazyLock<foldhash::fast::RandomState> = LazyLock::new(Default::default);

/// A few bits for each of some labels (a Bloom filter). Who lacks one of them, most often
/// does not have the bits, and no text has to be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Glance(u64);

impl Glance {
    pub(crate) fn of<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let bits = labels.map(|label| {
            let hash = HASHES.hash_one(label);
            // Two of 64 for each: of objects with five labels one in forty is looked at in
            // vain.
            1 << (hash & 63) | 1 << (hash >> 6 & 63)
        });
        Self(bits.fold(0, |all, bits: u64| all | bits))
    }

    /// Whether all labels of the other may be among these. Where it is no, they are not.
    pub(crate) fn may_have(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_there_is_never_missed(
            labels in prop::collection::vec(("[a-c]{0,2}", "[x-z]{0,2}"), 0..12),
            few in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            fn glance<'a>(labels: impl Iterator<Item = &'a (String, String)>) -> Glance {
                Glance::of(labels.map(|(key, value)| (&**key, &**value)))
            }
            let few = few.iter().filter(|_| !labels.is_empty());
            let some = few.map(|at| at.get(&labels));
            prop_assert!(glance(labels.iter()).may_have(glance(some)));
        }
    }

    #[test]
    fn most_of_what_is_not_there_is_told() {
        let names: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
        let wanted = Glance::of([("app", "none")].into_iter());
        let looked_at = names.iter().filter(|name| {
            let labels = ["app", "team", "tier"].map(|key| (key, &***name));
            Glance::of(labels.into_iter()).may_have(wanted)
        });
        let looked_at = looked_at.count();
        assert!(looked_at < 100, "{looked_at} of 1,000");
    }
}
