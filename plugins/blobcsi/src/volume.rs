//! Volumes and claims to them, as the plugin makes them.

use reeve_sdk::Strings;
use reeve_sdk::prelude::*;

use crate::bucket::Access;
use crate::config::SecretRef;
use crate::{CLAIM, VOLUME};

/// The label with the classification of what is in a volume.
pub(crate) const CLASSIFICATION: &str = "data.statcan.gc.ca/classification";
/// The label of volumes with the Profile that they are for.
pub(crate) const PROFILE: &str = "kubeflow-profile";
/// The label of claims that notebooks mount by themselves.
pub(crate) const AUTOMOUNT: &str = "blob.aaw.statcan.gc.ca/automount";
/// The annotation that permits to delete what is no longer wanted: volumes keep
/// their data, since they are retained.
const PRUNE: &str = "reeve.dev/prune";

/// The CSI driver.
const DRIVER: &str = "blob.csi.azure.com";
/// The option that mounts a folder of a container.
pub(crate) const FOLDER: &str = "--subdirectory=";
/// How all volumes are mounted: by everybody, with short caches.
const OPTIONS: [&str; 9] = [
    "-o allow_other",
    "--file-cache-timeout-in-seconds=120",
    "--use-attr-cache=true",
    "--cancel-list-on-mount-seconds=10",
    "-o attr_timeout=120",
    "-o entry_timeout=120",
    "-o negative_timeout=120",
    "--log-level=LOG_DEBUG",
    "--cache-size-mb=1000",
];

/// A volume, as far as it is the plugin's.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Volume {
    pub(crate) name: String,
    pub(crate) profile: String,
    pub(crate) class: String,
    pub(crate) access_modes: Vec<String>,
    pub(crate) size: String,
    /// The claim that it is for, in the Profile's namespace.
    pub(crate) claim: String,
    pub(crate) source: Source,
    pub(crate) options: Vec<String>,
}

/// Where the data of a volume is, which it cannot change.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Source {
    pub(crate) driver: String,
    pub(crate) handle: String,
    pub(crate) read_only: bool,
    pub(crate) attributes: Strings,
    pub(crate) secret: SecretRef,
}

/// A claim, as far as it is the plugin's.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Claim {
    pub(crate) name: String,
    pub(crate) profile: String,
    pub(crate) class: String,
    pub(crate) access_modes: Vec<String>,
    pub(crate) size: String,
    pub(crate) volume: String,
}

impl Source {
    /// An attribute; empty if there is none.
    pub(crate) fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.attributes.insert(name.to_owned(), value.to_owned());
    }

    /// Whether this is the same data as another says, however much more is said here.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.driver == other.driver
            && self.handle == other.handle
            && self.read_only == other.read_only
            && self.secret == other.secret
            && other
                .attributes
                .iter()
                .all(|(name, value)| self.attributes.get(name) == Some(value))
    }
}

impl Volume {
    /// One of which it is not said yet where its data is.
    pub(crate) fn new(name: String, profile: &str, access: Access, terabytes: u32) -> Self {
        let mut options: Vec<String> = OPTIONS.iter().map(|&option| option.to_owned()).collect();
        let mode = match access {
            Access::Read => {
                options.push("-o ro".to_owned());
                "ReadOnlyMany"
            }
            Access::ReadWrite => "ReadWriteMany",
        };
        Self {
            profile: profile.to_owned(),
            access_modes: vec![mode.to_owned()],
            size: in_terabytes(terabytes),
            source: Source {
                driver: DRIVER.to_owned(),
                handle: name.clone(),
                read_only: access == Access::Read,
                ..Source::default()
            },
            options,
            name,
            ..Self::default()
        }
    }

    /// Whether it is the same place as another's, whoever may do what there.
    pub(crate) fn is_at(&self, other: &Self) -> bool {
        let same = |name| self.source.attribute(name) == other.source.attribute(name);
        same("storageAccount") && same("containerName") && self.folder() == other.folder()
    }

    /// The folder of the container that is mounted; empty for all of it.
    pub(crate) fn folder(&self) -> &str {
        let mut options = self.options.iter();
        let folder = options.find_map(|option| option.strip_prefix(FOLDER));
        folder.unwrap_or_default()
    }

    /// The object.
    pub(crate) fn object(&self) -> Object<VolumeSpec<'_>> {
        let source = &self.source;
        let spec = VolumeSpec {
            access_modes: &self.access_modes,
            capacity: Storage {
                storage: &self.size,
            },
            claim_ref: Reference {
                name: &self.claim,
                namespace: &self.profile,
            },
            csi: Csi {
                driver: &source.driver,
                node_stage_secret_ref: Reference {
                    name: &source.secret.name,
                    namespace: &source.secret.namespace,
                },
                // The API server leaves out what is false.
                read_only: source.read_only.then_some(true),
                volume_attributes: &source.attributes,
                volume_handle: &source.handle,
            },
            mount_options: &self.options,
            persistent_volume_reclaim_policy: "Retain",
        };
        let mut object = Object::new(VOLUME.object(&self.name), spec);
        mark(&mut object.metadata, &self.class, PROFILE, &self.profile);
        object
    }
}

impl Claim {
    /// The claim to a volume.
    pub(crate) fn to(volume: &Volume) -> Self {
        Self {
            name: volume.claim.clone(),
            profile: volume.profile.clone(),
            class: volume.class.clone(),
            access_modes: volume.access_modes.clone(),
            size: volume.size.clone(),
            volume: volume.name.clone(),
        }
    }

    /// Whether nothing is different that a claim cannot change.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.access_modes == other.access_modes
            && self.volume == other.volume
            && is_same_amount(&self.size, &other.size)
    }

    /// The object.
    pub(crate) fn object(&self) -> Object<ClaimSpec<'_>> {
        let spec = ClaimSpec {
            access_modes: &self.access_modes,
            resources: Resources {
                requests: Storage {
                    storage: &self.size,
                },
            },
            storage_class_name: "",
            volume_name: &self.volume,
        };
        let claim = CLAIM.object(&self.name).in_namespace(&self.profile);
        let mut object = Object::new(claim, spec);
        mark(&mut object.metadata, &self.class, AUTOMOUNT, "true");
        object
    }
}

/// A number of terabytes as the API server writes it: in the largest unit that leaves it
/// whole.
fn in_terabytes(number: u32) -> String {
    const MILLION: u32 = 1_000_000;
    match number {
        number if number % MILLION == 0 => format!("{}E", number / MILLION),
        number if number % 1000 == 0 => format!("{}P", number / 1000),
        number => format!("{number}T"),
    }
}

/// Whether two quantities are the same, however they are written. What is none is only
/// like itself.
fn is_same_amount(one: &str, other: &str) -> bool {
    match (one.parse::<Quantity>(), other.parse::<Quantity>()) {
        (Ok(one), Ok(other)) => one.compare(&other).is_eq(),
        _ => one == other,
    }
}

/// What is said of an object that may be deleted when it is no longer wanted.
///
/// One by one: a map that is collected is sorted first, which is much code.
fn mark(metadata: &mut ObjectMeta, class: &str, label: &str, value: &str) {
    let ObjectMeta {
        labels,
        annotations,
        ..
    } = metadata;
    labels.insert(CLASSIFICATION.to_owned(), class.to_owned());
    labels.insert(label.to_owned(), value.to_owned());
    annotations.insert(PRUNE.to_owned(), "allow".to_owned());
}

/// The spec of a volume.
#[output]
pub(crate) struct VolumeSpec<'a> {
    access_modes: &'a [String],
    capacity: Storage<'a>,
    claim_ref: Reference<'a>,
    csi: Csi<'a>,
    mount_options: &'a [String],
    persistent_volume_reclaim_policy: &'static str,
}

/// What the driver is told of a volume.
#[output]
struct Csi<'a> {
    driver: &'a str,
    node_stage_secret_ref: Reference<'a>,
    read_only: Option<bool>,
    volume_attributes: &'a Strings,
    volume_handle: &'a str,
}

/// The spec of a claim.
#[output]
pub(crate) struct ClaimSpec<'a> {
    access_modes: &'a [String],
    resources: Resources<'a>,
    storage_class_name: &'static str,
    volume_name: &'a str,
}

#[output]
struct Resources<'a> {
    requests: Storage<'a>,
}

#[output]
struct Storage<'a> {
    storage: &'a str,
}

#[output]
struct Reference<'a> {
    name: &'a str,
    namespace: &'a str,
}
