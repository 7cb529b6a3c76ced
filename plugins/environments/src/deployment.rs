//! What a ModelDeployment is to say.

use reeve_sdk::prelude::*;

use crate::config::Supervisor;
use crate::entry::{Entry, Said};
use crate::names::{LONGEST_MODEL_ID, MODEL_DEPLOYMENT, OF, is_model_id};
use crate::package::{self, Index, Package};

/// The `spec` of a ModelDeployment, as far as the supervisor decides it.
#[output]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spec {
    pub(crate) deployment_id: String,
    pub(crate) model: Model,
    /// Whether nothing is to serve.
    pub(crate) stopped: Option<bool>,
}

/// The model that is wanted.
#[output]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    pub(crate) id: String,
    pub(crate) format: Option<String>,
    pub(crate) package: Option<Package>,
}

impl Spec {
    /// What an entry of this id asks for. The error names what is to be put right.
    pub(crate) fn of_entry(
        id: &str,
        entry: &Entry,
        supervisor: &Supervisor,
        index: Option<&Index>,
    ) -> Result<Self, String> {
        let fields = &supervisor.fields;
        let stopped = is_stopped(entry, supervisor)?;
        let model = match &entry.model {
            Said::Nothing => {
                return Err(format!(
                    "{}: no id of a model; give the deployment one",
                    fields.model_id
                ));
            }
            said => said.text().filter(|id| is_model_id(id)).ok_or_else(|| {
                format!(
                    "{}: cannot be part of a tag; use at most {LONGEST_MODEL_ID} letters, digits, \
                     `_`, `.` and `-`, the first no `.` or `-`",
                    fields.model_id
                )
            })?,
        };
        let (package, format) = package::of_entry(entry, fields, index)?;
        Ok(Self {
            deployment_id: id.to_owned(),
            model: Model {
                id: model.to_owned(),
                format,
                package: Some(package),
            },
            stopped: stopped.then_some(true),
        })
    }

    /// The ModelDeployment of this name.
    pub(crate) fn object(self, name: &str, namespace: &str, environment: &str) -> Object<Self> {
        let reference = MODEL_DEPLOYMENT.object(name).in_namespace(namespace);
        let mut object = Object::new(reference, self);
        let label = (OF.to_owned(), environment.to_owned());
        object.metadata.labels = [label].into();
        object
    }
}

/// Whether a deployment is not to serve.
pub(crate) fn is_stopped(entry: &Entry, supervisor: &Supervisor) -> Result<bool, String> {
    match &entry.status {
        Said::Odd => Err(format!(
            "{}: expected the word for a status, such as active",
            supervisor.fields.status
        )),
        said => Ok(said.text().is_some_and(|status| {
            let mut stopped = supervisor.stopped_statuses.iter();
            stopped.any(|word| word == status)
        })),
    }
}
