//! What `autoscaling/v1` has no fields for, as it is written in annotations: metrics in
//! the words of that version, and behavior in those of the server's own type.
//!
//! Fields stand in the order in which they are written.

mod behavior;
mod measured;
mod sources;

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

pub(super) use self::behavior::Behavior;
use self::measured::{ContainerStatus, ExternalStatus, ObjectStatus, PodsStatus, ResourceStatus};
use self::sources::{ContainerSource, ExternalSource, ObjectSource, PodsSource, ResourceSource};
use crate::field::go_json;
use crate::kinds::edit::{integer, object, text};
use crate::quantity::Quantity;

/// A quantity in its canonical form.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct Amount(String);

impl Default for Amount {
    fn default() -> Self {
        Amount("0".to_owned())
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = match Value::deserialize(deserializer)? {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => return Err(D::Error::custom("no quantity")),
        };
        Quantity::canonical(&given)
            .map(Amount)
            .map_err(D::Error::custom)
    }
}

impl Amount {
    /// The quantity in `field`.
    fn of(value: &Value, field: &str) -> Option<Self> {
        serde_json::from_value(value.get(field)?.clone()).ok()
    }

    fn is_zero(&self) -> bool {
        Quantity::parse(&self.0).is_ok_and(|amount| amount.is_zero())
    }
}

/// A time; none is written as null.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
struct Time(Option<String>);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let time: k8s_openapi::jiff::Timestamp = String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)?;
        Ok(Time(Some(crate::clock::seconds_of(time))))
    }
}

/// Reads what is in an annotation: letters of names may be large or small, null is as
/// good as nothing, and other fields are passed over. None where it cannot be read.
fn read<T: DeserializeOwned>(text: &str, names: &[&str], is_list: bool) -> Option<T> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    if value.is_array() != is_list && !value.is_null() {
        return None;
    }
    rename(&mut value, names);
    serde_json::from_value(value).ok()
}

/// The fields that are lists.
const LISTS: &[&str] = &["matchExpressions", "values", "Policies"];

fn rename(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(fields) => {
            for (name, mut value) in std::mem::take(fields) {
                let known = names.iter().find(|known| known.eq_ignore_ascii_case(&name));
                // A list would be taken for the fields of an object, one after the other.
                // Nothing here is a truth value, which is refused.
                if value.is_array() && known.is_some_and(|known| !LISTS.contains(known)) {
                    value = Value::Bool(true);
                }
                let name = known.map_or(name, |known| (*known).to_owned());
                // Whose keys are no names of fields.
                if name != "matchLabels" {
                    rename(&mut value, names);
                }
                if !value.is_null() {
                    fields.insert(name, value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        _ => {}
    }
}

/// What something has, without what it has not.
fn given<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    Value::Object(fields.collect::<Map<String, Value>>())
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Reference {
    kind: String,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_version: String,
}

impl Reference {
    fn of(value: &Value) -> Self {
        Reference {
            kind: text(value, "kind").to_owned(),
            name: text(value, "name").to_owned(),
            api_version: text(value, "apiVersion").to_owned(),
        }
    }

    fn to_v2(&self) -> Value {
        json!(self)
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Selector {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    match_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    match_expressions: Vec<Expression>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Expression {
    key: String,
    operator: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
}

/// The name of a metric, and which of its series count.
struct Identifier {
    name: String,
    selector: Option<Selector>,
}

impl Identifier {
    /// That of a source, or of what was measured.
    fn of(source: &Value) -> Self {
        let metric = source.get("metric").unwrap_or(&Value::Null);
        Identifier {
            name: text(metric, "name").to_owned(),
            selector: object(metric, "selector")
                .and_then(|selector| serde_json::from_value(selector.clone()).ok()),
        }
    }
}

fn identifier(name: &str, selector: Option<&Selector>) -> Value {
    given([("name", json!(name)), ("selector", json!(selector))])
}

/// A number of 32 bits.
fn number(value: &Value, field: &str) -> Option<i32> {
    integer(value, field).and_then(|number| number.try_into().ok())
}

/// The structs of metrics differ in what their amounts are called, and in nothing else.
macro_rules! metrics {
    ($name:ident, $object:ident, $pods:ident, $resource:ident, $container:ident, $external:ident) => {
        /// A metric, of any of these.
        #[derive(Debug, Default, Serialize, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(super) struct $name {
            #[serde(rename = "type")]
            kind: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            object: Option<$object>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pods: Option<$pods>,
            #[serde(skip_serializing_if = "Option::is_none")]
            resource: Option<$resource>,
            #[serde(skip_serializing_if = "Option::is_none")]
            container_resource: Option<$container>,
            #[serde(skip_serializing_if = "Option::is_none")]
            external: Option<$external>,
        }

        impl $name {
            /// What a metric of v2 is in v1.
            pub(super) fn of(metric: &Value) -> Self {
                $name {
                    kind: text(metric, "type").to_owned(),
                    object: object(metric, "object").map($object::of),
                    pods: object(metric, "pods").map($pods::of),
                    resource: object(metric, "resource").map($resource::of),
                    container_resource: object(metric, "containerResource").map($container::of),
                    external: object(metric, "external").map($external::of),
                }
            }

            /// The same in v2.
            pub(super) fn to_v2(&self) -> Value {
                given([
                    ("type", json!(self.kind)),
                    ("object", json!(self.object.as_ref().map($object::to_v2))),
                    ("pods", json!(self.pods.as_ref().map($pods::to_v2))),
                    (
                        "resource",
                        json!(self.resource.as_ref().map($resource::to_v2)),
                    ),
                    (
                        "containerResource",
                        json!(self.container_resource.as_ref().map($container::to_v2)),
                    ),
                    (
                        "external",
                        json!(self.external.as_ref().map($external::to_v2)),
                    ),
                ])
            }
        }
    };
}

metrics!(
    Metric,
    ObjectSource,
    PodsSource,
    ResourceSource,
    ContainerSource,
    ExternalSource
);
metrics!(
    Measured,
    ObjectStatus,
    PodsStatus,
    ResourceStatus,
    ContainerStatus,
    ExternalStatus
);

/// The names of all fields of metrics and conditions.
const NAMES: &[&str] = &[
    "apiVersion",
    "averageValue",
    "container",
    "containerResource",
    "currentAverageUtilization",
    "currentAverageValue",
    "currentValue",
    "external",
    "key",
    "kind",
    "lastTransitionTime",
    "matchExpressions",
    "matchLabels",
    "message",
    "metricName",
    "metricSelector",
    "name",
    "object",
    "operator",
    "pods",
    "reason",
    "resource",
    "selector",
    "status",
    "target",
    "targetAverageUtilization",
    "targetAverageValue",
    "targetValue",
    "type",
    "values",
];

impl Metric {
    /// The metrics of an annotation, in v2.
    pub(super) fn read(text: &str) -> Option<Vec<Value>> {
        let metrics: Option<Vec<Metric>> = read(text, NAMES, true)?;
        Some(metrics.iter().flatten().map(Metric::to_v2).collect())
    }
}

impl Measured {
    /// What was measured, from an annotation, in v2.
    pub(super) fn read(text: &str) -> Option<Vec<Value>> {
        let metrics: Option<Vec<Measured>> = read(text, NAMES, true)?;
        Some(metrics.iter().flatten().map(Measured::to_v2).collect())
    }
}

/// What a source aims at, or what was measured.
fn part<'a>(source: &'a Value, name: &str) -> &'a Value {
    source.get(name).unwrap_or(&Value::Null)
}

/// A condition, which is the same in both versions.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    last_transition_time: Time,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

impl Condition {
    /// The conditions of an annotation.
    pub(super) fn read(text: &str) -> Option<Vec<Value>> {
        let conditions: Option<Vec<Condition>> = read(text, NAMES, true)?;
        Some(conditions.iter().flatten().map(|c| json!(c)).collect())
    }

    /// One of v2.
    pub(super) fn of(condition: &Value) -> Self {
        let word = |field: &str| text(condition, field).to_owned();
        let time = text(condition, "lastTransitionTime");
        Condition {
            kind: word("type"),
            status: word("status"),
            last_transition_time: Time((!time.is_empty()).then(|| time.to_owned())),
            reason: word("reason"),
            message: word("message"),
        }
    }
}

/// What is written into an annotation.
pub(super) fn write(value: &impl Serialize) -> Value {
    go_json(value).into()
}
