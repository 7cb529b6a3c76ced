//! `reeve pack render`.

use super::offline::{Thought, reference_of};
use super::parts::{DESIRED_STATE, RELEASES};
use crate::compile::CacheArgs;
use crate::looking::{HIDDEN, Output};
use crate::output;
use crate::plugin::{describe, read_config, read_plugin};
use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use reeve_core::desired::Desired;
use reeve_core::printable::printable;
use reeve_core::{Failure, Manifest, ObjectReference, chain};
use reeve_engine::{Component, Limits, Request};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Print what packs would apply, without a cluster
///
/// The component runs here on the documents that are given, as if all that a pack needs
/// were ready. Of a cluster that there is, `reeve plan` says what would change.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 it was rendered; 1 the documents cannot be used, and it says why; 2 \
    a file or the command line is unusable.\n\nExample:\n  \
    reeve pack render istio --component packs.wasm --configuration system-manager-config.json \\\n    \
    --desired-state desired-state.json"
)]
pub(super) struct RenderArgs {
    /// Only these packs
    #[arg(value_name = "PACK")]
    names: Vec<String>,
    /// The component of packs, or the ConfigMaps that `reeve plugin package` wrote
    #[arg(long, value_name = "FILE")]
    component: PathBuf,
    /// system-manager-config.json
    #[arg(long, value_name = "FILE")]
    configuration: PathBuf,
    /// desired-state.json; without it initialDesiredState of the configuration holds
    #[arg(long, value_name = "FILE")]
    desired_state: Option<PathBuf>,
    /// The manifests of Flux, YAML or a JSON List; without them they are left out
    #[arg(long, value_name = "FILE")]
    flux_manifests: Option<PathBuf>,
    /// config.yaml of the plugin, such as pullSecret; role and places do not matter here
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Take a desired state without packs as meant, as spec.allowEmpty of the PackSet does
    #[arg(long)]
    allow_empty: bool,
    /// Print what Secrets hold
    #[arg(long)]
    show_secrets: bool,
    /// Form of the objects
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    cache: CacheArgs,
}

/// Where documents are, in the cluster that is thought of.
const NAMESPACE: &str = "sgp-system-manager";
const CONFIGURATION: &str = "system-manager-config.json";
const STATE: &str = "desired-state.json";
const MANIFESTS: &str = "flux.json";

/// Kinds of what a plugin of packs writes that have no namespace.
const CLUSTER_KINDS: [&str; 6] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "Namespace",
    "Pack",
    "PackSet",
];

/// A pack as it would be applied.
struct Rendered {
    name: String,
    objects: Vec<Value>,
}

/// Why there is nothing to print; for the user, who has written the documents.
struct Refusal(Vec<String>);

pub(super) async fn run(args: RenderArgs) -> anyhow::Result<ExitCode> {
    let renderer = Renderer::new(&args).await?;
    let packs = match renderer.packs().await? {
        Ok(packs) => packs,
        Err(Refusal(problems)) => {
            for problem in problems {
                output::complain(problem);
            }
            return Ok(ExitCode::FAILURE);
        }
    };
    for name in &args.names {
        if !packs.iter().any(|pack| pack.name == *name) {
            let names: Vec<&str> = packs.iter().map(|pack| pack.name.as_str()).collect();
            bail!(
                "pack {name} is not in the desired state; in it are: {}",
                names.join(", ")
            );
        }
    }
    let chosen = packs
        .into_iter()
        .filter(|pack| args.names.is_empty() || args.names.contains(&pack.name));
    let chosen: Vec<Rendered> = chosen.map(|pack| pack.shown(args.show_secrets)).collect();
    output::print(written(&chosen, args.output)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The component, and the cluster that it is shown.
struct Renderer {
    component: Component,
    /// What all parts are told.
    config: Map<String, Value>,
    thought: Thought,
    allow_empty: bool,
    /// What the documents are called in that cluster, and the files that they are.
    files: Vec<(String, String)>,
}

impl Renderer {
    async fn new(args: &RenderArgs) -> anyhow::Result<Self> {
        let source = read_plugin(&args.component, None, None)?;
        let described = describe(&source, &args.cache).await?;
        if described.metadata.name != "packs" {
            bail!(
                "{} is the component {}, and not packs",
                args.component.display(),
                described.metadata.name
            );
        }
        let mut config: Map<String, Value> = match &args.config {
            None => Map::new(),
            Some(path) => serde_json::from_slice(&read_config(path)?)
                .with_context(|| format!("{}: expected an object", path.display()))?,
        };
        // Documents are where the plugin looks for them by itself.
        for place in ["configuration", "desiredState", "fluxManifests"] {
            config.remove(place);
        }
        let mut thought = Thought::default();
        let mut files = Vec::new();
        let mut store = |path: &Path, name: &str, key: &str| -> anyhow::Result<()> {
            let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            thought.put(json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "data": {key: STANDARD.encode(text)},
            }));
            files.push((
                format!("Secret {NAMESPACE}/{name}, entry {key}"),
                path.display().to_string(),
            ));
            Ok(())
        };
        store(&args.configuration, "system-manager-config", CONFIGURATION)?;
        if let Some(path) = &args.desired_state {
            store(path, "desired-state", STATE)?;
        }
        if let Some(path) = &args.flux_manifests {
            store(path, "flux-manifests", MANIFESTS)?;
            config.insert(
                "fluxManifests".to_owned(),
                json!({"secret": "flux-manifests", "namespace": NAMESPACE, "key": MANIFESTS}),
            );
        }
        for name in ["source-controller", "helm-controller"] {
            thought.put(json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": name, "namespace": "flux-system"},
            }));
        }
        Ok(Self {
            component: described.component,
            config,
            thought,
            allow_empty: args.allow_empty,
            files,
        })
    }

    /// All packs of the desired state, in the order in which they can be installed.
    async fn packs(mut self) -> anyhow::Result<Result<Vec<Rendered>, Refusal>> {
        let set = json!({
            "apiVersion": "packs.reeve.dev/v1alpha1", "kind": "PackSet",
            "metadata": {"name": "packs"}, "spec": {"allowEmpty": self.allow_empty},
        });
        let wanted = match self.part(DESIRED_STATE, &set).await? {
            Ok(wanted) => wanted,
            Err(failure) => return Ok(Err(Refusal(vec![self.said(&failure)]))),
        };
        let mut rendered = Vec::new();
        let mut left = Vec::new();
        for mut pack in wanted {
            // What it would apply once it is resumed.
            let said = pack.get_mut("spec").and_then(Value::as_object_mut);
            said.map(|said| said.remove("suspend"));
            self.thought.put(pack.clone());
            match pack.pointer("/spec/enabled") == Some(&Value::Bool(false)) {
                true => rendered.push(Rendered {
                    name: reference_of(&pack).name,
                    objects: Vec::new(),
                }),
                false => left.push(pack),
            }
        }
        loop {
            let (mut waiting, mut reasons) = (Vec::new(), Vec::new());
            let before = left.len();
            for pack in left {
                let name = reference_of(&pack).name;
                match self.pack(&name, &pack).await? {
                    Ok(objects) => rendered.push(Rendered { name, objects }),
                    Err(failure) => {
                        reasons.push(format!("pack {name}: {}", self.said(&failure)));
                        waiting.push(pack);
                    }
                }
            }
            if waiting.is_empty() {
                return Ok(Ok(rendered));
            }
            if waiting.len() == before {
                return Ok(Err(Refusal(reasons)));
            }
            left = waiting;
        }
    }

    /// What a part says, of files where it says what they are called in the cluster.
    fn said(&self, failure: &Failure) -> String {
        let said = failure.to_string();
        let files = self.files.iter();
        files.fold(said, |said, (place, file)| said.replace(place, file))
    }

    /// What all parts have for a pack. It is then thought to be there.
    async fn pack(
        &mut self,
        name: &str,
        pack: &Value,
    ) -> anyhow::Result<Result<Vec<Value>, Failure>> {
        let mut objects = Vec::new();
        let parts: &[&str] = match name {
            "flux" => &["Flux"],
            _ => &[RELEASES, "FrontDoor"],
        };
        for role in parts {
            match self.part(role, pack).await? {
                Err(failure) => return Ok(Err(failure)),
                Ok(more) => {
                    for object in &more {
                        let mut object = object.clone();
                        object["metadata"]["labels"]["reeve.dev/plugin"] = json!("packs");
                        self.thought.put(object);
                    }
                    objects.extend(more);
                }
            }
        }
        Ok(Ok(objects))
    }

    /// What one part has for a primary, without what is only there for the end.
    async fn part(
        &self,
        role: &str,
        primary: &Value,
    ) -> anyhow::Result<Result<Vec<Value>, Failure>> {
        let mut config = self.config.clone();
        config.insert("role".to_owned(), json!(role));
        let config = Value::Object(config).to_string();
        let described = self
            .component
            .describe(config.clone().into(), &Limits::default())
            .await?
            .value
            .map_err(|error| anyhow::anyhow!("the plugin refuses its configuration: {error}"))?;
        let manifest = Manifest::try_from(described).map_err(|error| {
            let why = printable(chain(&error));
            anyhow::anyhow!("its manifest cannot be used: {why}")
        })?;
        let request = Request {
            primary: primary.to_string().into(),
            config: config.into(),
            facts: Vec::new(),
            unit: None,
        };
        let view = Arc::new(self.thought.clone());
        let limits = Limits::default();
        let called = self.component.reconcile(request, view, &limits).await?;
        let outcome = match called.value {
            Ok(outcome) => outcome,
            Err(failure) => return Ok(Err(failure)),
        };
        let namespaced =
            |object: &ObjectReference| !CLUSTER_KINDS.contains(&object.kind.kind.as_str());
        let primary = reference_of(primary);
        let desired = Desired::check(outcome, &manifest, &primary, namespaced);
        let desired = desired.with_context(|| format!("what {primary} consists of is refused"))?;
        let bodies = desired.objects.into_iter().map(|object| object.body);
        Ok(Ok(bodies
            .filter(|body| body["metadata"]["annotations"]["reeve.dev/hook"].is_null())
            .collect()))
    }
}

impl Rendered {
    /// As it is printed.
    fn shown(mut self, secrets: bool) -> Self {
        for object in &mut self.objects {
            if secrets || object["kind"] != "Secret" {
                continue;
            }
            for field in ["data", "stringData"] {
                let data = object.get_mut(field).and_then(Value::as_object_mut);
                for value in data.into_iter().flat_map(Map::values_mut) {
                    *value = json!(HIDDEN);
                }
            }
        }
        self
    }
}

fn written(packs: &[Rendered], output: Output) -> anyhow::Result<String> {
    if output == Output::Json {
        let packs = packs
            .iter()
            .map(|pack| json!({"name": pack.name, "objects": pack.objects}));
        let packs = json!({"packs": packs.collect::<Vec<_>>()});
        return Ok(format!("{packs:#}\n"));
    }
    let mut text = String::new();
    for pack in packs {
        for object in &pack.objects {
            let yaml = serde_saphyr::to_string(object).context("cannot write YAML")?;
            text.push_str(&format!("---\n# pack {}\n{yaml}", pack.name));
        }
    }
    Ok(text)
}
