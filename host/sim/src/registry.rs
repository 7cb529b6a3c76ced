//! Which resources are served: the built-in ones, the same for every server, and
//! the custom ones of this server.

pub(crate) mod custom;
pub(crate) mod definition;
pub(crate) mod replicas;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

use foldhash::{HashMap, HashMapExt as _};
use serde_json::Value;
use tokio::sync::watch;

use self::definition::Resources;
use crate::kinds::{self, Kind};
use crate::resource::{Nature, Resource};
use crate::status::qualified;
use crate::store::TableName;

/// The resources of one server.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    custom: watch::Sender<Arc<Customs>>,
    /// Whether webhooks of definitions are asked.
    asks_webhooks: bool,
}

/// The custom resources, by the name of their definition.
type Customs = BTreeMap<String, Defined>;

/// What one definition makes served.
#[derive(Debug, Clone)]
struct Defined {
    /// The `spec` of the definition.
    spec: Arc<Value>,
    resources: Resources,
}

/// Tells when a custom resource is no longer served as it was.
#[derive(Debug)]
pub(crate) struct Service {
    resource: Arc<Resource>,
    custom: watch::Receiver<Arc<Customs>>,
}

impl Service {
    /// Waits until the definition is gone, or has another `spec`.
    pub(crate) async fn ended(&mut self) {
        let Self { resource, custom } = self;
        let is_this = |r: &Arc<Resource>| Arc::ptr_eq(r, resource);
        let gone = |customs: &Arc<Customs>| {
            let definition = customs.get(&*resource.table);
            !definition.is_some_and(|found| found.resources.served.iter().any(is_this))
        };
        // A registry that is gone serves nothing either.
        let _ = custom.wait_for(gone).await;
    }
}

/// The built-in resources, made once a process.
struct Builtins {
    all: Vec<Arc<Resource>>,
    index: HashMap<(&'static str, &'static str, &'static str), Arc<Resource>>,
    /// Of each table that has objects of several versions, all of these.
    versions: HashMap<TableName, Vec<Arc<Resource>>>,
}

static BUILTINS: LazyLock<Builtins> = LazyLock::new(|| {
    let all: Vec<Arc<Resource>> = kinds::all().map(|kind| Arc::new(builtin(kind))).collect();
    let index = kinds::all()
        .zip(&all)
        .map(|(kind, resource)| ((kind.group, kind.version, kind.plural), resource.clone()))
        .collect();
    let mut versions: HashMap<TableName, Vec<Arc<Resource>>> = HashMap::new();
    for resource in all.iter().filter(|resource| resource.is_stored()) {
        let table = versions.entry(resource.table.clone()).or_default();
        table.push(resource.clone());
    }
    versions.retain(|_, versions| versions.len() > 1);
    Builtins {
        all,
        index,
        versions,
    }
});

/// What every server serves.
pub(crate) fn builtins() -> &'static [Arc<Resource>] {
    &BUILTINS.all
}

impl Registry {
    /// A registry of a server that asks webhooks, or none.
    pub(crate) fn new(asks_webhooks: bool) -> Self {
        Registry {
            asks_webhooks,
            ..Registry::default()
        }
    }

    /// A registry that serves the same, and goes its own way from here.
    pub(crate) fn fork(&self) -> Self {
        Registry {
            custom: watch::Sender::new(self.custom.borrow().clone()),
            asks_webhooks: self.asks_webhooks,
        }
    }

    /// The resource that a path names.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        if let Some(found) = BUILTINS.index.get(&(group, version, plural)) {
            return Some(found.clone());
        }
        let custom = self.custom.borrow();
        let resources = &custom.get(&qualified(group, plural))?.resources.served;
        let mut resources = resources.iter();
        resources
            .find(|resource| resource.version == version)
            .cloned()
    }

    /// A resource that is stored in `table`, in the version in which the server itself
    /// writes its objects.
    pub(crate) fn find_table(&self, table: &str) -> Option<Arc<Resource>> {
        let is = |r: &&Arc<Resource>| *r.table == *table && r.is_stored();
        if let Some(found) = BUILTINS.all.iter().find(is) {
            return Some(found.clone());
        }
        self.custom.borrow().get(table)?.resources.own.clone()
    }

    /// The stored resource whose objects are of this kind.
    pub(crate) fn find_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        let is =
            |r: &&Arc<Resource>| r.kind == kind && r.api_version == api_version && r.is_stored();
        if let Some(found) = BUILTINS.all.iter().find(is) {
            return Some(found.clone());
        }
        let custom = self.custom.borrow();
        let mut all = custom.values().flat_map(|c| &c.resources.served);
        all.find(is).cloned()
    }

    /// Whether a custom resource is served in a group and version.
    pub(crate) fn has_custom(&self, group: &str, version: &str) -> bool {
        let custom = self.custom.borrow();
        let mut all = custom.values().flat_map(|c| &c.resources.served);
        all.any(|resource| resource.group == group && resource.version == version)
    }

    /// Everything that is served, built-in first.
    pub(crate) fn all(&self) -> Vec<Arc<Resource>> {
        let mut all = BUILTINS.all.clone();
        all.extend(self.customs());
        all
    }

    /// The other versions of a resource.
    pub(crate) fn siblings(&self, resource: &Resource) -> Vec<Arc<Resource>> {
        let mut siblings = if resource.is_custom() {
            self.defined(&resource.table)
        } else {
            let versions = BUILTINS.versions.get(&*resource.table);
            versions.cloned().unwrap_or_default()
        };
        siblings.retain(|sibling| sibling.api_version != resource.api_version);
        siblings
    }

    /// The custom resources.
    pub(crate) fn customs(&self) -> Vec<Arc<Resource>> {
        let custom = self.custom.borrow();
        let resources = custom.values().flat_map(|custom| &custom.resources.served);
        resources.cloned().collect()
    }

    /// What a definition makes served.
    pub(crate) fn defined(&self, definition: &str) -> Vec<Arc<Resource>> {
        let custom = self.custom.borrow();
        let defined = custom.get(definition);
        defined.map_or_else(Vec::new, |defined| defined.resources.served.clone())
    }

    /// Serves what a definition defines, in place of what it did before. Says whether
    /// that is something else.
    pub(crate) fn serve(&self, definition: &str, object: &Value) -> bool {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let known = |custom: &Customs| custom.get(definition).is_some_and(|c| *c.spec == *spec);
        // A change of its status changes nothing for who watches its objects.
        if known(&self.custom.borrow()) {
            return false;
        }
        let defined = Defined {
            spec: Arc::new(spec.clone()),
            resources: definition::resources(object, self.asks_webhooks),
        };
        self.custom.send_modify(|customs| {
            Arc::make_mut(customs).insert(definition.to_owned(), defined);
        });
        true
    }

    /// Stops serving the resources of a definition.
    pub(crate) fn forget(&self, definition: &str) {
        self.custom.send_modify(|customs| {
            Arc::make_mut(customs).remove(definition);
        });
    }

    /// By what to know when a resource is no longer served as it is now; none for
    /// one that is built in.
    pub(crate) fn service(&self, resource: &Arc<Resource>) -> Option<Service> {
        resource.is_custom().then(|| Service {
            resource: resource.clone(),
            custom: self.custom.subscribe(),
        })
    }
}

/// Where a kind is stored. Events are the same objects in both of their groups.
fn table(kind: &Kind) -> String {
    match (kind.group, kind.plural) {
        ("events.k8s.io", "events") => "events".to_owned(),
        (group, plural) => qualified(group, plural),
    }
}

fn builtin(kind: &'static Kind) -> Resource {
    Resource {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        api_version: kind.api_version(),
        plural: kind.plural.to_owned(),
        singular: kind.singular(),
        kind: kind.kind.to_owned(),
        list_kind: kind.list_kind(),
        namespaced: kind.namespaced,
        short_names: kind
            .short_names
            .iter()
            .map(|&name| name.to_owned())
            .collect(),
        categories: kind
            .categories
            .iter()
            .map(|&name| name.to_owned())
            .collect(),
        verbs: kind.verbs,
        subresources: kind.subresources.to_vec(),
        fields: Arc::new(kind.fields.clone()),
        table: table(kind).into(),
        nature: Nature::Builtin(kind),
        merging: OnceLock::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_resources_are_found_by_path_and_table() {
        let registry = Registry::default();
        let deployments = registry.find("apps", "v1", "deployments").unwrap();
        assert_eq!(deployments.kind, "Deployment");
        assert_eq!(&*deployments.table, "deployments.apps");
        let found = registry.find_table("configmaps").unwrap();
        assert_eq!(found.kind, "ConfigMap");
        assert!(registry.find("apps", "v2", "deployments").is_none());
    }
}
