//! How little and how much something may be.

/// A size or a cost: at least so much, at most so much. What would be too large for the
/// number is as large as that can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Range {
    /// Anything.
    pub(super) const UNKNOWN: Range = Range {
        least: 0,
        most: u64::MAX,
    };
    /// That which any other takes the place of when both are joined.
    pub(super) const NEITHER: Range = Range {
        least: u64::MAX,
        most: 0,
    };

    /// Exactly so much.
    pub(super) const fn fixed(number: u64) -> Self {
        Range {
            least: number,
            most: number,
        }
    }

    /// From nothing to so much.
    pub(super) const fn up_to(most: u64) -> Self {
        Range { least: 0, most }
    }

    pub(super) fn plus(self, other: Range) -> Self {
        Range {
            least: self.least.saturating_add(other.least),
            most: self.most.saturating_add(other.most),
        }
    }

    pub(super) fn times(self, other: Range) -> Self {
        Range {
            least: self.least.saturating_mul(other.least),
            most: self.most.saturating_mul(other.most),
        }
    }

    /// So many times as much, rounded up.
    pub(super) fn scaled(self, factor: f64) -> Self {
        Range {
            least: scaled(self.least, factor),
            most: scaled(self.most, factor),
        }
    }

    /// What holds for the one as well as for the other.
    pub(super) fn joined(self, other: Range) -> Self {
        Range {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }
}

/// The conversion to a whole number stays within what that can be.
fn scaled(number: u64, factor: f64) -> u64 {
    (number as f64 * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_overflow() {
        let unknown = Range::UNKNOWN;
        assert_eq!(
            unknown.plus(Range::fixed(1)),
            Range {
                least: 1,
                ..unknown
            }
        );
        assert_eq!(unknown.times(unknown), unknown);
        assert_eq!(unknown.scaled(2.0), unknown);
        assert_eq!(Range::fixed(31).scaled(0.1), Range::fixed(4));
        assert_eq!(Range::fixed(0).scaled(0.1), Range::fixed(0));
        assert_eq!(Range::NEITHER.joined(Range::fixed(3)), Range::fixed(3));
    }
}
