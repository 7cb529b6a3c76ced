//! Pods that mount what is withdrawn.

use reeve_sdk::prelude::*;

use crate::POD;

#[input]
struct Pod {
    metadata: Metadata,
    spec: PodSpec,
}

#[input]
struct PodSpec {
    #[serde(default)]
    volumes: Vec<Volume>,
}

#[input]
struct Volume {
    persistent_volume_claim: Option<Claim>,
}

#[input]
struct Claim {
    claim_name: String,
}

/// No pod that mounts one of these claims is to be. Without any claim, pods are not
/// looked at.
pub(crate) fn end(
    cx: &Context,
    namespace: &str,
    claims: &[&String],
    mut outcome: Outcome,
) -> Result<Outcome, Failure> {
    if claims.is_empty() {
        return Ok(outcome);
    }
    let query = Query::of(POD)
        .in_namespace(namespace)
        .projection(["/spec/volumes"]);
    for pod in cx.list::<Pod>(&query)? {
        let mut mounted = pod
            .spec
            .volumes
            .iter()
            .filter_map(|volume| Some(&volume.persistent_volume_claim.as_ref()?.claim_name));
        if mounted.any(|name| claims.contains(&name)) {
            let reference = POD.object(pod.metadata.name).in_namespace(namespace);
            outcome = outcome.absent(reference.if_uid(pod.metadata.uid));
        }
    }
    Ok(outcome)
}
