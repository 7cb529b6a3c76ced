//! What a call came to.

use super::{Body, Named};
use crate::failure::Failure;
use crate::outcome::{Absence, Action, Condition, Event, Next, Outcome, Precondition};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::time::Duration;

/// What a call came to: one of three things, and never two.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The plugin said what should be.
    Outcome(Outcome),
    /// The plugin said why it cannot.
    Failure(Failure),
    /// The plugin did not come to an answer.
    Fault(FaultRecord),
}

/// How a call ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FaultRecord {
    /// What ended it: `trap`, `exit`, `malformedResult`, `refused`, or the name of a
    /// limit as in `Plugin.spec.limits`.
    pub reason: String,
    /// What the agent says about it.
    pub message: String,
}

impl Answer {
    /// What it is, in a few words.
    pub fn summary(&self) -> String {
        match self {
            Self::Outcome(outcome) => match outcome.objects.len() {
                1 => "1 object".to_owned(),
                count => format!("{count} objects"),
            },
            Self::Failure(Failure::Retry(text)) => format!("the failure `retry`: {text}"),
            Self::Failure(Failure::Terminal(text)) => format!("the failure `terminal`: {text}"),
            Self::Failure(Failure::NotReady(text)) => format!("the failure `not-ready`: {text}"),
            Self::Fault(fault) => format!("no answer: {}", fault.message),
        }
    }
}

/// An outcome in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenOutcome {
    objects: Vec<Body>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    absent: Vec<WrittenAbsence>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    events: Vec<Event>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<Body>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    actions: Vec<Action>,
    /// Nanoseconds are more than any generation of the contract tells apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<Duration>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    empty_is_meant: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenAbsence {
    object: Named,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    preconditions: Vec<WrittenPrecondition>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum WrittenPrecondition {
    Uid(String),
    OwnedBy(String),
    Phase(Vec<String>),
}

impl From<&Outcome> for WrittenOutcome {
    fn from(outcome: &Outcome) -> Self {
        Self {
            objects: outcome.objects.iter().map(|o| Body::new(&**o)).collect(),
            absent: outcome.absent.iter().map(Into::into).collect(),
            conditions: outcome.conditions.clone(),
            events: outcome.events.clone(),
            status: outcome.status.as_deref().map(Body::new),
            actions: outcome.actions.clone(),
            after: match outcome.next {
                Next::OnChange => None,
                Next::After(time) => Some(time),
            },
            empty_is_meant: outcome.empty_is_meant,
        }
    }
}

impl From<WrittenOutcome> for Outcome {
    fn from(written: WrittenOutcome) -> Self {
        let bytes = |body: Body| body.bytes().to_vec();
        Self {
            objects: written.objects.into_iter().map(bytes).collect(),
            absent: written.absent.into_iter().map(Into::into).collect(),
            conditions: written.conditions,
            events: written.events,
            status: written.status.map(bytes),
            actions: written.actions,
            next: written.after.map_or(Next::OnChange, Next::After),
            empty_is_meant: written.empty_is_meant,
        }
    }
}

impl From<&Absence> for WrittenAbsence {
    fn from(absence: &Absence) -> Self {
        let preconditions = absence.preconditions.iter().map(|one| match one {
            Precondition::Uid(uid) => WrittenPrecondition::Uid(uid.clone()),
            Precondition::OwnedBy(uid) => WrittenPrecondition::OwnedBy(uid.clone()),
            Precondition::Phase(phases) => WrittenPrecondition::Phase(phases.clone()),
        });
        Self {
            object: (&absence.object).into(),
            preconditions: preconditions.collect(),
        }
    }
}

impl From<WrittenAbsence> for Absence {
    fn from(written: WrittenAbsence) -> Self {
        let preconditions = written.preconditions.into_iter().map(|one| match one {
            WrittenPrecondition::Uid(uid) => Precondition::Uid(uid),
            WrittenPrecondition::OwnedBy(uid) => Precondition::OwnedBy(uid),
            WrittenPrecondition::Phase(phases) => Precondition::Phase(phases),
        });
        Self {
            object: written.object.into(),
            preconditions: preconditions.collect(),
        }
    }
}

/// `{"outcome": …}`, `{"failure": …}` or `{"fault": …}`.
impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        enum Written<'a> {
            Outcome(WrittenOutcome),
            Failure(&'a Failure),
            Fault(&'a FaultRecord),
        }
        let written = match self {
            Self::Outcome(outcome) => Written::Outcome(outcome.into()),
            Self::Failure(failure) => Written::Failure(failure),
            Self::Fault(fault) => Written::Fault(fault),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            outcome: Option<Box<RawValue>>,
            failure: Option<Failure>,
            fault: Option<FaultRecord>,
        }
        let Written {
            outcome,
            failure,
            fault,
        } = Written::deserialize(deserializer)?;
        match (outcome, failure, fault) {
            (Some(raw), None, None) => serde_json::from_str::<WrittenOutcome>(raw.get())
                .map(|written| Self::Outcome(written.into()))
                .map_err(|error| D::Error::custom(format!("outcome: {error}"))),
            (None, Some(failure), None) => Ok(Self::Failure(failure)),
            (None, None, Some(fault)) => Ok(Self::Fault(fault)),
            _ => Err(D::Error::custom(
                "expected exactly one of `outcome`, `failure` and `fault`",
            )),
        }
    }
}
