//! The monitoring agent beside a server.
//!
//! The server writes what it predicted to a spool, a volume that both have, and the
//! agent reports it to DataRobot. The names of variables are those of DataRobot's
//! documentation of its prediction server and its monitoring agent.

use reeve_sdk::prelude::*;

use crate::names::literal;
use crate::settings::Settings;

/// The spool, in both containers.
const SPOOL: &str = "/var/spool/mlops";
/// Files of the spool, and bytes of each: half a gigabyte altogether.
const FILES: u32 = 50;
const FILE_BYTES: u32 = 10_240_000;

/// What tells the server to write to the spool. Ids were checked: there is nothing in
/// them that separates settings.
pub(crate) fn server_variables(deployment: &str, model: &str) -> Vec<Value> {
    let settings = format!(
        "spooler_type=filesystem;directory={SPOOL};max_files={FILES};file_max_size={FILE_BYTES};\
         model_id={model};deployment_id={deployment}"
    );
    vec![
        json!({"name": "MLOPS_MODEL_ID", "value": literal(model)}),
        json!({"name": "PREDICTION_API_MONITORING_ENABLED", "value": "true"}),
        json!({"name": "PREDICTION_API_MONITORING_SETTINGS", "value": literal(&settings)}),
    ]
}

/// The container of the agent.
pub(crate) fn container(image: &str, settings: &Settings<'_>) -> Value {
    let datarobot = &settings.config.datarobot;
    json!({
        "name": "tracking",
        "image": image,
        "env": [
            {"name": "MLOPS_SERVICE_URL", "value": literal(&datarobot.url)},
            {"name": "MLOPS_API_TOKEN", "valueFrom": {"secretKeyRef": {
                "name": datarobot.api_secret_name, "key": "secret",
            }}},
            {"name": "MLOPS_SPOOLER_TYPE", "value": "FILESYSTEM"},
            {"name": "MLOPS_FILESYSTEM_DIRECTORY", "value": SPOOL},
        ],
        "volumeMounts": [mount()],
    })
}

/// The spool in a container.
pub(crate) fn mount() -> Value {
    json!({"name": "spool", "mountPath": SPOOL})
}

/// The spool.
pub(crate) fn volume() -> Value {
    json!({"name": "spool", "emptyDir": {}})
}
