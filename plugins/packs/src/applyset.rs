//! Packs as ApplySets, by which kubectl knows what belongs together (KEP-3659).
//!
//! A Pack, the parent, says of which kinds and in which namespaces its objects can be, and
//! each object that the pack makes says that it is of the set. The parent may say more
//! than there is, so it need not change with what is there. The id is what kubectl makes
//! of the parent's name, namespace, kind and group; the catalog has those of all packs.

use reeve_sdk::prelude::*;

use crate::catalog::{Definition, FLUX, IDENTITY, ISTIO};
use crate::kinds::{
    CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CONFIG_MAP, DEFINITION, DEPLOYMENT, FLUX_NAMESPACE,
    GATEWAY, HELM_RELEASE, HELM_REPOSITORY, NAMESPACE, NETWORK_POLICY, OCI_REPOSITORY,
    RESOURCE_QUOTA, SECRET, SERVICE, SERVICE_ACCOUNT, TARGET_GROUP_BINDING, VIRTUAL_SERVICE,
};

/// Label of a parent: the id of its set.
const ID: &str = "applyset.kubernetes.io/id";
/// Label of a member: the id of the set that it is of.
pub(crate) const PART_OF: &str = "applyset.kubernetes.io/part-of";
/// Annotation of a parent: who changes the set. kubectl leaves alone what is not its own.
const TOOLING: &str = "applyset.kubernetes.io/tooling";
/// Annotation of a parent: kinds of members.
const KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
/// Annotation of a parent: namespaces of members. A Pack has none itself.
const NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";

/// Makes a Pack the parent of its set.
pub(crate) fn mark_parent(pack: &mut Value, definition: &Definition) {
    let metadata = &mut pack["metadata"];
    metadata["labels"][ID] = Value::from(definition.set);
    let annotations = &mut metadata["annotations"];
    annotations[TOOLING] = Value::from(concat!("reeve/", env!("CARGO_PKG_VERSION")));
    let kinds = kinds(definition);
    annotations[KINDS] = listed(kinds.iter().map(group_kind).collect());
    // Sources are where Flux is.
    let namespaces = definition.namespaces.iter().chain([&FLUX_NAMESPACE]);
    annotations[NAMESPACES] = listed(namespaces.map(|name| (*name).to_owned()).collect());
}

/// All kinds of which a pack can have objects.
fn kinds(definition: &Definition) -> Vec<Kind> {
    let mut kinds = vec![NAMESPACE, CONFIG_MAP];
    kinds.extend(match definition.name {
        FLUX => [
            SERVICE_ACCOUNT,
            DEPLOYMENT,
            SERVICE,
            NETWORK_POLICY,
            RESOURCE_QUOTA,
            DEFINITION,
            CLUSTER_ROLE,
            CLUSTER_ROLE_BINDING,
        ]
        .to_vec(),
        _ => [SECRET, HELM_REPOSITORY, OCI_REPOSITORY, HELM_RELEASE].to_vec(),
    });
    match definition.name {
        ISTIO => kinds.extend([GATEWAY, TARGET_GROUP_BINDING]),
        IDENTITY => kinds.push(VIRTUAL_SERVICE),
        _ => {}
    }
    kinds
}

/// A kind without its version, as `Kind.group`, or `Kind` in the core group.
fn group_kind(kind: &Kind) -> String {
    match kind.api_version().split_once('/') {
        Some((group, _)) => format!("{}.{group}", kind.kind()),
        None => kind.kind().to_owned(),
    }
}

/// Sorted and each once, as kubectl writes it. They are few, and the code for sorting any
/// number of them is large.
fn listed(all: Vec<String>) -> Value {
    let mut sorted: Vec<String> = Vec::new();
    for name in all {
        if let Err(place) = sorted.binary_search(&name) {
            sorted.insert(place, name);
        }
    }
    Value::from(sorted.join(","))
}
