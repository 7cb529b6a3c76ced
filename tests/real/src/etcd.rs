//! What is asked of etcd itself, past the API server.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// It answers within milliseconds, and tests run beside builds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Forgets all versions but the latest one, as the API server has it do every five
/// minutes; the answer is that version.
///
/// # Errors
///
/// When etcd does not answer or refuses.
pub(crate) fn compact(port: u16) -> Result<i64> {
    // Any key will do: each answer tells the version.
    let range = call(port, "/v3/kv/range", &json!({"key": "AA=="}))?;
    let revision = range.pointer("/header/revision").and_then(Value::as_str);
    let revision = revision.with_context(|| format!("no version in {range}"))?;
    let request = json!({"revision": revision, "physical": true});
    call(port, "/v3/kv/compaction", &request)?;
    Ok(revision.parse()?)
}

/// One call of the gateway that speaks JSON.
fn call(port: u16, path: &str, request: &Value) -> Result<Value> {
    let url = format!("http://127.0.0.1:{port}{path}");
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE));
    let agent: ureq::Agent = config.build().new_agent();
    let answer = agent
        .post(&url)
        .header("content-type", "application/json")
        .send(request.to_string().as_str());
    let mut answer = answer.with_context(|| format!("etcd refuses {path}"))?;
    let body = answer.body_mut().read_to_string()?;
    serde_json::from_str(&body).with_context(|| format!("etcd answers {body:?}"))
}
