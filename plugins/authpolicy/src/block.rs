//! The policy that keeps files from entering and leaving a protected-b notebook.

use reeve_sdk::prelude::*;

use crate::policy::AUTHORIZATION_POLICY;

/// The label by which the pods of a Notebook are found.
pub(crate) const NOTEBOOK_LABEL: &str = "notebook-name";

/// Requests that are denied: the method, and the path below that of the notebook.
const DENIED: [(&str, &str); 4] = [
    // RStudio: upload and download.
    ("POST", "/rstudio/upload"),
    ("GET", "/rstudio/export*"),
    // Jupyter: download, and "export as".
    ("GET", "/files*"),
    ("GET", "/nbconvert*"),
];

/// The policy of one Notebook. It takes effect on pods that are protected-b, and
/// on no others, so every Notebook has one before it has such a pod.
pub(crate) fn policy(namespace: &str, notebook: &str) -> Object<Value> {
    let path = format!("/notebook/{namespace}/{notebook}");
    let operations: Vec<Value> = DENIED
        .iter()
        .map(|(method, suffix)| {
            json!({"operation": {"methods": [method], "paths": [format!("{path}{suffix}")]}})
        })
        .collect();
    Object::new(
        AUTHORIZATION_POLICY
            .object(format!("{notebook}-protected-b-block"))
            .in_namespace(namespace),
        json!({
            "action": "DENY",
            "selector": {"matchLabels": {
                NOTEBOOK_LABEL: notebook,
                "data.statcan.gc.ca/classification": "protected-b",
            }},
            "rules": [{"to": operations}],
        }),
    )
}
