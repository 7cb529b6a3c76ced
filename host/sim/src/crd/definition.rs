//! Defaults and validation of a CustomResourceDefinition.

mod version;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use self::version::{validate_shared, validate_versions};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::edit::{default_to, ensure_object, flag, items, present, set, text, text_at};
use crate::kinds::webhook_client;
use crate::names;

const SPEC: Path<'static> = Path::new("spec");
const STATUS: Path<'static> = Path::new("status");

/// Fills in the names and the conversion that may be left out.
pub fn default(definition: &mut Value) {
    let Some(spec) = ensure_object(definition, "spec") else {
        return;
    };
    if let Some(names) = ensure_object(spec, "names") {
        let kind = text(names, "kind").to_owned();
        default_to(names, "singular", kind.to_lowercase());
        if !kind.is_empty() {
            default_to(names, "listKind", format!("{kind}List"));
        }
        for field in ["plural", "kind"] {
            default_to(names, field, "");
        }
    }
    if spec.get("conversion").is_none() {
        set(spec, "conversion", json!({"strategy": "None"}));
    }
    if let Some(service) = spec.pointer_mut("/conversion/webhook/clientConfig/service") {
        default_to(service, "port", 443);
    }
    // Its only value is the one that is not written.
    if !flag(spec, "preserveUnknownFields") {
        crate::kinds::edit::remove(spec, "preserveUnknownFields");
    }
}

/// The status of a new definition.
pub fn prepare_create(definition: &mut Value) {
    let stored: Vec<Value> = storage_version(definition)
        .map(Value::from)
        .into_iter()
        .collect();
    set(
        definition,
        "status",
        json!({
            "acceptedNames": {"kind": "", "plural": ""},
            "conditions": null,
            "storedVersions": stored,
        }),
    );
}

/// Remembers that objects may now be stored in the storage version.
pub fn prepare_update(definition: &mut Value, _old: &Value) {
    let Some(version) = storage_version(definition).map(str::to_owned) else {
        return;
    };
    let Some(status) = ensure_object(definition, "status") else {
        return;
    };
    let mut stored: Vec<Value> = items(status, "storedVersions").cloned().collect();
    if !stored.iter().any(|known| *known == version) {
        stored.push(version.into());
        set(status, "storedVersions", stored);
    }
}

fn storage_version(definition: &Value) -> Option<&str> {
    versions(definition)
        .find(|version| flag(version, "storage"))
        .map(|version| text(version, "name"))
}

fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    items(definition.get("spec").unwrap_or(&Value::Null), "versions")
}

/// Says what is wrong with a new definition, its metadata's general rules aside.
pub fn validate_create(definition: &Value, errors: &mut Errors) {
    validate(definition, None, errors);
}

/// Says what is wrong with a definition, which may be a change of an old one.
fn validate(definition: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let names = spec.get("names").unwrap_or(&Value::Null);
    validate_name(definition, spec, names, errors);
    validate_group(spec, errors);
    validate_approval(definition, errors);
    match text(spec, "scope") {
        "" => errors.push(FieldError::required(&SPEC.child("scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(FieldError::not_supported(
            &SPEC.child("scope"),
            &other.into(),
            &["Cluster", "Namespaced"],
        )),
    }
    validate_versions(definition, old, spec, errors);
    validate_names(names, errors);
    validate_shared(definition, old, errors);
    validate_conversion(spec, errors);
    validate_stored_versions(definition, errors);
    if flag(spec, "preserveUnknownFields") {
        errors.push(FieldError::invalid(
            &SPEC.child("preserveUnknownFields"),
            &json!(true),
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
             spec.versions[*].schema instead",
        ));
    }
}

/// Says what is wrong with a changed definition, and what of it may not change.
pub fn validate_update(definition: &Value, old: &Value, errors: &mut Errors) {
    validate(definition, Some(old), errors);
    let established =
        items(old.get("status").unwrap_or(&Value::Null), "conditions").any(|condition| {
            text(condition, "type") == "Established" && text(condition, "status") == "True"
        });
    let names = SPEC.child("names");
    let fields = [
        ("/spec/scope", SPEC.child("scope"), established),
        ("/spec/names/kind", names.child("kind"), established),
        ("/spec/group", SPEC.child("group"), true),
        ("/spec/names/plural", names.child("plural"), true),
    ];
    for (pointer, path, fixed) in fields {
        if fixed && text_at(definition, pointer) != text_at(old, pointer) {
            errors.push(FieldError::invalid_str(
                &path,
                text_at(definition, pointer),
                "field is immutable",
            ));
        }
    }
}

fn validate_name(definition: &Value, spec: &Value, names: &Value, errors: &mut Errors) {
    let name = text_at(definition, "/metadata/name");
    let required = format!("{}.{}", text(names, "plural"), text(spec, "group"));
    if !name.is_empty() && name != required {
        let meta = Path::new("metadata");
        errors.push(FieldError::invalid_str(
            &meta.child("name"),
            name,
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
}

fn validate_group(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("group");
    let group = text(spec, "group");
    let wrong = names::dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid_str(&path, group, wrong.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid_str(
            &path,
            group,
            "should be a domain with at least one dot",
        ));
    }
}

/// The groups of Kubernetes itself are not for everybody.
fn validate_approval(definition: &Value, errors: &mut Errors) {
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    const REASON: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let group = text_at(definition, "/spec/group");
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group
            .strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    if !is_protected {
        return;
    }
    let annotations = definition.pointer("/metadata/annotations");
    let given = annotations
        .and_then(|all| all.get(ANNOTATION))
        .and_then(Value::as_str);
    let metadata = Path::new("metadata");
    let annotations = metadata.child("annotations");
    let path = annotations.key(ANNOTATION);
    match given.unwrap_or_default() {
        "" => errors.push(FieldError::required(
            &path,
            format!("protected groups must have approval annotation {ANNOTATION:?}, {REASON}"),
        )),
        given if given.starts_with("unapproved") || given.contains("://") => {}
        given => errors.push(FieldError::invalid_str(
            &path,
            given,
            format!(
                "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting with \"unapproved\", {REASON}"
            ),
        )),
    }
}

fn validate_names(given: &Value, errors: &mut Errors) {
    let path = SPEC.child("names");
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(given, field).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    for field in ["plural", "singular"] {
        let name = text(given, field);
        let wrong = names::dns1035_label(name);
        if !name.is_empty() && !wrong.is_empty() {
            errors.push(FieldError::invalid_str(
                &path.child(field),
                name,
                wrong.join(","),
            ));
        }
    }
    for field in ["kind", "listKind"] {
        let name = text(given, field);
        let wrong = names::dns1035_label(&name.to_lowercase());
        if !name.is_empty() && !wrong.is_empty() {
            errors.push(FieldError::invalid_str(
                &path.child(field),
                name,
                format!(
                    "may have mixed case, but should otherwise match: {}",
                    wrong.join(",")
                ),
            ));
        }
    }
    validate_label_list(&path, given, "shortNames", errors);
    let (kind, list) = (text(given, "kind"), text(given, "listKind"));
    if !kind.is_empty() && kind == list {
        errors.push(FieldError::invalid_str(
            &path.child("listKind"),
            list,
            "kind and listKind may not be the same",
        ));
    }
    validate_label_list(&path, given, "categories", errors);
}

fn validate_label_list(path: &Path<'_>, given: &Value, field: &str, errors: &mut Errors) {
    let path = path.child(field);
    for (index, name) in items(given, field).enumerate() {
        let name = name.as_str().unwrap_or_default();
        let wrong = names::dns1035_label(name);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid_str(
                &path.index(index),
                name,
                wrong.join(","),
            ));
        }
    }
}

/// The server's own type for a conversion has the fields of the webhook beside the
/// strategy, and complains accordingly.
fn validate_conversion(spec: &Value, errors: &mut Errors) {
    const CLIENT: &str = "webhookClientConfig";
    const VERSIONS: &str = "conversionReviewVersions";
    let conversion = spec.get("conversion").unwrap_or(&Value::Null);
    let path = SPEC.child("conversion");
    let strategy = text(conversion, "strategy");
    match strategy {
        "" => errors.push(FieldError::required(&path.child("strategy"), "")),
        "None" | "Webhook" => {}
        other => errors.push(FieldError::not_supported(
            &path.child("strategy"),
            &other.into(),
            &["None", "Webhook"],
        )),
    }
    let webhook = conversion.get("webhook").unwrap_or(&Value::Null);
    let client = webhook
        .get("clientConfig")
        .filter(|given| given.is_object());
    if strategy == "Webhook" {
        let path_of_client = path.child(CLIENT);
        match client {
            Some(client) => webhook_client::validate_client(&path_of_client, client, errors),
            None => {
                let why = "required when strategy is set to Webhook";
                errors.push(FieldError::required(&path_of_client, why));
            }
        }
        webhook_client::validate_versions(&path, webhook, VERSIONS, "", errors);
        return;
    }
    let why = "should not be set when strategy is not set to Webhook";
    if client.is_some() {
        errors.push(FieldError::forbidden(&path.child(CLIENT), why));
    }
    if present(webhook, VERSIONS).is_some() {
        errors.push(FieldError::forbidden(&path.child(VERSIONS), why));
    }
}

fn validate_stored_versions(definition: &Value, errors: &mut Errors) {
    let path = STATUS.child("storedVersions");
    let status = definition.get("status").unwrap_or(&Value::Null);
    if present(status, "storedVersions").is_none() {
        errors.push(FieldError::invalid(
            &path,
            &Value::Null,
            "must have at least one stored version",
        ));
        return;
    }
    let mut names: BTreeSet<&str> = items(status, "storedVersions")
        .filter_map(Value::as_str)
        .collect();
    for version in versions(definition) {
        let name = text(version, "name");
        if !names.remove(name) && flag(version, "storage") {
            errors.push(FieldError::invalid(
                &path,
                &status["storedVersions"],
                format!("must have the storage version {name}"),
            ));
        }
    }
    for (index, stored) in items(status, "storedVersions").enumerate() {
        let name = stored.as_str().unwrap_or_default();
        if !versions(definition).any(|version| text(version, "name") == name) {
            errors.push(FieldError::invalid_str(
                &path.index(index),
                name,
                format!(
                    "missing from spec.versions; {name} was previously a storage version, and \
                     must remain in spec.versions until a storage migration ensures no data \
                     remains persisted in {name} and removes {name} from status.storedVersions"
                ),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Value {
        json!({
            "metadata": {"name": "as.x.io"},
            "spec": {
                "group": "x.io",
                "scope": "Namespaced",
                "names": {"plural": "as", "kind": "A"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        })
    }

    fn complaints(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut definition = definition();
        change(&mut definition);
        default(&mut definition);
        prepare_create(&mut definition);
        let mut errors = Errors::new();
        validate(&definition, None, &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_are_filled_in() {
        let mut definition = definition();
        default(&mut definition);
        assert_eq!(
            definition["spec"]["names"],
            json!({"plural": "as", "kind": "A", "singular": "a", "listKind": "AList"})
        );
        assert_eq!(
            definition["spec"]["conversion"],
            json!({"strategy": "None"})
        );
        prepare_create(&mut definition);
        assert_eq!(definition["status"]["storedVersions"], json!(["v1"]));
    }

    #[test]
    fn complains() {
        assert_eq!(complaints(|_| {}), Vec::<String>::new());
        let check = |pointer: &str, value: Value, expected: &str| {
            let found = complaints(|d| *d.pointer_mut(pointer).unwrap() = value);
            assert!(found.iter().any(|f| f == expected), "{found:#?}");
        };
        check(
            "/metadata/name",
            json!("bs.x.io"),
            "metadata.name: Invalid value: \"bs.x.io\": must be spec.names.plural+\".\"+spec.group",
        );
        check(
            "/spec/group",
            json!("x"),
            "spec.group: Invalid value: \"x\": should be a domain with at least one dot",
        );
        check(
            "/spec/scope",
            json!("World"),
            "spec.scope: Unsupported value: \"World\": supported values: \"Cluster\", \
             \"Namespaced\"",
        );
        check(
            "/spec/versions/0/schema",
            json!({}),
            "spec.versions[0].schema.openAPIV3Schema: Required value",
        );
    }

    #[test]
    fn conversions_say_whom_to_ask_and_how() {
        let check = |conversion: Value, expected: &[&str]| {
            let found = complaints(|d| d["spec"]["conversion"] = conversion);
            assert_eq!(found, expected);
        };
        let client = json!({"url": "https://a.b/c"});
        check(
            json!({"strategy": "Webhook", "webhook": {
                "clientConfig": client, "conversionReviewVersions": ["v1"],
            }}),
            &[],
        );
        check(
            json!({"strategy": "Webhook", "webhook": {"clientConfig": {}}}),
            &[
                "spec.conversion.webhookClientConfig: Required value: exactly one of url or \
                 service is required",
                "spec.conversion.conversionReviewVersions: Required value",
            ],
        );
        check(
            json!({"strategy": "Webhook", "webhook": {
                "clientConfig": {"url": "http://a"}, "conversionReviewVersions": ["v2"],
            }}),
            &[
                "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the \
                 only allowed URL scheme; desired format: https://host[/path]",
                "spec.conversion.conversionReviewVersions: Invalid value: [\"v2\"]: must include \
                 at least one of v1, v1beta1",
            ],
        );
        let unasked = "should not be set when strategy is not set to Webhook";
        check(
            json!({"strategy": "None", "webhook": {
                "clientConfig": client, "conversionReviewVersions": ["v1"],
            }}),
            &[
                &format!("spec.conversion.webhookClientConfig: Forbidden: {unasked}"),
                &format!("spec.conversion.conversionReviewVersions: Forbidden: {unasked}"),
            ],
        );
    }

    #[test]
    fn one_version_is_stored() {
        let found = complaints(|d| d["spec"]["versions"][0]["storage"] = json!(false));
        assert!(found[0].contains("must have exactly one version marked as storage version"));
    }

    #[test]
    fn a_new_storage_version_is_remembered() {
        let mut old = definition();
        default(&mut old);
        prepare_create(&mut old);
        let mut new = old.clone();
        new["spec"]["versions"][0]["storage"] = json!(false);
        let mut second = new["spec"]["versions"][0].clone();
        second["name"] = json!("v2");
        second["storage"] = json!(true);
        new["spec"]["versions"].as_array_mut().unwrap().push(second);
        prepare_update(&mut new, &old);
        assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
        new["spec"]["versions"].as_array_mut().unwrap().remove(0);
        let mut errors = Errors::new();
        validate(&new, None, &mut errors);
        assert!(
            errors
                .aggregate()
                .contains("missing from spec.versions; v1 was previously")
        );
    }
}
