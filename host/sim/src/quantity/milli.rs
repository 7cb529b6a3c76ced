//! Amounts in thousandths, as the server counts them to see whether one is whole.
//!
//! It counts in 64 bits and does not ask whether that is enough: what is beyond them is
//! cut off. Of large amounts some are whole then, and others not, which also depends on
//! how they are written. Short numbers it keeps as an integer with a power of ten, others
//! as decimals of any length.

use super::{BINARY_MAX, FAST_DIGITS, Format, Parts, Quantity, QuantityError, interpret, split};

/// The power of ten of a thousandth.
const MILLI: i32 = -3;
/// The power of ten of the finest step.
const NANO: i32 = -9;

/// The thousandths of an amount, rounded away from zero, as far as 64 bits go.
///
/// # Errors
///
/// As [`Quantity::parse`].
pub fn milli_value(text: &str) -> Result<i64, QuantityError> {
    let quantity = Quantity::parse(text)?;
    let parts = split(text)?;
    let (format, exponent, shift) = interpret(parts.suffix)?;
    let value = match short(&parts, format, exponent, shift) {
        Some((number, scale)) => scaled(number, scale),
        None if format == Format::Binary && quantity.nanos.abs() >= BINARY_MAX => {
            // The largest amount with such a suffix.
            i64::MAX.wrapping_mul(1000)
        }
        None => long(&parts, exponent, shift),
    };
    Ok(if parts.negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// A number that fits an integer, and its power of ten.
pub(super) fn short(
    parts: &Parts<'_>,
    format: Format,
    exponent: i32,
    shift: u32,
) -> Option<(i64, i32)> {
    let digits = parts.whole.len() + parts.fraction.len();
    let (room, factor, scale) = match format {
        Format::Decimal | Format::Exponent => (FAST_DIGITS, 1, exponent),
        Format::Binary if parts.fraction.is_empty() => {
            // What is left of the digits once the suffix has taken its own.
            let taken = usize::try_from(shift * 3 / 10).unwrap_or(usize::MAX);
            (14_usize.checked_sub(taken)?, 1_i64 << shift, 0)
        }
        Format::Binary => return None,
    };
    let places = i32::try_from(parts.fraction.len()).ok()?;
    let scale = scale.wrapping_sub(places);
    if digits > room || scale < NANO {
        return None;
    }
    let number: i64 = [parts.whole, parts.fraction].concat().parse().ok()?;
    Some((number.checked_mul(factor)?, scale))
}

/// Such a number in thousandths.
fn scaled(number: i64, scale: i32) -> i64 {
    if scale < MILLI {
        let by = 10_i64.pow(scale.abs_diff(MILLI));
        return number / by + i64::from(number % by != 0);
    }
    let by = scale.wrapping_sub(MILLI);
    match u32::try_from(by) {
        Err(_) => number,
        // These powers are multiplied with at once, and cut off. With others an overflow
        // is seen, and leaves nothing.
        Ok(by @ (0..=3 | 6 | 9)) => number.wrapping_mul(10_i64.pow(by)),
        Ok(by) => {
            let power = 10_i64.checked_pow(by);
            power
                .and_then(|power| number.checked_mul(power))
                .unwrap_or(0)
        }
    }
}

/// Any other number in thousandths.
fn long(parts: &Parts<'_>, exponent: i32, shift: u32) -> i64 {
    let digits = [parts.whole, parts.fraction].concat();
    let places = i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX);
    // How many of the digits are beyond thousandths.
    let beyond = places - i64::from(exponent) + i64::from(MILLI);
    let Ok(beyond) = usize::try_from(beyond) else {
        let power = u32::try_from(beyond.unsigned_abs()).unwrap_or(u32::MAX);
        // Of more powers of ten than bits nothing is left.
        let power = if power < u64::BITS {
            10_u64.wrapping_pow(power)
        } else {
            0
        };
        return (low(&digits).wrapping_mul(power) << shift).cast_signed();
    };
    let (kept, rest) = digits.split_at(digits.len().saturating_sub(beyond));
    let (carried, is_left) = if shift == 0 {
        (0, rest.bytes().any(|digit| digit != b'0'))
    } else {
        doubled(rest, shift)
    };
    let whole = (low(kept) << shift).wrapping_add(carried);
    whole.wrapping_add(u64::from(is_left)).cast_signed()
}

/// The lowest bits of a number.
fn low(digits: &str) -> u64 {
    digits.bytes().fold(0, |number: u64, digit| {
        number
            .wrapping_mul(10)
            .wrapping_add(u64::from(digit.wrapping_sub(b'0')))
    })
}

/// What comes before the point when a fraction with these digits is doubled so often, and
/// whether anything is left behind it.
fn doubled(fraction: &str, times: u32) -> (u64, bool) {
    let mut digits: Vec<u8> = fraction.bytes().map(|d| d.wrapping_sub(b'0')).collect();
    let mut whole = 0;
    for _ in 0..times {
        let mut carry = 0;
        for digit in digits.iter_mut().rev() {
            let twice = *digit * 2 + carry;
            (*digit, carry) = (twice % 10, twice / 10);
        }
        whole = whole * 2 + u64::from(carry);
    }
    (whole, digits.iter().any(|digit| *digit != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found with the published library, after its rounding to thousandths.
    #[test]
    fn thousandths_are_counted_as_by_the_server() {
        let cases = [
            ("0", 0),
            ("5", 5000),
            ("1500m", 1500),
            ("-1500m", -1500),
            ("1u", 1),
            ("-1u", -1),
            ("1500u", 2),
            ("1n", 1),
            ("0.0000000001", 1),
            ("1e3", 1_000_000),
            ("1e4294967299", 1_000_000),
            ("1e-3", 1),
            ("1e-4", 1),
            ("9223372036854775", 9_223_372_036_854_775_000),
            ("9223372036854776", -9_223_372_036_854_775_616),
            ("-9223372036854776", 9_223_372_036_854_775_616),
            ("9223372036854776k", 192_000),
            ("9223372036854776M", 192_000_000),
            ("9223372036854776G", 0),
            ("10P", 0),
            ("10E", 0),
            ("9223372036854775807", -1000),
            ("9223372036854775808", 0),
            ("10000000000000000000", 1_864_712_049_423_024_128),
            ("123456789012345678", -5_670_419_503_621_183_312),
            ("1234567890123456789", -1_363_962_815_083_169_272),
            ("1234567890123456789.5", -1_363_962_815_083_168_772),
            ("123456789012345678901234567890", 8_982_045_596_877_734_992),
            (
                "-123456789012345678901234567890",
                -8_982_045_596_877_734_992,
            ),
            ("1e100", 0),
            ("12345e17", 0),
            ("1Ki", 1_024_000),
            ("1.5Ki", 1_536_000),
            ("0.3Ki", 307_200),
            ("-0.3Ki", -307_200),
            ("0.3Gi", 322_122_547_200),
            ("1Ti", 1_099_511_627_776_000),
            ("8Pi", 9_007_199_254_740_992_000),
            ("9Pi", -8_313_644_912_125_935_616),
            ("1Ei", i64::MIN),
            ("7.9Ei", -4_611_686_018_427_387_904),
            ("8Ei", -1000),
            ("9Ei", -1000),
            ("-9Ei", 1000),
            ("1.0000000000000000000000001Gi", 1_073_741_824_001),
            ("99999999999999Ki", -8_280_464_442_258_333_696),
            ("9223372036854775807Ki", -1000),
            ("0.00000000000000000000000000001", 1),
            ("12345678901234567890.0001", 4_807_115_922_877_858_897),
            ("-12345678901234567890.0001", -4_807_115_922_877_858_897),
            ("1.23456789e20", 0),
            ("1e+5", 100_000_000),
            ("1e9223372036854775807", 100),
            ("1e-9223372036854775808", 1000),
        ];
        for (text, expected) in cases {
            assert_eq!(milli_value(text), Ok(expected), "{text}");
        }
        let beyond = milli_value("1e18446744073709551615");
        assert_eq!(beyond, Err(QuantityError::Suffix));
    }
}
