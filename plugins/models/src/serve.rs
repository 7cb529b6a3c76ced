//! What serves a model: a Deployment by digest, a Service and an Ingress.

use reeve_sdk::Strings;
use reeve_sdk::prelude::*;

use crate::image::Image;
use crate::model::{Model, Spec, Version};
use crate::names::{
    ARTIFACT, BASE, DEPLOYMENT, DIGEST, ENVIRONMENT, IMAGE, INGRESS, KEY, MODEL_ID, OF, PACKAGE,
    Place, RELAUNCH, SERVICE, WAVE_TIMEOUT, literal, object,
};
use crate::settings::{Root, Settings};
use crate::tracking;

/// The container that serves.
const CONTAINER: &str = "server";
/// Where the prediction server listens.
const PORT: u16 = 8080;
/// Where it looks for its model.
const MODELS: &str = "/opt/ml/model";
/// Seconds that a server may take to load its model, unless a deployment says more:
/// models of several GB are loaded before the first answer.
const STARTUP: u32 = 600;
/// Seconds between two looks at a server.
const PROBE_PERIOD: u32 = 10;
/// Seconds beyond loading after which a rollout has failed: to be scheduled, and to
/// pull an image of 10 GB.
const ROLLOUT: u32 = 900;
/// ReplicaSets that are kept to go back to; their images are in use.
const REVISIONS: u32 = 2;

/// The server takes bodies of 50 MB; a little more, so that it is the one to refuse.
const BODY_LIMIT: &str = "51m";
/// Seconds for which a proxy waits: the server itself gives up after 600.
const PROXY_TIMEOUT: &str = "605";

/// A deployment, and what of it is to serve.
pub(crate) struct Serving<'a> {
    pub(crate) place: &'a Place,
    pub(crate) spec: &'a Spec,
    pub(crate) settings: &'a Settings<'a>,
    /// Id of the deployment.
    pub(crate) id: &'a str,
    pub(crate) version: &'a Version,
}

impl Version {
    /// What is to serve, once its image is known.
    pub(crate) fn of(model: &Model, key: &str, base: &Image, image: Image) -> Self {
        Self {
            key: key.to_owned(),
            model_id: model.id.clone(),
            package: model.package(),
            base: base.clone(),
            image,
            artifact: model.artifact().cloned(),
        }
    }

    /// As it stands on the objects that serve it.
    fn annotations(&self) -> Value {
        let mut annotations = json!({
            MODEL_ID: self.model_id,
            PACKAGE: self.package,
            BASE: self.base.to_string(),
            IMAGE: self.image.to_string(),
        });
        if let Some(artifact) = &self.artifact {
            annotations[ARTIFACT] = json!(artifact.to_string());
        }
        annotations
    }

    /// Reads what [`Version::annotations`] wrote. What somebody has made unreadable is
    /// none.
    pub(crate) fn read(labels: &Strings, annotations: &Strings) -> Option<Self> {
        let text = |key: &str| annotations.get(key);
        let image = |key: &str| Image::parse(text(key)?).ok();
        let artifact = match text(ARTIFACT) {
            Some(_) => Some(image(ARTIFACT)?),
            None => None,
        };
        Some(Self {
            key: labels.get(KEY)?.clone(),
            model_id: text(MODEL_ID)?.clone(),
            package: text(PACKAGE)?.clone(),
            base: image(BASE)?,
            image: image(IMAGE).filter(|image| image.digest.is_some())?,
            artifact,
        })
    }
}

impl Serving<'_> {
    /// All that serves.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let mut objects = vec![self.deployment(), self.service()];
        if let Some(root) = &self.settings.root {
            objects.push(self.ingress(root));
        }
        objects
    }

    fn labels(&self) -> Value {
        let mut labels = json!({OF: self.place.name, KEY: self.version.key});
        if let Some(digest) = &self.version.image.digest {
            labels[DIGEST] = json!(digest.label());
        }
        labels
    }

    fn deployment(&self) -> Value {
        let startup = self.spec.startup_seconds.unwrap_or(STARTUP);
        let deadline = startup.saturating_add(ROLLOUT);
        let mut annotations = self.version.annotations();
        annotations[WAVE_TIMEOUT] = json!(format!("{}s", deadline.saturating_add(60)));
        let environment = &self.settings.config.datarobot.prediction_env_id;
        if !environment.is_empty() {
            annotations[ENVIRONMENT] = json!(environment);
        }
        let mut template = json!({
            "metadata": {"labels": self.labels(), "annotations": self.version.annotations()},
        });
        template["spec"] = self.pod(startup);
        if let Some(relaunch) = &self.spec.relaunch {
            template["metadata"]["annotations"][RELAUNCH] = json!(relaunch);
        }
        let mut spec = json!({
            "revisionHistoryLimit": REVISIONS,
            "progressDeadlineSeconds": deadline,
            "selector": {"matchLabels": {OF: self.place.name}},
            // The old model serves until the new one does.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
        });
        spec["template"] = template;
        // Not said, it is an autoscaler's to decide.
        if let Some(replicas) = self.spec.replicas {
            spec["replicas"] = json!(replicas);
        }
        object(
            &self.place.object(&DEPLOYMENT, &self.place.name),
            json!({"labels": self.labels(), "annotations": annotations}),
            "spec",
            spec,
        )
    }

    fn pod(&self, startup: u32) -> Value {
        let version = self.version;
        let ping = json!({"path": "/ping", "port": "http"});
        let mut mounts = Vec::new();
        let mut volumes = Vec::new();
        if let Some(artifact) = &version.artifact {
            mounts.push(json!({"name": "model", "mountPath": MODELS, "readOnly": true}));
            volumes.push(json!({"name": "model", "image": {
                "reference": artifact.to_string(), "pullPolicy": "IfNotPresent",
            }}));
        }
        let mut env = vec![json!({"name": "MLOPS_DEPLOYMENT_ID", "value": literal(self.id)})];
        let mut containers = Vec::new();
        if let Some(image) = self.settings.tracking {
            env.extend(tracking::server_variables(self.id, &version.model_id));
            mounts.push(tracking::mount());
            volumes.push(tracking::volume());
            containers.push(tracking::container(image, self.settings));
        }
        let mut server = json!({
            "name": CONTAINER,
            "image": version.image.to_string(),
            "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
            // Loading may take long, and is no failure; after that, silence is.
            "startupProbe": {
                "httpGet": ping,
                "periodSeconds": PROBE_PERIOD,
                "timeoutSeconds": 5,
                "failureThreshold": startup.div_ceil(PROBE_PERIOD).max(1),
            },
            "readinessProbe": {"httpGet": ping, "periodSeconds": PROBE_PERIOD, "timeoutSeconds": 5},
            "livenessProbe": {
                "httpGet": ping,
                "periodSeconds": PROBE_PERIOD,
                "timeoutSeconds": 5,
                // Answers to large requests take their time.
                "failureThreshold": 6,
            },
        });
        server["env"] = Value::Array(env);
        server["volumeMounts"] = Value::Array(mounts);
        if let Some(resources) = &self.spec.resources {
            server["resources"] = resources.0.clone();
        }
        containers.insert(0, server);
        let secrets = &self.settings.config.prediction_server.image_pull_secrets;
        let secrets: Vec<Value> = secrets.iter().map(|name| json!({"name": name})).collect();
        let mut pod = json!({
            "automountServiceAccountToken": false,
        });
        pod["containers"] = Value::Array(containers);
        pod["volumes"] = Value::Array(volumes);
        if !secrets.is_empty() {
            pod["imagePullSecrets"] = json!(secrets);
        }
        pod
    }

    fn service(&self) -> Value {
        object(
            &self.place.object(&SERVICE, &self.place.name),
            json!({"labels": {OF: self.place.name}}),
            "spec",
            json!({
                "selector": {OF: self.place.name},
                "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
            }),
        )
    }

    /// The server knows nothing of the path below which it is found, so that is cut off.
    fn ingress(&self, root: &Root<'_>) -> Value {
        let backend = json!({"service": {"name": self.place.name, "port": {"name": "http"}}});
        let path = format!("{}/{}(/|$)(.*)", root.path.replace('.', "\\."), self.id);
        let mut rule = json!({"http": {"paths": [{
            "path": path,
            "pathType": "ImplementationSpecific",
            "backend": backend,
        }]}});
        // Without one it is for all hosts.
        if let Some(host) = root.host {
            rule["host"] = json!(host);
        }
        let mut spec = json!({});
        spec["rules"] = Value::Array(vec![rule]);
        if !self.settings.ingress_class.is_empty() {
            spec["ingressClassName"] = json!(self.settings.ingress_class);
        }
        object(
            &self.place.object(&INGRESS, &self.place.name),
            json!({
                "labels": {OF: self.place.name},
                "annotations": {
                    "nginx.ingress.kubernetes.io/use-regex": "true",
                    "nginx.ingress.kubernetes.io/rewrite-target": "/$2",
                    "nginx.ingress.kubernetes.io/proxy-body-size": BODY_LIMIT,
                    "nginx.ingress.kubernetes.io/proxy-read-timeout": PROXY_TIMEOUT,
                    "nginx.ingress.kubernetes.io/proxy-send-timeout": PROXY_TIMEOUT,
                },
            }),
            "spec",
            spec,
        )
    }
}

/// Where predictions are asked for from outside.
pub(crate) fn prediction_url(root: &Root<'_>, id: &str) -> String {
    format!("{}/{id}/predictions", root.url)
}
