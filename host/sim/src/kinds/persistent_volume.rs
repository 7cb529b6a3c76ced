//! PersistentVolumes.

use serde_json::{Value, json};

use super::claim;
use super::edit::{
    as_printed, copy, default_to, ensure_object, entries, items, items_mut, present, remove, set,
    text,
};
use super::pod_validation::{placement, supported, volumes};
use super::resources::quantity;
use crate::field::{Errors, FieldError, Path};
use crate::names;

const SPEC: Path<'static> = Path::new("spec");
const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// Fields of a PersistentVolume's spec that are not the description of where
/// the data is.
const NOT_SOURCES: &[&str] = &[
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(super) fn default_volume(volume: &mut Value) {
    claim::default_phase(volume, "Pending");
    if let Some(spec) = ensure_object(volume, "spec") {
        default_to(spec, "persistentVolumeReclaimPolicy", "Retain");
        default_to(spec, "volumeMode", "Filesystem");
        if let Some(host) = spec.get_mut("hostPath").filter(|host| host.is_object())
            && host.get("type").is_none()
        {
            set(host, "type", "");
        }
    }
}

pub(super) fn admit_volume(volume: &mut Value) {
    add_finalizer(volume, "kubernetes.io/pv-protection");
}

/// Adds a finalizer that is not there yet.
pub(super) fn add_finalizer(object: &mut Value, finalizer: &str) {
    let Some(meta) = ensure_object(object, "metadata") else {
        return;
    };
    let mut finalizers: Vec<Value> = items(meta, "finalizers").cloned().collect();
    if !finalizers.iter().any(|known| known == finalizer) {
        finalizers.push(json!(finalizer));
        set(meta, "finalizers", finalizers);
    }
}

/// Checks the name of a class, where one is given.
pub(super) fn validate_class(path: &Path<'_>, spec: &Value, field: &str, errors: &mut Errors) {
    let class = text(spec, field);
    if !class.is_empty() {
        for wrong in names::dns1123_subdomain(class) {
            errors.push(FieldError::invalid_str(&path.child(field), class, wrong));
        }
    }
}

/// Checks who may use a volume at one time.
pub(super) fn validate_modes(at: &Path<'_>, spec: &Value, errors: &mut Errors) {
    let path = at.child("accessModes");
    let modes: Vec<&str> = items(spec, "accessModes")
        .filter_map(Value::as_str)
        .collect();
    for mode in &modes {
        if !ACCESS_MODES.contains(mode) {
            errors.push(FieldError::not_supported(
                &path,
                &(*mode).into(),
                ACCESS_MODES,
            ));
        }
    }
    let exclusive = |mode: &&str| *mode == "ReadWriteOncePod";
    if modes.iter().any(exclusive)
        && modes
            .iter()
            .any(|mode| !exclusive(mode) && ACCESS_MODES.contains(mode))
    {
        errors.push(FieldError::forbidden(
            &path,
            "may not use ReadWriteOncePod with other access modes",
        ));
    }
}

pub(super) fn validate_volume(volume: &Value, errors: &mut Errors) {
    let spec = volume.get("spec").unwrap_or(&Value::Null);
    if present(spec, "accessModes").is_none() {
        errors.push(FieldError::required(&SPEC.child("accessModes"), ""));
    }
    validate_modes(&SPEC, spec, errors);
    let path = SPEC.child("capacity");
    if present(spec, "capacity").is_none() {
        errors.push(FieldError::required(&path, ""));
    }
    let storage = entries(spec, "capacity").any(|(name, _)| name == "storage");
    if !storage || entries(spec, "capacity").count() > 1 {
        errors.push(FieldError::not_supported(
            &path,
            spec.get("capacity").unwrap_or(&json!(null)),
            &["storage"],
        ));
    }
    for (name, amount) in entries(spec, "capacity") {
        let path = path.key(name);
        if quantity(amount).is_some_and(|q| q.is_zero() || q.is_negative()) {
            errors.push(FieldError::invalid(
                &path,
                amount,
                "must be greater than zero",
            ));
        }
    }
    supported(
        &SPEC,
        spec,
        "persistentVolumeReclaimPolicy",
        &["Delete", "Recycle", "Retain"],
        errors,
    );
    let is_placed = validate_nodes(spec, errors);
    let sources = sources(spec);
    let sources = sources.as_object();
    if let Some((source, value)) = sources.and_then(|sources| sources.iter().next()) {
        validate_volume_source(&SPEC.child(source), source, value, is_placed, errors);
    }
    if sources.is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required(&SPEC, "must specify a volume type"));
    }
    for source in sources.into_iter().flatten().skip(1) {
        errors.push(FieldError::forbidden(
            &SPEC.child(source.0),
            "may not specify more than 1 volume type",
        ));
    }
    let is_root = spec.pointer("/hostPath/path").is_some_and(|path| {
        let mut parts = path.as_str().unwrap_or_default().split('/');
        parts.all(|part| matches!(part, "" | "."))
    });
    if is_root && text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        errors.push(FieldError::forbidden(
            &SPEC.child("persistentVolumeReclaimPolicy"),
            "may not be 'recycle' for a hostPath mount of '/'",
        ));
    }
    validate_class(&SPEC, spec, "storageClassName", errors);
    supported(&SPEC, spec, "volumeMode", &["Block", "Filesystem"], errors);
    validate_attributes(spec, errors);
}

/// Checks the class of a volume's attributes, which only drivers know.
fn validate_attributes(spec: &Value, errors: &mut Errors) {
    const FIELD: &str = "volumeAttributesClassName";
    let Some(class) = spec.get(FIELD).and_then(Value::as_str) else {
        return;
    };
    if class.is_empty() {
        let why = "an empty string is disallowed";
        errors.push(FieldError::required(&SPEC.child(FIELD), why));
    }
    validate_class(&SPEC, spec, FIELD, errors);
    if !spec.get("csi").is_some_and(Value::is_object) {
        let why = "has to be specified when using volumeAttributesClassName";
        errors.push(FieldError::required(&SPEC.child("csi"), why));
    }
}

/// Checks from which nodes a volume can be reached. Says whether it tells any.
fn validate_nodes(spec: &Value, errors: &mut Errors) -> bool {
    let Some(affinity) = spec.get("nodeAffinity").filter(|given| given.is_object()) else {
        return false;
    };
    let path = SPEC.child("nodeAffinity");
    let path = path.child("required");
    match affinity.get("required").filter(|given| given.is_object()) {
        Some(selector) => placement::validate_nodes(&path, selector, errors),
        None => {
            let why = "must specify required node constraints";
            errors.push(FieldError::required(&path, why));
        }
    }
    true
}

/// Checks those places for data that are not on their way out.
fn validate_volume_source(
    path: &Path<'_>,
    source: &str,
    value: &Value,
    is_placed: bool,
    errors: &mut Errors,
) {
    let require = |field: &str, errors: &mut Errors| {
        let missing = text(value, field).is_empty();
        if missing {
            errors.push(FieldError::required(&path.child(field), ""));
        }
        missing
    };
    match source {
        "hostPath" => volumes::validate_host_path(path, value, errors),
        "local" => {
            if !require("path", errors) {
                volumes::validate_no_steps_back(&path.child("path"), text(value, "path"), errors);
            }
            if !is_placed {
                let why = "Local volume requires node affinity";
                errors.push(FieldError::required(&SPEC.child("nodeAffinity"), why));
            }
        }
        "nfs" => volumes::validate_nfs(path, value, errors),
        "csi" => {
            validate_driver_name(&path.child("driver"), text(value, "driver"), errors);
            require("volumeHandle", errors);
            for field in [
                "controllerPublishSecretRef",
                "controllerExpandSecretRef",
                "nodePublishSecretRef",
                "nodeExpandSecretRef",
            ] {
                let Some(secret) = value.get(field).filter(|given| given.is_object()) else {
                    continue;
                };
                let path = path.child(field);
                for part in ["name", "namespace"] {
                    if text(secret, part).is_empty() {
                        errors.push(FieldError::required(&path.child(part), ""));
                    }
                }
            }
        }
        _ => {}
    }
}

/// Checks the name of a storage driver.
pub(super) fn validate_driver_name(path: &Path<'_>, name: &str, errors: &mut Errors) {
    const LONGEST: usize = 63;
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    if name.len() > LONGEST {
        errors.push(FieldError::too_long(path, LONGEST));
    }
    for wrong in names::dns1123_subdomain(&name.to_lowercase()) {
        errors.push(FieldError::invalid_str(path, name, wrong));
    }
}

pub(super) fn validate_volume_update(volume: &Value, old: &Value, errors: &mut Errors) {
    let spec = volume.get("spec").unwrap_or(&Value::Null);
    let old = old.get("spec").unwrap_or(&Value::Null);
    if sources_kept(spec, old) != sources(old) {
        errors.push(FieldError::forbidden(
            &SPEC.child("persistentvolumesource"),
            "spec.persistentvolumesource is immutable after creation",
        ));
    }
    super::meta::validate_immutable(&Path::new("volumeMode"), spec, old, "volumeMode", errors);
    validate_nodes_kept(spec, old, errors);
    const CLASS: &str = "volumeAttributesClassName";
    if old.get(CLASS).is_some() && spec.get(CLASS).is_none() {
        let why = "update from non-nil value to nil is forbidden";
        errors.push(FieldError::forbidden(&SPEC.child(CLASS), why));
    }
}

/// Once it is told from which nodes a volume can be reached, labels may only get their
/// lasting names.
fn validate_nodes_kept(spec: &Value, old: &Value, errors: &mut Errors) {
    const FIELD: &str = "nodeAffinity";
    const LASTING: [(&str, &str); 5] = [
        (
            "failure-domain.beta.kubernetes.io/zone",
            "topology.kubernetes.io/zone",
        ),
        (
            "failure-domain.beta.kubernetes.io/region",
            "topology.kubernetes.io/region",
        ),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        (
            "beta.kubernetes.io/instance-type",
            "node.kubernetes.io/instance-type",
        ),
    ];
    let Some(mut kept) = old.get(FIELD).filter(|given| given.is_object()).cloned() else {
        return;
    };
    let nodes = spec.get(FIELD).unwrap_or(&Value::Null);
    let required = nodes.get("required").unwrap_or(&Value::Null);
    if let Some(kept) = kept.get_mut("required") {
        let terms = items_mut(kept, "nodeSelectorTerms").zip(items(required, "nodeSelectorTerms"));
        for (kept, term) in terms {
            for list in ["matchExpressions", "matchFields"] {
                for (kept, expression) in items_mut(kept, list).zip(items(term, list)) {
                    if LASTING.contains(&(text(kept, "key"), text(expression, "key"))) {
                        copy(kept, expression, "key");
                    }
                }
            }
        }
    }
    if *nodes != kept {
        let why = "field is immutable, except for updating from beta label to GA";
        let path = Path::new(FIELD);
        errors.push(FieldError::invalid(&path, &printed_nodes(nodes), why));
    }
}

/// From which nodes a volume can be reached, as the server prints it.
fn printed_nodes(nodes: &Value) -> Value {
    if nodes.is_null() {
        return Value::Null;
    }
    let mut printed = as_printed(nodes, &[("Required", "required")]);
    if let Some(required) = printed
        .get_mut("Required")
        .filter(|given| given.is_object())
    {
        *required = as_printed(required, &[("NodeSelectorTerms", "nodeSelectorTerms")]);
        for term in items_mut(required, "NodeSelectorTerms") {
            *term = placement::printed_term(term);
        }
    }
    printed
}

/// Where the data is, without what may be added to it: with which Secret a volume grows.
fn sources_kept(spec: &Value, old: &Value) -> Value {
    const SECRET: &str = "controllerExpandSecretRef";
    let mut sources = sources(spec);
    let had_none = old.get("csi").is_some_and(|csi| csi.get(SECRET).is_none());
    if let Some(csi) = sources.get_mut("csi").filter(|_| had_none) {
        remove(csi, SECRET);
    }
    sources
}

/// Where the data is: what is left of the spec.
fn sources(spec: &Value) -> Value {
    let mut sources = spec.clone();
    for field in NOT_SOURCES {
        remove(&mut sources, field);
    }
    sources
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests {
    use super::*;

    /// What is said of a volume with `before` in its spec when it is changed to `after`.
    #[track_caller]
    fn check(before: Value, after: Value, expected: &[&str]) {
        let mut errors = Errors::new();
        let (old, volume) = (json!({ "spec": before }), json!({ "spec": after }));
        validate_volume_update(&volume, &old, &mut errors);
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_secret_to_grow_with_may_be_added() {
        let with = |secret: &str| {
            let secret = json!({ "name": secret });
            json!({"csi": {"driver": "d", "controllerExpandSecretRef": secret}})
        };
        let none = json!({"csi": {"driver": "d"}});
        let kept = "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is \
                    immutable after creation";
        check(none.clone(), with("a"), &[]);
        check(with("a"), with("b"), &[kept]);
        check(with("a"), none.clone(), &[kept]);
        check(json!({"hostPath": {"path": "/a"}}), with("a"), &[kept]);
        let mut other = with("a");
        other["csi"]["driver"] = json!("e");
        check(none, other, &[kept]);
    }

    #[test]
    fn nodes_stay_but_for_lasting_names_of_labels() {
        let with = |key: &str, value: &str| {
            json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]},
            ]}}})
        };
        let (beta, stable) = ("beta.kubernetes.io/os", "kubernetes.io/os");
        check(json!({}), with(beta, "linux"), &[]);
        check(with(beta, "linux"), with(beta, "linux"), &[]);
        check(with(beta, "linux"), with(stable, "linux"), &[]);
        let kept = "field is immutable, except for updating from beta label to GA";
        let wrong = |key: &str, value: &str| {
            format!(
                "nodeAffinity: Invalid value: {{\"Required\":{{\"NodeSelectorTerms\":[{{\
                 \"MatchExpressions\":[{{\"Key\":\"{key}\",\"Operator\":\"In\",\"Values\":\
                 [\"{value}\"]}}],\"MatchFields\":null}}]}}}}: {kept}"
            )
        };
        check(
            with(beta, "linux"),
            with(stable, "windows"),
            &[&wrong(stable, "windows")],
        );
        check(
            with(stable, "linux"),
            with(beta, "linux"),
            &[&wrong(beta, "linux")],
        );
        let gone = format!("nodeAffinity: Invalid value: null: {kept}");
        check(with(beta, "linux"), json!({}), &[&gone]);
    }

    #[test]
    fn a_class_of_attributes_is_not_given_up() {
        let with = |class: &str| json!({ "volumeAttributesClassName": class });
        check(json!({}), with("a"), &[]);
        check(with("a"), with("b"), &[]);
        check(
            with("a"),
            json!({}),
            &[
                "spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is \
               forbidden",
            ],
        );
    }
}
