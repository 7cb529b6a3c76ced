//! When the volumes of claims are bound, as their StorageClasses say.

use crate::active::Active;
use reeve_cluster::{Answer, Snapshot, WatchSpec};
use reeve_core::health::VolumeBinding;
use serde_json::Value;
use std::sync::Arc;

/// The StorageClasses of one version of the store, for a plugin that writes claims.
pub(super) struct Classes(Option<(Arc<WatchSpec>, Snapshot)>);

impl Classes {
    pub(super) fn of(active: &Active, snapshot: &Snapshot) -> Self {
        let watch = active.watches.classes.as_ref();
        Self(watch.map(|watch| (watch.spec().clone(), snapshot.clone())))
    }

    /// When a claim is bound; none where nothing says so: it names no class, or one
    /// that does not exist.
    ///
    /// # Errors
    ///
    /// Why its class cannot be seen.
    pub(super) fn binding(&self, claim: &Value) -> Result<Option<VolumeBinding>, String> {
        let named = claim["spec"]["storageClassName"].as_str();
        let named = named.filter(|name| !name.is_empty());
        let Some(((watch, snapshot), name)) = self.0.as_ref().zip(named) else {
            return Ok(None);
        };
        match snapshot.get_in(watch, None, name) {
            Answer::Found(class) => Ok(VolumeBinding::of_class(&class.value())),
            Answer::Absent | Answer::NotWatched => Ok(None),
            Answer::NotSynced(state) => Err(format!(
                "whether it is bound before a Pod uses it is not known, since StorageClass {name} \
                 cannot be seen: {state}"
            )),
        }
    }
}
