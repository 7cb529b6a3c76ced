//! The form of a scenario file.

use crate::outside::{Effects, Sources};
use crate::reference::Reference;
use crate::time::{Span, Wait};
use serde::Deserialize;
use serde_json::Value;

/// One scenario: one YAML document.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// What it shows, in a sentence.
    pub(crate) name: String,
    /// The cluster before the first step.
    #[serde(default)]
    pub(crate) given: Given,
    /// What is expected once the agent has settled on what is given.
    #[serde(default)]
    pub(crate) expect: Expect,
    /// What happens then.
    #[serde(default)]
    pub(crate) steps: Vec<Step>,
}

/// The cluster before the first step.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    /// The plugin's configuration.
    pub(crate) config: Option<Value>,
    /// Files with objects, such as CRDs, relative to the scenario's own file.
    #[serde(default)]
    pub(crate) files: Vec<String>,
    /// Objects.
    #[serde(default)]
    pub(crate) objects: Vec<Object>,
    /// A component instead of the plugin's own, relative to the scenario's file.
    pub(crate) component: Option<String>,
    /// What the cluster does by itself.
    #[serde(default)]
    pub(crate) cluster: Cluster,
    /// Outside documents.
    #[serde(default)]
    pub(crate) sources: Sources,
    /// What comes of outside effects.
    #[serde(default)]
    pub(crate) actions: Effects,
}

/// What the cluster does by itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cluster {
    /// Who makes workloads run.
    #[serde(default)]
    pub(crate) actors: Cast,
}

/// Who makes workloads run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Cast(Option<Actors>);

impl Cast {
    /// The actors; nobody unless they are asked for.
    pub(crate) fn actors(&self) -> Option<reeve_sim::Actors> {
        let wanted = self.0.as_ref()?;
        let usual = reeve_sim::Actors::default();
        let span = |given: Option<Wait>, usual| given.map_or(usual, |wait| wait.0);
        Some(reeve_sim::Actors {
            nodes: wanted.nodes.unwrap_or(usual.nodes),
            ready_after: span(wanted.ready_after, usual.ready_after),
            complete_after: span(wanted.complete_after, usual.complete_after),
            kinds: wanted.kinds.iter().map(|kind| kind.0.clone()).collect(),
        })
    }
}

/// A value that describes no actors.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`actors` is true, false, or a map of `nodes`, `readyAfter`, `completeAfter` and `kinds`: {0}"
)]
pub(crate) struct NoActors(String);

impl TryFrom<Value> for Cast {
    type Error = NoActors;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::Bool(wanted) => Ok(Self(wanted.then(Actors::default))),
            other => serde_json::from_value(other)
                .map(|actors| Self(Some(actors)))
                .map_err(|error| NoActors(error.to_string())),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Actors {
    nodes: Option<usize>,
    ready_after: Option<Wait>,
    complete_after: Option<Wait>,
    #[serde(default)]
    kinds: Vec<KindName>,
}

/// The name of a custom kind, as `Kind.group`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
struct KindName(reeve_sim::CustomKind);

impl TryFrom<String> for KindName {
    type Error = reeve_sim::NotAKind;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

/// One step: one action, and what is expected once the agent has settled.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawStep")]
pub(crate) struct Step {
    /// What it is for.
    pub(crate) name: Option<String>,
    /// What happens.
    pub(crate) action: Action,
    /// What is expected then.
    pub(crate) expect: Expect,
}

/// What happens in a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Objects are applied server-side, as somebody else than the agent.
    Apply(Vec<Object>),
    /// Objects are created.
    Create(Vec<Object>),
    /// An object is edited by hand.
    Edit(Edit),
    /// Labels of an object are set or, with null, removed.
    Label(Label),
    /// An object is deleted.
    Delete(Reference),
    /// Time passes.
    Advance(Span),
    /// The plugin gets another configuration.
    Config(Value),
    /// The plugin gets another component, from a file relative to the scenario's.
    Component(String),
    /// The agent ends and another starts.
    Restart,
    /// The API server fails, or recovers.
    Outage(Outage),
    /// Some of what the API server does goes wrong, or nothing any more.
    Faults(Vec<Fault>),
    /// Outside documents are others.
    Sources(Sources),
    /// Something else comes of outside effects.
    Actions(Effects),
}

/// Something that goes wrong: a text or a map.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Fault(pub(crate) reeve_sim::Fault);

impl TryFrom<Value> for Fault {
    type Error = reeve_sim::FaultError;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        reeve_sim::Fault::from_value(&value).map(Self)
    }
}

/// A hand edit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// The object.
    pub(crate) object: Reference,
    /// A JSON merge patch.
    pub(crate) patch: Value,
}

/// A change of labels.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Label {
    /// The object.
    pub(crate) object: Reference,
    /// Labels to set, or to remove with null.
    pub(crate) labels: std::collections::BTreeMap<String, Option<String>>,
}

/// How the API server fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outage {
    /// It does not.
    None,
    /// It answers 503.
    Unavailable,
    /// Nobody listens.
    Refused,
}

/// What can be restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Restart {
    Agent,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    name: Option<String>,
    apply: Option<Vec<Object>>,
    create: Option<Vec<Object>>,
    edit: Option<Edit>,
    label: Option<Label>,
    delete: Option<Reference>,
    advance: Option<Span>,
    config: Option<Value>,
    component: Option<String>,
    restart: Option<Restart>,
    outage: Option<Outage>,
    faults: Option<Vec<Fault>>,
    sources: Option<Sources>,
    actions: Option<Effects>,
    #[serde(default)]
    expect: Expect,
}

/// A step with no action, or with several.
#[derive(Debug, thiserror::Error)]
#[error(
    "a step has exactly one of `apply`, `create`, `edit`, `label`, `delete`, `advance`, \
     `config`, `component`, `restart`, `outage`, `faults`, `sources`, `actions`; this one has \
     {found}"
)]
struct NotOneAction {
    found: usize,
}

impl TryFrom<RawStep> for Step {
    type Error = NotOneAction;

    fn try_from(raw: RawStep) -> Result<Self, Self::Error> {
        let actions = [
            raw.apply.map(Action::Apply),
            raw.create.map(Action::Create),
            raw.edit.map(Action::Edit),
            raw.label.map(Action::Label),
            raw.delete.map(Action::Delete),
            raw.advance.map(Action::Advance),
            raw.config.map(Action::Config),
            raw.component.map(Action::Component),
            raw.restart.map(|Restart::Agent| Action::Restart),
            raw.outage.map(Action::Outage),
            raw.faults.map(Action::Faults),
            raw.sources.map(Action::Sources),
            raw.actions.map(Action::Actions),
        ];
        let mut actions = actions.into_iter().flatten();
        let Some(action) = actions.next() else {
            return Err(NotOneAction { found: 0 });
        };
        match actions.count() {
            0 => Ok(Self {
                name: raw.name,
                action,
                expect: raw.expect,
            }),
            more => Err(NotOneAction { found: more + 1 }),
        }
    }
}

/// What is expected of the cluster, and of the agent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// Objects that exist, with at least these fields.
    #[serde(default)]
    pub(crate) objects: Vec<Object>,
    /// Objects that exist, with these fields and no others.
    #[serde(default)]
    pub(crate) exact: Vec<Object>,
    /// Objects that do not exist.
    #[serde(default)]
    pub(crate) absent: Vec<Reference>,
    /// Conditions of the plugin and of its units.
    #[serde(default)]
    pub(crate) conditions: Vec<ExpectedCondition>,
    /// Events.
    #[serde(default)]
    pub(crate) events: Vec<ExpectedEvent>,
    /// Writes that the agent has sent since the step began, its journal included.
    pub(crate) writes: Option<u64>,
}

impl Expect {
    /// Whether nothing is expected.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a condition of the Plugin is.
    pub(crate) fn is_about_plugin(&self) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|one| one.of == Subject::Plugin && !one.absent)
    }
}

/// A condition that is expected, or expected not to be there.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedCondition {
    /// Whose condition.
    pub(crate) of: Subject,
    /// Its type.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Its status.
    pub(crate) status: Option<String>,
    /// Its reason.
    pub(crate) reason: Option<String>,
    /// Some of its message.
    pub(crate) message: Option<String>,
    /// Whether it is expected not to be there. A unit without trouble has no
    /// conditions.
    #[serde(default)]
    pub(crate) absent: bool,
}

/// Whose conditions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Subject {
    /// Those of the `Plugin` object.
    Plugin,
    /// Those of the `Unit` object of a primary.
    Unit(Reference),
}

impl TryFrom<String> for Subject {
    type Error = crate::reference::NotAReference;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "Plugin" => Ok(Self::Plugin),
            _ => Reference::try_from(text).map(Self::Unit),
        }
    }
}

/// Events that are expected. Those that have all of what is given are counted.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedEvent {
    /// The object they are about.
    pub(crate) of: Reference,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<EventType>,
    /// Their reason.
    pub(crate) reason: Option<String>,
    /// Some of their message.
    pub(crate) message: Option<String>,
    /// How many; at least one when absent.
    pub(crate) count: Option<u64>,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum EventType {
    /// Something happened that was to happen.
    Normal,
    /// Somebody should look.
    Warning,
}

impl EventType {
    /// The text in the API.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// An object with what it takes to find it: `apiVersion`, `kind`, `metadata.name`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Object(Value);

/// A value that is no object.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an object needs `{0}`")]
pub(crate) struct NotAnObject(&'static str);

impl TryFrom<Value> for Object {
    type Error = NotAnObject;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        for (pointer, field) in [
            ("/apiVersion", "apiVersion"),
            ("/kind", "kind"),
            ("/metadata/name", "metadata.name"),
        ] {
            let text = value.pointer(pointer).and_then(Value::as_str);
            if text.is_none_or(str::is_empty) {
                return Err(NotAnObject(field));
            }
        }
        Ok(Self(value))
    }
}

impl Object {
    /// The whole.
    pub(crate) fn value(&self) -> &Value {
        &self.0
    }

    /// `apiVersion`.
    pub(crate) fn api_version(&self) -> &str {
        self.text("/apiVersion").unwrap_or_default()
    }

    /// `kind`.
    pub(crate) fn kind(&self) -> &str {
        self.text("/kind").unwrap_or_default()
    }

    /// Whether it defines a kind.
    pub(crate) fn is_definition(&self) -> bool {
        self.kind() == "CustomResourceDefinition"
    }

    /// `metadata.name`.
    pub(crate) fn name(&self) -> &str {
        self.text("/metadata/name").unwrap_or_default()
    }

    /// `metadata.namespace`.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.text("/metadata/namespace")
    }

    /// Names this object.
    pub(crate) fn reference(&self) -> Reference {
        let (group, version) = match self.api_version().rsplit_once('/') {
            Some((group, version)) => (group, version),
            None => ("", self.api_version()),
        };
        Reference {
            kind: self.kind().to_owned(),
            version: Some((version.to_owned(), group.to_owned())),
            namespace: self.namespace().map(str::to_owned),
            name: self.name().to_owned(),
        }
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.0.pointer(pointer).and_then(Value::as_str)
    }
}
