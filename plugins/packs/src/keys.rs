//! The keys of the configuration: what each may hold, how each cloud calls it, which
//! packs need it, and which release it reaches.
//!
//! The keys of AWS are those of the published example. Those of the other two are ours,
//! one for each of AWS: an identity is an IAM role there, the e-mail of a service account
//! in Google Cloud and a client id in Azure, and the names say so.

use crate::catalog::{APPS, IDENTITY, ISTIO, REPOSITORY, SPICEDB, TEMPORAL};
use crate::cloud::Cloud;

/// A key of the configuration.
pub(crate) struct Key {
    /// Its JSON Pointer for each cloud; empty where a cloud has none. A `*` stands for
    /// any one name.
    pub(crate) paths: [&'static str; 3],
    pub(crate) form: Form,
    /// Whether what it holds may stand in Secrets only.
    pub(crate) secret: bool,
    pub(crate) by: By,
    /// The packs that cannot do without it.
    pub(crate) needed_by: &'static [&'static str],
}

/// What a key may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Bool,
    /// An `https` URL.
    Url,
    /// A host name.
    Host,
    /// An `oci` URL.
    Oci,
    OneOf(&'static [&'static str]),
    /// JSON, as such or as a text.
    Json,
    /// PEM, as base64.
    Pem,
}

/// Who uses a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Every release.
    Every,
    /// The releases of these names.
    Releases(&'static [&'static str]),
    /// The plugin itself, for what it renders beside releases.
    Packs,
}

impl Key {
    /// What it is called whatever the cloud: its path on AWS.
    pub(crate) fn id(&self) -> &'static str {
        self.paths[0]
    }

    pub(crate) fn path(&self, cloud: Cloud) -> &'static str {
        cloud.of(self.paths)
    }

    /// Whether a release gets it.
    pub(crate) fn reaches(&self, release: &str) -> bool {
        match self.by {
            By::Every => true,
            By::Releases(releases) => releases.contains(&release),
            By::Packs => false,
        }
    }

    const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    const fn needed(mut self, packs: &'static [&'static str]) -> Self {
        self.needed_by = packs;
        self
    }
}

/// A key that is called the same everywhere.
const fn key(path: &'static str, form: Form, by: By) -> Key {
    of_clouds([path; 3], form, by)
}

const fn of_clouds(paths: [&'static str; 3], form: Form, by: By) -> Key {
    Key {
        paths,
        form,
        secret: false,
        by,
        needed_by: &[],
    }
}

/// A key of the same name in the block of each cloud.
macro_rules! each {
    ($name:literal, $form:expr, $by:expr) => {
        each!([$name, $name, $name], $form, $by)
    };
    ([$aws:literal, $gcp:literal, $azure:literal], $form:expr, $by:expr) => {
        of_clouds(
            [
                concat!("/aws/", $aws),
                concat!("/gcp/", $gcp),
                concat!("/azure/", $azure),
            ],
            $form,
            $by,
        )
    };
}

use Form::{Bool, Host, Json, Oci, OneOf, Pem, Text, Url};

/// Packs with releases, which all need to know what they are installed for.
const WITH_RELEASES: &[&str] = &[ISTIO, SPICEDB, IDENTITY, TEMPORAL, APPS];
const WITH_CHARTS: &[&str] = &[REPOSITORY, ISTIO, SPICEDB, IDENTITY, TEMPORAL, APPS];

const EVERY_APP: By = By::Releases(&[
    "istio-gateway",
    "sgp",
    "agentex",
    "sae",
    "cloud-deploy",
    "compass",
    "datadog",
    "dex",
    "model-engine",
    "reducto",
    "registry-proxy",
    "train",
]);
const SGP: By = By::Releases(&["sgp"]);
const COMPASS: By = By::Releases(&["compass"]);
const REDUCTO: By = By::Releases(&["reducto"]);
const DEPLOY: By = By::Releases(&["cloud-deploy"]);
const ENGINE: By = By::Releases(&["model-engine"]);
const DEX: By = By::Releases(&["dex"]);
const TRAIN: By = By::Releases(&["train"]);
const PROXY: By = By::Releases(&["registry-proxy"]);
const DATADOG: By = By::Releases(&["datadog"]);
const LOGIN: By = By::Releases(&["identity-service"]);

/// All keys.
pub(crate) const KEYS: &[Key] = &[
    key("/cloudProvider", OneOf(&["aws", "gcp", "azure"]), By::Every),
    key("/baseRepository", Oci, By::Packs).needed(WITH_CHARTS),
    key("/workspaceId", Text, By::Every).needed(WITH_RELEASES),
    key("/deploymentURL", Url, By::Every).needed(WITH_RELEASES),
    key("/baseDomain", Host, By::Every).needed(WITH_RELEASES),
    key("/authType", OneOf(&["saml", "oidc"]), LOGIN).needed(&[IDENTITY]),
    key("/samlSetupEnabled", Bool, LOGIN),
    key("/oidcSetupEnabled", Bool, LOGIN),
    key(
        "/scaletrain_tenant_prefix",
        Text,
        By::Releases(&["sgp", "train"]),
    ),
    key(
        "/train_tenant_prefix",
        Text,
        By::Releases(&["sgp", "train"]),
    ),
    key("/deployAgentex", Bool, By::Releases(&["sgp", "agentex"])),
    key("/deploySae", Bool, By::Releases(&["sgp", "sae"])),
    key("/frontDoorSSLCertB64", Pem, By::Packs).needed(&[ISTIO]),
    key("/frontDoorSSLKeyB64", Pem, By::Packs)
        .secret()
        .needed(&[ISTIO]),
    key("/initialDesiredState", Json, By::Packs),
    key("/datadog/enabled", Bool, DATADOG),
    key("/datadog/env", Text, DATADOG),
    key("/datadog/clusterName", Text, DATADOG),
    key("/datadog/secretName", Text, DATADOG),
    key("/datadog/irsaRoleArn", Text, DATADOG),
    each!(
        ["accountId", "projectId", "subscriptionId"],
        Text,
        EVERY_APP
    )
    .needed(&[APPS]),
    each!("region", Text, EVERY_APP).needed(&[APPS]),
    each!("prefix", Text, EVERY_APP),
    each!("clusterName", Text, EVERY_APP).needed(&[APPS]),
    each!("nodeSubnets", Text, SGP),
    each!(
        ["nodeSecurityGroup", "nodeNetworkTag", "nodeSecurityGroup"],
        Text,
        SGP
    ),
    each!(
        [
            "karpenterIrsaArn",
            "karpenterServiceAccount",
            "karpenterClientId"
        ],
        Text,
        SGP
    ),
    of_clouds(
        ["/aws/targetGroupArn", "", ""],
        Text,
        By::Releases(&["istio-gateway"]),
    )
    .needed(&[ISTIO]),
    each!("postgresHostTemporal", Host, By::Releases(&["temporalf"])).needed(&[TEMPORAL]),
    each!(
        [
            "modelEngineS3Bucket",
            "modelEngineBucket",
            "modelEngineContainer"
        ],
        Text,
        ENGINE
    ),
    each!(
        [
            "sqsQueuePolicyTemplate",
            "pubsubPolicyTemplate",
            "serviceBusPolicyTemplate"
        ],
        Text,
        ENGINE
    ),
    each!(
        [
            "sqsQueueTagTemplate",
            "pubsubLabelTemplate",
            "serviceBusTagTemplate"
        ],
        Text,
        ENGINE
    ),
    each!(
        [
            "compassBucketName",
            "compassBucketName",
            "compassContainerName"
        ],
        Text,
        COMPASS
    ),
    each!("compassMongoHost", Text, COMPASS),
    each!("compassRedisHost", Text, COMPASS),
    each!(
        [
            "reductoBucketName",
            "reductoBucketName",
            "reductoContainerName"
        ],
        Text,
        REDUCTO
    ),
    each!("reductoDatabaseUrl", Text, REDUCTO).secret(),
    each!(
        [
            "reductoIrsaRoleArn",
            "reductoServiceAccount",
            "reductoClientId"
        ],
        Text,
        REDUCTO
    ),
    each!("reductoAzureVisionEndpoint", Text, REDUCTO),
    each!("reductoAzureVisionKey", Text, REDUCTO).secret(),
    each!(
        [
            "codeBuildProjectName",
            "cloudBuildTriggerName",
            "acrTaskName"
        ],
        Text,
        DEPLOY
    ),
    each!(
        ["codeBuildS3Bucket", "cloudBuildBucket", "acrTaskContainer"],
        Text,
        DEPLOY
    ),
    each!(
        [
            "codeBuildRegistryUrl",
            "cloudBuildRegistryUrl",
            "acrTaskRegistryUrl"
        ],
        Text,
        DEPLOY
    ),
    each!(
        [
            "codeBuildServiceRoleArn",
            "cloudBuildServiceAccount",
            "acrTaskClientId"
        ],
        Text,
        DEPLOY
    ),
    each!(
        "cloudDeployEnabled",
        Bool,
        By::Releases(&["sgp", "cloud-deploy"])
    ),
    each!(
        ["dex/irsaRoleArn", "dex/serviceAccount", "dex/clientId"],
        Text,
        DEX
    ),
    each!("dex/prefix", Text, DEX),
    each!(
        [
            "identities/*/irsaArn",
            "identities/*/serviceAccount",
            "identities/*/clientId"
        ],
        Text,
        By::Releases(&["identity-service", "sgp"])
    ),
    each!(
        [
            "identities/*/secretArns/*",
            "identities/*/secretNames/*",
            "identities/*/secretUris/*"
        ],
        Text,
        By::Releases(&["identity-service", "sgp"])
    ),
    each!(
        [
            "train/irsaRoleArn",
            "train/serviceAccount",
            "train/clientId"
        ],
        Text,
        TRAIN
    ),
    each!(
        [
            "train/sagemakerExecutionRoleArn",
            "train/vertexServiceAccount",
            "train/azureMlClientId"
        ],
        Text,
        TRAIN
    ),
    each!(
        [
            "train/sagemakerSecurityGroupId",
            "train/vertexNetwork",
            "train/azureMlSubnetId"
        ],
        Text,
        TRAIN
    ),
    each!("train/databaseHost", Text, TRAIN),
    each!(
        [
            "train/dataBucket",
            "train/dataBucket",
            "train/dataContainer"
        ],
        Text,
        TRAIN
    ),
    each!(
        [
            "train/checkpointsBucket",
            "train/checkpointsBucket",
            "train/checkpointsContainer"
        ],
        Text,
        TRAIN
    ),
    each!(
        [
            "train/outputBucket",
            "train/outputBucket",
            "train/outputContainer"
        ],
        Text,
        TRAIN
    ),
    each!(
        [
            "train/stagingBucket",
            "train/stagingBucket",
            "train/stagingContainer"
        ],
        Text,
        TRAIN
    ),
    each!(
        [
            "registryProxy/irsaRoleArn",
            "registryProxy/serviceAccount",
            "registryProxy/clientId"
        ],
        Text,
        PROXY
    ),
    each!(
        [
            "registryProxy/ecrRepositoryUrl",
            "registryProxy/artifactRegistryUrl",
            "registryProxy/acrRepositoryUrl"
        ],
        Text,
        PROXY
    ),
    each!("registryProxy/jwtSecret", Text, PROXY).secret(),
    each!("registryProxy/workspaceConfig", Json, PROXY),
    // Not in the published example: what it leaves to other means.
    each!(
        ["fluxIrsaRoleArn", "fluxServiceAccount", "fluxClientId"],
        Text,
        By::Packs
    ),
    each!(
        "spicedb/presharedKey",
        Text,
        By::Releases(&["spicedb", "identity-service"])
    )
    .secret(),
    each!("spicedb/datastoreUri", Text, By::Releases(&["spicedb"])).secret(),
    each!(
        "temporal/databasePassword",
        Text,
        By::Releases(&["temporalf"])
    )
    .secret(),
];

/// A place in the configuration: the keys that stand there and below it, each with the
/// rest of its path.
pub(crate) struct Place(Vec<(&'static Key, &'static str)>);

/// What there may be in a place.
pub(crate) enum At {
    Key(&'static Key),
    /// A part of the paths of some keys.
    Inside(Place),
    Unknown,
}

impl Place {
    /// All of the configuration, as this cloud has it.
    pub(crate) fn whole(cloud: Cloud) -> Self {
        let keys = KEYS.iter().filter_map(|key| {
            let rest = key.path(cloud).strip_prefix('/')?;
            Some((key, rest))
        });
        Self(keys.collect())
    }

    /// What there may be in an entry of it.
    pub(crate) fn at(&self, name: &str) -> At {
        let mut inside = Vec::new();
        for (key, path) in &self.0 {
            let (first, rest) = match path.split_once('/') {
                Some((first, rest)) => (first, Some(rest)),
                None => (*path, None),
            };
            if first != name && first != "*" {
                continue;
            }
            match rest {
                Some(rest) => inside.push((*key, rest)),
                None => return At::Key(key),
            }
        }
        if inside.is_empty() {
            At::Unknown
        } else {
            At::Inside(Self(inside))
        }
    }
}
