//! JSON Pointers (RFC 6901).

use super::remove::{Location, Step};
use serde_json::Value;

/// A JSON Pointer, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer(Vec<String>);

impl Pointer {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(Vec::new()));
        }
        let keys = text.strip_prefix('/')?.split('/').map(unescape);
        keys.collect::<Option<_>>().map(Self)
    }

    pub(super) fn identifies(&self) -> bool {
        Location(self.0.iter().cloned().map(Step::Field).collect()).identifies()
    }

    /// Where it points to in an object, if there is something.
    pub(super) fn find(&self, object: &Value) -> Option<Location> {
        let mut value = object;
        let mut steps = Vec::with_capacity(self.0.len());
        for key in &self.0 {
            (value, steps) = match value {
                Value::Object(fields) => {
                    steps.push(Step::Field(key.clone()));
                    (fields.get(key)?, steps)
                }
                Value::Array(items) => {
                    let index = index(key)?;
                    steps.push(Step::Item(index));
                    (items.get(index)?, steps)
                }
                _ => return None,
            };
        }
        Some(Location(steps))
    }
}

/// Without leading zeros and signs.
fn index(key: &str) -> Option<usize> {
    let plain =
        key.bytes().all(|byte| byte.is_ascii_digit()) && (key == "0" || !key.starts_with('0'));
    plain.then(|| key.parse().ok()).flatten()
}

/// `~1` is a slash and `~0` a tilde; no other tilde is allowed.
fn unescape(key: &str) -> Option<String> {
    let mut parts = key.split('~');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (escaped, rest) = match part.as_bytes().first()? {
            b'0' => ('~', &part[1..]),
            b'1' => ('/', &part[1..]),
            _ => return None,
        };
        text.push(escaped);
        text.push_str(rest);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointers_are_those_of_the_rfc() {
        let object = json!({"a": [{"b/c": 1, "d~e": 2, "": 3}], "m": {"0": "x"}});
        for (pointer, found) in [
            ("", Some("")),
            ("/a/0/b~1c", Some("/a/0/b~1c")),
            ("/a/0/d~0e", Some("/a/0/d~0e")),
            ("/a/0/", Some("/a/0/")),
            ("/m/0", Some("/m/0")),
            ("/a/1", None),
            ("/a/00", None),
            ("/a/+0", None),
            ("/a/-", None),
            ("/m/0/x", None),
            ("/x", None),
        ] {
            let location = Pointer::parse(pointer).unwrap().find(&object);
            assert_eq!(
                location.map(|l| l.to_string()).as_deref(),
                found,
                "{pointer}"
            );
        }
        for text in ["a", "a/b", "/a~", "/a~2", "/~"] {
            assert_eq!(Pointer::parse(text), None, "{text}");
        }
        assert_eq!(Pointer::parse("/~01"), Some(Pointer(vec!["~1".into()])));
    }
}
