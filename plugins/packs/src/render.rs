//! What a pack consists of: a pure function of the configuration and of what its Pack
//! says.

use reeve_sdk::prelude::*;
use serde_json::Map;

use crate::applyset::PART_OF;
use crate::catalog::{self, Definition, INGRESS, ISTIO, REPOSITORY, Release};
use crate::cloud::Cloud;
use crate::configuration::Configuration;
use crate::findings::Findings;
use crate::forms;
use crate::graph::{self, Specs};
use crate::json::{Template, fill};
use crate::kinds::{
    CONFIG_MAP, FLUX_NAMESPACE, HELM_RELEASE, HELM_REPOSITORY, NAMESPACE, OCI_REPOSITORY,
    PACK_LABEL, REVISION, SECRET, WAVE,
};
use crate::pack::Spec;
use crate::settings::Config;
use crate::values::{lay_over, put};

/// Below which value a release finds what the configuration says.
const GLOBAL: &str = "/global/sgp";
/// The Secret with the certificate of the front door.
pub(crate) const FRONT_DOOR: &str = "front-door-tls";
/// Where SpiceDB answers.
const SPICEDB_ENDPOINT: &str = "spicedb.spicedb.svc.cluster.local:50051";

/// Where all charts are. Nobody ever gives it a status.
const REPOSITORY_SPEC: &str = r#"{"type": "oci", "url": "$url"}"#;

/// A chart, looked for every five minutes.
const CHART_SPEC: &str = r#"{
    "interval": "5m",
    "url": "$url",
    "ref": {"semver": "$version"},
    "layerSelector": {
        "mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
        "operation": "copy"
    }
}"#;

/// A release, looked at every half hour. What fails is tried again, since by default the
/// first failure is final; definitions are upgraded, since by default they are not; and
/// edits by hand are put back, but for what autoscalers decide.
const RELEASE_SPEC: &str = r#"{
    "interval": "30m",
    "releaseName": "$name",
    "chartRef": {"kind": "OCIRepository", "name": "$name", "namespace": "flux-system"},
    "install": {"strategy": {"name": "RetryOnFailure", "retryInterval": "5m"}},
    "upgrade": {
        "strategy": {"name": "RetryOnFailure", "retryInterval": "5m"},
        "crds": "CreateReplace"
    },
    "driftDetection": {
        "mode": "enabled",
        "ignore": [{"paths": ["/spec/replicas"], "target": {"kind": "Deployment"}}]
    }
}"#;

/// The values of a release that may not be seen.
const VALUES_FROM: &str = r#"[{"kind": "Secret", "name": "$name"}]"#;

/// Waves within a pack: a namespace before what is in it, and a release, of which later
/// ones of a chain are in later waves, last. They go in the reverse of that.
const NAMESPACE_WAVE: usize = 0;
const SOURCE_WAVE: usize = 1;
const RELEASE_WAVE: usize = 2;

/// What everything is rendered from.
pub(crate) struct World<'a> {
    pub(crate) config: &'a Config,
    pub(crate) configuration: &'a Configuration,
    pub(crate) packs: &'a Specs<'a>,
}

/// A pack as it should be.
pub(crate) struct Rendered {
    /// Its objects, but for namespaces.
    pub(crate) objects: Vec<Value>,
    /// Stands for all of them but Secrets: it is to be seen on those that have it.
    pub(crate) revision: String,
    /// Those of them whose health is the pack's, and which carry the revision.
    pub(crate) judged: Vec<ObjectReference>,
    /// Of each patch whether there was an object for it.
    pub(crate) patched: Vec<bool>,
}

/// Renders a pack, noting what of the configuration is missing for it.
pub(crate) fn render(
    definition: &Definition,
    spec: &Spec,
    world: &World<'_>,
    findings: &mut Findings,
) -> Rendered {
    world.configuration.check_for(definition.name, findings);
    let mut pack = Pack {
        name: definition.name,
        chart: Template::new(CHART_SPEC),
        release: Template::new(RELEASE_SPEC),
        objects: Vec::new(),
        judged: Vec::new(),
        kept: kept(definition, world),
        needed: needed(definition, world),
    };
    if definition.name == REPOSITORY {
        pack.add_repository(world);
    }
    if definition.name == ISTIO {
        pack.add_certificate(world.configuration);
    }
    check_values(definition, spec, findings);
    for release in wanted(definition, world.configuration) {
        pack.add_release(definition, release, spec, world);
    }
    let patched = spec.patch(&mut pack.objects, findings);
    pack.finish(patched)
}

/// The releases of a pack that are wanted.
fn wanted<'a>(
    definition: &'a Definition,
    configuration: &'a Configuration,
) -> impl Iterator<Item = &'a Release> {
    let releases = definition.releases.iter();
    releases.filter(|release| configuration.wants(release))
}

/// The releases of a pack that are wanted, without those that its patches take out: nobody
/// has to wait for these.
fn kept<'a>(definition: &'a Definition, world: &World<'_>) -> Vec<&'a Release> {
    let bare = |release: &Release| {
        let (place, wave) = (
            Some(release.namespace),
            RELEASE_WAVE + depth(definition, release),
        );
        object(&HELM_RELEASE, place, release.name, definition.name, wave)
    };
    let mut objects: Vec<Value> = wanted(definition, world.configuration).map(bare).collect();
    if let Some(spec) = world.packs.get(definition.name) {
        // A patch of what is not there yet fails, and takes none out.
        let _ = spec.try_to_patch(&mut objects);
    }
    let mut kept = Vec::new();
    for release in definition.releases {
        let reference = HELM_RELEASE.object(release.name);
        if objects.iter().any(|object| is_called(object, &reference)) {
            kept.push(release);
        }
    }
    kept
}

/// Values for a release that there is not would be lost without a word.
pub(crate) fn check_values(definition: &Definition, spec: &Spec, findings: &mut Findings) {
    for (name, value) in spec.values.iter().flatten() {
        let path = format!("/spec/values/{name}");
        if !value.is_object() {
            findings.error(&path, "expected an object with values of the release");
        } else if !definition.releases.iter().any(|one| one.name == name) {
            let names: Vec<&str> = definition.releases.iter().map(|one| one.name).collect();
            let problem = match names.is_empty() {
                true => format!("pack {} has no releases; remove it", definition.name),
                false => format!(
                    "pack {} has no such release; there are {}",
                    definition.name,
                    names.join(", ")
                ),
            };
            findings.error(&path, problem);
        }
    }
}

/// A namespace that a pack makes.
pub(crate) fn namespace(pack: &str, name: &str, config: &Config) -> Value {
    let mut namespace = object(&NAMESPACE, None, name, pack, NAMESPACE_WAVE);
    let removal = if config.remove_namespaces {
        "allow"
    } else {
        "never"
    };
    annotate(&mut namespace, "reeve.dev/prune", removal);
    annotate(&mut namespace, "reeve.dev/delete", removal);
    namespace
}

/// What is made before a pack goes. Because there is one, its removal asks the plugin
/// first, which says no as long as other packs need it.
pub(crate) fn farewell(definition: &Definition) -> Value {
    let namespace = definition.namespaces.first().unwrap_or(&FLUX_NAMESPACE);
    let name = format!("pack-{}-ends", definition.name);
    let mut hook = object(&CONFIG_MAP, Some(namespace), &name, definition.name, 0);
    annotate(&mut hook, "reeve.dev/hook", "PreDelete");
    annotate(&mut hook, "reeve.dev/hook-delete-policy", "HookSucceeded");
    hook["data"]["pack"] = Value::from(definition.name);
    hook
}

fn object(kind: &Kind, namespace: Option<&str>, name: &str, pack: &str, wave: usize) -> Value {
    let mut object = Value::Null;
    object["apiVersion"] = Value::from(kind.api_version());
    object["kind"] = Value::from(kind.kind());
    let metadata = &mut object["metadata"];
    metadata["name"] = Value::from(name);
    metadata["labels"][PACK_LABEL] = Value::from(pack);
    if let Some(definition) = catalog::find(pack) {
        metadata["labels"][PART_OF] = Value::from(definition.set);
    }
    metadata["annotations"][WAVE] = Value::from(wave.to_string());
    if let Some(namespace) = namespace {
        metadata["namespace"] = Value::from(namespace);
    }
    object
}

fn annotate(object: &mut Value, key: &str, value: &str) {
    object["metadata"]["annotations"][key] = Value::from(value);
}

struct Pack<'a> {
    name: &'static str,
    chart: Template,
    release: Template,
    objects: Vec<Value>,
    judged: Vec<ObjectReference>,
    /// The releases that patches leave in it.
    kept: Vec<&'a Release>,
    /// What those that are the first of their chain wait for.
    needed: Vec<Value>,
}

impl Pack<'_> {
    fn object(&self, kind: &Kind, namespace: &str, name: &str, wave: usize) -> Value {
        object(kind, Some(namespace), name, self.name, wave)
    }

    fn add_repository(&mut self, world: &World<'_>) {
        let mut repository = self.object(&HELM_REPOSITORY, FLUX_NAMESPACE, self.name, SOURCE_WAVE);
        let url = world.configuration.text("/baseRepository");
        let url = Value::from(url.unwrap_or_default());
        repository["spec"] = with_login(fill(REPOSITORY_SPEC, &[("url", url)]), world);
        self.objects.push(repository);
        let reference = HELM_REPOSITORY.object(self.name);
        self.judged.push(reference.in_namespace(FLUX_NAMESPACE));
    }

    fn add_certificate(&mut self, configuration: &Configuration) {
        let pem = |id: &str| {
            let pem = configuration.text(id).and_then(forms::decode);
            forms::encode(&pem.unwrap_or_default())
        };
        let mut secret = self.object(&SECRET, INGRESS, FRONT_DOOR, SOURCE_WAVE);
        secret["type"] = Value::from("kubernetes.io/tls");
        secret["data"]["tls.crt"] = Value::from(pem("/frontDoorSSLCertB64"));
        secret["data"]["tls.key"] = Value::from(pem("/frontDoorSSLKeyB64"));
        self.objects.push(secret);
    }

    fn add_release(
        &mut self,
        definition: &Definition,
        release: &Release,
        spec: &Spec,
        world: &World<'_>,
    ) {
        let (mut values, secrets) = values(release, world.configuration);
        let said = spec.values.as_ref().and_then(|all| all.get(release.name));
        if let Some(said) = said.and_then(Value::as_object) {
            lay_over(&mut values, said);
        }
        let depth = depth(definition, release);
        let mut chart = self.object(&OCI_REPOSITORY, FLUX_NAMESPACE, release.name, SOURCE_WAVE);
        let base = world.configuration.text("/baseRepository");
        let url = format!("{}/{}", base.unwrap_or_default(), release.chart);
        let from = self.chart.fill(&[
            ("url", Value::from(url)),
            ("version", Value::from(spec.version())),
        ]);
        chart["spec"] = with_login(from, world);
        self.objects.push(chart);

        let mut body = self.release.fill(&[("name", Value::from(release.name))]);
        body["values"] = Value::Object(values);
        let before = self.before(definition, release);
        if !before.is_empty() {
            body["dependsOn"] = Value::Array(before);
        }
        if !secrets.is_empty() {
            let name = format!("{}-values", release.name);
            let mut secret = self.object(&SECRET, release.namespace, &name, SOURCE_WAVE);
            // So that Flux looks at once when it changes.
            secret["metadata"]["labels"]["reconcile.fluxcd.io/watch"] = Value::from("Enabled");
            // JSON is YAML.
            let text = Value::Object(secrets).to_string();
            secret["data"]["values.yaml"] = Value::from(forms::encode(text.as_bytes()));
            self.objects.push(secret);
            body["valuesFrom"] = fill(VALUES_FROM, &[("name", Value::from(name))]);
        }
        let wave = RELEASE_WAVE + depth;
        let mut object = self.object(&HELM_RELEASE, release.namespace, release.name, wave);
        object["spec"] = body;
        self.objects.push(object);
        let reference = HELM_RELEASE.object(release.name);
        self.judged.push(reference.in_namespace(release.namespace));
    }

    /// The releases that Flux is to wait for, so that it keeps the order when nobody else
    /// does.
    fn before(&self, definition: &Definition, release: &Release) -> Vec<Value> {
        let mut release = release;
        while let Some(before) = after(definition, release) {
            if self.kept.iter().any(|kept| kept.name == before.name) {
                return vec![dependency(before)];
            }
            release = before;
        }
        self.needed.clone()
    }

    fn finish(mut self, patched: Vec<bool>) -> Rendered {
        // One that a patch has taken out cannot be waited for.
        let is_there =
            |judged: &ObjectReference| self.objects.iter().any(|object| is_called(object, judged));
        self.judged = self
            .judged
            .iter()
            .filter(|one| is_there(one))
            .cloned()
            .collect();
        let is_secret = |object: &Value| object["kind"] == SECRET.kind();
        let mut hash = Hash::default();
        for object in self.objects.iter().filter(|object| !is_secret(object)) {
            // A hash takes everything, and an object of JSON can be written.
            let _ = serde_json::to_writer(&mut hash, object);
        }
        let revision = format!("{:016x}", hash.0);
        for object in &mut self.objects {
            if self.judged.iter().any(|judged| is_called(object, judged)) {
                annotate(object, REVISION, &revision);
            }
        }
        Rendered {
            objects: self.objects,
            revision,
            judged: self.judged,
            patched,
        }
    }
}

/// Whether a reference is to this object. Of one kind all have different names.
fn is_called(object: &Value, reference: &ObjectReference) -> bool {
    object["kind"] == reference.kind.kind() && object["metadata"]["name"] == reference.name
}

/// How charts are pulled: with the Secret that is named, or as the cloud knows Flux.
fn with_login(mut source: Value, world: &World<'_>) -> Value {
    let secret = world.config.pull_secret.as_str();
    if secret.is_empty() {
        source["provider"] = Value::from(world.configuration.cloud.name());
    } else {
        source["provider"] = Value::from("generic");
        source["secretRef"]["name"] = Value::from(secret);
    }
    source
}

/// What the configuration says to a release: what may be seen, and what may not.
fn values(
    release: &Release,
    configuration: &Configuration,
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut open, mut secret) = (Map::new(), Map::new());
    for given in configuration.values_of(release.name) {
        let tree = if given.key.secret {
            &mut secret
        } else {
            &mut open
        };
        put(tree, &given.path, given.value.clone());
    }
    let [mut open, secret] = [open, secret].map(|given| {
        let mut tree = Map::new();
        if !given.is_empty() {
            put(&mut tree, GLOBAL, Value::Object(given));
        }
        tree
    });
    match release.name {
        "istio-gateway" => {
            // A target group is bound to a port of the nodes.
            let service = match configuration.cloud {
                Cloud::Aws => "NodePort",
                Cloud::Gcp | Cloud::Azure => "LoadBalancer",
            };
            put(&mut open, "/service/type", Value::from(service));
        }
        "identity-service" => {
            put(
                &mut open,
                "/spicedb/endpoint",
                Value::from(SPICEDB_ENDPOINT),
            );
        }
        _ => {}
    }
    (open, secret)
}

/// The release of its pack that comes before it.
fn after<'a>(definition: &'a Definition, release: &Release) -> Option<&'a Release> {
    let name = release.after?;
    definition.releases.iter().find(|one| one.name == name)
}

/// How many releases of its pack come one after another before it.
fn depth(definition: &Definition, release: &Release) -> usize {
    after(definition, release).map_or(0, |before| 1 + depth(definition, before))
}

/// The releases of the packs that a pack needs.
fn needed(definition: &Definition, world: &World<'_>) -> Vec<Value> {
    let mut needed = Vec::new();
    for pack in graph::needs(definition.name, world.packs) {
        let is_enabled = world.packs.get(pack).is_some_and(|pack| pack.is_enabled());
        let Some(pack) = catalog::find(pack).filter(|_| is_enabled) else {
            continue;
        };
        needed.extend(kept(pack, world).into_iter().map(dependency));
    }
    needed
}

fn dependency(release: &Release) -> Value {
    let mut dependency = Value::Null;
    dependency["name"] = Value::from(release.name);
    dependency["namespace"] = Value::from(release.namespace);
    dependency
}

/// FNV-1a. It tells revisions of one pack apart, and protects nothing.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl std::io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for byte in bytes {
            self.0 ^= u64::from(*byte);
            self.0 = self.0.wrapping_mul(0x0100_0000_01b3);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
