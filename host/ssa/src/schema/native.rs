//! The form in which a server keeps objects of built-in kinds.

use serde_json::{Map as JsonMap, Value};

use super::{Map, Scalar, Schema, TypeRef};

impl Schema {
    /// Brings an object into the form in which the server keeps it.
    ///
    /// Built-in kinds are Go structs there: some fields, such as an empty
    /// `status`, are never absent; null, an empty list or map, and mostly a
    /// zero scalar, are the same as nothing. Ownership follows from that form.
    /// Of custom resources only `metadata` is such a struct; the rest stays as
    /// it is.
    ///
    /// This is not defaulting: nothing is filled in that means anything. Nor
    /// are quantities and times brought to one notation.
    pub fn normalize(&self, object: &mut Value) {
        self.normalize_value(self.root, object);
    }

    fn normalize_value(&self, ty: TypeRef, value: &mut Value) {
        let atom = self.atom(ty);
        match (value, &atom.map, &atom.list) {
            (Value::Object(object), Some(map), _) => {
                if map.native {
                    self.normalize_native(map, object);
                }
                for (name, item) in object.iter_mut() {
                    if let Some(ty) = map.type_of(name) {
                        self.normalize_value(ty, item);
                    }
                }
            }
            (Value::Array(items), _, Some(list)) => {
                for item in items {
                    self.normalize_value(list.element, item);
                }
            }
            _ => {}
        }
    }

    fn normalize_native(&self, map: &Map, object: &mut JsonMap<String, Value>) {
        if let Some(element) = map.element {
            // A Go map keeps its keys, and reads null as the zero value.
            if self.atom(element).scalar == Some(Scalar::String) {
                for item in object.values_mut().filter(|item| item.is_null()) {
                    *item = Value::String(String::new());
                }
            }
            return;
        }
        object.retain(|name, item| {
            // Of a custom resource the struct is only what its fields are checked
            // against, and a field that it does not have is wrong whatever its value.
            let wrong = !self.is_native() && map.type_of(name).is_none();
            let absent =
                item.is_null() || (!map.zero.contains_key(name) && self.is_absent(map, name, item));
            wrong || !absent
        });
        for (name, zero) in &map.zero {
            if !object.contains_key(name) {
                object.insert(name.clone(), zero.clone());
            }
        }
    }

    /// Whether a field holds any value, of no type of its own.
    fn is_free(&self, map: &Map, name: &str) -> bool {
        let shape = map.type_of(name).and_then(|ty| self.atom(ty).map.as_ref());
        shape.is_some_and(Schema::is_deduced_map)
    }

    fn is_absent(&self, map: &Map, name: &str, value: &Value) -> bool {
        match value {
            // Where anything goes, an empty list is a value as any other.
            Value::Array(items) => items.is_empty() && !self.is_free(map, name),
            // An empty struct behind a pointer stays: it may be the choice of
            // a variant. So does an object without declared fields, which is
            // such a struct with nothing in it.
            Value::Object(entries) => {
                let shape = map.type_of(name).and_then(|ty| self.atom(ty).map.as_ref());
                let is_map =
                    |shape: &Map| shape.element.is_some() && !Schema::is_deduced_map(shape);
                entries.is_empty() && shape.is_some_and(is_map)
            }
            Value::String(text) => text.is_empty() && map.dropped.contains(name),
            Value::Number(n) => n.as_f64() == Some(0.0) && map.dropped.contains(name),
            Value::Bool(b) => !b && map.dropped.contains(name),
            Value::Null => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better as literals"
    )]
    fn check(version: (&str, &str, &str), object: Value, expected: Value) {
        let mut object = object;
        let schema = builtin::schema(version.0, version.1, version.2).unwrap();
        schema.normalize(&mut object);
        assert_eq!(object, expected);
        schema.normalize(&mut object);
        assert_eq!(object, expected, "once is enough");
    }

    #[test]
    fn structs_are_present_and_empty_containers_absent() {
        check(
            ("", "v1", "ResourceQuota"),
            json!({"spec": {"hard": {}, "scopes": []}, "metadata": {"labels": null}}),
            json!({"spec": {}, "metadata": {}, "status": {}}),
        );
        check(
            ("rbac.authorization.k8s.io", "v1", "Role"),
            json!({"metadata": {"labels": {"a": null}}}),
            json!({"metadata": {"labels": {"a": ""}}, "rules": null}),
        );
        check(
            ("rbac.authorization.k8s.io", "v1", "Role"),
            json!({"rules": []}),
            json!({"metadata": {}, "rules": []}),
        );
    }

    #[test]
    fn zero_scalars_depend_on_the_field() {
        let containers = json!([{
            "name": "c", "stdin": false, "tty": true, "image": "",
            "securityContext": {"privileged": false},
        }]);
        check(
            ("", "v1", "Pod"),
            json!({"spec": {
                "hostNetwork": false, "priority": 0, "containers": containers,
                "volumes": [{"name": "v", "emptyDir": {}}],
            }}),
            json!({"metadata": {}, "status": {}, "spec": {
                "priority": 0,
                "containers": [{
                    "name": "c", "tty": true, "resources": {},
                    "securityContext": {"privileged": false},
                }],
                "volumes": [{"name": "v", "emptyDir": {}}],
            }}),
        );
    }

    #[test]
    fn metadata_inside_of_a_custom_resource_keeps_what_is_wrong_in_it() {
        let schema = Schema::from_crd(&json!({"type": "object", "properties": {
            "template": {"type": "object", "x-kubernetes-embedded-resource": true},
        }}))
        .unwrap();
        let mut object = json!({"template": {"metadata": {
            "wrong": null, "labels": null, "name": "a",
        }}});
        schema.normalize(&mut object);
        assert_eq!(
            object["template"]["metadata"],
            json!({"wrong": null, "name": "a"})
        );
    }
}
