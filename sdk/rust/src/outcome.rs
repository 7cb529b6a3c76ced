//! The whole desired state for one primary.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ObjectReference;
use crate::action::Action;

/// The whole desired state for one primary.
///
/// It names every object that should exist for this primary, and nothing else:
/// an object that was returned before and is missing now is deleted. Objects are
/// anything that `serde` can write: values of `serde_json::json!`, structs of the
/// plugin, types of `k8s-openapi`. Each has `apiVersion`, `kind` and
/// `metadata.name`, and holds just the fields that the plugin wants to decide
/// (server-side apply). The host adds ownerReferences and labels of its own.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// let outcome = Outcome::of([json!({
///     "apiVersion": "v1",
///     "kind": "ConfigMap",
///     "metadata": {"name": "greeting", "namespace": "alice"},
///     "data": {"text": "hello"},
/// })])
/// .event(Event::normal("Greeted", "said hello"));
/// assert_eq!(outcome.objects_json()[0]["data"]["text"], "hello");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Outcome {
    pub(crate) objects: Vec<Vec<u8>>,
    /// Why an object could not be written as JSON; fails the whole call.
    pub(crate) unwritable: Option<String>,
    pub(crate) absent: Vec<Absence>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) events: Vec<Event>,
    pub(crate) status: Option<Vec<u8>>,
    pub(crate) actions: Vec<Action>,
    pub(crate) next: Option<Duration>,
    pub(crate) empty_is_meant: bool,
}

impl Outcome {
    /// An outcome to be filled. When it stays without objects, see
    /// [`Outcome::empty_is_meant`].
    pub fn new() -> Self {
        Self::default()
    }

    /// These objects should exist. For objects of different types, continue with
    /// [`Outcome::object`].
    pub fn of(objects: impl IntoIterator<Item = impl Serialize>) -> Self {
        Self::new().objects(objects)
    }

    /// Nothing should exist for this primary, and that is meant.
    pub fn nothing() -> Self {
        Self::new().empty_is_meant()
    }

    /// This object should exist, too.
    ///
    /// An object that serde cannot write, such as one with a map whose keys are
    /// no strings, fails the call as terminal.
    pub fn object(mut self, object: impl Serialize) -> Self {
        match serde_json::to_vec(&object) {
            Ok(json) => self.objects.push(json),
            Err(error) => {
                let index = self.objects.len();
                self.unwritable.get_or_insert_with(|| {
                    format!("object {index} cannot be written as JSON: {error}")
                });
            }
        }
        self
    }

    /// These objects should exist, too.
    pub fn objects(self, objects: impl IntoIterator<Item = impl Serialize>) -> Self {
        objects.into_iter().fold(self, Self::object)
    }

    /// This must not exist, although this plugin never made it.
    pub fn absent(mut self, absence: impl Into<Absence>) -> Self {
        self.absent.push(absence.into());
        self
    }

    /// Something that people should read about this primary.
    pub fn condition(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// An event on the primary. One with the same reason and message is recorded
    /// once, not once a call.
    pub fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    /// A status to apply to the primary. Kept for a later version of the host, which
    /// refuses it today: conditions say how a primary is.
    pub fn status(mut self, status: impl Serialize) -> Self {
        match serde_json::to_vec(&status) {
            Ok(json) => self.status = Some(json),
            Err(error) => {
                self.unwritable
                    .get_or_insert_with(|| format!("status cannot be written as JSON: {error}"));
            }
        }
        self
    }

    /// This outside effect should be in place, too.
    pub fn action(mut self, action: Action) -> Self {
        if let Some(problem) = &action.unwritable {
            self.unwritable.get_or_insert_with(|| problem.clone());
        }
        self.actions.push(action);
        self
    }

    /// Run again after this time at the latest, although nothing that was read
    /// has changed.
    pub fn next_after(mut self, time: Duration) -> Self {
        self.next = Some(time);
        self
    }

    /// Says that having no objects is meant. Without it, an empty answer after
    /// one that was not empty is held back rather than carried out.
    pub fn empty_is_meant(mut self) -> Self {
        self.empty_is_meant = true;
        self
    }

    /// The objects as JSON values, for tests.
    pub fn objects_json(&self) -> Vec<serde_json::Value> {
        self.objects_as().unwrap_or_default()
    }

    /// The objects as values of this type, for tests.
    ///
    /// # Errors
    ///
    /// When one does not fit the type.
    pub fn objects_as<T: DeserializeOwned>(&self) -> Result<Vec<T>, serde_json::Error> {
        self.objects
            .iter()
            .map(|json| serde_json::from_slice(json))
            .collect()
    }

    /// What must not exist, so far.
    pub fn absences(&self) -> &[Absence] {
        &self.absent
    }

    /// The outside effects so far.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// The conditions so far.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// The events so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
}

/// Something that must not exist.
///
/// ```
/// use reeve_sdk::prelude::*;
///
/// let leftover = Kind::new("rbac.authorization.k8s.io/v1", "RoleBinding")
///     .object("ml-pipeline")
///     .in_namespace("alice");
/// Outcome::new().absent(leftover.if_owned_by("7f9c"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Absence {
    pub(crate) object: ObjectReference,
    pub(crate) preconditions: Vec<Precondition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Precondition {
    Uid(String),
    OwnedBy(String),
    Phase(Vec<String>),
}

impl Absence {
    /// Only if it has this uid as well.
    pub fn if_uid(mut self, uid: impl Into<String>) -> Self {
        self.preconditions.push(Precondition::Uid(uid.into()));
        self
    }

    /// Only if it has an ownerReference with this uid as well.
    pub fn if_owned_by(mut self, uid: impl Into<String>) -> Self {
        self.preconditions.push(Precondition::OwnedBy(uid.into()));
        self
    }

    /// Only if its `status.phase` is one of these as well.
    pub fn if_phase<P: Into<String>>(mut self, phases: impl IntoIterator<Item = P>) -> Self {
        let phases = phases.into_iter().map(Into::into).collect();
        self.preconditions.push(Precondition::Phase(phases));
        self
    }
}

impl From<ObjectReference> for Absence {
    fn from(object: ObjectReference) -> Self {
        Self {
            object,
            preconditions: Vec::new(),
        }
    }
}

impl ObjectReference {
    /// That this must not exist if it has this uid.
    pub fn if_uid(self, uid: impl Into<String>) -> Absence {
        Absence::from(self).if_uid(uid)
    }

    /// That this must not exist if it has an ownerReference with this uid.
    pub fn if_owned_by(self, uid: impl Into<String>) -> Absence {
        Absence::from(self).if_owned_by(uid)
    }

    /// That this must not exist if its `status.phase` is one of these.
    pub fn if_phase<P: Into<String>>(self, phases: impl IntoIterator<Item = P>) -> Absence {
        Absence::from(self).if_phase(phases)
    }
}

/// A condition in the sense of the Kubernetes API conventions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Condition {
    /// Type in CamelCase.
    pub kind: String,
    /// Whether it holds; none when it cannot be told.
    pub status: Option<bool>,
    /// Machine-readable reason in CamelCase.
    pub reason: String,
    /// For people: what, where, and what to do about it.
    pub message: String,
}

impl Condition {
    fn new(kind: &str, status: Option<bool>, reason: &str, message: String) -> Self {
        Self {
            kind: kind.to_owned(),
            status,
            reason: reason.to_owned(),
            message,
        }
    }

    /// A condition of this type holds.
    pub fn holds(kind: &str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(kind, Some(true), reason, message.into())
    }

    /// A condition of this type does not hold.
    pub fn fails(kind: &str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(kind, Some(false), reason, message.into())
    }

    /// It cannot be told whether a condition of this type holds.
    pub fn unknown(kind: &str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(kind, None, reason, message.into())
    }
}

/// An event on the primary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Whether somebody should look.
    pub warning: bool,
    /// Machine-readable reason in CamelCase.
    pub reason: String,
    /// For people.
    pub message: String,
}

impl Event {
    /// Something happened; there is nothing to do.
    pub fn normal(reason: &str, message: impl Into<String>) -> Self {
        Self {
            warning: false,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// Somebody should look.
    pub fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self {
            warning: true,
            ..Self::normal(reason, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn objects_of_different_types_stand_side_by_side() {
        #[derive(Serialize)]
        struct Own {
            kind: &'static str,
        }
        let outcome = Outcome::of([json!({"kind": "A"})]).object(Own { kind: "B" });
        assert_eq!(
            outcome.objects_json(),
            [json!({"kind": "A"}), json!({"kind": "B"})]
        );
        assert_eq!(outcome.unwritable, None);
    }

    #[cfg(feature = "k8s-openapi")]
    #[test]
    fn objects_may_be_types_of_k8s_openapi() {
        use k8s_openapi::api::core::v1::ConfigMap;
        let mut map = ConfigMap::default();
        map.metadata.name = Some("x".to_owned());
        let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
        assert_eq!(Outcome::of([map]).objects_json(), [expected]);
    }

    #[test]
    fn an_unwritable_object_is_remembered_by_its_position() {
        let odd = BTreeMap::from([(vec![1], 2)]);
        let outcome = Outcome::of([json!({})]).object(&odd).object(&odd);
        let problem = outcome.unwritable.unwrap();
        assert!(
            problem.starts_with("object 1 cannot be written"),
            "{problem}"
        );
    }

    #[test]
    fn absences_gather_preconditions() {
        let object = Kind::new("v1", "PersistentVolume").object("x");
        let absence = object.clone().if_uid("u").if_phase(["Released", "Failed"]);
        let phases = vec!["Released".to_owned(), "Failed".to_owned()];
        assert_eq!(absence.object, object);
        assert_eq!(
            absence.preconditions,
            [
                Precondition::Uid("u".to_owned()),
                Precondition::Phase(phases)
            ]
        );
    }
}
