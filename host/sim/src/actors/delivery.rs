//! Those who deliver: the controllers of Flux and of Argo CD.
//!
//! Their kinds are custom resources, in whichever definition is installed. Nothing is
//! fetched, built or released; what is played is what the real controllers write about
//! it: conditions with their reasons and messages, observed generations, artifacts,
//! histories, finalizers, requests that are answered, and the order that `dependsOn`
//! and sources make. How long things take and what fails, annotations say.
//!
//! Fields, reasons and messages are those of Flux 2.9 (source-controller 1.9,
//! kustomize-controller 1.9, helm-controller 1.6) and of Argo CD 3.5.

mod application;
mod chart;
mod conditions;
mod kustomization;
mod needs;
mod operation;
mod release;
mod revision;
mod scene;
mod source;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use self::scene::Scene;
use super::context::{self, Context};
use super::index::Target;
use crate::kinds::edit::{items, text, text_at};
use crate::resource::Resource;
use crate::rest::meta;
use crate::server::Shared;
use crate::status::ApiError;

/// The groups of the kinds.
const SOURCES: &str = "source.toolkit.fluxcd.io";
const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io";
const HELM: &str = "helm.toolkit.fluxcd.io";
const ARGO: &str = "argoproj.io";

/// The tables of the kinds that others refer to, or that refer to others.
const CHARTS: &str = "helmcharts.source.toolkit.fluxcd.io";
const KUSTOMIZATIONS: &str = "kustomizations.kustomize.toolkit.fluxcd.io";
const RELEASES: &str = "helmreleases.helm.toolkit.fluxcd.io";
const PROJECTS: &str = "appprojects.argoproj.io";

/// What goes wrong only because somebody asked for it, says so.
const ASKED_FOR: &str = "asked for by annotation";

/// Whose part is played for a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Source(source::Sort),
    Chart,
    Kustomization,
    Release,
    Application,
}

impl Role {
    /// The part that a kind needs; none where nobody here knows it.
    pub(super) fn of(kind: &str, group: &str) -> Option<Self> {
        Some(match (group, kind) {
            (SOURCES, "GitRepository") => Role::Source(source::Sort::Git),
            (SOURCES, "OCIRepository") => Role::Source(source::Sort::Oci),
            (SOURCES, "HelmRepository") => Role::Source(source::Sort::Helm),
            (SOURCES, "Bucket") => Role::Source(source::Sort::Bucket),
            (SOURCES, "HelmChart") => Role::Chart,
            (KUSTOMIZE, "Kustomization") => Role::Kustomization,
            (HELM, "HelmRelease") => Role::Release,
            (ARGO, "Application") => Role::Application,
            _ => return None,
        })
    }

    /// Who writes.
    fn manager(self) -> &'static str {
        match self {
            Role::Source(_) | Role::Chart => "source-controller",
            Role::Kustomization => "kustomize-controller",
            Role::Release => "helm-controller",
            Role::Application => "argocd-application-controller",
        }
    }
}

/// Looks at one object of a kind that somebody here knows.
pub(super) fn reconcile(
    role: Role,
    context: &mut Context<'_>,
    resource: &Resource,
    object: &Value,
) -> Result<(), ApiError> {
    if !meta::is_terminating(object) {
        context.complain(object);
    }
    let scene = Scene::new(context, resource, object, role.manager());
    match role {
        Role::Source(sort) => source::reconcile(scene, sort),
        Role::Chart => chart::reconcile(scene),
        Role::Kustomization => kustomization::reconcile(scene),
        Role::Release => release::reconcile(scene),
        Role::Application => application::reconcile(scene),
    }
}

/// Adds those to `dirty` that wait for news of a source.
pub(super) fn touched(
    shared: &Arc<Shared>,
    target: &Target,
    source: &Value,
    dirty: &mut BTreeSet<Target>,
) {
    if !target.table.ends_with(SOURCES) {
        return;
    }
    let names = |namespace: &str, reference: Option<&Value>| {
        let Some(reference) = reference else {
            return false;
        };
        let place = match text(reference, "namespace") {
            "" => namespace,
            given => given,
        };
        text(reference, "kind") == text(source, "kind")
            && text(reference, "name") == meta::text(source, "name")
            && place == meta::text(source, "namespace")
    };
    let mut wake = |table: &str, wanted: &dyn Fn(&Value) -> bool| {
        for object in context::list(shared, table, "") {
            if wanted(&object) {
                dirty.insert(Target::new(table, &context::key(&object)));
            }
        }
    };
    let by = |pointer: &'static str| {
        move |object: &Value| names(meta::text(object, "namespace"), object.pointer(pointer))
    };
    wake(KUSTOMIZATIONS, &by("/spec/sourceRef"));
    wake(CHARTS, &by("/spec/sourceRef"));
    let is_chart = &*target.table == CHARTS;
    let key = context::key(source);
    wake(RELEASES, &|release| {
        by("/spec/chartRef")(release) || is_chart && text_at(release, "/status/helmChart") == key
    });
}

/// Whether an object has a finalizer.
fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    meta::finalizers(object).any(|known| known == finalizer)
}

/// The times in a list of conditions, the earliest first.
fn earliest(status: &Value) -> &str {
    let times = items(status, "conditions").map(|condition| text(condition, "lastTransitionTime"));
    times.min().unwrap_or_default()
}

/// The SHA-256 of a text, in hexadecimal digits.
fn hash(text: &str) -> String {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_with_their_group() {
        for (kind, group, manager) in [
            ("GitRepository", SOURCES, Some("source-controller")),
            ("HelmChart", SOURCES, Some("source-controller")),
            ("Kustomization", KUSTOMIZE, Some("kustomize-controller")),
            ("HelmRelease", HELM, Some("helm-controller")),
            ("Application", ARGO, Some("argocd-application-controller")),
            ("Application", "app.k8s.io", None),
            ("Kustomization", "kustomize.config.k8s.io", None),
            ("AppProject", ARGO, None),
        ] {
            assert_eq!(Role::of(kind, group).map(Role::manager), manager, "{kind}");
        }
    }

    #[test]
    fn a_hash_is_hexadecimal() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash("abc"), expected);
    }
}
