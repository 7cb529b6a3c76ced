//! Volumes, claims and storage classes.

use serde_json::{Value, json};

use super::column::{Cells, Column, Layout, NONE, UNSET};
use crate::kinds::edit::text;

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
        GROUP,
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
    Layout::of(
        GROUP,
        "VolumeAttributesClass",
        &[Column::NAME, Column::text("DriverName"), Column::AGE],
        |o| vec![o.name(), json!(o.text("/driverName")), o.age()],
    ),
    Layout::of(
        GROUP,
        "VolumeAttachment",
        &[
            Column::NAME,
            Column::text("Attacher").as_name(),
            Column::text("PV"),
            Column::text("Node"),
            Column::flag("Attached"),
            Column::AGE,
        ],
        |o| {
            vec![
                o.name(),
                json!(o.text("/spec/attacher")),
                json!(o.text("/spec/source/persistentVolumeName")),
                json!(o.text("/spec/nodeName")),
                json!(o.flag("/status/attached", false)),
                o.age(),
            ]
        },
    ),
    Layout::of(
        GROUP,
        "CSINode",
        &[Column::NAME, Column::number("Drivers"), Column::AGE],
        |o| vec![o.name(), json!(o.len("/spec/drivers")), o.age()],
    ),
    Layout::of(
        GROUP,
        "CSIDriver",
        &[
            Column::NAME,
            Column::flag("AttachRequired"),
            Column::flag("PodInfoOnMount"),
            Column::flag("StorageCapacity"),
            Column::text("TokenRequests"),
            Column::flag("RequiresRepublish"),
            Column::text("Modes"),
            Column::AGE,
        ],
        driver,
    ),
];

const GROUP: &str = "storage.k8s.io";

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
    vec![
        o.name_or_default("storageclass.kubernetes.io/is-default-class"),
        json!(o.text("/provisioner")),
        json!(o.text_or("/reclaimPolicy", "Delete")),
        json!(o.text_or("/volumeBindingMode", "Immediate")),
        json!(o.flag("/allowVolumeExpansion", false)),
        o.age(),
    ]
}

fn driver(o: &Cells<'_>) -> Vec<Value> {
    let audiences = match o.at("/spec/tokenRequests") {
        None | Some(Value::Null) => UNSET.to_owned(),
        Some(_) => {
            let requests = o.list("/spec/tokenRequests");
            let audiences: Vec<&str> = requests.map(|request| text(request, "audience")).collect();
            audiences.join(",")
        }
    };
    let modes = o.texts("/spec/volumeLifecycleModes").join(",");
    let modes = if modes.is_empty() { NONE } else { &modes };
    vec![
        o.name(),
        json!(o.flag("/spec/attachRequired", true)),
        json!(o.flag("/spec/podInfoOnMount", false)),
        json!(o.flag("/spec/storageCapacity", false)),
        json!(audiences),
        json!(o.flag("/spec/requiresRepublish", false)),
        json!(modes),
        o.age(),
    ]
}
