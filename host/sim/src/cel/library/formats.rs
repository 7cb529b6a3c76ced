//! Formats with names, and what does not fit them.

use std::sync::Arc;

use kube_cel::cel::objects::Opaque;
use kube_cel::cel::{ResolveResult, Value};

use super::{optional, uris};
use crate::crd::fits;
use crate::names;

/// The formats, by the names that expressions call them.
const FORMATS: [(&str, Check); 13] = [
    ("dns1123Label", Check::Name(names::dns1123_label)),
    ("dns1123Subdomain", Check::Name(names::dns1123_subdomain)),
    ("dns1035Label", Check::Name(names::dns1035_label)),
    ("qualifiedName", Check::Name(names::qualified_name)),
    ("dns1123LabelPrefix", Check::Start(names::dns1123_label)),
    (
        "dns1123SubdomainPrefix",
        Check::Start(names::dns1123_subdomain),
    ),
    ("dns1035LabelPrefix", Check::Start(names::dns1035_label)),
    ("labelValue", Check::Name(names::label_value)),
    ("uri", Check::Uri),
    ("uuid", Check::Schema("does not match the UUID format")),
    ("byte", Check::Schema("invalid base64")),
    ("date", Check::Schema("invalid date")),
    ("datetime", Check::Schema("invalid datetime")),
];

#[derive(Debug, Clone, Copy)]
enum Check {
    Name(names::Validator),
    /// Whether it may be the start of a name.
    Start(names::Validator),
    Uri,
    /// Whether it fits the format of schemas that is called so, or what is said of it.
    Schema(&'static str),
}

/// A format as a value.
#[derive(Debug)]
struct Format(&'static str, Check);

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Format {}

impl Opaque for Format {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.NamedFormat"
    }
}

impl Format {
    fn named(name: &str) -> Option<Value> {
        let (name, check) = FORMATS.iter().find(|(known, _)| *known == name)?;
        Some(Value::Opaque(Arc::new(Format(name, *check))))
    }

    fn complaints(&self, text: &str) -> Vec<String> {
        match self.1 {
            Check::Name(validator) => validator(text),
            Check::Start(validator) => names::prefix_of(validator, text),
            Check::Uri => uris::refused(text).into_iter().collect(),
            Check::Schema(_) if !text.is_empty() && fits(self.0, text) => Vec::new(),
            Check::Schema(why) => vec![why.to_owned()],
        }
    }
}

/// What these functions make of their arguments; none of others.
pub(super) fn own(name: &str, arguments: &[Value]) -> Option<ResolveResult> {
    let made = match (name, arguments) {
        ("format.named", [Value::String(name)]) => optional(Format::named(name)),
        (name, []) => Format::named(name.strip_prefix("format.")?)?,
        ("validate", [Value::Opaque(opaque), Value::String(text)]) => {
            let complaints = opaque.downcast_ref::<Format>()?.complaints(text);
            let complaints = complaints.into_iter().map(|it| Value::String(Arc::new(it)));
            let complaints: Vec<Value> = complaints.collect();
            let found = !complaints.is_empty();
            optional(found.then(|| Value::List(Arc::new(complaints))))
        }
        _ => return None,
    };
    Some(Ok(made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_those_of_the_server() {
        const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
                             characters or '-', and must start and end with an alphanumeric \
                             character (e.g. 'my-name',  or '123-abc', regex used for validation \
                             is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
        let long = "a".repeat(64);
        for (name, text, expected) in [
            ("dns1123Label", "A", vec![LABEL]),
            ("dns1123Label", "", vec![LABEL]),
            ("dns1123Label", "a.b", vec!["must not contain dots"]),
            (
                "dns1123Label",
                &long,
                vec!["must be no more than 63 characters"],
            ),
            ("dns1123LabelPrefix", "a-", vec![]),
            ("dns1123LabelPrefix", "-", vec![LABEL]),
            ("dns1035Label", "a-b", vec![]),
            ("dns1123Subdomain", "a.b", vec![]),
            ("labelValue", "", vec![]),
            ("labelValue", &long, vec!["must be no more than 63 bytes"]),
            ("qualifiedName", "/a", vec!["prefix part must be non-empty"]),
            ("uri", "a", vec!["parse \"a\": invalid URI for request"]),
            ("uri", "/a", vec![]),
            ("uuid", "a", vec!["does not match the UUID format"]),
            ("byte", "a", vec!["invalid base64"]),
            ("byte", "", vec!["invalid base64"]),
            ("byte", "YQ==", vec![]),
            ("date", "a", vec!["invalid date"]),
            ("date", "2020-01-01", vec![]),
            ("datetime", "a", vec!["invalid datetime"]),
            ("datetime", "2020-01-01T00:00:00Z", vec![]),
        ] {
            let (known, check) = FORMATS.iter().find(|(known, _)| *known == name).unwrap();
            let found = Format(known, *check).complaints(text);
            assert_eq!(found, expected, "{name} {text}");
        }
    }
}
