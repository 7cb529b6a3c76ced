//! Finding the kind that somebody means, as kubectl does.

use anyhow::{Context as _, bail};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::Client;
use reeve_core::GroupVersionKind;

/// A kind that the cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) kind: GroupVersionKind,
    pub(crate) namespaced: bool,
}

/// The kind that is meant by a kind, a resource, its singular or a short name, each
/// perhaps with a group (`deployments.apps`) or a version and a group
/// (`Profile.v1.kubeflow.org`).
pub(crate) async fn find(client: &Client, text: &str) -> anyhow::Result<Served> {
    let unreachable = "cannot ask the cluster which kinds it serves";
    let core = client.list_core_api_resources("v1").await;
    if let Some(found) = pick(&core.context(unreachable)?, text) {
        return Ok(found);
    }
    let groups = client.list_api_groups().await.context(unreachable)?;
    let mut unknown = Vec::new();
    for group in groups.groups {
        let preferred = group.preferred_version.as_ref();
        // The preferred version is what is meant where none is named.
        let mut versions: Vec<&String> = preferred.iter().map(|one| &one.group_version).collect();
        versions.extend(group.versions.iter().map(|one| &one.group_version));
        versions.dedup();
        for version in versions {
            match client.list_api_group_resources(version).await {
                Ok(list) => {
                    if let Some(found) = pick(&list, text) {
                        return Ok(found);
                    }
                }
                // An aggregated API that is down says nothing about the others.
                Err(_) => unknown.push(version.clone()),
            }
        }
    }
    if unknown.is_empty() {
        bail!(
            "the cluster serves no kind {text}; `kubectl api-resources` lists those that it does"
        );
    }
    bail!(
        "the cluster serves no kind {text}, unless it is in {}, which gives no answer",
        unknown.join(", ")
    )
}

/// Reads a kind as a status writes it: `Profile.v1.kubeflow.org`, `ConfigMap.v1`.
pub(crate) fn parse(text: &str) -> Option<GroupVersionKind> {
    let mut parts = text.splitn(3, '.');
    let (kind, version) = (parts.next()?, parts.next()?);
    let group = parts.next().unwrap_or_default();
    Some(GroupVersionKind::new(group, version, kind))
}

/// The resource of a list that is meant.
fn pick(list: &APIResourceList, text: &str) -> Option<Served> {
    let (group, version) = match list.group_version.split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", list.group_version.as_str()),
    };
    let (name, place) = text.split_once('.').unwrap_or((text, ""));
    let in_place = place.is_empty()
        || place == group
        || place == version && group.is_empty()
        || place.strip_prefix(version) == Some(&format!(".{group}"));
    let found = list
        .resources
        .iter()
        .find(|resource| in_place && is_meant(resource, name))?;
    Some(Served {
        kind: GroupVersionKind::new(group, version, found.kind.clone()),
        namespaced: found.namespaced,
    })
}

fn is_meant(resource: &APIResource, name: &str) -> bool {
    let same = |other: &str| !other.is_empty() && other.eq_ignore_ascii_case(name);
    let short = resource.short_names.iter().flatten();
    // A name with a slash is a subresource.
    !resource.name.contains('/')
        && (same(&resource.kind)
            || same(&resource.name)
            || same(&resource.singular_name)
            || short.into_iter().any(|short| same(short)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(group_version: &str) -> APIResourceList {
        let resource = |name: &str, singular: &str, kind: &str, short: &[&str]| APIResource {
            name: name.to_owned(),
            singular_name: singular.to_owned(),
            kind: kind.to_owned(),
            namespaced: true,
            short_names: Some(short.iter().map(|one| (*one).to_owned()).collect()),
            ..APIResource::default()
        };
        APIResourceList {
            group_version: group_version.to_owned(),
            resources: vec![
                resource("deployments/scale", "", "Scale", &[]),
                resource("deployments", "deployment", "Deployment", &["deploy"]),
            ],
        }
    }

    #[test]
    fn kinds_are_read_as_a_status_writes_them() {
        for text in ["Profile.v1.kubeflow.org", "ConfigMap.v1"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("Profile"), None);
    }

    #[test]
    fn a_kind_goes_by_several_names() {
        for (group_version, text, expected) in [
            ("apps/v1", "Deployment", true),
            ("apps/v1", "deployment", true),
            ("apps/v1", "deployments", true),
            ("apps/v1", "deploy", true),
            ("apps/v1", "deployments.apps", true),
            ("apps/v1", "Deployment.v1.apps", true),
            ("apps/v1", "deployments.extensions", false),
            ("apps/v1", "Deployment.v2.apps", false),
            ("apps/v1", "Scale", false),
            ("apps/v1", "", false),
            ("v1", "Deployment.v1", true),
            ("v1", "Deployment.apps", false),
        ] {
            let found = pick(&list(group_version), text);
            assert_eq!(found.is_some(), expected, "{text} in {group_version}");
        }
    }
}
