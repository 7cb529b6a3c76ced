//! What metrics are taken from, and aim at.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Amount, Identifier, Reference, Selector, given, identifier, number, part};
use crate::kinds::edit::text;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ObjectSource {
    target: Reference,
    metric_name: String,
    target_value: Amount,
    #[serde(skip_serializing_if = "Option::is_none")]
    selector: Option<Selector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    average_value: Option<Amount>,
}

impl ObjectSource {
    pub(super) fn of(source: &Value) -> Self {
        let (metric, target) = (Identifier::of(source), part(source, "target"));
        ObjectSource {
            target: Reference::of(part(source, "describedObject")),
            metric_name: metric.name,
            target_value: Amount::of(target, "value").unwrap_or_default(),
            selector: metric.selector,
            average_value: Amount::of(target, "averageValue"),
        }
    }

    pub(super) fn to_v2(&self) -> Value {
        // v1 cannot leave the value out: of one that is not meant it says zero.
        let (kind, value) = match &self.average_value {
            None => ("Value", Some(&self.target_value)),
            Some(_) => (
                "AverageValue",
                Some(&self.target_value).filter(|value| !value.is_zero()),
            ),
        };
        json!({
            "describedObject": self.target.to_v2(),
            "target": given([
                ("type", json!(kind)),
                ("value", json!(value)),
                ("averageValue", json!(self.average_value)),
            ]),
            "metric": identifier(&self.metric_name, self.selector.as_ref()),
        })
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodsSource {
    metric_name: String,
    target_average_value: Amount,
    #[serde(skip_serializing_if = "Option::is_none")]
    selector: Option<Selector>,
}

impl PodsSource {
    pub(super) fn of(source: &Value) -> Self {
        let metric = Identifier::of(source);
        PodsSource {
            metric_name: metric.name,
            target_average_value: Amount::of(part(source, "target"), "averageValue")
                .unwrap_or_default(),
            selector: metric.selector,
        }
    }

    pub(super) fn to_v2(&self) -> Value {
        json!({
            "metric": identifier(&self.metric_name, self.selector.as_ref()),
            "target": {"type": "AverageValue", "averageValue": self.target_average_value},
        })
    }
}

/// What a share of a resource, or an amount of it, is in v2.
fn resource_target(share: Option<i32>, amount: Option<&Amount>) -> Value {
    let kind = if share.is_some() {
        "Utilization"
    } else {
        "AverageValue"
    };
    given([
        ("type", json!(kind)),
        ("averageValue", json!(amount)),
        ("averageUtilization", json!(share)),
    ])
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ResourceSource {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_average_utilization: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_average_value: Option<Amount>,
}

impl ResourceSource {
    pub(super) fn of(source: &Value) -> Self {
        let target = part(source, "target");
        ResourceSource {
            name: text(source, "name").to_owned(),
            target_average_utilization: number(target, "averageUtilization"),
            target_average_value: Amount::of(target, "averageValue"),
        }
    }

    pub(super) fn to_v2(&self) -> Value {
        let (share, amount) = (self.target_average_utilization, &self.target_average_value);
        json!({"name": self.name, "target": resource_target(share, amount.as_ref())})
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerSource {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_average_utilization: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_average_value: Option<Amount>,
    container: String,
}

impl ContainerSource {
    pub(super) fn of(source: &Value) -> Self {
        let target = part(source, "target");
        ContainerSource {
            name: text(source, "name").to_owned(),
            target_average_utilization: number(target, "averageUtilization"),
            target_average_value: Amount::of(target, "averageValue"),
            container: text(source, "container").to_owned(),
        }
    }

    pub(super) fn to_v2(&self) -> Value {
        let (share, amount) = (self.target_average_utilization, &self.target_average_value);
        json!({
            "name": self.name,
            "container": self.container,
            "target": resource_target(share, amount.as_ref()),
        })
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ExternalSource {
    metric_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric_selector: Option<Selector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_value: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_average_value: Option<Amount>,
}

impl ExternalSource {
    pub(super) fn of(source: &Value) -> Self {
        let (metric, target) = (Identifier::of(source), part(source, "target"));
        ExternalSource {
            metric_name: metric.name,
            metric_selector: metric.selector,
            target_value: Amount::of(target, "value"),
            target_average_value: Amount::of(target, "averageValue"),
        }
    }

    pub(super) fn to_v2(&self) -> Value {
        let kind = if self.target_value.is_none() {
            "AverageValue"
        } else {
            "Value"
        };
        json!({
            "metric": identifier(&self.metric_name, self.metric_selector.as_ref()),
            "target": given([
                ("type", json!(kind)),
                ("value", json!(self.target_value)),
                ("averageValue", json!(self.target_average_value)),
            ]),
        })
    }
}
