//! Field sets that were written under an older schema.

use super::At;
use crate::path::PathElement;
use crate::schema::{List, Map, Schema, TypeRef};
use crate::set::FieldSet;

/// Adjusts a set to a schema in which lists or maps have become atomic: who
/// owned something inside now owns the whole. The other way round nothing is
/// done: the owner of a whole keeps just the whole.
pub(crate) fn reconcile(schema: &Schema, set: &mut FieldSet) {
    let mut walk = Walk {
        schema,
        whole: FieldSet::new(),
    };
    walk.value(At::Root, schema.root, Some(set), false);
    if !walk.whole.is_empty() {
        *set = set.recursive_difference(&walk.whole).union(&walk.whole);
    }
}

struct Walk<'s> {
    schema: &'s Schema,
    /// Containers that are now owned as one.
    whole: FieldSet,
}

impl Walk<'_> {
    /// `leaf` says that the node is a member with nothing below.
    fn value(&mut self, at: At<'_>, ty: TypeRef, set: Option<&FieldSet>, leaf: bool) {
        let atom = self.schema.atom(ty);
        if let Some(map) = &atom.map {
            self.map(at, map, set, leaf);
        } else if atom.scalar.is_none()
            && let Some(list) = &atom.list
        {
            self.list(at, list, set, leaf);
        }
    }

    fn map(&mut self, at: At<'_>, map: &Map, set: Option<&FieldSet>, leaf: bool) {
        if Schema::is_deduced_map(map) {
            return;
        }
        if map.atomic && !leaf {
            if set.is_some_and(|set| !set.is_empty()) {
                self.whole.insert_elements(&at.path());
            }
            return;
        }
        self.below(at, set, |element| match element {
            PathElement::Field(name) => map.type_of(name),
            _ => map.element,
        });
    }

    fn list(&mut self, at: At<'_>, list: &List, set: Option<&FieldSet>, leaf: bool) {
        if list.is_atomic() && !leaf {
            self.whole.insert_elements(&at.path());
            return;
        }
        self.below(at, set, |_| Some(list.element));
    }

    fn below(
        &mut self,
        at: At<'_>,
        set: Option<&FieldSet>,
        type_of: impl Fn(&PathElement) -> Option<TypeRef>,
    ) {
        let Some(set) = set else { return };
        let apart = set
            .children
            .keys()
            .filter(|element| !set.members.contains(element));
        for element in apart.chain(&set.members) {
            let Some(ty) = type_of(element) else { continue };
            let child = set.children.get(element);
            let leaf = child.is_none() && set.members.contains(element);
            self.value(At::Item(&at, element), ty, child, leaf);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typed::testing::{schema, set};

    #[test]
    fn what_has_become_atomic_is_owned_whole() {
        for (old, new) in [
            (
                set(&["whole a", "whole b", "text"]),
                set(&["whole", "text"]),
            ),
            (set(&["list v:\"a\""]), set(&["list"])),
            (set(&["whole", "list"]), set(&["whole", "list"])),
            // These were atomic once: nothing can be said of what is inside.
            (set(&["map", "set", "items"]), set(&["map", "set", "items"])),
            (
                set(&["free a", "gone b", "structs s a"]),
                set(&["free a", "gone b", "structs s a"]),
            ),
        ] {
            let mut set = old;
            reconcile(&schema(), &mut set);
            assert_eq!(set, new);
        }
    }
}
