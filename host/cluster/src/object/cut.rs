//! Taking `managedFields` out of an object's JSON without touching the rest.

use super::span::Span;
use reeve_core::GroupVersionKind;
use serde_json::value::RawValue;

/// The text of an object that something was taken out of.
pub(super) struct Cut<'a> {
    pub(super) json: Box<str>,
    original: &'a str,
    /// What of the original stands before what was taken out, and how much of it that is.
    before: usize,
    out: usize,
    /// What stands in the new text alone, at its head.
    head: usize,
}

/// The text of an object without the member whose value is `managed_fields`, a
/// slice of that very text, and with `apiVersion` and `kind` where they are
/// missing.
///
/// Parsing and printing anew would cost more, and would change numbers that do
/// not fit a float.
pub(super) fn cut_managed_fields<'a>(
    json: &'a str,
    managed_fields: Option<&RawValue>,
    missing_type: Option<&GroupVersionKind>,
) -> Cut<'a> {
    let (before, after) = match managed_fields.and_then(|value| around_member(json, value.get())) {
        Some(parts) => parts,
        None => (json, ""),
    };
    let cut = |head: &str, begin: &str| Cut {
        json: concat(&[head, begin, after]),
        original: json,
        before: before.len(),
        out: json.len() - before.len() - after.len(),
        head: (head.len() + begin.len()).saturating_sub(before.len()),
    };
    let Some(kind) = missing_type else {
        return cut("", before);
    };
    // The text starts with a brace, since it was read as an object, and holds
    // `metadata` at least, hence the comma.
    let api_version = kind.api_version();
    let head = format!(
        "{{\"apiVersion\":{},\"kind\":{},",
        serde_json::Value::from(api_version),
        serde_json::Value::from(&*kind.kind),
    );
    cut(&head, before.strip_prefix('{').unwrap_or(before))
}

impl Cut<'_> {
    /// Where a value that is a slice of the original text stands in the new one.
    pub(super) fn place(&self, value: Option<&RawValue>) -> Span {
        let place = |value: &str| {
            let start = (value.as_ptr() as usize).checked_sub(self.original.as_ptr() as usize)?;
            let start = match start < self.before {
                true => start,
                false => start.checked_sub(self.out)?,
            };
            Some(Span::new(start + self.head, value.len()))
        };
        let place = value.and_then(|value| place(value.get()));
        place.unwrap_or_default()
    }
}

/// The text before and after a member, given its value as a slice of the text.
/// One of the commas beside the member goes with it.
fn around_member<'a>(json: &'a str, value: &str) -> Option<(&'a str, &'a str)> {
    let start = (value.as_ptr() as usize).checked_sub(json.as_ptr() as usize)?;
    let before = json.get(..start)?;
    let after = json.get(start + value.len()..)?;
    let before = before.trim_end().strip_suffix(':')?.trim_end();
    let before = before.strip_suffix("\"managedFields\"")?.trim_end();
    if let Some(rest) = after.trim_start().strip_prefix(',') {
        return Some((before, rest));
    }
    Some((before.strip_suffix(',').unwrap_or(before), after))
}

fn concat(parts: &[&str]) -> Box<str> {
    let mut text = String::with_capacity(parts.iter().map(|part| part.len()).sum());
    for part in parts {
        text.push_str(part);
    }
    text.into_boxed_str()
}

#[cfg(test)]
mod tests {
    use crate::object::Object;
    use crate::resource::Resource;
    use reeve_core::GroupVersionKind;

    fn object(json: &str) -> Object {
        let resource = Resource {
            kind: GroupVersionKind::new("apps", "v1", "Deployment"),
            plural: "deployments".into(),
            namespaced: true,
        };
        Object::parse(&resource, json.as_bytes()).unwrap()
    }

    #[test]
    fn nothing_but_managed_fields_goes() {
        let typed = r#""apiVersion":"apps/v1","kind":"Deployment""#;
        for (json, kept) in [
            // In the middle, at the end, at the beginning of the metadata.
            (
                r#"{T,"metadata":{"name":"a","managedFields":[{"manager":"m"}],"uid":"u"},"n":1.50}"#,
                r#"{T,"metadata":{"name":"a","uid":"u"},"n":1.50}"#,
            ),
            (
                r#"{T,"metadata":{"name":"a","managedFields":[]}}"#,
                r#"{T,"metadata":{"name":"a"}}"#,
            ),
            (
                r#"{T,"metadata":{"managedFields":[],"name":"a"}}"#,
                r#"{T,"metadata":{"name":"a"}}"#,
            ),
            // As people write it.
            (
                "{T, \"metadata\": {\n  \"name\": \"a\",\n  \"managedFields\" : [ ]\n}}",
                "{T, \"metadata\": {\n  \"name\": \"a\"\n}}",
            ),
            // The same words elsewhere are somebody's data.
            (
                r#"{T,"data":{"managedFields":[]},"metadata":{"name":"a","annotations":{"x":"\"managedFields\":[]"}}}"#,
                r#"{T,"data":{"managedFields":[]},"metadata":{"name":"a","annotations":{"x":"\"managedFields\":[]"}}}"#,
            ),
            // Numbers that no float holds.
            (
                r#"{T,"metadata":{"name":"a"},"n":123456789012345678901234567890}"#,
                r#"{T,"metadata":{"name":"a"},"n":123456789012345678901234567890}"#,
            ),
            // An item of a list.
            (
                r#"{"metadata":{"name":"a","managedFields":[]},"spec":{}}"#,
                r#"{T,"metadata":{"name":"a"},"spec":{}}"#,
            ),
        ] {
            let [json, kept] = [json, kept].map(|text| text.replacen('T', typed, 1));
            assert_eq!(object(&json).json(), kept);
        }
    }
}
