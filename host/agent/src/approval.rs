//! What the operator has said about a version before it may load: which one it is,
//! what it may ask for, and what no plugin may.

use crate::problem::Problem;
use crate::version::{Artifact, VersionId};
use reeve_api::{APPROVE_ASKS_ANNOTATION, PluginSpec, Reason, with_list};
use reeve_core::{Asks, Digest, Manifest};

/// What a new version may ask for.
#[derive(Clone, Debug)]
pub(crate) struct Approval {
    /// What the version asked for that ran last, for all units; none when none ever did.
    pub(crate) asks: Option<Vec<String>>,
    /// What the version asks for that some units run, if there is one.
    pub(crate) canary: Option<Vec<String>>,
    /// The token by which a person approved.
    pub(crate) token: Option<String>,
}

impl Approval {
    /// Of a version that has run, and that a person wants again.
    pub(crate) fn given() -> Self {
        Self {
            asks: None,
            canary: None,
            token: None,
        }
    }

    /// What asks for no more than one that runs goes on; more is for a person to approve,
    /// of this version alone, also where it is only more than either of two: what may read
    /// a secret and what may send something out do not make one that may do both. The
    /// first version is approved by what it is granted.
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
        let is_canary = |asked: &Vec<String>| asks.beyond(asked).is_empty();
        let is_within = more.is_empty() || self.canary.as_ref().is_some_and(is_canary);
        let token = asks.token(&version.component, &version.config);
        if is_within || self.token.as_deref().map(str::trim) == Some(&token) {
            return Ok(());
        }
        Err(Problem::lasting(
            Reason::ApprovalRequired,
            with_list(
                "the new version asks for more than the one before: ",
                &more,
                &format!(
                    ". `reeve plugin approve {plugin} --namespace {namespace} --dry-run` shows all of it; without --dry-run the command lets it, which annotates the Plugin {APPROVE_ASKS_ANNOTATION}={token}"
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
    use super::*;
    use reeve_api::{
        APPROVE_DELETION_ANNOTATION, APPROVE_PLAN_ANNOTATION, APPROVE_UPGRADE_ANNOTATION,
        FORGET_EFFECTS_ANNOTATION, RECONCILE_ANNOTATION, RELEASE_ANNOTATION, RETRY_ANNOTATION,
        ROLL_BACK_ANNOTATION, SUSPEND_ANNOTATION, SYNC_ANNOTATION,
    };
    use reeve_core::GroupVersionKind;
    use reeve_core::manifest::{RawManifest, RawPrimary, RawRead, Scope, WriteRule};
    use reeve_core::ownership::PEOPLE_OWNED;

    /// What a manifest asks for that reads and writes objects of these kinds.
    fn asks(reads: &[&str], writes: &[&str]) -> Asks {
        let kind = |kind: &&str| GroupVersionKind::new("", "v1", *kind);
        let reads = reads.iter().map(kind).map(|kind| RawRead {
            kind,
            scope: Scope::Cluster,
            selector: String::new(),
            names: Vec::new(),
        });
        let writes = writes.iter().map(kind).map(|kind| WriteRule {
            kind,
            scope: Scope::Cluster,
        });
        let manifest = Manifest::try_from(RawManifest {
            primary: Some(RawPrimary {
                kind: GroupVersionKind::new("kubeflow.org", "v1", "Profile"),
                selector: String::new(),
                projection: Vec::new(),
            }),
            reads: reads.collect(),
            writes: writes.collect(),
            sources: Vec::new(),
            actions: Vec::new(),
        });
        Asks::of(&manifest.unwrap())
    }

    fn version() -> VersionId {
        VersionId {
            component: Digest::of(b"component"),
            config: Digest::of(b"{}"),
        }
    }

    #[test]
    fn a_version_may_ask_for_as_much_as_one_of_two_and_not_as_both() {
        let (stable, canary) = (asks(&["Pod"], &["ConfigMap"]), asks(&["Node"], &[]));
        let approval = Approval {
            asks: Some(stable.lines()),
            canary: Some(canary.lines()),
            token: None,
        };
        let check = |asks: &Asks| approval.check("p", "ns", version(), asks);
        for within in [&stable, &canary, &asks(&["Pod"], &[]), &asks(&[], &[])] {
            check(within).unwrap();
        }
        for beyond in [asks(&["Pod", "Node"], &[]), asks(&["Node"], &["ConfigMap"])] {
            let problem = check(&beyond).unwrap_err();
            assert_eq!(problem.reason, Reason::ApprovalRequired);
            assert!(problem.message.contains("read Node"), "{problem}");
            let approved = Approval {
                token: Some(beyond.token(&version().component, &version().config)),
                ..approval.clone()
            };
            approved.check("p", "ns", version(), &beyond).unwrap();
        }
    }

    /// However long the list is, what changes something is told.
    #[test]
    fn what_writes_comes_first() {
        let reads: Vec<String> = (0..90)
            .map(|n| format!("Aaaaaaaaaaaaaaaaaaaaaa{n}"))
            .collect();
        let reads: Vec<&str> = reads.iter().map(String::as_str).collect();
        let asks = asks(&reads, &["Secret"]);
        let approval = Approval {
            asks: Some(Vec::new()),
            ..Approval::given()
        };
        let problem = approval.check("p", "ns", version(), &asks).unwrap_err();
        let (before, after) = (": write Secret; ", "--dry-run` shows all of it");
        let message = &problem.message;
        assert!(
            message.contains(before) && message.contains(after),
            "{message}"
        );
    }

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
