//! The hashes that tell templates apart, in the letters of the real ones.
//!
//! The real controllers hash a dump of Go structures, which nobody else can make;
//! what is promised of the result is its form, and that equal templates have equal
//! hashes.

use serde_json::Value;

/// No vowels, so that no words come out.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The 32-bit FNV-1a hash.
const OFFSET: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

/// The hash of a template, and of how many other templates had that hash.
pub(super) fn of(template: &Value, collisions: Option<i64>) -> String {
    let mut hash = OFFSET;
    let salt = collisions
        .map(|count| count.to_string())
        .unwrap_or_default();
    for byte in template.to_string().bytes().chain(salt.bytes()) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(PRIME);
    }
    let digits = hash.to_string();
    let letter = |digit: u8| LETTERS.get(usize::from(digit) % LETTERS.len()).copied();
    digits.bytes().filter_map(letter).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_templates_have_equal_hashes() {
        let (a, b) = (json!({"spec": {"x": 1}}), json!({"spec": {"x": 2}}));
        assert_eq!(of(&a, None), of(&a, None));
        assert_ne!(of(&a, None), of(&b, None));
        assert_ne!(of(&a, None), of(&a, Some(1)));
        assert!(of(&a, None).bytes().all(|b| LETTERS.contains(&b)));
    }
}
