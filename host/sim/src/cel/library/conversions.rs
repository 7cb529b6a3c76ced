//! Functions that make a value one of another type.

use kube_cel::cel::{ResolveResult, Value};

use super::{evaluated, failed, unconverted};
use crate::quantity::Quantity;

/// What these functions make of their arguments; none of others.
pub(super) fn own(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    let made = match (name, arguments) {
        ("bool", [value @ Value::Bool(_)]) | ("bytes", [value @ Value::Bytes(_)]) => {
            Some(value.clone())
        }
        ("bool", [Value::String(text)]) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(Value::Bool(false)),
            _ => None,
        },
        ("int", [Value::String(text)]) => text.parse().ok().map(Value::Int),
        ("int", [Value::Float(number)]) => {
            const END: f64 = 9_223_372_036_854_775_808.0;
            // Go takes none of the two ends.
            if !(*number > -END && *number < END) {
                return Some(Err(failed(name, "integer overflow")));
            }
            #[expect(clippy::cast_possible_truncation, reason = "it was looked at before")]
            let whole = *number as i64;
            Some(Value::Int(whole))
        }
        // In Go, a number without a sign is written without one.
        ("uint", [Value::String(text)]) => {
            let bare = Some(text).filter(|text| !text.starts_with('+'));
            bare.and_then(|text| text.parse().ok()).map(Value::UInt)
        }
        ("double", [Value::String(text)]) => {
            let number = text.parse::<f64>().ok();
            // What is too large is none, other than what is said to be infinite.
            let is_written = text.contains(|c: char| c.is_ascii_digit());
            let number = number.filter(|number| number.is_finite() || !is_written);
            number.map(Value::Float)
        }
        ("quantity", [Value::String(text)]) => {
            return Some(match Quantity::canonical(text) {
                Ok(canonical) => evaluated(name, &[canonical.into()], false),
                Err(why) => Err(failed(name, why.to_string())),
            });
        }
        ("isQuantity", [Value::String(text)]) => {
            Some(Value::Bool(Quantity::canonical(text).is_ok()))
        }
        ("asInteger", [Value::Opaque(_)]) => {
            let made = evaluated(name, arguments, true);
            return Some(made.map_err(|_| failed(name, "cannot convert value to integer")));
        }
        _ => return None,
    };
    Some(made.ok_or_else(|| unconverted(name, "string", name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_converted_as_in_go() {
        for (name, text, made) in [
            ("int", "+1", true),
            ("int", "a", false),
            ("int", "", false),
            ("int", " 1", false),
            ("int", "1_0", false),
            ("int", "99999999999999999999", false),
            ("uint", "1", true),
            ("uint", "+1", false),
            ("double", "Inf", true),
            ("double", "1e400", false),
            ("double", "0x10", false),
            ("bool", "T", true),
            ("bool", "yes", false),
        ] {
            let found = own(name, &[text.to_owned().into()]).unwrap();
            assert_eq!(found.is_ok(), made, "{name} {text}");
            if !made {
                assert_eq!(found, Err(unconverted(name, "string", name)));
            }
        }
    }
}
