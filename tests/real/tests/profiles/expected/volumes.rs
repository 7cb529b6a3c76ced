//! PersistentVolumes, and the claims to them.

use serde_json::{Value, json};

use reeve_test_platform::buckets::{Bucket, MISNAMED, PROTECTED_B, UNCLASSIFIED};
use reeve_test_platform::values::{
    CAPACITY, GROUPS, INSTANCES, Instance, PRINCIPAL, SECRETS, TENANT_ID,
};
use reeve_test_platform::{Preset, Tenant, World};

use super::{CLAIMS, VOLUMES, Wanted};

/// Those of the code.
const BUILT_IN: [Instance; 3] = [
    ("standard", UNCLASSIFIED, "azure-secret", 10, false),
    ("aaw-unclassified-ro", PROTECTED_B, "azure-secret", 10, true),
    (
        "aaw-protected-b",
        PROTECTED_B,
        "aawdevcc00samgprotb",
        10,
        false,
    ),
];

struct Volume {
    name: String,
    claim: String,
    class: &'static str,
    terabytes: u32,
    read_only: bool,
    attributes: Value,
    secret: String,
    further: Vec<String>,
}

/// Volumes and claims of a Profile.
pub(super) fn of(tenant: &Tenant, world: &World) -> Vec<Wanted> {
    let profile = &tenant.name;
    let instances = match world.preset {
        Preset::Readme => INSTANCES,
        Preset::Main => BUILT_IN,
    };
    let own = instances.iter().filter(|_| !tenant.is_twin).map(
        |(name, class, secret, terabytes, read_only)| Volume {
            name: format!("{profile}-{name}"),
            claim: (*name).to_owned(),
            class,
            terabytes: *terabytes,
            read_only: *read_only,
            attributes: json!({"containerName": tenant.container()}),
            secret: (*secret).to_owned(),
            further: Vec::new(),
        },
    );
    let may_read = |bucket: &&Bucket| bucket.readers.contains(profile);
    // Its claim would have no name.
    let usable = |bucket: &&Bucket| bucket.container != MISNAMED.0;
    let buckets = world.buckets.iter().filter(may_read).filter(usable);
    let others = buckets.map(|bucket| of_bucket(bucket, profile));
    own.chain(others)
        .flat_map(|volume| objects(&volume, profile))
        .collect()
}

fn of_bucket(bucket: &Bucket, profile: &str) -> Volume {
    let class = bucket.class;
    let which = usize::from(class == PROTECTED_B);
    let mut attributes = json!({
        "containerName": bucket.container,
        "storageAccount": bucket.account,
        "resourceGroup": GROUPS[which],
        "AzureStorageAuthType": "spn",
        "protocol": "fuse2",
    });
    let (name, claim, secret) = match bucket.own {
        Some((principal, name)) => {
            attributes["AzureStorageSPNClientId"] = json!(format!("client-of-{principal}"));
            attributes["AzureStorageSPNTenantId"] = json!(TENANT_ID);
            (
                name.to_owned(),
                format!("fdi-{name}-{class}"),
                format!("{principal}-secret"),
            )
        }
        None => {
            let [secret, client, tenant, directory] = PRINCIPAL;
            attributes["AzureStorageSPNClientId"] = json!(client);
            attributes["AzureStorageSPNTenantId"] = json!(tenant);
            attributes["AzureStorageAADEndpoint"] = json!(directory);
            let container = bucket.container;
            (
                container.to_owned(),
                format!("{container}-{class}"),
                secret.to_owned(),
            )
        }
    };
    let mut further = Vec::new();
    if !bucket.folder.is_empty() {
        further.push(format!("--subdirectory={}", bucket.folder));
    }
    further.push("--use-adls=true".to_owned());
    Volume {
        name: format!("{profile}-fdi-{class}-{name}"),
        claim,
        class,
        terabytes: CAPACITY[which],
        // Who may only write has nothing; who may only read, this.
        read_only: !bucket.writers.iter().any(|writer| writer == profile),
        attributes,
        secret,
        further,
    }
}

fn objects(volume: &Volume, profile: &str) -> [Wanted; 2] {
    let size = json!({"storage": format!("{}T", volume.terabytes)});
    let (mode, read_only) = match volume.read_only {
        true => ("ReadOnlyMany", json!(true)),
        // Which the API server leaves out.
        false => ("ReadWriteMany", Value::Null),
    };
    let mut options: Vec<String> = [
        "-o allow_other",
        "--file-cache-timeout-in-seconds=120",
        "--use-attr-cache=true",
        "--cancel-list-on-mount-seconds=10",
        "-o attr_timeout=120",
        "-o entry_timeout=120",
        "-o negative_timeout=120",
        "--log-level=LOG_DEBUG",
        "--cache-size-mb=1000",
    ]
    .map(str::to_owned)
    .to_vec();
    if volume.read_only {
        options.push("-o ro".to_owned());
    }
    options.extend_from_slice(&volume.further);
    let class = "data.statcan.gc.ca/classification";
    let of_volume = json!({
        "metadata": {"labels": {class: volume.class, "kubeflow-profile": profile}},
        "spec": {
            "accessModes": [mode],
            "capacity": size,
            "claimRef": {"name": volume.claim, "namespace": profile},
            "csi": {
                "driver": "blob.csi.azure.com",
                "volumeHandle": volume.name,
                "readOnly": read_only,
                "nodeStageSecretRef": {"name": volume.secret, "namespace": SECRETS},
                "volumeAttributes": volume.attributes,
            },
            "mountOptions": options,
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": null,
        },
    });
    let of_claim = json!({
        "metadata": {"labels": {
            class: volume.class, "blob.aaw.statcan.gc.ca/automount": "true",
        }},
        "spec": {
            "accessModes": [mode],
            "resources": {"requests": size},
            "storageClassName": "",
            "volumeName": volume.name,
        },
        // What one is made for, the other takes.
        "status": {"phase": "Bound"},
    });
    [
        Wanted::new(VOLUMES, "", &volume.name, of_volume),
        Wanted::new(CLAIMS, profile, &volume.claim, of_claim),
    ]
}
