//! Pods that mount what is withdrawn.

use reeve_sdk::JsonError;
use reeve_sdk::prelude::*;

use crate::POD;
use crate::live::malformed;

/// No pod that mounts one of these claims is to be. Without any claim, pods are not
/// looked at.
pub(crate) fn end(
    cx: &Context,
    namespace: &str,
    claims: &[&str],
    mut outcome: Outcome,
) -> Result<Outcome, Failure> {
    if claims.is_empty() {
        return Ok(outcome);
    }
    let query = Query::of(POD)
        .in_namespace(namespace)
        .projection(["/spec/volumes"]);
    for pod in cx.list::<Fields>(&query)? {
        if mounts(&pod, claims).map_err(malformed(POD))? {
            let metadata: Metadata = pod.read("metadata").map_err(malformed(POD))?;
            let reference = POD.object(metadata.name).in_namespace(namespace);
            outcome = outcome.absent(reference.if_uid(metadata.uid));
        }
    }
    Ok(outcome)
}

fn mounts(pod: &Fields, claims: &[&str]) -> Result<bool, JsonError> {
    let spec: Fields = pod.read("spec")?;
    let volumes: Vec<RawJson> = spec.read("volumes")?;
    for volume in &volumes {
        let volume: Fields = volume.read()?;
        let claim: Fields = volume.read("persistentVolumeClaim")?;
        let name: String = claim.read("claimName")?;
        if claims.contains(&name.as_str()) {
            return Ok(true);
        }
    }
    Ok(false)
}
