//! What of an object is replaced as a whole.

use serde_json::Value;

use super::{Form, as_list, as_map};
use crate::path::{Path, PathElement};
use crate::schema::{List, Map, Schema, TypeRef};

/// The lists, maps and structs in `object` that merging replaces as a whole: what they
/// have besides is lost. Entries of maps, other than fields of structs, are not looked
/// into, as the server does not; items of lists are named by their position.
pub fn atomics(schema: &Schema, object: &Value) -> Vec<Path> {
    let mut walk = Walk {
        schema,
        path: Vec::new(),
        found: Vec::new(),
    };
    walk.value(schema.root, object);
    walk.found
}

struct Walk<'s> {
    schema: &'s Schema,
    path: Vec<PathElement>,
    found: Vec<Path>,
}

impl Walk<'_> {
    fn value(&mut self, ty: TypeRef, value: &Value) {
        match (Form::of(self.schema.atom(ty), Some(value)), value) {
            (Some(Form::Map(map)), Value::Object(_)) => self.map(map, value),
            (Some(Form::List(list)), Value::Array(_)) => self.list(list, value),
            _ => {}
        }
    }

    fn map(&mut self, map: &Map, value: &Value) {
        self.note(map.atomic);
        for (name, item) in as_map(Some(value)).into_iter().flatten() {
            if let Some(ty) = map.fields.get(name) {
                self.path.push(PathElement::Field(name.clone()));
                self.value(*ty, item);
                self.path.pop();
            }
        }
    }

    fn list(&mut self, list: &List, value: &Value) {
        self.note(list.is_atomic());
        for (index, item) in as_list(Some(value)).into_iter().flatten().enumerate() {
            let index = i64::try_from(index).unwrap_or(i64::MAX);
            self.path.push(PathElement::Index(index));
            self.value(list.element, item);
            self.path.pop();
        }
    }

    fn note(&mut self, atomic: bool) {
        if atomic {
            self.found.push(Path(self.path.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_replaced_as_a_whole_is_named() {
        let Some(schema) = crate::builtin::schema("apps", "v1", "Deployment") else {
            panic!("there is no schema of Deployments");
        };
        let object = json!({"metadata": {"labels": {"a": "b"}}, "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": {"containers": [{"name": "c", "args": ["x"]}]}},
        }});
        let found = atomics(schema, &object);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [".spec.selector", ".spec.template.spec.containers[0].args"]
        );
    }
}
