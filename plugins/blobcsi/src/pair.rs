//! The volumes and claims that a Profile should have.

use reeve_sdk::names::{BadName, check_dns_subdomain, check_label_value};

use crate::azure::{check_container, container_of};
use crate::bucket::{Access, Bucket};
use crate::config::{Class, Fdi, Instance, SecretRef};
use crate::volume::{Claim, FOLDER, Volume};

/// A volume, and the claim to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair {
    /// What it gives access to, in the words of who described it.
    pub(crate) what: String,
    /// The instance whose container this is; none of somebody's bucket.
    pub(crate) instance: Option<String>,
    /// The effect without which there is nothing to mount.
    pub(crate) needs: Option<String>,
    pub(crate) volume: Volume,
    pub(crate) claim: Claim,
}

impl Pair {
    /// A Profile's own container in a storage account.
    pub(crate) fn of_instance(
        instance: &Instance,
        profile: &str,
        needs: Option<String>,
    ) -> Result<Self, String> {
        let volume = of_instance(instance, profile);
        let pair = Self::new(format!("instance {}", instance.name), volume)?;
        Ok(Self {
            instance: Some(instance.name.clone()),
            needs,
            ..pair
        })
    }

    /// Somebody's bucket.
    pub(crate) fn of_bucket(
        bucket: &Bucket,
        access: Access,
        place: Place<'_>,
        profile: &str,
    ) -> Result<Self, String> {
        Self::new(
            format!("bucket {} ({})", bucket.name, place.class.name()),
            of_bucket(bucket, access, place, profile),
        )
    }

    /// What the API server would refuse, or bind to somebody else's, is told here.
    fn new(what: String, volume: Result<Volume, String>) -> Result<Self, String> {
        let checked = volume.and_then(|volume| check(&volume).map(|()| volume));
        match checked {
            Ok(volume) => Ok(Self {
                what,
                instance: None,
                needs: None,
                claim: Claim::to(&volume),
                volume,
            }),
            Err(error) => Err(format!("{what}: {error}")),
        }
    }
}

/// Where buckets are, as far as it is not said of each.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) fdi: &'a Fdi,
    pub(crate) class: Class,
    pub(crate) account: &'a str,
}

/// The name of the volume of a Profile's own container.
pub(crate) fn own_volume(profile: &str, instance: &str) -> String {
    format!("{profile}-{}", instance.to_ascii_lowercase())
}

fn of_instance(instance: &Instance, profile: &str) -> Result<Volume, String> {
    let container = container_of(profile)
        .ok_or_else(|| "the Profile's name gives no name of a container".to_owned())?;
    let access = match instance.read_only {
        true => Access::Read,
        false => Access::ReadWrite,
    };
    let name = own_volume(profile, &instance.name);
    let mut volume = Volume::new(name, profile, access, instance.capacity);
    volume.claim.push_str(&instance.name);
    volume.class.push_str(&instance.classification);
    volume.source.set("containerName", &container);
    volume.source.secret = instance.secret();
    Ok(volume)
}

fn of_bucket(
    bucket: &Bucket,
    access: Access,
    place: Place<'_>,
    profile: &str,
) -> Result<Volume, String> {
    let Place {
        fdi,
        class,
        account,
    } = place;
    check_container(&bucket.container)
        .map_err(|error| format!("{:?} is {error}", bucket.container))?;
    check_folder(&bucket.folder)?;
    let settings = fdi.of(class);
    let Login {
        label,
        claim,
        secret,
        client_id,
        tenant_id,
        aad_endpoint,
    } = Login::of(bucket, fdi, class)?;
    let class = class.name();
    let name = format!("{profile}-fdi-{class}-{}", label.to_ascii_lowercase());
    let mut volume = Volume::new(name, profile, access, settings.capacity);
    volume.claim = claim;
    volume.class.push_str(class);
    volume.source.secret = SecretRef {
        name: secret,
        namespace: settings.secret_namespace.clone(),
    };
    for (attribute, value) in [
        ("containerName", bucket.container.as_str()),
        ("storageAccount", account),
        ("resourceGroup", &settings.resource_group),
        ("AzureStorageAuthType", &settings.auth_type),
        ("AzureStorageSPNClientId", client_id),
        ("AzureStorageSPNTenantId", tenant_id),
        ("AzureStorageAADEndpoint", aad_endpoint),
        ("protocol", "fuse2"),
    ] {
        if !value.is_empty() {
            volume.source.set(attribute, value);
        }
    }
    if !bucket.folder.is_empty() {
        volume.options.push(format!("{FOLDER}{}", bucket.folder));
    }
    volume.options.push("--use-adls=true".to_owned());
    Ok(volume)
}

/// How a bucket is logged in to, and what its volumes and claims are called by.
struct Login<'a> {
    label: &'a str,
    claim: String,
    secret: String,
    client_id: &'a str,
    tenant_id: &'a str,
    aad_endpoint: &'a str,
}

impl<'a> Login<'a> {
    fn of(bucket: &'a Bucket, fdi: &'a Fdi, class: Class) -> Result<Self, String> {
        let (path, class_name) = (class.path(), class.name());
        let settings = fdi.of(class);
        given(&settings.resource_group, path, "/resourceGroup")?;
        match (&bucket.label, &bucket.principal) {
            (Some(label), Some(principal)) => {
                let client_id = fdi.client_ids.get(principal).ok_or_else(|| {
                    format!(
                        "the client id of its service principal {principal} is not known; set it \
                         under /fdi/clientIds"
                    )
                })?;
                Ok(Self {
                    label,
                    claim: format!("fdi-{label}-{class_name}"),
                    secret: format!("{principal}-secret"),
                    client_id: given(client_id, "/fdi", "/clientIds")?,
                    tenant_id: given(&fdi.tenant_id, "/fdi", "/tenantId")?,
                    aad_endpoint: "",
                })
            }
            (None, None) => {
                let own = &settings.principal;
                let tenant_id = match own.tenant_id.as_str() {
                    "" => &fdi.tenant_id,
                    own => own,
                };
                Ok(Self {
                    label: &bucket.name,
                    claim: format!("{}-{class_name}", bucket.name),
                    secret: given(&own.secret_name, path, "/principal/secretName")?.to_owned(),
                    client_id: given(&own.client_id, path, "/principal/clientId")?,
                    tenant_id: given(tenant_id, path, "/principal/tenantId")?,
                    aad_endpoint: &own.aad_endpoint,
                })
            }
            (Some(_), None) => Err("it has a name and no spn; give it both, or neither".to_owned()),
            (None, Some(_)) => Err("it has a spn and no name; give it both, or neither".to_owned()),
        }
    }
}

/// A setting that is needed now.
fn given<'a>(text: &'a str, path: &str, name: &str) -> Result<&'a str, String> {
    if text.is_empty() {
        return Err(format!(
            "the configuration does not say {path}{name}; set it in config.yaml"
        ));
    }
    Ok(text)
}

/// A folder becomes a part of a command line, whose parts are separated by blanks.
fn check_folder(folder: &str) -> Result<(), String> {
    let odd = |char: char| {
        char.is_whitespace() || char.is_control() || matches!(char, '"' | '\'' | '\\' | ',')
    };
    let parts_fit = folder
        .split('/')
        .all(|part| !["", ".", ".."].contains(&part));
    if !folder.is_empty() && (folder.contains(odd) || !parts_fit) {
        return Err(format!(
            "folder {folder:?}: expected names with slashes between them, without blanks, quotes, \
             commas or backslashes"
        ));
    }
    Ok(())
}

fn check(volume: &Volume) -> Result<(), String> {
    let say = |kind: &str, name: &str, error: BadName| {
        format!("{kind} {name:?} would be no name: {error}; name the bucket so that it is")
    };
    for (kind, name) in [
        ("volume", &volume.name),
        ("claim", &volume.claim),
        ("Secret", &volume.source.secret.name),
    ] {
        check_dns_subdomain(name).map_err(|error| say(kind, name, error))?;
    }
    check_label_value(&volume.profile)
        .map_err(|error| format!("the Profile's name is no value of a label: {error}"))
}
