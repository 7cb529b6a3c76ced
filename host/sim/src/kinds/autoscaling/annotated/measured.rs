//! What was measured of metrics.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Amount, Identifier, Reference, Selector, given, identifier, number, part};
use crate::kinds::edit::text;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ObjectStatus {
    target: Reference,
    metric_name: String,
    current_value: Amount,
    #[serde(skip_serializing_if = "Option::is_none")]
    selector: Option<Selector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    average_value: Option<Amount>,
}

impl ObjectStatus {
    pub(super) fn of(status: &Value) -> Self {
        let (metric, current) = (Identifier::of(status), part(status, "current"));
        ObjectStatus {
            target: Reference::of(part(status, "describedObject")),
            metric_name: metric.name,
            current_value: Amount::of(current, "value").unwrap_or_default(),
            selector: metric.selector,
            average_value: Amount::of(current, "averageValue"),
        }
    }

    pub(super) fn to_v2(&self) -> Value {
        json!({
            "metric": identifier(&self.metric_name, self.selector.as_ref()),
            "current": given([
                ("value", json!(self.current_value)),
                ("averageValue", json!(self.average_value)),
            ]),
            "describedObject": self.target.to_v2(),
        })
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodsStatus {
    metric_name: String,
    current_average_value: Amount,
    #[serde(skip_serializing_if = "Option::is_none")]
    selector: Option<Selector>,
}

impl PodsStatus {
    pub(super) fn of(status: &Value) -> Self {
        let metric = Identifier::of(status);
        PodsStatus {
            metric_name: metric.name,
            current_average_value: Amount::of(part(status, "current"), "averageValue")
                .unwrap_or_default(),
            selector: metric.selector,
        }
    }

    pub(super) fn to_v2(&self) -> Value {
        json!({
            "metric": identifier(&self.metric_name, self.selector.as_ref()),
            "current": {"averageValue": self.current_average_value},
        })
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ResourceStatus {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_average_utilization: Option<i32>,
    current_average_value: Amount,
}

impl ResourceStatus {
    pub(super) fn of(status: &Value) -> Self {
        let current = part(status, "current");
        ResourceStatus {
            name: text(status, "name").to_owned(),
            current_average_utilization: number(current, "averageUtilization"),
            current_average_value: Amount::of(current, "averageValue").unwrap_or_default(),
        }
    }

    pub(super) fn to_v2(&self) -> Value {
        json!({
            "name": self.name,
            "current": given([
                ("averageValue", json!(self.current_average_value)),
                ("averageUtilization", json!(self.current_average_utilization)),
            ]),
        })
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerStatus {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_average_utilization: Option<i32>,
    current_average_value: Amount,
    container: String,
}

impl ContainerStatus {
    pub(super) fn of(status: &Value) -> Self {
        let ResourceStatus {
            name,
            current_average_utilization,
            current_average_value,
        } = ResourceStatus::of(status);
        ContainerStatus {
            name,
            current_average_utilization,
            current_average_value,
            container: text(status, "container").to_owned(),
        }
    }

    pub(super) fn to_v2(&self) -> Value {
        json!({
            "name": self.name,
            "container": self.container,
            "current": given([
                ("averageValue", json!(self.current_average_value)),
                ("averageUtilization", json!(self.current_average_utilization)),
            ]),
        })
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ExternalStatus {
    metric_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric_selector: Option<Selector>,
    current_value: Amount,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_average_value: Option<Amount>,
}

impl ExternalStatus {
    pub(super) fn of(status: &Value) -> Self {
        let (metric, current) = (Identifier::of(status), part(status, "current"));
        ExternalStatus {
            metric_name: metric.name,
            metric_selector: metric.selector,
            current_value: Amount::of(current, "value").unwrap_or_default(),
            current_average_value: Amount::of(current, "averageValue"),
        }
    }

    pub(super) fn to_v2(&self) -> Value {
        json!({
            "metric": identifier(&self.metric_name, self.metric_selector.as_ref()),
            "current": given([
                ("value", json!(self.current_value)),
                ("averageValue", json!(self.current_average_value)),
            ]),
        })
    }
}
