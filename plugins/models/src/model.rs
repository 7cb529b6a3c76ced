//! What a ModelDeployment asks for, checked.

use reeve_sdk::names::{check_dns_label, check_label_value};
use reeve_sdk::prelude::*;

use crate::config::Builder;
use crate::image::{Image, is_sha256, is_tag};
use crate::key;
use crate::settings::{FORMATS, Settings, is_url};

/// The `spec` of a ModelDeployment.
#[input]
pub(crate) struct Spec {
    deployment_id: Option<String>,
    model: ModelSpec,
    /// Whether nothing is to serve.
    pub(crate) stopped: Option<bool>,
    /// A new value builds anew what has failed.
    pub(crate) retry: Option<String>,
    /// A new value starts all servers anew.
    pub(crate) relaunch: Option<String>,
    /// How many servers; left to others when it is not said.
    pub(crate) replicas: Option<u32>,
    /// Resources of each server, as Kubernetes writes them.
    pub(crate) resources: Option<Json>,
    /// How long a server may take to load its model.
    pub(crate) startup_seconds: Option<u32>,
}

/// The model that is wanted.
#[input]
struct ModelSpec {
    id: String,
    format: Option<String>,
    package: Option<Package>,
    artifact: Option<String>,
}

/// A model as a file.
#[input]
struct Package {
    url: String,
    sha256: String,
    size_bytes: Option<u64>,
}

/// A ModelDeployment in which nothing is wrong.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    /// Id of the model.
    pub(crate) id: String,
    /// Id of the deployment, the last part of its path.
    pub(crate) deployment_id: String,
    /// Where the model is.
    pub(crate) source: Source,
}

/// Where a model is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// A file, to be put into an image.
    Package {
        /// From where it is fetched.
        url: String,
        /// Its SHA-256, in hexadecimal.
        sha256: String,
        /// What it is called in the image.
        file: &'static str,
        /// Its size in bytes; zero when nobody said it.
        size: u64,
    },
    /// An artifact of a registry, to be mounted.
    Artifact(Image),
}

/// What of a model serves, or is to: all that has to be known of it to keep it
/// serving, as it stands in annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// What it is built from, in short.
    pub(crate) key: String,
    /// Id of the model.
    pub(crate) model_id: String,
    /// Digest of the model.
    pub(crate) package: String,
    /// The prediction server that it was built on.
    pub(crate) base: Image,
    /// The image that serves, by digest.
    pub(crate) image: Image,
    /// The model, where it is mounted.
    pub(crate) artifact: Option<Image>,
}

/// Names of Services are the narrowest: 63 characters, of which some are left for
/// what is put behind them.
const LONGEST_NAME: usize = 52;

impl Model {
    /// Checks what is asked for under this name. Everything that is wrong is told,
    /// each with its field.
    pub(crate) fn check(
        name: &str,
        spec: &Spec,
        settings: &Settings<'_>,
    ) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        if check_dns_label(name).is_err()
            || name.len() > LONGEST_NAME
            || !name.starts_with(|c: char| c.is_ascii_lowercase())
        {
            problems.push(format!(
                "metadata.name: `{name}` cannot be the name of a Service; use at most \
                 {LONGEST_NAME} lower-case letters, digits and `-`, the first a letter"
            ));
        }
        let deployment_id = spec.deployment_id.clone().unwrap_or(name.to_owned());
        if !is_id(&deployment_id) {
            problems.push(format!(
                "spec.deploymentId: `{deployment_id}` cannot be part of a path; use at most 63 \
                 letters, digits, `-` and `_`, with a letter or digit at both ends"
            ));
        }
        let id = &spec.model.id;
        // A tag is the id, a dash and the key.
        if !is_tag(&format!("{id}-{}", "0".repeat(key::LENGTH))) || id.is_empty() {
            problems.push(format!(
                "spec.model.id: `{id}` cannot be part of a tag; use at most {} letters, digits, \
                 `_`, `.` and `-`, the first no `.` or `-`",
                128 - 1 - key::LENGTH
            ));
        }
        let file = check_format(&spec.model, settings, &mut problems);
        let source = check_source(&spec.model, file, settings, &mut problems);
        match source {
            Some(source) if problems.is_empty() => Ok(Self {
                id: id.clone(),
                deployment_id,
                source,
            }),
            _ => Err(problems),
        }
    }

    /// The artifact that is mounted, if one is.
    pub(crate) fn artifact(&self) -> Option<&Image> {
        match &self.source {
            Source::Artifact(image) => Some(image),
            Source::Package { .. } => None,
        }
    }

    /// Digest of the model.
    pub(crate) fn package(&self) -> String {
        match &self.source {
            Source::Package { sha256, .. } => format!("sha256:{sha256}"),
            Source::Artifact(image) => image
                .digest
                .as_ref()
                .map(|digest| digest.as_str().to_owned())
                .unwrap_or_default(),
        }
    }
}

impl Spec {
    /// Id of the deployment, if it is said and can be part of a path.
    pub(crate) fn usable_id(&self) -> Option<&str> {
        self.deployment_id.as_deref().filter(|id| is_id(id))
    }
}

/// Whether a text can be part of a path as it is, also in an expression.
fn is_id(text: &str) -> bool {
    !text.is_empty() && check_label_value(text).is_ok() && !text.contains('.')
}

fn check_format(
    model: &ModelSpec,
    settings: &Settings<'_>,
    problems: &mut Vec<String>,
) -> &'static str {
    let (default, file) = FORMATS[0];
    let format = model.format.as_deref().unwrap_or(default);
    let accepted = &settings.config.datarobot.model_formats;
    if !accepted.iter().any(|known| known == format) {
        problems.push(format!(
            "spec.model.format: `{format}` is not accepted here; accepted is {}. Others are \
             listed in /datarobot/modelFormats of the configuration",
            accepted.join(", ")
        ));
    }
    let known = FORMATS.iter().find(|(known, _)| *known == format);
    known.map_or(file, |(_, file)| file)
}

fn check_source(
    model: &ModelSpec,
    file: &'static str,
    settings: &Settings<'_>,
    problems: &mut Vec<String>,
) -> Option<Source> {
    let mounts = settings.config.image_builder.builder == Builder::Mount;
    match (&model.package, &model.artifact) {
        (Some(package), None) if !mounts => {
            if !is_url(&package.url) {
                problems.push(format!(
                    "spec.model.package.url: `{}` is no http or https URL; other than letters and \
                     digits, escape what it holds",
                    package.url
                ));
            }
            let sha256 = package.sha256.to_ascii_lowercase();
            if !is_sha256(&sha256) {
                problems.push(
                    "spec.model.package.sha256: expected 64 hexadecimal digits, as sha256sum \
                     prints them"
                        .to_owned(),
                );
            }
            Some(Source::Package {
                url: package.url.clone(),
                sha256,
                file,
                size: package.size_bytes.unwrap_or(0),
            })
        }
        (None, Some(artifact)) if mounts => match Image::parse(artifact) {
            Ok(image) if image.digest.is_some() => Some(Source::Artifact(image)),
            Ok(_) => {
                problems.push(format!(
                    "spec.model.artifact: `{artifact}` has no digest, so it may become another \
                     model; add `@sha256:` and its digest"
                ));
                None
            }
            Err(problem) => {
                problems.push(format!("spec.model.artifact: {problem}"));
                None
            }
        },
        (Some(_), Some(_)) => {
            problems.push(
                "spec.model.artifact: set, as is spec.model.package; a model is one of them"
                    .to_owned(),
            );
            None
        }
        (_, None) => {
            problems.push(if mounts {
                "spec.model.artifact: missing; models are mounted here, so name the artifact of a \
                 registry that holds this one"
                    .to_owned()
            } else {
                "spec.model.package: missing; name the file of the model, and its SHA-256"
                    .to_owned()
            });
            None
        }
        (None, Some(_)) => {
            problems.push(
                "spec.model.artifact: set, but models are built into images here; name a \
                 spec.model.package, or set /imageBuilder/builder to mount"
                    .to_owned(),
            );
            None
        }
    }
}
