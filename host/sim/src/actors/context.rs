//! What an actor sees of the cluster, and how it writes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::Actors;
use super::index::Index;
use super::script::{self, Script};
use crate::clock;
use crate::events;
pub(super) use crate::events::Kind;
use crate::rest::meta;
use crate::rest::options::DeleteOptions;
use crate::rest::write::{Part, Proposal, Writer};
use crate::server::Shared;
use crate::status::ApiError;
use crate::store::Range;

/// The reason of events about annotations that cannot be used.
const UNUSABLE: &str = "UnusableAnnotation";
/// Whoever plays the controllers.
pub(super) const MANAGER: &str = "kube-controller-manager";
/// Whoever plays the scheduler.
pub(super) const SCHEDULER: &str = "kube-scheduler";
/// Whoever plays the kubelets.
pub(super) const KUBELET: &str = "kubelet";

/// The cluster while one object is looked at.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) settings: &'a Actors,
    index: &'a mut Index,
    now: SystemTime,
    wake: Option<SystemTime>,
}

impl<'a> Context<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, settings: &'a Actors, index: &'a mut Index) -> Self {
        Context {
            now: shared.clock.now(),
            shared,
            settings,
            index,
            wake: None,
        }
    }

    /// When the object has to be looked at again.
    pub(super) fn into_wake(self) -> Option<SystemTime> {
        self.wake
    }

    /// The present time, the same for all of one look.
    pub(super) fn now(&self) -> SystemTime {
        self.now
    }

    /// The present time as the API writes it.
    pub(super) fn timestamp(&self) -> String {
        clock::rfc3339(self.now)
    }

    /// Asks for another look at this time, if none is asked for earlier.
    pub(super) fn wake_at(&mut self, at: SystemTime) {
        self.wake = Some(self.wake.map_or(at, |known| known.min(at)));
    }

    /// Since when `mark` has been true of an object, to the millisecond where that
    /// was seen; otherwise as the time that it is stamped with says.
    pub(super) fn since(&mut self, object: &Value, mark: &str, stamp: &str) -> SystemTime {
        let stamped = clock::parse(stamp);
        self.index
            .since(meta::text(object, "uid"), mark, self.now, stamped)
    }

    /// As [`Context::since`], of one aspect of an object apart from the others.
    pub(super) fn since_of(
        &mut self,
        object: &Value,
        aspect: &'static str,
        mark: &str,
        stamp: &str,
    ) -> SystemTime {
        let stamped = clock::parse(stamp);
        let uid = meta::text(object, "uid");
        self.index.since_of(uid, aspect, mark, self.now, stamped)
    }

    /// An address for a pod.
    pub(super) fn new_address(&mut self) -> std::net::Ipv4Addr {
        self.index.new_address()
    }

    /// How long something has lasted.
    pub(super) fn elapsed(&self, since: SystemTime) -> Duration {
        self.now.duration_since(since).unwrap_or_default()
    }

    /// What the object, and those behind it, are asked to do. Tells the reader of
    /// its events of what cannot be used, each time that the object changes its
    /// mind about it.
    pub(super) fn script(&mut self, object: &Value, behind: &[&Value]) -> Script {
        let mut layers = vec![object];
        layers.extend(behind);
        Script::read(self.settings, &layers).0
    }

    /// Writes an event about each annotation of a new object that cannot be used.
    pub(super) fn complain(&self, object: &Value) {
        if !script::is_addressed(object) {
            return;
        }
        for unusable in Script::read(self.settings, &[object]).1 {
            let message = unusable.to_string();
            if !events::is_recorded(self.shared, object, UNUSABLE, &message) {
                self.event("actor", object, Kind::Warning, UNUSABLE, &message);
            }
        }
    }

    /// An object.
    pub(super) fn get(&self, table: &str, key: &str) -> Option<Value> {
        let object = self.shared.store.get(table, key)?;
        let resource = self.shared.registry.find_table(table)?;
        Some(object.value_as(&resource))
    }

    /// The objects of a namespace, or all of a cluster-scoped table where it is
    /// empty, in key order.
    pub(super) fn list(&self, table: &str, namespace: &str) -> Vec<Value> {
        list(self.shared, table, namespace)
    }

    /// The objects of a table that `owner` controls, in key order.
    pub(super) fn controlled(&self, owner: &Value, table: &str) -> Vec<Value> {
        let targets = self.index.controlled(meta::text(owner, "uid"), table);
        let found = targets.filter_map(|target| self.get(table, &target.key));
        let uid = meta::text(owner, "uid");
        // The index is as old as the last look at the changes.
        found
            .filter(|object| super::index::controller(object).is_some_and(|c| *c.uid == *uid))
            .collect()
    }

    /// Makes an object.
    pub(super) fn create(
        &self,
        table: &str,
        namespace: &str,
        manager: &str,
        object: Value,
    ) -> Result<Value, ApiError> {
        create(self.shared, table, namespace, manager, object)
    }

    /// Changes an object; one that is gone is left alone.
    pub(super) fn change(
        &self,
        table: &str,
        object: &Value,
        manager: &str,
        change: impl FnMut(&mut Value),
    ) -> Result<(), ApiError> {
        self.write(table, object, Part::Whole, manager, change)
    }

    /// Changes the status of an object; one that is gone is left alone.
    pub(super) fn change_status(
        &self,
        table: &str,
        object: &Value,
        manager: &str,
        change: impl FnMut(&mut Value),
    ) -> Result<(), ApiError> {
        self.write(table, object, Part::Status, manager, change)
    }

    fn write(
        &self,
        table: &str,
        object: &Value,
        part: Part,
        manager: &str,
        mut change: impl FnMut(&mut Value),
    ) -> Result<(), ApiError> {
        let Some(resource) = self.shared.registry.find_table(table) else {
            return Ok(());
        };
        let uid = meta::text(object, "uid");
        let key = key(object);
        let writer = writer(self.shared, &resource, part, manager);
        let written = writer.update(&key, |live| {
            let mut object = live.clone();
            meta::of_mut(&mut object).remove("resourceVersion");
            // Another object of the same name is not the one that was looked at.
            if meta::text(live, "uid") == uid {
                change(&mut object);
            }
            Ok(Proposal {
                object,
                owned: false,
                ..Proposal::default()
            })
        });
        match written {
            Err(error) if error.code() != 404 => Err(error),
            _ => Ok(()),
        }
    }

    /// Deletes an object; one that is gone is fine.
    pub(super) fn delete(&self, table: &str, object: &Value) -> Result<(), ApiError> {
        let Some(resource) = self.shared.registry.find_table(table) else {
            return Ok(());
        };
        let options = DeleteOptions {
            uid: Some(meta::text(object, "uid").to_owned()),
            propagation: Some(crate::rest::options::Propagation::Background),
            ..DeleteOptions::default()
        };
        let writer = writer(self.shared, &resource, Part::Whole, MANAGER);
        match writer.delete(&key(object), &options) {
            Err(error) if !matches!(error.code(), 404 | 409) => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes an event about an object.
    pub(super) fn event(
        &self,
        source: &str,
        about: &Value,
        kind: Kind,
        reason: &str,
        message: &str,
    ) {
        events::record(self.shared, source, about, kind, reason, message);
    }
}

/// `namespace/name`, or `name`.
pub(super) fn key(object: &Value) -> String {
    let name = meta::text(object, "name");
    match meta::text(object, "namespace") {
        "" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    }
}

/// The objects of a namespace, or all where it is empty, in key order.
pub(super) fn list(shared: &Shared, table: &str, namespace: &str) -> Vec<Value> {
    let Some(resource) = shared.registry.find_table(table) else {
        return Vec::new();
    };
    let prefix = match namespace {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    let range = Range {
        prefix: &prefix,
        from: "",
    };
    let page = shared.store.list(table, &range, None);
    let objects = page.map(|page| page.objects).unwrap_or_default();
    objects
        .iter()
        .map(|object| object.value_as(&resource))
        .collect()
}

/// Makes an object.
pub(super) fn create(
    shared: &Arc<Shared>,
    table: &str,
    namespace: &str,
    manager: &str,
    mut object: Value,
) -> Result<Value, ApiError> {
    let Some(resource) = shared.registry.find_table(table) else {
        return Err(ApiError::no_such_resource());
    };
    object["apiVersion"] = json!(resource.api_version);
    object["kind"] = json!(resource.kind);
    let proposal = Proposal {
        object,
        owned: false,
        ..Proposal::default()
    };
    let writer = writer(shared, &resource, Part::Whole, manager);
    let written = writer.create(namespace, proposal)?;
    Ok(written.object.value_as(&resource))
}

fn writer<'w>(
    shared: &'w Arc<Shared>,
    resource: &'w crate::resource::Resource,
    part: Part,
    manager: &'w str,
) -> Writer<'w> {
    Writer::of_server(shared, resource, part, manager)
}

#[cfg(test)]
mod tests {
    use super::super::kubelet;
    use super::super::tables::PODS;
    use super::*;
    use crate::{Config, Server};

    #[tokio::test]
    async fn what_was_seen_of_a_pod_is_nothing_to_the_next_one_of_its_name() {
        let server = Server::new(Config {
            seed: Some(1),
            ..Config::default()
        });
        let (settings, mut index) = (Actors::default(), Index::default());
        let mut context = Context::new(&server.shared, &settings, &mut index);
        let account = json!({"metadata": {"name": "default"}});
        // It may be there by itself.
        let _ = context.create("serviceaccounts", "default", MANAGER, account);
        let make = |context: &Context<'_>| {
            let spec = json!({
                "nodeName": "n",
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "c", "image": "i"}],
            });
            let pod = json!({"metadata": {"name": "a"}, "spec": spec});
            context.create(PODS, "default", MANAGER, pod).unwrap()
        };
        let seen = make(&context);
        context.delete(PODS, &seen).unwrap();
        assert_eq!(context.get(PODS, "default/a"), None, "it goes at once");
        let next = make(&context);

        let script = context.script(&seen, &[]);
        kubelet::run(&mut context, &seen, &script, None).unwrap();
        let label = |pod: &mut Value| pod["metadata"]["labels"] = json!({"a": "b"});
        context.change(PODS, &seen, MANAGER, label).unwrap();
        context.delete(PODS, &seen).unwrap();
        assert_eq!(context.get(PODS, "default/a"), Some(next.clone()));

        context.delete(PODS, &next).unwrap();
        assert_eq!(context.get(PODS, "default/a"), None);
    }
}
