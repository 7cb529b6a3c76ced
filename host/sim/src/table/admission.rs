//! What is asked about requests: webhooks and policies.

use serde_json::{Value, json};

use super::column::{Cells, Column, Layout, UNSET};

const GROUP: &str = "admissionregistration.k8s.io";

const WEBHOOKS: &[Column] = &[Column::NAME, Column::number("Webhooks"), Column::AGE];
const BINDING: &[Column] = &[
    Column::NAME,
    Column::text("PolicyName"),
    Column::text("ParamRef"),
    Column::AGE,
];

pub(super) const LAYOUTS: &[Layout] = &[
    Layout::of(GROUP, "MutatingWebhookConfiguration", WEBHOOKS, webhooks),
    Layout::of(GROUP, "ValidatingWebhookConfiguration", WEBHOOKS, webhooks),
    Layout::of(
        GROUP,
        "ValidatingAdmissionPolicy",
        &[
            Column::NAME,
            Column::number("Validations"),
            Column::text("ParamKind"),
            Column::AGE,
        ],
        |o| policy(o, "/spec/validations"),
    ),
    Layout::of(GROUP, "ValidatingAdmissionPolicyBinding", BINDING, binding),
    Layout::of(
        GROUP,
        "MutatingAdmissionPolicy",
        &[
            Column::NAME,
            Column::number("Mutations"),
            Column::text("ParamKind"),
            Column::AGE,
        ],
        |o| policy(o, "/spec/mutations"),
    ),
    Layout::of(GROUP, "MutatingAdmissionPolicyBinding", BINDING, binding),
];

fn webhooks(o: &Cells<'_>) -> Vec<Value> {
    vec![o.name(), json!(o.len("/webhooks")), o.age()]
}

fn policy(o: &Cells<'_>, rules: &str) -> Vec<Value> {
    let parameters = match o.at("/spec/paramKind") {
        None | Some(Value::Null) => UNSET.to_owned(),
        Some(_) => format!(
            "{}/{}",
            o.text("/spec/paramKind/apiVersion"),
            o.text("/spec/paramKind/kind")
        ),
    };
    vec![o.name(), json!(o.len(rules)), json!(parameters), o.age()]
}

fn binding(o: &Cells<'_>) -> Vec<Value> {
    let name = o.text("/spec/paramRef/name");
    let parameters = if name.is_empty() {
        UNSET.to_owned()
    } else {
        // Parameters of the cluster cannot be told from those of any namespace.
        let namespace = o.text_or("/spec/paramRef/namespace", "*");
        format!("{namespace}/{name}")
    };
    vec![
        o.name(),
        json!(o.text("/spec/policyName")),
        json!(parameters),
        o.age(),
    ]
}
