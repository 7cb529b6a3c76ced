//! Reading objects of a cluster, all kinds and all pages.

use super::selection::{Selection, UnknownKind, is_definition, is_namespace};
use super::{order, shape};
use crate::cluster::Cluster;
use crate::resource::Resource;
use crate::transport::{Call, CallError, TransportError};
use reeve_core::GroupVersionKind;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Objects in one answer: as many as client-go's pager asks for.
const PAGE: &str = "500";
/// How often a list is begun again whose pages have expired on the way.
const ATTEMPTS: usize = 3;

/// Objects that another cluster can be made of, in the order in which to make them.
#[derive(Debug, Default)]
pub struct Export {
    /// The objects.
    pub objects: Vec<Value>,
    /// How many objects were left out, by the reason.
    pub left_out: BTreeMap<&'static str, usize>,
    /// How many have lost owners that are not among them.
    pub orphans: usize,
    /// Kinds that were not read, since they are of no use elsewhere.
    pub unusable: Vec<String>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

/// Objects that could not be read.
#[derive(Debug, PartialEq, Eq)]
pub struct Unread {
    /// The kind, as kubectl calls it, or the group.
    pub what: String,
    /// Why.
    pub why: String,
}

/// How far it is: a kind, and how many objects of it were read so far.
pub struct Progress<'a> {
    /// The kind, as kubectl calls it.
    pub resource: &'a Resource,
    /// How many objects were read.
    pub read: usize,
    /// Whether these are all.
    pub done: bool,
}

/// Why nothing can be read.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The cluster does not say what it serves.
    #[error("cannot ask the cluster what it serves")]
    Unreachable(#[source] TransportError),
    /// It refuses to say so.
    #[error("the cluster refuses to say what it serves ({code}): {message}")]
    Refused {
        /// HTTP status.
        code: u16,
        /// In the API server's words.
        message: String,
    },
    /// The answer cannot be understood.
    #[error("cannot understand what the cluster says it serves at {path}")]
    Malformed {
        /// Where was asked.
        path: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A kind is not there.
    #[error(transparent)]
    UnknownKind(#[from] UnknownKind),
    /// A namespace is not there.
    #[error("the cluster has no namespace {0}")]
    NoNamespace(String),
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    name: String,
    versions: Vec<Version>,
    preferred_version: Option<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Served>,
}

#[derive(Deserialize)]
struct Served {
    name: String,
    kind: String,
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

/// A page of a list.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    items: Option<Vec<Value>>,
}

#[derive(Deserialize, Default)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
}

impl Cluster {
    /// Reads what is selected, of the kinds that are `usable` elsewhere and of those
    /// that have a definition, and tells of its progress. Kinds that cannot be read
    /// are named in the answer, and keep nothing else from being read.
    ///
    /// # Errors
    ///
    /// When the cluster does not say what it serves, or a kind or namespace that is
    /// selected is not there.
    pub async fn export(
        &self,
        selection: &Selection,
        usable: &dyn Fn(&GroupVersionKind) -> bool,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Export, ExportError> {
        let mut export = Export::default();
        let mut served = self.served(&mut export.unread).await?;
        selection.check(&served)?;
        // They say which kinds are defined.
        served.sort_by_key(|resource| !is_definition(resource));
        let mut defined = BTreeSet::new();
        let mut taken = BTreeSet::new();
        for resource in &served {
            let name = resource.to_string();
            if !selection.reads(resource) {
                continue;
            }
            if !usable(&resource.kind) && !defined.contains(&name) {
                export.unusable.push(name);
                continue;
            }
            let chosen = &selection.namespaces;
            let objects = if is_namespace(resource) && !chosen.is_empty() {
                self.read_namespaces(resource, chosen, &mut export.unread)
                    .await?
            } else {
                match self.read_all(resource, selection, progress).await {
                    Ok(objects) => objects,
                    Err(why) => {
                        export.unread.push(Unread { what: name, why });
                        continue;
                    }
                }
            };
            for mut object in objects {
                if let Some(why) = selection.leaves_out(resource, &object) {
                    *export.left_out.entry(why).or_default() += 1;
                    continue;
                }
                let own = object.pointer("/metadata/name").and_then(Value::as_str);
                if is_definition(resource) {
                    defined.extend(own.map(str::to_owned));
                } else {
                    taken.insert(name.clone());
                }
                shape::portable(&mut object, selection.keep_secrets);
                export.objects.push(object);
            }
        }
        export.objects.retain(|object| {
            object["kind"] != "CustomResourceDefinition"
                || selection.needs_definition(object, &taken)
        });
        export.orphans = order::arrange(&mut export.objects);
        Ok(export)
    }

    /// Every kind that is served and can be made, in the version that its group
    /// prefers.
    async fn served(&self, unread: &mut Vec<Unread>) -> Result<Vec<Resource>, ExportError> {
        let mut served = Vec::new();
        let core: Resources = self.ask("/api/v1").await?;
        add(&mut served, "", "v1", core);
        let groups: Groups = self.ask("/apis").await?;
        for group in groups.groups {
            let preferred = group.preferred_version.iter();
            for version in preferred.chain(&group.versions) {
                let path = format!("/apis/{}/{}", group.name, version.version);
                match self.ask(&path).await {
                    Ok(resources) => add(&mut served, &group.name, &version.version, resources),
                    // Such as an aggregated server that is down.
                    Err(error) => {
                        let (what, why) = (group.name.clone(), reeve_core::chain(&error));
                        unread.push(Unread { what, why });
                        break;
                    }
                }
            }
        }
        Ok(served)
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, ExportError> {
        let body = self.call(Call::get(path.to_owned())).await;
        let body = body.map_err(|error| match error {
            CallError::Transport(source) => ExportError::Unreachable(source),
            CallError::Status(status) => ExportError::Refused {
                code: status.code,
                message: status.message,
            },
        })?;
        serde_json::from_slice(&body).map_err(|source| ExportError::Malformed {
            path: path.to_owned(),
            source,
        })
    }

    /// Reads the namespaces that were named. Who may not read one may have rights
    /// in it: its name is enough to make another.
    async fn read_namespaces(
        &self,
        resource: &Resource,
        names: &[String],
        unread: &mut Vec<Unread>,
    ) -> Result<Vec<Value>, ExportError> {
        let mut namespaces = Vec::new();
        for name in names {
            let bare = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name},
            });
            let call = Call::get(resource.object_path(None, name));
            let why = match self.call(call).await {
                Ok(body) => match serde_json::from_slice(&body) {
                    Ok(namespace) => {
                        namespaces.push(namespace);
                        continue;
                    }
                    Err(error) => error.to_string(),
                },
                Err(CallError::Status(status)) if status.code == 404 => {
                    return Err(ExportError::NoNamespace(name.clone()));
                }
                Err(CallError::Status(status)) => status.message.clone(),
                Err(CallError::Transport(error)) => reeve_core::chain(&error),
            };
            let what = format!("namespace {name}, of which there is only the name");
            unread.push(Unread { what, why });
            namespaces.push(bare);
        }
        Ok(namespaces)
    }

    async fn read_all(
        &self,
        resource: &Resource,
        selection: &Selection,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Vec<Value>, String> {
        let mut objects = Vec::new();
        for place in selection.places(resource) {
            let before = objects.len();
            for attempt in 1.. {
                let mut told = |read: usize| {
                    progress(Progress {
                        resource,
                        read,
                        done: false,
                    });
                };
                let read = self.read_place(resource, place, &mut objects, &mut told);
                match read.await {
                    Ok(()) => break,
                    // Its pages are of a version that is forgotten.
                    Err((410, _)) if attempt < ATTEMPTS => objects.truncate(before),
                    Err((_, why)) => return Err(why),
                }
            }
        }
        progress(Progress {
            resource,
            read: objects.len(),
            done: true,
        });
        Ok(objects)
    }

    /// Reads all pages. An error has the code of the answer, or 0.
    async fn read_place(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        objects: &mut Vec<Value>,
        told: &mut dyn FnMut(usize),
    ) -> Result<(), (u16, String)> {
        let mut after = String::new();
        loop {
            let mut call = Call::get(resource.collection_path(namespace)).query("limit", PAGE);
            if !after.is_empty() {
                call = call.query("continue", &after);
            }
            let body = self.call(call).await.map_err(|error| match error {
                CallError::Transport(error) => (0, reeve_core::chain(&error)),
                CallError::Status(status) => (status.code, status.message.clone()),
            })?;
            let page: Page = serde_json::from_slice(&body)
                .map_err(|error| (0, format!("its list cannot be understood: {error}")))?;
            let kind = &resource.kind;
            for mut object in page.items.unwrap_or_default() {
                // Items of a list need not say what they are.
                if let Some(fields) = object.as_object_mut() {
                    fields.insert("apiVersion".to_owned(), kind.api_version().into());
                    fields.insert("kind".to_owned(), kind.kind.clone().into());
                }
                objects.push(object);
            }
            if page.metadata.next.is_empty() {
                return Ok(());
            }
            told(objects.len());
            after = page.metadata.next;
        }
    }
}

/// Adds what can be listed and made, and is not there in a version that is preferred.
fn add(served: &mut Vec<Resource>, group: &str, version: &str, found: Resources) {
    for resource in found.resources {
        let does = |verb: &str| resource.verbs.iter().any(|own| own == verb);
        let is_known = served
            .iter()
            .any(|known| *known.kind.group == *group && *known.plural == *resource.name);
        if !resource.name.contains('/') && does("list") && does("create") && !is_known {
            served.push(Resource {
                kind: GroupVersionKind::new(group, version, resource.kind),
                plural: resource.name.into(),
                namespaced: resource.namespaced,
            });
        }
    }
}
