//! How the items of a list are told apart.

use serde_json::Value;

use crate::path::PathElement;
use crate::schema::{List, ListRelation};

/// Names an item of a set or keyed list, or says why it cannot be named.
pub(super) fn element(list: &List, item: &Value) -> Result<PathElement, String> {
    match &list.relation {
        ListRelation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListRelation::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => {
                Err("not supported: associative list with lists as elements".to_owned())
            }
            Value::Null => Err(
                "associative list without keys has an element that's an explicit null".to_owned(),
            ),
            scalar => Ok(PathElement::Value(scalar.clone())),
        },
        ListRelation::Keyed(keys) => {
            let map = match item {
                Value::Object(map) => map,
                Value::Null => {
                    return Err("associative list with keys may not have a null element".to_owned());
                }
                _ => {
                    return Err(
                        "associative list with keys may not have non-map elements".to_owned()
                    );
                }
            };
            // A key field that is absent and has no default is left out: such
            // items are apart from those that have it.
            let fields: Vec<_> = keys
                .iter()
                .filter_map(|key| {
                    let value = map.get(&key.name).or(key.default.as_ref())?;
                    Some((key.name.clone(), value.clone()))
                })
                .collect();
            if fields.is_empty() && !keys.is_empty() {
                let names: Vec<_> = keys.iter().map(|key| format!("{:?}", key.name)).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] \
                     (and doesn't have default values for any key fields)",
                    names.join(" ")
                ));
            }
            Ok(PathElement::key(fields))
        }
    }
}
