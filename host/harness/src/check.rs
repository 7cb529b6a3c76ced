//! Holds what is expected against what is there.

use crate::difference::difference;
use crate::matching::{Extent, normal};
use crate::reference::Reference;
use crate::scenario::{EventType, Expect, ExpectedCondition, ExpectedEvent, Object, Subject};
use crate::source::{Node, Part};
use crate::tester::{ActionError, Tester};
use crate::update::{Replacement, replacements};
use crate::world::NAMESPACE;
use serde_json::{Map, Value, json};

/// One expectation that was not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// Its line in the file; none when it is not known.
    pub(crate) line: Option<usize>,
    /// What is wrong, on one line.
    pub(crate) message: String,
    /// Details on more lines; empty when the message says it all.
    pub(crate) difference: String,
    /// What to replace in the file so that it is met; none when an update cannot
    /// help.
    pub(crate) repair: Option<Vec<Replacement>>,
}

/// What expectations are held against.
pub(crate) struct Checker<'a> {
    /// The way to the cluster.
    pub(crate) tester: &'a Tester,
    /// Name of the plugin.
    pub(crate) plugin: &'a str,
    /// Writes of the agent since the step began.
    pub(crate) writes: u64,
}

/// An expectation's place in the file.
#[derive(Clone, Copy)]
struct Place<'a> {
    node: Option<&'a Node>,
}

impl<'a> Place<'a> {
    fn at(self, path: &[Part<'_>]) -> Self {
        Self {
            node: self.node.and_then(|node| node.at(path)),
        }
    }

    fn mismatch(self, message: impl Into<String>) -> Mismatch {
        Mismatch {
            line: self.node.map(|node| node.line),
            message: message.into(),
            difference: String::new(),
            repair: None,
        }
    }
}

impl Checker<'_> {
    /// Checks everything, in the order of the form. `node` is the `expect` in the
    /// file.
    pub(crate) async fn check(&self, expect: &Expect, node: Option<&Node>) -> Vec<Mismatch> {
        let place = Place { node };
        let mut found = Vec::new();
        for (list, objects, extent) in [
            ("objects", &expect.objects, Extent::Part),
            ("exact", &expect.exact, Extent::Whole),
        ] {
            for (index, object) in objects.iter().enumerate() {
                let place = place.at(&[Part::Key(list), Part::Item(index)]);
                found.extend(self.object(object, extent, place).await);
            }
        }
        for (index, reference) in expect.absent.iter().enumerate() {
            let place = place.at(&[Part::Key("absent"), Part::Item(index)]);
            found.extend(self.absent(reference, place).await);
        }
        // Of each once: nothing changes meanwhile.
        let mut read: Vec<(&Subject, Result<Vec<Value>, ActionError>)> = Vec::new();
        for (index, condition) in expect.conditions.iter().enumerate() {
            let place = place.at(&[Part::Key("conditions"), Part::Item(index)]);
            if read.iter().all(|(of, _)| **of != condition.of) {
                read.push((&condition.of, self.conditions(&condition.of).await));
            }
            let of = read.iter().find(|(of, _)| **of == condition.of);
            found.extend(match of.map(|(_, conditions)| conditions) {
                Some(Ok(conditions)) => self.condition(condition, conditions, place),
                Some(Err(error)) => Some(place.mismatch(error.to_string())),
                None => None,
            });
        }
        for (index, event) in expect.events.iter().enumerate() {
            let place = place.at(&[Part::Key("events"), Part::Item(index)]);
            found.extend(self.event(event, place).await);
        }
        if let Some(writes) = expect.writes.filter(|writes| *writes != self.writes) {
            let place = place.at(&[Part::Key("writes")]);
            let message = format!(
                "expected the agent to send {writes} writes; it sent {}",
                self.writes
            );
            found.push(Mismatch {
                repair: place
                    .node
                    .map(|node| vec![Replacement::of(node, &json!(self.writes))]),
                ..place.mismatch(message)
            });
        }
        found
    }

    async fn object(
        &self,
        expected: &Object,
        extent: Extent,
        place: Place<'_>,
    ) -> Option<Mismatch> {
        let reference = expected.reference();
        let actual = match self.tester.get(&reference).await {
            Ok(Some(actual)) => actual,
            Ok(None) => return Some(self.missing(&reference, place).await),
            Err(error) => return Some(place.mismatch(error.to_string())),
        };
        let wanted = normal(expected.value());
        let relevant = extent.relevant(expected.value(), &actual);
        if relevant == wanted {
            return None;
        }
        let whole = extent == Extent::Whole;
        Some(Mismatch {
            difference: difference(&wanted, &relevant),
            repair: place
                .node
                .and_then(|node| replacements(node, expected.value(), &relevant, whole)),
            ..place.mismatch(format!("{} is not as expected", short(&reference)))
        })
    }

    /// The object is not there; its neighbours may tell why.
    async fn missing(&self, reference: &Reference, place: Place<'_>) -> Mismatch {
        let mut message = format!("{} does not exist", short(reference));
        if let Ok(kind) = self.tester.kinds.find(reference)
            && let Ok(others) = self.tester.list(kind, reference.namespace.as_deref()).await
        {
            let names: Vec<&str> = others
                .iter()
                .filter_map(|object| object.pointer("/metadata/name")?.as_str())
                .collect();
            match names.as_slice() {
                [] => message.push_str(", and no other of its kind does there"),
                names => message.push_str(&format!("; those that do: {}", names.join(", "))),
            }
        }
        place.mismatch(message)
    }

    async fn absent(&self, reference: &Reference, place: Place<'_>) -> Option<Mismatch> {
        // In the default namespace hardly anything is, so this would hold whatever
        // the plugin does.
        let kind = self.tester.kinds.find(reference);
        if reference.namespace.is_none() && kind.is_ok_and(|kind| kind.namespaced) {
            return Some(place.mismatch(format!(
                "{reference} is in a namespace: write `{} NAMESPACE/{}`",
                reference.kind, reference.name
            )));
        }
        match self.tester.get(reference).await {
            Ok(None) => None,
            Ok(Some(_)) => Some(place.mismatch(format!("{reference} exists, and should not"))),
            Err(error) => Some(place.mismatch(error.to_string())),
        }
    }

    fn condition(
        &self,
        expected: &ExpectedCondition,
        conditions: &[Value],
        place: Place<'_>,
    ) -> Option<Mismatch> {
        let of = match &expected.of {
            Subject::Plugin => format!("Plugin {}", self.plugin),
            Subject::Unit(primary) => format!("the unit of {primary}"),
        };
        let kind = &expected.kind;
        let found = conditions.iter().find(|c| c["type"] == kind.as_str());
        match (found, expected.absent) {
            (None, true) => None,
            (Some(found), true) => {
                let found = describe_condition(found);
                Some(place.mismatch(format!(
                    "{of} has a condition {kind}, and should not: {found}"
                )))
            }
            (None, false) => {
                let others: Vec<&str> = conditions
                    .iter()
                    .filter_map(|c| c["type"].as_str())
                    .collect();
                let others = match others.as_slice() {
                    [] => "it has none".to_owned(),
                    others => format!("it has {}", others.join(", ")),
                };
                Some(place.mismatch(format!("{of} has no condition {kind}; {others}")))
            }
            (Some(found), false) => {
                let wanted = [
                    ("status", &expected.status),
                    ("reason", &expected.reason),
                    ("message", &expected.message),
                ];
                fields_mismatch(
                    &wanted,
                    found,
                    place,
                    format!("condition {kind} of {of} is not as expected"),
                )
            }
        }
    }

    /// The conditions of the plugin or of a unit; none where there is no such
    /// object.
    async fn conditions(&self, of: &Subject) -> Result<Vec<Value>, ActionError> {
        let object = match of {
            Subject::Plugin => self.tester.get(&own("Plugin", self.plugin)).await?,
            Subject::Unit(primary) => {
                let kind = self.tester.kinds.find(&own("Unit", ""))?;
                let units = self.tester.list(kind, Some(NAMESPACE)).await?;
                units.into_iter().find(|unit| {
                    let spec = &unit["spec"];
                    spec["plugin"] == self.plugin && is_of(&spec["primary"], primary)
                })
            }
        };
        let conditions =
            object.and_then(|mut object| object.pointer_mut("/status/conditions").map(Value::take));
        Ok(match conditions {
            Some(Value::Array(conditions)) => conditions,
            _ => Vec::new(),
        })
    }

    /// All conditions there are, a line each, for people.
    pub(crate) async fn all_conditions(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let plugin = self.conditions(&Subject::Plugin).await.unwrap_or_default();
        for condition in &plugin {
            lines.push(format!(
                "Plugin {}: {}",
                self.plugin,
                describe_condition(condition)
            ));
        }
        let Ok(kind) = self.tester.kinds.find(&own("Unit", "")) else {
            return lines;
        };
        let units = self
            .tester
            .list(kind, Some(NAMESPACE))
            .await
            .unwrap_or_default();
        for unit in &units {
            let primary = &unit["spec"]["primary"];
            let text = |field: &str| primary[field].as_str().unwrap_or_default();
            let name = match primary["namespace"].as_str() {
                Some(namespace) => format!("{namespace}/{}", text("name")),
                None => text("name").to_owned(),
            };
            for condition in unit["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let plugin = unit["spec"]["plugin"].as_str().unwrap_or_default();
                lines.push(format!(
                    "{plugin} for {} {name}: {}",
                    text("kind"),
                    describe_condition(condition)
                ));
            }
        }
        lines
    }

    async fn event(&self, expected: &ExpectedEvent, place: Place<'_>) -> Option<Mismatch> {
        let events = Reference {
            version: Some(("v1".to_owned(), String::new())),
            ..own("Event", "")
        };
        let listed = match self.tester.kinds.find(&events) {
            // Those on cluster-scoped objects are in the namespace `default`.
            Ok(kind) => {
                self.tester
                    .list(kind, expected.of.namespace.as_deref())
                    .await
            }
            Err(error) => Err(error.into()),
        };
        let about: Vec<Value> = match listed {
            Ok(events) => events
                .into_iter()
                .filter(|event| is_of(&event["involvedObject"], &expected.of))
                .collect(),
            Err(error) => return Some(place.mismatch(error.to_string())),
        };
        let count: u64 = about
            .iter()
            .filter(|event| fits(expected, event))
            .map(|event| event["count"].as_u64().unwrap_or(1).max(1))
            .sum();
        if expected.count.map_or(count > 0, |wanted| wanted == count) {
            return None;
        }
        let wanted = match expected.count {
            Some(wanted) => wanted.to_string(),
            None => "at least 1".to_owned(),
        };
        let what = [
            expected.kind.map(EventType::as_str),
            expected.reason.as_deref(),
        ];
        let what: String = what
            .into_iter()
            .flatten()
            .map(|word| format!(" {word}"))
            .collect();
        let all: Vec<String> = about
            .iter()
            .map(|event| format!("  {}\n", describe_event(event)))
            .collect();
        let counted = place.at(&[Part::Key("count")]);
        Some(Mismatch {
            difference: match all.as_slice() {
                [] => "There are no events on it.\n".to_owned(),
                all => format!("The events on it:\n{}", all.concat()),
            },
            repair: counted
                .node
                .map(|node| vec![Replacement::of(node, &json!(count))]),
            ..place.mismatch(format!(
                "expected {wanted} events{what} on {}; there are {count}",
                expected.of
            ))
        })
    }
}

/// Compares the fields that are expected; of a message, a part is enough.
fn fields_mismatch(
    wanted: &[(&str, &Option<String>)],
    found: &Value,
    place: Place<'_>,
    message: String,
) -> Option<Mismatch> {
    let (mut expected, mut actual) = (Map::new(), Map::new());
    let mut repair = Some(Vec::new());
    for (field, wanted) in wanted {
        let Some(wanted) = wanted else { continue };
        let found = found[*field].as_str().unwrap_or_default();
        let same = match *field {
            "message" => found.contains(wanted.as_str()),
            _ => found == wanted,
        };
        expected.insert((*field).to_owned(), json!(wanted));
        actual.insert(
            (*field).to_owned(),
            json!(if same { wanted } else { found }),
        );
        if !same {
            let node = place.at(&[Part::Key(field)]).node;
            repair = repair.zip(node).map(|(mut all, node)| {
                all.push(Replacement::of(node, &json!(found)));
                all
            });
        }
    }
    let (expected, actual) = (Value::Object(expected), Value::Object(actual));
    (expected != actual).then(|| Mismatch {
        difference: difference(&expected, &actual),
        repair,
        ..place.mismatch(message)
    })
}

/// An object of ours in the agent's namespace.
fn own(kind: &str, name: &str) -> Reference {
    Reference {
        kind: kind.to_owned(),
        version: None,
        namespace: Some(NAMESPACE.to_owned()),
        name: name.to_owned(),
    }
}

/// Whether an object reference of the API is about an object.
fn is_of(value: &Value, reference: &Reference) -> bool {
    let version = reference.version.as_ref().map(|(version, group)| {
        if group.is_empty() {
            version.clone()
        } else {
            format!("{group}/{version}")
        }
    });
    value["kind"] == reference.kind.as_str()
        && value["name"] == reference.name.as_str()
        && value["namespace"].as_str() == reference.namespace.as_deref()
        && version.is_none_or(|version| value["apiVersion"] == version.as_str())
}

fn fits(expected: &ExpectedEvent, event: &Value) -> bool {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    expected
        .kind
        .is_none_or(|kind| text("type") == kind.as_str())
        && expected
            .reason
            .as_ref()
            .is_none_or(|reason| text("reason") == reason)
        && expected
            .message
            .as_ref()
            .is_none_or(|message| text("message").contains(message.as_str()))
}

fn describe_condition(condition: &Value) -> String {
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    format!(
        "{}={} {}: {}",
        text("type"),
        text("status"),
        text("reason"),
        text("message")
    )
}

fn describe_event(event: &Value) -> String {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    format!("{} {}: {}", text("type"), text("reason"), text("message"))
}

/// The reference without its version, which the file says anyhow.
fn short(reference: &Reference) -> Reference {
    Reference {
        version: None,
        ..reference.clone()
    }
}
