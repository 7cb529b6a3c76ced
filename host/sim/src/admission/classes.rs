//! Classes of claims and Ingresses that name none: the default ones.

use serde_json::Value;

use crate::kinds::edit::{ensure_object, flag, set, text, text_at};
use crate::quantity::Quantity;
use crate::server::Shared;
use crate::store::Range;

const STORAGE_CLASSES: &str = "storageclasses.storage.k8s.io";
const INGRESS_CLASSES: &str = "ingressclasses.networking.k8s.io";
/// What makes a StorageClass the default one, now and in the older way.
const DEFAULT_STORAGE: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
const DEFAULT_INGRESS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];
/// Where a claim and an Ingress named their class once.
const OLDER_STORAGE: &str = "volume.beta.kubernetes.io/storage-class";
const OLDER_INGRESS: &str = "kubernetes.io/ingress.class";

/// Gives a new claim the default StorageClass, unless it names one: none at all is named
/// by an empty text.
pub(super) fn assign_storage(server: &Shared, claim: &mut Value) {
    let defaults = || default_class(server, STORAGE_CLASSES, &DEFAULT_STORAGE);
    assign(claim, "storageClassName", OLDER_STORAGE, defaults);
}

/// Gives a new Ingress the default IngressClass, unless it names one.
pub(super) fn assign_ingress(server: &Shared, ingress: &mut Value) {
    let defaults = || default_class(server, INGRESS_CLASSES, &DEFAULT_INGRESS);
    assign(ingress, "ingressClassName", OLDER_INGRESS, defaults);
}

fn assign(object: &mut Value, field: &str, older: &str, class: impl FnOnce() -> Option<String>) {
    let annotated = annotations(object).is_some_and(|all| all.get(older).is_some());
    let named = object.pointer("/spec").and_then(|spec| spec.get(field));
    if annotated || named.is_some_and(|class| !class.is_null()) {
        return;
    }
    if let Some(class) = class()
        && let Some(spec) = ensure_object(object, "spec")
    {
        set(spec, field, class);
    }
}

/// The class that is marked as the default: of several the youngest, and of those the
/// first by name.
fn default_class(server: &Shared, table: &str, marks: &[&str]) -> Option<String> {
    let page = server.store.list(table, &Range::default(), None);
    let classes = page.map(|page| page.objects).unwrap_or_default();
    let classes = classes.iter().map(|class| class.value());
    let is_default = |class: &Value| {
        let annotations = annotations(class).unwrap_or(&Value::Null);
        marks.iter().any(|mark| text(annotations, mark) == "true")
    };
    let name = |class: &Value| text_at(class, "/metadata/name").to_owned();
    let made = |class: &Value| text_at(class, "/metadata/creationTimestamp").to_owned();
    let youngest = classes
        .filter(is_default)
        .max_by_key(|class| (made(class), std::cmp::Reverse(name(class))));
    youngest.map(|class| name(&class))
}

/// Only a claim that is bound may ask for more, of a class that says that it can.
///
/// # Errors
///
/// Why it may not.
pub(super) fn check_growth(server: &Shared, claim: &Value, old: &Value) -> Result<(), String> {
    let size = |claim: &Value| {
        let size = claim.pointer("/spec/resources/requests/storage")?;
        Quantity::parse(size.as_str()?).ok()
    };
    let grows = size(claim).is_some_and(|now| size(old).is_none_or(|then| now > then));
    if !grows {
        return Ok(());
    }
    if text_at(old, "/status/phase") != "Bound" {
        return Err("Only bound persistent volume claims can be expanded".to_owned());
    }
    let class = |claim: &Value| {
        let older = annotations(claim).map_or("", |all| text(all, OLDER_STORAGE));
        if older.is_empty() {
            text_at(claim, "/spec/storageClassName").to_owned()
        } else {
            older.to_owned()
        }
    };
    let (now, then) = (class(claim), class(old));
    let found = server.store.get(STORAGE_CLASSES, &now);
    let allows = found.is_some_and(|class| flag(&class.value(), "allowVolumeExpansion"));
    if now == then && allows {
        return Ok(());
    }
    Err("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize".to_owned())
}

fn annotations(object: &Value) -> Option<&Value> {
    object.pointer("/metadata/annotations")
}
