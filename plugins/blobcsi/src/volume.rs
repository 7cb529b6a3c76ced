//! The volumes and claims that a Profile should have.

use reeve_sdk::names::{BadName, check_dns_subdomain, check_label_value};
use reeve_sdk::prelude::*;

use crate::azure::{check_container, container_of};
use crate::bucket::{Access, Bucket};
use crate::config::{Class, Fdi, Instance, SecretRef};
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

/// A volume, and the claim to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair {
    /// What it gives access to, in the words of who described it.
    pub(crate) what: String,
    pub(crate) profile: String,
    pub(crate) volume: String,
    pub(crate) claim: String,
    /// The effect without which there is nothing to mount.
    pub(crate) needs: Option<String>,
    class: &'static str,
    access: Access,
    capacity: u32,
    secret: SecretRef,
    attributes: Vec<(&'static str, String)>,
    options: Vec<String>,
}

impl Pair {
    /// A Profile's own container in a storage account.
    pub(crate) fn of_instance(
        instance: &Instance,
        profile: &str,
        needs: Option<String>,
    ) -> Result<Self, String> {
        let what = format!("instance {}", instance.name);
        let container = container_of(profile)
            .ok_or_else(|| format!("{what}: the Profile's name gives no name of a container"))?;
        let access = if instance.read_only {
            Access::Read
        } else {
            Access::ReadWrite
        };
        let pair = Self {
            profile: profile.to_owned(),
            volume: format!("{profile}-{}", instance.name.to_ascii_lowercase()),
            claim: instance.name.clone(),
            needs,
            class: instance.class().map(Class::name).unwrap_or_default(),
            access,
            capacity: instance.capacity,
            secret: instance.secret(),
            attributes: vec![("containerName", container)],
            options: options(access, &[]),
            what,
        };
        pair.checked()
    }

    /// Somebody's bucket.
    pub(crate) fn of_bucket(
        bucket: &Bucket,
        access: Access,
        place: Place<'_>,
        profile: &str,
    ) -> Result<Self, String> {
        let Place {
            fdi,
            class,
            account,
        } = place;
        let what = format!("bucket {} ({})", bucket.name, class.name());
        let of = |error: &dyn std::fmt::Display| format!("{what}: {error}");
        check_container(&bucket.container)
            .map_err(|error| of(&format_args!("{:?} is {error}", bucket.container)))?;
        let mut extra = Vec::new();
        if let Some(folder) = &bucket.folder {
            check_folder(folder).map_err(|error| of(&error))?;
            extra.push(format!("--subdirectory={folder}"));
        }
        extra.push("--use-adls=true".to_owned());
        let names = Names::of(bucket, place, profile).map_err(|error| of(&error))?;
        let settings = fdi.of(class);
        let mut attributes = vec![
            ("containerName", bucket.container.clone()),
            ("storageAccount", account.to_owned()),
            ("resourceGroup", names.resource_group),
            ("AzureStorageAuthType", settings.auth_type.clone()),
            ("AzureStorageSPNClientId", names.client_id),
            ("AzureStorageSPNTenantId", names.tenant_id),
        ];
        attributes.extend(
            names
                .aad_endpoint
                .map(|url| ("AzureStorageAADEndpoint", url)),
        );
        attributes.push(("protocol", "fuse2".to_owned()));
        let pair = Self {
            profile: profile.to_owned(),
            volume: names.volume,
            claim: names.claim,
            needs: None,
            class: class.name(),
            access,
            capacity: settings.capacity,
            secret: SecretRef {
                name: names.secret,
                namespace: settings.secret_namespace.clone(),
            },
            attributes,
            options: options(access, &extra),
            what,
        };
        pair.checked()
    }

    /// What the API server would refuse, or bind to somebody else's, is told here.
    fn checked(self) -> Result<Self, String> {
        let Self {
            what,
            volume,
            claim,
            ..
        } = &self;
        let say = |kind: &str, name: &str, error: BadName| {
            format!(
                "{what}: {kind} {name:?} would be no name: {error}; name the bucket so that it is"
            )
        };
        check_dns_subdomain(volume).map_err(|error| say("volume", volume, error))?;
        check_dns_subdomain(claim).map_err(|error| say("claim", claim, error))?;
        check_dns_subdomain(&self.secret.name)
            .map_err(|error| say("Secret", &self.secret.name, error))?;
        check_label_value(&self.profile).map_err(|error| {
            format!("{what}: the Profile's name is no value of a label: {error}")
        })?;
        Ok(self)
    }

    /// Where the data is, which a volume cannot change.
    pub(crate) fn csi(&self) -> Value {
        let mut attributes = json!({});
        for (name, value) in &self.attributes {
            attributes[name] = json!(value);
        }
        let mut csi = json!({
            "driver": "blob.csi.azure.com",
            "volumeHandle": self.volume,
            "volumeAttributes": attributes,
            "nodeStageSecretRef": {"name": self.secret.name, "namespace": self.secret.namespace},
        });
        if self.access == Access::Read {
            // The API server leaves out what is false.
            csi["readOnly"] = json!(true);
        }
        csi
    }

    /// The volume.
    pub(crate) fn volume(&self) -> Object<Value> {
        let spec = json!({
            "accessModes": self.access_modes(),
            "capacity": {"storage": self.size()},
            "claimRef": {"name": self.claim, "namespace": self.profile},
            "csi": self.csi(),
            "mountOptions": self.options,
            "persistentVolumeReclaimPolicy": "Retain",
        });
        let labels = [(CLASSIFICATION, self.class), (PROFILE, &*self.profile)];
        prunable(VOLUME.object(&self.volume), labels, spec)
    }

    /// What of a claim cannot change.
    pub(crate) fn claim_spec(&self) -> Value {
        json!({
            "accessModes": self.access_modes(),
            "resources": {"requests": {"storage": self.size()}},
            "storageClassName": "",
            "volumeName": self.volume,
        })
    }

    /// The claim.
    pub(crate) fn claim(&self) -> Object<Value> {
        let claim = CLAIM.object(&self.claim).in_namespace(&self.profile);
        let labels = [(CLASSIFICATION, self.class), (AUTOMOUNT, "true")];
        prunable(claim, labels, self.claim_spec())
    }

    fn access_modes(&self) -> [&'static str; 1] {
        match self.access {
            Access::Read => ["ReadOnlyMany"],
            Access::ReadWrite => ["ReadWriteMany"],
        }
    }

    fn size(&self) -> String {
        format!("{}T", self.capacity)
    }
}

/// Where buckets are, as far as it is not said of each.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) fdi: &'a Fdi,
    pub(crate) class: Class,
    pub(crate) account: &'a str,
}

/// What follows from the name of a bucket and its principal.
struct Names {
    volume: String,
    claim: String,
    secret: String,
    client_id: String,
    tenant_id: String,
    aad_endpoint: Option<String>,
    resource_group: String,
}

impl Names {
    fn of(bucket: &Bucket, place: Place<'_>, profile: &str) -> Result<Self, String> {
        let Place { fdi, class, .. } = place;
        let (path, class_name) = (class.path(), class.name());
        let volume =
            |label: &str| format!("{profile}-fdi-{class_name}-{}", label.to_ascii_lowercase());
        let group = &fdi.of(class).resource_group;
        let resource_group = given(group, &format!("{path}/resourceGroup"))?;
        match (&bucket.label, &bucket.principal) {
            (Some(label), Some(principal)) => {
                let client_id = fdi.client_ids.get(principal).ok_or_else(|| {
                    format!(
                        "the client id of its service principal {principal} is not known; set it \
                         under /fdi/clientIds"
                    )
                })?;
                Ok(Self {
                    volume: volume(label),
                    claim: format!("fdi-{label}-{class_name}"),
                    secret: format!("{principal}-secret"),
                    client_id: given(client_id, "/fdi/clientIds")?,
                    tenant_id: given(&fdi.tenant_id, "/fdi/tenantId")?,
                    aad_endpoint: None,
                    resource_group,
                })
            }
            (None, None) => {
                let own = &fdi.of(class).principal;
                let tenant = Some(&own.tenant_id).filter(|tenant| !tenant.is_empty());
                Ok(Self {
                    volume: volume(&bucket.name),
                    claim: format!("{}-{class_name}", bucket.name),
                    secret: given(&own.secret_name, &format!("{path}/principal/secretName"))?,
                    client_id: given(&own.client_id, &format!("{path}/principal/clientId"))?,
                    tenant_id: given(
                        tenant.unwrap_or(&fdi.tenant_id),
                        &format!("{path}/principal/tenantId"),
                    )?,
                    aad_endpoint: Some(own.aad_endpoint.clone()).filter(|url| !url.is_empty()),
                    resource_group,
                })
            }
            (Some(_), None) => Err("it has a name and no spn; give it both, or neither".to_owned()),
            (None, Some(_)) => Err("it has a spn and no name; give it both, or neither".to_owned()),
        }
    }
}

/// A setting that is needed now.
fn given(text: &str, path: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err(format!(
            "the configuration does not say {path}; set it in config.yaml"
        ));
    }
    Ok(text.to_owned())
}

fn options(access: Access, extra: &[String]) -> Vec<String> {
    let mut options: Vec<String> = OPTIONS.map(str::to_owned).into();
    if access == Access::Read {
        options.push("-o ro".to_owned());
    }
    options.extend(extra.iter().cloned());
    options
}

/// A folder becomes a part of a command line, whose parts are separated by blanks.
fn check_folder(folder: &str) -> Result<(), String> {
    let odd = |char: char| char.is_whitespace() || char.is_control() || "\"'\\,".contains(char);
    let parts_fit = folder
        .split('/')
        .all(|part| !["", ".", ".."].contains(&part));
    if folder.contains(odd) || !parts_fit {
        return Err(format!(
            "folder {folder:?}: expected names with slashes between them, without blanks, quotes, \
             commas or backslashes"
        ));
    }
    Ok(())
}

/// An object with labels that may be deleted when it is no longer wanted.
pub(crate) fn prunable<'a>(
    object: ObjectReference,
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    spec: Value,
) -> Object<Value> {
    let mut object = Object::new(object, spec);
    let metadata = &mut object.metadata;
    // One by one: a map that is collected is sorted first, which is much code.
    for (key, value) in labels {
        metadata.labels.insert(key.to_owned(), value.to_owned());
    }
    let permission = (PRUNE.to_owned(), "allow".to_owned());
    metadata.annotations.insert(permission.0, permission.1);
    object
}
