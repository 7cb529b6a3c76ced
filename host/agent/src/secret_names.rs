//! Names of the Secrets that units have.
//!
//! Nobody may list or watch Secrets, so what a unit has is known by name alone. The names
//! are remembered in its `Unit` object, from before a Secret is made until it is gone.

use crate::controller::{unit_object_name, unit_object_prefix};
use reeve_api::{GROUP, KeptSecret, PrimaryReference, Unit, UnitSpec, UnitStatus, VERSION};
use reeve_cluster::{Object, ObjectName, Store};
use reeve_core::manifest::secret_kind;
use reeve_core::ownership::unit_label;
use reeve_core::selector::Selector;
use reeve_core::{GroupVersionKind, ObjectReference, UnitKey};
use std::collections::BTreeSet;

/// What a `Unit` object remembers of Secrets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Remembered {
    /// Name of the `Unit` object.
    pub(crate) object: String,
    pub(crate) unit: UnitKey,
    pub(crate) spec: UnitSpec,
    pub(crate) names: BTreeSet<KeptSecret>,
    /// Whether it says nothing else.
    pub(crate) bare: bool,
}

impl Remembered {
    /// What an object remembers; none when that is nothing, or it is no `Unit` of ours.
    pub(crate) fn of(object: &Object) -> Option<Self> {
        let Unit { spec, status, .. } = serde_json::from_value(object.value()).ok()?;
        let mut status = status?;
        let names: BTreeSet<KeptSecret> = std::mem::take(&mut status.secrets).into_iter().collect();
        if names.is_empty() {
            return None;
        }
        let primary = &spec.primary;
        let kind = GroupVersionKind::from_fields(&primary.api_version, &primary.kind)?;
        let reference = ObjectReference::new(kind, primary.namespace.clone(), primary.name.clone());
        let unit = UnitKey::new(spec.plugin.as_str(), reference);
        // Who may make a Unit may write anything into it.
        (unit_object_name(&unit) == object.name()).then(|| Self {
            object: object.name().to_owned(),
            unit,
            spec,
            names,
            bare: status == UnitStatus::default(),
        })
    }

    /// The names, and by whom they are held in the store.
    pub(crate) fn held(&self) -> (String, BTreeSet<ObjectName>) {
        let names = self.names.iter();
        let names = names.map(|one| ObjectName::new(Some(&one.namespace), &one.name));
        (unit_label(&self.unit).to_owned(), names.collect())
    }

    /// The Secrets.
    pub(crate) fn references(&self) -> impl Iterator<Item = ObjectReference> {
        self.names.iter().map(|one| {
            let namespace = Some(one.namespace.clone());
            ObjectReference::new(secret_kind().clone(), namespace, one.name.clone())
        })
    }
}

/// What the `Unit` objects of a plugin remember, as far as they are watched.
pub(crate) fn of_plugin(store: &Store, namespace: &str, plugin: &str) -> Vec<Remembered> {
    let kind = GroupVersionKind::new(GROUP, VERSION, "Unit");
    let units = store
        .snapshot()
        .list(&kind, Some(namespace), &Selector::default());
    let prefix = unit_object_prefix(plugin);
    let units = units.found().unwrap_or_default().into_iter();
    units
        .filter(|object| object.name().starts_with(&prefix))
        .filter_map(|object| Remembered::of(&object))
        .filter(|remembered| *remembered.unit.plugin == *plugin)
        .collect()
}

/// What the `Unit` object of a unit is about.
pub(crate) fn unit_spec(unit: &UnitKey, uid: Option<&str>) -> UnitSpec {
    let primary = &unit.primary;
    UnitSpec {
        plugin: unit.plugin.to_string(),
        primary: PrimaryReference {
            api_version: primary.kind.api_version(),
            kind: primary.kind.kind.clone(),
            namespace: primary.namespace.clone(),
            name: primary.name.clone(),
            uid: uid.unwrap_or_default().to_owned(),
        },
    }
}

/// The name of a Secret, as a `Unit` remembers it.
pub(crate) fn kept_secret(secret: &ObjectName) -> KeptSecret {
    KeptSecret {
        namespace: secret.namespace.clone().unwrap_or_default(),
        name: secret.name.clone(),
    }
}

/// The name of a Secret, as the store takes it.
pub(crate) fn object_name(secret: &ObjectReference) -> ObjectName {
    ObjectName::new(secret.namespace.as_deref(), &secret.name)
}
