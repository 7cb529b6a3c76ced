//! Annotations that steer us: looking them up, and what is wrong with some.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The annotations of one object.
///
/// A value that is no text is left out: no API server takes such an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Annotations<'a> {
    /// Those of an object, which may be of any shape.
    pub fn of(object: &'a Value) -> Self {
        object["metadata"]["annotations"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
            .collect()
    }

    /// The value of one.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).copied()
    }

    /// Whether there are no others than these.
    pub(crate) fn only(&self, keys: &[&str]) -> bool {
        self.0.keys().all(|key| keys.contains(key))
    }

    /// The first of several names that is set, with its value.
    ///
    /// Our own name stands first in such a list, so it wins over the name that
    /// another tool gave the same thing.
    pub(crate) fn first(&self, keys: &[&'static str]) -> Option<(&'static str, &'a str)> {
        keys.iter()
            .find_map(|key| self.get(key).map(|value| (*key, value)))
    }

    /// Whether one of these is `true`; other text than `true` and `false` is
    /// warned about and means no.
    pub(crate) fn flag(&self, keys: &[&'static str], warnings: &mut Vec<Warning>) -> bool {
        self.choice(keys, warnings).unwrap_or(false)
    }

    /// `true` or `false`, if one of these says so.
    pub(crate) fn choice(
        &self,
        keys: &[&'static str],
        warnings: &mut Vec<Warning>,
    ) -> Option<bool> {
        let (key, value) = self.first(keys)?;
        match value.trim() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                let expected = "`true` or `false`; it is ignored";
                warnings.push(Warning::new(key, value, expected));
                None
            }
        }
    }
}

impl<'a> From<&'a BTreeMap<String, String>> for Annotations<'a> {
    fn from(annotations: &'a BTreeMap<String, String>) -> Self {
        let pairs = annotations.iter();
        pairs.map(|(key, value)| (&**key, &**value)).collect()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Annotations<'a> {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a str)>>(pairs: T) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// An annotation that is not understood, or not obeyed. Nothing fails because of
/// it, but its author should know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Warning {
    /// Name of the annotation.
    pub annotation: String,
    /// What it says, shortened.
    pub value: String,
    /// What would be right, and what is done instead.
    pub expected: String,
}

impl Warning {
    pub(crate) fn new(annotation: &str, value: &str, expected: impl Into<String>) -> Self {
        Self {
            annotation: annotation.to_owned(),
            value: shortened(value, 80),
            expected: expected.into(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "annotation {}: `{}`: expected {}",
            self.annotation, self.value, self.expected
        )
    }
}

/// At most `limit` characters of a text.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_text_counts() {
        let object = json!({"metadata": {"annotations": {"a": "1", "b": 2, "c": null}}});
        let annotations = Annotations::of(&object);
        assert_eq!(annotations.get("a"), Some("1"));
        assert_eq!(annotations.get("b"), None);
        for odd in [json!(null), json!([]), json!({"metadata": []})] {
            assert_eq!(Annotations::of(&odd), Annotations::default());
        }
    }

    #[test]
    fn the_first_name_wins_and_odd_values_are_told() {
        let annotations: Annotations<'_> = [("x", "true"), ("y", "false"), ("z", "yes")]
            .into_iter()
            .collect();
        let mut warnings = Vec::new();
        assert!(annotations.flag(&["w", "x", "y"], &mut warnings));
        assert!(!annotations.flag(&["y", "x"], &mut warnings));
        assert_eq!(warnings, []);
        assert_eq!(annotations.choice(&["z"], &mut warnings), None);
        assert_eq!(
            warnings[0].to_string(),
            "annotation z: `yes`: expected `true` or `false`; it is ignored"
        );
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shortened("öäü", 2), "öä…");
        assert_eq!(shortened("öäü", 3), "öäü");
    }
}
