//! Reading and writing of field sets, which come from whoever wrote an object.

use reeve_ssa::{FieldSet, ManagedFields, Path, covers, owned_beyond};
use serde_json::{Value, json};

/// The input is `fieldsV1` as JSON; or, when it is a list, all of
/// `managedFields`.
///
/// What can be read is written in one form only, which reads as the same set;
/// and the set obeys the laws of sets.
pub fn fields_v1(input: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Value>(input) else {
        return;
    };
    if json.is_array() {
        return managed_fields(&json);
    }
    let Ok(set) = FieldSet::from_fields_v1(&json) else {
        return;
    };
    let text = set.to_fields_v1_json();
    let written: Value = serde_json::from_str(&text).unwrap_or_default();
    assert_eq!(written, set.to_fields_v1(), "text and value differ");
    let read = FieldSet::from_fields_v1(&written);
    assert_eq!(read.as_ref(), Ok(&set), "{text}");
    assert_eq!(read.map(|set| set.to_fields_v1_json()), Ok(text));

    let leaves = set.leaves();
    assert_eq!(set.union(&leaves), set);
    assert_eq!(set.intersection(&leaves), leaves);
    assert!(set.difference(&set).is_empty());
    assert_eq!(set.iter().count(), set.len());
    assert_eq!(set.iter().collect::<FieldSet>(), set);
    assert!(set.iter().all(|path| set.has(&path)));

    // Nothing that is wanted is no more than nothing; all that is owned goes.
    assert!(covers(&written, &json!({})));
    let all: Vec<Path> = set.iter().collect();
    assert_eq!(owned_beyond(&written, &json!({})), all);
}

fn managed_fields(entries: &Value) {
    let object = json!({"metadata": {"managedFields": entries}});
    let Ok(managers) = ManagedFields::of(&object) else {
        return;
    };
    let mut written = json!({});
    managers.write_to(&mut written);
    assert_eq!(
        ManagedFields::of(&written).ok(),
        Some(managers),
        "from {object}"
    );
}
