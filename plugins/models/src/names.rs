//! Kinds, labels and annotations: what the plugin's objects are found by.

use reeve_sdk::prelude::*;

pub(crate) const API_VERSION: &str = "models.reeve.dev/v1alpha1";
pub(crate) const MODEL_DEPLOYMENT: Kind = Kind::new(API_VERSION, "ModelDeployment");
pub(crate) const CONFIG_MAP: Kind = Kind::new("v1", "ConfigMap");
pub(crate) const SECRET: Kind = Kind::new("v1", "Secret");
pub(crate) const SERVICE: Kind = Kind::new("v1", "Service");
pub(crate) const SERVICE_ACCOUNT: Kind = Kind::new("v1", "ServiceAccount");
pub(crate) const POD: Kind = Kind::new("v1", "Pod");
pub(crate) const JOB: Kind = Kind::new("batch/v1", "Job");
pub(crate) const DEPLOYMENT: Kind = Kind::new("apps/v1", "Deployment");
pub(crate) const REPLICA_SET: Kind = Kind::new("apps/v1", "ReplicaSet");
pub(crate) const INGRESS: Kind = Kind::new("networking.k8s.io/v1", "Ingress");

/// Label: the ModelDeployment that an object is of.
pub(crate) const OF: &str = "models.reeve.dev/deployment";
/// Label: the build key of a Job, of its pods and of what serves its image.
pub(crate) const KEY: &str = "models.reeve.dev/build-key";
/// Label of the pods of a build: the name of its Job.
pub(crate) const BUILD: &str = "models.reeve.dev/build";
/// Label of pods that serve: the start of their image's digest.
pub(crate) const DIGEST: &str = "models.reeve.dev/image-digest";
/// Label of a record: the key that its ModelDeployment wants.
pub(crate) const WANTS: &str = "models.reeve.dev/wants";
/// Label of a record: the key whose build its ModelDeployment needs. Who is stopped
/// needs none.
pub(crate) const AWAITS: &str = "models.reeve.dev/awaits";

/// Label of a record: the id under which its ModelDeployment is found, in lower case.
pub(crate) const ID: &str = "models.reeve.dev/deployment-id";

/// Annotation: id of the model.
pub(crate) const MODEL_ID: &str = "models.reeve.dev/model-id";
/// Annotation: digest of the model.
pub(crate) const PACKAGE: &str = "models.reeve.dev/package-digest";
/// Annotation: the prediction server that an image was built on.
pub(crate) const BASE: &str = "models.reeve.dev/base-image";
/// Annotation: the image that serves.
pub(crate) const IMAGE: &str = "models.reeve.dev/image";
/// Annotation: the artifact that is mounted.
pub(crate) const ARTIFACT: &str = "models.reeve.dev/artifact";
/// Annotation of what serves: id of the prediction environment. Label of a
/// ModelDeployment: id of the one whose supervisor is told how it is.
pub(crate) const ENVIRONMENT: &str = "models.reeve.dev/prediction-environment";
/// Annotation of pods that serve: the request to start anew that they answer.
pub(crate) const RELAUNCH: &str = "models.reeve.dev/relaunch";
/// Annotation of a Job: what it was made from, in short.
pub(crate) const TEMPLATE: &str = "models.reeve.dev/template";

/// Label of the lists of images.
pub(crate) const IMAGES: &str = "models.reeve.dev/images";

/// Annotation: whether the agent may delete an object.
pub(crate) const DELETE: &str = "reeve.dev/delete";

/// Annotation: how long the agent waits for an object before it says that this takes
/// long.
pub(crate) const WAVE_TIMEOUT: &str = "reeve.dev/wave-timeout";

/// Whose objects, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) namespace: String,
}

impl Place {
    /// An object in the namespace.
    pub(crate) fn object(&self, kind: &Kind, name: impl Into<String>) -> ObjectReference {
        kind.object(name).in_namespace(&self.namespace)
    }

    /// Objects with a label in the namespace.
    pub(crate) fn labelled(&self, kind: Kind, label: &str, value: &str) -> Query {
        Query::of(kind)
            .in_namespace(&self.namespace)
            .selector(format!("{label}={value}"))
    }

    /// Name of the list of images.
    pub(crate) fn images(&self) -> String {
        format!("{}-images", self.name)
    }

    /// Name of the record.
    pub(crate) fn record(&self) -> String {
        format!("{}-builds", self.name)
    }
}

/// An object of no one form: its metadata without the name, and its one other field. It is
/// moved in: `json!` would write anew what is in it.
pub(crate) fn object(
    reference: &ObjectReference,
    metadata: Value,
    field: &str,
    value: Value,
) -> Value {
    let mut object = Value::Null;
    object[field] = value;
    object["apiVersion"] = json!(reference.kind.api_version());
    object["kind"] = json!(reference.kind.kind());
    object["metadata"] = metadata;
    object["metadata"]["name"] = json!(reference.name);
    object["metadata"]["namespace"] = json!(reference.namespace);
    object
}

/// A text as a value of an environment variable or an argument: Kubernetes puts
/// variables in the place of `$(NAME)`, and takes `$$` for `$`.
pub(crate) fn literal(text: &str) -> String {
    text.replace('$', "$$")
}
