//! The part that brings Flux: its namespace, its manifests where they are given, and who
//! it is to the cloud.

use reeve_sdk::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::applyset::PART_OF;
use crate::catalog::{self, Definition, FLUX};
use crate::cloud::Cloud;
use crate::configuration::Configuration;
use crate::documents;
use crate::findings::{Findings, below};
use crate::json;
use crate::kinds::{
    CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CONFIG_MAP, DEFINITION, DEPLOYMENT, FLUX_NAMESPACE,
    NAMESPACE, NETWORK_POLICY, PACK, PACK_LABEL, RESOURCE_QUOTA, SERVICE, SERVICE_ACCOUNT,
};
use crate::pack::Packs;
use crate::releases::{
    check_leave, check_order, check_stays, is_own, leave, namespace_rule, tell_unmatched,
};
use crate::render;
use crate::settings::Config;
use crate::values::{lay_over, put};

/// The name of the manifests where they are outside.
const MANIFESTS: &str = "flux-manifests";
/// The controller that pulls charts.
const SOURCE_CONTROLLER: &str = "source-controller";

pub(crate) fn manifest(config: &Config) -> Manifest {
    let place = || Scope::Namespaces(vec![FLUX_NAMESPACE.to_owned()]);
    let mut manifest = Manifest::controller(PACK)
        .projection(["/metadata/name"])
        .reads(namespace_rule(FLUX_NAMESPACE))
        .writes(NAMESPACE, Scope::Cluster)
        .writes(CONFIG_MAP, place())
        .writes(SERVICE_ACCOUNT, place())
        .writes(DEPLOYMENT, place());
    if let Some(manifests) = config.flux_manifests() {
        manifest = manifests
            .declared(MANIFESTS, manifest)
            .writes(SERVICE, place())
            .writes(NETWORK_POLICY, place())
            .writes(RESOURCE_QUOTA, place())
            .writes(DEFINITION, Scope::Cluster)
            .writes(CLUSTER_ROLE, Scope::Cluster)
            .writes(CLUSTER_ROLE_BINDING, Scope::Cluster);
    }
    documents::declare_configuration(config, Packs::declared(manifest))
}

pub(crate) fn reconcile(name: &str, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    if name != FLUX {
        return Ok(Outcome::nothing());
    }
    let definition = catalog::find(FLUX).or_terminal(catalog::unknown())?;
    let packs = Packs::read(cx)?;
    let pack = packs.get(name).or_not_ready("the Pack is not seen yet")?;
    if pack.is_going || !pack.spec.is_enabled() {
        check_leave(name, &packs, None)?;
        return Ok(leave(definition, pack));
    }
    check_stays(pack)?;
    check_order(name, &packs)?;
    let mut findings = Findings::default();
    render::check_values(definition, &pack.spec, &mut findings);
    findings.check("pack flux")?;
    let (configuration, _) = documents::configuration(config, cx)?;
    let mut objects = manifests(definition, config, cx)?;
    for part in identity(&configuration) {
        add(&mut objects, part);
    }
    let is_namespace = |object: &Value| object["kind"] == NAMESPACE.kind();
    objects.retain(|object| !is_namespace(object));
    if is_own(FLUX_NAMESPACE, cx)? {
        objects.push(render::namespace(FLUX, FLUX_NAMESPACE, config));
    }
    // Who may do what is as the manifests say: the account of this part may give any right
    // to anybody, and nobody who writes Packs is to do so by way of it.
    let roles = [CLUSTER_ROLE, CLUSTER_ROLE_BINDING];
    let is_role = |object: &Value| roles.iter().any(|kind| object["kind"] == kind.kind());
    let (roles, mut objects): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(is_role);
    let mut findings = Findings::default();
    let matched = pack.spec.patch(&mut objects, &mut findings);
    findings.check("pack flux")?;
    objects.extend(roles);
    objects.push(render::farewell(definition));
    Ok(tell_unmatched(&pack.spec, &[matched], Outcome::of(objects)))
}

/// The manifests that are given.
fn manifests(
    definition: &Definition,
    config: &Config,
    cx: &Context,
) -> Result<Vec<Value>, Failure> {
    let Some(place) = config.flux_manifests() else {
        return Ok(Vec::new());
    };
    let what = documents::described("the manifests of Flux", &place);
    let text = place.read(MANIFESTS, cx)?;
    let text = text.or_not_ready(format_args!("{what} are not there yet; store them"))?;
    check_digest(&text, &config.flux_manifests.sha256, &what)?;
    let mut items = items(&text).map_err(|problem| {
        Failure::terminal(format!(
            "{what}: {problem}; expected manifests, such as those of `flux install --export`"
        ))
    })?;
    for item in &mut items {
        // What has another form is refused by the host, which says where.
        let metadata = item.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata {
            for (label, value) in [(PACK_LABEL, FLUX), (PART_OF, definition.set)] {
                put(metadata, &below("/labels", label), Value::from(value));
            }
        }
    }
    Ok(items)
}

/// Whether these are the manifests that are meant, where that is said.
fn check_digest(text: &str, wanted: &str, what: &str) -> Result<(), Failure> {
    if wanted.is_empty() {
        return Ok(());
    }
    let digest = Sha256::digest(text.as_bytes());
    let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    if found == wanted {
        return Ok(());
    }
    Err(Failure::terminal(format!(
        "{what}: their SHA-256 is {found} and not {wanted}, which fluxManifests.sha256 wants; mend \
         one of them"
    )))
}

/// The objects of a text, and of Lists in it.
fn items(text: &str) -> Result<Vec<Value>, String> {
    // JSON is YAML, and quicker to read.
    let documents = match json::parse(text) {
        Ok(document) => vec![document],
        Err(_) => reeve_sdk::yaml::documents(text)?,
    };
    let mut items = Vec::new();
    for mut document in documents {
        let kind = document["kind"].as_str();
        let is_list = kind.is_none_or(|kind| kind.ends_with("List"));
        match document
            .get_mut("items")
            .filter(|_| is_list)
            .map(Value::take)
        {
            Some(Value::Array(all)) => items.extend(all),
            Some(_) => return Err("the items of a List are no list".to_owned()),
            None => items.push(document),
        }
    }
    match items.iter().position(|item| !item["kind"].is_string()) {
        Some(index) => Err(format!("item {index} has no kind")),
        None if items.is_empty() => Err("there is nothing".to_owned()),
        None => Ok(items),
    }
}

/// What tells the cloud who pulls charts: parts of objects of Flux.
fn identity(configuration: &Configuration) -> Vec<Value> {
    let Some(identity) = configuration.text("/aws/fluxIrsaRoleArn") else {
        return Vec::new();
    };
    let annotation = configuration.cloud.identity_annotation();
    let mut account = part(&SERVICE_ACCOUNT);
    account["metadata"]["annotations"][annotation] = Value::from(identity);
    if configuration.cloud != Cloud::Azure {
        return vec![account];
    }
    // Azure looks at the label of the account and of the pods.
    let mut deployment = part(&DEPLOYMENT);
    let template = &mut deployment["spec"]["template"];
    for object in [&mut account, template] {
        object["metadata"]["labels"]["azure.workload.identity/use"] = Value::from("true");
    }
    vec![account, deployment]
}

fn part(kind: &Kind) -> Value {
    let mut part = Value::Null;
    part["apiVersion"] = Value::from(kind.api_version());
    part["kind"] = Value::from(kind.kind());
    part["metadata"]["name"] = Value::from(SOURCE_CONTROLLER);
    part["metadata"]["namespace"] = Value::from(FLUX_NAMESPACE);
    part
}

/// Adds a part of an object to it, or contributes the part to what somebody else has
/// made.
fn add(objects: &mut Vec<Value>, mut part: Value) {
    let same = |object: &&mut Value| {
        object["kind"] == part["kind"] && object["metadata"]["name"] == part["metadata"]["name"]
    };
    let found = objects.iter_mut().find(same).and_then(Value::as_object_mut);
    match (found, part.as_object()) {
        (Some(object), Some(part)) => lay_over(object, part),
        _ => {
            part["metadata"]["annotations"]["reeve.dev/apply"] = Value::from("Contribute");
            objects.push(part);
        }
    }
}
