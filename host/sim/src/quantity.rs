//! Resource quantities: exact amounts such as `500Gi`, `100m` or `1e3`, and the
//! canonical text the server stores for them.
//!
//! Amounts are integers of billionths, the finest step the API knows; amounts
//! finer than that are rounded away from zero, and amounts beyond the range of
//! the integer stay at its end. Nothing is decided in floating point.

mod milli;

use std::cmp::Ordering;
use std::fmt;

pub use self::milli::milli_value;

/// Why a text is no quantity, in the server's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a number with a suffix.
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// A number with an unknown suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// A number that cannot be read.
    #[error("unable to parse numeric part of quantity")]
    Number,
}

/// How a quantity is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `12M`
    Decimal,
    /// `12Mi`
    Binary,
    /// `12e6`
    Exponent,
}

/// An exact amount.
#[derive(Debug, Clone)]
pub struct Quantity {
    nanos: i128,
    format: Format,
    /// The text as it was given, when the server keeps it instead of writing
    /// the amount anew.
    verbatim: Option<String>,
}

const NANOS: i128 = 1_000_000_000;
/// Amounts in decimal notation are not bounded in the server, but here they are: by
/// the largest number of billionths whose canonical text is read as itself.
const LARGEST: i128 = i128::MAX / 1_000_000_000_000_000_000 * 1_000_000_000_000_000_000;
/// Amounts written with binary suffixes stop here.
const BINARY_MAX: i128 = (i64::MAX as i128) * NANOS;
/// Numbers of more digits leave the server's fast path, which is the one that
/// keeps texts as given.
const FAST_DIGITS: usize = 18;
const DECIMAL_SUFFIXES: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY_SUFFIXES: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

/// The parts of a quantity's text.
struct Parts<'a> {
    negative: bool,
    /// Without leading zeros; `0` when nothing else is left.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl Quantity {
    /// Reads a quantity.
    ///
    /// # Errors
    ///
    /// Those of the server, which is lenient about missing digits (`.5`, `5.`).
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let parts = split(text)?;
        let (format, scale, shift) = interpret(parts.suffix)?;
        let number = text.strip_suffix(parts.suffix).unwrap_or(text);
        // Without any digit it is zero, as long as it is an integer for the server.
        if !number.contains(|c: char| c.is_ascii_digit())
            && milli::short(&parts, format, scale, shift).is_none()
        {
            return Err(QuantityError::Number);
        }
        let digits = parts.whole.len() + parts.fraction.len();
        let places = i32::try_from(parts.fraction.len()).map_err(|_| QuantityError::Number)?;
        let scale = scale.saturating_sub(places);
        let magnitude = match format {
            Format::Binary => round(parts.whole, parts.fraction, scale, shift).min(BINARY_MAX),
            Format::Decimal | Format::Exponent => round(parts.whole, parts.fraction, scale, 0),
        };
        let verbatim = is_kept(&parts, format, scale, shift, digits).then(|| text.to_owned());
        let format = match format {
            Format::Binary
                if digits > 0 && verbatim.is_none() && magnitude > 0 && magnitude < NANOS =>
            {
                Format::Decimal
            }
            other => other,
        };
        Ok(Quantity {
            nanos: if parts.negative {
                -magnitude
            } else {
                magnitude
            },
            format,
            verbatim,
        })
    }

    /// A whole amount without suffix.
    pub fn from_integer(amount: i64) -> Self {
        Quantity {
            nanos: i128::from(amount) * NANOS,
            format: Format::Decimal,
            verbatim: None,
        }
    }

    /// The canonical text of `text`, which is what the server stores.
    ///
    /// # Errors
    ///
    /// As [`Quantity::parse`].
    pub fn canonical(text: &str) -> Result<String, QuantityError> {
        Self::parse(text).map(|quantity| quantity.to_string())
    }

    /// The amount rounded away from zero to thousandths, the finest step that
    /// lists of resources keep.
    #[must_use]
    pub fn to_milli(self) -> Self {
        const STEP: i128 = NANOS / 1000;
        if self.nanos % STEP == 0 {
            return self;
        }
        let steps = self.nanos / STEP + self.nanos.signum();
        Quantity {
            nanos: steps.saturating_mul(STEP),
            format: self.format,
            verbatim: None,
        }
    }

    /// Whether the amount is below zero.
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Whether the amount has no fraction.
    pub fn is_whole(&self) -> bool {
        self.nanos % NANOS == 0
    }

    /// The amount rounded up to a whole one, as the server's `Value()`.
    pub fn ceil(&self) -> i128 {
        let floor = self.nanos.div_euclid(NANOS);
        floor + i128::from(self.nanos.rem_euclid(NANOS) != 0)
    }

    /// Whether this is more than `dividend` by `divisor`; then the quotient with
    /// six decimals. More than anything is exceeded by nothing, so a zero divisor
    /// is never exceeded.
    pub fn exceeds(&self, dividend: &Quantity, divisor: &Quantity) -> Option<String> {
        if divisor.nanos == 0 {
            return None;
        }
        let exceeds =
            self.nanos.saturating_mul(divisor.nanos) > dividend.nanos.saturating_mul(NANOS);
        exceeds.then(|| quotient(dividend, divisor))
    }

    /// Whether `dividend` by `divisor` is more than this; then the quotient with six
    /// decimals.
    pub fn is_less_than_ratio(&self, dividend: &Quantity, divisor: &Quantity) -> Option<String> {
        let most = self.nanos.saturating_mul(divisor.nanos);
        let exceeds = dividend.nanos.saturating_mul(NANOS) > most;
        exceeds.then(|| quotient(dividend, divisor))
    }

    /// The sum, in the notation of the first that is not zero.
    #[must_use]
    pub fn plus(&self, other: &Quantity) -> Self {
        let format = if self.is_zero() {
            other.format
        } else {
            self.format
        };
        Quantity {
            nanos: self.nanos.saturating_add(other.nanos),
            format,
            verbatim: None,
        }
    }

    /// The difference, in the notation of the first that is not zero.
    #[must_use]
    pub fn minus(&self, other: &Quantity) -> Self {
        let negated = Quantity {
            nanos: -other.nanos,
            format: other.format,
            verbatim: None,
        };
        self.plus(&negated)
    }

    /// The amount rounded away from zero to a whole one.
    #[must_use]
    pub fn to_whole(self) -> Self {
        if self.is_whole() {
            return self;
        }
        let whole = self.nanos / NANOS + self.nanos.signum();
        Quantity {
            nanos: whole.saturating_mul(NANOS),
            format: self.format,
            verbatim: None,
        }
    }

    fn write_decimal(&self, f: &mut fmt::Formatter<'_>, exponent_form: bool) -> fmt::Result {
        let mut number = self.nanos;
        let mut exponent = -9;
        while number % 1000 == 0 && exponent < 18 {
            number /= 1000;
            exponent += 3;
        }
        if exponent_form {
            return match exponent {
                0 => write!(f, "{number}"),
                _ => write!(f, "{number}e{exponent}"),
            };
        }
        let suffix = DECIMAL_SUFFIXES
            .iter()
            .find(|(_, e)| *e == exponent)
            .map_or("", |(suffix, _)| suffix);
        write!(f, "{number}{suffix}")
    }

    fn write_binary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut number = self.nanos / NANOS;
        let mut suffix = "";
        for (next, _) in BINARY_SUFFIXES {
            if number % 1024 != 0 {
                break;
            }
            number /= 1024;
            suffix = next;
        }
        write!(f, "{number}{suffix}")
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.verbatim {
            return f.write_str(text);
        }
        if self.nanos == 0 {
            return f.write_str("0");
        }
        match self.format {
            // Small and fractional amounts would lose their precision.
            Format::Binary if self.nanos.abs() >= 1024 * NANOS && self.is_whole() => {
                self.write_binary(f)
            }
            Format::Binary | Format::Decimal => self.write_decimal(f, false),
            Format::Exponent => self.write_decimal(f, true),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// Six decimals of a quotient, as the server shows it: of thousandths, in floating point.
#[expect(
    clippy::cast_precision_loss,
    reason = "the server divides so, and it is only shown"
)]
fn quotient(dividend: &Quantity, divisor: &Quantity) -> String {
    const STEP: i128 = NANOS / 1000;
    let quotient = (dividend.nanos / STEP) as f64 / (divisor.nanos / STEP) as f64;
    format!("{quotient:.6}")
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    let rest = rest.trim_start_matches('0');
    let (whole, rest) = digits(rest);
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
    let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    if !digits(exponent).1.is_empty() {
        return Err(QuantityError::Format);
    }
    Ok(Parts {
        negative,
        whole: if whole.is_empty() { "0" } else { whole },
        fraction,
        suffix,
    })
}

/// The leading digits of a text, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// The format, decimal exponent and binary exponent of a suffix.
fn interpret(suffix: &str) -> Result<(Format, i32, u32), QuantityError> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(s, _)| *s == suffix) {
        return Ok((Format::Decimal, *exponent, 0));
    }
    if let Some((_, shift)) = BINARY_SUFFIXES.iter().find(|(s, _)| *s == suffix) {
        return Ok((Format::Binary, 0, *shift));
    }
    let exponent = suffix
        .strip_prefix(['e', 'E'])
        .and_then(|exponent| exponent.parse::<i64>().ok());
    match exponent {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the server reads 64 bits and keeps the lower half"
        )]
        Some(exponent) => Ok((Format::Exponent, exponent as i32, 0)),
        None => Err(QuantityError::Suffix),
    }
}

/// The digits times ten to the `scale` times two to the `shift`, in billionths,
/// rounded away from zero.
fn round(whole: &str, fraction: &str, scale: i32, shift: u32) -> i128 {
    let mut number = 0_i128;
    let mut scale = scale.saturating_add(9);
    let mut rest = false;
    for digit in whole.bytes().chain(fraction.bytes()) {
        let digit = i128::from(digit - b'0');
        // Past the range, digits only count towards the size of the number.
        match number.checked_mul(10).and_then(|n| n.checked_add(digit)) {
            Some(next) if next <= i128::MAX >> (shift + 1) => number = next,
            _ => {
                rest |= digit != 0;
                scale = scale.saturating_add(1);
            }
        }
    }
    number <<= shift;
    while scale > 0 && number != 0 {
        number = number.saturating_mul(10);
        scale -= 1;
        if number > LARGEST {
            return LARGEST;
        }
    }
    while scale < 0 && number != 0 {
        rest |= number % 10 != 0;
        number /= 10;
        scale += 1;
    }
    number.saturating_add(i128::from(rest)).min(LARGEST)
}

/// Whether the server keeps the text as given. It does so when its fast path
/// believes the text canonical, which it decides from the digits alone.
fn is_kept(parts: &Parts<'_>, format: Format, scale: i32, shift: u32, digits: usize) -> bool {
    let shifted = format!("{}{}", parts.whole, parts.fraction);
    match format {
        Format::Binary => {
            // The digits left for the number once the suffix has taken its own.
            let room = 15 - i32::try_from(shift * 3 / 10).unwrap_or(i32::MAX) - 1;
            let fits = i32::try_from(parts.whole.len()).is_ok_and(|len| len <= room);
            let odd = shifted.parse::<i64>().is_ok_and(|n| n & 7 != 0);
            parts.fraction.is_empty() && fits && odd
        }
        Format::Decimal | Format::Exponent => {
            digits <= FAST_DIGITS
                && scale >= -9
                && scale % 3 == 0
                && !shifted.ends_with("000")
                && !shifted.starts_with('0')
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_texts() {
        let cases = [
            ("0", "0"),
            ("00", "0"),
            (".", "0"),
            ("-", "0"),
            ("5", "5"),
            ("+5", "+5"),
            ("5.", "5."),
            ("0.1", "100m"),
            (".5", "500m"),
            ("-0.5", "-500m"),
            ("1.5", "1500m"),
            ("1500m", "1500m"),
            ("1000m", "1"),
            ("1000", "1k"),
            ("100000", "100k"),
            ("1024", "1024"),
            ("1000000", "1M"),
            ("368G", "368G"),
            ("500Gi", "500Gi"),
            ("1024Mi", "1Gi"),
            ("2048Ki", "2Mi"),
            ("1000Ki", "1000Ki"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("0.5Gi", "512Mi"),
            ("0.3Gi", "322122547200m"),
            ("1Ei", "1Ei"),
            ("9Ei", "9223372036854775807"),
            ("1e3", "1e3"),
            ("1000e3", "1e6"),
            ("12E6", "12E6"),
            ("1e4294967299", "1e4294967299"),
            ("1000e4294967296", "1e3"),
            ("1.5e3", "1500"),
            ("0.001e3", "1"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("0.0000000001", "1n"),
            ("-0.0000000001", "-1n"),
            ("1.0000000001", "1000000001n"),
            ("100u", "100u"),
            ("1000u", "1m"),
            ("1E", "1E"),
            ("1P", "1P"),
            ("0.5m", "500u"),
            ("1.500", "1.500"),
            ("010", "010"),
            ("0Gi", "0"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
        ];
        for (given, canonical) in cases {
            assert_eq!(
                Quantity::canonical(given).as_deref(),
                Ok(canonical),
                "{given}"
            );
        }
    }

    #[test]
    fn malformed_texts() {
        let check = |text: &str, error| assert_eq!(Quantity::parse(text), Err(error), "{text:?}");
        check("", QuantityError::Format);
        check("abc", QuantityError::Format);
        check("1 Gi", QuantityError::Format);
        check("1x", QuantityError::Format);
        check("1.2.3", QuantityError::Format);
        check("1ki", QuantityError::Suffix);
        check("1K", QuantityError::Suffix);
        check("1Gi5", QuantityError::Suffix);
        check("1e", QuantityError::Suffix);
        check("Pi", QuantityError::Number);
        check("-.e-12", QuantityError::Number);
        assert!(Quantity::parse("Ti").is_ok());
        check("1e18446744073709551616", QuantityError::Suffix);
    }

    #[test]
    fn amounts_compare_across_formats() {
        let amount = |text| Quantity::parse(text).unwrap();
        assert_eq!(amount("1Ki"), amount("1024"));
        assert_eq!(amount("1"), amount("1000m"));
        assert!(amount("1Gi") > amount("1G"));
        assert!(amount("-1") < amount("0"));
        assert_eq!(amount("1.2").ceil(), 2);
        assert_eq!(amount("-1.2").ceil(), -1);
        assert_eq!(amount("0.1u").to_milli().to_string(), "1m");
        assert_eq!(amount("-1.5m").to_milli().to_string(), "-2m");
        assert_eq!(amount("1.500").to_milli().to_string(), "1.500");
        assert!(amount("2").is_whole() && !amount("2m").is_whole());
        assert_eq!(amount("1Gi").plus(&amount("1024Mi")).to_string(), "2Gi");
        assert_eq!(amount("0").plus(&amount("1Gi")).to_string(), "1Gi");
        assert_eq!(amount("1500m").plus(&amount("1")).to_string(), "2500m");
        assert_eq!(amount("1Gi").minus(&amount("1024Mi")).to_string(), "0");
        assert_eq!(amount("500m").minus(&amount("1")).to_string(), "-500m");
        assert_eq!(amount("1.2").to_whole().to_string(), "2");
        assert_eq!(amount("-1.2").to_whole().to_string(), "-2");
        assert_eq!(amount("1Gi").to_whole().to_string(), "1Gi");
        let two = amount("2");
        assert_eq!(two.is_less_than_ratio(&amount("4"), &amount("2")), None);
        assert_eq!(
            two.is_less_than_ratio(&amount("1"), &amount("300m")),
            Some("3.333333".to_owned())
        );
        let huge = two.is_less_than_ratio(&amount("1e30"), &amount("1"));
        assert!(huge.is_some_and(|ratio| ratio.ends_with(".000000") && !ratio.starts_with('-')));
        let far = two.exceeds(&amount("1"), &amount("1e30"));
        assert_eq!(far.as_deref(), Some("0.000000"));
    }

    proptest::proptest! {
        #[test]
        fn canonical_is_a_fixed_point(text in "[+-]?[0-9]{0,10}(\\.[0-9]{0,12})?(|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e[0-9]|E-[0-9])") {
            let Ok(quantity) = Quantity::parse(&text) else { return Ok(()) };
            let canonical = quantity.to_string();
            let again = Quantity::parse(&canonical).unwrap();
            proptest::prop_assert_eq!(&again.to_string(), &canonical);
            proptest::prop_assert_eq!(again, quantity);
        }
    }
}
