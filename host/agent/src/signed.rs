//! Whose signature a component must bear: one of the agent's keys, if it has some, and
//! one of its `Plugin`'s, if that names some. Neither loosens what the other demands.

use crate::delivery::Proof;
use crate::problem::Problem;
use crate::version::Artifact;
use reeve_api::{PluginSpec, Reason};
use reeve_outside::signature::VerifyingKey;
use std::sync::Arc;

/// The keys of the agent.
#[derive(Clone, Debug)]
pub(crate) struct Signers(Arc<[VerifyingKey]>);

/// Keys of which one must have signed.
struct Demand {
    /// Who says so, for people.
    by: &'static str,
    keys: Vec<VerifyingKey>,
}

impl Signers {
    pub(crate) fn new(keys: Vec<VerifyingKey>) -> Self {
        Self(keys.into())
    }

    /// Whether anybody demands a signature of a plugin.
    pub(crate) fn demand(&self, policy: &PluginSpec) -> bool {
        !self.0.is_empty() || policy.signatures.is_some()
    }

    /// Who demands what of a plugin.
    fn demands(&self, policy: &PluginSpec) -> Result<Vec<Demand>, Problem> {
        let mut demands = Vec::new();
        if !self.0.is_empty() {
            demands.push(Demand {
                by: "the agent's signature-keys",
                keys: self.0.to_vec(),
            });
        }
        let Some(signatures) = &policy.signatures else {
            return Ok(demands);
        };
        let invalid = |text| Problem::lasting(Reason::PolicyInvalid, text);
        let mut keys = Vec::new();
        for (index, text) in signatures.keys.iter().enumerate() {
            let read = VerifyingKey::read_all(text);
            keys.extend(read.map_err(|error| {
                invalid(format!(
                    "spec.signatures.keys[{index}] of the Plugin: {error}"
                ))
            })?);
        }
        if keys.is_empty() {
            return Err(invalid(
                "spec.signatures.keys of the Plugin is empty; name a public key, or leave \
                 spec.signatures out"
                    .to_owned(),
            ));
        }
        demands.push(Demand {
            by: "Plugin spec.signatures",
            keys,
        });
        Ok(demands)
    }

    /// Verifies the signatures of an artifact aside, since the largest take a while, and
    /// gives it back with the keys that signed it.
    ///
    /// # Errors
    ///
    /// When it lacks one that is demanded.
    pub(crate) async fn verify(
        &self,
        plugin: &str,
        artifact: Artifact,
        policy: &PluginSpec,
    ) -> Result<(Artifact, Arc<[VerifyingKey]>), Problem> {
        let demands = self.demands(policy)?;
        if demands.is_empty() {
            return Ok((artifact, Arc::default()));
        }
        let (plugin, from_registry) = (plugin.to_owned(), policy.artifact.is_some());
        let verified = tokio::task::spawn_blocking(move || {
            let signers = verify(&plugin, &artifact, &demands).map_err(|problem| Problem {
                // A signature may be pushed after what it signs, without our being told.
                retries: from_registry,
                ..problem
            })?;
            Ok((artifact, signers.into()))
        });
        let interrupted = |error| {
            let message = format!("verifying signatures was interrupted: {error}");
            Err(Problem::passing(Reason::SignatureInvalid, message))
        };
        verified.await.unwrap_or_else(interrupted)
    }
}

fn verify(
    plugin: &str,
    artifact: &Artifact,
    demands: &[Demand],
) -> Result<Vec<VerifyingKey>, Problem> {
    let signed_by = |key: &VerifyingKey| match artifact {
        Artifact::Delivered(package) => {
            let mut proofs = package.proofs.iter();
            proofs.any(|proof| proof.proves(&package.component, package.digest, key))
        }
        // Its bytes are not kept; what was found when they were stands.
        Artifact::Compiled { signers, .. } => signers.contains(key),
    };
    let mut signers: Vec<VerifyingKey> = Vec::new();
    for demand in demands {
        let before = signers.len();
        signers.extend(demand.keys.iter().filter(|key| signed_by(key)).cloned());
        if signers.len() == before {
            return Err(lacking(plugin, artifact, demand));
        }
    }
    Ok(signers)
}

/// What a component lacks, and what to do.
fn lacking(plugin: &str, artifact: &Artifact, demand: &Demand) -> Problem {
    let digest = artifact.digest();
    let keys: Vec<String> = demand.keys.iter().map(VerifyingKey::fingerprint).collect();
    let keys = keys.join(", ");
    let by = demand.by;
    let proofs = match artifact {
        Artifact::Delivered(package) => &package.proofs[..],
        Artifact::Compiled { .. } => &[],
    };
    let how = "sign it with one of them: an artifact with `reeve plugin sign IMAGE --key KEY` or \
               `cosign sign`, a ConfigMap with what `reeve plugin sign FILE --key KEY` or `cosign \
               sign-blob` prints under data[\"plugin.wasm.sig\"]";
    if proofs.is_empty() {
        return Problem::lasting(
            Reason::Unsigned,
            format!(
                "component {digest} of {plugin} is not signed, and {by} lets only those run that \
                 are signed with key {keys}; {how}"
            ),
        );
    }
    let stray = |proof: &&Proof| !proof.is_about(digest);
    let strays = proofs.iter().filter(stray).count();
    let strays = match strays {
        0 => String::new(),
        strays => format!(" ({strays} of them of something else)"),
    };
    Problem::lasting(
        Reason::SignatureInvalid,
        format!(
            "component {digest} of {plugin} has {} signatures{strays}, none of them of these bytes \
             with key {keys}, and {by} lets only those run that have one; {how}",
            proofs.len()
        ),
    )
}
