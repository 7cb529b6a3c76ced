//! Bindings. Roles have no columns of their own.

use serde_json::{Value, json};

use super::column::{Cells, Column, Layout};
use crate::kinds::edit::text;

const GROUP: &str = "rbac.authorization.k8s.io";
const COLUMNS: &[Column] = &[
    Column::NAME,
    Column::text("Role"),
    Column::AGE,
    Column::wide("Users"),
    Column::wide("Groups"),
    Column::wide("ServiceAccounts"),
];

pub(super) const LAYOUTS: &[Layout] = &[
    Layout::of(GROUP, "RoleBinding", COLUMNS, binding),
    Layout::of(GROUP, "ClusterRoleBinding", COLUMNS, binding),
];

fn binding(o: &Cells<'_>) -> Vec<Value> {
    let role = format!("{}/{}", o.text("/roleRef/kind"), o.text("/roleRef/name"));
    let of = |kind: &str| {
        let names: Vec<String> = o
            .list("/subjects")
            .filter(|subject| text(subject, "kind") == kind)
            .map(|subject| match text(subject, "namespace") {
                "" => text(subject, "name").to_owned(),
                namespace => format!("{namespace}/{}", text(subject, "name")),
            })
            .collect();
        json!(names.join(", "))
    };
    vec![
        o.name(),
        json!(role),
        o.age(),
        of("User"),
        of("Group"),
        of("ServiceAccount"),
    ]
}
