//! What the operator has said about a version before it may load: which one it is,
//! what it may ask for, and what no plugin may.

use crate::problem::Problem;
use crate::version::{Artifact, VersionId};
use reeve_api::{APPROVE_ASKS_ANNOTATION, PluginSpec, Reason, with_list};
use reeve_core::{Asks, Digest, Manifest};

/// What a new version may ask for.
#[derive(Clone, Debug)]
pub(crate) struct Approval {
    /// What the last version that ran asked for; none when none ever did.
    pub(crate) asks: Option<Vec<String>>,
    /// The token by which a person approved.
    pub(crate) token: Option<String>,
}

impl Approval {
    /// What asks for no more than before goes on; more is for a person to approve, of
    /// this version alone. The first version is approved by what it is granted.
    pub(crate) fn check(
        &self,
        plugin: &str,
        namespace: &str,
        version: VersionId,
        asks: &Asks,
    ) -> Result<(), Problem> {
        let Some(before) = &self.asks else {
            return Ok(());
        };
        let more = asks.beyond(before);
        let token = asks.token(&version.component, &version.config);
        if more.is_empty() || self.token.as_deref().map(str::trim) == Some(&token) {
            return Ok(());
        }
        Err(Problem::lasting(
            Reason::ApprovalRequired,
            with_list(
                "the new version asks for more than the one before: ",
                &more,
                &format!(
                    ". `reeve plugin approve {plugin} --namespace {namespace}` lets it, which annotates the Plugin {APPROVE_ASKS_ANNOTATION}={token}"
                ),
            ),
        ))
    }
}

/// The policy may name the one component that is to run.
pub(crate) fn check_pin(artifact: &Artifact, policy: &PluginSpec) -> Result<(), Problem> {
    let Some(pinned) = &policy.digest else {
        return Ok(());
    };
    let problem = |text| Err(Problem::lasting(Reason::DigestMismatch, text));
    match pinned.parse::<Digest>() {
        Ok(pinned) if pinned == artifact.digest() => Ok(()),
        Ok(pinned) => problem(format!(
            "the component that is delivered has digest {}, and Plugin spec.digest says {pinned}; deliver that one, or change spec.digest",
            artifact.digest()
        )),
        Err(error) => problem(format!("Plugin spec.digest: {error}")),
    }
}

/// What stands in the agent's namespace decides what the agent runs, and as whom.
pub(crate) fn check_not_here(manifest: &Manifest, namespace: &str) -> Result<(), Problem> {
    match manifest.writes_in(namespace) {
        None => Ok(()),
        Some(what) => Err(Problem::lasting(
            Reason::ManifestInvalid,
            format!(
                "{what}: namespace {namespace} is the agent's own, in which no plugin may write; use another"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use reeve_api::{
        APPROVE_ASKS_ANNOTATION, APPROVE_DELETION_ANNOTATION, APPROVE_PLAN_ANNOTATION,
        APPROVE_UPGRADE_ANNOTATION, FORGET_EFFECTS_ANNOTATION, RECONCILE_ANNOTATION,
        RELEASE_ANNOTATION, RETRY_ANNOTATION, ROLL_BACK_ANNOTATION, SUSPEND_ANNOTATION,
        SYNC_ANNOTATION,
    };
    use reeve_core::ownership::PEOPLE_OWNED;

    /// What people tell the agent by, no plugin may set.
    #[test]
    fn the_annotations_of_people_are_kept_from_plugins() {
        assert_eq!(
            PEOPLE_OWNED,
            [
                APPROVE_ASKS_ANNOTATION,
                APPROVE_DELETION_ANNOTATION,
                APPROVE_PLAN_ANNOTATION,
                APPROVE_UPGRADE_ANNOTATION,
                FORGET_EFFECTS_ANNOTATION,
                RECONCILE_ANNOTATION,
                RELEASE_ANNOTATION,
                RETRY_ANNOTATION,
                ROLL_BACK_ANNOTATION,
                SUSPEND_ANNOTATION,
                SYNC_ANNOTATION,
            ]
        );
    }
}
