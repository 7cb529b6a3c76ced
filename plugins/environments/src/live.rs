//! The ModelDeployments that exist.

use reeve_sdk::prelude::*;

use crate::deployment::{Model, Spec};
use crate::names::{MODEL_DEPLOYMENT, OF};
use crate::package::Package;

/// What of a ModelDeployment is read.
#[input]
pub(crate) struct Found {
    metadata: Metadata,
    spec: Json,
}

/// The ModelDeployments of a namespace.
pub(crate) struct Live {
    /// Those of the prediction environment.
    pub(crate) own: Vec<Found>,
    /// Those of others.
    others: Vec<Found>,
}

const PARTS: [&str; 3] = ["/metadata/labels", "/metadata/ownerReferences", "/spec"];

impl Live {
    /// Reads what there is in the namespace of a PredictionEnvironment with this uid and
    /// this id.
    pub(crate) fn read(
        namespace: &str,
        uid: &str,
        environment: &str,
        cx: &Context,
    ) -> Result<Self, Failure> {
        let query = Query::of(MODEL_DEPLOYMENT)
            .in_namespace(namespace)
            .projection(PARTS);
        let found: Vec<Found> = cx.list(&query)?;
        let is_own = |found: &Found| found.is_own(uid, environment);
        let (own, others) = found.into_iter().partition(is_own);
        Ok(Self { own, others })
    }

    /// The name of somebody else's that has this name or this id.
    pub(crate) fn taken(&self, name: &str, id: &str) -> Option<&str> {
        let has = |found: &&Found| found.name() == name || found.id() == id;
        let other = self.others.iter().find(has);
        other.map(Found::name)
    }

    /// What there is of a deployment: under its name if its id makes one, and under its id.
    pub(crate) fn of<'a>(
        &'a self,
        name: Option<&'a str>,
        id: &'a str,
    ) -> impl Iterator<Item = &'a Found> {
        let own = self.own.iter();
        own.filter(move |found| name == Some(found.name()) || found.id() == id)
    }
}

impl Found {
    pub(crate) fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Id of the deployment.
    fn id(&self) -> &str {
        let id = self.spec.get("deploymentId").and_then(Value::as_str);
        id.unwrap_or(self.name())
    }

    /// Whether it was made for the PredictionEnvironment: that is its owner, whatever
    /// became of the label; without any owner the label counts.
    fn is_own(&self, uid: &str, environment: &str) -> bool {
        let metadata = &self.metadata;
        let mut owners = metadata.owner_references.iter();
        let label = metadata.labels.get(OF).map(String::as_str);
        owners.any(|owner| owner.uid == uid)
            || (metadata.owner_references.is_empty()
                && metadata.belongs_to_plugin()
                && label == Some(environment))
    }

    /// What it says, as far as the supervisor decides it.
    pub(crate) fn kept(&self) -> Spec {
        let text = |pointer: &str| {
            let text = self.spec.pointer(pointer).and_then(Value::as_str);
            text.map(str::to_owned)
        };
        let package = self.spec.pointer("/model/package").map(|package| Package {
            url: text("/model/package/url").unwrap_or_default(),
            sha256: text("/model/package/sha256").unwrap_or_default(),
            size_bytes: package.get("sizeBytes").and_then(Value::as_u64),
        });
        Spec {
            deployment_id: self.id().to_owned(),
            model: Model {
                id: text("/model/id").unwrap_or_default(),
                format: text("/model/format"),
                package,
            },
            stopped: self.spec.get("stopped").and_then(Value::as_bool),
        }
    }
}
