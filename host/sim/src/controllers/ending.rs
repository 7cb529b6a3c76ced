//! What is in a namespace that is being deleted: looked at once, and then again only
//! where it changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::conditions::{Part, Remaining};
use super::delete;
use crate::rest::options::DeleteOptions;
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::{Object, Range};

/// Where an object is: its table and its key.
type Place = (Arc<str>, Box<str>);

/// The contents of one namespace, as far as they have been looked at.
#[derive(Debug, Default, Clone)]
pub(super) struct Ending {
    /// Whether everything has been looked at once.
    is_known: bool,
    /// Whether the namespace itself is to be looked at.
    is_due: bool,
    /// What changed since.
    changed: BTreeSet<Place>,
    /// What is left.
    left: BTreeMap<Place, Part>,
    /// The sum of that.
    remaining: Remaining,
}

impl Ending {
    /// Notes that the namespace itself changed.
    pub(super) fn touch(&mut self) {
        self.is_due = true;
    }

    /// Notes that something in it changed.
    pub(super) fn note(&mut self, table: &Arc<str>, object: &Object) {
        self.changed.insert((table.clone(), object.key().into()));
    }

    /// Whether there is something to do.
    pub(super) fn is_due(&self) -> bool {
        self.is_due || !self.is_known || !self.changed.is_empty()
    }

    /// Deletes what is not being deleted yet. The answer is what is left.
    ///
    /// # Errors
    ///
    /// When one of them cannot be deleted; it is tried again the next time.
    pub(super) fn delete_contents(
        &mut self,
        shared: &Arc<Shared>,
        name: &str,
    ) -> Result<&Remaining, ApiError> {
        if !std::mem::replace(&mut self.is_known, true) {
            let prefix = format!("{name}/");
            let inside = Range {
                prefix: &prefix,
                from: "",
            };
            for table in shared.store.tables() {
                let page = shared.store.list(&table, &inside, None);
                for object in page.map(|page| page.objects).unwrap_or_default() {
                    self.note(&table, &object);
                }
            }
        }
        self.is_due = false;
        while let Some(place) = self.changed.pop_first() {
            if let Err(error) = self.look(shared, &place) {
                self.changed.insert(place);
                return Err(error);
            }
        }
        Ok(&self.remaining)
    }

    fn look(&mut self, shared: &Arc<Shared>, place: &Place) -> Result<(), ApiError> {
        let (table, key) = place;
        if let Some(part) = self.left.remove(place) {
            self.remaining.remove(&part);
        }
        let Some(resource) = shared.registry.find_table(table).filter(|r| r.namespaced) else {
            return Ok(());
        };
        let Some(object) = shared.store.get(table, key) else {
            return Ok(());
        };
        if !object.is_terminating() {
            delete(shared, &resource, &object, &DeleteOptions::default())?;
        }
        if let Some(object) = shared.store.get(table, key) {
            let part = Part::of(&resource, &object.value());
            self.remaining.add(&part);
            self.left.insert(place.clone(), part);
        }
        Ok(())
    }
}
