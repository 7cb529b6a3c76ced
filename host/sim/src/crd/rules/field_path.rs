//! Paths of fields below a schema: `.spec.names['a.b']`.

use serde_json::Value;

/// Whether a path is one, and names something that the schema has.
pub(super) fn is_valid(path: &str, schema: &Value) -> bool {
    let (mut rest, mut schema) = (path, schema);
    while !rest.is_empty() {
        let step = if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            (!name.is_empty()).then(|| (name.to_owned(), after))
        } else if let Some(after) = rest.strip_prefix("['") {
            quoted(after).and_then(|(name, after)| Some((name, after.strip_prefix(']')?)))
        } else {
            None
        };
        let Some((name, after)) = step else {
            return false;
        };
        let Some(below) = below(schema, &name) else {
            return false;
        };
        (rest, schema) = (after, below);
    }
    true
}

/// The schema of a field.
fn below<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    match schema.get("properties") {
        Some(properties) => properties.get(name),
        None => schema
            .get("additionalProperties")
            .filter(|schema| schema.is_object()),
    }
}

/// The text up to the quote that closes it, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '\'' => return Some((name, chars.as_str())),
            '\\' => name.push(match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                plain @ ('\\' | '\'') => plain,
                _ => return None,
            }),
            plain => name.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_name_what_is_there() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b.c": {"type": "string"}}},
            "it's": {"type": "string"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "string"}},
        }});
        for (path, expected) in [
            (".a", true),
            (".a['b.c']", true),
            ("['a']['b.c']", true),
            ("['it\\'s']", true),
            (".map.any", true),
            (".map['any thing']", true),
            (".a.b", false),
            (".nothing", false),
            ("a", false),
            (".", false),
            (".a.", false),
            (".a[b]", false),
            (".a['b.c'", false),
            (".list[0]", false),
            (".map.any.more", false),
        ] {
            assert_eq!(is_valid(path, &schema), expected, "{path}");
        }
    }
}
