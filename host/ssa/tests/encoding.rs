//! The text of field sets, against the text that a real server sent.

use reeve_ssa::FieldSet;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Sequence<'a> {
    name: String,
    /// Present for custom resources.
    schema: Option<Value>,
    #[serde(borrow)]
    steps: Vec<Step<'a>>,
}

#[derive(Deserialize)]
struct Step<'a> {
    #[serde(borrow)]
    answer: Option<Object<'a>>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    managed_fields: Vec<Entry<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow)]
    fields_v1: &'a RawValue,
}

#[test]
fn the_text_is_that_of_the_server() {
    let sequences: Vec<Sequence<'_>> =
        serde_json::from_str(include_str!("observed/server-1.36.json")).unwrap();
    let mut sets = 0;
    for sequence in &sequences {
        let objects = sequence
            .steps
            .iter()
            .filter_map(|step| step.answer.as_ref());
        for entry in objects.flat_map(|object| &object.metadata.managed_fields) {
            let theirs = entry.fields_v1.get();
            let parsed: Value = serde_json::from_str(theirs).unwrap();
            let set = FieldSet::from_fields_v1(&parsed).unwrap();
            let ours = match sequence.schema {
                None => set.to_fields_v1_json(),
                // Served from maps that are sorted by text.
                Some(_) => sorted_by_text(&set.to_fields_v1()),
            };
            assert_eq!(ours, theirs, "{}", sequence.name);
            assert_eq!(set.to_fields_v1(), parsed, "{}", sequence.name);
            sets += 1;
        }
    }
    assert!(sets > 500, "only {sets} sets");
}

fn sorted_by_text(fields: &Value) -> String {
    let mut entries: Vec<_> = fields.as_object().into_iter().flatten().collect();
    entries.sort_by_key(|(key, _)| *key);
    let entries: Vec<_> = entries
        .into_iter()
        .map(|(key, below)| format!("{}:{}", Value::from(key.as_str()), sorted_by_text(below)))
        .collect();
    format!("{{{}}}", entries.join(","))
}
