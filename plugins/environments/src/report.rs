//! What people are told: the status of a PredictionEnvironment.

use reeve_sdk::prelude::*;

use crate::names::ENVIRONMENT;
use crate::wanted::Wanted;

/// The longest message, in bytes.
const LONGEST: usize = 1024;

/// Fields of a PredictionEnvironment that belong to this plugin.
#[output]
struct Contribution {
    api_version: &'static str,
    kind: &'static str,
    metadata: ObjectMeta,
    status: Status,
}

#[output]
struct Status {
    deployments: usize,
    unusable: usize,
    message: Option<String>,
}

/// Adds the status to an outcome; the other fields are left alone.
pub(crate) fn status(outcome: Outcome, name: &str, namespace: &str, wanted: &Wanted) -> Outcome {
    let reference = ENVIRONMENT.object(name).in_namespace(namespace);
    let mut metadata = ObjectMeta::from(reference);
    let contribute = ("reeve.dev/apply".to_owned(), "Contribute".to_owned());
    metadata.annotations = [contribute].into();
    let problems = &wanted.problems;
    let message = (!problems.is_empty()).then(|| problems.text_within(LONGEST));
    outcome.object(Contribution {
        api_version: crate::names::API_VERSION,
        kind: "PredictionEnvironment",
        metadata,
        status: Status {
            deployments: wanted.listed,
            unusable: wanted.unusable,
            message,
        },
    })
}
