//! Amounts of resources, as the API server understands them.

mod milli;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::schema::{ConfigSchema, Schema};

/// An amount such as `500m`, `4Gi` or `1e3`.
///
/// Accepts exactly what `resource.ParseQuantity` of Kubernetes accepts, and keeps
/// the text as it was written, so that what a plugin applies is what people
/// wrote. Two spellings of one amount are therefore not equal here; amounts are
/// compared by [`Quantity::compare`].
///
/// ```
/// use reeve_sdk::Quantity;
///
/// let memory: Quantity = "1.5Gi".parse().unwrap();
/// assert_eq!(memory.as_str(), "1.5Gi");
/// assert!("1.5 GiB".parse::<Quantity>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Quantity(String);

/// A text that is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a quantity: expected a number such as `10`, `500m` or `4Gi`")]
pub struct NotAQuantity;

impl Quantity {
    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the amount is below zero.
    pub fn is_negative(&self) -> bool {
        self.parts()
            .is_some_and(|parts| parts.negative && !parts.is_zero())
    }

    /// Whether the amount has no fraction: `2`, `2k` and `0.5Ki`, but not `500m`.
    ///
    /// Fractions of binary units are computed to 18 digits; with more, none
    /// counts as whole.
    pub fn is_whole(&self) -> bool {
        self.parts().is_some_and(|parts| parts.is_whole())
    }

    /// The amount in thousandths, rounded away from zero: what `MilliValue` of Kubernetes
    /// gives, also for amounts beyond 64 bits. Of these it keeps the lowest 64 bits or
    /// gives 0, depending on the spelling.
    ///
    /// By this number the API server decides whether an amount of what it counts is
    /// whole, so that it takes `9223372036854775807` of something, and refuses
    /// `9223372036854776`.
    ///
    /// ```
    /// use reeve_sdk::Quantity;
    ///
    /// let cpu: Quantity = "1.5".parse().unwrap();
    /// assert_eq!(cpu.milli_value(), 1500);
    /// ```
    pub fn milli_value(&self) -> i64 {
        self.parts().map_or(0, |parts| milli::value(&parts))
    }

    /// Which of two amounts is larger, however they are written: `1Gi` is above `1G`, and
    /// `0.5` is `500m`.
    ///
    /// Exact, also where Kubernetes rounds up to a billionth or stops counting at 2^63.
    ///
    /// ```
    /// use reeve_sdk::Quantity;
    /// use std::cmp::Ordering;
    ///
    /// let [half, milli]: [Quantity; 2] = ["0.5", "500m"].map(|text| text.parse().unwrap());
    /// assert_eq!(half.compare(&milli), Ordering::Equal);
    /// ```
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self.parts(), other.parts()) {
            (Some(one), Some(other)) => Amount::of(&one).compare(&Amount::of(&other)),
            // None can be: both were read.
            (one, other) => one.is_some().cmp(&other.is_some()),
        }
    }

    fn parts(&self) -> Option<Parts<'_>> {
        Parts::of(&self.0)
    }
}

impl FromStr for Quantity {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        match Parts::of(text) {
            Some(_) => Ok(Self(text.to_owned())),
            None => Err(NotAQuantity),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl ConfigSchema for Quantity {
    const SCHEMA: &'static Schema = &Schema::String;
}

/// A quantity taken apart.
struct Parts<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros.
    whole: &'a str,
    /// Digits after the point.
    fraction: &'a str,
    unit: Unit,
}

/// What the number is multiplied with.
enum Unit {
    /// Ten to this power.
    Decimal(i32),
    /// Two to this power.
    Binary(u32),
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let rest = rest.trim_start_matches('0');
        let (whole, rest) = digits(rest);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        let parts = Self {
            negative,
            whole,
            fraction,
            unit: Unit::of(suffix)?,
        };
        // Kubernetes takes a number without any digit for zero as long as it
        // computes in 64 bits, which ends at the ninth decimal place, and at `Pi`.
        let number = &text[..text.len() - suffix.len()];
        let no_digit = !number.contains(|c: char| c.is_ascii_digit());
        match parts.unit {
            Unit::Decimal(power) if no_digit && power < -9 => None,
            Unit::Binary(power) if no_digit && power >= 50 => None,
            _ => Some(parts),
        }
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.bytes().all(|digit| digit == b'0')
    }

    fn is_whole(&self) -> bool {
        let fraction = self.fraction.trim_end_matches('0');
        match self.unit {
            _ if self.is_zero() => true,
            Unit::Decimal(power) if fraction.is_empty() => {
                let zeros = self.whole.len() - self.whole.trim_end_matches('0').len();
                i128::from(power) + zeros as i128 >= 0
            }
            Unit::Decimal(power) => i64::from(power) >= fraction.len() as i64,
            Unit::Binary(_) if fraction.is_empty() => true,
            Unit::Binary(power) => {
                let divisor = u32::try_from(fraction.len())
                    .ok()
                    .filter(|places| *places <= 18)
                    .map(|places| 10_u128.pow(places));
                match (divisor, fraction.parse::<u128>()) {
                    // Below 10^18 times 2^60: within 128 bits.
                    (Some(divisor), Ok(digits)) => (digits << power).is_multiple_of(divisor),
                    _ => false,
                }
            }
        }
    }
}

/// A quantity as a number: `0.digits` times ten to the power of `exponent`.
struct Amount {
    negative: bool,
    /// Values of digits, neither the first nor the last of them zero; none for zero.
    digits: Vec<u8>,
    exponent: i128,
}

impl Amount {
    fn of(parts: &Parts<'_>) -> Self {
        let text = parts.whole.bytes().chain(parts.fraction.bytes());
        let mut digits: Vec<u8> = text.map(|digit| digit - b'0').collect();
        let mut exponent = parts.whole.len() as i128;
        match parts.unit {
            Unit::Decimal(power) => exponent += i128::from(power),
            Unit::Binary(power) => {
                let before = digits.len();
                multiply(&mut digits, 1 << power);
                exponent += (digits.len() - before) as i128;
            }
        }
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        exponent -= zeros as i128;
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Self {
            negative: parts.negative && !digits.is_empty(),
            digits,
            exponent,
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        // Zero is below all that is above it, whatever its exponent.
        let size = |one: &Self| (!one.digits.is_empty()).then_some(one.exponent);
        let magnitude = || {
            let sizes = size(self).cmp(&size(other));
            sizes.then_with(|| self.digits.cmp(&other.digits))
        };
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => magnitude(),
            (true, true) => magnitude().reverse(),
        }
    }
}

/// Multiplies a number that is given by its digits.
fn multiply(digits: &mut Vec<u8>, factor: u64) {
    // A digit times 2^60 and what is carried fit into 64 bits.
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let product = u64::from(*digit) * factor + carry;
        *digit = (product % 10) as u8;
        carry = product / 10;
    }
    while carry > 0 {
        digits.insert(0, (carry % 10) as u8);
        carry /= 10;
    }
}

impl Unit {
    fn of(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            // Kubernetes reads 64 bits, and keeps the lower half of them.
            exponent => {
                let power: i64 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
                Self::Decimal(power as i32)
            }
        })
    }
}

/// The digits at the start, and the rest.
fn digits(text: &str) -> (&str, &str) {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    text.split_at(text.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Option<Quantity> {
        text.parse().ok()
    }

    /// What `MilliValue` of `k8s.io/apimachinery` 0.36.3 gives.
    #[test]
    fn thousandths_are_those_of_kubernetes() {
        for (text, milli) in [
            ("0", 0),
            (".", 0),
            ("1.5", 1500),
            ("-1.5", -1500),
            ("0.0001", 1),
            ("0.1n", 1),
            ("1.0000000000000000000001", 1001),
            ("0.5Ki", 512_000),
            ("008261.e3", 8_261_000_000),
            // Exponents are cut to 32 bits.
            ("1e9223372036854775807", 100),
            ("1e4294967299", 1_000_000),
            ("1e2147483647", 1),
            // Beyond 64 bits.
            ("9223372036854776", -9_223_372_036_854_775_616),
            ("9223372036854775806", -2000),
            ("9223372036854775807", -1000),
            ("999999999999999999", 3_875_820_019_684_211_736),
            ("99999999999999999999", 200_376_420_520_688_664),
            ("123456789012345678901234567890", 8_982_045_596_877_734_992),
            ("1e30", 0),
            ("7Ei", i64::MIN),
            ("9Ei", -1000),
            ("9223372036854775807Ki", -1000),
        ] {
            assert_eq!(parse(text).unwrap().milli_value(), milli, "{text}");
        }
    }

    #[test]
    fn quantities_are_what_kubernetes_accepts() {
        for text in [
            "0",
            "1",
            "00",
            "007",
            "+1",
            "-1",
            "-0",
            "1.5",
            "1.",
            ".5",
            "-.5",
            "+.5",
            "0.000",
            "5n",
            "5u",
            "5m",
            "5k",
            "5M",
            "5G",
            "5T",
            "5P",
            "5E",
            "5Ki",
            "5Mi",
            "5Gi",
            "5Ti",
            "5Pi",
            "5Ei",
            "1.5Gi",
            "1.G",
            "1e3",
            "1E3",
            "1e+3",
            "1e-3",
            "1E-3",
            "1.5e3",
            "1e0",
            "1e007",
            "123456789012345678901234567890",
            "1e9223372036854775807",
            // No digits at all: zero, in 64 bits.
            "+",
            "-",
            ".",
            "k",
            "Mi",
            ".m",
            "e3",
            "e-9",
        ] {
            assert_eq!(parse(text).expect(text).as_str(), text);
        }
        for text in [
            "",
            " ",
            " 1",
            "1 ",
            "1 Gi",
            "two",
            "abc",
            "1x",
            "1K",
            "1ki",
            "1mi",
            "1g",
            "1t",
            "1i",
            "1KiB",
            "1GB",
            "1kk",
            "1e",
            "1E+",
            "1e-",
            "1ee3",
            "1e3k",
            "1e1.5",
            "1e9223372036854775808",
            "--1",
            "+-1",
            "1-",
            "1.5.5",
            "1,5",
            "1_000",
            "0x10",
            "Inf",
            "NaN",
            "∞",
            "１",
            "e-10",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_below_zero_are_told() {
        for (text, negative) in [
            ("1", false),
            ("+1", false),
            ("-1", true),
            ("-0", false),
            ("-0.00Gi", false),
            ("-0.01", true),
            ("-1n", true),
            ("-", false),
            ("-e3", false),
            ("-00", false),
        ] {
            assert_eq!(parse(text).expect(text).is_negative(), negative, "{text}");
        }
    }

    #[test]
    fn fractions_are_told() {
        for (text, whole) in [
            ("1", true),
            ("0", true),
            ("-3", true),
            ("1.0", true),
            ("1.", true),
            ("1.5", false),
            (".5", false),
            ("1000m", true),
            ("100m", false),
            ("1.5k", true),
            ("1.0005k", false),
            ("0m", true),
            ("1n", false),
            ("1000000000n", true),
            ("1e-3", false),
            ("1000e-3", true),
            ("1.5e1", true),
            ("1.5e0", false),
            ("0.5Ki", true),
            ("0.1Ki", false),
            ("1.5Gi", true),
            ("0.0009765625Ki", true),
            ("7Ei", true),
            ("0.1234567890123456789Ei", false),
        ] {
            assert_eq!(parse(text).expect(text).is_whole(), whole, "{text}");
        }
    }

    #[test]
    fn amounts_are_compared_however_they_are_written() {
        let order = [
            "-1e2147483647",
            "-1Gi",
            "-1G",
            "-0.5",
            "-1n",
            "0",
            "1e-2147483647",
            "1n",
            "499m",
            "0.5",
            "0.51",
            "1",
            "1000.5",
            "1.001k",
            "1Ki",
            "256M",
            "256Mi",
            "0.9999E",
            "1E",
            "1Ei",
            "7Ei",
            "123456789012345678901234567890",
            "1e2147483647",
        ];
        for (place, one) in order.iter().enumerate() {
            for (other_place, other) in order.iter().enumerate() {
                let compared = parse(one).unwrap().compare(&parse(other).unwrap());
                assert_eq!(compared, place.cmp(&other_place), "{one} and {other}");
            }
        }
        for same in [
            ["0.5", "500m"],
            ["1Ki", "1.024k"],
            ["-0", "0Ei"],
            ["007", "7.000"],
            ["1e3", "1k"],
            ["-1.5Gi", "-1536Mi"],
            [".", "0"],
        ] {
            let [one, other] = same.map(|text| parse(text).expect(text));
            assert_eq!(one.compare(&other), Ordering::Equal, "{same:?}");
        }
    }

    #[test]
    fn configuration_holds_quantities_as_text() {
        let read = |json: &str| crate::json::from_slice::<Vec<Quantity>>(json.as_bytes());
        assert_eq!(read(r#"["4Gi"]"#).unwrap(), [Quantity("4Gi".to_owned())]);
        assert_eq!(
            read(r#"["4Gi", "4GB"]"#).unwrap_err().to_string(),
            "/1: not a quantity: expected a number such as `10`, `500m` or `4Gi`"
        );
    }

    proptest! {
        #[test]
        fn well_formed_text_parses_and_stays_as_it_is(
            text in r"[+-]?[0-9]{1,20}(\.[0-9]{0,12})?(|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,9})"
        ) {
            prop_assert_eq!(parse(&text).map(|quantity| quantity.0), Some(text));
        }

        #[test]
        fn other_characters_never_parse(
            before in "[0-9]{0,3}", odd in r"[^0-9+\-.numkMGTPEKie]", after in "[0-9kMi]{0,3}"
        ) {
            prop_assert_eq!(parse(&format!("{before}{odd}{after}")), None);
        }

        #[test]
        fn order_agrees_with_arithmetic(
            [one, other] in prop::array::uniform2((
                -1_000_000_i64..1_000_000,
                prop_oneof![
                    Just(("m", 1_i64)), Just(("", 1_000)), Just(("k", 1_000_000)), Just(("Ki", 1_024_000)),
                ],
            )),
        ) {
            let text = |(number, (unit, _))| parse(&format!("{number}{unit}")).unwrap();
            let amount = |(number, (_, factor))| number * factor;
            prop_assert_eq!(text(one).compare(&text(other)), amount(one).cmp(&amount(other)));
        }

        #[test]
        fn sign_and_fraction_agree_with_arithmetic(
            thousandths in -1_000_000_000_i64..1_000_000_000,
            (unit, factor) in prop_oneof![
                Just(("m", 1_i64)), Just(("", 1_000)), Just(("k", 1_000_000)), Just(("Ki", 1_024_000)),
            ],
        ) {
            let sign = if thousandths < 0 { "-" } else { "" };
            let number = thousandths.unsigned_abs();
            let text = format!("{sign}{}.{:03}{unit}", number / 1000, number % 1000);
            let quantity = parse(&text).unwrap();
            prop_assert_eq!(quantity.is_negative(), thousandths < 0);
            // In millionths of one.
            prop_assert_eq!(quantity.is_whole(), (i128::from(thousandths) * i128::from(factor)) % 1_000_000 == 0);
        }
    }
}
