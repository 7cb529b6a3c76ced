//! The chart of models: the commands and recipes of the management agent's own chart,
//! what is granted, and that models are built as it says.

mod buildah;
mod ground;
mod install;
mod kubelet;
mod life;
mod recipes;
mod supervisor;

/// What the document's minimal command says, its arguments word for word but for the
/// chart's name and its three placeholders.
const MINIMUM: [&str; 8] = [
    "ingress.className=mlops",
    "ingress.outfacingURLPrefix=http://your-company.com/deployments/",
    "datarobot.apiSecretName=mlops-api-key",
    "datarobot.predictionEnvId=64f0c2a1b7d3e90012345678",
    "bosun.repository=registry.your-company.com/datarobot/mlops-management-agent",
    "tracking.image=registry.your-company.com/datarobot/mlops-tracking-agent:latest",
    "imageBuilder.ppsImage=registry.your-company.com/datarobot/datarobot-portable-prediction-api:10.2.1",
    "imageBuilder.generatedImageRepository=registry.your-company.com/mlops/frozen-models",
];

/// The recipes for registries, as they stand in the document.
const RECIPES: [(&str, &str); 5] = [
    (
        "aws",
        "imageBuilder:\n  configMap: \"docker-config\"\n  serviceAccount:\n    create: false\n    \
         name: \"datarobot-management-agent-image-builder\"\n",
    ),
    ("azure", "imageBuilder:\n  secretName: \"registry-creds\"\n"),
    (
        "gcp",
        "imageBuilder:\n  serviceAccount:\n    create: true\n    annotations: {\n      \
         iam.gke.io/gcp-service-account: gcr-push-user@project.iam.gserviceaccount.com\n    }\n    \
         name: datarobot-management-agent-image-builder\n",
    ),
    (
        "generic",
        "imageBuilder:\n  secretName: \"registry-creds\"\n",
    ),
    (
        "insecure",
        "imageBuilder:\n  secretName: \"registry-creds\"\n  insecureRegistries:\n    - \
         registry.your-company.com\n",
    ),
];

/// The arguments of the document's command behind the chart's name.
fn minimum() -> Vec<&'static str> {
    let mut arguments = vec!["--namespace", "datarobot-mlops"];
    for setting in MINIMUM {
        arguments.extend(["--set", setting]);
    }
    arguments
}
