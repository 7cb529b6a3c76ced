//! What the API server notes of the agent's writes.

use crate::world::AGENT;
use anyhow::Result;
use reeve_real::ControlPlane;
use serde_json::Value;
use tokio::task::block_in_place;

/// What the agent has written so far, in its own name and in those of plugins, as the
/// API server noted it: whatever is stored, so not questions about rights.
pub(super) fn audited(server: &ControlPlane) -> Result<Vec<String>> {
    let mut writes = Vec::new();
    for event in block_in_place(|| server.audit_log())? {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
        let group = text("/objectRef/apiGroup").unwrap_or_default();
        let is_question = ["authentication.k8s.io", "authorization.k8s.io"].contains(&group);
        if text("/user/username") == Some(AGENT) && !is_question {
            let words = ["/verb", "/objectRef/resource", "/objectRef/subresource"];
            writes.push(words.map(|word| text(word).unwrap_or_default()).join(" "));
        }
    }
    Ok(writes)
}
