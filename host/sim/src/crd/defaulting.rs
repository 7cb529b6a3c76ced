//! Defaults of a schema, and nulls that it does not allow.

use serde_json::Value;

use super::structural::{Additional, Schema};

impl Schema {
    /// Sets the defaults that an object leaves out, and removes nulls where the
    /// schema allows none. A null where there is a default becomes the default.
    pub fn default(&self, value: &mut Value) {
        self.fill(value, true);
    }

    /// As [`Schema::default`] for what was applied: nulls without a default stay, and
    /// are complained about later.
    pub fn default_applied(&self, value: &mut Value) {
        self.fill(value, false);
    }

    fn fill(&self, value: &mut Value, drops_nulls: bool) {
        match value {
            Value::Object(fields) => {
                for (name, schema) in &self.properties {
                    let Some(default) = &schema.default else {
                        continue;
                    };
                    let unset = match fields.get(name) {
                        None => true,
                        Some(Value::Null) => !schema.nullable,
                        Some(_) => false,
                    };
                    if unset {
                        fields.insert(name.clone(), default.clone());
                    }
                }
                fields.retain(|name, value| match self.field(name) {
                    None => true,
                    Some(schema) => {
                        if drops_nulls
                            && value.is_null()
                            && !schema.nullable
                            && !schema.takes_null()
                        {
                            return false;
                        }
                        schema.fill(value, drops_nulls);
                        true
                    }
                });
            }
            Value::Array(list) => {
                let Some(schema) = &self.items else { return };
                for item in list {
                    if item.is_null()
                        && !schema.nullable
                        && let Some(default) = &schema.default
                    {
                        *item = default.clone();
                    }
                    schema.fill(item, drops_nulls);
                }
            }
            _ => {}
        }
    }

    /// Removes nulls where the schema allows none and has no default for them.
    pub fn drop_nulls(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => fields.retain(|name, value| match self.field(name) {
                None => true,
                Some(schema) => {
                    let is_allowed = schema.nullable || schema.takes_null();
                    if value.is_null() && !is_allowed && schema.default.is_none() {
                        return false;
                    }
                    schema.drop_nulls(value);
                    true
                }
            }),
            Value::Array(list) => {
                if let Some(schema) = &self.items {
                    list.iter_mut().for_each(|item| schema.drop_nulls(item));
                }
            }
            _ => {}
        }
    }

    /// Whether a null is content here rather than something left out.
    fn takes_null(&self) -> bool {
        self.kind == super::structural::Kind::Any
            && self.preserve_unknown
            && matches!(self.additional, Additional::None | Additional::Any)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nulls_go_where_nothing_takes_their_place() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "b": {"type": "string", "nullable": true},
            "c": {"type": "string", "default": "d"},
            "l": {"type": "array", "items": {"type": "object", "properties": {
                "a": {"type": "string"}}}},
        }}))
        .unwrap();
        let mut value = json!({"a": null, "b": null, "c": null, "l": [{"a": null}], "x": null});
        schema.drop_nulls(&mut value);
        assert_eq!(value, json!({"b": null, "c": null, "l": [{}], "x": null}));
    }

    #[test]
    fn sets_what_is_left_out() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "s": {"type": "string", "default": "dd"},
            "n": {"type": "string", "nullable": true, "default": "nn"},
            "b": {"type": "boolean"},
            "o": {"type": "object", "default": {}, "properties": {
                "a": {"type": "integer", "default": 7}}},
            "p": {"type": "object", "properties": {"a": {"type": "integer", "default": 7}}},
            "l": {"type": "array", "items": {"type": "object", "properties": {
                "v": {"type": "integer", "default": 1}}}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        }}))
        .unwrap();
        let check = |mut value: Value, expected: Value| {
            schema.default(&mut value);
            assert_eq!(value, expected);
            let once = value.clone();
            schema.default(&mut value);
            assert_eq!(value, once);
        };
        check(json!({}), json!({"s": "dd", "n": "nn", "o": {"a": 7}}));
        check(
            json!({"s": null, "n": null, "b": null, "o": {"a": null}, "p": {}, "l": [{}], "m": {"x": null}}),
            json!({"s": "dd", "n": null, "o": {"a": 7}, "p": {"a": 7}, "l": [{"v": 1}], "m": {}}),
        );
    }
}
