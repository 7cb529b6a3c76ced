//! Values of the chart: in the words of the controllers' own chart wherever it had them.

use reeve_real::Azurite;
use serde_json::{Value, json};

use crate::buckets::{ACCOUNTS, PROTECTED_B, UNCLASSIFIED};
use crate::{Platform, Preset, World};

/// Where the Secrets of the driver are.
pub const SECRETS: &str = "azure-blob-csi-system";

/// Terabytes of a bucket's volume, by classification.
pub const CAPACITY: [u32; 2] = [10, 5];

/// Resource groups, by classification.
pub const GROUPS: [&str; 2] = ["group-unclassified", "group-protected-b"];
/// The tenant of all principals but one.
pub const TENANT_ID: &str = "tenant";
/// The principal of buckets that name none: its Secret, client, tenant and directory.
pub const PRINCIPAL: [&str; 4] = [
    "gateway-secret",
    "gateway-client",
    "gateway-tenant",
    "https://login.example.com",
];

/// A container for every Profile: name, classification, Secret, terabytes, and whether it
/// can only be read.
pub type Instance = (&'static str, &'static str, &'static str, u32, bool);

/// Those of the values.
pub const INSTANCES: [Instance; 3] = [
    ("standard", UNCLASSIFIED, "azure-secret", 10, false),
    ("unclassified-ro", PROTECTED_B, "azure-secret", 10, true),
    ("protected-b", PROTECTED_B, "other-secret", 2, false),
];

/// The namespace of Argo CD.
pub const ARGOCD: &str = "profiles-argocd-system";
/// The URL of the dashboard.
pub const ROOT: &str = "https://kubeflow.example.com";
/// From where Argo CD deploys.
pub const REPOSITORY: &str = "https://git.example.com/manifests.git";
/// Of what is there.
pub const REVISION: &str = "main";

/// Where all of the servers are; loopback has to be granted by its address.
const LOOPBACK: &str = "127.0.0.0/8";

/// The Secret of who makes databases, by classification.
pub fn connection_secret(class: &str) -> String {
    format!("gitea-postgres-connection-{class}")
}

/// The account of an instance, by the name of its Secret.
pub fn account_of(secret: &str) -> &'static str {
    match secret {
        "azure-secret" => Azurite::ACCOUNT,
        _ => Azurite::OTHER_ACCOUNT,
    }
}

/// The rules of the Role that the values ask for.
pub fn rules() -> Value {
    json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}])
}

/// The values that fit the servers around a cluster.
pub fn values(platform: &Platform, world: &World) -> Value {
    let preset = match world.preset {
        Preset::Readme => "readme",
        Preset::Main => "main",
    };
    let mut rbac = json!({"supportGroups": world.groups});
    if world.preset == Preset::Readme {
        rbac["settings"] = json!({"role": {"rules": rules()}});
    }
    let mut values = json!({
        "preset": preset,
        "plugin": world.plugin,
        "replicaCount": 1,
        "components": {
            "rbac": rbac,
            "blobcsi": blobcsi(platform, world.preset),
            "giteaUnclassified": gitea(UNCLASSIFIED, world.ports[0]),
            "giteaProtectedB": gitea(PROTECTED_B, world.ports[1]),
            "s3proxy": {"env": [
                variable("S3PROXY_ARGOCD_SOURCE_REPO_URL", REPOSITORY),
                variable("S3PROXY_ARGOCD_SOURCE_TARGET_REVISION", REVISION),
                variable("S3PROXY_ARGOCD_SOURCE_PATH", "s3proxy"),
                variable("S3PROXY_KUBEFLOW_ROOT_URL", ROOT),
            ]},
        },
    });
    if !world.artifacts.is_null() {
        values["artifacts"] = world.artifacts.clone();
    }
    values
}

fn variable(name: &str, value: impl Into<Value>) -> Value {
    json!({"name": name, "value": value.into()})
}

fn gitea(class: &str, port: u16) -> Value {
    let connection = json!({
        "name": format!("gitea-{class}"),
        "secret": {"name": connection_secret(class)},
        "addresses": [LOOPBACK],
    });
    json!({
        "env": [
            variable("GITEA_PSQL_HOSTNAME", "localhost"),
            variable("GITEA_PSQL_PORT", port),
            variable("GITEA_ARGOCD_SOURCE_REPO_URL", REPOSITORY),
            variable("GITEA_ARGOCD_SOURCE_TARGET_REVISION", REVISION),
            variable("GITEA_ARGOCD_SOURCE_PATH", format!("gitea/{class}")),
            variable("GITEA_KUBEFLOW_ROOT_URL", ROOT),
        ],
        // That of the controllers' cloud lets users in as `user@host`, and has other locales.
        "settings": {"postgres": {"userAtHost": false, "locale": "C"}},
        "plugin": {"capabilities": {"sql": [connection]}},
    })
}

fn blobcsi(platform: &Platform, preset: Preset) -> Value {
    let mut env = vec![variable("BLOB_CSI_FDI_GLOBAL_SP_TENANTID", TENANT_ID)];
    for principal in ["FDI_SP_A", "FDI_SP_B"] {
        let id = format!("client-of-{}", principal.to_lowercase().replace('_', "-"));
        env.push(variable(
            &format!("{principal}_AZURE_STORAGE_SPN_CLIENTID"),
            id,
        ));
    }
    let words = ["UNCLASS", "PROTECTED_B"];
    for (which, word) in words.into_iter().enumerate() {
        let named = |name: &str| format!("BLOB_CSI_FDI_{word}_{name}");
        env.extend([
            variable(&named("PV_STORAGE_CAP"), CAPACITY[which]),
            variable(&named("AZURE_STORAGE_AUTH_TYPE"), "spn"),
            variable(&named("SPN_SECRET_NAMESPACE"), SECRETS),
        ]);
        let (gateway, internal, external) = ACCOUNTS[which];
        env.extend(match preset {
            Preset::Readme => vec![
                variable(&named("OPA_ENDPOINT"), platform.gateways[which].url()),
                variable(&named("STORAGE_ACCOUNT"), gateway),
                variable(&named("RESOURCE_GROUP"), GROUPS[which]),
            ],
            Preset::Main => vec![
                variable(&named("INTERNAL_STORAGE_ACCOUNT"), internal),
                variable(&named("EXTERNAL_STORAGE_ACCOUNT"), external),
                variable(&named("CS_RESOURCE_GROUP"), GROUPS[which]),
            ],
        });
    }
    if preset == Preset::Main {
        return json!({"env": env});
    }
    let [secret, client, tenant, directory] = PRINCIPAL;
    env.extend([
        variable("BLOB_CSI_FDI_OPA_DAEMON_TICKER_MILLIS", 1000),
        variable("BLOB_CSI_FDI_PROTECTED_B_SPN_SECRET_NAME", secret),
        variable(
            "BLOB_CSI_FDI_PROTECTED_B_AZURE_STORAGE_SPN_CLIENTID",
            client,
        ),
        variable("BLOB_CSI_FDI_PROTECTED_B_SPN_TENANTID", tenant),
        variable(
            "BLOB_CSI_FDI_PROTECTED_B_AZURE_STORAGE_AAD_ENDPOINT",
            directory,
        ),
    ]);
    let mut keys = json!({});
    let mut granted = Vec::new();
    for gateway in &platform.gateways {
        granted.push(json!({"url": gateway.url(), "methods": ["GET"]}));
    }
    let mut instances = String::new();
    for (name, class, secret, terabytes, read_only) in INSTANCES {
        let mut instance = json!({
            "name": name, "classification": class, "secretRef": format!("{secret}/{SECRETS}"),
            "capacity": terabytes, "readOnly": read_only, "owner": "AAW",
        });
        if !read_only {
            let url = platform.storage.url_of(account_of(secret));
            let endpoint = url.trim_end_matches('/');
            instance["blobEndpoint"] = json!(endpoint);
            keys[endpoint] = json!(format!("{SECRETS}/{secret}"));
            granted.push(json!({
                "url": url, "methods": ["GET", "PUT"], "key": secret,
                "addresses": [LOOPBACK], "caBundle": platform.roots(),
            }));
        }
        instances.push_str(&format!("{instance:#}\n"));
    }
    json!({
        "config": instances,
        "env": env,
        "accountKeys": keys,
        "plugin": {"capabilities": {"http": granted}},
    })
}
