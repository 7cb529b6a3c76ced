//! Objects that are being made, and for whom.
//!
//! The units of a plugin share one field manager, so the API server sees no conflict
//! between them. What one of them owns is in the store; this is for the moment
//! between its first apply and the answer.

use foldhash::HashMap;
use parking_lot::Mutex;
use reeve_core::{ObjectReference, UnitKey};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// An object, which is the same in whatever version its reference is.
#[derive(Clone, Debug)]
struct Identity(Arc<ObjectReference>);

impl Identity {
    fn parts(&self) -> (&str, &str, Option<&str>, &str) {
        let object = &self.0;
        let kind = &object.kind;
        let namespace = object.namespace.as_deref();
        (&kind.group, &kind.kind, namespace, &object.name)
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Identity {}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

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
        let object = Identity(Arc::new(object.clone()));
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
