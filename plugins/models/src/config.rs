//! The configuration, in the words of the management agent's chart.
//!
//! What its README calls one thing and its later documentation another may be written
//! either way. [`Settings`](crate::settings::Settings) is what comes of it.

use reeve_sdk::prelude::*;

/// Where models are built and how they are served.
#[config]
pub(crate) struct Config {
    /// Namespaces whose ModelDeployments are served, datarobot-mlops unless set.
    pub(crate) namespaces: Vec<String>,
    /// How models are reached from outside.
    pub(crate) ingress: Ingress,
    /// How models are served and reached: the later name of ingress, and more.
    pub(crate) prediction_server: PredictionServer,
    /// DataRobot, from which models come.
    pub(crate) datarobot: Datarobot,
    /// The image of the management agent. It does nothing here: this plugin is in its
    /// place.
    pub(crate) bosun: AgentImage,
    /// The later name of bosun.
    pub(crate) management_agent: AgentImage,
    /// The monitoring agent, which runs beside each model if it has an image.
    pub(crate) tracking: Tracking,
    /// The later name of tracking.
    pub(crate) tracking_agent: Tracking,
    /// How images of models are built.
    pub(crate) image_builder: ImageBuilder,
    /// Who is told how the deployments of a prediction environment are.
    pub(crate) supervisor: Supervisor,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            namespaces: vec!["datarobot-mlops".to_owned()],
            ingress: Ingress::default(),
            prediction_server: PredictionServer::default(),
            datarobot: Datarobot::default(),
            bosun: AgentImage::default(),
            management_agent: AgentImage::default(),
            tracking: Tracking::default(),
            tracking_agent: Tracking::default(),
            image_builder: ImageBuilder::default(),
            supervisor: Supervisor::default(),
        }
    }
}

/// Who is told how the deployments of a prediction environment are.
#[config]
#[derive(Default)]
pub(crate) struct Supervisor {
    /// What it is told, and where.
    pub(crate) report: Report,
}

/// What a supervisor is told about a ModelDeployment with the label
/// models.reeve.dev/prediction-environment.
#[config]
pub(crate) struct Report {
    /// Where, such as https://app.datarobot.com/api/v2/remoteEvents/. Nobody is told
    /// anything unless it is set. In its path may stand what may stand in the body.
    pub(crate) url: String,
    /// With which method, POST unless set.
    pub(crate) method: String,
    /// What is sent: JSON with `{name}` in the place of what is reported. An event of
    /// DataRobot unless set.
    pub(crate) body: Json,
    /// What the supervisor calls what has happened.
    pub(crate) events: Events,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            url: String::new(),
            method: "POST".to_owned(),
            body: Json(json!({
                "eventType": "{event}",
                "timestamp": "{since}",
                "deploymentId": "{deploymentId}",
                "predictionEnvironmentId": "{environmentId}",
                "message": "{message}",
                "data": {"newModelId": "{modelId}", "reason": "{reason}"},
            })),
            events: Events::default(),
        }
    }
}

/// What a supervisor calls what has happened to a deployment. Where one is empty it is
/// told nothing of that.
#[config]
pub(crate) struct Events {
    /// It is being built or rolled out for the first time, or again after a stop.
    pub(crate) launch_started: String,
    /// It serves.
    pub(crate) launch_succeeded: String,
    /// It serves nothing, and will not by itself.
    pub(crate) launch_failed: String,
    /// Another model is being built or rolled out; the old one serves.
    pub(crate) replacement_started: String,
    /// The other model serves.
    pub(crate) replacement_succeeded: String,
    /// The old model goes on serving.
    pub(crate) replacement_failed: String,
    /// It is being stopped.
    pub(crate) shutdown_started: String,
    /// Nothing serves any more.
    pub(crate) shutdown_succeeded: String,
    /// Servers that answered are missing.
    pub(crate) health_degraded: String,
    /// They answer again.
    pub(crate) health_restored: String,
}

impl Default for Events {
    fn default() -> Self {
        let management = |what: &str| format!("model_deployments.{what}");
        Self {
            launch_started: management("deployment_launch_started"),
            launch_succeeded: management("deployment_launch_succeeded"),
            launch_failed: management("deployment_launch_failed"),
            replacement_started: management("model_replacement_started"),
            replacement_succeeded: management("model_replacement_succeeded"),
            replacement_failed: management("model_replacement_failed"),
            shutdown_started: management("deployment_shutdown_started"),
            shutdown_succeeded: management("deployment_shutdown_succeeded"),
            health_degraded: management("management_agent_service_health_yellow"),
            health_restored: management("management_agent_service_health_green"),
        }
    }
}

/// How models are reached from outside.
#[expect(
    non_snake_case,
    reason = "the name in the chart has three capitals, which are those of the field"
)]
#[config]
#[derive(Default)]
pub(crate) struct Ingress {
    /// Class of the Ingresses.
    pub(crate) class_name: String,
    /// The URL below which models are found, such as https://example.com/deployments/.
    /// Without it there are no Ingresses.
    pub(crate) outfacing_URL_prefix: String,
}

/// How models are served and reached.
#[config]
#[derive(Default)]
pub(crate) struct PredictionServer {
    /// Class of the Ingresses.
    pub(crate) ingress_class_name: String,
    /// The URL below which models are found.
    pub(crate) outfacing_url_root: String,
    /// Secrets with which the images of models are pulled.
    pub(crate) image_pull_secrets: Vec<String>,
}

/// DataRobot, from which models come.
#[config]
pub(crate) struct Datarobot {
    /// Its URL, https://app.datarobot.com unless set. Told to the monitoring agent.
    pub(crate) url: String,
    /// Secret that holds the API token under the key secret.
    pub(crate) api_secret_name: String,
    /// Id of the prediction environment.
    pub(crate) prediction_env_id: String,
    /// Formats of models that are accepted, datarobot alone unless set;
    /// datarobotScoringCode is the other one.
    pub(crate) model_formats: Vec<String>,
}

impl Default for Datarobot {
    fn default() -> Self {
        Self {
            url: "https://app.datarobot.com".to_owned(),
            api_secret_name: String::new(),
            prediction_env_id: String::new(),
            model_formats: vec!["datarobot".to_owned()],
        }
    }
}

/// The image of the management agent.
#[config]
#[derive(Default)]
pub(crate) struct AgentImage {
    /// Its repository.
    pub(crate) repository: String,
}

/// The monitoring agent.
#[config]
#[derive(Default)]
pub(crate) struct Tracking {
    /// Its image. Without one, models are not monitored.
    pub(crate) image: String,
}

/// How images of models are built.
#[config]
pub(crate) struct ImageBuilder {
    /// What builds: kaniko unless set. With mount nothing is built: the model is an
    /// artifact of a registry, and is mounted.
    pub(crate) builder: Builder,
    /// Image of the builder; one that is known to work unless set.
    pub(crate) image: String,
    /// Image with curl, sha256sum and a shell, which fetches models.
    pub(crate) fetch_image: String,
    /// The portable prediction server: the image that models are put into. By tag or
    /// digest, never latest.
    pub(crate) pps_image: String,
    /// What that image takes on a disk, in bytes: 12 GiB unless set.
    pub(crate) pps_image_bytes: u64,
    /// Whether models that are served already are built anew when ppsImage changes.
    pub(crate) rebuild_on_pps_image_change: bool,
    /// Repository to which images are pushed, without a tag.
    pub(crate) generated_image_repository: String,
    /// Repository for layers that builds share; none are shared unless set.
    pub(crate) cache_repository: String,
    /// ConfigMap with the key config.json, with which registries are logged in to.
    pub(crate) config_map: String,
    /// Secret of type kubernetes.io/dockerconfigjson, with which registries are logged
    /// in to.
    pub(crate) secret_name: String,
    /// Registries, with their ports, that speak plain HTTP.
    pub(crate) insecure_registries: Vec<String>,
    /// Registries, with their ports, whose certificates are not verified.
    pub(crate) skip_ssl_verify_registries: Vec<String>,
    /// More volumes of the pods that build, as Kubernetes writes them.
    pub(crate) extra_volumes: Vec<Json>,
    /// Where these are mounted in the builder.
    pub(crate) extra_volume_mounts: Vec<Json>,
    /// More arguments for the builder.
    pub(crate) extra_arguments: Vec<String>,
    /// Whether BuildKit runs privileged in a user namespace of its own, instead of
    /// without privileges in that of the node.
    pub(crate) user_namespaces: bool,
    /// The account that builds run as.
    pub(crate) service_account: ServiceAccount,
    /// Rights of that account. They do nothing here: builds need none.
    pub(crate) rbac: Rbac,
}

impl Default for ImageBuilder {
    fn default() -> Self {
        Self {
            builder: Builder::default(),
            image: String::new(),
            fetch_image: "docker.io/curlimages/curl:8.16.0".to_owned(),
            pps_image: String::new(),
            pps_image_bytes: 12 << 30,
            rebuild_on_pps_image_change: false,
            generated_image_repository: String::new(),
            cache_repository: String::new(),
            config_map: String::new(),
            secret_name: String::new(),
            insecure_registries: Vec::new(),
            skip_ssl_verify_registries: Vec::new(),
            extra_volumes: Vec::new(),
            extra_volume_mounts: Vec::new(),
            extra_arguments: Vec::new(),
            user_namespaces: false,
            service_account: ServiceAccount::default(),
            rbac: Rbac::default(),
        }
    }
}

/// What builds an image.
#[config(lowercase)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Builder {
    /// The fork of kaniko that is kept up.
    #[default]
    Kaniko,
    /// BuildKit without a daemon.
    Buildkit,
    /// Buildah, as on OpenShift.
    Buildah,
    /// Nothing: models are mounted.
    Mount,
}

impl Builder {
    /// As in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kaniko => "kaniko",
            Self::Buildkit => "buildkit",
            Self::Buildah => "buildah",
            Self::Mount => "mount",
        }
    }
}

/// The account that builds run as.
#[config]
pub(crate) struct ServiceAccount {
    /// Whether the plugin makes it. If not, somebody else has to.
    pub(crate) create: bool,
    /// Its name, datarobot-management-agent-image-builder unless set.
    pub(crate) name: String,
    /// Its annotations, by which clouds know who it is.
    pub(crate) annotations: std::collections::BTreeMap<String, String>,
}

impl Default for ServiceAccount {
    fn default() -> Self {
        Self {
            create: true,
            name: "datarobot-management-agent-image-builder".to_owned(),
            annotations: std::collections::BTreeMap::new(),
        }
    }
}

/// Rights of the account that builds run as.
#[config]
#[derive(Default)]
pub(crate) struct Rbac {
    /// Whether there are any.
    pub(crate) create: bool,
}
