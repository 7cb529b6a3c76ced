//! The Job that puts a model into an image.
//!
//! An init container fetches the model and verifies its SHA-256, then the builder puts
//! it into the prediction server's image and pushes that. The builder's last word, its
//! termination message, is the digest; when it fails, the end of its log.

mod buildah;
mod buildkit;
mod kaniko;

use reeve_sdk::prelude::*;

use crate::config::Builder;
use crate::image::Image;
use crate::key::{LENGTH, build_key};
use crate::model::{Model, Source};
use crate::names::{
    BASE, BUILD, IMAGE, JOB, KEY, MODEL_ID, OF, PACKAGE, Place, TEMPLATE, WAVE_TIMEOUT, literal,
    object,
};
use crate::settings::{Credentials, Settings};

/// The container that builds.
pub(crate) const CONTAINER: &str = "build";
/// The container that fetches the model.
pub(crate) const FETCH: &str = "fetch";
/// How `fetch` ends when the model is another than the one that is wanted: as sysexits
/// calls wrong data. Trying again would not help.
pub(crate) const WRONG_PACKAGE: i64 = 65;

/// Pods of a build that may fail: a token that expires while a large image is pushed,
/// or a registry that is not well, often is no matter the second time.
const BACKOFF_LIMIT: u32 = 2;
/// Seconds after which a build is given up: images have 10 GB and more.
const DEADLINE: u32 = 3600;
/// Seconds for which a build whose digest is recorded is kept, for who is curious.
pub(crate) const KEPT_FOR: u32 = 3600;

/// Where the build happens: its context and all that is written.
const WORKSPACE: &str = "/workspace";
/// Where builders other than kaniko look for credentials.
const REGISTRY: &str = "/registry";

/// One build.
pub(crate) struct Build<'a> {
    pub(crate) place: &'a Place,
    /// Name of the Job.
    pub(crate) name: &'a str,
    pub(crate) key: &'a str,
    pub(crate) model: &'a Model,
    pub(crate) settings: &'a Settings<'a>,
    /// The prediction server.
    pub(crate) base: &'a Image,
    /// Where the image is pushed, by the tag for people, which is the same for each build
    /// under a key; see [`Build::own`].
    pub(crate) destination: Image,
    /// The id of the model.
    pub(crate) model_id: &'a str,
}

/// The variable of a builder with the uid of its pod.
const POD_UID: &str = "POD_UID";
/// Characters of a uid.
const UID: usize = 36;
/// Characters of the id of a model in a tag of a pod's own: with a key and a uid behind it,
/// dashes between them, a tag of 128.
const MODEL: usize = 128 - LENGTH - UID - 2;

/// The tag for people, who look for a model.
pub(crate) fn tag(model: &str, key: &str) -> String {
    format!("{model}-{key}")
}

/// What a builder adds to the pod.
struct Recipe {
    /// The container, without what all have.
    container: Value,
    /// Its volumes.
    volumes: Vec<Value>,
    /// Where credentials are mounted.
    credentials: &'static str,
    /// More files of the context, with the variables that carry them.
    files: Vec<(&'static str, &'static str, String)>,
    /// More fields of the pod.
    pod: Value,
}

/// What an image is built from.
pub(crate) fn dockerfile(base: &Image, file: &str) -> String {
    format!("FROM {base}\nCOPY {file} /opt/ml/model/\n")
}

/// The parts of a build that make its image what it is.
pub(crate) fn key_of(model: &Model, settings: &Settings<'_>, base: &Image) -> String {
    let builder = &settings.config.image_builder;
    let package = model.package();
    let base_name = base.to_string();
    let repository = settings.repository.as_ref().map(Image::to_string);
    let dockerfile = match &model.source {
        Source::Package { file, .. } => dockerfile(base, file),
        Source::Artifact(_) => String::new(),
    };
    let mut parts = vec![
        &*package,
        &*base_name,
        &*dockerfile,
        builder.builder.name(),
        repository.as_deref().unwrap_or_default(),
    ];
    parts.extend(builder.extra_arguments.iter().map(String::as_str));
    build_key(parts)
}

/// The name of the Job under a key. A request to try again has a Job of its own, so
/// that the one that failed stays for its log.
pub(crate) fn job_name(key: &str, retry: Option<&str>) -> String {
    match retry.filter(|retry| !retry.is_empty()) {
        None => format!("model-build-{key}"),
        Some(retry) => {
            let hash = build_key([retry]);
            format!("model-build-{key}-{}", hash.get(..6).unwrap_or(&hash))
        }
    }
}

impl Build<'_> {
    /// The Job.
    pub(crate) fn job(&self) -> Value {
        let spec = self.spec();
        let template = build_key([&*spec.to_string()]);
        let annotations = json!({
            MODEL_ID: self.model.id,
            PACKAGE: self.model.package(),
            BASE: self.base.to_string(),
            IMAGE: self.destination.to_string(),
            TEMPLATE: template,
            // Builds take longer than other things that are waited for.
            WAVE_TIMEOUT: format!("{}s", DEADLINE + 300),
        });
        object(
            &self.place.object(&JOB, self.name),
            json!({
                "labels": {OF: self.place.name, KEY: self.key},
                "annotations": annotations,
            }),
            "spec",
            spec,
        )
    }

    /// The tag of a pod's own, as Kubernetes puts it together, which no image has yet. What is
    /// pushed under it is there, whatever becomes of the other tag: where tags cannot be
    /// changed and one of an earlier build is there, that one stays as it is; and elsewhere
    /// the earlier image, which may be in use, keeps a tag.
    fn own(&self) -> String {
        let id = self.model_id.get(..MODEL).unwrap_or(self.model_id);
        let repository = literal(&self.destination.repository);
        format!("{repository}:{}-$({POD_UID})", tag(id, self.key))
    }

    fn spec(&self) -> Value {
        let config = &self.settings.config.image_builder;
        let recipe = match config.builder {
            Builder::Kaniko | Builder::Mount => kaniko::recipe(self),
            Builder::Buildkit => buildkit::recipe(self),
            Builder::Buildah => buildah::recipe(self),
        };
        let mut mounts = vec![json!({"name": "workspace", "mountPath": WORKSPACE})];
        let mut volumes = vec![json!({"name": "workspace", "emptyDir": {}})];
        if let Some(volume) = credentials(self.settings.credentials) {
            volumes.push(volume);
            mounts.push(json!({
                "name": "registry", "mountPath": recipe.credentials, "readOnly": true,
            }));
        }
        volumes.extend(recipe.volumes);
        volumes.extend(
            config
                .extra_volumes
                .iter()
                .map(|Json(volume)| volume.clone()),
        );
        let mut container = recipe.container;
        if let Some(own) = container["volumeMounts"].as_array() {
            mounts.extend(own.iter().cloned());
        }
        mounts.extend(
            config
                .extra_volume_mounts
                .iter()
                .map(|Json(mount)| mount.clone()),
        );
        let mut env = vec![json!({
            "name": POD_UID, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}},
        })];
        if let Some(own) = container["env"].as_array() {
            env.extend(own.iter().cloned());
        }
        container["env"] = Value::Array(env);
        container["name"] = json!(CONTAINER);
        container["volumeMounts"] = Value::Array(mounts);
        container["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
        container["resources"] = json!({"requests": {"ephemeral-storage": self.disk()}});
        let mut pod = json!({
            "restartPolicy": "Never",
            "serviceAccountName": config.service_account.name,
            "automountServiceAccountToken": false,
        });
        pod["initContainers"] = Value::Array(vec![self.fetch(&recipe.files)]);
        pod["containers"] = Value::Array(vec![container]);
        pod["volumes"] = Value::Array(volumes);
        if let (Some(fields), Value::Object(more)) = (pod.as_object_mut(), recipe.pod) {
            fields.extend(more);
        }
        let mut spec = json!({
            "backoffLimit": BACKOFF_LIMIT,
            "activeDeadlineSeconds": DEADLINE,
            "podFailurePolicy": {"rules": [
                // A node that is short of disk, or drained, is not the build's fault.
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "FailJob", "onExitCodes": {
                    "containerName": FETCH, "operator": "In", "values": [WRONG_PACKAGE],
                }},
            ]},
            "template": {
                // Not whose they are: by that label the Service and the Deployment, and whoever
                // counts servers, know what serves.
                "metadata": {"labels": {KEY: self.key, BUILD: self.name}},
            },
        });
        spec["template"]["spec"] = pod;
        spec
    }

    /// Bytes of disk: the model as it was fetched, in a layer and in that layer packed,
    /// beside the image that it is put into.
    fn disk(&self) -> String {
        let base = self.settings.config.image_builder.pps_image_bytes;
        let size = match &self.model.source {
            Source::Package { size, .. } => *size,
            Source::Artifact(_) => 0,
        };
        size.saturating_mul(3).saturating_add(base).to_string()
    }

    /// The container that makes the context.
    fn fetch(&self, files: &[(&'static str, &'static str, String)]) -> Value {
        let (url, sha256, file) = match &self.model.source {
            Source::Package {
                url, sha256, file, ..
            } => (&**url, &**sha256, *file),
            Source::Artifact(_) => ("", "", ""),
        };
        let mut env = vec![
            json!({"name": "PACKAGE_URL", "value": literal(url)}),
            json!({"name": "PACKAGE_SHA256", "value": sha256}),
            json!({"name": "PACKAGE_FILE", "value": file}),
            json!({"name": "DOCKERFILE", "value": literal(&dockerfile(self.base, file))}),
        ];
        // Whoever writes a ModelDeployment says the URL; the token is for DataRobot alone.
        if self.settings.is_of_datarobot(url) {
            env.push(json!({"name": "API_TOKEN", "valueFrom": {"secretKeyRef": {
                "name": self.settings.config.datarobot.api_secret_name, "key": "secret",
            }}}));
        }
        let mut script = String::from("set -eu\numask 022\ncd /workspace\n");
        script.push_str("printf '%s' \"$DOCKERFILE\" > Dockerfile\n");
        for (variable, file, content) in files {
            env.push(json!({"name": variable, "value": literal(content)}));
            script.push_str(&format!("printf '%s' \"${variable}\" > {file}\n"));
        }
        script.push_str(FETCH_SCRIPT);
        let mut container = json!({
            "name": FETCH,
            "image": self.settings.config.image_builder.fetch_image,
            "command": ["/bin/sh", "-c", script],
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
            },
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [{"name": "workspace", "mountPath": WORKSPACE}],
        });
        container["env"] = Value::Array(env);
        container
    }
}

/// The token goes by a pipe: arguments of a program are for everybody to see.
const FETCH_SCRIPT: &str = r#"if [ -n "${API_TOKEN:-}" ]; then
  printf 'Authorization: Bearer %s\n' "$API_TOKEN"
fi |
  curl --fail --globoff --location --silent --show-error --retry 5 --connect-timeout 30 \
    --header @- --output "$PACKAGE_FILE" "$PACKAGE_URL"
if ! printf '%s  %s\n' "$PACKAGE_SHA256" "$PACKAGE_FILE" | sha256sum -c; then
  echo "what $PACKAGE_URL gives has another SHA-256 than $PACKAGE_SHA256" >&2
  exit 65
fi
"#;

/// The volume with credentials, if there are any.
fn credentials(credentials: Credentials<'_>) -> Option<Value> {
    match credentials {
        Credentials::Account => None,
        Credentials::ConfigMap(name) => Some(json!({"name": "registry", "configMap": {
            "name": name, "items": [{"key": "config.json", "path": "config.json"}],
        }})),
        Credentials::Secret(name) => Some(json!({"name": "registry", "secret": {
            "secretName": name, "items": [{"key": ".dockerconfigjson", "path": "config.json"}],
        }})),
    }
}

/// The image of a builder, unless another is configured.
fn image_or<'a>(build: &'a Build<'_>, known: &'a str) -> &'a str {
    match &*build.settings.config.image_builder.image {
        "" => known,
        image => image,
    }
}

/// Whether a registry may be talked to without a verified certificate.
fn is_lax(build: &Build<'_>, image: &Image) -> bool {
    let registry = image.registry();
    build.settings.is_insecure(registry) || build.settings.is_unverified(registry)
}
