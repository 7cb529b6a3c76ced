//! Whether an apply would change anything, decided without asking.

use super::{Observed, Owned, Schemas};
use crate::ownership::{APPLIED_ANNOTATION, Stamped};
use reeve_ssa::reset;
use serde_json::Value;

/// Why an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyReason {
    /// Nothing of ours was observed there. What may be there belongs to somebody
    /// else, so conflicts are not forced.
    Absent,
    /// The plugin wants something else than before.
    Changed,
    /// Somebody took a field that is ours.
    Drifted,
}

/// Why `stamped` has to be sent to an object of ours, if it has to be: we sent
/// something else before, or a field of it is no longer ours. A field that is
/// ours but differs was changed by admission or defaulting, and is settled.
///
/// Of a kind whose schema is not known, an empty list that is keyed or a set cannot
/// be told from one that somebody has taken.
pub(super) fn difference(
    stamped: &Stamped,
    object: &Observed,
    schemas: &Schemas,
) -> Option<ApplyReason> {
    if object.annotations.get(APPLIED_ANNOTATION) != Some(&stamped.applied) {
        return Some(ApplyReason::Changed);
    }
    let owned = match object.owned_fields.as_ref()? {
        Owned::AllSent => return None,
        Owned::Fields(fields) => fields,
    };
    let schema = schemas.of(&stamped.reference.kind);
    let covered = |body: &Value| match schema {
        Some(schema) => reeve_ssa::covers_typed(schema, owned, body),
        None => reeve_ssa::covers(owned, body),
    };
    let covered = covered(stamped.body()) || without_unset(stamped).is_some_and(|b| covered(&b));
    (!covered).then_some(ApplyReason::Drifted)
}

/// An object of a built-in kind without the status, of which the API server takes nothing
/// where the object itself is applied; none where it has none.
fn without_unset(stamped: &Stamped) -> Option<Value> {
    let kind = &stamped.reference.kind;
    let has_status = stamped.written().text().has_status();
    if !has_status || reset::built_in(&kind.group, &kind.kind, "").is_empty() {
        return None;
    }
    let mut body = stamped.body().clone();
    body.as_object_mut()?.remove("status");
    Some(body)
}
