//! Objects that cannot be changed as wanted, and whether they are made anew.

use super::Wanted;
use super::policy::Policy;
use super::surplus::is_precious;
use crate::waves::Removal;

/// What to do about an object that the API server refuses to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recreation {
    /// It is not known to be for a field that cannot be changed, and nobody wants
    /// it to be made anew.
    Unrelated,
    /// It may be deleted and made anew, if that would be accepted. `immutable` when
    /// it was refused for a field that cannot be changed, as far as its words say.
    Allowed {
        /// Whether that is known.
        immutable: bool,
    },
    /// It stays as it is; why, and what to do, for people.
    Refused(String),
}

/// How an API server says that a field cannot be changed. There is no code for it:
/// these are the words of its validations, which are old, and those that authors of
/// transition rules of custom resources commonly use.
const WORDS: [&str; 8] = [
    "immutable",
    "cannot be changed",
    "cannot change",
    "may not be changed",
    "may not change",
    "may not be updated",
    "are forbidden",
    "updates to",
];

/// Whether a complaint about a field is that it cannot be changed.
fn is_immutable(complaint: &str) -> bool {
    let complaint = complaint.to_lowercase();
    WORDS.iter().any(|word| complaint.contains(word))
}

/// Decides about an object that was refused with these causes (field and
/// complaint), or just with a message.
pub fn recreation(
    one: &Wanted,
    policy: &Policy,
    plugin: &str,
    causes: &[(String, String)],
    message: &str,
) -> Recreation {
    let object = &one.stamped.reference;
    let options = &one.member.options;
    let fields: Vec<String> = causes
        .iter()
        .filter(|(_, complaint)| is_immutable(complaint))
        .map(|(field, complaint)| match field.as_str() {
            "" => complaint.clone(),
            field => format!("{field}: {complaint}"),
        })
        .collect();
    let immutable = !fields.is_empty() || (causes.is_empty() && is_immutable(message));
    let why = match fields.as_slice() {
        [] => message.to_owned(),
        fields => fields.join("; "),
    };
    if !options.force && !policy.recreate {
        if !immutable {
            return Recreation::Unrelated;
        }
        return Recreation::Refused(format!(
            "{object} cannot be changed as wanted: {why}. Delete it to have it made anew, or \
             allow that with `reeve.dev/sync-options: Force=true` on it, or with spec.recreate of \
             Plugin {plugin} for all"
        ));
    }
    if is_precious(&object.kind) && options.prune != Removal::Permitted {
        if !immutable && !options.force {
            return Recreation::Unrelated;
        }
        return Recreation::Refused(format!(
            "{object} cannot be changed as wanted: {why}. Making a {} anew loses data; permit it \
             with `reeve.dev/prune: allow` on it, or do it yourself",
            object.kind.kind
        ));
    }
    Recreation::Allowed { immutable }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{GroupVersionKind, ObjectReference};
    use crate::ownership::Owner;
    use crate::unit::UnitKey;
    use crate::waves::Member;
    use serde_json::json;

    fn check(
        kind: &str,
        annotations: &[(&str, &str)],
        recreate: bool,
        cause: (&str, &str),
        expected: &str,
    ) {
        let kind = GroupVersionKind::new("", "v1", kind);
        let reference = ObjectReference::new(kind, None, "x");
        let annotations: serde_json::Map<_, _> = annotations
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect();
        let body = json!({"metadata": {"name": "x", "annotations": annotations}});
        let (member, _) = Member::of(reference.clone(), &body);
        let owner = Owner {
            unit: UnitKey::new("p", reference.clone()),
            uid: String::new(),
        };
        let one = Wanted {
            stamped: owner.stamp(reference, body),
            member,
            ignored: None,
        };
        let policy = Policy {
            recreate,
            ..Policy::default()
        };
        let (field, complaint) = cause;
        let causes = if field.is_empty() {
            Vec::new()
        } else {
            vec![(field.to_owned(), complaint.to_owned())]
        };
        let said = match recreation(&one, &policy, "p", &causes, complaint) {
            Recreation::Unrelated => "unrelated".to_owned(),
            Recreation::Allowed { immutable: true } => "allowed".to_owned(),
            Recreation::Allowed { immutable: false } => "perhaps".to_owned(),
            Recreation::Refused(why) => why,
        };
        assert!(said.contains(expected), "{annotations:?} {cause:?}: {said}");
    }

    #[test]
    fn a_field_that_cannot_be_changed_is_named() {
        let hint = "reeve.dev/sync-options: Force=true";
        for (field, complaint) in [
            ("spec.template", "Invalid value: {}: field is immutable"),
            ("roleRef", "Invalid value: {}: cannot change roleRef"),
            (
                "spec",
                "Forbidden: updates to statefulset spec for fields other than 'replicas', \
                 'ordinals' are forbidden",
            ),
            (
                "spec",
                "Forbidden: pod updates may not change fields other than `spec.containers[*].image`",
            ),
            (
                "data",
                "Forbidden: field is immutable when `immutable` is set",
            ),
            ("value", "Forbidden: may not be changed in an update."),
            (
                "parameters",
                "Forbidden: updates to parameters are forbidden.",
            ),
            ("spec.size", "Invalid value: \"object\": size is immutable"),
        ] {
            check(
                "Job",
                &[],
                false,
                (field, complaint),
                &format!("{field}: {complaint}"),
            );
            check("Job", &[], false, (field, complaint), hint);
        }
        check("Job", &[], false, ("", "x is immutable"), "x is immutable");
        check("Job", &[], false, ("spec.a", "Required value"), "unrelated");
    }

    #[test]
    fn policy_or_annotation_allows_it_but_not_for_what_is_precious() {
        let immutable = ("spec.a", "field is immutable");
        let force = [("reeve.dev/sync-options", "Force=true")];
        check("Job", &force, false, immutable, "allowed");
        check("Job", &[], true, immutable, "allowed");
        // A rule of a custom resource may say it in any words.
        check("Widget", &force, false, ("spec.a", "only grows"), "perhaps");
        for kind in ["Namespace", "PersistentVolumeClaim"] {
            check(kind, &force, true, immutable, "loses data");
            check(kind, &[], true, ("spec.a", "Required value"), "unrelated");
            let permitted = [force[0], ("reeve.dev/prune", "allow")];
            check(kind, &permitted, false, immutable, "allowed");
        }
    }
}
