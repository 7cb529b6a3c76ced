//! Fractions that spread attempts in time.

use std::hash::{BuildHasher as _, DefaultHasher, Hash, Hasher as _, RandomState};

/// Where fractions come from: those who fail together are not to come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jitter(u64);

impl Jitter {
    /// Fractions that nobody else has.
    pub(crate) fn random() -> Self {
        Self(RandomState::new().hash_one(0_u64))
    }

    /// Those of a seed, the same in each run of one build.
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Those of one among several who wait.
    pub(crate) fn of(self, name: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        name.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// A number in 0..=1 for one attempt.
    pub(crate) fn fraction(self, attempt: u64) -> f64 {
        let bits = self.of(&attempt).0 >> 32;
        // 32 bits fit a float exactly.
        f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_differ_by_seed_name_and_attempt() {
        let seeded = Jitter::seeded(1);
        let fractions = [
            seeded.fraction(1),
            seeded.fraction(2),
            Jitter::seeded(2).fraction(1),
            seeded.of(&"pods").fraction(1),
            seeded.of(&"nodes").fraction(1),
            Jitter::random().fraction(1),
            Jitter::random().fraction(1),
        ];
        for (index, one) in fractions.iter().enumerate() {
            assert!((0.0..=1.0).contains(one), "{fractions:?}");
            for other in &fractions[..index] {
                assert!((one - other).abs() > 1e-9, "{fractions:?}");
            }
        }
        assert_eq!(seeded, Jitter::seeded(1));
        assert_eq!(seeded.of(&"pods"), seeded.of(&"pods"));
    }
}
