//! Which sync a hook belongs to, written on the hook.
//!
//! A hook is often the same from one revision to the next. Without a mark, that of
//! the sync before would pass for that of this one, and would not run.

use super::Wanted;
use crate::digest::Digest;
use crate::ownership::{SYNC_ANNOTATION, Stamped};
use crate::waves::Role;
use serde_json::{Map, Value, json};

/// Marks the hooks among the desired objects as those of the sync of `revision`,
/// which is that of [`super::revision`] before this.
pub fn mark_hooks(wanted: &mut [Wanted], revision: &Digest) {
    for one in wanted {
        if !matches!(one.member.options.role, Role::Hook(_)) {
            continue;
        }
        let mut body = one.stamped.take_body();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut)
            && let Some(annotations) = metadata
                .entry("annotations")
                .or_insert_with(|| Map::new().into())
                .as_object_mut()
        {
            annotations.insert(SYNC_ANNOTATION.to_owned(), json!(revision.short()));
        }
        one.stamped = Stamped::sealed(one.stamped.reference.clone(), body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{GroupVersionKind, ObjectReference};
    use crate::ownership::Owner;
    use crate::plan::revision;
    use crate::unit::UnitKey;
    use crate::waves::Member;

    fn reference(kind: &str) -> ObjectReference {
        let kind = GroupVersionKind::new("batch", "v1", kind);
        ObjectReference::new(kind, Some("a".to_owned()), "b")
    }

    #[test]
    fn only_hooks_differ_from_one_sync_to_the_next() {
        let owner = Owner {
            unit: UnitKey::new("p", reference("Bundle")),
            uid: "u".to_owned(),
        };
        let wanted = |size: i64| {
            let hook =
                json!({"metadata": {"name": "b", "annotations": {"reeve.dev/hook": "Sync"}}});
            let object = json!({"metadata": {"name": "b"}, "spec": {"size": size}});
            let mut wanted: Vec<Wanted> = [("Job", hook), ("Widget", object)]
                .into_iter()
                .map(|(kind, body)| Wanted {
                    member: Member::of(reference(kind), &body).0,
                    stamped: owner.stamp(reference(kind), body),
                    ignored: None,
                })
                .collect();
            let revision = revision(&wanted);
            mark_hooks(&mut wanted, &revision);
            wanted
        };
        let digests = |wanted: &[Wanted]| -> Vec<String> {
            wanted
                .iter()
                .map(|one| one.stamped.applied.clone())
                .collect()
        };
        let (first, again, second) = (wanted(1), wanted(1), wanted(2));
        assert_eq!(first, again);
        assert_ne!(digests(&first)[0], digests(&second)[0]);
        let annotations = &first[0].stamped.body()["metadata"]["annotations"];
        assert!(annotations[SYNC_ANNOTATION].is_string());
        assert_eq!(annotations["reeve.dev/applied"], digests(&first)[0]);
        let plain = &first[1].stamped.body()["metadata"]["annotations"];
        assert_eq!(plain.get(SYNC_ANNOTATION), None);
    }
}
