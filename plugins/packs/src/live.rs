//! What packs have in the cluster, and how it is.

use reeve_sdk::prelude::*;

use crate::json::{Json, is_true, number, text};
use crate::kinds::{
    DEPLOYMENT, FLUX_NAMESPACE, HELM_RELEASE, HELM_REPOSITORY, PACK_LABEL, REVISION,
};

/// The controllers of Flux without which no release is installed.
const FLUX: [&str; 2] = ["helm-controller", "source-controller"];

/// The parts of an object that say whose it is, of which revision, and how it is.
const PARTS: [&str; 9] = [
    "/metadata/annotations",
    "/metadata/deletionTimestamp",
    "/metadata/generation",
    "/metadata/labels",
    "/spec/replicas",
    "/spec/suspend",
    "/status/availableReplicas",
    "/status/conditions",
    OBSERVED,
];
const OBSERVED: &str = "/status/observedGeneration";

/// An object of a pack.
struct Object(Value);

/// A condition of its status.
struct StatusCondition<'a>(&'a Value);

/// What a pack has in the cluster.
pub(crate) struct Live {
    objects: Vec<(Kind, Object)>,
}

impl Live {
    /// What is read to have it.
    pub(crate) fn declared(manifest: Manifest) -> Manifest {
        let marked = |kind| ReadRule::new(kind, Scope::Cluster).selector(PACK_LABEL);
        let manifest = manifest
            .reads(marked(HELM_RELEASE))
            .reads(marked(HELM_REPOSITORY));
        // A rule for each: they are watched one by one.
        FLUX.into_iter().fold(manifest, |manifest, name| {
            let place = Scope::Namespaces(vec![FLUX_NAMESPACE.to_owned()]);
            manifest.reads(ReadRule::new(DEPLOYMENT, place).names([name]))
        })
    }

    /// Only what this pack has, so that nothing runs when others come along.
    pub(crate) fn read(pack: &str, cx: &Context) -> Result<Self, Failure> {
        let mut objects = Vec::new();
        let selector = format!("{PACK_LABEL}={pack}");
        for kind in [HELM_RELEASE, HELM_REPOSITORY] {
            let query = Query::of(kind.clone());
            let query = query.selector(&selector).projection(PARTS);
            let found: Vec<Json> = cx.list(&query)?;
            let found = found.into_iter();
            objects.extend(found.map(|Json(object)| (kind.clone(), Object(object))));
        }
        Ok(Self { objects })
    }

    /// Whether there is anything of it.
    pub(crate) fn has_any(&self) -> bool {
        !self.objects.is_empty()
    }

    /// Whether a revision of it was let through before.
    pub(crate) fn has_revision(&self, revision: &str) -> bool {
        self.objects
            .iter()
            .any(|(_, object)| object.is_of(revision))
    }

    /// Why an object is not yet what a revision wants of it, and well.
    pub(crate) fn lacks(&self, wanted: &ObjectReference, revision: &str) -> Option<String> {
        let is_wanted = |(kind, object): &&(Kind, Object)| {
            *kind == wanted.kind
                && object.name() == wanted.name
                && wanted.namespace.as_deref() == Some(object.namespace())
        };
        let Some((kind, object)) = self.objects.iter().find(is_wanted) else {
            return Some(format!("{wanted} does not exist yet"));
        };
        if !object.is_of(revision) {
            return Some(format!("{wanted} is not yet as it is wanted"));
        }
        // A repository of type oci is only an address: nobody ever gives it a status.
        let says = (*kind == HELM_RELEASE)
            .then(|| object.release_lacks())
            .flatten();
        says.map(|says| format!("{wanted} is not ready: {says}"))
    }

    /// Why Flux cannot install anything yet.
    pub(crate) fn flux_lacks(cx: &Context) -> Result<Option<String>, Failure> {
        for name in FLUX {
            let reference = DEPLOYMENT.object(name).in_namespace(FLUX_NAMESPACE);
            let found: Option<Json> = cx.get_parts(&reference, PARTS)?;
            let Some(Json(found)) = found else {
                return Ok(Some(format!("{reference} does not exist yet")));
            };
            let seen = number(&found, OBSERVED) >= number(&found, "/metadata/generation");
            // None at all would install nothing.
            let wanted = number(&found, "/spec/replicas").max(1);
            let enough = number(&found, "/status/availableReplicas") >= wanted;
            if !seen || !enough {
                return Ok(Some(format!("{reference} is not available yet")));
            }
        }
        Ok(None)
    }
}

impl Object {
    fn name(&self) -> &str {
        text(&self.0, "/metadata/name")
    }

    fn namespace(&self) -> &str {
        text(&self.0, "/metadata/namespace")
    }

    fn is_of(&self, revision: &str) -> bool {
        self.0["metadata"]["annotations"][REVISION] == revision
    }

    fn is_suspended(&self) -> bool {
        is_true(&self.0, "/spec/suspend")
    }

    /// A condition of the present generation: helm-controller leaves those of the last
    /// one in place while it works on the next.
    fn condition(&self, kind: &str) -> Option<StatusCondition<'_>> {
        let generation = &self.0["metadata"]["generation"];
        let conditions = self.0["status"]["conditions"].as_array()?;
        let current = |condition: &&Value| {
            condition["type"] == kind && condition["observedGeneration"] == *generation
        };
        conditions.iter().find(current).map(StatusCondition)
    }

    /// Why a HelmRelease is not healthy, read from the top: its status is of the present
    /// generation only when it is ready or has stalled.
    fn release_lacks(&self) -> Option<String> {
        if self.0["metadata"]["deletionTimestamp"].is_string() {
            return Some("it is being deleted".to_owned());
        }
        if self.is_suspended() {
            return Some("it is suspended; resume it".to_owned());
        }
        if let Some(stalled) = self.condition("Stalled").filter(|one| one.is("True")) {
            return Some(format!("it has failed for good: {}", stalled.says()));
        }
        let ready = self.condition("Ready");
        let error = ready.as_ref().filter(|one| one.is("False"));
        let waits = |what: &str| match error {
            Some(error) => Some(format!("{what}; last error: {}", error.says())),
            None => Some(what.to_owned()),
        };
        if number(&self.0, OBSERVED) != number(&self.0, "/metadata/generation") {
            return waits("Flux is at work on it");
        }
        if let Some(working) = self.condition("Reconciling").filter(|one| one.is("True")) {
            return waits(&working.says());
        }
        match &ready {
            Some(ready) if ready.is("True") => None,
            Some(ready) => Some(ready.says()),
            None => Some("Flux has not come to it yet".to_owned()),
        }
    }
}

impl StatusCondition<'_> {
    fn is(&self, status: &str) -> bool {
        self.0["status"] == status
    }

    fn says(&self) -> String {
        let (reason, message) = (text(self.0, "/reason"), text(self.0, "/message"));
        match message.is_empty() {
            true => reason.to_owned(),
            false => format!("{reason}: {message}"),
        }
    }
}
