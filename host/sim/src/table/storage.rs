//! Volumes, claims and storage classes.

use serde_json::{Value, json};

use super::column::{Cells, Column, Layout};

pub(super) const LAYOUTS: &[Layout] = &[
    Layout::of(
        "",
        "PersistentVolume",
        &[
            Column::NAME,
            Column::text("Capacity"),
            Column::text("Access Modes"),
            Column::text("Reclaim Policy"),
            Column::text("Status"),
            Column::text("Claim"),
            Column::text("StorageClass"),
            Column::text("VolumeAttributesClass"),
            Column::text("Reason"),
            Column::AGE,
            Column::wide("VolumeMode"),
        ],
        volume,
    ),
    Layout::of(
        "",
        "PersistentVolumeClaim",
        &[
            Column::NAME,
            Column::text("Status"),
            Column::text("Volume"),
            Column::text("Capacity"),
            Column::text("Access Modes"),
            Column::text("StorageClass"),
            Column::text("VolumeAttributesClass"),
            Column::AGE,
            Column::wide("VolumeMode"),
        ],
        claim,
    ),
    Layout::of(
        "storage.k8s.io",
        "StorageClass",
        &[
            Column::NAME,
            Column::text("Provisioner"),
            Column::text("ReclaimPolicy"),
            Column::text("VolumeBindingMode"),
            Column::text("AllowVolumeExpansion"),
            Column::AGE,
        ],
        class,
    ),
];

const UNSET: &str = "<unset>";

/// Access modes in short, in a fixed order.
fn modes(o: &Cells<'_>, pointer: &str) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let given: Vec<&str> = o.list(pointer).filter_map(Value::as_str).collect();
    let short: Vec<&str> = SHORT
        .iter()
        .filter(|(mode, _)| given.contains(mode))
        .map(|(_, short)| *short)
        .collect();
    short.join(",")
}

fn phase<'a>(o: &Cells<'a>) -> &'a str {
    if o.is_ending() {
        "Terminating"
    } else {
        o.text("/status/phase")
    }
}

fn volume(o: &Cells<'_>) -> Vec<Value> {
    let claim = match o.at("/spec/claimRef") {
        None => String::new(),
        Some(_) => format!(
            "{}/{}",
            o.text("/spec/claimRef/namespace"),
            o.text("/spec/claimRef/name")
        ),
    };
    vec![
        o.name(),
        json!(o.text_or("/spec/capacity/storage", "0")),
        json!(modes(o, "/spec/accessModes")),
        json!(o.text("/spec/persistentVolumeReclaimPolicy")),
        json!(phase(o)),
        json!(claim),
        json!(o.text("/spec/storageClassName")),
        json!(o.text_or("/spec/volumeAttributesClassName", UNSET)),
        json!(o.text("/status/reason")),
        o.age(),
        json!(o.text_or("/spec/volumeMode", UNSET)),
    ]
}

fn claim(o: &Cells<'_>) -> Vec<Value> {
    let bound = !o.text("/spec/volumeName").is_empty();
    let (capacity, modes) = if bound {
        (
            o.text_or("/status/capacity/storage", "0"),
            modes(o, "/status/accessModes"),
        )
    } else {
        ("", String::new())
    };
    vec![
        o.name(),
        json!(phase(o)),
        json!(o.text("/spec/volumeName")),
        json!(capacity),
        json!(modes),
        json!(o.text("/spec/storageClassName")),
        json!(o.text_or("/spec/volumeAttributesClassName", UNSET)),
        o.age(),
        json!(o.text_or("/spec/volumeMode", UNSET)),
    ]
}

fn class(o: &Cells<'_>) -> Vec<Value> {
    const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
    let annotations = o.at("/metadata/annotations");
    let default = annotations.and_then(|a| a.get(DEFAULT)) == Some(&json!("true"));
    let name = o.text("/metadata/name");
    let name = if default {
        format!("{name} (default)")
    } else {
        name.to_owned()
    };
    vec![
        json!(name),
        json!(o.text("/provisioner")),
        json!(o.text_or("/reclaimPolicy", "Delete")),
        json!(o.text_or("/volumeBindingMode", "Immediate")),
        json!(o.at("/allowVolumeExpansion") == Some(&Value::Bool(true))),
        o.age(),
    ]
}
