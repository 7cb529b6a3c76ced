//! What webhooks are asked, and what they answer: `AdmissionReview`s.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::made::SCHEME;
use crate::decode;
use crate::kinds::edit::{flag, integer, items, text};
use crate::kinds::webhook_client::VERSIONS;
use crate::status::ApiError;

const GROUP: &str = "admission.k8s.io";

/// The question for a webhook: what policies know, in the first version that it takes.
pub(super) fn question(webhook: &Value, uid: &str, known: &[(&'static str, Value)]) -> Value {
    let value = |wanted: &str| {
        let mut known = known.iter();
        let found = known.find(|(name, _)| *name == wanted);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let mut request = value("request");
    request["uid"] = uid.into();
    request["object"] = value("object");
    request["oldObject"] = value("oldObject");
    let mut taken = items(webhook, "admissionReviewVersions").filter_map(Value::as_str);
    let version = taken.find(|taken| VERSIONS.contains(taken));
    let version = version.unwrap_or("v1");
    json!({
        "kind": "AdmissionReview",
        "apiVersion": format!("{GROUP}/{version}"),
        "request": request,
    })
}

/// What a webhook answers.
#[derive(Debug)]
pub(super) struct Answer {
    is_allowed: bool,
    status: Value,
    pub(super) warnings: Vec<String>,
    /// Operations on the object.
    pub(super) patch: Vec<Value>,
}

impl Answer {
    /// Reads the answer to the question `uid`.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub(super) fn read(body: &Bytes, question: &Value) -> Result<Self, String> {
        let review = serde_json::from_slice(body)
            .map_err(|why| format!("failed to call webhook: it answered no JSON: {why}"))?;
        check_type(&review, text(question, "apiVersion"))
            .map_err(|why| format!("failed to call webhook: {why}"))?;
        let (mut answer, patch) = Answer::of(&review, question)
            .map_err(|why| format!("received invalid webhook response: {why}"))?;
        answer.patch = operations(&patch)
            .map_err(|why| format!("received undecodable patch in webhook response: {why}"))?;
        Ok(answer)
    }

    /// The answer without its operations, and the bytes of these.
    fn of(review: &Value, question: &Value) -> Result<(Self, Vec<u8>), String> {
        let wanted = text(question, "apiVersion");
        // What was asked in the beta says nothing of itself.
        let is_first = wanted.ends_with("/v1");
        let (version, kind) = (text(review, "apiVersion"), text(review, "kind"));
        if is_first && (version, kind) != (wanted, "AdmissionReview") {
            let slash = if version.contains('/') { "" } else { "/" };
            return Err(format!(
                "expected webhook response of {wanted}, Kind=AdmissionReview, got {slash}{version}, Kind={kind}"
            ));
        }
        let Some(response) = review.get("response").filter(|given| given.is_object()) else {
            return Err("webhook response was absent".to_owned());
        };
        let (asked, found) = (text(&question["request"], "uid"), text(response, "uid"));
        if is_first && found != asked {
            return Err(format!("expected response.uid={asked:?}, got {found:?}"));
        }
        let warnings = items(response, "warnings").filter_map(Value::as_str);
        let answer = Answer {
            is_allowed: flag(response, "allowed"),
            status: response.get("status").cloned().unwrap_or_default(),
            warnings: warnings.map(str::to_owned).collect(),
            patch: Vec::new(),
        };
        Ok((answer, patch(response)?))
    }

    /// What the client is told of a request that the webhook of this name does not allow.
    pub(super) fn refusal(&self, name: &str) -> Option<ApiError> {
        if self.is_allowed {
            return None;
        }
        let by = format!("admission webhook {name:?} denied the request");
        let (message, reason) = (text(&self.status, "message"), text(&self.status, "reason"));
        let message = match (message, reason) {
            ("", "") => format!("{by} without explanation"),
            ("", reason) => format!("{by}: {reason}"),
            (message, _) => format!("{by}: {message}"),
        };
        let code = integer(&self.status, "code").and_then(|code| u16::try_from(code).ok());
        let code = code.filter(|code| (400..600).contains(code));
        Some(ApiError::by_webhook(code.unwrap_or(400), reason, message))
    }
}

/// Reads the operations of a patch; none where nothing was sent.
fn operations(patch: &[u8]) -> Result<Vec<Value>, String> {
    if patch.is_empty() {
        return Ok(Vec::new());
    }
    let document = decode::json(patch)?;
    let sort = document.sort();
    match document.into_value(&mut Vec::new()) {
        Value::Array(operations) => Ok(operations),
        Value::Null => Ok(Vec::new()),
        _ => Err(format!(
            "json: cannot unmarshal {sort} into Go value of type jsonpatch.Patch"
        )),
    }
}

/// The bytes of the patch.
fn patch(response: &Value) -> Result<Vec<u8>, String> {
    let given = text(response, "patch");
    match (given, text(response, "patchType")) {
        ("", "") => return Ok(Vec::new()),
        ("", _) => {
            return Err("webhook returned response.patchType but not response.patch".to_owned());
        }
        (_, "JSONPatch") => {}
        (_, "") => {
            return Err("webhook returned response.patch but not response.patchType".to_owned());
        }
        (_, other) => {
            return Err(format!(
                "webhook returned invalid response.patchType of {other:?}"
            ));
        }
    }
    BASE64_STANDARD
        .decode(given)
        .map_err(|why| format!("the patch cannot be read: {why}"))
}

/// Whether an answer can be read as what was asked for; what it does not say of its type is
/// that.
fn check_type(review: &Value, wanted: &str) -> Result<(), String> {
    let version = Some(text(review, "apiVersion")).filter(|given| !given.is_empty());
    let kind = Some(text(review, "kind")).filter(|given| !given.is_empty());
    let (version, kind) = (version.unwrap_or(wanted), kind.unwrap_or("AdmissionReview"));
    if (version, kind) == (wanted, "AdmissionReview") {
        return Ok(());
    }
    let short = |version: &str| {
        let (group, short) = version.split_once('/')?;
        let is_known = group == GROUP && VERSIONS.contains(&short) && kind == "AdmissionReview";
        is_known.then(|| format!("{short}.{kind}"))
    };
    Err(match (short(version), short(wanted)) {
        (Some(given), Some(wanted)) => {
            format!("converting ({given}) to ({wanted}): unknown conversion")
        }
        _ => format!("no kind {kind:?} is registered for version {version:?} in scheme {SCHEME:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Value {
        json!({"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u"}})
    }

    fn read(response: &Value) -> Result<Answer, String> {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        let answer = Answer::read(&review.to_string().into(), &asked());
        answer.map_err(|why| why.replace("received invalid webhook response: ", ""))
    }

    #[test]
    fn answers_that_are_none_are_named() {
        let patch = BASE64_STANDARD.encode("[{\"op\":\"remove\",\"path\":\"/a\"}]");
        for (response, expected) in [
            (json!({"uid": "u", "allowed": true}), Ok(0)),
            (
                json!({"uid": "u", "allowed": true, "patch": patch, "patchType": "JSONPatch"}),
                Ok(1),
            ),
            (
                json!({"uid": "v"}),
                Err("expected response.uid=\"u\", got \"v\""),
            ),
            (json!(null), Err("webhook response was absent")),
            (
                json!({"uid": "u", "patch": patch}),
                Err("webhook returned response.patch but not response.patchType"),
            ),
            (
                json!({"uid": "u", "patchType": "JSONPatch", "patch": "?"}),
                Err("the patch cannot be read"),
            ),
            (
                json!({"uid": "u", "patchType": "JSONPatch", "patch": "AA=="}),
                Err("received undecodable patch in webhook response: invalid character"),
            ),
            (
                json!({"uid": "u", "patchType": "JSONPatch", "patch": BASE64_STANDARD.encode("{}")}),
                Err(
                    "received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch",
                ),
            ),
        ] {
            match (read(&response), expected) {
                (Ok(answer), Ok(operations)) => assert_eq!(answer.patch.len(), operations),
                (Err(why), Err(begin)) => assert!(why.starts_with(begin), "{why}"),
                (found, _) => panic!("{response}: {found:?}"),
            }
        }
        assert!(Answer::read(&Bytes::from_static(b"{"), &asked()).is_err());
        assert!(Answer::read(&Bytes::from_static(b"{}"), &asked()).is_err());
    }
}
