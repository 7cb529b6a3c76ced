//! What an apply would start from, found out without writing.

use super::{Executor, Work};
use crate::problem::Problem;
use reeve_core::plan::{ApplyReason, Wanted, Whose, handover};
use reeve_core::waves::ApplyMode;
use serde_json::Value;

/// What an apply would start from.
#[derive(Clone, Debug)]
pub(crate) struct Foreseen {
    /// The object with the owners that it would have by then; none when it would be
    /// created.
    pub(crate) live: Option<Value>,
    /// Whether it is somebody else's and would be taken over.
    pub(crate) adopted: bool,
    /// Whether fields would be taken from others.
    pub(crate) force: bool,
}

impl Executor {
    /// What applying an object would start from, judged as [`Executor::execute`]
    /// judges it. No reason stands for an object that is applied later.
    pub(crate) async fn foresee(
        &self,
        work: &Work<'_>,
        one: &Wanted,
        reason: Option<ApplyReason>,
    ) -> Result<Foreseen, Problem> {
        let reference = &one.stamped.reference;
        // Where there is no kind there is nothing of it.
        if work.active.unserved.contains(&reference.kind) {
            return Ok(Foreseen {
                live: None,
                adopted: false,
                force: false,
            });
        }
        let manager = &work.active.field_manager;
        let claims = !matches!(reason, Some(ApplyReason::Changed | ApplyReason::Drifted));
        if claims {
            self.check_holder(work, reference)?;
        }
        let Some(live) = self.live(work.active, reference).await? else {
            return Ok(Foreseen {
                live: None,
                adopted: false,
                force: false,
            });
        };
        let whole = live.whole();
        let whose = match claims {
            true => self.judge(work, reference, &live)?,
            false => Whose::Ours,
        };
        let (entries, adopted, force) = match whose {
            Whose::Ours => {
                let force = one.member.options.apply != ApplyMode::Merge;
                (handover(one, &whole, manager), false, force)
            }
            _ => (self.adopted(work, one, &live), true, true),
        };
        Ok(Foreseen {
            live: Some(with_owners(whole, entries)),
            adopted,
            force,
        })
    }
}

/// An object with other managed fields, if they would change.
fn with_owners(mut object: Value, entries: Option<Value>) -> Value {
    if let Some(entries) = entries
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("managedFields".to_owned(), entries);
    }
    object
}
