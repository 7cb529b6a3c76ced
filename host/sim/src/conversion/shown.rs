//! Stored objects in the version of whoever reads them, where a webhook has to be asked.
//!
//! What was answered is kept for lists, watches and writes, as in the watch cache that the
//! real server has of each version; reading one object asks again, as there.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::webhook::Webhook;
use crate::resource::{Nature, Resource};
use crate::rest::meta;
use crate::status::ApiError;
use crate::store::Object;

/// How many answers are kept before it is looked which of them are of no use any more.
const FEW: usize = 64;

/// How the objects of one version of a definition become those of others, and back.
#[derive(Debug)]
pub(crate) struct Converter {
    pub(crate) webhook: Arc<Webhook>,
    known: Mutex<Known>,
}

/// What was answered of stored objects.
#[derive(Debug, Default)]
struct Known {
    /// By key: an object as it is stored, and as it is shown.
    shown: HashMap<Box<str>, (Weak<Object>, Arc<Object>)>,
    /// How many there may be before those are dropped whose objects are gone.
    limit: usize,
}

impl Known {
    fn get(&self, object: &Arc<Object>) -> Option<Arc<Object>> {
        let (of, shown) = self.shown.get(object.key())?;
        // While this is held, nothing else gets the place of its object.
        std::ptr::eq(of.as_ptr(), Arc::as_ptr(object)).then(|| shown.clone())
    }

    fn keep(&mut self, object: &Arc<Object>, shown: &Arc<Object>) {
        // What was before a change is asked about after it, too, by who selects.
        let newer = self
            .shown
            .get(object.key())
            .and_then(|(of, _)| of.upgrade());
        if newer.is_some_and(|newer| newer.version() > object.version()) {
            return;
        }
        if self.shown.len() >= self.limit.max(FEW) {
            self.shown.retain(|_, (of, _)| of.strong_count() > 0);
            self.limit = 2 * self.shown.len();
        }
        let of = (Arc::downgrade(object), shown.clone());
        self.shown.insert(object.key().into(), of);
    }
}

impl Converter {
    pub(crate) fn new(webhook: &Arc<Webhook>) -> Self {
        Converter {
            webhook: webhook.clone(),
            known: Mutex::default(),
        }
    }

    fn known(&self, object: &Arc<Object>) -> Option<Arc<Object>> {
        self.known.lock().get(object)
    }
}

impl Resource {
    /// Who has to be asked what an object is like in this version; nobody where that is
    /// known.
    fn asks_about(&self, object: &Object) -> Option<&Converter> {
        match &self.nature {
            Nature::Custom(custom) if *object.api_version() != *self.api_version => {
                custom.converter.as_ref()
            }
            _ => None,
        }
    }

    /// Whether objects of this version come from others by asking.
    pub(crate) fn has_converter(&self) -> bool {
        matches!(&self.nature, Nature::Custom(custom) if custom.converter.is_some())
    }

    /// A stored object as it is to be shown in this version, asked anew. Where nobody has to
    /// be asked it is the same object, which is shown as others are.
    ///
    /// # Errors
    ///
    /// 500 with what the webhook says, or why it says nothing that counts.
    pub(crate) async fn shown_anew(&self, object: Arc<Object>) -> Result<Arc<Object>, ApiError> {
        let Some(converter) = self.asks_about(&object) else {
            return Ok(object);
        };
        let stored = unversioned(&object);
        let answer = converter.webhook.convert(&stored, &self.api_version);
        Ok(self.show(&object, answer.await.map_err(ApiError::internal)?))
    }

    /// As [`Resource::shown_anew`], of what was shown already without asking.
    pub(crate) async fn shown(&self, object: Arc<Object>) -> Result<Arc<Object>, ApiError> {
        let Some(converter) = self.asks_about(&object) else {
            return Ok(object);
        };
        if let Some(known) = converter.known(&object) {
            return Ok(known);
        }
        let shown = self.shown_anew(object.clone()).await?;
        converter.known.lock().keep(&object, &shown);
        Ok(shown)
    }

    /// Objects of a table, as they are at `version`, as [`Resource::shown`], and up to which
    /// version these are all: the real server has one cache of all objects in a version,
    /// which does not get beyond the first that cannot be shown.
    pub(crate) async fn all_shown(
        &self,
        mut objects: Vec<Arc<Object>>,
        version: u64,
    ) -> (Vec<Arc<Object>>, u64) {
        let mut reached = version;
        // In the order of their versions: what comes after the first that cannot be shown is
        // not asked about, which may take its time for each.
        let mut order: Vec<(u64, usize)> = objects
            .iter()
            .enumerate()
            .map(|(index, object)| (object.version(), index))
            .collect();
        order.sort_unstable();
        for (of, index) in order {
            let Some(object) = objects.get_mut(index) else {
                continue;
            };
            match self.shown(object.clone()).await {
                Ok(shown) => *object = shown,
                Err(_) => {
                    reached = reached.min(of.saturating_sub(1));
                    break;
                }
            }
        }
        objects.retain(|object| object.version() <= reached);
        (objects, reached)
    }

    /// As [`Resource::shown_anew`], for who can only wait with a thread.
    pub(crate) fn shown_anew_now(&self, object: Arc<Object>) -> Result<Arc<Object>, ApiError> {
        let Some(converter) = self.asks_about(&object) else {
            return Ok(object);
        };
        let stored = unversioned(&object);
        let answer = converter.webhook.convert_now(&stored, &self.api_version);
        Ok(self.show(&object, answer.map_err(ApiError::internal)?))
    }

    /// As [`Resource::shown`], for who can only wait with a thread.
    pub(crate) fn shown_now(&self, object: Arc<Object>) -> Result<Arc<Object>, ApiError> {
        let Some(converter) = self.asks_about(&object) else {
            return Ok(object);
        };
        if let Some(known) = converter.known(&object) {
            return Ok(known);
        }
        let shown = self.shown_anew_now(object.clone())?;
        converter.known.lock().keep(&object, &shown);
        Ok(shown)
    }

    /// Refuses to change an object that its webhook does not make again what is stored. The
    /// real server asks for that, to compare it with what is there.
    ///
    /// # Errors
    ///
    /// As [`Resource::shown_anew`].
    pub(crate) fn check_storable(&self, shown: &Value) -> Result<(), ApiError> {
        if !self.has_converter() || self.storage().is_none() {
            return Ok(());
        }
        self.encode(&mut shown.clone())
    }

    /// The object that is shown for `object`, of which the webhook has made `value`.
    fn show(&self, object: &Object, mut value: Value) -> Arc<Object> {
        if let Nature::Custom(custom) = &self.nature {
            custom.trim(&mut value);
            custom.drop_nulls(&mut value);
        }
        // What was only tried has the version that it came with, or none.
        if object.version() > 0 {
            let version = object.version().to_string();
            meta::of_mut(&mut value).insert("resourceVersion".to_owned(), json!(version));
        }
        Arc::new(Object::unstored(object.key(), &value))
    }
}

/// An object as it is in the store of a real server, whose versions are no part of it.
fn unversioned(object: &Object) -> Value {
    let mut value = object.value();
    meta::of_mut(&mut value).remove("resourceVersion");
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> Arc<Object> {
        Arc::new(Object::unstored(name, &json!({"metadata": {"name": name}})))
    }

    #[test]
    fn what_was_answered_is_of_one_object_and_goes_with_it() {
        let mut known = Known::default();
        let (first, shown) = (object("a"), object("a"));
        known.keep(&first, &shown);
        assert!(
            known
                .get(&first)
                .is_some_and(|found| Arc::ptr_eq(&found, &shown))
        );
        // Another write of the same object is another one, whatever is in it.
        let second = object("a");
        assert!(known.get(&second).is_none());
        known.keep(&second, &shown);
        assert!(known.get(&first).is_none());

        let kept: Vec<_> = (0..FEW)
            .map(|number| object(&format!("kept-{number}")))
            .collect();
        for (number, object) in kept.iter().enumerate() {
            known.keep(object, &shown);
            for gone in 0..3 {
                known.keep(&self::object(&format!("gone-{number}-{gone}")), &shown);
            }
        }
        assert!(kept.iter().all(|object| known.get(object).is_some()));
        // There are never many more of what is gone than of the others.
        assert!(
            known.shown.len() <= 2 * (kept.len() + 1),
            "{}",
            known.shown.len()
        );
    }
}
