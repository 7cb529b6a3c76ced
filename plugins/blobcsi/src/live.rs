//! The volumes and claims that exist.

use reeve_sdk::JsonError;
use reeve_sdk::names::check_label_value;
use reeve_sdk::prelude::*;

use crate::config::SecretRef;
use crate::pair::Pair;
use crate::volume::{AUTOMOUNT, CLASSIFICATION, Claim, PROFILE, Volume};
use crate::{CLAIM, VOLUME};

/// What is read of both.
const PARTS: [&str; 4] = [
    "/metadata/labels",
    "/metadata/deletionTimestamp",
    "/spec",
    "/status/phase",
];

/// These parts of an object. One function for all, which is smaller than several.
pub(crate) fn look(
    cx: &Context,
    object: &ObjectReference,
    parts: &[&str],
) -> Result<Option<Fields>, ReadError> {
    cx.get_parts(object, parts.iter().copied())
}

/// Volumes and claims of plugins: what others made is none of ours.
#[derive(Default)]
pub(crate) struct Live {
    pub(crate) volumes: Vec<LiveVolume>,
    pub(crate) claims: Vec<LiveClaim>,
}

/// A volume as it is.
pub(crate) struct LiveVolume {
    pub(crate) volume: Volume,
    phase: String,
    /// Whether it is being deleted, which takes as long as there is a claim to it.
    is_going: bool,
}

/// A claim as it is.
pub(crate) struct LiveClaim {
    pub(crate) claim: Claim,
    phase: String,
    /// Whether it is being deleted.
    pub(crate) is_going: bool,
    /// Whether it is of the kind that this plugin makes.
    pub(crate) is_automounted: bool,
}

impl Live {
    /// Looks at what these pairs are about, and with `all` at everything else of
    /// the Profile as well. That costs more: it is asked again at each change of
    /// any of the Profile's volumes.
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
            for object in cx.list::<Fields>(&volumes)? {
                live.add_volume(&object)?;
            }
            for object in cx.list::<Fields>(&claims)? {
                live.add_claim(&object)?;
            }
            // A label can be taken off, and the volume is claimed all the same.
            let claimed = live.claims.iter().map(|live| live.claim.volume.clone());
            for name in claimed.collect::<Vec<String>>() {
                live.look_for_volume(cx, &name)?;
            }
        }
        for Pair { volume, claim, .. } in pairs {
            live.look_for_volume(cx, &volume.name)?;
            let reference = CLAIM.object(&claim.name).in_namespace(profile);
            if live.claim(&claim.name).is_none()
                && let Some(object) = look(cx, &reference, &PARTS)?
            {
                live.add_claim(&object)?;
            }
        }
        Ok(live)
    }

    pub(crate) fn volume(&self, name: &str) -> Option<&LiveVolume> {
        self.volumes.iter().find(|live| live.volume.name == name)
    }

    pub(crate) fn claim(&self, name: &str) -> Option<&LiveClaim> {
        self.claims.iter().find(|live| live.claim.name == name)
    }

    /// Whether there is a volume or a claim of this pair.
    pub(crate) fn has(&self, pair: &Pair) -> bool {
        self.volume(&pair.volume.name).is_some() || self.claim(&pair.claim.name).is_some()
    }

    /// Whether the volume and the claim of a pair can be as they should be; or must
    /// go first, to be made anew.
    ///
    /// Where a volume's data is, and almost everything of a claim, cannot be
    /// changed. One is bound to the other, so both go. A volume whose claim is gone
    /// is never bound again, nor is a claim whose volume is gone. One that somebody
    /// deletes while it is claimed would wait for the end of its claim for ever.
    pub(crate) fn fits(&self, pair: &Pair) -> (bool, bool) {
        let (volume, claim) = (self.volume(&pair.volume.name), self.claim(&pair.claim.name));
        let moved = volume.is_some_and(|live| !live.volume.source.is(&pair.volume.source))
            || claim.is_some_and(|live| !live.claim.is(&pair.claim))
            || volume.is_some_and(|live| live.is_going && live.phase == "Bound");
        let left = volume.is_some_and(|live| ["Released", "Failed"].contains(&&*live.phase));
        let lost = claim.is_some_and(|live| live.phase == "Lost");
        (!moved && !left, !moved && !lost)
    }

    fn look_for_volume(&mut self, cx: &Context, name: &str) -> Result<(), Failure> {
        if name.is_empty() || self.volume(name).is_some() {
            return Ok(());
        }
        if let Some(object) = look(cx, &VOLUME.object(name), &PARTS)? {
            self.add_volume(&object)?;
        }
        Ok(())
    }

    fn add_volume(&mut self, object: &Fields) -> Result<(), ReadError> {
        let read = LiveVolume::read(object);
        self.volumes.extend(read.map_err(malformed(VOLUME))?);
        Ok(())
    }

    fn add_claim(&mut self, object: &Fields) -> Result<(), ReadError> {
        let read = LiveClaim::read(object);
        self.claims.extend(read.map_err(malformed(CLAIM))?);
        Ok(())
    }
}

impl LiveVolume {
    /// None for one that no plugin made.
    fn read(object: &Fields) -> Result<Option<Self>, JsonError> {
        let metadata: Metadata = object.read("metadata")?;
        if !metadata.belongs_to_plugin() {
            return Ok(None);
        }
        let spec: Fields = object.read("spec")?;
        let csi: Fields = spec.read("csi")?;
        let is_going = metadata.deletion_timestamp.is_some();
        let mut volume = Volume {
            profile: label(&metadata, PROFILE),
            class: label(&metadata, CLASSIFICATION),
            name: metadata.name,
            ..Volume::default()
        };
        volume.access_modes = spec.read("accessModes")?;
        volume.size = storage(&spec.read("capacity")?)?;
        volume.claim = name_in(&spec, "claimRef")?.name;
        volume.source.driver = csi.read("driver")?;
        volume.source.handle = csi.read("volumeHandle")?;
        volume.source.read_only = csi.read("readOnly")?;
        volume.source.attributes = csi.read("volumeAttributes")?;
        volume.source.secret = name_in(&csi, "nodeStageSecretRef")?;
        volume.options = spec.read("mountOptions")?;
        let phase = phase(object)?;
        Ok(Some(Self {
            volume,
            phase,
            is_going,
        }))
    }
}

impl LiveClaim {
    /// None for one that no plugin made.
    fn read(object: &Fields) -> Result<Option<Self>, JsonError> {
        let metadata: Metadata = object.read("metadata")?;
        if !metadata.belongs_to_plugin() {
            return Ok(None);
        }
        let spec: Fields = object.read("spec")?;
        let resources: Fields = spec.read("resources")?;
        let mut live = Self {
            is_automounted: label(&metadata, AUTOMOUNT) == "true",
            is_going: metadata.deletion_timestamp.is_some(),
            phase: phase(object)?,
            claim: Claim {
                class: label(&metadata, CLASSIFICATION),
                profile: metadata.namespace.unwrap_or_default(),
                name: metadata.name,
                ..Claim::default()
            },
        };
        live.claim.access_modes = spec.read("accessModes")?;
        live.claim.size = storage(&resources.read("requests")?)?;
        live.claim.volume = spec.read("volumeName")?;
        Ok(Some(live))
    }
}

/// The error for an object that is not as the API server has them.
pub(crate) fn malformed(kind: Kind) -> impl FnOnce(JsonError) -> ReadError {
    |source| ReadError::Malformed { kind, source }
}

fn label(metadata: &Metadata, key: &str) -> String {
    metadata.labels.get(key).cloned().unwrap_or_default()
}

fn storage(amounts: &Fields) -> Result<String, JsonError> {
    amounts.read("storage")
}

fn phase(object: &Fields) -> Result<String, JsonError> {
    let status: Fields = object.read("status")?;
    status.read("phase")
}

fn name_in(fields: &Fields, field: &str) -> Result<SecretRef, JsonError> {
    let reference: Fields = fields.read(field)?;
    Ok(SecretRef {
        name: reference.read("name")?,
        namespace: reference.read("namespace")?,
    })
}
