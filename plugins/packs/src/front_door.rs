//! The part that leads to the platform from outside: what is of kinds that charts of
//! other packs bring along.

use reeve_sdk::prelude::*;

use crate::applyset::PART_OF;
use crate::catalog::{self, Definition, IDENTITY, INGRESS, ISTIO};
use crate::cloud::Cloud;
use crate::configuration::Configuration;
use crate::documents;
use crate::findings::Findings;
use crate::gate;
use crate::json::fill;
use crate::kinds::{GATEWAY, PACK, PACK_LABEL, TARGET_GROUP_BINDING, VIRTUAL_SERVICE, WAVE};
use crate::live::Live;
use crate::pack::Packs;
use crate::releases::{check_leave, check_order, check_stays};
use crate::render::{FRONT_DOOR, World};
use crate::settings::Config;

pub(crate) fn manifest(config: &Config) -> Manifest {
    let place = |namespace: &str| Scope::Namespaces(vec![namespace.to_owned()]);
    let manifest = Manifest::controller(PACK)
        .projection(["/metadata/name"])
        .writes(GATEWAY, place(INGRESS))
        .writes(VIRTUAL_SERVICE, place(IDENTITY));
    let manifest = match config.target_group_binding {
        true => manifest.writes(TARGET_GROUP_BINDING, place(INGRESS)),
        false => manifest,
    };
    let manifest = Live::declared(Packs::declared(manifest));
    documents::declare_configuration(config, manifest)
}

pub(crate) fn reconcile(name: &str, config: &Config, cx: &Context) -> Result<Outcome, Failure> {
    if ![ISTIO, IDENTITY].contains(&name) {
        return Ok(Outcome::nothing());
    }
    let definition = catalog::find(name).or_terminal(catalog::unknown())?;
    let packs = Packs::read(cx)?;
    let pack = packs.get(name).or_not_ready("the Pack is not seen yet")?;
    if pack.is_going || !pack.spec.is_enabled() {
        check_leave(name, &packs, Some(cx))?;
        return Ok(Outcome::nothing());
    }
    check_stays(pack)?;
    check_order(name, &packs)?;
    let (configuration, _) = documents::configuration(config, cx)?;
    let mut findings = Findings::default();
    configuration.check_for(name, &mut findings);
    findings.check(&format!("pack {name} and its configuration"))?;
    let specs = packs.specs();
    let world = World {
        config,
        configuration: &configuration,
        packs: &specs,
    };
    // Before, whoever admits these objects may not answer.
    if let Some(reason) = gate::lacks(name, &world, cx)? {
        return Err(Failure::not_ready(format!(
            "its releases come first: {reason}"
        )));
    }
    let binds = config.target_group_binding;
    let mut objects = objects(definition, binds, &configuration);
    // What is meant by none of them, the part of the releases tells.
    pack.spec.patch(&mut objects, &mut findings);
    findings.check(&format!("pack {name}"))?;
    // There is none only where patches take them out.
    let outcome = Outcome::nothing().objects(objects);
    Ok(match name == ISTIO && configuration.cloud == Cloud::Aws && !binds {
        true => outcome.condition(Condition::fails(
            "FrontDoorBound",
            "TargetGroupNotBound",
            "nothing is bound to aws.targetGroupArn; set targetGroupBinding in config.yaml once \
             the AWS load balancer controller is there",
        )),
        false => outcome,
    })
}

/// What there is of a pack in this part, before it is patched; nothing of most packs.
/// `binds` says whether target groups are bound.
pub(crate) fn objects(
    definition: &Definition,
    binds: bool,
    configuration: &Configuration,
) -> Vec<Value> {
    let host = Value::from(configuration.host().unwrap_or_default());
    let mut objects = match definition.name {
        ISTIO => gateway(host, binds, configuration),
        IDENTITY => vec![fill(ROUTES, &[("host", host)])],
        _ => Vec::new(),
    };
    for object in &mut objects {
        object["metadata"]["labels"][PACK_LABEL] = Value::from(definition.name);
        object["metadata"]["labels"][PART_OF] = Value::from(definition.set);
        // All of them come once the pack is ready.
        object["metadata"]["annotations"][WAVE] = Value::from("0");
    }
    objects
}

/// Where requests from outside come in.
const FRONT_GATEWAY: &str = r#"{
    "apiVersion": "networking.istio.io/v1",
    "kind": "Gateway",
    "metadata": {"name": "front-door", "namespace": "istio-ingress"},
    "spec": {
        "selector": {"istio": "gateway"},
        "servers": [
            {
                "port": {"number": 443, "name": "https", "protocol": "HTTPS"},
                "tls": {"mode": "SIMPLE", "credentialName": "$secret"},
                "hosts": ["$host"]
            },
            {
                "port": {"number": 80, "name": "http", "protocol": "HTTP"},
                "tls": {"httpsRedirect": true},
                "hosts": ["$host"]
            }
        ]
    }
}"#;

/// The ports of the nodes to which a target group of AWS leads: those of the Service that
/// the gateway's chart names after its release.
const BINDING: &str = r#"{
    "apiVersion": "elbv2.k8s.aws/v1beta1",
    "kind": "TargetGroupBinding",
    "metadata": {"name": "front-door", "namespace": "istio-ingress"},
    "spec": {
        "serviceRef": {"name": "istio-gateway", "port": 443},
        "targetGroupARN": "$arn"
    }
}"#;

/// What of the host is the identity service's.
const ROUTES: &str = r#"{
    "apiVersion": "networking.istio.io/v1",
    "kind": "VirtualService",
    "metadata": {"name": "identity-service", "namespace": "identity-service"},
    "spec": {
        "hosts": ["$host"],
        "gateways": ["istio-ingress/front-door"],
        "http": [{
            "match": [{"uri": {"prefix": "/identity-service/"}}],
            "route": [{"destination": {
                "host": "identity-service.identity-service.svc.cluster.local",
                "port": {"number": 80}
            }}]
        }]
    }
}"#;

fn gateway(host: Value, binds: bool, configuration: &Configuration) -> Vec<Value> {
    let values = [("host", host), ("secret", Value::from(FRONT_DOOR))];
    let mut objects = vec![fill(FRONT_GATEWAY, &values)];
    if configuration.cloud == Cloud::Aws && binds {
        let arn = configuration.text("/aws/targetGroupArn");
        let arn = Value::from(arn.unwrap_or_default());
        objects.push(fill(BINDING, &[("arn", arn)]));
    }
    objects
}
