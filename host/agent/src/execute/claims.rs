//! Objects that are being made, and for whom.
//!
//! The units of a plugin share one field manager, so the API server sees no conflict
//! between them. What one of them owns is in the store; this is for the moment
//! between its first apply and the answer.

use foldhash::HashMap;
use parking_lot::Mutex;
use reeve_core::{ObjectReference, UnitKey};
use std::sync::Arc;

/// What makes two references one object, whatever version they are in.
type Identity = (String, String, Option<String>, String);

/// The claims that are open; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(Arc<Mutex<HashMap<Identity, UnitKey>>>);

/// A claim; it ends with this.
#[derive(Debug)]
pub(super) struct Claiming {
    claims: Claims,
    object: Identity,
}

impl Claims {
    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Claims an object for a unit, unless another has a claim on it: then that one
    /// is returned.
    pub(super) fn open(
        &self,
        object: &ObjectReference,
        unit: &UnitKey,
    ) -> Result<Claiming, UnitKey> {
        let kind = &object.kind;
        let object = (
            kind.group.clone(),
            kind.kind.clone(),
            object.namespace.clone(),
            object.name.clone(),
        );
        let mut open = self.0.lock();
        if let Some(holder) = open.get(&object) {
            return Err(holder.clone());
        }
        open.insert(object.clone(), unit.clone());
        Ok(Claiming {
            claims: self.clone(),
            object,
        })
    }
}

impl Drop for Claiming {
    fn drop(&mut self) {
        self.claims.0.lock().remove(&self.object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::GroupVersionKind;

    #[test]
    fn the_first_has_it_until_it_is_done() {
        let object = |version, name| {
            ObjectReference::new(GroupVersionKind::new("g", version, "K"), None, name)
        };
        let unit = |name| UnitKey::new("p", object("v1", name));
        let claims = Claims::default();
        let first = claims.open(&object("v1", "x"), &unit("a")).unwrap();
        let other = claims.open(&object("v1", "y"), &unit("b")).unwrap();
        let holder = claims.open(&object("v2", "x"), &unit("b")).unwrap_err();
        assert_eq!(holder, unit("a"));
        drop(first);
        let second = claims.open(&object("v2", "x"), &unit("b")).unwrap();
        drop((second, other));
        assert!(claims.0.lock().is_empty());
    }
}
