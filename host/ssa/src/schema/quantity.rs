//! Quantities: the one scalar of built-in kinds that a server rewrites.
//!
//! A client may send `1000m` or `1`, and reads `1` either way. Only whether two
//! texts mean the same amount is answered here; the canonical text is the server's
//! business.

use serde_json::Value;

use super::{Scalar, Schema, TypeRef};

/// Amounts are kept to a billionth, as in the server.
const PLACES: i32 = 9;

impl Schema {
    /// Replaces each quantity by its amount, so that two objects compare equal
    /// when they differ in the notation of quantities alone.
    pub fn amounts(&self, object: &mut Value) {
        self.amounts_in(self.root, object);
    }

    fn amounts_in(&self, ty: TypeRef, value: &mut Value) {
        let atom = self.atom(ty);
        match (value, &atom.map, &atom.list) {
            (Value::Object(object), Some(map), _) => {
                for (name, item) in object.iter_mut() {
                    if let Some(ty) = map.type_of(name) {
                        self.amounts_in(ty, item);
                    }
                }
            }
            (Value::Array(items), _, Some(list)) => {
                for item in items {
                    self.amounts_in(list.element, item);
                }
            }
            (value, _, _) if atom.scalar == Some(Scalar::Quantity) => {
                if let Some(amount) = amount(value) {
                    *value = Value::String(amount.to_string());
                }
            }
            _ => {}
        }
    }
}

/// The amount in billionths, rounded away from zero; none when the text is no
/// quantity or larger than the server keeps.
fn amount(value: &Value) -> Option<i128> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(&text);
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let (factor, exponent) = unit(suffix)?;
    let exponent = exponent
        .checked_add(PLACES)?
        .checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let size = digits.checked_mul(factor)?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    let amount = if exponent >= 0 {
        size.checked_mul(power)?
    } else {
        size / power + i128::from(size % power != 0)
    };
    Some(if text.starts_with('-') {
        -amount
    } else {
        amount
    })
}

/// What a suffix multiplies by: a factor, and a power of ten.
fn unit(suffix: &str) -> Option<(i128, i32)> {
    let binary = |power: u32| Some((1024_i128.pow(power), 0));
    match suffix {
        "n" => Some((1, -9)),
        "u" => Some((1, -6)),
        "m" => Some((1, -3)),
        "" => Some((1, 0)),
        "k" => Some((1, 3)),
        "M" => Some((1, 6)),
        "G" => Some((1, 9)),
        "T" => Some((1, 12)),
        "P" => Some((1, 15)),
        "E" => Some((1, 18)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            Some((1, exponent.parse().ok()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin;

    #[test]
    fn notations_of_one_amount_are_the_same() {
        for (a, b, same) in [
            (json!("1000m"), json!("1"), true),
            (json!("1"), json!(1), true),
            (json!("0.5"), json!("500m"), true),
            (json!(".5"), json!(0.5), true),
            (json!("1Gi"), json!("1024Mi"), true),
            (json!("1G"), json!("1Gi"), false),
            (json!("1e3"), json!("1k"), true),
            (json!("1E3"), json!("1k"), true),
            (json!("+1"), json!("1."), true),
            (json!("-1500u"), json!("-1.5m"), true),
            (json!("0.0000000001"), json!("1n"), true),
            (json!("0"), json!("-0"), true),
            (json!("1"), json!("2"), false),
        ] {
            assert!(amount(&a).is_some() && amount(&b).is_some(), "{a} {b}");
            assert_eq!(amount(&a) == amount(&b), same, "{a} {b}");
        }
    }

    #[test]
    fn other_text_has_no_amount() {
        for text in [
            "", ".", "1.2.3", "one", "1 ", "1Zi", "e3", "1e", "1e99", "--1",
        ] {
            assert_eq!(amount(&json!(text)), None, "{text}");
        }
        assert_eq!(amount(&json!(true)), None);
    }

    #[test]
    fn only_quantities_are_replaced() {
        let quota = builtin::schema("", "v1", "ResourceQuota").unwrap();
        let mut object = json!({
            "metadata": {"name": "1000m"},
            "spec": {"hard": {"cpu": "1000m", "x": "odd"}, "scopes": ["1000m"]},
        });
        quota.amounts(&mut object);
        let expected = json!({
            "metadata": {"name": "1000m"},
            "spec": {"hard": {"cpu": "1000000000", "x": "odd"}, "scopes": ["1000m"]},
        });
        assert_eq!(object, expected);
    }
}
