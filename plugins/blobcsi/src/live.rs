//! The volumes and claims that exist.

use std::collections::BTreeMap;

use reeve_sdk::names::check_label_value;
use reeve_sdk::prelude::*;

use crate::volume::{AUTOMOUNT, CLASSIFICATION, PROFILE, Pair, prunable};
use crate::{CLAIM, VOLUME};

/// What is read of both.
const PARTS: [&str; 4] = [
    "/metadata/labels",
    "/metadata/deletionTimestamp",
    "/spec",
    "/status/phase",
];

/// Volumes and claims of plugins, by name: what others made is none of ours.
#[derive(Default)]
pub(crate) struct Live {
    pub(crate) volumes: BTreeMap<String, Found>,
    pub(crate) claims: BTreeMap<String, Found>,
}

/// A volume or a claim.
#[input]
#[derive(Default)]
pub(crate) struct Found {
    metadata: Metadata,
    #[serde(default)]
    spec: Json,
    #[serde(default)]
    status: Status,
}

#[input]
#[derive(Default)]
struct Status {
    #[serde(default)]
    phase: String,
}

impl Live {
    /// Looks at what these pairs are about, and with `all` at everything else of
    /// the Profile as well. That costs more: it is asked again at each change of
    /// any volume.
    pub(crate) fn read(
        cx: &Context,
        profile: &str,
        pairs: &[Pair],
        all: bool,
    ) -> Result<Self, Failure> {
        let mut live = Self::default();
        if all && check_label_value(profile).is_ok() {
            let volumes = Query::of(VOLUME)
                .selector(format!("{PROFILE}={profile}"))
                .projection(PARTS);
            let claims = Query::of(CLAIM).in_namespace(profile).projection(PARTS);
            live.volumes.extend(named(cx.list(&volumes)?));
            live.claims.extend(named(cx.list(&claims)?));
        }
        for pair in pairs {
            let volume = VOLUME.object(&pair.volume);
            let claim = CLAIM.object(&pair.claim).in_namespace(profile);
            live.volumes.extend(named(cx.get_parts(&volume, PARTS)?));
            live.claims.extend(named(cx.get_parts(&claim, PARTS)?));
        }
        Ok(live)
    }

    /// Whether there is a volume or a claim of this pair.
    pub(crate) fn has(&self, pair: &Pair) -> bool {
        self.volumes.contains_key(&pair.volume) || self.claims.contains_key(&pair.claim)
    }

    /// Whether the volume and the claim of a pair can be as they should be; or must
    /// go first, to be made anew.
    ///
    /// Where a volume's data is, and almost everything of a claim, cannot be
    /// changed. One is bound to the other, so both go. A volume whose claim is gone
    /// is never bound again, nor is a claim whose volume is gone.
    pub(crate) fn fits(&self, pair: &Pair) -> (bool, bool) {
        let (volume, claim) = (self.volumes.get(&pair.volume), self.claims.get(&pair.claim));
        let moved = volume.is_some_and(|volume| !volume.has_source(&pair.csi()))
            || claim.is_some_and(|claim| !claim.has_all_of(&pair.claim_spec()));
        let left = volume.is_some_and(|volume| ["Released", "Failed"].contains(&volume.phase()));
        let lost = claim.is_some_and(|claim| claim.phase() == "Lost");
        (!moved && !left, !moved && !lost)
    }
}

fn named(found: impl IntoIterator<Item = Found>) -> impl Iterator<Item = (String, Found)> {
    let ours = found
        .into_iter()
        .filter(|found| found.metadata.belongs_to_plugin());
    ours.map(|found| (found.metadata.name.clone(), found))
}

impl Found {
    pub(crate) fn name(&self) -> &str {
        &self.metadata.name
    }

    fn phase(&self) -> &str {
        &self.status.phase
    }

    pub(crate) fn label(&self, key: &str) -> &str {
        self.metadata.labels.get(key).map_or("", String::as_str)
    }

    /// Whether a claim is of the kind that this plugin makes.
    pub(crate) fn is_automounted(&self) -> bool {
        self.label(AUTOMOUNT) == "true"
    }

    pub(crate) fn is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// What stands at a path of a volume's or claim's `spec`.
    fn text(&self, pointer: &str) -> &str {
        self.spec
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Whether a volume is this driver's, and says the same of where the data is.
    fn has_source(&self, csi: &Value) -> bool {
        let Some(found) = self.spec.get("csi") else {
            return false;
        };
        let readable = |csi: &Value| csi.get("readOnly") == Some(&Value::Bool(true));
        readable(found) == readable(csi) && includes(found, csi)
    }

    fn has_all_of(&self, spec: &Value) -> bool {
        includes(&self.spec, spec)
    }

    /// The storage account of somebody's bucket.
    pub(crate) fn account(&self) -> &str {
        self.text("/csi/volumeAttributes/storageAccount")
    }

    /// Whether a volume gives access to this source of data.
    pub(crate) fn gives(&self, pair: &Pair) -> bool {
        self.has_source(&pair.csi())
    }

    /// The volume of a claim.
    pub(crate) fn volume_name(&self) -> &str {
        self.text("/volumeName")
    }

    /// The volume as it is, as far as it is the plugin's.
    pub(crate) fn kept_volume(&self) -> Object<Value> {
        let mut spec = self.parts(&[
            "accessModes",
            "capacity",
            "csi",
            "mountOptions",
            "persistentVolumeReclaimPolicy",
        ]);
        spec["claimRef"] = json!({"name": self.text("/claimRef/name"), "namespace": self.text("/claimRef/namespace")});
        let labels = [CLASSIFICATION, PROFILE].map(|key| (key, self.label(key)));
        prunable(VOLUME.object(&self.metadata.name), labels, spec)
    }

    /// The claim as it is, as far as it is the plugin's.
    pub(crate) fn kept_claim(&self, namespace: &str) -> Object<Value> {
        let parts = ["accessModes", "resources", "storageClassName", "volumeName"];
        let labels = [CLASSIFICATION, AUTOMOUNT].map(|key| (key, self.label(key)));
        let claim = CLAIM.object(&self.metadata.name).in_namespace(namespace);
        prunable(claim, labels, self.parts(&parts))
    }

    fn parts(&self, names: &[&str]) -> Value {
        let mut parts = json!({});
        for name in names {
            if let Some(part) = self.spec.get(*name) {
                parts[*name] = part.clone();
            }
        }
        parts
    }
}

/// Whether a value has all that another has; more is none of ours.
fn includes(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| found.get(key).is_some_and(|found| includes(found, value))),
        _ => found == wanted,
    }
}
