//! Roles and bindings.

use serde_json::{Value, json};

use super::edit::{default_to, ensure_object, items, items_mut, present, set, text};
use super::row::{Kind, UpdateOrder};
use super::selectors;
use crate::field::{Errors, FieldError, Path};
use crate::names;
use crate::selector::LabelSelector;

/// The API group of roles, and of the users and groups that they name.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
const V1: (&str, &str) = (GROUP, "v1");

pub(super) const ROWS: &[Kind] = &[
    Kind::namespaced(V1, "Role", "roles")
        .created_on_update()
        .named(names::path_segment)
        .defaulted(default_role)
        .validated(|role, errors| validate_rules(role, true, errors))
        .update_order(UpdateOrder::WholeObjectFirst),
    Kind::cluster(V1, "ClusterRole", "clusterroles")
        .created_on_update()
        .named(names::path_segment)
        .defaulted(default_role)
        .validated(validate_cluster_role)
        .update_order(UpdateOrder::WholeObjectFirst),
    Kind::namespaced(V1, "RoleBinding", "rolebindings")
        .created_on_update()
        .named(names::path_segment)
        .defaulted(default_binding)
        .validated(|binding, errors| {
            validate_binding(binding, &["Role", "ClusterRole"], true, errors);
        })
        .update_validated(validate_role_ref_kept)
        .update_order(UpdateOrder::WholeObjectFirst),
    Kind::cluster(V1, "ClusterRoleBinding", "clusterrolebindings")
        .created_on_update()
        .named(names::path_segment)
        .defaulted(default_binding)
        .validated(|binding, errors| validate_binding(binding, &["ClusterRole"], false, errors))
        .update_validated(validate_role_ref_kept)
        .update_order(UpdateOrder::WholeObjectFirst),
];

/// The server writes the fields that cannot be left out of its structures.
fn default_role(role: &mut Value) {
    for rule in items_mut(role, "rules") {
        if rule.get("verbs").is_none() {
            set(rule, "verbs", Value::Null);
        }
    }
    if role.get("rules").is_none() {
        set(role, "rules", Value::Null);
    }
}

fn default_binding(binding: &mut Value) {
    if let Some(role) = ensure_object(binding, "roleRef") {
        default_to(role, "apiGroup", GROUP);
        for field in ["kind", "name"] {
            default_to(role, field, "");
        }
    }
    for subject in items_mut(binding, "subjects") {
        match text(subject, "kind") {
            "User" | "Group" => default_to(subject, "apiGroup", GROUP),
            "ServiceAccount" if text(subject, "apiGroup").is_empty() => {
                super::edit::remove(subject, "apiGroup");
            }
            _ => {}
        }
    }
}

fn validate_cluster_role(role: &Value, errors: &mut Errors) {
    validate_rules(role, false, errors);
    let Some(rule) = role.get("aggregationRule").filter(|rule| rule.is_object()) else {
        return;
    };
    let path = Path::new("aggregationRule");
    let path = path.child("clusterRoleSelectors");
    if present(rule, "clusterRoleSelectors").is_none() {
        errors.push(FieldError::required(
            &path,
            "at least one clusterRoleSelector required if aggregationRule is non-nil",
        ));
    }
    for (index, selector) in items(rule, "clusterRoleSelectors").enumerate() {
        let path = path.index(index);
        selectors::validate(&path, selector, errors);
        if LabelSelector::from_object(selector).is_err() {
            let why = "invalid label selector.";
            errors.push(FieldError::invalid(&path, &Value::Null, why));
        }
    }
}

fn validate_rules(role: &Value, namespaced: bool, errors: &mut Errors) {
    let path = Path::new("rules");
    for (index, rule) in items(role, "rules").enumerate() {
        let path = path.index(index);
        if present(rule, "verbs").is_none() {
            errors.push(FieldError::required(
                &path.child("verbs"),
                "verbs must contain at least one value",
            ));
        }
        if let Some(urls) = present(rule, "nonResourceURLs") {
            let path = path.child("nonResourceURLs");
            if namespaced {
                errors.push(FieldError::invalid(
                    &path,
                    urls,
                    "namespaced rules cannot apply to non-resource URLs",
                ));
            }
            let resources = ["apiGroups", "resources", "resourceNames"];
            if resources.iter().any(|field| present(rule, field).is_some()) {
                errors.push(FieldError::invalid(
                    &path,
                    urls,
                    "rules cannot apply to both regular resources and non-resource URLs",
                ));
            }
            continue;
        }
        if present(rule, "apiGroups").is_none() {
            errors.push(FieldError::required(
                &path.child("apiGroups"),
                "resource rules must supply at least one api group",
            ));
        }
        if present(rule, "resources").is_none() {
            errors.push(FieldError::required(
                &path.child("resources"),
                "resource rules must supply at least one resource",
            ));
        }
    }
}

fn validate_binding(binding: &Value, roles: &[&str], namespaced: bool, errors: &mut Errors) {
    let role = binding.get("roleRef").unwrap_or(&Value::Null);
    let path = Path::new("roleRef");
    let group = text(role, "apiGroup");
    if group != GROUP {
        errors.push(FieldError::not_supported(
            &path.child("apiGroup"),
            &group.into(),
            &[GROUP],
        ));
    }
    let kind = text(role, "kind");
    if !roles.contains(&kind) {
        errors.push(FieldError::not_supported(
            &path.child("kind"),
            &kind.into(),
            roles,
        ));
    }
    let name = text(role, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    for wrong in names::path_segment(name) {
        errors.push(FieldError::invalid_str(&path.child("name"), name, wrong));
    }
    let path = Path::new("subjects");
    for (index, subject) in items(binding, "subjects").enumerate() {
        validate_subject(&path.index(index), subject, namespaced, errors);
    }
}

fn validate_subject(path: &Path<'_>, subject: &Value, namespaced: bool, errors: &mut Errors) {
    let name = text(subject, "name");
    let group = text(subject, "apiGroup");
    let kind = text(subject, "kind");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let expected = match kind {
        "ServiceAccount" => "",
        "User" | "Group" => GROUP,
        _ => {
            errors.push(FieldError::not_supported(
                &path.child("kind"),
                &kind.into(),
                &["ServiceAccount", "User", "Group"],
            ));
            return;
        }
    };
    if kind == "ServiceAccount" && !name.is_empty() {
        for wrong in names::dns1123_subdomain(name) {
            errors.push(FieldError::invalid_str(&path.child("name"), name, wrong));
        }
    }
    if group != expected {
        errors.push(FieldError::not_supported(
            &path.child("apiGroup"),
            &group.into(),
            &[expected],
        ));
    }
    if kind == "ServiceAccount" && !namespaced && text(subject, "namespace").is_empty() {
        errors.push(FieldError::required(&path.child("namespace"), ""));
    }
}

fn validate_role_ref_kept(binding: &Value, old: &Value, errors: &mut Errors) {
    let role = |binding: &Value| {
        let role = binding.get("roleRef").unwrap_or(&Value::Null);
        json!({
            "APIGroup": text(role, "apiGroup"),
            "Kind": text(role, "kind"),
            "Name": text(role, "name"),
        })
    };
    if role(binding) != role(old) {
        errors.push(FieldError::invalid(
            &Path::new("roleRef"),
            &role(binding),
            "cannot change roleRef",
        ));
    }
}
