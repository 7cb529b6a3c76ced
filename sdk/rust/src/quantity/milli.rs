//! Thousandths, as Kubernetes computes them.
//!
//! It has two ways. Amounts of up to 18 digits are a number of 64 bits and a power of
//! ten; all others are exact decimals of which, in the end, the lowest 64 bits are kept.
//! Both round away from zero. What comes of an amount that does not fit into 64 bits
//! depends on the way, so both are followed here.

use super::{Parts, Unit};

/// Digits of a decimal amount that is a number of 64 bits.
const SHORT: usize = 18;
/// The finest power of ten of such an amount.
const FINEST: i32 = -9;
/// Digits of a binary amount that is a number of 64 bits, before those that its unit takes.
const SHORT_BINARY: i64 = 14;

/// `MilliValue` of `k8s.io/apimachinery/pkg/api/resource`.
pub(super) fn value(parts: &Parts<'_>) -> i64 {
    match (short(parts), parts.negative) {
        (Some((number, power)), false) => scaled(number, power),
        (Some((number, power)), true) => scaled(number, power).wrapping_neg(),
        (None, false) => exact(parts, 3),
        // Billionths of these are cut to 64 bits first, and rounded up then.
        (None, true) => {
            const STEP: i64 = 1_000_000;
            let billionths = exact(parts, 9).wrapping_neg();
            billionths / STEP + i64::from(billionths % STEP != 0)
        }
    }
}

/// The number of 64 bits and the power of ten that an amount is, unless it is too long.
fn short(parts: &Parts<'_>) -> Option<(i64, i32)> {
    let places = parts.fraction.len();
    // A number without digits before the point has a zero there.
    let before = parts.whole.len().max(1);
    let number = || {
        let digits = parts.whole.bytes().chain(parts.fraction.bytes());
        digits.fold(0_i64, |number, digit| {
            number
                .wrapping_mul(10)
                .wrapping_add(i64::from(digit - b'0'))
        })
    };
    match parts.unit {
        Unit::Decimal(power) if before + places <= SHORT => {
            let power = power.wrapping_sub(places as i32);
            (power >= FINEST).then(|| (number(), power))
        }
        Unit::Binary(power) if places == 0 => {
            let room = SHORT_BINARY - i64::from(power) * 3 / 10;
            let product = || number().checked_mul(1 << power);
            (before as i64 <= room)
                .then(product)?
                .map(|number| (number, 0))
        }
        Unit::Decimal(_) | Unit::Binary(_) => None,
    }
}

/// A number times a power of ten, in thousandths.
fn scaled(number: i64, power: i32) -> i64 {
    let shift = power.wrapping_add(3);
    if power < -3 {
        let divisor = 10_i64.pow(shift.unsigned_abs());
        return number / divisor + i64::from(number % divisor != 0);
    }
    match shift {
        // Some powers are multiplied with at once, and what does not fit is cut off.
        1 | 2 | 3 | 6 | 9 => number.wrapping_mul(10_i64.pow(shift.unsigned_abs())),
        // With others the result is zero then.
        _ if number == 0 => 0,
        _ => {
            let mut result = Some(number);
            for _ in 0..shift {
                result = result.and_then(|number| number.checked_mul(10));
                if result.is_none() {
                    break;
                }
            }
            result.unwrap_or(0)
        }
    }
}

/// The lowest 64 bits of the exact amount, without its sign, in units with so many decimal
/// places.
fn exact(parts: &Parts<'_>, unit: u32) -> i64 {
    let text = parts.whole.bytes().chain(parts.fraction.bytes());
    let mut digits: Vec<u8> = text.map(|digit| digit - b'0').collect();
    let mut places = parts.fraction.len() as i32;
    match parts.unit {
        Unit::Decimal(power) => places = places.wrapping_sub(power),
        Unit::Binary(power) => super::multiply(&mut digits, 1 << power),
    }
    // Amounts with a binary unit end where 64 bits do.
    let integer = digits.split_at(digits.len() - parts.fraction.len()).0;
    if matches!(parts.unit, Unit::Binary(_)) && !fits(integer) {
        return i64::MAX.wrapping_mul(10_i64.pow(unit));
    }
    // How many digits are finer than the unit.
    let finer = i64::from(places) - i64::from(unit);
    let finer_digits = usize::try_from(finer).map_or(0, |finer| finer.min(digits.len()));
    let (kept, cut) = digits.split_at(digits.len() - finer_digits);
    let append = |number: u64, digit: &u8| number.wrapping_mul(10).wrapping_add(u64::from(*digit));
    let mut number = kept.iter().fold(0, append);
    if cut.iter().any(|digit| *digit != 0) {
        number = number.wrapping_add(1);
    }
    // After 64 factors of ten nothing is left of a number of 64 bits.
    for _ in finer.clamp(-64, 0)..0 {
        number = number.wrapping_mul(10);
    }
    number as i64
}

/// Whether digits are a number below the largest of 64 bits.
fn fits(digits: &[u8]) -> bool {
    let append = |number: i64, digit: &u8| number.checked_mul(10)?.checked_add(i64::from(*digit));
    let number = digits.iter().try_fold(0_i64, append);
    number.is_some_and(|number| number < i64::MAX)
}
