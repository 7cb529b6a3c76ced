//! Webhooks that make objects of one version of a definition those of another: what they
//! are asked, and what counts of their answers.
//!
//! As kube-apiserver 1.36: one `ConversionReview` an object, and of the metadata that comes
//! back nothing but labels and annotations.

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::admission::webhooks::{ask, ask_now, is_on_loopback};
use crate::decode::{self, Document};
use crate::field::{Errors, Path, quoted};
use crate::kinds::edit::{items, text};
use crate::kinds::{validate_annotations, validate_labels};
use crate::random::Random;
use crate::rest::meta;
use crate::strategic::go_type;

/// How long an answer may take: the time of all webhooks of definitions, which cannot say
/// another one.
const PATIENCE: Duration = Duration::from_secs(30);
const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "ConversionReview";
/// The versions of reviews that there are.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// The parts of metadata that a webhook may change.
const CHANGEABLE: [&str; 2] = ["labels", "annotations"];

/// Who is asked for no more than telling questions apart.
static UIDS: LazyLock<Random> = LazyLock::new(|| Random::new(None));

/// The webhook of a definition.
#[derive(Debug)]
pub(crate) struct Webhook {
    /// Its `clientConfig`.
    client: Value,
    /// The version of reviews that it takes.
    version: &'static str,
}

/// A question, and about what it is.
struct Question<'a> {
    object: &'a Value,
    to: &'a str,
    uid: String,
}

impl Webhook {
    /// The webhook of a definition; none where it has none, or one that this server asks
    /// nothing.
    pub(crate) fn of(definition: &Value) -> Option<Self> {
        let conversion = definition.pointer("/spec/conversion")?;
        if text(conversion, "strategy") != "Webhook" {
            return None;
        }
        let webhook = conversion.get("webhook")?;
        let client = webhook.get("clientConfig")?;
        let mut taken = items(webhook, "conversionReviewVersions");
        let version = taken.find_map(|taken| VERSIONS.into_iter().find(|known| taken == *known))?;
        is_on_loopback(client).then(|| Webhook {
            client: client.clone(),
            version,
        })
    }

    /// The object in the version `to`. The caller's thread waits for it.
    ///
    /// # Errors
    ///
    /// Why it cannot be had, in the words of the real server.
    pub(crate) fn convert_now(&self, object: &Value, to: &str) -> Result<Value, String> {
        if let Some(same) = unasked(object, to) {
            return Ok(same);
        }
        let question = Question::new(object, to);
        let body = self.body(&question);
        question.read(self.version, ask_now(&self.client, body, PATIENCE))
    }

    /// The object in the version `to`.
    ///
    /// # Errors
    ///
    /// As [`Webhook::convert_now`].
    pub(crate) async fn convert(&self, object: &Value, to: &str) -> Result<Value, String> {
        if let Some(same) = unasked(object, to) {
            return Ok(same);
        }
        let question = Question::new(object, to);
        let body = self.body(&question);
        question.read(self.version, ask(&self.client, body, PATIENCE).await)
    }

    fn body(&self, question: &Question<'_>) -> Bytes {
        let review = json!({
            "kind": KIND,
            "apiVersion": format!("{GROUP}/{}", self.version),
            "request": {
                "uid": question.uid,
                "desiredAPIVersion": question.to,
                "objects": [question.object],
            },
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
        });
        review.to_string().into()
    }
}

/// What nobody is asked about: an object of that version already, and one without content.
fn unasked(object: &Value, to: &str) -> Option<Value> {
    if object["apiVersion"] == to {
        return Some(object.clone());
    }
    let fields = object.as_object()?;
    let is_empty = fields.len() == 2 && fields.contains_key("kind");
    (is_empty && fields.contains_key("apiVersion"))
        .then(|| json!({"apiVersion": to, "kind": fields["kind"]}))
}

impl<'a> Question<'a> {
    fn new(object: &'a Value, to: &'a str) -> Self {
        Question {
            object,
            to,
            uid: UIDS.uid(),
        }
    }

    /// The object that was answered.
    fn read(&self, version: &str, answer: Result<Bytes, String>) -> Result<Value, String> {
        let (group_version, kind) = type_of(self.object);
        let of = format!("conversion webhook for {group_version}, Kind={kind}");
        let objects = answer
            .and_then(|answer| self.objects(version, &answer))
            .map_err(|why| format!("{of} failed: {why}"))?;
        let [converted] = &objects[..] else {
            let count = objects.len();
            return Err(format!("{of} returned {count} objects, expected 1"));
        };
        let invalid = format!("{of} returned invalid object");
        let (given, given_kind) = type_of(converted);
        if given_kind.is_empty() {
            return Err(match converted {
                Value::Null => "unexpected end of JSON input".to_owned(),
                Value::Object(_) => format!("Object 'Kind' is missing in '{converted}'"),
                other => format!(
                    "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    Document::from(other.clone()).sort()
                ),
            });
        }
        if given != self.to {
            let to = self.to;
            return Err(format!(
                "{invalid} at index 0: invalid groupVersion (expected {to}, received {given})"
            ));
        }
        if given_kind != kind {
            return Err(format!(
                "{invalid} at index 0: invalid kind (expected {kind}, received {given_kind})"
            ));
        }
        for (field, called) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
            let (had, has) = (meta::text(self.object, field), meta::text(converted, field));
            if had != has {
                return Err(format!(
                    "{invalid}: must have the same {called}: {had} != {has}"
                ));
            }
        }
        let metadata = restored(self.object, converted)
            .map_err(|why| format!("{of} returned invalid metadata: {why}"))?;
        let mut made = converted.clone();
        made["metadata"] = Value::Object(metadata);
        Ok(made)
    }

    /// The objects in an answer.
    fn objects(&self, version: &str, answer: &[u8]) -> Result<Vec<Value>, String> {
        let review = review(answer)
            .map_err(|why| format!("couldn't get version/kind; json parse error: {why}"))?;
        // The older reviews were never looked at so closely.
        let is_exact = version == "v1";
        let wanted = format!("{GROUP}/{version}");
        let (given, kind) = (text(&review, "apiVersion"), text(&review, "kind"));
        let is = |given: &str, wanted: &str| given.is_empty() || given == wanted;
        if !is(given, &wanted) || !is(kind, KIND) {
            let given = if given.is_empty() { &wanted } else { given };
            let kind = if kind.is_empty() { KIND } else { kind };
            return Err(unregistered(given, kind, &wanted));
        }
        if is_exact && (given.is_empty() || kind.is_empty()) {
            let slash = if given.is_empty() { "/" } else { "" };
            return Err(format!(
                "expected webhook response of {wanted}, Kind={KIND}, got {slash}{given}, Kind={kind}"
            ));
        }
        let Some(response) = review.get("response").filter(|given| given.is_object()) else {
            return Err("no response provided".to_owned());
        };
        let uid = text(response, "uid");
        if is_exact && uid != self.uid {
            let (expected, got) = (quoted(&self.uid), quoted(uid));
            return Err(format!("expected response.uid={expected}, got {got}"));
        }
        let result = response.get("result").unwrap_or(&Value::Null);
        let status = text(result, "status");
        if status != "Success" {
            return Err(match text(result, "message") {
                "" => format!("response.result.status was '{status}', not 'Success'"),
                why => why.to_owned(),
            });
        }
        Ok(items(response, "convertedObjects").cloned().collect())
    }
}

/// The review in an answer, which is JSON or YAML.
fn review(answer: &[u8]) -> Result<Value, String> {
    const READ: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    if answer.trim_ascii_start().starts_with(b"{") {
        decode::json(answer)?;
        return serde_json::from_slice(answer).map_err(|why| why.to_string());
    }
    let (document, _) = decode::yaml(answer)?;
    let sort = document.sort();
    let review = document.into_value(&mut Vec::new());
    if review.is_object() {
        return Ok(review);
    }
    Err(format!(
        "json: cannot unmarshal {sort} into Go value of type {READ}"
    ))
}

/// What is said of an answer of another type.
fn unregistered(given: &str, kind: &str, wanted: &str) -> String {
    let is_other_review = kind == KIND
        && given
            .strip_prefix(GROUP)
            .is_some_and(|version| VERSIONS.contains(&version.trim_start_matches('/')));
    if is_other_review {
        let go = |version: &str| version.rsplit('/').next().unwrap_or_default().to_owned();
        let (from, to) = (go(given), go(wanted));
        return format!("converting ({from}.{KIND}) to ({to}.{KIND}): unknown conversion");
    }
    format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        quoted(kind),
        quoted(given)
    )
}

/// The group and version that an object says it is of, and the kind; nothing where that
/// cannot be read.
fn type_of(object: &Value) -> (&str, &str) {
    let version = text(object, "apiVersion");
    match version.matches('/').count() {
        0 | 1 => (version, text(object, "kind")),
        _ => ("", ""),
    }
}

/// The metadata of what was converted: as it was, but for labels and annotations.
fn restored(object: &Value, converted: &Value) -> Result<Map<String, Value>, String> {
    let Some(given) = converted.get("metadata") else {
        return Err("missing metadata in converted object".to_owned());
    };
    if !given.is_object() {
        let sort = go_type(given);
        return Err(format!(
            "invalid metadata of type {sort} in converted object"
        ));
    }
    let had = object.get("metadata").and_then(Value::as_object);
    let mut metadata = had.cloned().unwrap_or_default();
    for field in CHANGEABLE {
        let texts = match given.get(field) {
            None | Some(Value::Null) => {
                metadata.remove(field);
                continue;
            }
            Some(Value::Object(texts)) => texts,
            Some(other) => {
                let sort = go_type(other);
                return Err(format!(
                    "invalid metadata.{field} of type {sort} in converted object"
                ));
            }
        };
        if let Some((key, other)) = texts.iter().find(|(_, text)| !text.is_string()) {
            let sort = go_type(other);
            return Err(format!(
                "metadata.{field}[{key}] must be a string, but is {sort} in converted object"
            ));
        }
        if metadata.get(field).and_then(Value::as_object) != Some(texts) {
            check(field, given)?;
        }
        metadata.insert(field.to_owned(), Value::Object(texts.clone()));
    }
    Ok(metadata)
}

/// Refuses labels or annotations that no object may have.
fn check(field: &str, metadata: &Value) -> Result<(), String> {
    let mut errors = Errors::new();
    let path = Path::new("metadata");
    if field == "labels" {
        validate_labels(metadata, &path.child(field), field, &mut errors);
    } else {
        // The real server calls them so.
        validate_annotations(metadata, &path.child("annotation"), &mut errors);
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors.aggregate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(versions: &[&str], client: &Value) -> Value {
        let webhook = json!({"conversionReviewVersions": versions, "clientConfig": client});
        json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}})
    }

    #[test]
    fn only_webhooks_on_the_loopback_are_asked_in_a_review_that_they_take() {
        let near = json!({"url": "https://127.0.0.1:9/x", "caBundle": "AA=="});
        for (versions, client, expected) in [
            (&["v1", "v1beta1"][..], near.clone(), Some("v1")),
            (&["v7", "v1beta1", "v1"], near.clone(), Some("v1beta1")),
            (&["v7"], near.clone(), None),
            (&["v1"], json!({"url": "https://example.com/x"}), None),
            (
                &["v1"],
                json!({"service": {"name": "a", "namespace": "b"}}),
                None,
            ),
        ] {
            let found = Webhook::of(&definition(versions, &client));
            assert_eq!(found.map(|found| found.version), expected, "{versions:?}");
        }
        let mut none = definition(&["v1"], &near);
        none["spec"]["conversion"]["strategy"] = json!("None");
        assert!(Webhook::of(&none).is_none());
    }

    #[test]
    fn nobody_is_asked_about_what_needs_no_answer() {
        let object = json!({"apiVersion": "x.io/v1", "kind": "W", "spec": {}});
        assert_eq!(unasked(&object, "x.io/v1"), Some(object.clone()));
        assert_eq!(unasked(&object, "x.io/v2"), None);
        let empty = json!({"apiVersion": "x.io/v1", "kind": "W"});
        let expected = json!({"apiVersion": "x.io/v2", "kind": "W"});
        assert_eq!(unasked(&empty, "x.io/v2"), Some(expected));
    }

    fn object() -> Value {
        let metadata = json!({
            "name": "w", "namespace": "n", "uid": "u", "generation": 3,
            "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x.io/f"],
        });
        json!({"apiVersion": "x.io/v1", "kind": "W", "metadata": metadata, "spec": {"size": 1}})
    }

    /// What comes of an answer to the question for that object in the second version, with
    /// this change.
    fn answered(version: &str, change: impl FnOnce(&mut Value)) -> Result<Value, String> {
        let object = object();
        let question = Question::new(&object, "x.io/v2");
        let mut converted = object.clone();
        converted["apiVersion"] = json!("x.io/v2");
        converted["spec"] = json!({"amount": 1});
        let mut review = json!({
            "apiVersion": format!("{GROUP}/{version}"),
            "kind": KIND,
            "response": {
                "uid": question.uid,
                "result": {"status": "Success"},
                "convertedObjects": [converted],
            },
        });
        change(&mut review);
        question.read(version, Ok(review.to_string().into()))
    }

    #[test]
    fn of_the_metadata_labels_and_annotations_count() {
        let made = answered("v1", |review| {
            let metadata = &mut review["response"]["convertedObjects"][0]["metadata"];
            metadata["labels"] = json!({"e": "f"});
            metadata["annotations"] = Value::Null;
            metadata["generation"] = json!(9);
            metadata["finalizers"] = json!([]);
            metadata["ownerReferences"] = json!([{"name": "o"}]);
        });
        let mut expected = object();
        expected["apiVersion"] = json!("x.io/v2");
        expected["spec"] = json!({"amount": 1});
        expected["metadata"]["labels"] = json!({"e": "f"});
        drop(
            expected["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("annotations"),
        );
        assert_eq!(made, Ok(expected));
    }

    #[test]
    fn answers_that_do_not_count_are_refused_in_the_words_of_the_real_server() {
        type Change = fn(&mut Value);
        fn converted(review: &mut Value) -> &mut Value {
            &mut review["response"]["convertedObjects"][0]
        }
        let changes: [(&str, Change, &str); 13] = [
            (
                "v1",
                |r| r["response"] = Value::Null,
                " failed: no response provided",
            ),
            (
                "v1",
                |r| r["response"]["result"] = json!({"status": "Failure", "message": "why"}),
                " failed: why",
            ),
            (
                "v1",
                |r| r["response"]["result"] = json!({}),
                " failed: response.result.status was '', not 'Success'",
            ),
            (
                "v1",
                |r| r["response"]["convertedObjects"] = json!([]),
                " returned 0 objects, expected 1",
            ),
            (
                "v1",
                |r| r["kind"] = json!("Other"),
                " failed: no kind \"Other\" is registered for version \"apiextensions.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
            ),
            (
                "v1",
                |r| r["apiVersion"] = json!("apiextensions.k8s.io/v1beta1"),
                " failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
            ),
            (
                "v1",
                |r| *converted(r) = object(),
                " returned invalid object at index 0: invalid groupVersion (expected x.io/v2, received x.io/v1)",
            ),
            (
                "v1",
                |r| converted(r)["kind"] = json!("V"),
                " returned invalid object at index 0: invalid kind (expected W, received V)",
            ),
            (
                "v1",
                |r| converted(r)["metadata"]["name"] = json!("v"),
                " returned invalid object: must have the same name: w != v",
            ),
            (
                "v1",
                |r| converted(r)["metadata"]["uid"] = json!("v"),
                " returned invalid object: must have the same UID: u != v",
            ),
            (
                "v1",
                |r| converted(r)["metadata"]["labels"] = json!({"l": 5}),
                " returned invalid metadata: metadata.labels[l] must be a string, but is int64 in converted object",
            ),
            (
                "v1beta1",
                |r| r["response"]["result"] = json!({"status": "Failure"}),
                " failed: response.result.status was 'Failure', not 'Success'",
            ),
            (
                "v1beta1",
                |r| converted(r)["metadata"]["namespace"] = json!("m"),
                " returned invalid object: must have the same namespace: n != m",
            ),
        ];
        for (version, change, expected) in changes {
            let why = answered(version, change).unwrap_err();
            let of = "conversion webhook for x.io/v1, Kind=W";
            assert_eq!(why, format!("{of}{expected}"));
        }
        let why = answered("v1", |r| r["response"]["uid"] = json!("v")).unwrap_err();
        assert!(why.ends_with(", got \"v\""), "{why}");
        // Older reviews are not looked at so closely.
        assert!(answered("v1beta1", |r| r["response"]["uid"] = json!("v")).is_ok());
    }
}
