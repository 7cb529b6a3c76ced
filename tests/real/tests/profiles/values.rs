//! Values of the chart: in the words of the controllers' own chart wherever it had them.

use reeve_real::Azurite;
use serde_json::{Value, json};

use crate::buckets::{ACCOUNTS, PROTECTED_B, UNCLASSIFIED};
use crate::expected::routes::{REPOSITORY, REVISION, ROOT};
use crate::expected::volumes::{CAPACITY, GROUPS, INSTANCES, PRINCIPAL, SECRETS, TENANT_ID};
use crate::expected::{Preset, World, rules};
use crate::stage::Stage;

/// Where all of the servers are; loopback has to be granted by its address.
const LOOPBACK: &str = "127.0.0.0/8";

/// The Secret of who makes databases, by classification.
pub(crate) fn connection_secret(class: &str) -> String {
    format!("gitea-postgres-connection-{class}")
}

/// The account of an instance, by the name of its Secret.
pub(crate) fn account_of(secret: &str) -> &'static str {
    match secret {
        "azure-secret" => Azurite::ACCOUNT,
        _ => Azurite::OTHER_ACCOUNT,
    }
}

pub(crate) fn values(stage: &Stage, world: &World) -> Value {
    let preset = match world.preset {
        Preset::Readme => "readme",
        Preset::Main => "main",
    };
    let mut rbac = json!({"supportGroups": world.groups});
    if world.preset == Preset::Readme {
        rbac["settings"] = json!({"role": {"rules": rules()}});
    }
    json!({
        "preset": preset,
        "replicaCount": 1,
        "components": {
            "rbac": rbac,
            "blobcsi": blobcsi(stage, world.preset),
            "giteaUnclassified": gitea(UNCLASSIFIED, world.ports[0]),
            "giteaProtectedB": gitea(PROTECTED_B, world.ports[1]),
            "s3proxy": {"env": [
                variable("S3PROXY_ARGOCD_SOURCE_REPO_URL", REPOSITORY),
                variable("S3PROXY_ARGOCD_SOURCE_TARGET_REVISION", REVISION),
                variable("S3PROXY_ARGOCD_SOURCE_PATH", "s3proxy"),
                variable("S3PROXY_KUBEFLOW_ROOT_URL", ROOT),
            ]},
        },
    })
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

fn blobcsi(stage: &Stage, preset: Preset) -> Value {
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
                variable(&named("OPA_ENDPOINT"), stage.gateways[which].url()),
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
    for gateway in &stage.gateways {
        granted.push(json!({"url": gateway.url(), "methods": ["GET"]}));
    }
    let mut instances = String::new();
    for (name, class, secret, terabytes, read_only) in INSTANCES {
        let mut instance = json!({
            "name": name, "classification": class, "secretRef": format!("{secret}/{SECRETS}"),
            "capacity": terabytes, "readOnly": read_only, "owner": "AAW",
        });
        if !read_only {
            let url = stage.storage.url_of(account_of(secret));
            let endpoint = url.trim_end_matches('/');
            instance["blobEndpoint"] = json!(endpoint);
            keys[endpoint] = json!(format!("{SECRETS}/{secret}"));
            granted.push(json!({
                "url": url, "methods": ["GET", "PUT"], "key": secret,
                "addresses": [LOOPBACK], "caBundle": stage.roots(),
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
